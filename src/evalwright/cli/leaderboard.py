"""`evalwright leaderboard`: runs as a table, with intervals and rank ranges, shown or published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import (
    AS_JSON,
    METRIC,
    RUNS_FOLDER,
    TASKS_ARE,
    TRUST_FILE,
    flag,
    only_with,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import print_result
from evalwright.cli.sections import SectionedCommand
from evalwright.cli.steps import steps

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.pivots import Pivots
    from evalwright.runs.reader import Run


def _check_text_file(
    _context: click.Context, _option: click.Parameter, file: str | None
) -> str | None:
    from evalwright.reports.markers import check_text_file

    if file:
        check_text_file(Path(file))
    return file


_SHOWING_ALL_NODES = ("html", "json_file", "pages", "parquet", "check")
"""Options for which models are ranked at every node of the tree."""


SECTIONS = {
    "Options": (
        *("--preset", "--by", "--rank-by", "--metric", "--where"),
        *("--html", "--pages", "--into", "--csv", "--json-file"),
    ),
    "What is shown": (
        *("--pivot", "--model", "--ratings", "--tasks-are", "--facts", "--title"),
        *("--task-scores", "--examples"),
    ),
    "Time": ("--newest", "--as-of", "--since", "--feed", "--url", "--drift"),
    "Further files": (
        *("--markdown", "--latex", "--pdf", "--parquet", "--embed", "--citation"),
    ),
    "The plot": ("--plot", "--best", "--least-answered", "--colour-by"),
    "Checks and the runs": (
        *("--labels", "--check", "--out", "--kept", "--plugin", "--with-simulations"),
        "--allow-baseline-judge",
    ),
    "Workflow": (
        *("--workflow", "--config", "--suite", "--trust-file", "--install"),
        "--secret",
    ),
    "Output": ("--json",),
}
"""Options by heading; the first section is what `--help` shows."""


def _split_keys(keys: str | None) -> tuple[str, ...]:
    return tuple(key.strip() for key in keys.split(",")) if keys else ()


def _check_keys(
    _context: click.Context, typed_option: click.Parameter, keys: str | None
) -> str | None:
    if keys is None:
        return None
    names = _split_keys(keys)
    if not names or not all(names) or len({*names}) < len(names):
        raise click.UsageError(
            f"{typed_option.opts[0]} takes metadata keys with commas between them, each"
            " once, such as language,competency."
        )
    return keys


def _check_pivot(
    context: click.Context, typed_option: click.Parameter, keys: str | None
) -> str | None:
    _check_keys(context, typed_option, keys)
    if keys is not None and len(_split_keys(keys)) != 2:
        raise click.UsageError(
            "--pivot takes two keys, ROWS,COLUMNS, such as language,competency or"
            " category,model."
        )
    return keys


def _read_filters(
    _context: click.Context, _option: click.Parameter, filters: tuple[str, ...]
) -> tuple[Any, ...]:
    if not filters:
        return ()
    from evalwright.analysis.fact_filters import read_filter

    return tuple(map(read_filter, filters))


@click.command(cls=SectionedCommand, sections=SECTIONS)
@click.argument("runs", nargs=-1)
@RUNS_FOLDER
@METRIC
@TASKS_ARE
@option(
    "--by",
    "KEYS",
    "Group the tasks by metadata (language,competency), or break scores down by that of"
    " samples (category).",
    callback=_check_keys,
)
@option(
    "--rank-by",
    "NODE",
    "Sort and rank by a group, a task, TASK.METRIC or a slice (language=th).",
)
@option(
    "--pivot",
    "ROWS,COLUMNS",
    "Show a table of two keys in place of the board: of metadata, 'model' or 'task'.",
    callback=_check_pivot,
)
@option(
    "--model",
    "LABEL",
    "The model that --pivot shows. Default: a table for each.",
)
@repeatable_option(
    "--where filters",
    "KEY<=VALUE",
    "Show only models with this fact: size<=8, open=true, cost<1.",
    callback=_read_filters,
)
@repeatable_option(
    "--labels",
    "FILE",
    "People's labels (CSV, from `check judge sample`): correct the judge's scores, and rank"
    " by the corrected ones.",
)
@flag("--ratings", "Add Bradley-Terry ratings (the scale of Elo) with intervals.")
@option(
    "--into",
    "FILE",
    "Put the board between its markers in a Markdown file (README.md).",
    callback=_check_text_file,
)
@option("--markdown", "FILE", "Write the board as a Markdown table.")
@option("--html", "FILE", "Write the board as one HTML page that loads nothing.")
@option(
    "--latex",
    "FILE",
    "Write the board as a LaTeX table (booktabs), to \\input into a paper.",
)
@flag(
    "--task-scores",
    "In --latex, add a column for each task where the board shows shares instead.",
)
@option("--pdf", "FILE", "Write the board as PDF (the extra plot).")
@option("--csv", "FILE", "Write the board as CSV, with every score.")
@option("--json-file", "FILE", "Write the board as JSON, with every number.")
@option(
    "--parquet",
    "FILE",
    "Write every number as Parquet, a row for each model and node (the extra parquet).",
)
@option("--embed", "FILE", "Write the board as an HTML fragment for another page.")
@option("--citation", "FILE", "Write how to cite the board: FILE.bib or FILE.cff.")
@option(
    "--check",
    "FILE",
    "Compare a board that --json-file wrote with RUNS, and say which numbers differ;"
    " exit code 1 if any does. Writes nothing.",
)
@repeatable_option("--plot plots", "FILE", "Draw the board: FILE.svg, .png or .pdf.")
@option(
    "--preset",
    "NAME",
    "Show the board as a known leaderboard does: hhem, sea-helm, hret, open-llm, factual."
    " Other options take precedence.",
)
@option(
    "--facts",
    "FILE",
    "Facts about the models (size, licence, ...) by label or name: YAML, JSON or CSV.",
)
@option(
    "--colour-by",
    "FACT",
    "Colour the bars of --plot by a fact, such as family, provider or licence.",
)
@repeatable_option(
    "--drift drift_files",
    "FILE",
    "Mark results from before their model or judge changed: drift/*.jsonl of `entries"
    " drift`.",
)
@option("--best", "N", "Models in the plot. Default: 25.", type=int)
@option(
    "--least-answered",
    "PERCENT",
    "Leave models that answered less than this out of the plot.",
    type=float,
)
@option("--pages", "DIR", "Write a page for each model; the board links to them.")
@option(
    "--examples",
    "N",
    "How many low-scored samples a model's page shows for each task; 0 shows no text of"
    " any sample. Default: 5.",
    type=int,
)
@flag(
    "--newest",
    "Show each model's newest result where RUNS has several of the same tasks; pages show"
    " the others as its history.",
)
@option(
    "--as-of",
    "DATE",
    "Show the newest results of that day (2026-06-30); runs after it do not exist.",
)
@option(
    "--since",
    "DATE|FILE",
    "Show the models with a new result since that day, or since an earlier board.json.",
)
@option("--feed", "FILE", "Write an Atom feed of new and changed results: FILE.xml.")
@option("--url", "ADDRESS", "Where the folder of --feed is published, for its links.")
@option(
    "--kept",
    "DIR",
    "Keep the runs' records in DIR; a run with the same results as one there keeps that"
    " one's date.",
)
@option("--title", "", "The board's title.", default="Leaderboard", show_default=True)
@option(
    "--workflow",
    "FILE",
    "Write a GitHub workflow that runs --config and commits what the other options"
    " name; no RUNS.",
)
@option("--config", "FILE", "The suite file that the workflow runs.")
@option("--suite", "NAME", "Which suite of that file, where it has several.")
@TRUST_FILE
@repeatable_option(
    "--plugin plugins",
    "FILE",
    "A Python file with what the runs' metrics are made by, such as a dialect. With"
    " --workflow: that, or a TOML file of providers, which the suite is run with.",
)
@repeatable_option(
    "--install",
    "REQUIREMENT",
    "What the workflow installs with pip, in place of this evalwright: a requirement,"
    " or a folder of the repository.",
)
@repeatable_option(
    "--secret secrets",
    "NAME",
    "A secret that the workflow needs, such as OPENAI_API_KEY.",
)
@flag("--with-simulations", "Allow runs of oracle/... beside those of models.")
@flag("--allow-baseline-judge", "Allow scores by baseline/..., to try things out.")
@AS_JSON
def leaderboard(runs: tuple[str, ...], **params: Any) -> int:
    """Make a leaderboard of RUNS (folders or names): every score with its interval, ranks as
    ranges.
    """
    from evalwright.cli.board_presets import (
        read_preset,
        settle_preset,
        show_preset,
    )
    from evalwright.cli.publishing import publish, write_workflow

    _check_combinations()
    published = None
    if params["check"]:
        from evalwright.cli.board_checking import read_published, with_settings

        published = read_published(params["check"], params)
        params = with_settings(params, published)
    params, preset, facts_table = read_preset(params)
    if params["workflow"]:
        write_workflow(runs, params)
        return 0
    if not runs:
        raise click.UsageError(
            "Missing argument 'RUNS...'. `evalwright runs list` shows what there is."
        )
    from evalwright.analysis.board import make_board
    from evalwright.analysis.model_facts import facts_of_runs
    from evalwright.cli.board_checking import print_check
    from evalwright.cli.board_dates import add_history, render_feed, select_by_date
    from evalwright.reports.documents.board import board_document
    from evalwright.reports.documents.pivot import pivot_document
    from evalwright.runs.confirmed import confirm_all, kept_note, numbers_from
    from evalwright.runs.keeping import keep_runs

    all_runs = _open_board_runs(runs, params)
    dated = select_by_date(all_runs, params)
    ranked_runs = list(dated.runs)
    if not ranked_runs:
        say(" ".join(dated.notes))
        return 0
    with steps() as show_step:
        ranked_runs = confirm_all(ranked_runs, show_step)
        params = settle_preset(params, preset, ranked_runs)
        facts, fact_sentences = facts_of_runs(ranked_runs, facts_table)
        show_step(f"Comparing {len(ranked_runs):,} runs")
        board = make_board(
            ranked_runs,
            params["metric"],
            params["tasks_are"],
            ratings=params["ratings"],
            by=_split_keys(params["by"]),
            rank_by=params["rank_by"] or "",
            facts=[model_facts.facts for model_facts in facts],
            where=params["filters"],
            beside=params["beside"],
            means=params["means"],
            by_beside=params["by_beside"] or _keys_of_columns(params["pivot"]),
            ranks_below=any(params[name] for name in _SHOWING_ALL_NODES),
        )
        if params["labels"]:
            from evalwright.analysis.corrected_board import correct_board

            board = correct_board(board, ranked_runs, params["labels"])
        board = show_preset(board, ranked_runs, preset, facts)
        if params["drift_files"]:
            from evalwright.analysis.drift_record import mark_board, read_followed

            followed = read_followed([Path(file) for file in params["drift_files"]])
            board = mark_board(board, followed, ranked_runs)
        board = add_history(board, ranked_runs, dated, params, show_step)
        pivots = _make_pivots(board, ranked_runs, params)
        file_sentences: list[str] = []
        missing_sentences: list[str] = []
        if published is None:
            show_step("Writing the board")
            file_sentences, missing_sentences = publish(
                board,
                ranked_runs,
                params,
                pivots,
                further_files=render_feed(board, ranked_runs, dated, params),
            )
    if published is not None:
        return print_check(
            params["check"],
            published,
            board,
            ranked_runs,
            as_json=params["as_json"],
        )
    if params["kept"]:
        keep_runs(all_runs, Path(params["kept"]))
    record = (board if pivots is None else pivots).as_dict() | (
        {"numbers_from": sources} if (sources := numbers_from(ranked_runs)) else {}
    )
    print_result(
        params["as_json"],
        record,
        board_document(board, title=params["title"], costs=True)
        if pivots is None
        else pivot_document(pivots, title=params["title"]),
    )
    for line in filter(
        None,
        (
            *fact_sentences,
            *file_sentences,
            *missing_sentences,
            kept_note(ranked_runs),
        ),
    ):
        say(line)
    return int(bool(missing_sentences))


def _check_combinations() -> None:
    """Raise UsageError for options that have no effect without others."""
    workflow_options = dict.fromkeys(
        ("config", "suite", "secrets", "trust_file", "install"), "workflow"
    )
    title_users = (
        "into html latex pdf json_file embed citation plots pages workflow feed"
    )
    only_with(
        **workflow_options,
        best="plots",
        least_answered="plots",
        examples="pages",
        title=title_users,
        task_scores="latex",
        colour_by="plots",
        model="pivot",
        url="feed",
    )


def _open_board_runs(names: Sequence[str], params: Mapping[str, Any]) -> list[Run]:
    """Open the runs of a board, with the plug-ins that they need.

    Raises:
        RunError: they cannot be on one board, or cannot be read.
    """
    from evalwright.runs.keeping import kept_runs
    from evalwright.runs.simulations import refuse_baseline_judges, refuse_mixture

    if params["plugins"]:
        from evalwright.cli.arguments import load_plugins

        load_plugins(params["plugins"])
    runs = open_runs(*names)
    if not params["with_simulations"]:
        refuse_mixture(runs)
    refuse_baseline_judges(runs, params["allow_baseline_judge"])
    return kept_runs(runs, Path(params["kept"])) if params["kept"] else runs


def _keys_of_columns(pivot: str | None) -> tuple[str, ...]:
    """Return a pivot's keys, that of its columns first: their averages are its row "All"."""
    keys = [key for key in _split_keys(pivot) if key not in ("model", "task")]
    return tuple(reversed(keys)) if len(keys) > 1 else ()


def _make_pivots(
    board: Board, runs: Sequence[Run], params: Mapping[str, Any]
) -> Pivots | None:
    """Make the pivots that --pivot asks for."""
    if not params["pivot"]:
        return None
    from evalwright.analysis.pivots import make_pivots

    keys = _split_keys(params["pivot"])
    return make_pivots(board, runs, keys, params["metric"], params["model"])
