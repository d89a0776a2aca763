"""Scores before and after a cut-off date, and the paired drop from original to rewritten wordings, less that of control items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.contamination.dates import side_of
from evalwright.analysis.contamination.items import (
    CHECKED,
    KIND,
    OF,
    OF_TASK,
    ClusterCodes,
    Items,
    clustered,
)
from evalwright.core.plain import Plain
from evalwright.runs.scores import padded
from evalwright.statistics import (
    ContaminationCheck,
    Estimate,
    PairedComparison,
    UnpairedComparison,
    compare_paired,
    compare_unpaired,
    contamination_check,
    mean_interval,
)

ALL = "all"
"""The kind of rewrite that means every kind together."""


@dataclass(frozen=True, slots=True)
class CutOff(Plain):
    """One task's score before and after a date. before, after: None where no item is on that side.

    across: items whose date does not say on which side they are; undated: those without one. shared_clusters: clusters with
    items on both sides, which the interval does not know of.
    """

    task: str
    metric: str
    key: str
    date: str
    before: Estimate | None
    after: Estimate | None
    difference: UnpairedComparison | None
    across: int
    undated: int
    shared_clusters: int


@dataclass(frozen=True, slots=True)
class Drop(Plain):
    """One task's originals against their rewrites of one kind ("all": each item's mean over its rewrites).

    drop: of the items that the model may have seen. check: the same less the control items' drop, None without control.
    rewrites: how many; unchecked: of those, how many no person has checked.
    """

    task: str
    metric: str
    kind: str
    rewrites: int
    unchecked: int
    drop: PairedComparison
    check: ContaminationCheck | None


@dataclass(frozen=True, slots=True)
class Control:
    """Which items a model cannot have seen: those dated after its cut-off, and those with a value in their metadata."""

    cut_off: date | None = None
    date_key: str = "created_at"
    key: str = ""
    value: str = ""

    def has(self, metadata: Mapping[str, Any]) -> bool:
        """Whether an item with this metadata is a control item."""
        if self.key and self.key in metadata and _text(metadata[self.key]) == self.value:
            return True
        return self.cut_off is not None and side_of(metadata.get(self.date_key), self.cut_off) == "after"

    def leaves_out(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it is not known on which side of the cut-off an item is: it is neither suspect nor control."""
        return self.cut_off is not None and side_of(metadata.get(self.date_key), self.cut_off) == "across"


def by_cut_off(items: Items, cut_off: date, key: str) -> CutOff | None:
    """The score before and after; None where no item is dated. Rewrites are not counted."""
    sides: dict[str, list[int]] = {"before": [], "after": [], "across": [], "undated": []}
    for place, metadata in enumerate(items.metadata):
        if OF not in metadata:
            sides[side_of(metadata.get(key), cut_off)].append(place)
    before, after = sides["before"], sides["after"]
    if not before and not after:
        return None
    codes = ClusterCodes()
    scores = [items.matrix(part) for part in (before, after)]
    clusters = [codes.of(items, part) if clustered(items, part) else None for part in (before, after)]
    named = [{items.clusters[place] for place in part} - {""} for part in (before, after)]
    limits = items.value_range
    means = [
        mean_interval(values, clusters=group, value_range=limits) if len(values) else None
        for values, group in zip(scores, clusters, strict=True)
    ]
    difference = None
    if before and after:
        difference = compare_unpaired(
            *scores, clusters_a=clusters[0], clusters_b=clusters[1], value_range=limits
        )
    return CutOff(
        task=items.task,
        metric=items.metric,
        key=key,
        date=cut_off.isoformat(),
        before=means[0],
        after=means[1],
        difference=difference,
        across=len(sides["across"]),
        undated=len(sides["undated"]),
        shared_clusters=len(named[0] & named[1]),
    )


@dataclass(frozen=True, slots=True)
class _Rewrite:
    kind: str
    checked: bool
    scores: tuple[float, ...]


Rewrites = Mapping[int, Sequence[_Rewrite]]
"""The rewrites of each original, by its place."""


def rewrites_of(items: Items, others: Sequence[Items]) -> Rewrites:
    """The rewrites of a task's items that stand among other items: those whose metadata name them."""
    found: dict[int, list[_Rewrite]] = {}
    for other in others:
        for place, metadata in enumerate(other.metadata):
            source = metadata.get(OF)
            if source is None or str(metadata.get(OF_TASK, items.task)) != items.task:
                continue
            original = items.places.get(str(source))
            if original is not None and OF not in items.metadata[original]:
                checked = metadata.get(CHECKED) in (True, "true", "True", 1)
                kind = str(metadata.get(KIND) or "unnamed")
                found.setdefault(original, []).append(_Rewrite(kind, checked, tuple(other.draws[place])))
    return found


def drops(items: Items, found: Rewrites, control: Control) -> list[Drop]:
    """The paired drop over all kinds, and by kind where there are several."""
    kinds = sorted({one.kind for several in found.values() for one in several})
    wanted = [ALL, *kinds] if len(kinds) > 1 else kinds
    return [_drop(items, found, control, kind) for kind in wanted]


def _drop(items: Items, found: Rewrites, control: Control, kind: str) -> Drop:
    chosen = {
        place: kept
        for place, several in sorted(found.items())
        if (kept := [one for one in several if kind in (ALL, one.kind)])
        and not control.leaves_out(items.metadata[place])
    }
    clean = [place for place in chosen if control.has(items.metadata[place])]
    suspect = [place for place in chosen if not control.has(items.metadata[place])]
    codes = ClusterCodes() if clustered(items, chosen) else None
    sides = [_side(items, chosen, part, codes) for part in (suspect, clean)]
    (original, rewritten, group), (control_original, control_rewritten, control_group) = sides
    limits = items.value_range
    drop = compare_paired(original, rewritten, clusters=group, value_range=limits)
    check = None
    if clean and suspect:
        check = contamination_check(
            original,
            rewritten,
            control_original,
            control_rewritten,
            clusters=group,
            control_clusters=control_group,
            value_range=limits,
        )
    every = [one for several in chosen.values() for one in several]
    unchecked = sum(not one.checked for one in every)
    return Drop(items.task, items.metric, kind, len(every), unchecked, drop, check)


def _side(
    items: Items, chosen: Rewrites, places: Sequence[int], codes: ClusterCodes | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Scores of originals and of their rewrites, a row per original, and their clusters."""
    # Each rewrite is one value, so that one with more draws does not count for more.
    rows = [[_mean(one.scores) for one in chosen[place]] for place in places]
    return items.matrix(places), padded(rows), None if codes is None else codes.of(items, places)


def _mean(scores: Sequence[float]) -> float:
    there = [score for score in scores if score == score]
    return sum(there) / len(there) if there else float("nan")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
