"""What the terminal shows of a comparison of two runs and of a gate, as blocks without colour or width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table, Tone
from evalwright.reports.text import inert, shorten

if TYPE_CHECKING:
    from evalwright.analysis.comparison import Comparison, Flip, TaskComparison
    from evalwright.analysis.gate import Gate
    from evalwright.runs.slices import SliceComparison

MOST_FLIPS = 5
"""Flipped items shown per task and direction; the JSON form has more."""


def comparison_blocks(comparison: Comparison, most_flips: int = MOST_FLIPS) -> list[Block]:
    """Two runs side by side: means, differences, tests, slices, flipped items, and the conclusion as the last line."""
    paired = all(task.paired for task in comparison.tasks)
    blocks: list[Block] = [
        Heading("Comparison, paired by item" if paired else "Comparison, not all tasks paired by item"),
        Line(f"A  {inert(comparison.a)}", indent=2, hang=3),
        Line(f"B  {inert(comparison.b)}", indent=2, hang=3),
        Gap(),
        _differences(comparison),
    ]
    for task in comparison.tasks:
        blocks += _remarks(task)
    blocks.append(Line(comparison.estimand, "quiet", indent=2, hang=2))
    for task in comparison.tasks:
        for sliced in task.slices:
            blocks += _slices(task, sliced) if sliced.parts else []
    for task in comparison.tasks:
        blocks += _flips(task, most_flips)
    if comparison.differences:
        blocks.append(Heading("What else differs between the runs"))
        blocks += [Line(inert(text), indent=2, hang=2) for text in comparison.differences]
    return [*blocks, Gap(), Line(inert(comparison.conclusion), "strong")]


def gate_blocks(gate: Gate) -> list[Block]:
    """The rules of a gate, what was found of each, and whether it failed."""
    columns = (Column("", key=True), Column("Rule", folds=True), Column("Found", folds=True))
    rows = tuple(
        ("FAILED" if outcome.failed else "passed", inert(outcome.rule), inert(outcome.sentence))
        for outcome in gate.outcomes
    )
    tones: dict[tuple[int, int], Tone] = {
        (i, 0): "bad" if outcome.failed else "good" for i, outcome in enumerate(gate.outcomes)
    }
    tone: Tone = "bad" if gate.failed else "good"
    return [Heading("Gate"), Table(columns, rows, tones, indent=2), Gap(), Line(inert(gate.conclusion), tone)]


def _differences(comparison: Comparison) -> Table:
    columns = [
        Column("Task", folds=True, key=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("A - B", right=True),
        Column("p", right=True),
        Column("Test", folds=True),
        Column("Smallest visible", right=True),
        Column("Only A : only B", right=True),
        Column("Items", right=True),
    ]
    rows = [_difference(task) for task in comparison.tasks]
    tones: dict[tuple[int, int], Tone] = {
        (i, 3): "strong" if _sure(task) else "" for i, task in enumerate(comparison.tasks)
    }
    if comparison.overall:
        whole = comparison.overall
        rows.append(
            (
                f"mean of {numbers.counted(whole.n_tasks, 'task')}",
                "",
                "",
                numbers.difference(whole.difference, whole.low, whole.high, bounded=True),
                numbers.p_value(whole.p_value),
                "Welch-Satterthwaite t",
                visible(whole.smallest_visible_difference, True),
                "",
                numbers.count(whole.n),
            )
        )
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    place = {old: new for new, old in enumerate(used)}
    return Table(
        tuple(columns[i] for i in used),
        tuple(tuple(row[i] for i in used) for row in rows),
        {(i, place[j]): tone for (i, j), tone in tones.items() if j in place},
        indent=2,
    )


def _difference(task: TaskComparison) -> tuple[str, ...]:
    result, paired = task.result, task.paired
    discordant = f"{paired.discordant[0]} : {paired.discordant[1]}" if paired and paired.discordant else ""
    if paired:
        least, items = (
            visible(paired.smallest_visible_difference, task.bounded),
            numbers.items(paired.n, 0, paired.n_clusters),
        )
    else:
        assert task.unpaired is not None
        least, items = "", f"{numbers.count(task.unpaired.n_a)} and {numbers.count(task.unpaired.n_b)}"
    less = ", less is better" if task.lower_is_better else ""
    return (
        f"{inert(task.task)} ({inert(task.metric)}{less})",
        *(_mean(mean, task.bounded) for mean in (result.mean_a, result.mean_b)),
        numbers.difference(result.difference, result.low, result.high, bounded=task.bounded),
        numbers.p_value(result.p_value),
        result.test if paired else f"unpaired: {result.test}",
        least,
        discordant,
        items,
    )


def _sure(task: TaskComparison) -> bool:
    result = task.result
    return result.p_value < 1 - result.level and (result.low > 0 or result.high < 0)


def _mean(mean: float, bounded: bool) -> str:
    return numbers.NOTHING if math.isnan(mean) else numbers.number(mean, _unit(bounded), 1 if bounded else 3)


def _unit(bounded: bool) -> numbers.Unit:
    return "points" if bounded else "plain"


def visible(least: float, bounded: bool) -> str:
    """The smallest visible difference; "none" where no difference could have been seen."""
    if bounded and least >= 1.0:
        return "none"
    return numbers.number(least, _unit(bounded), 1 if bounded else 3)


def _remarks(task: TaskComparison) -> list[Block]:
    name = inert(task.task)
    parts = [
        f"{numbers.counted(n, 'item')} {what}"
        for n, what in (
            (task.only_a, "only in A"),
            (task.only_b, "only in B"),
            (task.paired.n_missing if task.paired else 0, "without a score from both"),
        )
        if n and task.paired
    ]
    texts = [f"{name}: left out of the comparison: {', '.join(parts)}."] if parts else []
    texts += [f"{name}: {inert(warning)}" for warning in task.warnings]
    return [Line(text, "warn", indent=2, hang=2) for text in texts]


def _slices(task: TaskComparison, sliced: SliceComparison) -> list[Block]:
    columns = (
        Column(inert(sliced.key), folds=True, key=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("A - B", right=True),
        Column("p adjusted", right=True),
        Column("Smallest visible", right=True),
        Column("Items", right=True),
    )
    rows = []
    tones: dict[tuple[int, int], Tone] = {}
    for i, part in enumerate(sliced.parts):
        paired = part.paired
        rows.append(
            (
                inert(part.value),
                _mean(paired.mean_a, task.bounded),
                _mean(paired.mean_b, task.bounded),
                numbers.difference(paired.difference, paired.low, paired.high, bounded=task.bounded),
                numbers.p_value(part.p_adjusted),
                visible(paired.smallest_visible_difference, task.bounded),
                numbers.items(paired.n, 0, paired.n_clusters),
            )
        )
        tones[i, 3] = "" if paired.verdict == "no difference seen" else "strong"
    note = f"Adjusted p: {sliced.correction}. The intervals are each slice's own."
    if sliced.without:
        note += f" {numbers.counted(sliced.without, 'item')} without a value {numbers.plural(sliced.without, 'is', 'are')} in no slice."
    return [
        Heading(f"{inert(task.task)} by {inert(sliced.key)}"),
        Table(columns, tuple(rows), tones, indent=2),
        Line(inert(note), "quiet", indent=2, hang=2),
    ]


def _flips(task: TaskComparison, most: int) -> list[Block]:
    sides = [(True, task.n_a_higher), (False, task.n_b_higher)]
    shown: list[Flip] = []
    for a_higher, _ in sides:
        shown += [flip for flip in task.flips if (flip.a > flip.b) == a_higher][:most]
    if not shown or not most:
        return []
    counts = f"{numbers.count(task.n_a_higher)} higher in A, {numbers.count(task.n_b_higher)} higher in B"
    more = f", the first {len(shown)}" if task.n_differing > len(shown) else ""
    columns = (Column("Item", folds=True, key=True), Column("A", right=True), Column("B", right=True))
    return [
        Heading(f"{inert(task.task)}: items that A and B score differently ({counts}){more}"),
        Table(columns, _flip_rows(shown, task.bounded), {}, indent=2),
    ]


def _flip_rows(flips: Sequence[Flip], bounded: bool) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (shorten(inert(flip.id), 100), *(_mean(score, bounded) for score in (flip.a, flip.b)))
        for flip in flips
    )
