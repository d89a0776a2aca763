"""Scores by how much of a question's wording stands in a corpus, with the difference tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.analysis.contamination.corpus import Found, N, scan_corpus
from evalwright.analysis.contamination.items import OF, ClusterCodes, Items, clustered
from evalwright.core.plain import Plain
from evalwright.statistics import Estimate, UnpairedComparison, compare_unpaired, mean_interval

MOST = 0.8
"""From this share of its n-grams on, most of a question is in the corpus."""

CLASSES = ("none", "some", "most")


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
    samples: Mapping[str, Found]


def overlaps(tasks: Sequence[Items], corpus: Sequence[Path], n: int = N) -> list[Overlap]:
    """Every task against a corpus, which is read once for all. Rewrites are not looked for."""
    own = [
        (items, [place for place, metadata in enumerate(items.metadata) if OF not in metadata])
        for items in tasks
    ]
    texts = [items.texts[place] for items, places in own for place in places]
    scan = scan_corpus(texts, corpus, n)
    out, start = [], 0
    for items, places in own:
        if places:
            found = scan.found[start : start + len(places)]
            out.append(_overlap(items, places, found, n, scan.files, scan.words))
        start += len(places)
    return out


def class_of(found: Found) -> str:
    """ "none", "some" or "most"; "" for a question that was too short to be looked for."""
    if not found.n:
        return ""
    return "none" if not found.found else "most" if found.share >= MOST else "some"


def _overlap(
    items: Items, places: Sequence[int], found: Sequence[Found], n: int, files: int, words: int
) -> Overlap:
    by_class: dict[str, list[int]] = {name: [] for name in ("", *CLASSES)}
    for place, one in zip(places, found, strict=True):
        by_class[class_of(one)].append(place)
    codes = ClusterCodes()

    def group(part: Sequence[int]) -> Any:
        return codes.of(items, part) if clustered(items, part) else None

    limits = items.value_range
    classes = {
        name: mean_interval(items.matrix(part), clusters=group(part), value_range=limits) if part else None
        for name, part in by_class.items()
        if name
    }
    clean, met = by_class["none"], sorted([*by_class["some"], *by_class["most"]])
    difference = None
    if clean and met:
        difference = compare_unpaired(
            items.matrix(met),
            items.matrix(clean),
            clusters_a=group(met),
            clusters_b=group(clean),
            value_range=limits,
        )
    samples = {items.ids[place]: one for place, one in zip(places, found, strict=True)}
    return Overlap(items.task, items.metric, n, files, words, classes, difference, len(by_class[""]), samples)
