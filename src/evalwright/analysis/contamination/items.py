"""A run's items as reports on contamination need them: scores by item and draw, clusters, and what is known of their origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemRows, padded, read_rows
from evalwright.statistics import Estimate, UnpairedComparison, compare_unpaired, mean_interval

OF, OF_TASK, KIND, BY, CHECKED = REWRITE_KEYS = (
    "rewrite_of", "rewrite_task", "rewrite_kind", "rewrite_by", "rewrite_checked",
)  # fmt: skip
"""Metadata of a rewritten sample: the id and task of its original, its kind, what made it, whether a person checked it."""


@dataclass(slots=True, kw_only=True)
class Items(ItemRows):
    """The items of one task of a run, in the order of the record, by the scorer of the task's main metric.

    metadata: of each item, as recorded. texts: their questions.
    """

    task: str
    metric: str
    bounded: bool
    metadata: list[Mapping[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Of one score; None where it is not known."""
        return (0.0, 1.0) if self.bounded else None

    def matrix(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Scores of some items, (n, draws), nan = missing."""
        return padded([self.draws[place] for place in places])

    def new_item(self, row: Mapping[str, Any]) -> None:
        """Take an item's metadata and question."""
        metadata = row.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise TypeError("its metadata is not a mapping")
        self.metadata.append(metadata)
        self.texts.append(str(row["input"]))


def read_items(run: Run) -> dict[str, Items]:
    """The items of every task that has a main metric. Raises RunError where records cannot be read."""
    found = {
        task.name: Items(
            task=task.name, metric=task.main.label, scorer=task.main.scorer, bounded=task.main.kind in BOUNDED
        )
        for task in run.tasks
        if task.main
    }
    read_rows(run, found)
    return found


class Groups:
    """Groups of one task's items, with cluster codes that are the same in all of them; an item without a cluster is alone."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self._codes: dict[tuple[str, str], int] = {}

    def codes(self, places: Iterable[int]) -> NDArray[np.int64]:
        """A cluster code per item, (n,)."""
        clusters = self.items.clusters
        names = [
            ("cluster", clusters[place]) if clusters[place] else ("item", str(place)) for place in places
        ]
        return np.array([self._codes.setdefault(name, len(self._codes)) for name in names], np.int64)

    def mean(self, places: Sequence[int]) -> Estimate | None:
        """The mean score of a group; None for an empty one."""
        if not places:
            return None
        scores, clusters = self._scored(places)
        return mean_interval(scores, clusters=clusters, value_range=self.items.value_range)

    def difference(self, a: Sequence[int], b: Sequence[int]) -> UnpairedComparison | None:
        """The mean of one group less that of another; None where one is empty."""
        if not a or not b:
            return None
        (scores_a, clusters_a), (scores_b, clusters_b) = self._scored(a), self._scored(b)
        limits = self.items.value_range
        return compare_unpaired(
            scores_a, scores_b, clusters_a=clusters_a, clusters_b=clusters_b, value_range=limits
        )

    def _scored(self, places: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self.items.matrix(places), self.codes(places)
