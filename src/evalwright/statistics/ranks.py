"""Rank sets: the ranks on a leaderboard that each model can have.

A rank read off point estimates says nothing of chance. Mogstad, Romano, Shaikh & Wilhelm (2024, "Inference for ranks
with applications to mobility across neighbourhoods and academic achievement across countries") turn simultaneous
intervals of the pairwise differences into sets of ranks: a model's best rank is one more than the number of models
that are significantly better, its worst leaves out those that are significantly worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalwright.statistics.simultaneous import SimultaneousDifferences
from evalwright.statistics.units import I64


class RankSets(NamedTuple):
    """The ranks `low`..`high` (models,) that each model can have; 1 is the best.

    Models of the same true score share ranks: every rank that some order of them would give is a true one.
    """

    low: I64
    high: I64


def rank_sets(
    differences: SimultaneousDifferences, *, simultaneous: bool = True, higher_is_better: bool = True
) -> RankSets:
    """rank(j) in [1 + #{k significantly better}, M - #{k significantly worse}] (Mogstad, Romano, Shaikh & Wilhelm 2024).

    `simultaneous`: True for a whole leaderboard: all sets hold all true ranks together with probability `level`. False for
    one model chosen beforehand, whose set is narrower because only its own M - 1 differences must hold. A pair without an
    answer (nan) never differs significantly.
    """
    low = differences.low if simultaneous else differences.own_low
    high = differences.high if simultaneous else differences.own_high
    above, below = low > 0, high < 0  # the row's model scores significantly more, significantly less
    better, worse = (below, above) if higher_is_better else (above, below)
    return RankSets(1 + np.count_nonzero(better, axis=1), len(low) - np.count_nonzero(worse, axis=1))
