"""`evalwright leaderboard`: runs as a table, with intervals and rank ranges, shown or published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def _check_text_file(
    _context: click.Context, _option: click.Parameter, file: str | None
) -> str | None:
    from evalwright.reports.markers import check_text_file

    if file:
        check_text_file(Path(file))
    return file


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


@click.command()
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
    "Show a table of two of the keys, 'model' and 'task' in place of the board.",
    callback=_check_pivot,
)
@option("--model", "LABEL", "The model that --pivot shows. Default: each.")
@repeatable_option(
    "--where filters",
    "KEY<=VALUE",
    "Show the models with this fact: size<=8, open=true, cost<1.",
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
@option("--html", "FILE", "Write the board as one self-contained HTML page.")
@option(
    "--latex",
    "FILE",
    "Write the board as a LaTeX table (booktabs), to \\input into a paper.",
)
@flag(
    "--task-scores",
    "Give each task a column in --latex too, where the board shows shares in its place.",
)
@option("--pdf", "FILE", "Write the board as PDF (the extra plot).")
@option("--csv", "FILE", "Write the board as CSV.")
@option(
    "--json-file", "FILE", "Write the board as JSON, with the columns of the table."
)
@repeatable_option("--plot plots", "FILE", "Draw the board: FILE.svg, .png or .pdf.")
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
    "Low-scored samples on a model's page; 0 shows no text. Default: 5.",
    type=int,
)
@option(
    "--kept",
    "DIR",
    "Keep the runs' records in DIR; a run with the same results as one there is shown"
    " with the first one's date.",
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
    from evalwright.cli.publishing import publish, write_workflow

    workflow_options = dict.fromkeys(
        ("config", "suite", "secrets", "trust_file", "install"), "workflow"
    )
    title_users = "into html latex pdf json_file plots pages workflow"
    only_with(
        **workflow_options,
        best="plots",
        least_answered="plots",
        examples="pages",
        title=title_users,
        task_scores="latex",
        model="pivot",
    )
    if params["workflow"]:
        write_workflow(runs, params)
        return 0
    if not runs:
        raise click.UsageError(
            "Missing argument 'RUNS...'. `evalwright runs list` shows what there is."
        )
    from evalwright.analysis.board import make_board
    from evalwright.reports.documents.board import board_document
    from evalwright.reports.documents.pivot import pivot_document
    from evalwright.runs.confirmed import confirm_all, kept_note, numbers_from
    from evalwright.runs.keeping import keep_runs, kept_runs
    from evalwright.runs.simulations import refuse_baseline_judges, refuse_mixture

    if params["plugins"]:
        from evalwright.cli.arguments import load_plugins

        load_plugins(params["plugins"])
    ranked_runs = open_runs(*runs)
    if not params["with_simulations"]:
        refuse_mixture(ranked_runs)
    refuse_baseline_judges(ranked_runs, params["allow_baseline_judge"])
    if params["kept"]:
        ranked_runs = kept_runs(ranked_runs, Path(params["kept"]))
    ranked_runs = confirm_all(ranked_runs)
    board = make_board(
        ranked_runs,
        params["metric"],
        params["tasks_are"],
        ratings=params["ratings"],
        by=_split_keys(params["by"]),
        rank_by=params["rank_by"] or "",
        where=params["filters"],
        ranks_below=bool(params["html"] or params["json_file"] or params["pages"]),
    )
    if params["labels"]:
        from evalwright.analysis.corrected_board import correct_board

        board = correct_board(board, ranked_runs, params["labels"])
    pivots = None
    if params["pivot"]:
        from evalwright.analysis.pivots import make_pivots

        pivots = make_pivots(
            board,
            ranked_runs,
            _split_keys(params["pivot"]),
            params["metric"],
            params["model"],
        )
    file_sentences, missing_sentences = publish(board, ranked_runs, params, pivots)
    if params["kept"]:
        keep_runs(ranked_runs, Path(params["kept"]))
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
        None, (*file_sentences, *missing_sentences, kept_note(ranked_runs))
    ):
        say(line)
    return int(bool(missing_sentences))
