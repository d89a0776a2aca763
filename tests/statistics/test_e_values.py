"""E-values against the closed form, a brute-force mixture and Ville's inequality."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import integrate

from evalwright.statistics._evidence import log_pair_e_value, pair_e_value


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (3, 3), (12, 4), (2, 30)])
def test_it_is_the_mixture_of_all_shares(wins: int, losses: int) -> None:
    def bet(
        angle: float,
    ) -> float:  # share = sin^2 turns the Beta(1/2, 1/2) prior into a flat one
        share = math.sin(angle) ** 2
        return float((2 * share) ** wins * (2 * (1 - share)) ** losses * 2 / math.pi)

    assert pair_e_value(wins, losses) == pytest.approx(
        integrate.quad(bet, 0, math.pi / 2)[0], rel=1e-8
    )
    assert pair_e_value(wins, losses) == pytest.approx(pair_e_value(losses, wins))


def test_no_sequence_wins_on_average() -> None:
    for length in (1, 4, 9):
        flips = np.array(list(product((0, 1), repeat=length))).sum(axis=1)
        mean = np.exp(log_pair_e_value(flips, length - flips)).mean()
        assert mean == pytest.approx(1.0, abs=1e-12)


def test_the_chance_of_ever_reaching_the_bar_is_exactly_below_alpha() -> None:
    # All paths of fair flips by dynamic programming: mass that has crossed 20 is taken out where it
    # crosses.
    alive = {(0, 0): Fraction(1)}
    crossed = Fraction(0)
    for _ in range(120):
        later: dict[tuple[int, int], Fraction] = {}
        for (w, lost), mass in alive.items():
            for state in ((w + 1, lost), (w, lost + 1)):
                later[state] = later.get(state, Fraction(0)) + mass / 2
        alive = {s: m for s, m in later.items() if pair_e_value(*s) < 20}
        crossed += sum((m for s, m in later.items() if s not in alive), Fraction(0))
    assert 0.005 < crossed <= 0.05


def test_large_counts() -> None:
    assert pair_e_value(100_000, 0) == math.inf
    assert log_pair_e_value([3, 5], [5, 3]).shape == (2,)
