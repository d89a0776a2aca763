"""Scores before and after a cut-off date, by overlap with a corpus, and the paired drop from original to rewritten wordings, less that of
control items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from evalwright.analysis.contamination.corpus import CorpusScan, GramCount, N, scan_corpus
from evalwright.analysis.contamination.dates import side_of
from evalwright.analysis.contamination.items import CHECKED, KIND, OF, OF_TASK, Groups, Items
from evalwright.core.plain import Plain
from evalwright.runs.scores import padded
from evalwright.statistics import (
    ContaminationCheck,
    Estimate,
    PairedComparison,
    UnpairedComparison,
    compare_paired,
    contamination_check,
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
        if self.key and self.key in metadata:
            value = metadata[self.key]
            if (str(value).lower() if isinstance(value, bool) else str(value)) == self.value:
                return True
        return self.side(metadata) == "after"

    def side(self, metadata: Mapping[str, Any]) -> str:
        """On which side of the cut-off an item is; "across" where its date does not say, "" without a cut-off."""
        return "" if self.cut_off is None else side_of(metadata.get(self.date_key), self.cut_off)


def by_cut_off(items: Items, control: Control) -> CutOff | None:
    """The score before and after; None without a cut-off, and where no item is dated. Rewrites are not counted."""
    sides: dict[str, list[int]] = {"": [], "before": [], "after": [], "across": [], "undated": []}
    for place, metadata in enumerate(items.metadata):
        if OF not in metadata:
            sides[control.side(metadata)].append(place)
    before, after = sides["before"], sides["after"]
    if control.cut_off is None or not (before or after):
        return None
    groups = Groups(items)
    named = [{items.clusters[place] for place in part} - {""} for part in (before, after)]
    return CutOff(
        task=items.task,
        metric=items.metric,
        key=control.date_key,
        date=control.cut_off.isoformat(),
        before=groups.mean(before),
        after=groups.mean(after),
        difference=groups.difference(before, after),
        across=len(sides["across"]),
        undated=len(sides["undated"]),
        shared_clusters=len(named[0] & named[1]),
    )


@dataclass(frozen=True, slots=True)
class ScoredRewrite:
    """A rewrite's kind, whether a person has checked it, and the mean score of its draws, nan where all failed."""

    kind: str
    checked: bool
    score: float


Rewrites = Mapping[int, Sequence[ScoredRewrite]]
"""The rewrites of each original, by its place."""


def rewrites_of(items: Items, others: Sequence[Items]) -> Rewrites:
    """The rewrites of a task's items that stand among other items: those whose metadata name them."""
    found: dict[int, list[ScoredRewrite]] = {}
    for other in others:
        for place, metadata in enumerate(other.metadata):
            source = metadata.get(OF)
            if source is None or str(metadata.get(OF_TASK, items.task)) != items.task:
                continue
            original = items.places.get(str(source))
            if original is not None and OF not in items.metadata[original]:
                # Each rewrite is one value, so that one with more draws does not count for more.
                scores = [score for score in other.draws[place] if score == score]
                mean = sum(scores) / len(scores) if scores else float("nan")
                checked = metadata.get(CHECKED) in (True, "true", "True", 1)
                one = ScoredRewrite(str(metadata.get(KIND) or "unnamed"), checked, mean)
                found.setdefault(original, []).append(one)
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
        and control.side(items.metadata[place]) != "across"
    }
    groups = Groups(items)

    def scores(control_items: bool) -> tuple[Any, Any, Any]:
        """Scores of originals and of their rewrites, a row per original, and their clusters."""
        places = [place for place in chosen if control.has(items.metadata[place]) == control_items]
        rewritten = padded([[one.score for one in chosen[place]] for place in places])
        return items.matrix(places), rewritten, groups.codes(places)

    *seen, clusters = scores(False)
    *unseen, control_clusters = scores(True)
    limits, check = items.value_range, None
    if len(seen[0]) and len(unseen[0]):
        check = contamination_check(
            *seen, *unseen, clusters=clusters, control_clusters=control_clusters, value_range=limits
        )
    every = [one for several in chosen.values() for one in several]
    drop = compare_paired(*seen, clusters=clusters, value_range=limits)
    unchecked = sum(not one.checked for one in every)
    return Drop(items.task, items.metric, kind, len(every), unchecked, drop, check)


# -- overlap with a corpus -----------------------------------------------------------------------------------------------


MOST = 0.8
"""From this share of its n-grams on, most of a question is in the corpus."""


@dataclass(frozen=True, slots=True)
class Overlap(Plain):
    """One task against a corpus.

    classes: score of the questions of which the corpus has none, some (under 80 of 100), or most of the n-grams.
    difference: some or most, less none; None where one side is empty. too_short: questions that were not looked for. samples:
    by id, what was found of each.
    """

    task: str
    metric: str
    n: int
    files: int
    words: int
    classes: Mapping[str, Estimate | None]
    difference: UnpairedComparison | None
    too_short: int
    samples: Mapping[str, GramCount]


def overlaps(tasks: Sequence[Items], corpus: Sequence[Path], n: int = N) -> list[Overlap]:
    """Every task against a corpus, which is read once for all. Rewrites are not looked for."""
    own = [
        (items, [place for place, metadata in enumerate(items.metadata) if OF not in metadata])
        for items in tasks
    ]
    scan = scan_corpus([items.texts[place] for items, places in own for place in places], corpus, n)
    counts = iter(scan.found)
    return [
        _overlap(items, {place: next(counts) for place in places}, scan, n) for items, places in own if places
    ]


def _overlap(items: Items, found: Mapping[int, GramCount], scan: CorpusScan, n: int) -> Overlap:
    by_class: dict[str, list[int]] = {"": [], "none": [], "some": [], "most": []}
    for place, one in found.items():
        name = "none" if not one.found else "most" if one.share >= MOST else "some"
        by_class[name if one.n else ""].append(place)
    too_short = len(by_class.pop(""))
    groups = Groups(items)
    return Overlap(
        task=items.task,
        metric=items.metric,
        n=n,
        files=scan.files,
        words=scan.words,
        classes={name: groups.mean(part) for name, part in by_class.items()},
        difference=groups.difference(sorted([*by_class["some"], *by_class["most"]]), by_class["none"]),
        too_short=too_short,
        samples={items.ids[place]: one for place, one in found.items()},
    )
