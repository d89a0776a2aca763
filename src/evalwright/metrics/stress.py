"""Of answers to stress questions: the share that is handled, the share of each class, and how far rules and judges agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.metrics.perplexities import nothing_scored
from evalwright.metrics.rates import part_values
from evalwright.scorers.stress.rules import CLASSES, FABRICATED, HANDLED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

COEFFICIENTS = ("raw", "kappa", "ac1")


def handled(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that refuse or correct (classes "refusal" and "correction" of `stress`). Partial is not handled.

    Failed requests are counted beside it and bound it; they are no answers.
    """
    return _share(column, HANDLED, level)


def stress_share(column: Column, *, outcome: str = FABRICATED, level: float = 0.95) -> Estimate:
    """The share of answers of one class of `stress`. Raises UnknownName for a class that there is not."""
    check_known("class of stress answers", [outcome], CLASSES)
    return _share(column, (outcome,), level)


def rater_agreement(
    column: Column,
    *,
    coefficient: Literal["raw", "kappa", "ac1"] = "raw",
    first: str = "rules",
    second: str = "judge",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How far two raters give the same class to answers that both judged: raw agreement, Cohen's kappa or Gwet's AC1.

    first, second: "rules" or the role of a judge. Of several draws the first counts. Answers that only one of them judged
    are left out and are no failures: with `judge: unsure` the agreement is that on unsure answers alone.
    """
    import numpy as np

    from evalwright.statistics import cohen_kappa, gwet_ac1, mean_interval, raw_agreement

    check_known("coefficient", [coefficient], COEFFICIENTS)
    if not len(column.values):
        return nothing_scored(column, level)
    a, b = _classes(column, first), _classes(column, second)
    both = ~(np.isnan(a) | np.isnan(b))
    if not both.any():
        empty = mean_interval(a[both], level=level)
        return replace(empty, method=f"no number: '{first}' and '{second}' judged no answer both")
    clusters = None if column.clusters is None else column.clusters[both]
    pairs = np.column_stack([a[both], b[both]])
    if coefficient == "raw":
        return raw_agreement(pairs, clusters=clusters, level=level)
    if coefficient == "kappa":
        return cohen_kappa(pairs[:, 0], pairs[:, 1], clusters=clusters, level=level, seed=seed)
    # Of the scorer `stress` all classes count, of other scorers those that occur.
    labels = len(CLASSES) if "handled" in column.parts or "rules" in (first, second) else None
    return gwet_ac1(pairs, labels=labels, clusters=clusters, level=level, seed=seed)


def _classes(column: Column, rater: str) -> NDArray[np.float64]:
    """The classes that a rater gave, nan where it gave none."""
    import numpy as np

    name = f"{rater} class"
    found = column.part_draws.get(name)
    if found is not None:
        return found[:, 0]
    single = column.parts.get(name)
    return np.full(len(column.values), np.nan) if single is None else single


def handled_values(column: Column) -> NDArray[np.float64]:
    """Whether each answer refuses or corrects, (n,) or (n, draws)."""
    return part_values(column, *HANDLED)


def share_values(column: Column, *, outcome: str = FABRICATED) -> NDArray[np.float64]:
    """Whether each answer is of the class, (n,) or (n, draws)."""
    return part_values(column, outcome)


def _share(column: Column, classes: tuple[str, ...], level: float) -> Estimate:
    from evalwright.statistics import mean_interval

    try:
        return mean_interval(
            part_values(column, *classes),
            clusters=column.clusters,
            n_failed=column.n_failed,
            value_range=(0.0, 1.0),
            level=level,
        )
    except ValueError as error:
        raise ConfigurationError(f"The share of these answers cannot be computed: {error}.") from error
