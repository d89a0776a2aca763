"""`evalwright view` and `evalwright export site`: runs and their samples in a browser, served, as one file, or as a folder of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from evalwright.cli import say
from evalwright.cli.options import RUNS_FOLDER
from evalwright.cli.output import echo
from evalwright.cli.signals import ServingEnded

TITLE = click.option("--title", metavar="TEXT", help="The page's title. Default: the names of the runs.")


@click.command()
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@click.option(
    "--html", metavar="FILE", help="Write one file that opens without a server or a network, instead."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="Where to serve. Default: any free port."
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@TITLE
def view(
    runs: tuple[str, ...],
    runs_folder: str,
    html: str | None,
    port: int | None,
    no_browser: bool,
    title: str | None,
) -> None:
    """Look at RUNS (folders or names) and their samples in a browser.

    The page is served on this machine alone until Ctrl-C. Runs that are still going are followed, to their end, a stop, or a resume.
    """
    if html:
        if port is not None or no_browser:
            raise click.UsageError("--html serves nothing: leave out --port and --no-browser.")
        from evalwright.api import open_run
        from evalwright.reports.explorer.page import write_page

        opened = [open_run(run, runs_folder) for run in runs]
        warnings = write_page(
            opened, Path(html), title=title or _title([run.name for run in opened]), progress=_progress
        )
        _progress("")
        for one in warnings:
            say(f"Warning: {one}")
        say(f"Written: {html} ({Path(html).stat().st_size / 1e6:,.1f} MB)")
        return
    _serve([_folder(run, Path(runs_folder)) for run in runs], port or 0, title, browser=not no_browser)


@click.command("site")
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@click.option(
    "--into", metavar="DIR", default="site", show_default=True, help="Where the page and its files go."
)
@TITLE
def site(runs: tuple[str, ...], runs_folder: str, into: str, title: str | None) -> None:
    """Write the explorer of RUNS as files for a web server; samples are loaded when they are looked at."""
    from evalwright.api import open_run
    from evalwright.reports.explorer.page import write_site

    opened = [open_run(run, runs_folder) for run in runs]
    page, warnings = write_site(
        opened, Path(into), title=title or _title([run.name for run in opened]), progress=_progress
    )
    _progress("")
    for one in warnings:
        say(f"Warning: {one}")
    say(f"Written: {page}. Look at it with: python -m http.server --directory {into}")


def _serve(folders: Sequence[Path], port: int, title: str | None, *, browser: bool) -> None:
    from evalwright.reports.explorer.following import Follower
    from evalwright.reports.explorer.server import Server

    follower = Follower(folders, title or _title([folder.resolve().name for folder in folders]), say)
    server = Server(follower, port)
    echo(server.url)
    say("Ctrl-C ends it.")
    if browser:
        _open(server.url)
    follower.start()
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        raise ServingEnded from None
    finally:
        server.server_close()
        follower.stop()


def _folder(name: str, runs_folder: Path) -> Path:
    """The folder of a run that is finished or still made. Raises UnknownName or RunError as `open_run`."""
    from evalwright.api import open_run
    from evalwright.runs.writer import RUN_FILE, growing

    for folder in (Path(name), runs_folder / name):
        folder = folder.parent if folder.name == RUN_FILE else folder
        if folder.is_dir() and not (folder / RUN_FILE).is_file() and growing(folder) is not None:
            return folder
    return open_run(name, runs_folder).folder


def _title(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"


def _open(url: str) -> None:
    """Open a person's browser, where there is a screen to show it on: one in the terminal would take it over."""
    import webbrowser

    if (
        os.name == "posix"
        and sys.platform != "darwin"
        and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    ):
        return
    try:
        opened = webbrowser.open(url)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        say("No browser could be opened: open the address in one.")


def _progress(words: str) -> None:
    """How far the work is, in one line of a terminal that is written over."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()
