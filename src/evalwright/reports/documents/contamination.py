"""Documents on contamination: scores by a cut-off, drops on rewrites, overlap with a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.contamination.corpus import LEAST
from evalwright.analysis.contamination.report import (
    ContaminationReport,
    CutOff,
    Drop,
    Overlap,
    drops_over_all_kinds,
)
from evalwright.analysis.words import counted, plural
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.statistics import (
    ContaminationCheck,
    Estimate,
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
_OVERLAP_CLASSES = {
    "none": "none",
    "some": "some, under 80 of 100",
    "most": "80 of 100 and more",
}

Row = tuple[str, ...]


def contamination_document(report: ContaminationReport) -> doc.Document:
    """Build the document of one run's report; its last block is the conclusion."""
    cut_off_rows = [_cut_off_row(cut_off) for cut_off in report.cut_offs]
    drop_rows = [_drop_row(task_drop) for task_drop in report.drops]
    overlap_rows: list[Row] = []
    for overlap in report.overlaps:
        overlap_rows += _overlap_rows(overlap)
    ngram_length = report.overlaps[0].n if report.overlaps else 0

    blocks = [
        *_section(f"Before and after {report.cut_off}", _CUT_OFF_COLUMNS, cut_off_rows),
        *_section("Original against rewritten wordings", _DROP_COLUMNS, drop_rows),
        *_section(
            f"Overlap with a corpus, n = {ngram_length}", _OVERLAP_COLUMNS, overlap_rows
        ),
    ]

    notes = [
        *_cut_off_notes(report.cut_offs),
        *_drop_notes(report),
        *_overlap_notes(report.overlaps),
    ]
    if notes:
        blocks.append(doc.Notes(notes))

    conclusion = " ".join(
        [
            *map(_cut_off_sentence, report.cut_offs),
            *map(_drop_sentence, drops_over_all_kinds(report.drops)),
            *map(_overlap_sentence, report.overlaps),
        ]
    )
    tone: doc.Tone = "warn" if report.suspicious else "strong"
    blocks.append(doc.Conclusion(conclusion, tone))
    return doc.Document(f"Contamination of {report.model} (run {report.run})", blocks)


# -- tables ----------------------------------------------------------------------------


def _section(title: str, columns: Row, rows: Sequence[Row]) -> list[doc.Block]:
    """Build a heading and its table; nothing where there are no rows."""
    if not rows:
        return []
    return [doc.Heading(title), doc.Table(doc.columns(*columns), rows, title)]


def _cut_off_row(cut_off: CutOff) -> Row:
    before = _score_with_n(cut_off.before)
    after = _score_with_n(cut_off.after)
    difference = numbers.NOTHING
    p_value = numbers.NOTHING
    if cut_off.difference is not None:
        difference = numbers.gap(cut_off.difference.difference, cut_off.difference)
        p_value = numbers.p_value(cut_off.difference.p_value)
    return (cut_off.task, cut_off.key, before, after, difference, p_value)


def _score_with_n(estimate: Estimate | None) -> str:
    if estimate is None:
        return numbers.NOTHING
    return f"{numbers.score(estimate, 'points')}, n = {numbers.count(estimate.n)}"


def _drop_row(task_drop: Drop) -> Row:
    drop = task_drop.drop
    return (
        task_drop.task,
        task_drop.kind,
        numbers.points(drop.mean_a),
        numbers.points(drop.mean_b),
        numbers.gap(drop.difference, drop),
        numbers.count(drop.n),
        *_control_cells(task_drop.check),
    )


def _control_cells(check: ContaminationCheck | None) -> Row:
    """Show the drop on the control items, and how far the other items' drop exceeds it."""
    if check is None:
        return (numbers.NOTHING, "0", numbers.NOTHING, numbers.NOTHING)
    control_drop = check.control_drop
    return (
        numbers.gap(control_drop.difference, control_drop),
        numbers.count(control_drop.n),
        numbers.gap(check.excess, check),
        numbers.p_value(check.p_value),
    )


def _overlap_rows(overlap: Overlap) -> Iterator[Row]:
    for name, estimate in overlap.classes.items():
        if estimate is None:
            continue
        n_questions = numbers.count(estimate.n + estimate.n_missing)
        score = numbers.score(estimate, "points")
        yield (overlap.task, _OVERLAP_CLASSES[name], n_questions, score)

    if overlap.difference is not None:
        difference = numbers.gap(overlap.difference.difference, overlap.difference)
        p_value = numbers.p_value(overlap.difference.p_value)
        yield (
            overlap.task,
            "some or most, minus none",
            "",
            f"{difference}, p = {p_value}",
        )


# -- notes -----------------------------------------------------------------------------


def _cut_off_notes(cut_offs: Sequence[CutOff]) -> Iterator[str]:
    for cut_off in cut_offs:
        if cut_off.across or cut_off.undated:
            yield (
                f"{cut_off.task}: {counted(cut_off.across, 'item')}"
                f" {plural(cut_off.across, 'has', 'have')} a date on both sides of the"
                f" cut-off and {cut_off.undated:,}"
                f" {plural(cut_off.undated, 'has', 'have')} none in '{cut_off.key}';"
                " they are on neither side."
            )
        if cut_off.unreadable:
            yield (
                f"{cut_off.task}: {counted(cut_off.unreadable, 'item')}"
                f" {plural(cut_off.unreadable, 'has', 'have')} something in"
                f" '{cut_off.key}' that is not a date such as 2024-06-15; they are on"
                " neither side."
            )
        if cut_off.shared_clusters:
            yield (
                f"{cut_off.task}: {cut_off.shared_clusters:,} clusters have items on"
                " both sides of the cut-off; the test treats the sides as independent."
            )

    tasks = [cut_off.task for cut_off in cut_offs if cut_off.key == "known_since"]
    if tasks:
        yield (
            f"{', '.join(tasks)}: divided by 'known_since', when the answer became"
            " known: a difference shows what the model can know, not that it has"
            " memorised questions."
        )
    if cut_offs:
        yield (
            "The questions before and after the cut-off are different ones, and may"
            " differ in difficulty."
        )


def _drop_notes(report: ContaminationReport) -> Iterator[str]:
    drops = drops_over_all_kinds(report.drops)
    n_unchecked = sum(task_drop.unchecked for task_drop in drops)
    n_rewrites = sum(task_drop.rewrites for task_drop in drops)
    if n_unchecked:
        yield (
            f"{n_unchecked:,} of {n_rewrites:,} rewrites were not checked by a person."
            " Bad rewrites cause a drop of their own, among control items as often."
        )

    if any(task_drop.check is None for task_drop in drops):
        remedy = "Give --cut-off or --control"
        if report.cut_off:
            remedy = "The cut-off has no items after it"
        yield (
            "Without control items a drop shows only that rewrites are harder."
            f" {remedy}: questions that the model cannot have seen, rewritten in the"
            " same way."
        )


def _overlap_notes(overlaps: Sequence[Overlap]) -> Iterator[str]:
    for overlap in overlaps:
        if overlap.too_short:
            yield (
                f"{overlap.task}: {overlap.too_short:,} questions of fewer than"
                f" {LEAST} words were not searched in the corpus."
            )
    if overlaps:
        yield (
            f"The corpus: {overlaps[0].files:,} files with {overlaps[0].words:,} words."
            " Questions found in it may also be easier; a paired drop does not have"
            " this problem."
        )


# -- the conclusion --------------------------------------------------------------------


def _cut_off_sentence(cut_off: CutOff) -> str:
    if cut_off.difference is None:
        empty_side = "after" if cut_off.after is None else "before"
        return (
            f"{cut_off.task}: no item is dated {empty_side} {cut_off.date}, so there is"
            " nothing to compare."
        )
    return (
        f"{cut_off.task}: the score on items up to {cut_off.date}, compared with later"
        f" ones, {_direction(cut_off.difference)}."
    )


def _overlap_sentence(overlap: Overlap) -> str:
    n_in_corpus = sum(bool(sample.found) for sample in overlap.samples.values())
    n_searched = len(overlap.samples) - overlap.too_short
    counts = (
        f"{overlap.task}: the corpus has n-grams of {n_in_corpus:,} of {n_searched:,}"
        " questions"
    )
    if overlap.difference is None:
        return f"{counts}, so there is nothing to compare."
    return f"{counts}, and the score on them {_direction(overlap.difference)}."


def _direction(comparison: UnpairedComparison) -> str:
    """Say "is higher (...)", "is lower (...)", or that there is no significant difference."""
    difference = _with_interval(comparison.difference, comparison)
    if comparison.low > 0 or comparison.high < 0:
        direction = "higher" if comparison.difference > 0 else "lower"
        return f"is {direction} ({difference})"
    return f"does not differ significantly ({difference})"


def _drop_sentence(task_drop: Drop) -> str:
    task = task_drop.task
    drop = task_drop.drop
    check = task_drop.check
    if drop.n == 0:
        return f"{task}: no item outside the control has a score on both wordings."

    drop_text = _with_interval(drop.difference, drop)
    if check is None:
        verb = "falls" if drop.verdict == "better" else "does not clearly fall"
        return (
            f"{task}: the score {verb} from original wordings to rewrites"
            f" ({drop_text}); there is no control."
        )
    if check.control_drop.n == 0:
        return (
            f"{task}: no control item has a score on both wordings, so the drop of"
            f" {drop_text} shows nothing."
        )

    sign = "no sign that the original wordings were memorised"
    if check.suspicious:
        sign = "a sign that the original wordings were memorised, but not proof"
    excess = _with_interval(check.excess, check)
    return (
        f"{task}: {sign}: the drop to rewrites exceeds that of control items by"
        f" {excess}."
    )


def _with_interval(
    difference: float,
    comparison: PairedComparison | UnpairedComparison | ContaminationCheck,
) -> str:
    gap = numbers.gap(difference, comparison)
    return f"{gap} points, {100 * comparison.level:g}% interval"
