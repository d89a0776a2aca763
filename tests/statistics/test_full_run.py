"""What the full run will say: against brute force over all lists, and by how often an early
verdict is wrong.
"""

from itertools import permutations

import numpy as np
import pytest

from evalwright.statistics import compare_paired, full_run
from evalwright.statistics.full_run import (
    binary_outlook,
    graded_outlook,
    kept_counts,
    least_wins,
    log_evidence,
)


def _arrays(wins: int, losses: int, n: int) -> tuple[list[int], list[int]]:
    rest = n - wins - losses
    return [1] * wins + [0] * losses + [1] * rest, [0] * wins + [1] * losses + [
        1
    ] * rest


@pytest.mark.parametrize(("n", "level"), [(12, 0.95), (60, 0.95), (60, 0.99), (7, 0.8)])
def test_least_wins_is_what_the_comparison_needs(n: int, level: float) -> None:
    found = least_wins(np.arange(n + 1.0), level)
    for d in range(n + 1):
        least = int(found[d])
        near = (
            range(d + 1) if n < 20 else range(max(0, least - 2), min(d, least + 1) + 1)
        )
        for w in near:  # of few items all counts, else those on both sides of the least
            assert (
                compare_paired(*_arrays(w, d - w, n), level=level).verdict == "better"
            ) is (w >= least)


def test_the_evidence_is_a_fair_bet_for_every_list() -> None:
    # The mean over all orders of a list with K of N, stopped at any fixed n, is at most 1 (1 where
    # no order is impossible).
    for k_total, n_total, up in [(2, 5, 0.5), (3, 6, 0.95), (1, 4, 0.05)]:
        orders = list(permutations([1] * k_total + [0] * (n_total - k_total)))
        for n in range(1, n_total + 1):
            bets = [
                np.exp(
                    log_evidence(
                        sum(order[:n]),
                        n,
                        np.array([float(k_total)]),
                        np.array([float(n_total)]),
                        np.array([2.0]),
                        up,
                    )
                )[0]
                for order in orders
            ]
            assert np.mean(bets) <= 1 + 1e-9


def test_kept_counts_are_those_that_are_not_refuted() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        total = int(rng.integers(5, 120))
        n = int(rng.integers(0, total + 1))
        k = int(rng.binomial(n, rng.random()))
        everything = np.arange(total + 1.0)
        evidence = log_evidence(
            k, n, everything, np.full(total + 1, float(total)), np.full(total + 1, 5.0)
        )
        kept = everything[evidence < np.log(20)]
        low, high = kept_counts(k, n, [float(total)], 0.05, 5.0)
        assert (low[0], high[0]) == (kept[0], kept[-1])
        assert len(kept) == kept[-1] - kept[0] + 1  # no hole
    assert (
        kept_counts(30, 100, [100.0], 0.05, 5.0)[0]
        == kept_counts(30, 100, [100.0], 0.05, 5.0)[1]
        == 30
    )


def test_undirected_verdict_and_interval_agree() -> None:
    found = binary_outlook(260, 90, 900, 1200, directed=False)
    assert found.verdict == "a better"
    assert 0 < found.low < (260 - 90) / 900 < found.high
    seen = binary_outlook(100, 100, 1190, 1200, directed=False)
    assert seen.verdict == "no difference seen"
    assert -10 / 1200 <= seen.low <= 0 <= seen.high <= 10 / 1200
    assert binary_outlook(0, 0, 0, 50).verdict == "open"


@pytest.mark.parametrize("shift", [0.0, 0.04, 0.1])
def test_graded_units_and_clusters(shift: float) -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    early = 0
    for _ in range(30):
        sizes = rng.integers(1, 5, 300)
        ids = np.repeat(np.arange(300), sizes)
        d = rng.normal(shift, 0.5, len(ids)) + rng.normal(0, 0.1, 300)[ids]
        full = compare_paired(d, np.zeros(len(d)), clusters=ids, value_range=None)
        totals = np.bincount(ids, weights=d).astype(np.float64)
        items = sizes.astype(np.float64)
        for n in range(30, 300, 15):
            found = graded_outlook(totals[:n], items[:n], 300, len(ids))
            if found.verdict != "open":
                early += 1
                wrong += found.verdict != {
                    "better": "a better",
                    "worse": "b better",
                }.get(full.verdict, full.verdict)
                break
    assert early >= 5
    assert wrong <= 4
    few = graded_outlook(np.ones(100), np.ones(100), 300)
    assert few.verdict == "open"  # no spread is no certainty


def test_the_verdict_is_that_of_a_full_scan() -> None:
    # Every (wins, discordant) of the full run that its bet has not refuted, one by one, instead of
    # the nearest ones.
    rng = np.random.default_rng(5)
    n_total = 150
    seen_verdicts = set()
    for _ in range(50):
        p = rng.uniform(0.1, 0.5)
        share = rng.uniform(0.2, 0.8)
        n = int(rng.integers(40, 150))
        d = rng.choice([1, -1, 0], n, p=[p * share, p * (1 - share), 1 - p])
        wins = int((d > 0).sum())
        losses = int((d < 0).sum())
        low, high = kept_counts(wins + losses, n, [float(n_total)], 0.005, n_total / 24)
        verdicts = set()
        for total in np.arange(low[0], high[0] + 1):
            w = np.arange(total + 1)
            size = np.full(len(w), total)
            a_wins = np.full(len(w), least_wins(np.array([total]), 0.95)[0])
            b_wins = size - a_wins
            stake = full_run._stake_share(w, size, a_wins, b_wins)
            evidence = log_evidence(
                wins, wins + losses, w, size, np.maximum(1.0, size / 24), stake
            )
            for count in w[evidence < -np.log(0.045)]:
                better = count >= a_wins[0]
                verdicts.add("a" if better else "b" if count <= b_wins[0] else "no")
        found = binary_outlook(wins, losses, n, n_total, interval=False).verdict
        seen_verdicts.add(found)
        if found != "open":
            assert {{"a better": "a", "b better": "b"}.get(found, "no")} == verdicts
        # The other way round it may stay open a little longer: a look first asks the likeliest
        # number of discordant items.
        elif len(verdicts) == 1:
            assert (
                binary_outlook(
                    wins, losses, n, n_total, alpha=0.06, interval=False
                ).verdict
                != "open"
            )
    assert seen_verdicts == {"a better", "b better", "no difference seen", "open"}
