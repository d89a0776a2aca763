"""`evalwright view` and `evalwright export site`: runs and their samples in a browser."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import PLUGINS, RUNS_FOLDER, flag, open_runs, option
from evalwright.cli.output import echo
from evalwright.cli.signals import ServingEnded
from evalwright.cli.steps import show_step
from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.reports.explorer.following import Follower
    from evalwright.runs.reader import Run

IMAGES = flag(
    "--images with_images",
    "Put the images of prompts into what is written; anybody who has it sees them.",
)
TITLE = option("--title", "TEXT", "The page's title. Default: the names of the runs.")


@click.command()
@click.argument("runs", nargs=-1)
@RUNS_FOLDER
@option(
    "--html",
    "FILE",
    "Write one file that opens without a server or a network, instead.",
)
@option(
    "--port",
    "N",
    "Where to serve. Default: any free port.",
    type=click.IntRange(0, 65535),
)
@flag("--no-browser", "Print the address, and open no browser.")
@IMAGES
@TITLE
@PLUGINS
def view(
    runs: tuple[str, ...],
    html: str | None,
    port: int | None,
    title: str | None,
    plugins: tuple[str, ...],
    **params: Any,
) -> None:
    """Look at RUNS (folders or names) and their samples in a browser.

    Without RUNS, the page lists all runs of the folder, to choose from.

    The page is served on this machine alone until Ctrl-C. Runs that are still going are followed,
    to their end, a stop, or a resume.
    """
    from evalwright.cli.arguments import load_plugins

    load_plugins(plugins)
    if html and not runs:
        raise click.UsageError("--html writes the named runs: name at least one.")
    if html:
        if port is not None or params["no_browser"]:
            raise click.UsageError(
                "--html serves nothing: leave out --port and --no-browser."
            )
        from evalwright.reports.explorer.page import write_page

        shown_runs = open_runs(*runs)
        page_title = title or _title(shown_runs)
        _warn(
            write_page(
                shown_runs,
                Path(html),
                title=page_title,
                progress=show_step,
                with_images=params["with_images"],
            )
        )
        say(f"Written: {html} ({Path(html).stat().st_size / 1e6:,.1f} MB)")
        return
    if params["with_images"]:
        raise click.UsageError(
            "--images is for --html: a page that is served shows images anyway."
        )
    from evalwright.reports.explorer.following import Follower

    runs_folder = Path(params["runs_folder"])
    if runs:
        folders = [_folder(run, runs_folder) for run in runs]
        page_title = title or _title([folder.resolve() for folder in folders])
        follower = Follower(folders, page_title, _say_apart)
    else:
        _require_runs(runs_folder)
        folder_name = runs_folder.resolve().name
        page_title = title or (
            "Runs" if folder_name == "runs" else f"Runs in {folder_name}"
        )
        follower = Follower((), page_title, _say_apart, runs_folder=runs_folder)
    _serve(follower, port or 0, browser=not params["no_browser"])


@click.command("site")
@click.argument("runs", nargs=-1, required=True)
@option(
    "--out into",
    "DIR",
    "Where the page and its files go. Default: site.",
    default="site",
)
@option(
    "--runs runs_folder",
    "DIR",
    "Where runs given by name are. Default: runs.",
    default="runs",
)
@IMAGES
@TITLE
def site(
    runs: tuple[str, ...], into: str, title: str | None, with_images: bool, **_: Any
) -> None:
    """Write the explorer of RUNS as files for a web server; samples are loaded when they are looked
    at.
    """
    from evalwright.reports.explorer.page import write_site

    shown_runs = open_runs(*runs)
    page_title = title or _title(shown_runs)
    page, warnings = write_site(
        shown_runs,
        Path(into),
        title=page_title,
        progress=show_step,
        with_images=with_images,
    )
    _warn(warnings)
    say(f"Written: {page}. Look at it with: python -m http.server --directory {into}")


def _require_runs(runs_folder: Path) -> None:
    """Raise ConfigurationError unless the folder holds a run."""
    from evalwright.reports.explorer.following import run_folders

    if run_folders(runs_folder):
        return
    if runs_folder.is_dir():
        problem = f"There are no runs in '{runs_folder}'."
    else:
        problem = f"There is no folder '{runs_folder}' with runs here."
    raise ConfigurationError(
        f"{problem} `evalwright run factual-choice --model demo/small` makes one;"
        " --out names another folder."
    )


def _serve(follower: Follower, port: int, *, browser: bool) -> None:
    from evalwright.reports.explorer.server import Server

    server = Server(follower, port)
    # Ctrl-C arrives in the main thread: in the middle of a connection, the server would take it for
    # an error of that connection and go on.
    serving = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
    serving.start()
    try:
        echo(server.url)
        say("Ctrl-C ends it.")
        if browser:
            _open(server.url)
        follower.start()
        step = ""
        while serving.is_alive():
            serving.join(0.5)  # without a limit, Windows would keep Ctrl-C waiting
            if follower.step != step:
                step = follower.step
                show_step(step)
    except KeyboardInterrupt:
        raise ServingEnded from None
    finally:
        show_step("")
        server.shutdown()
        server.server_close()
        follower.stop()


def _say_apart(sentence: str) -> None:
    """Say a sentence on a line of its own, where a step may be shown."""
    show_step("")
    say(sentence)


def _folder(name: str, runs_folder: Path) -> Path:
    """Return the folder of a run that is finished or still growing.

    Raises:
        UnknownName: there is no such run.
        RunError: it cannot be read.
    """
    from evalwright.api import open_run
    from evalwright.runs.writer import RUN_FILE, growing

    for folder in (Path(name), runs_folder / name):
        folder = folder.parent if folder.name == RUN_FILE else folder
        if (
            folder.is_dir()
            and not (folder / RUN_FILE).is_file()
            and growing(folder) is not None
        ):
            return folder
    return open_run(name, runs_folder).folder


def _title(runs: Sequence[Run | Path]) -> str:
    names = [run.name for run in runs]
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"


def _open(url: str) -> None:
    """Open a browser if there is a screen; one in the terminal would take it over."""
    import webbrowser

    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if os.name == "posix" and sys.platform != "darwin" and not screen:
        return
    try:
        opened = webbrowser.open(url)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        say("No browser could be opened: open the address in one.")


def _warn(warnings: Sequence[str]) -> None:
    """Print warnings on a page that was just written."""
    show_step("")
    for warning in warnings:
        say(f"Warning: {warning}")
