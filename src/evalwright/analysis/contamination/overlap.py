"""Scores by how much of a question's wording stands in a corpus, with the difference tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.analysis.contamination.corpus import CorpusScan, GramCount, N, scan_corpus
from evalwright.analysis.contamination.items import OF, Groups, Items
from evalwright.core.plain import Plain
from evalwright.statistics import Estimate, UnpairedComparison

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
