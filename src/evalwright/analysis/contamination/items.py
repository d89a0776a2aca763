"""A run's items as reports on contamination need them: scores by item and draw, clusters, and what is known of their origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemRows, padded, read_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF, OF_TASK, KIND, BY, CHECKED = (
    "rewrite_of",
    "rewrite_task",
    "rewrite_kind",
    "rewrite_by",
    "rewrite_checked",
)
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


class ClusterCodes:
    """Whole numbers for clusters, the same over several groups of items; an item without one is alone."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}

    def of(self, items: Items, places: Iterable[int]) -> NDArray[np.int64]:
        """A code per item, (n,)."""
        import numpy as np

        names = (
            ("cluster", items.clusters[place]) if items.clusters[place] else ("item", f"{items.task}\0{items.ids[place]}")
            for place in places
        )  # fmt: skip
        return np.array([self._codes.setdefault(name, len(self._codes)) for name in names], np.int64)


def clustered(items: Items, places: Iterable[int]) -> bool:
    """Whether any of these items shares a named cluster."""
    return any(items.clusters[place] for place in places)
