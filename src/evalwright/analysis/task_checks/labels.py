"""Where the right option stands, and how long it is, says nothing about which it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_uppercase

import numpy as np

from evalwright.analysis.task_checks.findings import Finding, counted, fault, note, ok, points, skipped
from evalwright.analysis.task_checks.ignorance import LEAST_SAMPLES, against_chance, chance_of
from evalwright.analysis.task_checks.material import Material
from evalwright.core.samples import Sample

RARE = 0.001
"""Places so uneven come by chance in one of so many tasks; more is a skew."""

LEAST_SKEW = 0.1
"""A letter that is right so much more often than the others would have it is a skew; less does not matter."""

LEAST_LENGTH = 0.15
_DRAWS = 9_999


def check_labels(material: Material) -> Iterator[Finding]:
    """The places of gold options, and whether the longest option is too often the gold one."""
    samples = [sample for sample in material.samples if len(sample.choices) > 1 and len(sample.gold) == 1]
    if not samples:
        return
    if len(samples) < LEAST_SAMPLES:
        n = counted(len(samples), "sample")
        yield skipped("labels", f"{n} with one right option: too few to judge its place")
        return
    yield _places(samples)
    if len({frozenset(sample.choices) for sample in samples}) > 1:
        yield _length(samples)


def _places(samples: Sequence[Sample]) -> Finding:
    p, seen, expected = place_test(samples)
    n = len(samples)
    excess = {place: (seen[place] - expected[place]) / n for place in range(len(seen))}
    worst = max(excess, key=excess.__getitem__)
    names = [*ascii_uppercase, *map(str, range(26, len(seen)))]
    shares = ", ".join(
        f"{name} {points(count / n)}" for name, count in list(zip(names, seen, strict=False))[:10]
    )
    told = f"gold options are in places {shares} of 100 (p = {p:.2g} if places were even)"
    if p >= RARE or excess[worst] < LEAST_SKEW:
        return ok("labels", told)
    letter = names[worst]
    ids = [sample.id for sample in samples if sample.gold[0] == worst]
    if len({sample.choices for sample in samples}) == 1:
        return note("labels", f"{told}: {letter} is the more frequent label", ids)
    return fault("labels", f"{told}: the labels are skewed towards {letter}", ids)


def place_test(samples: Sequence[Sample]) -> tuple[float, list[float], list[float]]:
    """Pearson's chi-square of the gold options' places against even ones, its p-value by simulation (9,999 draws).

    Returns p, and how often each place was seen and expected. Exact also where samples differ in their number of
    options, or are few: every draw puts each sample's gold option at one of its own places (Hope 1968).
    """
    sizes = Counter(len(sample.choices) for sample in samples)
    most = max(sizes)
    seen = np.bincount([sample.gold[0] for sample in samples], minlength=most).astype(np.float64)
    expected = np.zeros(most)
    drawn = np.zeros((_DRAWS, most))
    chance = np.random.default_rng(0)
    for size, count in sorted(sizes.items()):
        expected[:size] += count / size
        drawn[:, :size] += chance.multinomial(count, np.full(size, 1 / size), size=_DRAWS)
    distance = ((drawn - expected) ** 2 / expected).sum(axis=1)
    own = float(((seen - expected) ** 2 / expected).sum())
    p = (1 + int((distance >= own - 1e-9).sum())) / (1 + _DRAWS)
    return p, seen.tolist(), expected.tolist()


def _length(samples: Sequence[Sample]) -> Finding:
    """How often the one longest option is the gold one, beside chance."""
    chosen, right = list[Sample](), list[float]()
    for sample in samples:
        lengths = [len(choice.strip()) for choice in sample.choices]
        if lengths.count(max(lengths)) == 1:
            chosen.append(sample)
            right.append(float(lengths.index(max(lengths)) == sample.gold[0]))
    if len(chosen) < LEAST_SAMPLES:
        return skipped("labels", f"one option is the longest in {len(chosen)} samples, too few to judge by")
    got = against_chance(right, chosen, [chance_of(sample) for sample in chosen])
    text = f"the longest option is the gold one in {got}"
    if got.above and got.mean > got.chance + LEAST_LENGTH:
        ids = [sample.id for sample, is_gold in zip(chosen, right, strict=True) if is_gold]
        return fault("labels", f"{text}: its length gives it away", ids)
    return ok("labels", text)
