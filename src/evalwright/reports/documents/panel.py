"""Several judges of the same answers: what each passes, how far they agree, and the answers that they differ on most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.judge_validation.panels import PanelAgreement, RaterPair
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.statistics import Estimate

_PAIR_COLUMNS = (
    "Judges*", "Same verdict>", "Cohen's kappa>", "Gwet's AC1>", "Only first : only second>", "Answers>",
)  # fmt: skip


def agreement_document(found: PanelAgreement) -> doc.Document:
    """The judges, each pair, all together, and the answers in dispute."""
    raters = [
        (doc.Cell(one.name, name=True), doc.Number(one.share, "points"), numbers.count(one.share.n))
        for one in found.raters
    ]
    blocks: list[doc.Block] = [
        doc.Table(doc.columns("Judge*", "Passes [interval]", "Answers>"), raters, "Judges"),
        doc.Heading("Agreement"),
        doc.Table(doc.columns(*_PAIR_COLUMNS), [_pair(one) for one in found.pairs], "Pairs"),
        *(doc.Note(text, "quiet") for text in _notes(found)),
    ]
    if found.disputed:
        columns = [
            *doc.columns("Answer*"),
            *(doc.Column(one.name, right=True, name=True) for one in found.raters),
        ]
        rows: list[Sequence[doc.Content]] = [
            (
                doc.Cell(f"{one.task} {one.id}", name=True),
                *(numbers.number(x, "plain", 2) for x in one.values),
            )
            for one in found.disputed
        ]
        blocks += [
            doc.Heading("Answers with the largest disagreement"),
            doc.Table(columns, rows, "Disagreements"),
        ]
    return doc.Document("Agreement of judges", blocks)


def _notes(found: PanelAgreement) -> Iterator[str]:
    if len(found.raters) > 2:
        yield (
            f"All {len(found.raters)} together: same verdict {numbers.score(found.raw, 'points')}, "
            f"Gwet's AC1 {coefficient(found.ac1)}, n = {numbers.count(found.n)}."
        )
    for one in found.raters:
        if one.share.value in (0.0, 1.0):
            verdict = "passes all" if one.share.value else "passes none"
            yield (
                f"{one.name} {verdict} of these answers, so Cohen's kappa with it is 0 whatever the other judge says, "
                f"and its interval has no meaning; read Gwet's AC1 instead."
            )
    if found.n_left_out:
        yield f"{numbers.counted(found.n_left_out, 'answer')} without two verdicts left out."
    if found.n_other:
        yield f"{numbers.counted(found.n_other, 'answer')} of other runs left out: they differ from those of the first run."
    yield f"Intervals are {found.raw.level:.0%}, for answers like these; the judges are fixed."


def _pair(one: RaterPair) -> Sequence[doc.Content]:
    return (
        doc.Cell(f"{one.a}, {one.b}", name=True),
        numbers.score(one.raw, "points"),
        coefficient(one.kappa),
        coefficient(one.ac1),
        f"{numbers.count(one.only_a)} : {numbers.count(one.only_b)}",
        numbers.count(one.raw.n),
    )


def coefficient(estimate: Estimate) -> str:
    """A coefficient with two decimals and its interval."""
    if math.isnan(estimate.value):
        return numbers.NOTHING
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.2f} [{numbers.NOTHING}]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
