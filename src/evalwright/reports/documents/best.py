"""Blocks on the best of several runs, without the luck of having been chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.best import BestRun
from evalwright.reports import document as doc
from evalwright.reports import numbers


def best_blocks(best: Sequence[BestRun]) -> list[doc.Block]:
    """A heading and sentences on the best run of each task."""
    if not best:
        return []
    sentences = [sentence for run in best for sentence in best_sentences(run)]
    return [doc.Heading("The best, and the luck of being chosen"), doc.Notes(sentences)]


def best_sentences(best: BestRun) -> Iterator[str]:
    """What the best run scores as it is, corrected, and where it was not chosen."""
    unit = " points" if best.bounded else ""
    yield (
        f"{best.task}: {best.label} is best of {best.candidates} with"
        f" {_shown(best.mean, best)} on {numbers.count(best.n)} items. Being chosen adds"
        f" about {_shown(abs(best.mean - best.corrected), best)}{unit}; on new items"
        f" expect {_shown(best.corrected, best)}."
    )
    confirmed = best.confirmed
    if confirmed is None:
        return
    estimate = confirmed.estimate
    difference = confirmed.difference
    interval = f"{_shown(estimate.low, best)} to {_shown(estimate.high, best)}"
    against = numbers.gap(difference.difference, difference, bounded=best.bounded)
    yield (
        f"{best.task}, chosen on {numbers.count(confirmed.n_chosen_on)} items and"
        f" measured on the other {numbers.count(estimate.n)}: {confirmed.label} scores"
        f" {_shown(estimate.value, best)} (95% interval {interval}); against the second,"
        f" {confirmed.second}, {against}."
    )


def _shown(number: float, best: BestRun) -> str:
    return numbers.number(
        number, "points" if best.bounded else "plain", 1 if best.bounded else 3
    )
