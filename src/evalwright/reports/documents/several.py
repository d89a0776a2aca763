"""A comparison of three or more runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.gate import Gate
from evalwright.analysis.several import PairTable, SeveralComparison
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.documents.comparison import gate_blocks, less, visible
from evalwright.statistics import Estimate

MOST_PAIRS = 60
"""Pairs shown of a table; the JSON form has all."""


def several_document(comparison: SeveralComparison, gates: Sequence[Gate] = ()) -> doc.Document:
    """All pairs, or all against the baseline: each run's score, the differences, the conclusion, and the gates below it."""
    count = numbers.counted(len(comparison.runs), "run")
    base = comparison.baseline
    against = "all pairs" if base is None else f"each against {comparison.labels[base]}"
    blocks: list[doc.Block] = []
    for table in [*([comparison.overall] if comparison.overall else []), *comparison.tasks]:
        name = table.task or "Over all tasks"
        blocks += [
            doc.Heading(f"{name} ({table.metric}{less(table)})"),
            _runs(comparison, table),
            _pairs([table]),
            _how([table]),
        ]
    for table in comparison.others:
        blocks += [doc.Heading(f"{table.task}, also {table.metric}{less(table)}"), _runs(comparison, table)]
    blocks += [doc.Note(warning, "warn") for warning in comparison.warnings]
    blocks.append(doc.Note(comparison.estimand, "quiet"))
    for task in comparison.tasks:
        tables = [table for table in comparison.slices if table.task == task.task]
        if tables:
            blocks += [doc.Heading(f"{task.task} by slice"), _pairs(tables), _how(tables)]
    if comparison.differences:
        blocks.append(doc.Heading(f"Other differences from {comparison.runs[base or 0]}"))
        blocks += _differing(comparison)
    blocks.append(doc.Conclusion(comparison.conclusion))
    blocks += [block for gate in gates for block in gate_blocks(gate)]
    return doc.Document(f"Comparison of {count}, {against}, paired by item", blocks)


def _differing(comparison: SeveralComparison) -> Iterator[doc.Note]:
    """A line for everything that differs, with the runs in which it does."""
    where: dict[str, list[str]] = {}
    for run, lines in comparison.differences.items():
        for line in lines:
            where.setdefault(line, []).append(run)
    everywhere = len(comparison.runs) - 1
    for line, runs in where.items():
        yield doc.Note(f"{line} (in {'all others' if len(runs) == everywhere > 1 else ', '.join(runs)})")


def _how(tables: Sequence[PairTable]) -> doc.Note:
    """How the differences were corrected, and what may look like a contradiction."""
    text = f"Intervals of differences and adjusted p: {tables[0].correction}."
    pairs = [pair for table in tables for pair in table.pairs]
    if any(pair.p_adjusted < 0.05 and pair.verdict == "no difference seen" for pair in pairs):
        text += (
            " The adjusted p is computed stepwise from pair to pair, which is not possible for intervals: it may be under 0.05 although "
            "the interval contains 0. The conclusion is based on the intervals."
        )
    left = sum(max(0, len(table.pairs) - MOST_PAIRS) for table in tables)
    if left:
        text += f" {numbers.counted(left, 'more pair')} {numbers.plural(left, 'is', 'are')} in the JSON form."
    return doc.Note(text, "quiet")


def _runs(comparison: SeveralComparison, table: PairTable) -> doc.Table:
    sign = 1 if table.lower_is_better else -1
    values = [mean.value for mean in table.means]
    order = sorted(range(len(values)), key=lambda i: (values[i] != values[i], sign * values[i], i))
    number = doc.Column("#", right=True, key=True)
    columns = [number, *doc.columns("Model*", "Score", "Items>", "Rank>", "Tied")]
    unit: numbers.Unit = "points" if table.bounded else "plain"
    rows: list[Sequence[doc.Content]] = [
        (
            str(i + 1),
            doc.Cell(comparison.labels[i], "strong", name=True),
            doc.Number(table.means[i], unit),
            _items(table.means[i]),
            numbers.ranks(table.ranks[i]) if table.ranks else "",
            table.letters[i] if table.letters else "",
        )
        for i in order
    ]
    return doc.Table(columns, rows, "Scores")


def _items(mean: Estimate) -> str:
    """Scored items, of all items where some have no score."""
    asked = f" of {numbers.count(mean.n + mean.n_missing)}" if mean.n_missing else ""
    clusters = "" if mean.n_clusters is None else f" in {numbers.counted(mean.n_clusters, 'cluster')}"
    return f"{numbers.count(mean.n)}{asked}{clusters}"


def _pairs(tables: Sequence[PairTable]) -> doc.Table:
    """Pairs by the numbers of their runs, the higher first; largest difference first, pairs without one last."""
    columns = [
        doc.Column("Slice", folds=True, key=any(table.slice for table in tables)),
        doc.Column("Pair", key=True),
        *doc.columns("Difference>", "p adjusted>", "Min. detectable>", "Items>"),
    ]
    rows: list[Sequence[doc.Content]] = []
    for table in tables:
        ordered = sorted(table.pairs, key=lambda one: (math.isnan(one.difference), -abs(one.difference)))
        for pair in ordered[:MOST_PAIRS]:
            a, b, gap, low, high = pair.a, pair.b, pair.difference, pair.low, pair.high
            if gap < 0:
                a, b, gap, low, high = b, a, -gap, -high, -low
            difference = numbers.difference(gap, low, high, bounded=table.bounded)
            rows.append(
                (
                    table.slice,
                    f"{a + 1} - {b + 1}",
                    doc.Cell(difference, "strong" if pair.verdict in ("better", "worse") else ""),
                    numbers.p_value(pair.p_adjusted),
                    visible(pair.visible, table.bounded),
                    numbers.items(pair.n, pair.n_missing, failed="unscored")
                    if pair.n or pair.verdict == "not compared"
                    else "unpaired",
                )
            )
    return doc.Table(columns, rows, "Pairs")
