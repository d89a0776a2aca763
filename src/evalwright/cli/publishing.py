"""Writes the files of `evalwright leaderboard`.

Everything is computed before anything is written, so that an error leaves all files as they were.
Only models' pages, which read the samples, are written one by one, before the files that link to
them. What needs a library that is not installed is left out, with a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.board_checking import NAMED_FILES
from evalwright.cli.exit_codes import say
from evalwright.cli.options import AS_JSON, open_runs, option, was_typed
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.tasks.safe_files import read_file, write_file

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.pivots import Pivots
    from evalwright.runs.reader import Run

_WORKFLOW_OPTIONS = frozenset(
    {
        "workflow",
        "config",
        "suite",
        "trust_file",
        "plugins",
        "install",
        "secrets",
        "runs_folder",
    }
)
"""Parameters that are about the workflow itself, or that it sets: its board has all others."""


MAY_LACK_PLOT = "the plot may be empty"
"""Object of click's context for a caller to whom a board without a score is no failure."""


def publish(
    board: Board,
    runs: Sequence[Run],
    params: Mapping[str, Any],
    pivots: Pivots | None = None,
    further_files: Mapping[Path, str] | None = None,
) -> tuple[list[str], list[str]]:
    """Write the requested files.

    Args:
        board: the board.
        runs: the runs of the board, in the same order.
        params: the command's parameters.
        pivots: what the Markdown and the CSV show in place of the board.
        further_files: files that were rendered already, by path.

    Returns:
        A sentence for each file written, and one for each that could not be drawn.
    """
    from evalwright.reports.board_citation import check_citation_file
    from evalwright.reports.model_pages import (
        DEFAULT_EXAMPLES,
        page_files,
        remove_stale_pages,
        write_pages,
    )
    from evalwright.reports.plot_view import NothingToPlot

    _check_distinct(params)
    if params["citation"]:
        check_citation_file(params["citation"])
    pages = page_files(board, Path(params["pages"])) if params["pages"] else []
    params, missing = _without_undrawable(params)
    sentences: list[str] = []
    try:
        pictures = _draw_plots(board, params)
    except NothingToPlot as error:
        pictures = {}
        empty = [f"Not written: {file}. {error}" for file in params["plots"]]
        if click.get_current_context().obj == MAY_LACK_PLOT:
            sentences += empty
        else:
            missing += empty
        params = {**params, "plots": ()}
    files = {**pictures, **_render_texts(board, runs, params, pages)}
    if pivots is not None:
        files |= _render_pivots(pivots, params)
    files |= further_files or {}
    if params["pages"]:
        board_page = Path(params["html"]) if params["html"] else None
        examples = (
            DEFAULT_EXAMPLES if params["examples"] is None else params["examples"]
        )
        write_pages(
            board,
            runs,
            Path(params["pages"]),
            title=params["title"],
            board_page=board_page,
            examples=examples,
        )
        count = f"{len(pages)} pages" if len(pages) > 1 else "1 page"
        sentences.append(f"Written: {params['pages']} ({count})")
        stale = remove_stale_pages(board, Path(params["pages"]), params["title"])
        sentences += [f"Removed: {file} (no longer on the board)" for file in stale]
    for path, content in files.items():
        sentences.append(
            f"Written: {path}" if write_file(path, content) else f"Unchanged: {path}"
        )
    return sentences, missing


@click.command("scores")
@click.argument("runs", nargs=-1, required=True)
@option(
    "--out folder",
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
def scores(runs: tuple[str, ...], folder: str, as_json: bool, **_: Any) -> None:
    """Publish RUNS without their samples: run.json and scores by item, of which others can make
    boards and comparisons.
    """
    from evalwright.runs.confirmed import confirm
    from evalwright.runs.published_scores import publish_scores
    from evalwright.runs.simulations import refuse_shards

    published_runs = open_runs(*runs)
    refuse_shards(published_runs)
    files = []
    for run in published_runs:
        confirm(run)  # numbers that its samples do not confirm are not published
        files += publish_scores(run, Path(folder) / run.name)
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


def _without_undrawable(
    params: Mapping[str, Any],
) -> tuple[Mapping[str, Any], list[str]]:
    """Leave out files that need a library that is not installed, with a sentence for each."""
    from evalwright.reports.board_files import check_parquet
    from evalwright.reports.plot import check_plot

    sentences = []
    if params["parquet"]:
        try:
            check_parquet()
        except MissingExtra as error:
            sentences.append(f"Not written: {params['parquet']}. {error}")
            params = {**params, "parquet": None}
    picture_files = [*params["plots"], *([params["pdf"]] if params["pdf"] else [])]
    try:
        for file in params["plots"]:
            check_plot(file)
        if params["pdf"]:
            check_plot("board.pdf")
    except MissingExtra as error:
        sentences += [f"Not written: {file}. {error}" for file in picture_files]
        return {**params, "plots": (), "pdf": None}, sentences
    return params, sentences


def _check_distinct(params: Mapping[str, Any]) -> None:
    """Raise UsageError if two options name the same file."""
    option_by_path: dict[Path, str] = {}
    option_files = [
        (f"--{name.replace('_', '-')}", params[name])
        for name in NAMED_FILES
        if params[name]
    ]
    for typed_option, file in [
        *option_files,
        *(("--plot", plot) for plot in params["plots"]),
    ]:
        first_option = option_by_path.setdefault(Path(file).resolve(), typed_option)
        if first_option != typed_option:
            raise click.UsageError(
                f"{first_option} and {typed_option} both name '{file}'."
            )


def _draw_plots(board: Board, params: Mapping[str, Any]) -> dict[Path, bytes]:
    if not params["plots"]:
        return {}
    from evalwright.reports.plot import check_plot, draw_plot
    from evalwright.reports.plot_view import DEFAULT_BEST, plot_view

    best = DEFAULT_BEST if params["best"] is None else params["best"]
    view = plot_view(
        board,
        params["title"],
        best,
        params["least_answered"],
        params["colour_by"] or "",
        must_colour=was_typed("colour_by"),
    )
    plot_formats = [check_plot(file) for file in params["plots"]]
    return {
        Path(file): draw_plot(view, plot_format)
        for file, plot_format in zip(params["plots"], plot_formats, strict=True)
    }


def _render_texts(
    board: Board, runs: Sequence[Run], params: Mapping[str, Any], pages: Sequence[Path]
) -> dict[Path, bytes | str]:
    from evalwright.cli.board_checking import board_settings
    from evalwright.reports.board_citation import citation_text
    from evalwright.reports.board_embed import board_embed
    from evalwright.reports.board_files import board_csv, board_json, board_parquet
    from evalwright.reports.board_page import leaderboard_page
    from evalwright.reports.documents.board import board_document
    from evalwright.reports.documents.preset_board import with_slice_tables
    from evalwright.reports.markdown import to_markdown
    from evalwright.reports.model_pages import link_to
    from evalwright.reports.paper_tables import board_latex
    from evalwright.reports.pdf import to_pdf
    from evalwright.runs.writer import to_json

    def links(file: str) -> list[str]:
        return [link_to(page, Path(file)) for page in pages]

    title = params["title"]
    texts: dict[Path, bytes | str] = {}
    if file := params["markdown"]:
        document = board_document(board, links=links(file))
        document = with_slice_tables(document, board, runs, links(file))
        texts[Path(file)] = to_markdown(document, level=0)
    if file := params["html"]:
        texts[Path(file)] = leaderboard_page(
            board, runs, title=title, links=links(file), pivot=_pivot_keys(params)
        )
    if file := params["latex"]:
        texts[Path(file)] = board_latex(board, title, task_scores=params["task_scores"])
    if file := params["pdf"]:
        texts[Path(file)] = to_pdf(board_document(board, title=title))
    if file := params["csv"]:
        texts[Path(file)] = board_csv(board)
    if file := params["json_file"]:
        settings = board_settings(params)
        record = board_json(board, title, links(file), runs, settings)
        texts[Path(file)] = to_json(record, indent=2) + "\n"
    if file := params["parquet"]:
        texts[Path(file)] = board_parquet(board, runs)
    if file := params["embed"]:
        texts[Path(file)] = board_embed(board, title)
    if file := params["citation"]:
        texts[Path(file)] = citation_text(board, title, runs, file)
    if file := params["into"]:
        texts[Path(file)] = _render_into(board, runs, params, links(file))
    return texts


def _render_pivots(
    pivots: Pivots, params: Mapping[str, Any]
) -> dict[Path, bytes | str]:
    from evalwright.reports.documents.pivot import pivot_csv, pivot_document
    from evalwright.reports.markdown import to_markdown

    texts: dict[Path, bytes | str] = {}
    if file := params["markdown"]:
        texts[Path(file)] = to_markdown(pivot_document(pivots), level=0)
    if file := params["csv"]:
        texts[Path(file)] = pivot_csv(pivots)
    return texts


def _pivot_keys(params: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        key.strip() for key in (params.get("pivot") or "").split(",") if key.strip()
    )


def _render_into(
    board: Board,
    runs: Sequence[Run],
    params: Mapping[str, Any],
    links: Sequence[str],
) -> bytes:
    from evalwright.reports.documents.board import readme_document
    from evalwright.reports.documents.preset_board import preset_readme
    from evalwright.reports.markdown import escape, to_markdown
    from evalwright.reports.markers import put_between
    from evalwright.reports.model_pages import link_to

    file = Path(params["into"])
    plots = sorted(params["plots"], key=lambda plot: not plot.lower().endswith(".svg"))
    picture = link_to(Path(plots[0]), file) if plots else ""
    title = params["title"]
    document = preset_readme(board, runs, links, picture, title) or readme_document(
        board, links, picture, title
    )
    block = to_markdown(document, 0)
    try:
        return put_between(read_file(file), block, escape(params["title"]))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The board cannot be written into '{file}': {error}"
        ) from None


# -- the workflow ----------------------------------------------------------------------


def write_workflow(runs: Sequence[str], params: Mapping[str, Any]) -> None:
    """Write the workflow file.

    Raises:
        UsageError, ConfigurationError: it cannot be made.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.evaluation.needs import extras_of, files_of, keys_of
    from evalwright.reports.workflow import Publication, requirement_here, workflow

    if runs:
        raise click.UsageError(
            "--workflow takes no RUNS: the workflow makes them, from --config."
        )
    if not params["config"]:
        raise click.UsageError(
            "--workflow needs --config FILE, the suite file that is run."
        )
    for name in ("kept", "with_simulations", "ratings", "check", "as_json"):
        if params[name]:
            option_name = name.removeprefix("as_").replace("_", "-")
            raise click.UsageError(f"--{option_name} has no effect with --workflow.")
    load_plugins(params["plugins"])
    configuration = read_configuration(
        Path(params["config"]), params["suite"], params["trust_file"]
    )
    if not configuration.tasks or not configuration.models:
        raise ConfigurationError(
            f"'{params['config']}' must name tasks and models, because the workflow runs"
            " it without other options."
        )
    extras = (
        *extras_of(configuration),
        *(["plot"] if params["plots"] or params["pdf"] else []),
        *(["parquet"] if params["parquet"] else []),
    )
    requirement = requirement_here(extras)
    publication = Publication(
        config=params["config"],
        suite=params["suite"] or "",
        options=tuple(_typed_options()),
        published=tuple(_published_files(params)),
        secrets=tuple(dict.fromkeys((*keys_of(configuration), *params["secrets"]))),
        extras=extras,
        watched=tuple(
            dict.fromkeys(
                (
                    *params["plugins"],
                    *filter(None, [params["facts"]]),
                    *files_of(configuration),
                )
            )
        ),
        plugins=params["plugins"],
        trusted=params["trust_file"] is not None,
        requirements=params["install"] or (requirement.text,),
    )
    text = workflow(publication)
    changed = write_file(Path(params["workflow"]), text)
    say(f"{'Written' if changed else 'Unchanged'}: {params['workflow']}")
    if requirement.note and not params["install"]:
        say(requirement.note)
    if publication.secrets:
        say(f"Add these secrets to the repository: {', '.join(publication.secrets)}.")


def _typed_options() -> list[str]:
    """The options that were typed and are about the board, for the command in the workflow."""
    context = click.get_current_context()
    arguments = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if (
            not isinstance(parameter, click.Option)
            or name in _WORKFLOW_OPTIONS
            or not was_typed(name)
        ):
            continue
        setting = context.params[name]
        if parameter.is_flag:
            arguments.append(parameter.opts[0])
            continue
        for argument in setting if parameter.multiple else [setting]:
            arguments += [parameter.opts[0], str(argument)]
    return arguments


def _published_files(params: Mapping[str, Any]) -> list[str]:
    files = [params[name] for name in (*NAMED_FILES, "pages") if params[name]]
    return [*files, *params["plots"]]
