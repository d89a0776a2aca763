"""The best valid method for each question, with scipy alone and nothing of the package.

Each takes the scores that were there, item by item, and returns the answer that it decides on, or
None where it leaves the question open. Errors are held at 5%: two-sided where the question is
which, one-sided where it is whether.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

ALPHA = 0.05
PValue = Callable[[F64, F64], float]
"""Two-sided p-value of no difference between two models' scores on the same items."""


def mid_p_mcnemar(a: F64, b: F64) -> float:
    """McNemar's test of right-or-wrong scores with mid-p (Fagerland, Lydersen & Laake 2013)."""
    wins = int(((a == 1) & (b == 0)).sum())
    losses = int(((a == 0) & (b == 1)).sum())
    if wins + losses == 0:
        return 1.0
    fewer = min(wins, losses)
    discordant = wins + losses
    p_value = 2 * stats.binom.cdf(fewer, discordant, 0.5) - stats.binom.pmf(
        fewer, discordant, 0.5
    )
    return min(1.0, float(p_value))


def paired_t(a: F64, b: F64) -> float:
    """Student's paired t test."""
    differences = a - b
    if np.ptp(differences) == 0:
        return 1.0 if differences[0] == 0 else 0.0
    return float(stats.ttest_rel(a, b).pvalue)


def clustered_t(a: F64, b: F64, clusters: I64) -> float:
    """t test of the mean difference with CR2 errors and Satterthwaite degrees of freedom (Bell &
    McCaffrey 2002).
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    differences = a - b
    n = len(differences)
    sizes = np.bincount(codes).astype(np.float64)
    totals = np.bincount(codes, differences - differences.mean())
    scale = 1 / np.sqrt(1 - sizes / n)
    error = math.sqrt(float(((scale * totals) ** 2).sum())) / n
    # Under independent errors of equal spread the variance estimate is a quadratic form in them:
    # its matrix is G'G.
    residual_maker = np.eye(len(sizes))[codes] - sizes / n
    matrix = residual_maker * scale
    eigenvalues = np.linalg.eigvalsh(matrix.T @ matrix)
    freedom = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    return float(2 * stats.t.sf(abs(differences.mean()) / error, freedom))


def tango_z(a: F64, b: F64, difference: float) -> float:
    """Tango's (1998) score statistic of mean(a) - mean(b) = difference; infinite where the data
    leave no spread.
    """
    n = len(a)
    wins = float(((a == 1) & (b == 0)).sum())
    losses = float(((a == 0) & (b == 1)).sum())
    quadratic = 2 * n
    linear = -wins - losses + (2 * n - wins + losses) * difference
    constant = -losses * difference * (1 - difference)
    root = math.sqrt(max(0.0, linear**2 - 4 * quadratic * constant))
    loss_rate = (root - linear) / (2 * quadratic)
    variance = n * (2 * loss_rate + difference * (1 - difference))
    distance = wins - losses - n * difference
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def t_statistic(a: F64, b: F64, difference: float) -> tuple[float, float]:
    """Statistic of mean(a) - mean(b) = difference by paired t, and its one-sided critical value at
    5%.
    """
    differences = a - b
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    distance = float(differences.mean()) - difference
    critical = float(stats.t.ppf(1 - ALPHA, len(differences) - 1))
    return (distance / error if error else math.copysign(math.inf, distance)), critical


def which(a: F64, b: F64, p_value: PValue) -> str | None:
    """Which of two models is better, by a two-sided test on the items that both have."""
    answered = ~np.isnan(a) & ~np.isnan(b)
    first = a[answered]
    second = b[answered]
    if p_value(first, second) >= ALPHA:
        return None
    return "A" if first.mean() > second.mean() else "B"


def which_in_the_worst_case(a: F64, b: F64) -> str | None:
    """Which of two is better whatever the missing answers would have been (Manski's bounds, mid-p
    McNemar at both ends).
    """
    low = which(np.nan_to_num(a, nan=0.0), np.nan_to_num(b, nan=1.0), mid_p_mcnemar)
    high = which(np.nan_to_num(a, nan=1.0), np.nan_to_num(b, nan=0.0), mid_p_mcnemar)
    return low if low == high else None


def which_over_tasks(pairs: Sequence[tuple[F64, F64]]) -> str | None:
    """Which is better over several tasks that count the same: t with Welch and Satterthwaite's
    degrees of freedom.
    """
    means = np.array([np.mean(a - b) for a, b in pairs])
    variances = (
        np.array([np.var(a - b, ddof=1) / len(a) for a, b in pairs]) / len(pairs) ** 2
    )
    sizes = np.array([len(a) for a, _ in pairs])
    freedom = variances.sum() ** 2 / (variances**2 / (sizes - 1)).sum()
    statistic = float(means.mean() / math.sqrt(variances.sum()))
    if 2 * stats.t.sf(abs(statistic), freedom) >= ALPHA:
        return None
    return "A" if statistic > 0 else "B"


def dropped(reference: F64, new: F64, margin: float) -> str | None:
    """Whether a drop by more than the margin is shown: Tango's test, one-sided at 5%."""
    answered = ~np.isnan(reference) & ~np.isnan(new)
    is_drop = tango_z(reference[answered], new[answered], margin) > stats.norm.ppf(
        1 - ALPHA
    )
    return "dropped" if is_drop else None


def drop_ruled_out(reference: F64, new: F64, margin: float) -> str | None:
    """Whether a drop by the margin or more is ruled out: Tango's test of non-inferiority, one-sided
    at 5%.
    """
    answered = ~np.isnan(reference) & ~np.isnan(new)
    is_ruled_out = tango_z(
        reference[answered], new[answered], margin
    ) < -stats.norm.ppf(1 - ALPHA)
    return "no drop" if is_ruled_out else None


def equivalent(a: F64, b: F64, margin: float) -> str | None:
    """Two one-sided tests at 5%: Tango's for right-or-wrong scores, paired t for others."""
    answered = ~np.isnan(a) & ~np.isnan(b)
    first = a[answered]
    second = b[answered]
    if set(np.unique([first, second])) <= {0.0, 1.0}:
        critical = float(stats.norm.ppf(1 - ALPHA))
        above = tango_z(first, second, -margin)
        below = tango_z(first, second, margin)
    else:
        above, critical = t_statistic(first, second, -margin)
        below = t_statistic(first, second, margin)[0]
    return "equal enough" if above > critical and below < -critical else None


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values."""
    order = np.argsort(p_values)
    adjusted = np.empty(len(p_values))
    largest = 0.0
    for position, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = largest
    return adjusted.tolist()


def best_of_several(scores: Sequence[F64], p_value: PValue) -> str | None:
    """The number of the model that is better than every other by Holm over all pairs; None where
    there is none.
    """
    pairs = list(combinations(range(len(scores)), 2))
    raw: list[float] = []
    winners: list[int] = []
    for first, second in pairs:
        answered = ~np.isnan(scores[first]) & ~np.isnan(scores[second])
        a = scores[first][answered]
        b = scores[second][answered]
        raw.append(p_value(a, b))
        winners.append(first if a.mean() > b.mean() else second)
    wins = np.zeros(len(scores), dtype=np.int64)
    for winner, adjusted in zip(winners, holm(raw), strict=True):
        wins[winner] += adjusted < ALPHA
    best = int(wins.argmax())
    return str(best + 1) if wins[best] == len(scores) - 1 else None
