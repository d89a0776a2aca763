"""A report on contamination: scores before and after a cut-off, the drop to rewritten questions,
and overlap with a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.contamination.corpus import LEAST
from evalwright.analysis.contamination.report import (
    ContaminationReport,
    CutOff,
    Drop,
    Overlap,
    whole_drops,
)
from evalwright.analysis.words import counted
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.statistics import (
    ContaminationCheck,
    PairedComparison,
    UnpairedComparison,
)

_CUT_OFF_COLUMNS = ("Task*", "Dated by~", "Up to it", "Later", "Difference", "p>")
_DROP_COLUMNS = (
    "Task*",
    "Rewrites~",
    "Original",
    "Rewritten",
    "Drop",
    "Items",
    "Control's drop",
    "Control items",
    "Excess",
    "p>",
)
_OVERLAP_COLUMNS = ("Task*", "n-grams in the corpus~", "Questions", "Score")
_CLASSES = {
    "none": "none",
    "some": "some, under 80 of 100",
    "most": "80 of 100 and more",
}


def contamination_document(report: ContaminationReport) -> doc.Document:
    """One run's report; its last line is the conclusion."""
    n = report.overlaps[0].n if report.overlaps else 0
    sections: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        (
            f"Before and after {report.cut_off}",
            _CUT_OFF_COLUMNS,
            [_cut_off(cut_off) for cut_off in report.cut_offs],
        ),
        (
            "Original against rewritten wordings",
            _DROP_COLUMNS,
            [_drop(task_drop) for task_drop in report.drops],
        ),
        (
            f"Overlap with a corpus, n = {n}",
            _OVERLAP_COLUMNS,
            [row for overlap in report.overlaps for row in _overlap(overlap)],
        ),
    ]
    blocks: list[doc.Block] = []
    for title, titles, rows in sections:
        if rows:
            blocks += [doc.Heading(title), doc.Table(doc.columns(*titles), rows, title)]
    notes = [*_notes(report), *_overlap_notes(report.overlaps)]
    blocks += [doc.Notes(notes)] if notes else []
    sentences = [
        *map(_cut_off_sentence, report.cut_offs),
        *map(_drop_sentence, whole_drops(report.drops)),
        *map(_overlap_sentence, report.overlaps),
    ]
    blocks.append(
        doc.Conclusion(" ".join(sentences), "warn" if report.suspicious else "strong")
    )
    return doc.Document(f"Contamination of {report.model} (run {report.run})", blocks)


# -- tables ----------------------------------------------------------------------------


def _cut_off(cut_off: CutOff) -> tuple[str, ...]:
    sides = [
        (
            numbers.NOTHING
            if side is None
            else f"{numbers.score(side, 'points')}, n = {numbers.count(side.n)}"
        )
        for side in (cut_off.before, cut_off.after)
    ]
    difference = cut_off.difference
    if difference is None:
        return cut_off.task, cut_off.key, *sides, numbers.NOTHING, numbers.NOTHING
    return (
        cut_off.task,
        cut_off.key,
        *sides,
        numbers.gap(difference.difference, difference),
        numbers.p_value(difference.p_value),
    )


def _drop(task_drop: Drop) -> tuple[str, ...]:
    drop = task_drop.drop
    check = task_drop.check
    control = (numbers.NOTHING, "0", numbers.NOTHING, numbers.NOTHING)
    if check is not None:
        control_drop = check.control_drop
        control = (
            numbers.gap(control_drop.difference, control_drop),
            numbers.count(control_drop.n),
            numbers.gap(check.excess, check),
            numbers.p_value(check.p_value),
        )
    means = map(numbers.points, (drop.mean_a, drop.mean_b))
    return (
        task_drop.task,
        task_drop.kind,
        *means,
        numbers.gap(drop.difference, drop),
        numbers.count(drop.n),
        *control,
    )


def _overlap(overlap: Overlap) -> Iterator[tuple[str, ...]]:
    for name, estimate in overlap.classes.items():
        if estimate is not None:
            n = numbers.count(estimate.n + estimate.n_missing)
            yield overlap.task, _CLASSES[name], n, numbers.score(estimate, "points")
    if overlap.difference is not None:
        size = numbers.gap(overlap.difference.difference, overlap.difference)
        p = numbers.p_value(overlap.difference.p_value)
        yield overlap.task, "some or most, minus none", "", f"{size}, p = {p}"


# -- sentences -------------------------------------------------------------------------


def _notes(report: ContaminationReport) -> Iterator[str]:
    for cut_off in report.cut_offs:
        if cut_off.across or cut_off.undated:
            yield (
                f"{cut_off.task}: {counted(cut_off.across, 'item')}"
                f" {'has' if cut_off.across == 1 else 'have'} a date on both sides of the"
                f" cut-off and {cut_off.undated:,} {'has' if cut_off.undated == 1 else 'have'}"
                f" none in '{cut_off.key}'; they are on neither side."
            )
        if cut_off.unreadable:
            yield (
                f"{cut_off.task}: {counted(cut_off.unreadable, 'item')}"
                f" {'has' if cut_off.unreadable == 1 else 'have'} something in '{cut_off.key}'"
                " that is not a date such as 2024-06-15; they are on neither side."
            )
        if cut_off.shared_clusters:
            yield (
                f"{cut_off.task}: {cut_off.shared_clusters:,} clusters have items on both sides"
                " of the cut-off; the test treats the sides as independent."
            )
    if known_tasks := [
        cut_off.task for cut_off in report.cut_offs if cut_off.key == "known_since"
    ]:
        tasks = ", ".join(known_tasks)
        yield (
            f"{tasks}: divided by 'known_since', when the answer became known: a"
            " difference shows what the model can know, not that it has memorised"
            " questions."
        )
    if report.cut_offs:
        yield (
            "The questions before and after the cut-off are different ones, and may"
            " differ in difficulty."
        )
    drops = whole_drops(report.drops)
    if unchecked := sum(task_drop.unchecked for task_drop in drops):
        yield (
            f"{unchecked:,} of {sum(task_drop.rewrites for task_drop in drops):,} rewrites were not"
            " checked by a person. Bad rewrites cause a drop of their own, among"
            " control items as often."
        )
    if any(task_drop.check is None for task_drop in drops):
        how = (
            "The cut-off has no items after it"
            if report.cut_off
            else "Give --cut-off or --control"
        )
        yield (
            f"Without control items a drop shows only that rewrites are harder. {how}:"
            " questions that the model cannot have seen, rewritten in the same way."
        )


def _overlap_notes(overlaps: Sequence[Overlap]) -> Iterator[str]:
    for overlap in overlaps:
        if overlap.too_short:
            yield (
                f"{overlap.task}: {overlap.too_short:,} questions of fewer than {LEAST} words"
                " were not searched in the corpus."
            )
    if overlaps:
        yield (
            f"The corpus: {overlaps[0].files:,} files with {overlaps[0].words:,} words."
            " Questions found in it may also be easier; a paired drop does not have"
            " this problem."
        )


def _cut_off_sentence(cut_off: CutOff) -> str:
    if cut_off.difference is None:
        side = "after" if cut_off.after is None else "before"
        return (
            f"{cut_off.task}: no item is dated {side} {cut_off.date}, so there is nothing to"
            " compare."
        )
    return (
        f"{cut_off.task}: the score on items up to {cut_off.date}, compared with later ones,"
        f" {_compared(cut_off.difference)}."
    )


def _overlap_sentence(overlap: Overlap) -> str:
    n_found = sum(
        bool(sample_overlap.found) for sample_overlap in overlap.samples.values()
    )
    met = (
        f"{overlap.task}: the corpus has n-grams of {n_found:,} of"
        f" {len(overlap.samples) - overlap.too_short:,} questions"
    )
    if overlap.difference is None:
        return f"{met}, so there is nothing to compare."
    return f"{met}, and the score on them {_compared(overlap.difference)}."


def _compared(comparison: UnpairedComparison) -> str:
    size = _size(comparison.difference, comparison)
    if comparison.low > 0 or comparison.high < 0:
        return f"is {'higher' if comparison.difference > 0 else 'lower'} ({size})"
    return f"does not differ significantly ({size})"


def _drop_sentence(task_drop: Drop) -> str:
    drop = task_drop.drop
    check = task_drop.check
    if drop.n == 0:
        return f"{task_drop.task}: no item outside the control has a score on both wordings."
    size = _size(drop.difference, drop)
    if check is None:
        seen = "falls" if drop.verdict == "better" else "does not clearly fall"
        return (
            f"{task_drop.task}: the score {seen} from original wordings to rewrites ({size});"
            " there is no control."
        )
    if check.control_drop.n == 0:
        return (
            f"{task_drop.task}: no control item has a score on both wordings, so the drop of"
            f" {size} shows nothing."
        )
    excess = _size(check.excess, check)
    sign = "no sign that the original wordings were memorised"
    if check.suspicious:
        sign = "a sign that the original wordings were memorised, but not proof"
    return (
        f"{task_drop.task}: {sign}: the drop to rewrites exceeds that of control items by"
        f" {excess}."
    )


def _size(
    difference: float,
    comparison: PairedComparison | UnpairedComparison | ContaminationCheck,
) -> str:
    return f"{numbers.gap(difference, comparison)} points, {100 * comparison.level:g}% interval"
