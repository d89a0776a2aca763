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
    parts: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        (
            f"Before and after {report.cut_off}",
            _CUT_OFF_COLUMNS,
            [_cut_off(one) for one in report.cut_offs],
        ),
        (
            "Original against rewritten wordings",
            _DROP_COLUMNS,
            [_drop(one) for one in report.drops],
        ),
        (
            f"Overlap with a corpus, n = {n}",
            _OVERLAP_COLUMNS,
            [row for one in report.overlaps for row in _overlap(one)],
        ),
    ]
    blocks: list[doc.Block] = []
    for title, titles, rows in parts:
        if rows:
            blocks += [doc.Heading(title), doc.Table(doc.columns(*titles), rows, title)]
    notes = [*_notes(report), *_overlap_notes(report.overlaps)]
    blocks += [doc.Notes(notes)] if notes else []
    said = [
        *map(_cut_off_sentence, report.cut_offs),
        *map(_drop_sentence, whole_drops(report.drops)),
        *map(_overlap_sentence, report.overlaps),
    ]
    blocks.append(
        doc.Conclusion(" ".join(said), "warn" if report.suspicious else "strong")
    )
    return doc.Document(f"Contamination of {report.model} (run {report.run})", blocks)


# -- tables ----------------------------------------------------------------------------


def _cut_off(one: CutOff) -> tuple[str, ...]:
    sides = [
        (
            numbers.NOTHING
            if side is None
            else f"{numbers.score(side, 'points')}, n = {numbers.count(side.n)}"
        )
        for side in (one.before, one.after)
    ]
    found = one.difference
    if found is None:
        return one.task, one.key, *sides, numbers.NOTHING, numbers.NOTHING
    return (
        one.task,
        one.key,
        *sides,
        numbers.gap(found.difference, found),
        numbers.p_value(found.p_value),
    )


def _drop(one: Drop) -> tuple[str, ...]:
    drop = one.drop
    check = one.check
    control = (numbers.NOTHING, "0", numbers.NOTHING, numbers.NOTHING)
    if check is not None:
        other = check.control_drop
        control = (
            numbers.gap(other.difference, other),
            numbers.count(other.n),
            numbers.gap(check.excess, check),
            numbers.p_value(check.p_value),
        )
    means = map(numbers.points, (drop.mean_a, drop.mean_b))
    return (
        one.task,
        one.kind,
        *means,
        numbers.gap(drop.difference, drop),
        numbers.count(drop.n),
        *control,
    )


def _overlap(one: Overlap) -> Iterator[tuple[str, ...]]:
    for name, found in one.classes.items():
        if found is not None:
            n = numbers.count(found.n + found.n_missing)
            yield one.task, _CLASSES[name], n, numbers.score(found, "points")
    if one.difference is not None:
        size = numbers.gap(one.difference.difference, one.difference)
        p = numbers.p_value(one.difference.p_value)
        yield one.task, "some or most, minus none", "", f"{size}, p = {p}"


# -- sentences -------------------------------------------------------------------------


def _notes(report: ContaminationReport) -> Iterator[str]:
    for one in report.cut_offs:
        if one.across or one.undated:
            yield (
                f"{one.task}: {counted(one.across, 'item')}"
                f" {'has' if one.across == 1 else 'have'} a date on both sides of the"
                f" cut-off and {one.undated:,} {'has' if one.undated == 1 else 'have'}"
                f" none in '{one.key}'; they are on neither side."
            )
        if one.unreadable:
            yield (
                f"{one.task}: {counted(one.unreadable, 'item')}"
                f" {'has' if one.unreadable == 1 else 'have'} something in '{one.key}'"
                " that is not a date such as 2024-06-15; they are on neither side."
            )
        if one.shared_clusters:
            yield (
                f"{one.task}: {one.shared_clusters:,} clusters have items on both sides"
                " of the cut-off; the test treats the sides as independent."
            )
    if known := [one.task for one in report.cut_offs if one.key == "known_since"]:
        tasks = ", ".join(known)
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
    whole = whole_drops(report.drops)
    if unchecked := sum(one.unchecked for one in whole):
        yield (
            f"{unchecked:,} of {sum(one.rewrites for one in whole):,} rewrites were not"
            " checked by a person. Bad rewrites cause a drop of their own, among"
            " control items as often."
        )
    if any(one.check is None for one in whole):
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
    for one in overlaps:
        if one.too_short:
            yield (
                f"{one.task}: {one.too_short:,} questions of fewer than {LEAST} words"
                " were not searched in the corpus."
            )
    if overlaps:
        yield (
            f"The corpus: {overlaps[0].files:,} files with {overlaps[0].words:,} words."
            " Questions found in it may also be easier; a paired drop does not have"
            " this problem."
        )


def _cut_off_sentence(one: CutOff) -> str:
    if one.difference is None:
        side = "after" if one.after is None else "before"
        return (
            f"{one.task}: no item is dated {side} {one.date}, so there is nothing to"
            " compare."
        )
    return (
        f"{one.task}: the score on items up to {one.date}, compared with later ones,"
        f" {_compared(one.difference)}."
    )


def _overlap_sentence(one: Overlap) -> str:
    known = sum(bool(found.found) for found in one.samples.values())
    met = (
        f"{one.task}: the corpus has n-grams of {known:,} of"
        f" {len(one.samples) - one.too_short:,} questions"
    )
    if one.difference is None:
        return f"{met}, so there is nothing to compare."
    return f"{met}, and the score on them {_compared(one.difference)}."


def _compared(found: UnpairedComparison) -> str:
    size = _size(found.difference, found)
    if found.low > 0 or found.high < 0:
        return f"is {'higher' if found.difference > 0 else 'lower'} ({size})"
    return f"does not differ significantly ({size})"


def _drop_sentence(one: Drop) -> str:
    drop = one.drop
    check = one.check
    if drop.n == 0:
        return f"{one.task}: no item outside the control has a score on both wordings."
    size = _size(drop.difference, drop)
    if check is None:
        seen = "falls" if drop.verdict == "better" else "does not clearly fall"
        return (
            f"{one.task}: the score {seen} from original wordings to rewrites ({size});"
            " there is no control."
        )
    if check.control_drop.n == 0:
        return (
            f"{one.task}: no control item has a score on both wordings, so the drop of"
            f" {size} shows nothing."
        )
    excess = _size(check.excess, check)
    sign = "no sign that the original wordings were memorised"
    if check.suspicious:
        sign = "a sign that the original wordings were memorised, but not proof"
    return (
        f"{one.task}: {sign}: the drop to rewrites exceeds that of control items by"
        f" {excess}."
    )


def _size(
    value: float, found: PairedComparison | UnpairedComparison | ContaminationCheck
) -> str:
    return f"{numbers.gap(value, found)} points, {100 * found.level:g}% interval"
