"""Computes a group's metrics, "corrected" by our statistics or "published" by the engine's.

Corrected: each judgment counts once, failures are counted separately, and lost rows are reported.
Published: the engine's join on `summary_uid` with its repetitions, rounded to one decimal; for the
interval, equal uids are one cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright import Failure, Sample, SampleRecord, Score
from evalwright.compat.hhem.engine_files import SLICES
from evalwright.compat.hhem.groups import DataSet, Group
from evalwright.compat.hhem.outcomes import FAILED
from evalwright.compat.hhem.summary_rows import (
    CONSISTENCY,
    RESPONSE,
    TASK,
    THRESHOLD,
    WORDS,
    Names,
)
from evalwright.extend import MetricResult, MetricSpec, TaskResult, TaskTally

SPECS = (
    MetricSpec("hallucination-rate", "hallucination-rate", CONSISTENCY),
    MetricSpec("factual-consistency-rate", "accuracy", CONSISTENCY),
    MetricSpec("answer-rate", "accuracy", RESPONSE),
    MetricSpec("mean-words", "mean", WORDS),
    MetricSpec("answer-rate-of-dataset", "accuracy", RESPONSE),
    MetricSpec("answer-rate-of-replies", "accuracy", RESPONSE),
)
"""The engine's four metrics, and answer rates over the whole data set and over replies only.

The engine's answer rate leaves out lost rows, and counts a failed request as a refusal.
"""

PUBLISHED_SPECS = SPECS[:4]

_OF_DATASET = "answer-rate-of-dataset"
_OF_REPLIES = "answer-rate-of-replies"
_LOST = Failure("row lost", "dataset", "The files have no row of this article.")


def compute_result(
    group: Group,
    names: Names,
    dataset: DataSet,
    records: Sequence[SampleRecord],
    n_lost: int,
    scoring: str,
) -> TaskResult:
    """Compute the task's result, also by slice. lost: number of articles without a row."""
    specs: Sequence[MetricSpec]
    if scoring == "published":
        tally = TaskTally((CONSISTENCY, RESPONSE, WORDS), SLICES)
        counted = _engine_rows(group, names, dataset)
        specs = PUBLISHED_SPECS
        finished = _round_as_engine
    else:
        tally = TaskTally(
            (CONSISTENCY, RESPONSE, WORDS, _OF_DATASET, _OF_REPLIES), SLICES
        )
        counted = _corrected_rows(names, dataset, records, n_lost)
        # The last two are of the same scores as the answer rate, over other rows.
        specs = (*SPECS[:4], *(replace(spec, scorer=spec.label) for spec in SPECS[4:]))

        def finished(metric: MetricResult) -> MetricResult:
            if metric.label == _OF_DATASET:
                method = (
                    f"{metric.estimate.method}; size of the data set from"
                    f" {dataset.size_source}"
                )
                metric = replace(
                    metric, estimate=replace(metric.estimate, method=method)
                )
            return (
                replace(metric, scorer=RESPONSE)
                if metric.scorer == metric.label
                else metric
            )

    for record in counted:
        tally.add(record)
    task_result = _map_metrics(tally.result(TASK, "1", specs), finished)
    kinds = [
        record.score_failures[CONSISTENCY].kind
        for record in records
        if record.score_failures
    ]
    failures = Counter([*kinds, *[_LOST.kind] * n_lost])
    n = len(group.rows) + n_lost
    n_missing = failures.total()
    return replace(
        task_result,
        n_samples=n,
        n_missing=n_missing,
        failures=dict(sorted(failures.items())),
    )


def _map_metrics(
    task_result: TaskResult, change: Callable[[MetricResult], MetricResult]
) -> TaskResult:
    slices = {
        key: {value: tuple(map(change, metrics)) for value, metrics in by_value.items()}
        for key, by_value in task_result.slices.items()
    }
    return replace(
        task_result, metrics=tuple(map(change, task_result.metrics)), slices=slices
    )


def _corrected_rows(
    names: Names, dataset: DataSet, records: Sequence[SampleRecord], n_lost: int
) -> Iterator[SampleRecord]:
    """Yield each row once, and a failed record for each lost article."""
    for record in records:
        answered = record.scores[RESPONSE]
        scores = {**record.scores, _OF_DATASET: answered, _OF_REPLIES: answered}
        failures = dict(record.score_failures)
        if answered.label == FAILED:  # there was no reply
            del scores[_OF_REPLIES]
            failures |= dict.fromkeys((WORDS, _OF_REPLIES), failures[CONSISTENCY])
        yield replace(record, scores=scores, score_failures=failures)
    missing: list[Mapping[str, str]] = [{}] * n_lost
    if dataset.articles is not None and names.articles is not None:
        articles_with_rows = set(names.articles)
        missing = [
            article_slices
            for article, article_slices in dataset.articles.items()
            if article not in articles_with_rows
        ]
    failed = dict.fromkeys((CONSISTENCY, RESPONSE, WORDS, _OF_REPLIES), _LOST)
    for offset, slices in enumerate(missing):
        sample = Sample(f"\0lost {offset}", metadata=slices)
        scores = {_OF_DATASET: Score(0.0)}
        yield SampleRecord(
            TASK, len(records) + offset, 0, sample, None, scores, score_failures=failed
        )


def _engine_rows(
    group: Group, names: Names, dataset: DataSet
) -> Iterator[SampleRecord]:
    """Yield each judgment as often as the engine's join counts it."""
    slices: dict[int, Mapping[str, str]] = {}
    if dataset.articles is not None and names.articles is not None:
        for row, article in zip(group.rows, names.articles, strict=True):
            slices[id(row.judgment)] = dataset.articles.get(article, {})
    has_repeats = len({judgment.uid for judgment, _ in group.joined}) < sum(
        copies for _, copies in group.joined
    )
    index = 0
    for judgment, copies in group.joined:
        scores = {RESPONSE: Score(float(judgment.valid))}
        if judgment.valid:
            # The engine takes a missing score for one below the threshold.
            scores[CONSISTENCY] = Score(float((judgment.score or 0.0) >= THRESHOLD))
            scores[WORDS] = Score(float(judgment.words))
        cluster = judgment.uid if has_repeats else ""
        for _ in range(copies):
            sample = Sample(
                str(index), cluster=cluster, metadata=slices.get(id(judgment), {})
            )
            yield SampleRecord(TASK, index, 0, sample, None, scores)
            index += 1


def _round_as_engine(metric: MetricResult) -> MetricResult:
    estimate = metric.estimate
    scale = 1.0 if metric.scorer == WORDS else 100.0
    value = round(estimate.value * scale, 1) / scale
    low = min(estimate.low, value)
    high = max(estimate.high, value)
    method = (
        f"{estimate.method}; as published: joined on summary_uid, rounded to one"
        " decimal"
    )
    return replace(
        metric,
        estimate=replace(estimate, value=value, low=low, high=high, method=method),
    )


# -- beside what was published ---------------------------------------------------------


def differences(group: Group, metrics: Sequence[MetricResult]) -> list[dict[str, Any]]:
    """List our numbers, to one decimal, that differ from the engine's own statistics."""
    published = group.published
    if published is None:
        return []
    published_values = {
        "hallucination-rate": (published.hallucination_rate, 100.0),
        "answer-rate": (published.answer_rate, 100.0),
        "mean-words": (published.avg_word_count, 1.0),
    }
    differing = []
    for metric in metrics:
        value, scale = published_values.get(metric.label, (None, 1.0))
        our_value = round_to_tenth(metric.estimate.value, scale)
        if value is not None and our_value != value:
            differing.append(
                {"metric": metric.label, "ours": our_value, "published": value}
            )
    return differing


def round_to_tenth(value: float, scale: float) -> float | None:
    """Scale and round to one decimal as the engine does; None for nan."""
    return None if value != value else round(value * scale, 1)
