"""The numbers of a group, by our statistics ("corrected") or by the engine's arithmetic ("published").

Corrected: each judgment counts once, what failed is counted apart, and lost rows are said. Published: the engine's join on
`summary_uid` with its repetitions, rounded to one decimal as the engine rounds; the interval takes equal uids as one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalwright.compat.hhem.files import SLICES, Judgment
from evalwright.compat.hhem.groups import DataSet, Group
from evalwright.compat.hhem.rows import CONSISTENCY, RESPONSE, THRESHOLD, WORDS, Names, Table
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import Column, compute
from evalwright.runs.aggregation import MOST_SLICES
from evalwright.runs.results import MetricResult
from evalwright.runs.scores import hashed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate

SPECS = (
    MetricSpec("hallucination-rate", "hallucination-rate", CONSISTENCY),
    MetricSpec("factual-consistency-rate", "accuracy", CONSISTENCY),
    MetricSpec("answer-rate", "accuracy", RESPONSE),
    MetricSpec("mean-words", "mean", WORDS),
    MetricSpec("answer-rate-of-dataset", "accuracy", RESPONSE),
    MetricSpec("answer-rate-of-replies", "accuracy", RESPONSE),
)
"""The engine's four, and what its answer rate leaves out: lost rows, and that a failed request is no refusal."""

PUBLISHED_SPECS = SPECS[:4]

Metrics = tuple[MetricResult, ...]
Slices = dict[str, dict[str, Metrics]]


@dataclass(frozen=True, slots=True)
class Arrays:
    """A row for each row that counts. clusters: None where each stands alone."""

    consistency: NDArray[np.float64]
    answered: NDArray[np.float64]
    words: NDArray[np.float64]
    failed: NDArray[np.bool_]
    unasked: NDArray[np.bool_]
    clusters: NDArray[np.int64] | None

    def part(self, chosen: NDArray[np.bool_]) -> Arrays:
        """Some of the rows."""
        return Arrays(
            self.consistency[chosen],
            self.answered[chosen],
            self.words[chosen],
            self.failed[chosen],
            self.unasked[chosen],
            None if self.clusters is None else self.clusters[chosen],
        )


# -- corrected ----------------------------------------------------------------------------------------------------------


def corrected(
    names: Names, table: Table, data: DataSet, lost: int
) -> tuple[Metrics, Slices, tuple[str, ...]]:
    """The metrics, by slice too, and slice keys with too many values. lost: articles of the data set without a row."""
    import numpy as np

    arrays = Arrays(
        np.frombuffer(table.consistency),
        np.frombuffer(table.answered),
        np.frombuffer(table.words),
        np.frombuffer(table.failed, np.int8) > 0,
        np.frombuffer(table.unasked, np.int8) > 0,
        np.frombuffer(table.clusters, np.int64) if any(names.clusters) else None,
    )
    missing = _missing(names, data)
    slices: Slices = {}
    left_out = []
    for key, values in _slices(table.slices):
        if len(values) > MOST_SLICES:
            left_out.append(key)
            continue
        slices[key] = {
            value: tuple(_corrected(arrays.part(chosen), data, sum(one.get(key) == value for one in missing)))
            for value, chosen in values.items()
        }
    return tuple(_corrected(arrays, data, lost)), slices, tuple(left_out)


def _missing(names: Names, data: DataSet) -> list[Mapping[str, str]]:
    """The slices of the articles that have no row, where both are known."""
    if data.articles is None or names.articles is None:
        return []
    there = set(names.articles)
    return [found for article, found in data.articles.items() if article not in there]


def _corrected(rows: Arrays, data: DataSet, lost: int) -> Iterator[MetricResult]:
    import numpy as np

    scored = ~np.isnan(rows.consistency)
    consistency = _column(rows, rows.consistency, scored, int(rows.failed.sum()) + lost)
    everything = np.ones(len(scored), bool)
    for spec in SPECS:
        if spec.scorer == CONSISTENCY:
            column = consistency
        elif spec.scorer == WORDS:
            column = _column(rows, rows.words, ~np.isnan(rows.words), int(rows.unasked.sum()) + lost)
        elif spec.label == "answer-rate-of-dataset":
            column = _whole(rows, lost)
        elif spec.label == "answer-rate-of-replies":
            column = _column(rows, rows.answered, ~rows.unasked, int(rows.unasked.sum()) + lost)
        else:
            column = _column(rows, rows.answered, everything, lost)
        estimate = compute(spec.kind, column)
        if spec.label == "answer-rate-of-dataset":
            estimate = replace(estimate, method=f"{estimate.method}; size of the data set from {data.known}")
        yield _result(spec, estimate)


def _column(rows: Arrays, values: NDArray[np.float64], chosen: NDArray[np.bool_], n_failed: int) -> Column:
    clusters = None if rows.clusters is None else rows.clusters[chosen]
    return Column(values[chosen], {}, clusters, n_failed)


def _whole(rows: Arrays, lost: int) -> Column:
    """A row for each article of the data set, those that are lost without an answer."""
    import numpy as np

    clusters = rows.clusters
    if clusters is not None:
        alone = [hashed(f"\0lost {place}") for place in range(lost)]
        clusters = np.concatenate([clusters, np.array(alone, np.int64)])
    return Column(np.concatenate([rows.answered, np.zeros(lost)]), {}, clusters, 0)


def _slices(rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, dict[str, NDArray[np.bool_]]]]:
    """Slice key -> value -> which rows have it; keys with one value tell nothing."""
    import numpy as np

    for key in SLICES:
        found = np.array([row.get(key, "") for row in rows], dtype=object)
        values = sorted({value for value in found if value})
        if len(values) > MOST_SLICES:
            yield key, dict.fromkeys(values, np.zeros(0, bool))
        elif len(values) > 1:
            yield key, {value: np.asarray(found == value, bool) for value in values}


# -- published ----------------------------------------------------------------------------------------------------------


def published(group: Group, names: Names, data: DataSet) -> tuple[Metrics, Slices, tuple[str, ...]]:
    """The engine's numbers, by slice too; as those of `corrected`."""
    import numpy as np

    judgments = [judgment for judgment, _ in group.joined]
    copies = np.array([count for _, count in group.joined], np.int64)
    arrays = _judged(judgments, copies)
    slices: Slices = {}
    if data.articles is not None and names.articles is not None:
        place = {
            id(row.judgment): data.articles.get(article, {})
            for row, article in zip(group.rows, names.articles, strict=True)
        }
        known = [place.get(id(judgment), {}) for judgment in judgments]
        for key, values in _slices(known):
            if len(values) <= MOST_SLICES:
                slices[key] = {
                    value: tuple(_published(arrays.part(np.repeat(chosen, copies))))
                    for value, chosen in values.items()
                }
    return tuple(_published(arrays)), slices, ()


def _judged(judgments: Sequence[Judgment], copies: NDArray[np.int64]) -> Arrays:
    """The joined rows: each judgment as often as the engine counts it."""
    import numpy as np

    valid = np.array([one.valid for one in judgments], bool)
    # The engine takes a missing score for one below the threshold.
    consistent = np.array([(one.score or 0.0) >= THRESHOLD for one in judgments], float)
    words = np.array([one.words for one in judgments], float)
    uids = np.array([hashed(one.uid) for one in judgments], np.int64)
    several = len(np.unique(uids)) < int(copies.sum())
    nothing = np.zeros(int(copies.sum()), bool)
    return Arrays(
        np.repeat(np.where(valid, consistent, np.nan), copies),
        np.repeat(valid.astype(float), copies),
        np.repeat(np.where(valid, words, np.nan), copies),
        nothing,
        nothing,
        np.repeat(uids, copies) if several else None,
    )


def _published(rows: Arrays) -> Iterator[MetricResult]:
    import numpy as np

    for spec in PUBLISHED_SPECS:
        values = {CONSISTENCY: rows.consistency, RESPONSE: rows.answered, WORDS: rows.words}[spec.scorer]
        estimate = compute(spec.kind, _column(rows, values, ~np.isnan(values), 0))
        yield _result(spec, _rounded(estimate, 1.0 if spec.scorer == WORDS else 100.0))


def _rounded(estimate: Estimate, scale: float) -> Estimate:
    value = round(estimate.value * scale, 1) / scale
    return replace(
        estimate,
        value=value,
        low=min(estimate.low, value),
        high=max(estimate.high, value),
        method=f"{estimate.method}; as published: joined on summary_uid, rounded to one decimal",
    )


def _result(spec: MetricSpec, estimate: Estimate) -> MetricResult:
    return MetricResult(spec.label, spec.kind, spec.scorer, estimate)


# -- beside what was published ------------------------------------------------------------------------------------------


def differences(group: Group, metrics: Metrics) -> list[dict[str, Any]]:
    """Where our numbers, to one decimal, are not those in the engine's own statistics."""
    said = group.published
    if said is None:
        return []
    there = {
        "hallucination-rate": (said.hallucination_rate, 100.0),
        "answer-rate": (said.answer_rate, 100.0),
        "mean-words": (said.words, 1.0),
    }
    out = []
    for metric in metrics:
        value, scale = there.get(metric.label, (None, 1.0))
        ours = tenths(metric.estimate.value, scale)
        if value is not None and ours != value:
            out.append({"metric": metric.label, "ours": ours, "published": value})
    return out


def tenths(value: float, scale: float) -> float | None:
    """A number to one decimal as the engine rounds it; None for none."""
    return None if value != value else round(value * scale, 1)
