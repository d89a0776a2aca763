"""All pairs of models where some have no item in common: paired where they have, as independent samples where not.

The error is shared out by pairs (Bonferroni between the two kinds): of P pairs, each unpaired one has its interval at alpha / P,
and all paired ones together have theirs at what is left, by one shared resample (`simultaneous.py`). So all intervals hold
together with the level that was asked for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics.pairwise import Bools, checked_missing
from evalwright.statistics.simultaneous import DRAWS, SimultaneousDifferences, simultaneous_differences
from evalwright.statistics.units import F64, I64, Clusters, Range
from evalwright.statistics.unpaired import compare_unpaired


def all_differences(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    missing: npt.ArrayLike | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """`simultaneous_differences`, and pairs without a common item compared as independent samples (`compare_unpaired`).

    The arguments and errors are those of `simultaneous_differences`. `n` and `units` stay 0 for an unpaired pair. A pair that has
    a cluster in common but no item is not independent, and keeps no answer (nan), as one does where a model has no score.
    """
    rows = np.asarray(scores, dtype=np.float64)
    codes = None if clusters is None else np.asarray(clusters, dtype=np.int64)
    lost = checked_missing(missing, rows)

    def paired(level: float) -> SimultaneousDifferences:
        return simultaneous_differences(
            rows, codes, missing=lost, level=level, value_range=value_range, draws=draws, seed=seed
        )

    whole = paired(level)
    asked = lost | ~np.isnan(rows)
    apart = _apart(asked, codes)
    if not apart:
        return whole
    pairs = len(rows) * (len(rows) - 1) // 2
    alpha = 1 - level
    if len(apart) < pairs:
        whole = paired(1 - alpha * (pairs - len(apart)) / pairs)
    filled = {name: getattr(whole, name).copy() for name in _FILLED}
    # An adjusted p of a paired pair is to be held against the whole alpha, as all others are.
    filled["p_adjusted"] = np.minimum(1.0, filled["p_adjusted"] * pairs / max(1, pairs - len(apart)))
    for a, b in apart:
        _fill(filled, rows, asked, codes, a, b, level=1 - alpha / pairs, value_range=value_range, pairs=pairs)
    method = f"{whole.method}; pairs without common items as independent samples (Bonferroni)"
    return replace(whole, **filled, level=level, method=method)


_FILLED = (
    "difference", "low", "high", "own_low", "own_high", "p_value", "p_adjusted", "standard_error", "n_missing", "scored_low",
    "scored_high",
)  # fmt: skip


def _apart(asked: Bools, codes: I64 | None) -> list[tuple[int, int]]:
    """Pairs without a common item and without a common cluster, of models that were asked something."""
    found = []
    common = asked.astype(np.float64) @ asked.T
    for a, b in np.argwhere(np.triu(common == 0, 1)).tolist():
        if not (asked[a].any() and asked[b].any()):
            continue
        if codes is None or not np.intersect1d(codes[asked[a]], codes[asked[b]]).size:
            found.append((a, b))
    return found


def _fill(
    filled: dict[str, F64],
    rows: F64,
    asked: Bools,
    codes: I64 | None,
    a: int,
    b: int,
    *,
    level: float,
    value_range: Range | None,
    pairs: int,
) -> None:
    """Write one pair's comparison, and the same from the other side, into the arrays."""
    sides = [rows[model][asked[model]] for model in (a, b)]
    groups = [None if codes is None else codes[asked[model]] for model in (a, b)]
    found = compare_unpaired(
        *sides, clusters_a=groups[0], clusters_b=groups[1], level=level, value_range=value_range
    )
    both = {
        "n_missing": found.n_failed_a + found.n_failed_b,
        "p_value": found.p_value,
        "p_adjusted": min(1.0, pairs * found.p_value),
        "standard_error": np.nan if found.standard_error is None else found.standard_error,
    }
    limits, scored = (found.low, found.high), (found.scored_low, found.scored_high)
    for one, other, sign in ((a, b, 1.0), (b, a, -1.0)):
        for name, value in {**both, "difference": sign * found.difference}.items():
            filled[name][one, other] = value
        for kind, ends in (("", limits), ("own_", limits), ("scored_", scored)):
            low, high = ends if sign > 0 else (-ends[1], -ends[0])
            filled[f"{kind}low"][one, other], filled[f"{kind}high"][one, other] = low, high
