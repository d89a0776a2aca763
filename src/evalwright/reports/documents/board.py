"""Leaderboards as documents: ranks, scores with intervals, missing answers, costs and notes.

Given the runs, the document also has their tasks and a section for each model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalwright.analysis.board import SIMULTANEOUS_NOTE, Board, BoardRow, BoardTask
from evalwright.analysis.board_tree import find_in
from evalwright.analysis.ratings import Ratings
from evalwright.analysis.words import listed
from evalwright.core.outcomes import (
    CUT,
    EMPTY,
    FILTERED,
    REFUSED,
    TOO_LONG,
    TOOL_CALL,
    UNFINISHED,
)
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.columns import (
    HALLUCINATION_COLUMNS,
    ScoreColumn,
    as_of,
    extra_cell,
    extra_heading,
    is_hallucination_board,
    node_column,
    score_columns,
    shown_columns,
)
from evalwright.reports.documents.run import missing_cell, prompt_text, run_blocks
from evalwright.runs.reader import Run

MOST_SLICE_ROWS = 3000
"""Most rows of slices on a whole page.

Beyond it each table shows its largest slices only, and none if that would be under
LEAST_SLICES.
"""

LEAST_SLICES = 5

MOST_REASONS = 6
"""Most sentences below a table on numbers that are not there."""
JUDGE_ERROR_NAMES = {"false_alarm": "false alarms", "miss": "misses"}

PROVISIONAL_MARK = " *"
"""Appended to the rank of a model that lacks more than 5% of the answers; a note explains it."""
JUDGE_MARK = " †"
"""Beside the rank of a run that another judge scored than others of the board."""
DRIFT_MARK = " ‡"
"""Beside the rank of a run from before its model, or its judge, changed."""

FAULT_TITLES: Mapping[str, str] = {
    CUT: "Cut",
    EMPTY: "Empty",
    REFUSED: "Refused",
    FILTERED: "Filtered",
    TOO_LONG: "Too long",
    UNFINISHED: "Unfinished",
    TOOL_CALL: "Tool call",
}
"""Titles of the columns that count the models' own faults.

Columns without any fault are omitted.
"""


def board_document(
    board: Board,
    runs: Sequence[Run] = (),
    *,
    title: str = "Leaderboard",
    links: Sequence[str] = (),
    costs: bool = False,
) -> doc.Document:
    """Build the document of a board.

    Args:
        board: The board.
        runs: The runs of the board. Their tasks, slices, failures and facts are added below.
        title: The document's title.
        links: The address of each row's own page, if there are such pages.
        costs: Whether to show what each run cost.
    """
    by_id = {run.id: run for run in runs}
    page_runs = [by_id[row.run] for row in board.rows if row.run in by_id]
    # Drop the note about a column that is not shown.
    notes = [
        note
        for note in board.notes
        if _simultaneous(board) or note != SIMULTANEOUS_NOTE
    ]
    blocks: list[doc.Block] = [
        _table(board, by_id, links, costs),
        *_notes(board, notes),
    ]
    pages = {row.run_index: link for row, link in zip(board.rows, links, strict=False)}
    for unit_board in board.more:
        board_links = [pages[row.run_index] for row in unit_board.rows] if links else []
        own_notes = [note for note in unit_board.notes if note not in board.notes]
        blocks += [
            doc.Heading(unit_board.tasks[0].metric),
            _table(unit_board, {}, board_links, False),
            *_notes(unit_board, own_notes),
        ]
    if board.ratings:
        blocks += [
            doc.Heading("Ratings"),
            _ratings(board.ratings),
            doc.Notes(board.ratings.notes),
        ]
    if page_runs:
        blocks += _tasks(board, page_runs)
        blocks.append(doc.Heading("Model by model"))
        blocks += _folds(board, by_id, links, _slices_each(page_runs))
    return doc.Document(title, blocks, summary_line(board))


def readme_document(
    board: Board,
    links: Sequence[str] = (),
    picture: str = "",
    title: str = "Leaderboard",
) -> doc.Document:
    """Build the board in the form that is inserted between the markers of a README.

    It has no date of its own, so the same runs give the same bytes.

    Args:
        board: The board.
        links: The address of each row's own page.
        picture: The relative address of the board's picture.
        title: The board's title, for the picture's caption.
    """
    dated = (
        f"{numbers.counted(len(board.rows), 'model')}; the newest run is of"
        f" {as_of(board)}."
    )
    pictures = (
        [doc.Picture(picture, f"{title}: a bar for each model, with its interval")]
        if picture
        else []
    )
    return doc.Document(
        title, [doc.Note(dated), *pictures, *board_document(board, links=links).blocks]
    )


def board_labels(board: Board) -> list[str]:
    """Name each row: its label, with the run's name where rows share a label."""
    labels = [row.label for row in board.rows]
    return [
        row.label if labels.count(row.label) == 1 else f"{row.label} ({row.run})"
        for row in board.rows
    ]


def coverage(row: BoardRow) -> str:
    """Say how many items are scored, out of how many: "39 of 40", "40 (20 not asked)"."""
    n = numbers.count(row.n)
    text = n if row.n == row.n_asked else f"{n} of {numbers.count(row.n_asked)}"
    return (
        f"{text} ({numbers.count(row.n_not_asked)} not asked)"
        if row.n_not_asked
        else text
    )


def score_note(column: ScoreColumn) -> str:
    """Explain a score column's title: its unit or metric, and which direction is better."""
    metric = column.metric if column.task and column.metric != "accuracy" else ""
    less = "lower is better" if column.lower_is_better else ""
    return ", ".join(phrase for phrase in (column.measure or metric, less) if phrase)


def summary_line(board: Board) -> str:
    """Say in a line how many models and tasks a board has, and of which dates."""
    dates = sorted({row.date for row in board.rows})
    date_range = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
    models = numbers.counted(len(board.rows), "model")
    prompts = {row.prompt.get("hash", "") for row in board.rows}
    if len(prompts) > 1:
        n_models = len({row.model for row in board.rows})
        models = (
            f"{numbers.counted(n_models, 'model')} with"
            f" {numbers.counted(len(prompts), 'prompt')}"
        )
    tasks = numbers.counted(
        sum(len(unit_board.tasks) for unit_board in (board, *board.more)), "task"
    )
    return f"{models}, {tasks}, {date_range}"


def _notes(board: Board, notes: Sequence[str]) -> list[doc.Block]:
    """Say how to see what the table leaves out, why numbers are not there, and all else."""
    table_columns = shown_columns(board)
    blocks: list[doc.Block] = (
        [doc.Note(table_columns.note)] if table_columns.note else []
    )
    reasons = list(_reasons(board, {column.name for column in table_columns.columns}))
    if len(reasons) > MOST_REASONS:
        further = len(reasons) - MOST_REASONS
        reasons = [*reasons[:MOST_REASONS], f"{further} more numbers are not there."]
    return [*blocks, doc.Notes([*reasons, *notes])]


def _reasons(board: Board, names: Collection[str]) -> Iterator[str]:
    """Say why tasks and slices of a table have no number or no interval for some models.

    Averages that lack tasks are among the board's notes.
    """
    labels = board_labels(board)
    models_by_reason: dict[tuple[str, str], list[str]] = {}
    for node in find_in(board.tree):
        if node.kind == "group" or node_column(node).name not in names:
            continue
        for row, reason in node.reasons.items():
            models_by_reason.setdefault((node.title, reason), []).append(labels[row])
    for (title, reason), models in models_by_reason.items():
        yield f"'{title}' of {listed(models, 5)}: {reason}."


def _simultaneous(board: Board) -> bool:
    return any(row.together for row in board.rows) and not is_hallucination_board(board)


def _table(
    board: Board, runs: Mapping[str, Run], links: Sequence[str], costs: bool
) -> doc.Table:
    table_columns = shown_columns(board)
    first, *others = table_columns.columns
    faults = [
        outcome
        for outcome in FAULT_TITLES
        if any(row.faults.get(outcome) for row in board.rows)
    ]
    any_unsure = any(row.n_unsure for row in board.rows)
    axis = axis_of([estimate for estimate in first.estimates if estimate], first.unit)
    columns = [
        doc.Column("Rank", right=True, key=True, ascending=True),
        doc.Column("Model", folds=True, key=True),
        doc.Column("Tied", under=True),
        _column(first, axis),
        doc.Column("Simultaneous", under=True),
        *(
            _column(
                column,
                moves=len(others) > len(HALLUCINATION_COLUMNS),
                optional=table_columns.is_level,
            )
            for column in others
        ),
        *(extra_heading(column) for column in board.extra_columns),
        doc.Column("Judge's errors on"),
        doc.Column("Items", right=True),
        doc.Column("Missing", right=True),
        doc.Column("Unsure", right=True),
        *(
            doc.Column(FAULT_TITLES[outcome], "the model's own fault", right=True)
            for outcome in faults
        ),
        doc.Column("Cost", right=True),
        doc.Column("Hardware", folds=True),
        doc.Column("Date"),
    ]
    labels = board_labels(board)
    tied = _has_ties(board)
    simultaneous = _simultaneous(board)
    total = sum(row.ranks is not None for row in board.rows)
    decimals = [
        numbers.common_decimals(column.estimates, column.unit)
        for column in table_columns.columns
    ]
    rows: list[Sequence[doc.Content]] = []
    any_cost = costs and any(row.cost is not None for row in board.rows)
    for i, row in enumerate(board.rows):
        link = f"#run-{i + 1}" if row.run in runs else ""
        if links:
            link = links[i]
        note = ", ".join(
            [
                *([row.model] if row.model != row.label else []),
                *([prompt_text(row.prompt)] if row.prompt else []),
            ]
        )
        simultaneous_interval: doc.Content = ""
        if simultaneous:
            simultaneous_interval = doc.Number(
                row.together,
                first.unit,
                interval_only=True,
                decimals=decimals[0],
            )
        cost = numbers.money(row.cost) if any_cost else ""
        rows.append(
            (
                _rank(row, total),
                doc.Cell(
                    labels[i],
                    "strong",
                    name=True,
                    link=link,
                    note=note,
                ),
                row.letters if tied else "",
                *([_score(first, i, decimals[0]), simultaneous_interval]),
                *(
                    _score(column, i, column_decimals)
                    for column, column_decimals in zip(
                        others, decimals[1:], strict=True
                    )
                ),
                *(extra_cell(column, i) for column in board.extra_columns),
                _whose_errors(row),
                doc.Cell(coverage(row), sort=row.n),
                missing_cell(row.n_missing, "above 5%" if row.provisional else ""),
                numbers.count(row.n_unsure) if any_unsure else "",
                *(numbers.count(row.faults.get(outcome, 0)) for outcome in faults),
                cost,
                doc.Cell(row.hardware, name=True),
                row.date,
            )
        )
    under = "; the simultaneous interval is printed below each" if simultaneous else ""
    caption = f"Best first. Dots show scores and bars their 95% intervals{under}."
    return doc.Table(columns, rows, caption, sortable=True)


def _ratings(ratings: Ratings) -> doc.Table:
    axis = axis_of([row.rating for row in ratings.rows], "plain")
    columns = [
        doc.Column("Model", folds=True, key=True),
        doc.Column("Rating", axis=axis, ticks=True),
        doc.Column("Won", "share of comparisons, %", right=True),
        doc.Column("Items", right=True),
        doc.Column("Missing", right=True),
    ]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(row.label, "strong", name=True),
            doc.Cell(doc.Number(row.rating, "plain"), "strong"),
            numbers.number(row.wins, "points", 1),
            numbers.count(row.rating.n),
            missing_cell(row.rating.n_missing, ""),
        )
        for row in ratings.rows
    ]
    return doc.Table(columns, rows, "Ratings, best first", sortable=True)


def _column(
    column: ScoreColumn,
    axis: Any = None,
    *,
    moves: bool = False,
    optional: bool = False,
) -> doc.Column:
    return doc.Column(
        column.title,
        score_note(column),
        name=bool(column.task) and not column.measure,
        axis=axis,
        ticks=axis is not None,
        ascending=bool(column.lower_is_better),
        moves=moves,
        optional=optional,
    )


def _whose_errors(row: BoardRow) -> str:
    """Say of which labels the judge's error rates are; "" without labels."""
    if not row.judge_errors:
        return ""
    pooled = [JUDGE_ERROR_NAMES[name] for name in row.judge_errors["pooled_rates"]]
    if len(pooled) == 1:
        return f"{pooled[0]}: all models"
    return "all models" if pooled else "this model"


def _score(column: ScoreColumn, i: int, decimals: int | None) -> doc.Cell:
    is_strong = not column.task and _may_be_best(column, i)
    return doc.Cell(
        doc.Number(column.estimates[i], column.unit, decimals=decimals),
        "strong" if is_strong else "",
    )


def _may_be_best(column: ScoreColumn, i: int) -> bool:
    """Whether the interval of a number overlaps that of the column's best number."""
    estimate = column.estimates[i]
    scored = [
        scored_estimate
        for scored_estimate in column.estimates
        if scored_estimate and scored_estimate.n
    ]
    if estimate is None or not scored or column.lower_is_better is None:
        return False
    if column.lower_is_better:
        best = min(scored, key=lambda scored_estimate: scored_estimate.value)
        return not estimate.low > best.high
    best = max(scored, key=lambda scored_estimate: scored_estimate.value)
    return not estimate.high < best.low


def _rank(row: BoardRow, total: int) -> doc.Cell:
    """Build the cell of a range of ranks, sorted by the best.

    A page draws it on a line of all ranks.
    """
    if row.ranks is None:
        return doc.Cell(numbers.NOTHING)
    best, worst = row.ranks
    stretch = ((best - 1) / total, (worst - best + 1) / total) if total > 1 else None
    mark = rank_mark(row)
    return doc.Cell(
        f"{numbers.ranks(row.ranks)}{mark}", sort=best + worst / 10000, stretch=stretch
    )


def rank_mark(row: BoardRow) -> str:
    """Return the marks of a rank that does not stand as it is."""
    provisional = PROVISIONAL_MARK if row.provisional else ""
    judge = JUDGE_MARK if row.other_judge else ""
    return provisional + judge + (DRIFT_MARK if row.drift else "")


def _has_ties(board: Board) -> bool:
    """Tell whether some models share a letter, so that the column of letters is useful."""
    letters = [row.letters for row in board.rows if row.letters]
    return len(letters) > 1 and len(set("".join(letters))) < len("".join(letters))


# -- below the table -------------------------------------------------------------------

MAX_TASKS_IN_FOLDS = 1500
"""Most tasks of all runs together for which a board's page has the details of each model."""

FOLDS_LEFT_OUT = (
    "The details of so many models and tasks would make this page slow;"
    " `evalwright leaderboard --pages DIR` writes a page for each model."
)


def page_sections(
    board: Board, runs: Sequence[Run] = (), links: Sequence[str] = ()
) -> list[doc.Block]:
    """Build what the page of a board has below its table and notes.

    Each model's details are left out where the models have pages of their own, which have them,
    and where they would be more than a reader can use on one page.

    Args:
        board: The board.
        runs: The runs of the board.
        links: The address of each row's own page, if there are such pages.
    """
    blocks: list[doc.Block] = []
    if board.ratings:
        blocks += [
            doc.Heading("Ratings"),
            _ratings(board.ratings),
            doc.Notes(board.ratings.notes),
        ]
    by_id = {run.id: run for run in runs}
    page_runs = [by_id[row.run] for row in board.rows if row.run in by_id]
    if not page_runs:
        return blocks
    blocks += _tasks(board, page_runs)
    if links:
        return blocks
    blocks.append(doc.Heading("Model by model"))
    if sum(len(run.tasks) for run in page_runs) > MAX_TASKS_IN_FOLDS:
        blocks.append(doc.Note(FOLDS_LEFT_OUT, "quiet"))
        return blocks
    blocks += _folds(board, by_id, links, _slices_each(page_runs))
    return blocks


def _tasks(board: Board, runs: Sequence[Run]) -> Iterator[doc.Block]:
    """Build the table of the board's tasks, as they were run."""
    columns = doc.columns(
        "Task*", "Description~", "Version", "Metric", "Samples>", "Draws>", "Data"
    )
    rows: list[Sequence[doc.Content]] = []
    for task in (
        task for unit_board in (board, *board.more) for task in unit_board.tasks
    ):
        records = [
            record
            for run in runs
            for record in run.data["tasks"]
            if record["name"] == task.name
        ]
        rows.append(_task(task, records))
    yield doc.Heading("Tasks")
    yield doc.Table(columns, rows, "The tasks of this board")


def _task(
    task: BoardTask, records: Sequence[Mapping[str, Any]]
) -> Sequence[doc.Content]:
    if not records:
        return (doc.Cell(task.name, name=True), "", "", task.metric, "", "", "")
    samples = sorted({int(record["n_samples"]) for record in records})
    return (
        doc.Cell(task.name, name=True),
        str(records[0].get("description", "")),
        ", ".join(_distinct_texts(records, "version")),
        task.metric,
        " to ".join(
            dict.fromkeys((numbers.count(samples[0]), numbers.count(samples[-1])))
        ),
        ", ".join(_distinct_texts(records, "draws")),
        ", ".join(
            content_hash[:12]
            for content_hash in _distinct_texts(records, "content_hash")
        ),
    )


def _distinct_texts(records: Sequence[Mapping[str, Any]], field: str) -> list[str]:
    return sorted({str(record.get(field, "")) for record in records})


def _folds(
    board: Board, runs: Mapping[str, Run], links: Sequence[str], most: int
) -> Iterator[doc.Fold]:
    first = score_columns(board)[0]
    for i, (row, label) in enumerate(zip(board.rows, board_labels(board), strict=True)):
        if row.run in runs:
            run = runs[row.run]
            blocks: list[doc.Block] = (
                [doc.Link("Page of this model", links[i])] if links and links[i] else []
            )
            blocks += run_blocks(run, most)
            if not most and any(task.slices for task in run.tasks):
                blocks.append(
                    doc.Note(
                        "Slices are left out because there are too many tables;"
                        " run.json has them.",
                        "quiet",
                    )
                )
            marks = (
                numbers.ranks(row.ranks),
                numbers.score(first.estimates[i], first.unit),
            )
            yield doc.Fold(i + 1, label, marks, blocks)


def _slices_each(runs: Iterable[Run]) -> int:
    """Decide how many rows each table of slices may have; 0 leaves the tables out."""
    sizes = [
        len(by_value)
        for run in runs
        for task in run.tasks
        for by_value in task.slices.values()
    ]
    if sum(sizes) <= MOST_SLICE_ROWS:
        return max(sizes, default=0)
    most = MOST_SLICE_ROWS // len(sizes)
    return most if most >= LEAST_SLICES else 0
