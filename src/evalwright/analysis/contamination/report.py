"""Evidence that a model has memorised a task's questions.

Compares scores before and after a cut-off date and by overlap with a corpus, and takes the
paired drop from original to rewritten wordings, minus that of control items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.contamination.corpus import (
    CorpusScan,
    GramCount,
    N,
    scan_corpus,
)
from evalwright.analysis.contamination.dates import Side, read_cut_off, side_of
from evalwright.core.errors import ConfigurationError, RunError, UnknownName, UsageError
from evalwright.core.plain import Plain
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemRows, padded, read_rows
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


@dataclass(frozen=True, slots=True)
class ContaminationReport(Plain):
    """The evidence on one run.

    Args:
        run: the run's id.
        model: the model's label.
        cut_off: the training cut-off as given, "" without one.
        cut_offs: scores before and after the cut-off, by task.
        drops: score drops on rewritten questions.
        overlaps: scores by overlap with the corpus.
        suspicious: whether the paired drop of some task exceeds that of its control items.
    """

    run: str
    model: str
    cut_off: str
    cut_offs: tuple[CutOff, ...]
    drops: tuple[Drop, ...]
    overlaps: tuple[Overlap, ...]
    suspicious: bool


def contamination_report(
    run: Run,
    *,
    rewrites: Sequence[Run] = (),
    cut_off: str = "",
    date_key: str = "",
    control: str = "",
    corpus: Sequence[str | Path] = (),
    n: int = N,
) -> ContaminationReport:
    """Report the evidence of contamination on one run.

    Args:
        run: the run; rewrites of its tasks may be among its own tasks.
        rewrites: runs of the same model on rewritten tasks.
        cut_off: the model's training cut-off, such as "2024-06"; items dated after it are control
            items.
        date_key: the metadata key of the date; by default the first of `DATE_KEYS` that divides a
            task.
        control: "key=value" in the metadata of further control items.
        corpus: files and folders in which n-grams of the questions are searched for.
        n: words in an n-gram.

    Raises:
        ConfigurationError: there is nothing to report on, or a run of rewrites has another model.
    """
    key, equals, expected = control.partition("=")
    if control and not (key and equals):
        raise ConfigurationError(
            "--control takes key=value of items' metadata, such as control=true, not"
            f" '{control}'."
        )
    clean = Control(
        read_cut_off(cut_off) if cut_off else None,
        date_key or DATE_KEYS[0],
        key,
        expected,
    )
    for rewrite_run in rewrites:
        if rewrite_run.data["model"].get("fingerprint") != run.data["model"].get(
            "fingerprint"
        ):
            raise ConfigurationError(
                f"'{rewrite_run.id}' is a run of '{rewrite_run.label}' and '{run.id}' one of"
                f" '{run.label}': a paired drop needs one model. Evaluate '{run.label}'"
                " on the rewritten task."
            )
    task_items = list(read_items(run).values())
    others = [
        items for rewrite_run in rewrites for items in read_items(rewrite_run).values()
    ]
    cut_offs: list[CutOff] = []
    all_drops: list[Drop] = []
    for items in task_items:
        try:
            dated = (
                clean
                if date_key
                else replace(clean, date_key=find_date_key(items, clean))
            )
            cut_offs += (
                [cut_off_report]
                if (cut_off_report := compare_by_cut_off(items, dated))
                else []
            )
            all_drops += measure_drops(
                items, find_rewrites(items, [*task_items, *others]), clean
            )
        except ValueError as error:
            raise ConfigurationError(
                f"The scores of '{items.task}' ({items.metric}) cannot be compared:"
                f" {error}."
            ) from error
    met = (
        measure_overlaps(task_items, [Path(path) for path in corpus], n)
        if corpus
        else []
    )
    if rewrites and not all_drops:
        raise RunError(
            f"No sample of {', '.join(repr(rewrite_run.id) for rewrite_run in rewrites)} is a"
            f" rewrite of one of '{run.id}'. `evalwright tasks rewrite` makes them;"
            f" each names its original in the metadata '{OF}'."
        )
    if not cut_offs and not all_drops and not met:
        raise _nothing_to_report(run, task_items, clean, date_key)
    return ContaminationReport(
        run=run.id,
        model=run.label,
        cut_off=clean.cut_off.isoformat() if clean.cut_off else "",
        cut_offs=tuple(cut_offs),
        drops=tuple(all_drops),
        overlaps=tuple(met),
        suspicious=any(
            drop.check is not None and drop.check.suspicious
            for drop in drops_over_all_kinds(all_drops)
        ),
    )


DATE_KEYS = ("created_at", "known_since", "date", "year")
"""Metadata keys that may hold an item's date, in the order in which they are tried.

They say when the question was written, when its answer became known, or the date of an
examination.
"""


def find_date_key(items: TaskItems, control: Control) -> str:
    """Find the first metadata key with items on both sides of the cut-off, else on any side."""
    dividing = DATE_KEYS[0]
    most_sides = 0
    for key in DATE_KEYS:
        dated = replace(control, date_key=key)
        sides = {
            dated.side(metadata) for metadata in items.metadata if OF not in metadata
        }
        n_sides = len(sides & {"before", "after"})
        if n_sides > most_sides:
            dividing = key
            most_sides = n_sides
    return dividing


def _nothing_to_report(
    run: Run, tasks: Sequence[TaskItems], control: Control, date_key: str
) -> UsageError:
    """Explain why there is nothing to report on a run, and what to pass instead."""
    if control.cut_off is None:
        return ConfigurationError(
            f"There is nothing to report for '{run.id}': give --rewrites (a run of the"
            " same model on a rewritten task, see `evalwright tasks rewrite`),"
            " --cut-off for samples with a date in their metadata"
            f" ({', '.join(DATE_KEYS)}, or --date-key), or --corpus."
        )
    keys = sorted(
        {str(key) for items in tasks for metadata in items.metadata for key in metadata}
    )
    present = f" They have: {', '.join(keys[:MOST_KEYS])}." if keys else ""
    if date_key and date_key not in keys:
        return UnknownName(
            "metadata in --date-key",
            date_key,
            keys,
            f"No sample of '{run.id}' has it.{present}",
        )
    missing = f"'{date_key}'" if date_key else ", ".join(DATE_KEYS)
    return ConfigurationError(
        f"No sample of '{run.id}' has a date in its metadata ({missing}), so --cut-off"
        f" divides nothing.{present} Name the one with the date with --date-key, or"
        " give --rewrites or --corpus."
    )


MOST_KEYS = 20
"""Most metadata keys that an error lists."""


def drops_over_all_kinds(all_drops: Sequence[Drop]) -> list[Drop]:
    """Select for each task the drop over all its rewrites, the only one used for conclusions.

    This rules out picking the kind of rewrite that suits.
    """
    drop_by_task: dict[str, Drop] = {}
    for drop in all_drops:
        if drop.kind == ALL or drop.task not in drop_by_task:
            drop_by_task[drop.task] = drop
    return list(drop_by_task.values())


# -- a run's items: scores by item and draw, clusters, and metadata -------------------


OF, OF_TASK, KIND, BY, CHECKED = REWRITE_KEYS = (
    "rewrite_of",
    "rewrite_task",
    "rewrite_kind",
    "rewrite_by",
    "rewrite_checked",
)
"""Metadata of a rewritten sample.

The id and task of its original, the kind of rewrite, what wrote it, and whether a person
checked it.
"""


@dataclass(slots=True, kw_only=True)
class TaskItems(ItemRows):
    """The items of one task of a run in recorded order, by the scorer of its main metric.

    Args:
        task: the task's name.
        metric: the main metric's label.
        bounded: whether scores are between 0 and 1.
        metadata: of each item, as recorded.
        texts: the questions.
    """

    task: str
    metric: str
    bounded: bool
    metadata: list[Mapping[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The range of a score; None if unknown."""
        return (0.0, 1.0) if self.bounded else None

    def matrix(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Return the scores of some items, (n, draws), nan if missing."""
        return padded([self.draws[index] for index in places])

    def new_item(self, row: Mapping[str, Any]) -> None:
        """Add an item's metadata and question."""
        metadata = row.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise TypeError("its metadata is not a mapping")
        self.metadata.append(metadata)
        self.texts.append(str(row["input"]))


def read_items(run: Run) -> dict[str, TaskItems]:
    """Read the items of every task that has a main metric.

    Raises RunError for unreadable records.
    """
    items_by_task = {
        task.name: TaskItems(
            task=task.name,
            metric=task.main.label,
            scorer=task.main.scorer,
            bounded=task.main.kind in BOUNDED,
        )
        for task in run.tasks
        if task.main
    }
    read_rows(run, items_by_task)
    return items_by_task


class ItemGroups:
    """Groups of one task's items, with cluster codes that are consistent between groups.

    An item without a cluster is a unit by itself.
    """

    def __init__(self, items: TaskItems) -> None:
        self.items = items
        self._codes: dict[tuple[str, str], int] = {}

    def codes(self, places: Iterable[int]) -> NDArray[np.int64]:
        """Return a cluster code for each item, (n,)."""
        clusters = self.items.clusters
        names = [
            ("cluster", clusters[index]) if clusters[index] else ("item", str(index))
            for index in places
        ]
        return np.array(
            [self._codes.setdefault(name, len(self._codes)) for name in names], np.int64
        )

    def mean(self, places: Sequence[int]) -> Estimate | None:
        """Compute the mean score of a group; None for an empty one."""
        if not places:
            return None
        scores, clusters = self._scored(places)
        return mean_interval(
            scores, clusters=clusters, value_range=self.items.value_range
        )

    def difference(
        self, a: Sequence[int], b: Sequence[int]
    ) -> UnpairedComparison | None:
        """Compute the mean of one group minus that of another; None if one is empty."""
        if not a or not b:
            return None
        (scores_a, clusters_a), (scores_b, clusters_b) = (
            self._scored(a),
            self._scored(b),
        )
        limits = self.items.value_range
        return compare_unpaired(
            scores_a,
            scores_b,
            clusters_a=clusters_a,
            clusters_b=clusters_b,
            value_range=limits,
        )

    def _scored(
        self, places: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self.items.matrix(places), self.codes(places)


# -- before and after a date, and from original to rewritten wordings ------------------


ALL = "all"
"""The kind of rewrite that means every kind together."""


@dataclass(frozen=True, slots=True)
class CutOff(Plain):
    """One task's scores before and after a date.

    Args:
        task: the task's name.
        metric: the metric's label.
        key: the metadata key of the date.
        date: the cut-off.
        before: mean score of items up to the cut-off; None if there are none.
        after: mean score of items after it; None if there are none.
        difference: the difference of the two.
        across: items whose date does not tell the side.
        undated: items without a date.
        shared_clusters: clusters with items on both sides, which the interval ignores.
        unreadable: items with something else in place of the date.
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
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Drop(Plain):
    """One task's originals against their rewrites of one kind.

    Args:
        task: the task's name.
        metric: the metric's label.
        kind: the kind of rewrite; for "all", each item's mean over all its rewrites is used.
        rewrites: number of rewrites.
        unchecked: how many of them no person has checked.
        drop: on the items that the model may have seen.
        check: that drop minus the one on control items; None without control items.
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
    """Which items a model cannot have seen: dated after its cut-off, or marked by metadata."""

    cut_off: date | None = None
    date_key: str = "created_at"
    key: str = ""
    value: str = ""

    def has(self, metadata: Mapping[str, Any]) -> bool:
        """Tell whether an item with this metadata is a control item."""
        if self.key and self.key in metadata:
            recorded = metadata[self.key]
            if (
                str(recorded).lower() if isinstance(recorded, bool) else str(recorded)
            ) == self.value:
                return True
        return self.side(metadata) == "after"

    def side(self, metadata: Mapping[str, Any]) -> str:
        """Return the side of the cut-off that an item is on; "" without a cut-off."""
        return (
            ""
            if self.cut_off is None
            else side_of(metadata.get(self.date_key), self.cut_off)
        )


def compare_by_cut_off(items: TaskItems, control: Control) -> CutOff | None:
    """Compare the scores before and after the cut-off, without rewrites.

    None if no item is dated.
    """
    sides: dict[str, list[int]] = {side: [] for side in ("", *get_args(Side))}
    for index, metadata in enumerate(items.metadata):
        if OF not in metadata:
            sides[control.side(metadata)].append(index)
    before = sides["before"]
    after = sides["after"]
    if control.cut_off is None or not (before or after):
        return None
    groups = ItemGroups(items)
    named = [
        {items.clusters[index] for index in indices} - {""}
        for indices in (before, after)
    ]
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
        unreadable=len(sides["unreadable"]),
    )


@dataclass(frozen=True, slots=True)
class ScoredRewrite:
    """A rewrite's kind, whether a person has checked it, and the mean score of its draws."""

    kind: str
    checked: bool
    score: float


Rewrites = Mapping[int, Sequence[ScoredRewrite]]
"""The rewrites of each original, by its index among the items."""


def find_rewrites(items: TaskItems, others: Sequence[TaskItems]) -> Rewrites:
    """Find the rewrites of a task's items among other items, by the original named in metadata."""
    rewrites: dict[int, list[ScoredRewrite]] = {}
    for further_items in others:
        for index, metadata in enumerate(further_items.metadata):
            source = metadata.get(OF)
            if source is None or str(metadata.get(OF_TASK, items.task)) != items.task:
                continue
            original = items.places.get(str(source))
            if original is not None and OF not in items.metadata[original]:
                # Each rewrite is one value, so that one with more draws does not count more.
                scores = [
                    score for score in further_items.draws[index] if score == score
                ]
                mean = sum(scores) / len(scores) if scores else float("nan")
                checked = metadata.get(CHECKED) in (True, "true", "True", 1)
                rewrite = ScoredRewrite(
                    str(metadata.get(KIND) or "unnamed"), checked, mean
                )
                rewrites.setdefault(original, []).append(rewrite)
    return rewrites


def measure_drops(items: TaskItems, rewrites: Rewrites, control: Control) -> list[Drop]:
    """Measure the paired drop over all kinds of rewrites, and by kind if there are several."""
    kinds = sorted(
        {
            rewrite.kind
            for item_rewrites in rewrites.values()
            for rewrite in item_rewrites
        }
    )
    reported_kinds = [ALL, *kinds] if len(kinds) > 1 else kinds
    return [_measure_drop(items, rewrites, control, kind) for kind in reported_kinds]


def _measure_drop(
    items: TaskItems, rewrites: Rewrites, control: Control, kind: str
) -> Drop:
    chosen = dict[int, list[ScoredRewrite]]()
    for index, item_rewrites in sorted(rewrites.items()):
        of_kind = [rewrite for rewrite in item_rewrites if kind in (ALL, rewrite.kind)]
        if of_kind and control.side(items.metadata[index]) != "across":
            chosen[index] = of_kind

    groups = ItemGroups(items)

    def collect_scores(control_items: bool) -> tuple[Any, Any, Any]:
        """Collect scores of originals and of their rewrites, and clusters.

        There is a row per original.
        """
        places = [
            index
            for index in chosen
            if control.has(items.metadata[index]) == control_items
        ]
        rewritten = padded(
            [[rewrite.score for rewrite in chosen[index]] for index in places]
        )
        return items.matrix(places), rewritten, groups.codes(places)

    *seen, clusters = collect_scores(False)
    *unseen, control_clusters = collect_scores(True)
    limits = items.value_range
    check = None
    if len(seen[0]) and len(unseen[0]):
        check = contamination_check(
            *seen,
            *unseen,
            clusters=clusters,
            control_clusters=control_clusters,
            value_range=limits,
        )
    all_rewrites = [
        rewrite for item_rewrites in chosen.values() for rewrite in item_rewrites
    ]
    drop = compare_paired(*seen, clusters=clusters, value_range=limits)
    unchecked = sum(not rewrite.checked for rewrite in all_rewrites)
    return Drop(
        items.task, items.metric, kind, len(all_rewrites), unchecked, drop, check
    )


# -- overlap with a corpus -------------------------------------------------------------


MOST = 0.8
"""Share of its n-grams from which on a question counts as mostly in the corpus."""


@dataclass(frozen=True, slots=True)
class Overlap(Plain):
    """One task's scores by overlap with a corpus.

    Args:
        task: the task's name.
        metric: the metric's label.
        n: words in an n-gram.
        files: number of files read.
        words: number of words read.
        classes: mean scores of questions of which the corpus has none, some (under 80%) or most of
            the n-grams.
        difference: some or most, minus none; None if one side is empty.
        too_short: how many questions were not searched for.
        samples: the counts by sample id.
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


def measure_overlaps(
    tasks: Sequence[TaskItems], corpus: Sequence[Path], n: int = N
) -> list[Overlap]:
    """Compare every task with a corpus that is read once. Rewrites are not searched for."""
    original_indices = [
        (
            items,
            [
                index
                for index, metadata in enumerate(items.metadata)
                if OF not in metadata
            ],
        )
        for items in tasks
    ]
    scan = scan_corpus(
        [items.texts[index] for items, places in original_indices for index in places],
        corpus,
        n,
    )
    counts = iter(scan.counts)
    return [
        _measure_overlap(items, {index: next(counts) for index in places}, scan, n)
        for items, places in original_indices
        if places
    ]


def _overlap_class(count: GramCount) -> str:
    """Classify how much of a question the corpus has; "" for one too short to be searched for."""
    if not count.n:
        return ""
    if not count.found:
        return "none"
    return "most" if count.share >= MOST else "some"


def _measure_overlap(
    items: TaskItems, counts: Mapping[int, GramCount], scan: CorpusScan, n: int
) -> Overlap:
    by_class: dict[str, list[int]] = {"": [], "none": [], "some": [], "most": []}
    for index, count in counts.items():
        by_class[_overlap_class(count)].append(index)
    too_short = len(by_class.pop(""))
    groups = ItemGroups(items)
    return Overlap(
        task=items.task,
        metric=items.metric,
        n=n,
        files=scan.files,
        words=scan.words,
        classes={name: groups.mean(indices) for name, indices in by_class.items()},
        difference=groups.difference(
            sorted([*by_class["some"], *by_class["most"]]), by_class["none"]
        ),
        too_short=too_short,
        samples={items.ids[index]: count for index, count in counts.items()},
    )
