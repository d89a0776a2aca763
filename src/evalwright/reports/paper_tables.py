"""Boards and comparisons as a paper shows them: one LaTeX table each, and comparisons as CSV.

What the screen says about commands is left out, and the notes are the table's caption. Bold is for
what may be the best or differs significantly, never for decoration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from evalwright.analysis.board import SIMULTANEOUS_NOTE, Board
from evalwright.analysis.comparison import Comparison, TaskComparison
from evalwright.analysis.several import PairTable, SeveralComparison
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.columns import (
    ScoreColumn,
    shown_columns,
    task_columns,
)
from evalwright.reports.documents.board import (
    PROVISIONAL_MARK,
    board_labels,
    coverage,
    score_note,
)
from evalwright.reports.frames import csv_of
from evalwright.reports.latex import paper_latex, table_latex
from evalwright.reports.text import inert
from evalwright.statistics import holm

SIGNIFICANT = 0.05

BOLD_BOARD_NOTE = "Bold: may be the best model (its ranks include 1)."

Row = dict[str, Any]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9'`*])")
_COMMAND = re.compile(r"`(?:evalwright |--)")


def without_commands(note: str) -> str:
    """Return a note without its sentences that name a command, which a paper has no use for."""
    sentences = _SENTENCE_END.split(note)
    return " ".join(sentence for sentence in sentences if not _COMMAND.search(sentence))


# -- boards ----------------------------------------------------------------------------


def board_latex(
    board: Board, title: str = "Leaderboard", *, task_scores: bool = False
) -> str:
    """Render a board for a paper: one table, and one more for each further unit.

    Args:
        board: the board.
        title: the first sentence of the caption.
        task_scores: whether tasks have columns where the board shows shares in their place.
    """
    tables = [
        table_latex(
            _board_table(board, title, task_scores),
            _board_notes(board, board.notes, task_scores),
            "tab:leaderboard",
        )
    ]
    for number, unit_board in enumerate(board.more, 2):
        metric_title = f"{title}: {unit_board.tasks[0].metric}"
        new_notes = [note for note in unit_board.notes if note not in board.notes]
        tables.append(
            table_latex(
                _board_table(unit_board, metric_title, task_scores),
                _board_notes(unit_board, new_notes, task_scores),
                f"tab:leaderboard-{number}",
            )
        )
    if board.ratings:
        columns = doc.columns("Model*", "Rating>", "Won>", "Items>")
        rows = [
            (
                row.label,
                numbers.score(row.rating, "plain"),
                numbers.number(row.wins, "points", 1),
                numbers.count(row.rating.n),
            )
            for row in board.ratings.rows
        ]
        tables.append(
            table_latex(
                doc.Table(columns, rows, f"{title}: ratings"),
                [*filter(None, map(without_commands, board.ratings.notes))],
                "tab:ratings",
            )
        )
    return paper_latex(tables)


def _board_table(board: Board, title: str, task_scores: bool) -> doc.Table:
    table_columns = shown_columns(board)
    scores = list(table_columns.columns)
    if task_scores:
        scores += task_columns(board, scores)
    is_level = table_columns.is_level and not task_scores
    any_missing = any(row.n_missing for row in board.rows)
    columns = [
        doc.Column("Rank", right=True, key=True),
        doc.Column("Model", folds=True, key=True),
        *(
            doc.Column(column.title, score_note(column), optional=is_level and i > 0)
            for i, column in enumerate(scores)
        ),
        doc.Column("Items", right=True),
        doc.Column("Missing", right=True),
    ]
    rows: list[Sequence[doc.Content]] = []
    for i, (row, label) in enumerate(zip(board.rows, board_labels(board), strict=True)):
        tone: doc.Tone = ""
        if len(board.rows) > 1 and row.ranks and row.ranks[0] == 1:
            tone = "strong"
        mark = PROVISIONAL_MARK if row.provisional and row.ranks else ""
        rows.append(
            (
                f"{numbers.ranks(row.ranks)}{mark}",
                doc.Cell(label, tone),
                *(_board_score(column, i, tone) for column in scores[:1]),
                *(_board_score(column, i, "") for column in scores[1:]),
                coverage(row),
                numbers.count(row.n_missing) if any_missing else "",
            )
        )
    return doc.Table(columns, rows, title)


def _board_score(column: ScoreColumn, row_index: int, tone: doc.Tone) -> doc.Cell:
    return doc.Cell(doc.Number(column.estimates[row_index], column.unit), tone)


def _board_notes(board: Board, notes: Sequence[str], task_scores: bool) -> list[str]:
    in_points = any(task.bounded for task in board.tasks)
    dates = sorted({row.date for row in board.rows})
    notes = [note for note in notes if note != SIMULTANEOUS_NOTE]
    extent = "" if task_scores else shown_columns(board).extent
    return [
        *(
            ["Scores are in points of 100, with their intervals in brackets."]
            if in_points
            else []
        ),
        *([BOLD_BOARD_NOTE] if len(board.rows) > 1 else []),
        *([extent] if extent else []),
        *filter(None, map(without_commands, notes)),
        f"Runs of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}.",
    ]


# -- comparisons -----------------------------------------------------------------------


def comparison_csv(comparison: Comparison | SeveralComparison) -> str:
    """Convert a comparison to CSV: a line per task and metric, per slice, and for the mean.

    The mean over tasks has the task "overall". All pairs of several runs have lines.
    """
    return csv_of(comparison_rows(comparison))


def comparison_rows(comparison: Comparison | SeveralComparison) -> list[Row]:
    """Convert a comparison to one dictionary per line of its CSV."""
    if isinstance(comparison, Comparison):
        return list(_rows_of_two(comparison))
    return list(_rows_of_several(comparison))


def _rows_of_two(comparison: Comparison) -> Iterator[Row]:
    names = {
        "a": inert(comparison.labels[0]),
        "b": inert(comparison.labels[1]),
        "run_a": inert(comparison.a),
        "run_b": inert(comparison.b),
    }
    if overall := comparison.overall:
        yield _csv_row(
            names,
            task="overall",
            metric="mean over tasks",
            bounds=overall,
            p_value=overall.p_value,
            test="t" if overall.n_tasks > 1 else "",
            items=overall.n,
            missing=overall.n_missing,
            lower_is_better=comparison.tasks[0].lower_is_better,
        )
    p_adjusted = _adjust_over_tasks(comparison)
    for task, p_of_task in zip(comparison.tasks, p_adjusted, strict=True):
        yield _task_row(names, task, p_of_task)
        for metric_comparison in task.others:
            yield _task_row(names, metric_comparison, math.nan)
        for sliced in task.slices:
            for part in sliced.parts:
                yield _csv_row(
                    names,
                    task=task.task,
                    slice_name=f"{sliced.key}: {part.value}",
                    metric=task.metric,
                    bounds=part.paired,
                    p_value=part.paired.p_value,
                    p_adjusted=part.p_adjusted,
                    adjustment=sliced.correction,
                    test=part.paired.test,
                    items=part.paired.n,
                    clusters=part.paired.n_clusters,
                    missing=part.paired.n_missing,
                    lower_is_better=task.lower_is_better,
                )


def _adjust_over_tasks(comparison: Comparison) -> list[float]:
    """Adjust the tasks' p-values for their number (Holm)."""
    return [float(p) for p in holm([task.result.p_value for task in comparison.tasks])]


def _task_row(names: Row, task: TaskComparison, p_adjusted: float) -> Row:
    paired = task.paired
    if paired is not None:
        items = paired.n
        missing = paired.n_missing
        clusters = paired.n_clusters
    else:
        assert task.unpaired is not None
        items = min(task.unpaired.n_a, task.unpaired.n_b)
        missing = task.unpaired.n_missing_a + task.unpaired.n_missing_b
        clusters = None
    return _csv_row(
        names,
        task=task.task,
        metric=task.metric,
        bounds=task.result,
        p_value=task.result.p_value,
        p_adjusted=p_adjusted,
        adjustment="" if math.isnan(p_adjusted) else "Holm over the tasks",
        test=task.result.test if paired else f"unpaired: {task.result.test}",
        items=items,
        clusters=clusters,
        missing=missing,
        lower_is_better=task.lower_is_better,
    )


def _csv_row(
    names: Row,
    *,
    task: str,
    metric: str,
    bounds: Any,
    p_value: float,
    test: str,
    items: int,
    missing: int,
    lower_is_better: bool,
    slice_name: str = "",
    p_adjusted: float = math.nan,
    adjustment: str = "",
    clusters: int | None = None,
) -> Row:
    """One line; `bounds` has the means, their difference and its interval."""
    return {
        "task": inert(task),
        "slice": inert(slice_name),
        "metric": inert(metric),
        **names,
        "mean_a": bounds.mean_a,
        "mean_b": bounds.mean_b,
        "difference": bounds.difference,
        "low": bounds.low,
        "high": bounds.high,
        "level": bounds.level,
        "p_value": p_value,
        "p_adjusted": p_adjusted,
        "adjustment": adjustment,
        "test": test,
        "items": items,
        "clusters": clusters,
        "missing": missing,
        "lower_is_better": lower_is_better,
    }


def _rows_of_several(comparison: SeveralComparison) -> Iterator[Row]:
    overall = [comparison.overall] if comparison.overall else []
    for table in (*overall, *comparison.tasks, *comparison.others, *comparison.slices):
        for pair in table.pairs:
            yield {
                "task": inert(table.task or "overall"),
                "slice": inert(table.slice),
                "metric": inert(table.metric),
                "a": inert(comparison.labels[pair.a]),
                "b": inert(comparison.labels[pair.b]),
                "run_a": inert(comparison.runs[pair.a]),
                "run_b": inert(comparison.runs[pair.b]),
                "mean_a": _mean_of(table, pair.a),
                "mean_b": _mean_of(table, pair.b),
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "level": pair.level,
                "p_value": pair.p_value,
                "p_adjusted": pair.p_adjusted,
                "adjustment": inert(table.correction),
                "test": inert(table.method),
                "items": pair.n,
                "clusters": None if pair.units == pair.n else pair.units,
                "missing": pair.n_missing,
                "lower_is_better": table.lower_is_better,
            }


def _mean_of(table: PairTable, run_index: int) -> float:
    return table.means[run_index].value if table.means else math.nan


def comparison_latex(
    comparison: Comparison | SeveralComparison, title: str = "Comparison"
) -> str:
    """Render a comparison for a paper: one table of both scores, their difference and its test.

    Slices are in the CSV only.

    Args:
        comparison: the comparison.
        title: the first sentence of the caption.
    """
    if isinstance(comparison, Comparison):
        table, notes = _table_of_two(comparison, title)
    else:
        table, notes = _table_of_several(comparison, title)
    return paper_latex(
        [
            table_latex(
                table, [*filter(None, map(without_commands, notes))], "tab:comparison"
            )
        ]
    )


def _table_of_two(
    comparison: Comparison, title: str
) -> tuple[doc.Table, Sequence[str]]:
    columns = [
        doc.Column("Task", folds=True, key=True),
        doc.Column(f"A: {comparison.labels[0]}", right=True),
        doc.Column(f"B: {comparison.labels[1]}", right=True),
        doc.Column("A - B", right=True),
        doc.Column("p", right=True),
        doc.Column("p adjusted", right=True),
        doc.Column("Items", right=True),
    ]
    rows: list[Sequence[doc.Content]] = []
    p_adjusted = _adjust_over_tasks(comparison)
    several_tasks = len(comparison.tasks) > 1
    for task, p_of_task in zip(comparison.tasks, p_adjusted, strict=True):
        rows.append(
            _latex_row(
                _name_of(task),
                task.result,
                task.bounded,
                p_of_task,
                _items_text(task),
                p_adjusted=numbers.p_value(p_of_task) if several_tasks else "",
            )
        )
    if overall := comparison.overall:
        rows.append(
            _latex_row(
                "Mean over tasks",
                overall,
                True,
                overall.p_value,
                numbers.items(overall.n, overall.n_missing),
                p_adjusted="",
            )
        )
    in_points = any(task.bounded for task in comparison.tasks)
    notes = [
        f"A is {comparison.labels[0]}, B is {comparison.labels[1]}.",
        *(["Scores and differences are in points of 100."] if in_points else []),
        comparison.estimand,
    ]
    if several_tasks:
        notes.append(
            "Adjusted p: Holm over the tasks; the mean is a test of its own. Bold:"
            " significant at 5% after the adjustment."
        )
    else:
        notes.append("Bold: significant at 5%.")
    if any(task.provisional for task in comparison.tasks) or comparison.provisional:
        notes.append("* provisional: too many answers are missing.")
    notes += comparison.caveats
    return doc.Table(columns, rows, title), notes


def _name_of(task: TaskComparison) -> str:
    lower = ", lower is better" if task.lower_is_better else ""
    mark = " *" if task.provisional else ""
    return f"{task.task} ({task.metric}{lower}){mark}"


def _items_text(task: TaskComparison) -> str:
    if task.paired:
        return numbers.items(task.paired.n, task.paired.n_missing)
    assert task.unpaired is not None
    n_b = numbers.count(task.unpaired.n_b)
    return f"{numbers.count(task.unpaired.n_a)} and {n_b}, unpaired"


def _latex_row(
    name: str,
    bounds: Any,
    bounded: bool,
    deciding_p: float,
    items: str,
    *,
    p_adjusted: str,
) -> Sequence[doc.Content]:
    tone: doc.Tone = "strong" if deciding_p < SIGNIFICANT else ""
    return (
        name,
        _mean_text(bounds.mean_a, bounded),
        _mean_text(bounds.mean_b, bounded),
        doc.Cell(numbers.gap(bounds.difference, bounds, bounded=bounded), tone),
        numbers.p_value(bounds.p_value),
        p_adjusted,
        items,
    )


def _mean_text(mean: float, bounded: bool) -> str:
    return numbers.points(mean) if bounded else numbers.number(mean, "plain", 3)


def _table_of_several(
    comparison: SeveralComparison, title: str
) -> tuple[doc.Table, Sequence[str]]:
    columns = doc.columns(
        "Task*",
        "A*",
        "B*",
        "Score of A>",
        "Score of B>",
        "A - B>",
        "p adjusted>",
        "Items>",
    )
    rows: list[Sequence[doc.Content]] = []
    overall = comparison.overall and replace(comparison.overall, task="Mean over tasks")
    tables = [*comparison.tasks, *([overall] if overall else [])]
    for table in tables:
        lower = ", lower is better" if table.lower_is_better else ""
        for pair in table.pairs:
            tone: doc.Tone = "strong" if pair.verdict in ("better", "worse") else ""
            rows.append(
                (
                    table.task
                    if table is overall
                    else f"{table.task} ({table.metric}{lower})",
                    comparison.labels[pair.a],
                    comparison.labels[pair.b],
                    _mean_text(_mean_of(table, pair.a), table.bounded),
                    _mean_text(_mean_of(table, pair.b), table.bounded),
                    doc.Cell(
                        numbers.gap(pair.difference, pair, bounded=table.bounded), tone
                    ),
                    numbers.p_value(pair.p_adjusted),
                    numbers.items(pair.n, pair.n_missing) if pair.n else "unpaired",
                )
            )
    notes = [
        comparison.estimand,
        *dict.fromkeys(
            f"Adjustment: {table.correction}." for table in tables if table.correction
        ),
        "Bold: significant at 5% after the adjustment.",
        *comparison.caveats,
    ]
    return doc.Table(columns, rows, title), notes
