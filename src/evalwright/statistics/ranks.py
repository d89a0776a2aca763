"""Rank sets: which places of a leaderboard the data leave open for each model.

A rank read off point estimates says nothing of chance. Mogstad, Romano, Shaikh & Wilhelm (2024, "Inference for ranks
with applications to mobility across neighbourhoods and academic achievement across countries") turn simultaneous
intervals of the pairwise differences into sets of ranks: a model's best rank is one more than the number of models
that are surely better, its worst leaves out those that are surely worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evalwright.statistics.simultaneous import SimultaneousDifferences
from evalwright.statistics.units import I64


@dataclass(frozen=True, slots=True)
class RankSets:
    """The ranks `low`..`high` (models,) that each model can have; 1 is the best.

    `simultaneous`: all sets hold all true ranks together with probability `level`; else each holds that of its own
    model. Models of the same true score share ranks: every rank that some order of them would give is a true one.
    """

    low: I64
    high: I64
    level: float
    simultaneous: bool
    higher_is_better: bool
    method: str

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
            "simultaneous": self.simultaneous,
            "higher_is_better": self.higher_is_better,
            "method": self.method,
        }


def rank_sets(
    differences: SimultaneousDifferences, *, simultaneous: bool = True, higher_is_better: bool = True
) -> RankSets:
    """rank(j) in [1 + #{k surely better}, M - #{k surely worse}] (Mogstad, Romano, Shaikh & Wilhelm 2024).

    `simultaneous`: True for a whole leaderboard, False for one model chosen beforehand, whose set is narrower because
    only its own M - 1 differences must hold. A pair without an answer (nan) is never sure.
    """
    low = differences.low if simultaneous else differences.own_low
    high = differences.high if simultaneous else differences.own_high
    above, below = low > 0, high < 0  # the row's model scores surely more, surely less
    better, worse = (below, above) if higher_is_better else (above, below)
    models = len(low)
    kind = "simultaneous" if simultaneous else "marginal"
    return RankSets(
        low=1 + np.count_nonzero(better, axis=1),
        high=models - np.count_nonzero(worse, axis=1),
        level=differences.level,
        simultaneous=simultaneous,
        higher_is_better=higher_is_better,
        method=f"{kind} rank sets, {differences.method}",
    )
