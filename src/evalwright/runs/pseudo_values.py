"""Item or group values for metrics that are not means of their scores, for use in comparisons.

A share of a label or of a class is the mean of other values of its items, and is compared by
these. Macro-F1, a perplexity or a corpus chrF is not: it gets jackknife pseudo-values over
groups of clusters (`statistics.jackknife`), which replace items. The groups are the same in all
runs. The metric without each group is computed from sums where the metric is a function of sums
(`metrics.registry`), and otherwise from the records of the other groups.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import EvalwrightError, reason_of
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import (
    FAILED_IS_ZERO,
    Groups,
    group_sums,
    is_built_in,
    is_known,
    item_values,
    slice_keys,
)
from evalwright.runs.aggregation import TaskTally, estimate_of
from evalwright.runs.reader import Run
from evalwright.runs.records import record_from
from evalwright.runs.results import MetricResult
from evalwright.runs.scores import read_rows
from evalwright.statistics import Estimate
from evalwright.tasks.dialects import dialect_of, is_dialect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAME = 1e-6
"""Relative difference (absolute below 1) up to which two numbers count as equal."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """One run's metric over some items: its value, and a pseudo-value for each group.

    `problem` says why there are no pseudo-values; it is "" where there are.
    """

    estimate: Estimate
    values: NDArray[np.float64]
    problem: str = ""


class Record:
    """The records of one task in one run, for one of its metrics.

    Args:
        run: the run.
        task: the task's name.
        metric: the metric as the first of the compared runs has it.
    """

    def __init__(self, run: Run, task: str, metric: MetricResult) -> None:
        self.run = run
        self.task = task
        self.result = metric
        self.first: Mapping[str, Any] | None = None
        self.keys = [
            key
            for spec in run.metric_specs(task)
            for key in slice_keys(spec.kind, spec.options)
        ]
        self.tally = TaskTally([metric.scorer], self.keys)
        # in place of a cluster there is an item's group, or the item itself
        self.tally.clustered = True

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a record."""
        if self.first is None and "answer" in row:
            self.first = row.get("metadata", {})
        self.tally.add(record_from(row))

    def item_values(self, keys: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Compute the values (items,) whose mean the metric is, nan for failed items.

        `keys` are the hashed ids of the items. Returns None where the metric is no such mean.
        """
        import numpy as np

        from evalwright.statistics.units import row_means

        row_keys = np.frombuffer(self.tally.keys, np.int64)
        order, _ = self._ordered(row_keys)
        try:
            spec = self._spec()
            column = self.tally.column(spec.scorer, order)
            column_values = (
                None if spec.function else item_values(spec.kind, column, spec.options)
            )
        except EvalwrightError:
            return None
        if column_values is None:
            return None
        values_by_item = np.full(len(keys), np.nan)
        if spec.kind in FAILED_IS_ZERO:
            values_by_item[
                np.searchsorted(keys, row_keys[self.tally.failed_rows(spec.scorer)])
            ] = 0.0
        if not len(column.values) or column.clusters is None:
            return values_by_item
        values_by_item[np.searchsorted(keys, column.clusters)] = row_means(
            column_values.reshape(len(column.values), -1)
        )
        recorded = self._recorded(("", ""))
        same = recorded is None or _close(
            float(np.nanmean(values_by_item)), recorded.value
        )
        return values_by_item if same else None

    def grouped(
        self,
        keys: NDArray[np.int64],
        places: NDArray[np.intp] | None,
        groups_by_slice: Mapping[tuple[str, str], Groups],
    ) -> list[Grouped]:
        """Compute the metric over each part of the items, with pseudo-values.

        Args:
            keys: the run's own items, sorted.
            places: their positions among those of all runs, None if these are the same.
            groups_by_slice: for each part, (slice key, value) or ("", "") for all, the group of
                each item; -1 for items outside the part.
        """
        import numpy as np

        row_places = np.searchsorted(keys, np.frombuffer(self.tally.keys, np.int64))
        places = row_places if places is None else places[row_places]
        grouped = []
        for name, groups in groups_by_slice.items():
            recorded = self._recorded(name)
            try:
                grouped.append(self._part(groups.codes[places], groups.count, recorded))
            except Exception as error:  # a user's own metric may raise anything
                estimate = recorded or Estimate.none("no number")
                grouped.append(
                    Grouped(estimate, np.zeros(0), reason_of(error).rstrip("."))
                )
        return grouped

    def _recorded(self, name: tuple[str, str]) -> Estimate | None:
        """Return the run's own number, as it was recorded."""
        task = self.run.task(self.task)
        metrics = (
            task.slices.get(name[0], {}).get(name[1], ()) if name[0] else task.metrics
        )
        named = attrgetter("label", "kind", "scorer")
        return next(
            (
                metric.estimate
                for metric in metrics
                if named(metric) == named(self.result)
            ),
            None,
        )

    def _how_to_load(self, spec: MetricSpec) -> str:
        """What to load where a framework's rules or a metric are not known here, as the end of a
        sentence; "" where nothing is known to be missing.
        """
        record = self.run.record(self.task)
        framework = record["definition"].get("dialect")
        if "imported" in record["metadata"]:
            return ""
        if isinstance(framework, str) and not is_dialect(framework):
            reason = f"the dialect '{framework}', which makes it, is not loaded"
        elif framework is None and not is_known(spec):
            reason = f"the metric '{spec.kind}' is not loaded"
        else:
            return ""
        return f": {reason}. Load it with --plugin FILE, or install the package that has it"

    def _spec(self) -> MetricSpec:
        """Return the metric's definition, as recorded if it is one of ours.

        Otherwise it follows from the framework's rules: a metric of a plug-in may have the name of
        one of the framework's own.

        Raises UsageError where these are missing.
        """
        record = self.run.record(self.task)
        label_and_scorer = (self.result.label, self.result.scorer)
        dialect = dialect_of(record["definition"])
        matching = [
            spec
            for spec in self.run.metric_specs(self.task)
            if (spec.label, spec.scorer) == label_and_scorer
        ]
        if (
            dialect is not None
            and self.first is not None
            and not any(map(is_built_in, matching))
        ):
            registered = [spec for spec in matching if is_known(spec)]
            try:
                rules = dialect.rules(
                    record, self.run.data["configuration"], self.first, {"bootstrap": 0}
                )
            except EvalwrightError:
                if not registered:
                    raise
            else:
                matching = [
                    spec
                    for spec in rules.metrics_for(self.tally.names())
                    if (spec.label, spec.scorer) == label_and_scorer
                ] or registered
        return (
            matching[0]
            if matching
            else MetricSpec(label_and_scorer[0], self.result.kind, label_and_scorer[1])
        )

    def _ordered(
        self, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sort the records by sample and draw, with `codes` in place of their clusters."""
        import numpy as np

        self.tally.clusters = array("q", codes.astype(np.int64).tobytes())
        indices = np.frombuffer(self.tally.indices, np.int64)
        draws = np.frombuffer(self.tally.draws, np.int32)
        order = np.lexsort((draws, indices))
        return order, codes[order]

    def _part(
        self, codes: NDArray[np.int64], count: int, recorded: Estimate | None
    ) -> Grouped:
        """Compute the metric over the records with a code of at least 0, and without each group."""
        import numpy as np

        from evalwright.statistics.jackknife import pseudo_values

        spec = self._spec()
        order, codes = self._ordered(codes)
        order = order[codes >= 0]
        codes = codes[codes >= 0]
        column = self.tally.column(spec.scorer, order, self.keys)
        sums = None
        if spec.function is None and column.clusters is not None and len(column.values):
            sums = group_sums(
                spec.kind, column, Groups(column.clusters, count), spec.options
            )
        if sums is not None:
            table, statistic = sums
            total = table.sum(axis=0)
            overall = float(statistic(total))
            without = statistic(total - table)
            estimate = recorded or estimate_of(spec, column)
        else:
            estimate = estimate_of(spec, column)
            overall = estimate.value
            columns = (
                self.tally.column(spec.scorer, order[codes != group], self.keys)
                for group in range(count)
            )
            without = np.array(
                [estimate_of(spec, remaining).value for remaining in columns]
            )
        if recorded is not None and math.isfinite(recorded.value):
            if not _close(overall, recorded.value):
                again = (
                    "cannot be made again"
                    if math.isnan(overall)
                    else f"is {overall:g} when made again"
                )
                why = f"its value {recorded.value:g} {again} from the record"
                if math.isnan(overall):
                    why += self._how_to_load(spec)
                if math.isnan(recorded.low):  # as published: it is of no items
                    why = f"it was recorded with {recorded.method}"
                return Grouped(recorded, np.zeros(0), why)
            estimate = recorded
            overall = recorded.value
        if not math.isfinite(overall):
            return Grouped(estimate, np.zeros(0), "it has no value")
        if not np.isfinite(without).all():
            return Grouped(
                estimate, np.zeros(0), "it has no value without some of the items"
            )
        return Grouped(estimate, pseudo_values(overall, without))


def records_of(run: Run, metrics: Mapping[str, MetricResult]) -> dict[str, Record]:
    """Read the records of several tasks of a run in one pass.

    Args:
        run: the run.
        metrics: the metric of each task.
    """
    records = {task: Record(run, task, metric) for task, metric in metrics.items()}
    read_rows(run, records, run.score_rows())
    return records


def _close(recomputed: float, recorded: float) -> bool:
    return abs(recomputed - recorded) <= SAME * max(1.0, abs(recorded))
