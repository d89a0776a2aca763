"""A run's items as reports on contamination need them: scores by item and draw, clusters, and what is known of their origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import RunError
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAN = float("nan")

OF, OF_TASK, KIND, BY, CHECKED = (
    "rewrite_of",
    "rewrite_task",
    "rewrite_kind",
    "rewrite_by",
    "rewrite_checked",
)
"""Metadata of a rewritten sample: the id and task of its original, its kind, what made it, whether a person checked it."""


@dataclass(slots=True)
class Items:
    """The items of one task of a run, in the order of the record.

    scorer: of the task's main metric. draws: the scores of each item's draws, nan = failed. clusters: "" = alone.
    metadata: of each item, as recorded. texts: their questions.
    """

    task: str
    metric: str
    scorer: str
    bounded: bool
    ids: list[str] = field(default_factory=list)
    draws: list[list[float]] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    metadata: list[Mapping[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Of one score; None where it is not known."""
        return (0.0, 1.0) if self.bounded else None

    def matrix(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Scores of some items, (n, draws), nan = missing."""
        return padded([self.draws[place] for place in places])


def read_items(run: Run) -> dict[str, Items]:
    """The items of every task that has a main metric. Raises RunError where records cannot be read."""
    found = {
        task.name: Items(task.name, task.main.label, task.main.scorer, task.main.kind in BOUNDED)
        for task in run.tasks
        if task.main
    }
    try:
        for row in run.rows():
            if row["task"] in found:
                _add(found[row["task"]], row)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunError(
            f"A record of the run '{run.id}' is not that of a sample ({type(error).__name__}: {error})."
        ) from error
    return found


def padded(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Rows of different lengths as (n, longest), the rest nan."""
    import numpy as np

    width = max((len(row) for row in rows), default=1) or 1
    out = np.full((len(rows), width), NAN)
    for place, row in enumerate(rows):
        out[place, : len(row)] = row
    return out


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


def _add(items: Items, row: Mapping[str, Any]) -> None:
    place = items.places.setdefault(str(row["id"]), len(items.places))
    if place == len(items.ids):
        items.ids.append(str(row["id"]))
        items.draws.append([])
        items.clusters.append(str(row.get("cluster") or ""))
        metadata = row.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise TypeError("its metadata are no mapping")
        items.metadata.append(metadata)
        items.texts.append(str(row["input"]))
    value = row["scores"].get(items.scorer, {}).get("value")
    items.draws[place].append(NAN if value is None else float(value))
