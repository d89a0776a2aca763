"""Turns records into numbers: compact columns of scores, and the metrics over them.

A column grows by a few dozen bytes per sample. Results do not depend on the order in which
samples finished: columns are first sorted by sample and draw.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import Failure, reason_of
from evalwright.core.outcomes import OUTCOMES, TOO_LONG
from evalwright.core.responses import Usage
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.metrics.registry import BOUNDED, MEANS, Column, compute, slice_keys
from evalwright.runs.results import (
    SELDOM,
    MetricResult,
    TaskResult,
    is_lower_by_class,
)
from evalwright.runs.score_tables import (
    MOST_VALUES,
    ItemColumns,
    ScoreTable,
    Sparse,
    Values,
    starts,
)
from evalwright.runs.scores import NAN, row_content, sample_content
from evalwright.runs.trajectories import KEY as TRAJECTORIES
from evalwright.runs.trajectories import TrajectoryTally
from evalwright.scorers.registry import JUDGE_FAILED, JUDGE_READ
from evalwright.statistics import Estimate
from evalwright.tasks.panels import is_of_panel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LABELS = 1000
"""Most distinct labels of one scorer that are recorded; with more they are not classes."""

NOTHING = 0
MISSING = 1
"""Why a record has no score.

NOTHING: the scorer does not apply. MISSING: there is no answer, through no fault of the model.
"""


class ScoreColumn:
    """One scorer's values and their named parts, a row per record; nan where there is none.

    Attributes:
        values: the scores.
        missing: MISSING or NOTHING for an absent value; NOTHING also where there is one.
        unsure: whether a careful reader might dispute the value.
        parts: further numbers of the scores by name.
        items: the scores' items by row, for metrics over texts.
        item_names: all keys of these items.
        labels: the scores' labels.
        reasons: what failed, where something did.
    """

    def __init__(self) -> None:
        self.values = array("d")
        self.missing = array("b")
        self.unsure = array("b")
        self.parts: dict[str, Sparse] = {}
        self.items: dict[int, Mapping[str, Any]] = {}
        self.item_names: dict[str, None] = {}
        self.labels = Values(MOST_LABELS)
        self.reasons = Values(MOST_LABELS)

    def add_none(self, why: int, failure: Failure | None = None) -> None:
        """Append a record without a score."""
        if failure is not None:
            self.reasons.add(len(self.values), f"{failure.kind}: {failure.message}")
        self.values.append(NAN)
        self.missing.append(why)
        self.unsure.append(False)

    def add(
        self,
        row: int,
        value: float,
        parts: Any,
        item: Mapping[str, Any] | None = None,
        label: str = "",
        unsure: bool = False,
    ) -> None:
        """Append the score of record `row`.

        Items are kept in full, because metrics over texts need them all at once.
        """
        self.values.append(value)
        self.missing.append(NOTHING)
        self.unsure.append(unsure)
        self.labels.add(row, label)
        if item:
            self.items[row] = item
            self.item_names.update(dict.fromkeys(item))
        for name, part in parts.items():
            column = self.parts.get(name)
            if column is None:
                column = self.parts[name] = Sparse("d", NAN)
            column.put(row, float(part))


class AnswersUsage:
    """Tokens and cost of the answers in a run's records, no matter which run paid for them.

    It also counts the answers without a known price.
    """

    def __init__(self) -> None:
        self._usage = Usage()
        self._saved_draws = 0
        self._unpriced = 0
        self._cost: float | None = None
        self._trajectories = TrajectoryTally()

    def add(self, record: SampleRecord) -> None:
        """Add one record."""
        self._trajectories.add(record)
        if record.answer is not None:
            self._usage = self._usage + record.answer.usage
            self._saved_draws += record.answer.strategy.get("saved_draws", 0)
            for response in record.answer.responses:
                if response.cost is not None:
                    self._cost = (self._cost or 0.0) + response.cost
                elif response.finish_reason != TOO_LONG:  # not billed
                    self._unpriced += 1

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        priced = {} if self._cost is None else {"cost": round(self._cost, 12)}
        missing = (
            {"unpriced": self._unpriced}
            if self._cost is not None and self._unpriced
            else {}
        )
        saved = {"saved_draws": self._saved_draws} if self._saved_draws else {}
        tally = self._trajectories.as_dict()
        trajectories = {TRAJECTORIES: tally} if tally else {}
        return {**self._usage.as_dict(), **priced, **missing, **saved, **trajectories}


class TaskTally(ItemColumns):
    """Accumulates the records of one task as they finish; `result` computes the metrics.

    Args:
        scorers: the columns of scores.
        slices: metadata keys; the metrics are also computed for each of their values.
        records: records that exist already.
    """

    def __init__(
        self,
        scorers: Sequence[str],
        slices: Sequence[str],
        records: Iterable[SampleRecord] = (),
    ) -> None:
        super().__init__(slices)
        self.indices = array("q")
        self.draws = array("i")
        self.scores = {name: ScoreColumn() for name in scorers}
        self.has_failed = array("b")
        self.failures: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        for record in records:
            self.add(record)

    def add(self, record: SampleRecord) -> None:
        """Add one record."""
        row = len(self.indices)
        sample = record.sample
        self.indices.append(record.index)
        self.draws.append(record.draw)
        self.add_item(sample.id, sample.cluster, sample_content(sample))
        for key, column in self.slices.items():
            if (value := sample.metadata.get(key)) is not None:
                column.add(row, value)
        for name, scores in self.scores.items():
            score = record.scores.get(name)
            if score is None:
                failure = record.failure or record.score_failures.get(name)
                scores.add_none(NOTHING if failure is None else MISSING, failure)
            else:
                scores.add(
                    row,
                    score.value,
                    score.parts,
                    score.item,
                    score.label,
                    bool(score.unsure),
                )
        self.has_failed.append(record.failure is not None)
        self.outcomes[record.outcome] += 1
        if record.failure is not None:
            self.failures[record.failure.label] += 1
        for failure in record.score_failures.values():
            self.failures[failure.label] += 1

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add one line of the record, as `Run.rows` yields it.

        Lines of the first schema have no outcome, and none is counted for them.
        """
        count = len(self.indices)
        self.indices.append(row["index"])
        self.draws.append(row["draw"])
        self.add_item(row["id"], row.get("cluster"), row_content(row))
        metadata = row.get("metadata") or {}
        for key, column in self.slices.items():
            if (value := metadata.get(key)) is not None:
                column.add(count, value)
        score_failures = row.get("score_failures") or {}
        for name, scores in self.scores.items():
            score = row["scores"].get(name)
            if score is None:
                missing = bool(row.get("failure")) or name in score_failures
                scores.add_none(MISSING if missing else NOTHING)
                continue
            value = score["value"]
            parts = score.get("parts") or {}
            value = NAN if value is None else value
            label = score.get("label") or ""
            unsure = bool(score.get("unsure"))
            scores.add(count, value, parts, score.get("item"), label, unsure)
        self.has_failed.append(bool(row.get("failure")))
        if outcome := row.get("outcome"):
            self.outcomes[outcome] += 1
        for failure in filter(None, [row.get("failure"), *score_failures.values()]):
            judged = "judge: " if failure["party"] == "judge" else ""
            self.failures[judged + failure["kind"]] += 1

    def table(self) -> ScoreTable:
        """Return the scores by hashed id, in the form in which comparisons read them."""
        import numpy as np

        scores = {
            name: np.frombuffer(column.values, np.float64)
            for name, column in self.scores.items()
        }
        missing = {
            name: np.frombuffer(column.missing, np.int8) > 0
            for name, column in self.scores.items()
        }
        unsure = {
            name: np.frombuffer(column.unsure, np.int8) > 0
            for name, column in self.scores.items()
        }
        return self.with_scores(
            scores, missing, unsure, all_keys=False, places=(self.draws, self.indices)
        )

    def names(self) -> dict[str, list[str]]:
        """Return the names of the parts and items of the scores, by scorer."""
        return {
            name: list(dict.fromkeys([*scores.parts, *scores.item_names]))
            for name, scores in self.scores.items()
        }

    def result(
        self, name: str, version: str, metrics: Sequence[MetricSpec]
    ) -> TaskResult:
        """Compute the task's metrics over all its records, and by slice."""
        import numpy as np

        order = np.lexsort(
            (np.frombuffer(self.draws, np.int32), np.frombuffer(self.indices, np.int64))
        )
        first = starts(np.frombuffer(self.indices, np.int64)[order])
        overall = self._metrics(order, metrics)
        slices: dict[str, dict[str, tuple[MetricResult, ...]]] = {}
        left_out = []
        for key, column in self.slices.items():
            if len(column.names) > MOST_VALUES:
                left_out.append(key)
            elif len(column.names) > 1:
                codes = column.codes_of(len(order)).codes[order]
                slices[key] = {
                    value: self._metrics(order[codes == code], metrics)
                    for value, code in sorted(column.names.items())
                }
        failures = dict(sorted(self.failures.items()))
        outcomes: dict[str, int] = {
            outcome: self.outcomes[outcome]
            for outcome in OUTCOMES
            if self.outcomes[outcome]
        }
        n_missing, n_unsure = self._counts(order, first)
        details = slices, failures, tuple(left_out), n_unsure, outcomes
        n_judged, n_judge_failed = (
            self._count_part(part_name) for part_name in (JUDGE_READ, JUDGE_FAILED)
        )
        return TaskResult(
            name,
            version,
            len(first),
            n_missing,
            overall,
            *details,
            n_judged,
            n_judge_failed,
        )

    def _count_part(self, name: str) -> int:
        """Count the scores that have a part of this name."""
        import numpy as np

        columns = [
            scores.parts[name]
            for scores in self.scores.values()
            if name in scores.parts
        ]
        return sum(
            int((~np.isnan(column.padded(len(self.indices)))).sum())
            for column in columns
        )

    def _counts(
        self, rows: NDArray[np.int64], first: NDArray[np.int64]
    ) -> tuple[int, int]:
        """Count missing items and unsure items.

        An item is missing if at least one scorer has no value in any draw, and unsure if one draw
        has an unsure score. Without any scorer (a log whose samples all failed before scoring) an
        item is missing if all its draws failed. `first` has the position at which each item's rows
        begin.
        """
        import numpy as np

        missing = np.zeros(len(first), dtype=bool)
        unsure = np.zeros(len(first), dtype=bool)
        if not self.scores and len(first):
            has_failed = np.frombuffer(self.has_failed, np.int8)[rows] > 0
            missing = np.asarray(np.logical_and.reduceat(has_failed, first))
        for scores in self.scores.values():
            missing |= _missing_items(scores, rows, first)
            unsure |= _unsure_items(scores, rows, first)
        return int(missing.sum()), int(unsure.sum())

    def failed_rows(self, scorer: str) -> NDArray[np.bool_]:
        """Return a mask of the records that have no score because something failed."""
        import numpy as np

        failed: NDArray[np.bool_] = (
            np.frombuffer(self.scores[scorer].missing, np.int8) == MISSING
        )
        return failed

    def _metrics(
        self, rows: NDArray[np.int64], metrics: Sequence[MetricSpec]
    ) -> tuple[MetricResult, ...]:
        columns: dict[str, Column] = {}
        results = []
        for spec in metrics:
            if spec.scorer not in columns:
                scorer_specs = [
                    other_spec
                    for other_spec in metrics
                    if other_spec.scorer == spec.scorer
                ]
                keys = [
                    key
                    for scorer_spec in scorer_specs
                    for key in slice_keys(scorer_spec.kind, scorer_spec.options)
                ]
                columns[spec.scorer] = self.column(spec.scorer, rows, keys)
            estimate = estimate_of(spec, columns[spec.scorer])
            results.append(
                MetricResult(
                    spec.label,
                    spec.kind,
                    spec.scorer,
                    estimate,
                    spec.lower_is_better or is_lower_by_class(spec.kind, spec.options),
                )
            )
        return tuple(results)

    def column(
        self, scorer: str, rows: NDArray[np.int64], slices: Sequence[str] = ()
    ) -> Column:
        """Build the Column of one scorer over some records.

        Args:
            scorer: the scorer's name.
            rows: the records, in the order of sample and draw.
            slices: metadata keys to include.
        """
        import numpy as np

        from evalwright.statistics.units import row_means

        scores = self.scores[scorer]
        total = len(self.indices)
        item_indices = np.frombuffer(self.indices, np.int64)[rows]
        values = np.frombuffer(scores.values, np.float64)[rows]
        first = starts(item_indices)
        counts = np.diff(np.r_[first, item_indices.size])
        width = int(counts.max()) if counts.size else 1
        draws = _spread(values, first, counts, width)
        is_scored = ~np.isnan(draws).all(axis=1)
        missing = _missing_items(scores, rows, first)
        unsure = _unsure_items(scores, rows, first)

        def spread(column: NDArray[Any]) -> NDArray[np.float64]:
            return _spread(column[rows], first, counts, width)[is_scored]

        part_draws = {
            name: spread(part_column.padded(total))
            for name, part_column in scores.parts.items()
        }
        label_names = scores.labels.names
        codes = scores.labels.codes_of(total).codes
        labels = (
            np.nan_to_num(spread(codes), nan=-1.0).astype(np.int32)
            if label_names
            else None
        )
        clusters = (
            np.frombuffer(self.clusters, np.int64)[rows][first]
            if self.clustered
            else None
        )
        slice_columns = {
            key: column
            for key, column in self.slices.items()
            if key in slices and column.few
        }
        return Column(
            slices={
                key: (
                    slice_column.codes_of(total).codes[rows][first][is_scored],
                    tuple(slice_column.names),
                )
                for key, slice_column in slice_columns.items()
            },
            values=row_means(draws[is_scored]),
            parts={
                name: row_means(draw_values) for name, draw_values in part_draws.items()
            },
            clusters=None if clusters is None else clusters[is_scored],
            missing_clusters=None if clusters is None else clusters[missing],
            n_missing=int(missing.sum()),
            unsure=unsure[is_scored],
            draws=draws[is_scored] if width > 1 else None,
            part_draws=part_draws if width > 1 else {},
            items=(
                [scores.items.get(int(row)) for row in rows[first][is_scored]]
                if scores.items
                else ()
            ),
            item_draws=(
                _item_draws(scores, spread(np.arange(total)))
                if scores.items and width > 1
                else ()
            ),
            failures=_reasons(scores, rows, total),
            labels=labels,
            label_names=tuple(label_names),
        )


def estimate_of(spec: MetricSpec, column: Column) -> Estimate:
    """Compute a metric over a column; if that fails, the estimate says why in place of a number.

    So a metric that raises an error does not lose the run.
    """
    estimate = _computed(spec, column)
    # A tie of a panel makes its score unsure, not what one of its judges said.
    n_unsure = 0 if is_of_panel(spec) else column.n_unsure
    if not n_unsure or math.isnan(estimate.value):
        return estimate
    return replace(
        estimate, n_unsure=n_unsure, unsure_range=_unsure_range(spec, column, estimate)
    )


def _unsure_range(
    spec: MetricSpec, column: Column, estimate: Estimate
) -> tuple[float, float] | None:
    """The metric if all unsure scores were the worst possible, and the best possible.

    None where the range of a score is unknown.
    """
    if spec.kind not in BOUNDED or spec.kind not in MEANS:
        return None
    ends = []
    for end in (0.0, 1.0):
        value = _computed(spec, column.with_unsure_at(end)).value
        if math.isnan(value):
            return None
        ends.append(value)
    low = min(ends)
    high = max(ends)
    return min(low, estimate.value), max(high, estimate.value)


def _computed(spec: MetricSpec, column: Column) -> Estimate:
    try:
        return (
            spec.function(column)
            if spec.function
            else compute(spec.kind, column, spec.options)
        )
    except Exception as error:
        return Estimate.none(f"no number: {reason_of(error)}", column.n_missing)


def _missing_items(
    scores: ScoreColumn, rows: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which items have no score in any draw and are missing in one, (items,).

    `first` has the position at which each item's rows begin.
    """
    import numpy as np

    if not len(first):
        return np.zeros(0, bool)
    is_scored = np.logical_or.reduceat(
        ~np.isnan(np.frombuffer(scores.values, np.float64)[rows]), first
    )
    is_missing = np.frombuffer(scores.missing, np.int8)[rows] == MISSING
    return np.asarray(np.logical_or.reduceat(is_missing, first) & ~is_scored)


def _unsure_items(
    scores: ScoreColumn, rows: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which items have an unsure score in any draw, (items,).

    `first` has the position at which each item's rows begin.
    """
    import numpy as np

    if not len(first):
        return np.zeros(0, bool)
    return np.asarray(
        np.logical_or.reduceat(np.frombuffer(scores.unsure, np.int8)[rows] > 0, first)
    )


def _item_draws(scores: ScoreColumn, places: NDArray[np.float64]) -> list[list[Any]]:
    """Collect the scores' items by sample and draw.

    `places` has the record of each sample and draw, (samples, draws), nan where there is none.
    """
    return [
        [
            scores.items.get(int(record_index))
            if record_index == record_index
            else None
            for record_index in of_item
        ]
        for of_item in places
    ]


def _reasons(
    scores: ScoreColumn, rows: NDArray[np.int64], total: int
) -> tuple[str, ...]:
    """List why scores of these records are missing, each reason once, in order of appearance."""
    if not scores.reasons.names:
        return ()
    names = tuple(scores.reasons.names)
    codes = scores.reasons.codes_of(total).codes[rows]
    return tuple(dict.fromkeys(names[code] for code in codes[codes >= 0].tolist()))


def _spread(
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
) -> NDArray[np.float64]:
    """Arrange rows grouped by item as (items, width), nan where an item has fewer draws."""
    import numpy as np

    if width == 1:
        return values.reshape(-1, 1)
    grouped = np.full((first.size, width), NAN)
    item_of_row = np.repeat(np.arange(first.size), counts)
    grouped[item_of_row, np.arange(values.size) - np.repeat(first, counts)] = values
    return grouped


def derived_task(
    task: Mapping[str, Any], tally: TaskTally, metrics: Sequence[MetricSpec]
) -> dict[str, Any]:
    """Replace the results in a task's record by those of other metrics or scores."""
    # A result omits these keys when they are empty, so the old ones must be removed.
    unchanged = {key: value for key, value in task.items() if key not in SELDOM}
    return {
        **unchanged,
        **tally.result(task["name"], task["version"], metrics).as_dict(),
    }


def rules_record(
    scorers: Sequence[Scorer], metrics: Sequence[MetricSpec]
) -> dict[str, Any]:
    """Return what `run.json` records about how answers were scored."""
    return {
        "scorers": [
            {"name": scorer.name, "kind": scorer.kind, "options": dict(scorer.options)}
            for scorer in scorers
        ],
        "metric_specs": [
            {
                "label": metric.label,
                "kind": metric.kind,
                "scorer": metric.scorer,
                "options": dict(metric.options),
            }
            | ({"lower_is_better": True} if metric.lower_is_better else {})
            | ({"value_range": list(metric.value_range)} if metric.value_range else {})
            for metric in metrics
        ],
    }
