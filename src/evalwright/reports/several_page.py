"""What the terminal shows of a comparison of three or more runs, as blocks without colour or width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.comparison_page import visible
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table, Tone
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.ranking import Pair
    from evalwright.analysis.several import PairTable, SeveralComparison
    from evalwright.statistics import Estimate

MOST_PAIRS = 60
"""Pairs shown of a table; the JSON form has all."""


def several_blocks(comparison: SeveralComparison) -> list[Block]:
    """All pairs, or all against the baseline: each run's score, the differences, and the conclusion as the last line."""
    count = numbers.counted(len(comparison.runs), "run")
    base = comparison.baseline
    against = "all pairs" if base is None else f"each against {inert(comparison.labels[base])}"
    blocks: list[Block] = [Heading(f"Comparison of {count}, {against}, paired by item")]
    tables = [*([comparison.overall] if comparison.overall else []), *comparison.tasks]
    for table in tables:
        blocks += _table(comparison, table)
    blocks += [Line(inert(warning), "warn", indent=2, hang=2) for warning in comparison.warnings]
    blocks.append(Line(comparison.estimand, "quiet", indent=2, hang=2))
    if comparison.slices:
        blocks += _slices(comparison)
    if comparison.differences:
        blocks.append(Heading(f"What else differs from {inert(comparison.runs[base or 0])}"))
        blocks += _differing(comparison)
    return [*blocks, Gap(), Line(inert(comparison.conclusion), "strong")]


def _differing(comparison: SeveralComparison) -> list[Block]:
    """A line for everything that differs, with the runs in which it does."""
    where: dict[str, list[str]] = {}
    for run, lines in comparison.differences.items():
        for line in lines:
            where.setdefault(line, []).append(run)
    everywhere = len(comparison.runs) - 1
    return [
        Line(
            f"{inert(line)} (in {'all others' if len(runs) == everywhere > 1 else ', '.join(map(inert, runs))})",
            indent=2,
            hang=2,
        )
        for line, runs in where.items()
    ]


def _table(comparison: SeveralComparison, table: PairTable) -> list[Block]:
    name = inert(table.task) if table.task else "Over all tasks"
    less = ", less is better" if table.lower_is_better else ""
    return [
        Heading(f"{name} ({inert(table.metric)}{less})"),
        _runs(comparison, table),
        Gap(),
        _pairs([table]),
        *_how([table]),
    ]


def _how(tables: list[PairTable]) -> list[Block]:
    """How the differences were corrected, and what may look like a contradiction."""
    text = f"Intervals of differences and adjusted p: {inert(tables[0].correction)}."
    finer = any(
        pair.p_adjusted < 0.05 and pair.verdict == "no difference seen"
        for table in tables
        for pair in table.pairs
    )
    if finer:
        text += (
            " The adjusted p steps down from pair to pair, which intervals cannot: it may lie under 0.05 beside an interval "
            "that holds 0. The conclusion goes by the intervals."
        )
    left = sum(max(0, len(table.pairs) - MOST_PAIRS) for table in tables)
    if left:
        text += f" {numbers.counted(left, 'pair')} more {numbers.plural(left, 'is', 'are')} in the JSON form."
    return [Line(text, "quiet", indent=2, hang=2)]


def _runs(comparison: SeveralComparison, table: PairTable) -> Table:
    sign = 1 if table.lower_is_better else -1
    values = [mean.value for mean in table.means]
    order = sorted(range(len(values)), key=lambda i: (values[i] != values[i], sign * values[i], i))
    columns = [
        Column("#", right=True, key=True),
        Column("Model", folds=True, key=True),
        Column("Score"),
        Column("Items", right=True),
    ]
    unit: numbers.Unit = "points" if table.bounded else "plain"
    means = [table.means[i] for i in order]
    cells = [
        [str(i + 1) for i in order],
        [inert(comparison.labels[i]) for i in order],
        numbers.aligned_scores(means, unit),
        [_items(mean) for mean in means],
    ]
    if table.ranks:
        columns.append(Column("Rank", right=True))
        cells.append([numbers.ranks(table.ranks[i]) for i in order])
    if table.letters:
        columns.append(Column("Tied"))
        cells.append([table.letters[i] for i in order])
    return Table(
        tuple(columns),
        tuple(zip(*cells, strict=True)),
        {(i, 1): "strong" for i in range(len(order))},
        indent=2,
    )


def _items(mean: Estimate) -> str:
    """Scored items, of those asked where some have no score."""
    asked = f" of {numbers.count(mean.n + mean.n_failed)}" if mean.n_failed else ""
    clusters = "" if mean.n_clusters is None else f" in {numbers.counted(mean.n_clusters, 'cluster')}"
    return f"{numbers.count(mean.n)}{asked}{clusters}"


def _pairs(tables: list[PairTable]) -> Table:
    """Pairs by the numbers of their runs, the higher first, largest difference first."""
    sliced = any(table.slice for table in tables)
    columns = [
        *([Column("Slice", folds=True, key=True)] if sliced else []),
        Column("Pair", key=True),
        Column("Difference", right=True),
        Column("p adjusted", right=True),
        Column("Smallest visible", right=True),
        Column("Items", right=True),
    ]
    rows: list[tuple[str, ...]] = []
    tones: dict[tuple[int, int], Tone] = {}
    for table in tables:
        for pair in sorted(table.pairs, key=_size)[:MOST_PAIRS]:
            a, b, gap, low, high = pair.a, pair.b, pair.difference, pair.low, pair.high
            if gap < 0:
                a, b, gap, low, high = b, a, -gap, -high, -low
            tones[len(rows), 1 + sliced] = "strong" if pair.verdict in ("better", "worse") else ""
            rows.append(
                (
                    *([inert(table.slice)] if sliced else []),
                    f"{a + 1} - {b + 1}",
                    numbers.difference(gap, low, high, bounded=table.bounded),
                    numbers.p_value(pair.p_adjusted),
                    visible(pair.visible, table.bounded),
                    numbers.count(pair.n) if pair.n or pair.verdict == "not compared" else "unpaired",
                )
            )
    return Table(tuple(columns), tuple(rows), tones, indent=2)


def _size(pair: Pair) -> tuple[bool, float]:
    """Largest difference first, pairs without one last."""
    return math.isnan(pair.difference), -abs(pair.difference)


def _slices(comparison: SeveralComparison) -> list[Block]:
    blocks: list[Block] = []
    for task in comparison.tasks:
        tables = [table for table in comparison.slices if table.task == task.task]
        if tables:
            blocks += [Heading(f"{inert(task.task)} by slice"), _pairs(tables), *_how(tables)]
    return blocks
