"""What `evalwright leaderboard` writes.

Everything is made before anything is written, so that a fault leaves all as it was; only models'
pages, which read the samples, are written one by one, before the files that link to them. What a
library that is not installed would draw is left out, and said: the other files are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import say
from evalwright.cli.options import AS_JSON, opened, option
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.tasks.files import read_file, write_file

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.reports.document import Document
    from evalwright.runs.reader import Run

_FILES = ("into", "markdown", "html", "latex", "pdf", "csv", "json_file")


def publish(
    board: Board, runs: Sequence[Run], given: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Write what was asked for; a sentence for each file written, and one for each that could not
    be drawn.

    runs: those of the board, in the same order.
    """
    from evalwright.reports.markers import check_text_file
    from evalwright.reports.model_pages import (
        EXAMPLES,
        page_files,
        remove_stale_pages,
        write_pages,
    )
    from evalwright.reports.plot_view import NothingToPlot

    _check_distinct(given)
    if given["into"]:
        check_text_file(Path(given["into"]))
    pages = page_files(board, Path(given["pages"])) if given["pages"] else []
    given, missing = _drawable(given)
    try:
        pictures = _pictures(board, given)
    except NothingToPlot as error:
        pictures = {}
        missing += [f"Not written: {file}. {error}" for file in given["plots"]]
        given = {**given, "plots": ()}
    made = {**pictures, **_texts(board, runs, given, pages)}
    said = []
    if given["pages"]:
        board_page = Path(given["html"]) if given["html"] else None
        examples = EXAMPLES if given["examples"] is None else given["examples"]
        write_pages(
            board,
            runs,
            Path(given["pages"]),
            title=given["title"],
            board_page=board_page,
            examples=examples,
        )
        count = f"{len(pages)} pages" if len(pages) > 1 else "1 page"
        said.append(f"Written: {given['pages']} ({count})")
        stale = remove_stale_pages(board, Path(given["pages"]), given["title"])
        said += [f"Removed: {file} (no longer on the board)" for file in stale]
    for path, data in made.items():
        said.append(
            f"Written: {path}" if write_file(path, data) else f"Unchanged: {path}"
        )
    return said, missing


@click.command("scores")
@click.argument("runs", nargs=-1, required=True)
@option(
    "--out",
    "DIR",
    "Where the folders of the published runs go. Default: published.",
    default="published",
)
@option(
    "--runs runs_folder",
    "DIR",
    "Where runs given by name are. Default: runs.",
    default="runs",
)
@AS_JSON
def scores(runs: tuple[str, ...], out: str, as_json: bool, **_: Any) -> None:
    """Publish RUNS without their samples: run.json and scores by item, of which others can make
    boards and comparisons.
    """
    from evalwright.runs.confirmed import confirm
    from evalwright.runs.published_scores import publish_scores
    from evalwright.runs.simulations import refuse_shards

    published = opened(*runs)
    refuse_shards(published)
    files = []
    for run in published:
        confirm(run)  # what its samples do not give is not published
        files += publish_scores(run, Path(out) / run.name)
    if as_json:
        print_json([str(file) for file in files])
        return
    for file in files:
        echo(f"Written: {file}")
    say(
        "Questions and answers are left out. run.json has how the runs were made"
        " (models, settings, prompts as templates, scorers) and their numbers; what may"
        " hold a text of a row has its SHA-256 in its place."
    )


def _drawable(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """The options without the files that need a library that is not installed, and a sentence for
    each of these.
    """
    from evalwright.reports.plot import check_plot

    drawn = [*given["plots"], *([given["pdf"]] if given["pdf"] else [])]
    try:
        for file in given["plots"]:
            check_plot(file)
        if given["pdf"]:
            check_plot("board.pdf")
    except MissingExtra as error:
        return {**given, "plots": (), "pdf": None}, [
            f"Not written: {file}. {error}" for file in drawn
        ]
    return given, []


def _check_distinct(given: Mapping[str, Any]) -> None:
    """Raise UsageError where two options name one file."""
    seen: dict[Path, str] = {}
    named = [
        (f"--{name.replace('_', '-')}", given[name]) for name in _FILES if given[name]
    ]
    for typed_option, file in [*named, *(("--plot", plot) for plot in given["plots"])]:
        other = seen.setdefault(Path(file).resolve(), typed_option)
        if other != typed_option:
            raise click.UsageError(f"{other} and {typed_option} both name '{file}'.")


def _pictures(board: Board, given: Mapping[str, Any]) -> dict[Path, bytes]:
    if not given["plots"]:
        return {}
    from evalwright.reports.plot import check_plot, draw_plot
    from evalwright.reports.plot_view import BEST, plot_view

    best = BEST if given["best"] is None else given["best"]
    view = plot_view(board, given["title"], best, given["least_answered"])
    kinds = [check_plot(file) for file in given["plots"]]
    return {
        Path(file): draw_plot(view, kind)
        for file, kind in zip(given["plots"], kinds, strict=True)
    }


def _texts(
    board: Board, runs: Sequence[Run], given: Mapping[str, Any], pages: Sequence[Path]
) -> dict[Path, bytes | str]:
    from evalwright.reports.board_files import board_csv, board_json
    from evalwright.reports.documents.board import board_document
    from evalwright.reports.html import to_html
    from evalwright.reports.latex import to_latex
    from evalwright.reports.markdown import to_markdown
    from evalwright.reports.model_pages import link_to
    from evalwright.reports.pdf import to_pdf
    from evalwright.runs.writer import to_json

    def links(file: str) -> list[str]:
        return [link_to(page, Path(file)) for page in pages]

    def document(**more: Any) -> Document:
        return board_document(board, title=given["title"], **more)

    makers: dict[str, Callable[[str], bytes | str]] = {
        "markdown": lambda file: to_markdown(
            board_document(board, links=links(file)), 0
        ),
        "html": lambda file: to_html(document(runs=runs, links=links(file))),
        "latex": lambda file: to_latex(document()),
        "pdf": lambda file: to_pdf(document()),
        "csv": lambda file: board_csv(board),
        "json_file": (
            lambda file: (
                to_json(board_json(board, given["title"], links(file)), indent=2) + "\n"
            )
        ),
        "into": lambda file: _into(board, given, links(file)),
    }
    return {
        Path(given[name]): make(given[name])
        for name, make in makers.items()
        if given[name]
    }


def _into(board: Board, given: Mapping[str, Any], links: Sequence[str]) -> bytes:
    from evalwright.reports.documents.board import readme_document
    from evalwright.reports.markdown import escape, to_markdown
    from evalwright.reports.markers import put_between
    from evalwright.reports.model_pages import link_to

    file = Path(given["into"])
    plots = sorted(given["plots"], key=lambda plot: not plot.lower().endswith(".svg"))
    picture = link_to(Path(plots[0]), file) if plots else ""
    block = to_markdown(readme_document(board, links, picture, given["title"]), 0)
    try:
        return put_between(read_file(file), block, escape(given["title"]))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The board cannot be written into '{file}': {error}"
        ) from None


# -- the workflow ----------------------------------------------------------------------


def write_workflow(runs: Sequence[str], given: Mapping[str, Any]) -> None:
    """Write the workflow file.

    Raises UsageError or ConfigurationError for what it cannot be made of.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.evaluation.needs import extras_of, files_of, keys_of
    from evalwright.reports.workflow import Publication, requirement_here, workflow

    if runs:
        raise click.UsageError(
            "--workflow takes no RUNS: the workflow makes them, from --config."
        )
    if not given["config"]:
        raise click.UsageError(
            "--workflow needs --config FILE, the suite file that is run."
        )
    for name in ("kept", "with_simulations", "ratings", "as_json"):
        if given[name]:
            typed = name.removeprefix("as_").replace("_", "-")
            raise click.UsageError(f"--{typed} has no effect with --workflow.")
    load_plugins(given["plugins"])
    configuration = read_configuration(
        Path(given["config"]), given["suite"], given["trust_file"]
    )
    if not configuration.tasks or not configuration.models:
        raise ConfigurationError(
            f"'{given['config']}' must name tasks and models, because the workflow runs"
            " it without other options."
        )
    extras = (
        *extras_of(configuration),
        *(["plot"] if given["plots"] or given["pdf"] else []),
    )
    requirement = requirement_here(extras)
    made = Publication(
        config=given["config"],
        suite=given["suite"] or "",
        options=tuple(_options(given)),
        published=tuple(_published(given)),
        secrets=tuple(dict.fromkeys((*keys_of(configuration), *given["secrets"]))),
        extras=extras,
        watched=tuple(dict.fromkeys((*given["plugins"], *files_of(configuration)))),
        plugins=given["plugins"],
        trusted=given["trust_file"] is not None,
        requirements=given["install"] or (requirement.text,),
    )
    text = workflow(made)
    changed = write_file(Path(given["workflow"]), text)
    say(f"{'Written' if changed else 'Unchanged'}: {given['workflow']}")
    if requirement.note and not given["install"]:
        say(requirement.note)
    if made.secrets:
        say(f"Add these secrets to the repository: {', '.join(made.secrets)}.")


def _options(given: Mapping[str, Any]) -> list[str]:
    """The options that were typed, for the command in the workflow."""
    out = []
    for name in (*_FILES, "metric", "best", "least_answered", "pages", "examples"):
        if given[name] is not None:
            out += [f"--{name.replace('_', '-')}", str(given[name])]
    for plot in given["plots"]:
        out += ["--plot", plot]
    if given["allow_baseline_judge"]:
        out.append("--allow-baseline-judge")
    return [*out, "--title", given["title"]] if given["title"] != "Leaderboard" else out


def _published(given: Mapping[str, Any]) -> list[str]:
    named = [given[name] for name in (*_FILES, "pages") if given[name]]
    return [*named, *given["plots"]]
