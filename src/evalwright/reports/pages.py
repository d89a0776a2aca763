"""What the terminal shows of a board and of a list of runs, as blocks without colour or width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.columns import score_columns
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table, Tone
from evalwright.reports.text import inert
from evalwright.runs.stopping import ended_early

if TYPE_CHECKING:
    from evalwright.analysis.board import Board, BoardTask
    from evalwright.runs.reader import Run


def board_blocks(board: Board) -> list[Block]:
    """The leaderboard: ranks, scores with intervals, n, failures, date, and what a reader must know."""
    columns = [Column("Rank", right=True, key=True), Column("Model", folds=True, key=True)]
    cells = [[numbers.ranks(row.ranks) for row in board.rows], board_labels(board)]
    if has_ties(board):
        columns.append(Column("Tied"))
        cells.append([row.letters for row in board.rows])
    headline = len(columns)
    if board.has_overall:
        columns.append(Column("Overall"))
        cells.append(numbers.aligned_scores([row.overall for row in board.rows], "points"))
    titles, scores = _score_cells(board)
    columns += titles
    cells += scores
    if any(row.together for row in board.rows):
        # Beside the headline: after the overall score, or after the only task.
        columns.insert(headline + 1, Column("Simultaneous"))
        cells.insert(headline + 1, together(board))
    columns += [Column("Items", right=True), Column("Failed", right=True)]
    cells += [coverage(board), [numbers.count(row.n_failed) for row in board.rows]]
    if any(row.cost is not None for row in board.rows):
        columns.append(Column("Cost", right=True))
        cells.append([numbers.money(row.cost) for row in board.rows])
    if any(row.hardware for row in board.rows):
        columns.append(Column("Hardware", folds=True))
        cells.append([inert(row.hardware) for row in board.rows])
    columns.append(Column("Date"))
    cells.append([inert(row.date) for row in board.rows])
    tones: dict[tuple[int, int], Tone] = {(i, 1): "strong" for i in range(len(board.rows))}
    failed = columns.index(Column("Failed", right=True))
    tones |= {(i, failed): "warn" if row.n_failed else "quiet" for i, row in enumerate(board.rows)}
    rows = tuple(zip(*cells, strict=True))
    notes: list[Block] = [Line(inert(note), "quiet", hang=2) for note in board.notes]
    title = f"Leaderboard: {numbers.counted(len(board.rows), 'model')}, {numbers.counted(len(board.tasks), 'task')}"
    return [Heading(title), Gap(), Table(tuple(columns), rows, tones), Gap(), *notes]


def board_labels(board: Board) -> list[str]:
    """What each row is called: its label, with the run's name where two rows share one."""
    labels = [row.label for row in board.rows]
    return [
        inert(row.label if labels.count(row.label) == 1 else f"{row.label} ({row.run})") for row in board.rows
    ]


def has_ties(board: Board) -> bool:
    """Whether some models share a letter, so that the column of letters says something."""
    own = [row.letters for row in board.rows if row.letters]
    return len(own) > 1 and len(set("".join(own))) < len("".join(own))


def together(board: Board) -> list[str]:
    """The intervals that hold for all rows together, padded; "n/a" where there is none."""
    cell = next((row.cells.get(board.tasks[0].name) for row in board.rows if row.together), None)
    unit = numbers.unit_of(cell.kind) if cell else "plain"
    shown = numbers.aligned_scores([row.together for row in board.rows], unit)
    return [text[text.index("[") :] if "[" in text else text for text in shown]


def coverage(board: Board) -> list[str]:
    """Scored items, with those that were asked where some are not scored: "39 of 40"."""
    return [
        numbers.count(row.n)
        if row.n == row.n_asked
        else f"{numbers.count(row.n)} of {numbers.count(row.n_asked)}"
        for row in board.rows
    ]


def column_title(task: BoardTask) -> str:
    """The task's name, with its metric where that is not plain accuracy."""
    name = inert(task.name)
    if task.metric == "accuracy":
        return name
    return f"{name} ({inert(task.metric)}{', less is better' if task.lower_is_better else ''})"


def _score_cells(board: Board) -> tuple[list[Column], list[list[str]]]:
    """The columns after the overall score: a task each, or the shares of a board of factual runs."""
    if any(row.shares for row in board.rows):
        made = [column for column in score_columns(board) if column.metric != "mean over tasks"]
        return (
            [
                Column(f"{column.title}{' (less is better)' if column.lower_is_better else ''}")
                for column in made
            ],
            [numbers.aligned_scores(column.estimates, column.unit) for column in made],
        )
    return [Column(column_title(task)) for task in board.tasks], [
        _task_column(board, task) for task in board.tasks
    ]


def _task_column(board: Board, task: BoardTask) -> list[str]:
    cells = [row.cells.get(task.name) for row in board.rows]
    kind = next((cell.kind for cell in cells if cell), "")
    return numbers.aligned_scores([cell.estimate if cell else None for cell in cells], numbers.unit_of(kind))


def runs_blocks(runs: Sequence[Run]) -> list[Block]:
    """A line per run: its name, model, tasks with their scores, items, failures and date."""
    if not runs:
        return [Line("There are no runs here yet. `evalwright run TASK --model MODEL` makes one.")]
    columns = (
        Column("Run", folds=True, key=True),
        Column("Model", folds=True),
        Column("Scores", folds=True),
        Column("Items", right=True),
        Column("Failed", right=True),
        Column("Date"),
    )
    rows = []
    tones: dict[tuple[int, int], Tone] = {}
    for i, run in enumerate(runs):
        tasks = run.tasks
        scores = [
            f"{inert(task.name)} {numbers.value(task.main.estimate, numbers.unit_of(task.main.kind))}"
            for task in tasks
            if task.main
        ]
        asked = numbers.count(sum(task.n_samples for task in tasks))
        rows.append(
            (
                inert(run.id),
                inert(run.label),
                ", ".join(scores) or numbers.NOTHING,
                f"{asked}, stopped early" if ended_early(run) else asked,
                numbers.count(run.n_failed),
                inert(run.data["started"])[:10],
            )
        )
        tones[i, 0], tones[i, 4] = "strong", "warn" if run.n_failed else "quiet"
    return [Table(columns, tuple(rows), tones), Gap(), Line(numbers.counted(len(runs), "run"), "quiet")]
