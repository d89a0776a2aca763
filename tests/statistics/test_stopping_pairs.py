"""Several pairs watched together: every decision is Holm's of the full run, and is known early."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from evalwright.statistics import Decision, compare_paired, holm, parse_rule
from evalwright.statistics.stopping_pairs import PairFamily, PairMonitor
from evalwright.statistics.units import F64

BEATS = parse_rule("A beats B")


def drawn(seed: int, shares: Sequence[float], n: int) -> F64:
    """Right-or-wrong scores of several prompts on n items, (prompts, items)."""
    rng = np.random.default_rng(seed)
    hardness = rng.random(n)
    own = rng.random((len(shares), n))
    mixed = np.where(rng.random((len(shares), n)) < 0.5, hardness, own)
    return np.asarray(mixed < np.array(shares)[:, None], dtype=np.float64)


def watched(
    scores: F64, *, every: int, rule: str = "A beats B", until: int | None = None
) -> list[Decision]:
    """The decisions on all pairs with a look after each `every` items."""
    n_prompts, n = scores.shape
    pairs = list(combinations(range(n_prompts), 2))
    monitors = [
        PairMonitor(parse_rule(rule), n, n_pairs=len(pairs)) for _ in range(len(pairs))
    ]
    family = PairFamily(monitors)
    for start in range(0, until or n, every):
        for monitor, (a, b) in zip(monitors, pairs, strict=True):
            if monitor.decision().decided:
                continue
            for item in range(start, min(start + every, until or n)):
                monitor.submit(item, *(_score(scores[side, item]) for side in (a, b)))
        family.look()
    return [monitor.decision() for monitor in monitors]


def _score(score: float) -> float | None:
    return None if math.isnan(score) else float(score)


def full_verdicts(scores: F64) -> list[str]:
    comparisons = [
        compare_paired(scores[a], scores[b])
        for a, b in combinations(range(len(scores)), 2)
    ]
    adjusted = holm([comparison.p_value for comparison in comparisons])
    return [
        "no difference seen"
        if p_value >= 0.05
        else f"{'A' if comparison.difference > 0 else 'B'} better"
        for p_value, comparison in zip(adjusted, comparisons, strict=True)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_one_look_at_the_end_is_holms_procedure(seed: int) -> None:
    scores = drawn(seed, (0.75, 0.7, 0.66, 0.6), 300)
    decisions = watched(scores, every=300)
    assert [decision.verdict for decision in decisions] == full_verdicts(scores)
    for decision in decisions:
        assert (decision.decided, decision.early, decision.looks) == (True, False, 1)
        assert decision.method == "full comparison, Holm over 6 pairs"
        assert decision.low == decision.high == decision.value


def test_holm_finds_at_the_end_what_bonferroni_would_not() -> None:
    # The clearest pair makes room for the second, whose p-value is between 0.05 / 3 and 0.05 / 2.
    for seed in range(200):
        scores = drawn(seed, (0.8, 0.7, 0.64), 250)
        comparisons = [
            compare_paired(scores[a], scores[b]).p_value
            for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        least, middle, _ = sorted(comparisons)
        if least < 0.05 / 3 < middle < 0.05 / 2:
            break
    decisions = watched(scores, every=50)
    found = [decision.verdict != "no difference seen" for decision in decisions]
    assert sum(found) == 2 + (max(comparisons) < 0.05)
    assert [decision.verdict for decision in decisions] == full_verdicts(scores)


def test_clear_pairs_are_decided_early_and_keep_their_decision() -> None:
    scores = drawn(0, (0.9, 0.6, 0.6), 1000)
    half_way = watched(scores, every=50, until=500)
    whole = watched(scores, every=50)
    assert [decision.verdict for decision in whole] == full_verdicts(scores)
    assert whole[0].early and whole[0].units < 500
    assert whole[:2] == half_way[:2], "once decided, it does not change"
    assert "Holm over 3 pairs" in whole[0].method
    assert whole[0].low > 0 and whole[0].level == 0.95


def test_a_small_difference_is_known_to_be_small() -> None:
    scores = drawn(1, (0.7, 0.7, 0.7), 4000)
    decisions = watched(scores, every=200, rule="A differs from B or not by 0.06")
    assert {decision.verdict for decision in decisions} == {
        "no difference of 0.06 or more"
    }
    assert all(decision.early for decision in decisions)


def test_graded_scores_and_missing_ones() -> None:
    scores = drawn(2, (0.85, 0.6, 0.6), 800) * 0.5 + 0.25
    scores[1, ::17] = np.nan
    pairs = [PairMonitor(BEATS, 800, n_pairs=2, binary=False) for _ in range(2)]
    family = PairFamily(pairs)
    for start in range(0, 800, 40):
        for monitor, side in zip(pairs, (1, 2), strict=True):
            for item in range(start, start + 40):
                if not monitor.decision().decided:
                    monitor.submit(
                        item, _score(scores[0, item]), _score(scores[side, item])
                    )
        family.look()
    assert [monitor.decision().verdict for monitor in pairs] == ["A better"] * 2
    assert pairs[0].decision().early and pairs[0].decision().failed > 0


def test_a_pair_without_scores_holds_up_no_other() -> None:
    scores = drawn(3, (0.7, 0.7), 60)
    pairs = [PairMonitor(BEATS, 60, n_pairs=2) for _ in range(2)]
    pairs[1].withdrawn = True
    family = PairFamily(pairs)
    for item in range(60):
        pairs[0].submit(item, *map(float, scores[:, item]))
    family.look()
    assert pairs[0].decision().decided and not pairs[1].decision().decided


def test_what_is_no_family_is_refused() -> None:
    with pytest.raises(ValueError, match="one level"):
        PairFamily([])
    strict = PairMonitor(parse_rule("A beats B at 99%"), 50, n_pairs=2)
    with pytest.raises(ValueError, match="one level"):
        PairFamily([strict, PairMonitor(BEATS, 50, n_pairs=2)])
    with pytest.raises(ValueError, match="one of 1 pairs"):
        PairFamily([strict])


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.7, 0.7, 0.7), (0.8, 0.7, 0.7)])
def test_early_decisions_are_those_of_the_full_run(shares: tuple[float, ...]) -> None:
    # benchmarks/until.py has 1,500 trials of seven settings.
    n_trials = 300
    n_other = 0
    n_early = 0
    for seed in range(n_trials):
        scores = drawn(seed, shares, 500)
        decisions = watched(scores, every=50)
        n_other += [decision.verdict for decision in decisions] != full_verdicts(scores)
        n_early += any(decision.early for decision in decisions)
    assert n_other <= 0.05 * n_trials
    assert n_early > n_trials / 4
