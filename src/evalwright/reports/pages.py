"""What the terminal shows of a board, a list of runs and a comparison, as blocks without colour or width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table, Tone
from evalwright.reports.text import inert, shorten
from evalwright.runs.stopping import ended_early

if TYPE_CHECKING:
    from evalwright.runs.board import Board, BoardTask
    from evalwright.runs.comparison import Comparison, TaskComparison
    from evalwright.runs.reader import Run

MOST_FLIPS = 5
"""Flipped items shown per task; the JSON form has more."""


def board_blocks(board: Board) -> list[Block]:
    """The leaderboard: ranks, scores with intervals, n, failures, date, and what a reader must know."""
    columns = [Column("Rank", right=True, key=True), Column("Model", folds=True, key=True)]
    cells = [[numbers.ranks(row.ranks) for row in board.rows], board_labels(board)]
    if board.has_overall:
        columns.append(Column("Overall"))
        cells.append(numbers.aligned_scores([row.overall for row in board.rows], "points"))
    for task in board.tasks:
        columns.append(Column(column_title(task)))
        cells.append(_task_column(board, task))
    columns += [Column("Items", right=True), Column("Failed", right=True)]
    cells += [
        [numbers.count(row.n) for row in board.rows],
        [numbers.count(row.n_failed) for row in board.rows],
    ]
    if any(row.cost is not None for row in board.rows):
        columns.append(Column("Cost", right=True))
        cells.append([numbers.money(row.cost) for row in board.rows])
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


def column_title(task: BoardTask) -> str:
    """The task's name, with its metric where that is not plain accuracy."""
    name = inert(task.name)
    if task.metric == "accuracy":
        return name
    return f"{name} ({inert(task.metric)}{', less is better' if task.lower_is_better else ''})"


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


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Two runs side by side: means, differences, tests, flipped items, and the conclusion as the last line."""
    blocks: list[Block] = [
        Heading("Comparison, paired by item"),
        Line(f"A  {inert(comparison.a)}", indent=2, hang=3),
        Line(f"B  {inert(comparison.b)}", indent=2, hang=3),
        Gap(),
        _differences(comparison),
    ]
    blocks += _left_out(comparison)
    blocks += _flips(comparison)
    if comparison.differences:
        blocks.append(Heading("What else differs between the runs"))
        blocks += [Line(inert(text), indent=2, hang=2) for text in comparison.differences]
    return [*blocks, Gap(), Line(inert(comparison.conclusion), "strong")]


def _differences(comparison: Comparison) -> Table:
    columns = (
        Column("Task", folds=True, key=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("A - B", right=True),
        Column("p", right=True),
        Column("Test", folds=True),
        Column("Smallest visible", right=True),
        Column("Only A : only B", right=True),
        Column("Items", right=True),
    )
    rows = [_difference(task) for task in comparison.tasks]
    tones: dict[tuple[int, int], Tone] = {
        (i, 3): "" if task.paired.verdict == "no difference seen" else "strong"
        for i, task in enumerate(comparison.tasks)
    }
    if comparison.overall:
        whole = comparison.overall
        bounded = all(task.bounded for task in comparison.tasks)
        rows.append(
            (
                f"mean of {numbers.counted(whole.n_tasks, 'task')}",
                "",
                "",
                numbers.difference(whole.difference, whole.low, whole.high, bounded=bounded),
                numbers.p_value(whole.p_value),
                "Welch-Satterthwaite t",
                visible(whole.smallest_visible_difference, bounded),
                "",
                numbers.count(whole.n),
            )
        )
    return Table(columns, tuple(rows), tones, indent=2)


def _difference(task: TaskComparison) -> tuple[str, ...]:
    paired = task.paired
    unit: numbers.Unit = "points" if task.bounded else "plain"
    means = [
        numbers.NOTHING if math.isnan(mean) else numbers.number(mean, unit, 1 if task.bounded else 3)
        for mean in (paired.mean_a, paired.mean_b)
    ]
    discordant = f"{paired.discordant[0]} : {paired.discordant[1]}" if paired.discordant else ""
    return (
        f"{inert(task.task)} ({inert(task.metric)})",
        *means,
        numbers.difference(paired.difference, paired.low, paired.high, bounded=task.bounded),
        numbers.p_value(paired.p_value),
        paired.test,
        visible(paired.smallest_visible_difference, task.bounded),
        discordant,
        numbers.items(paired.n, 0, paired.n_clusters),
    )


def visible(least: float, bounded: bool) -> str:
    """The smallest visible difference; "none" where no difference could have been seen."""
    if bounded and least >= 1.0:
        return "none"
    return numbers.number(least, "points" if bounded else "plain", 1 if bounded else 3)


def _left_out(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for task in comparison.tasks:
        parts = [
            f"{numbers.counted(n, 'item')} {what}"
            for n, what in (
                (task.only_a, "only in A"),
                (task.only_b, "only in B"),
                (task.paired.n_missing, "without a score from both"),
            )
            if n
        ]
        if parts:
            text = f"{inert(task.task)}: left out of the comparison: {', '.join(parts)}."
            blocks.append(Line(text, "warn", indent=2, hang=2))
    return blocks


def _flips(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for task in comparison.tasks:
        shown = task.flips[:MOST_FLIPS]
        if not shown:
            continue
        more = f", the first {len(shown)} of {numbers.count(task.n_differing)}"
        blocks.append(
            Heading(
                f"{inert(task.task)}: items that A and B score differently"
                f"{more if task.n_differing > len(shown) else ''}"
            )
        )
        unit: numbers.Unit = "points" if task.bounded else "plain"
        rows = [
            (
                shorten(inert(flip.id), 100),
                *(numbers.number(x, unit, 1 if task.bounded else 3) for x in (flip.a, flip.b)),
            )
            for flip in shown
        ]
        columns = (Column("Item", folds=True, key=True), Column("A", right=True), Column("B", right=True))
        blocks.append(Table(columns, tuple(rows), {}, indent=2))
    return blocks
