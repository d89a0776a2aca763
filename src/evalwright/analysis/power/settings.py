"""The settings of a plan: the difference to detect, assumptions and prices, all validated first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalwright.analysis.power.forecasts import Amount
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.models.remote.prices import Price
from evalwright.statistics import smallest_visible_difference
from evalwright.statistics._quantiles import normal_quantile

ASSUMPTIONS = {
    "accuracy": "the share of right answers, between 0 and 1",
    "design_effect": "what clusters multiply variances by, at least 1",
    "discordant": (
        "the share of items that one of two models gets right and the other wrong,"
        " between 0 and 1"
    ),
    "output_tokens": "tokens of one answer",
    "variance": "the variance over items of the difference of two models' scores",
    "within": "the variance of one draw around its item's mean score",
}
"""The assumptions that can be made, with their meaning."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What the plan should achieve, in the unit of scores (0.02 is 2 points of accuracy).

    Args:
        difference: between two models, to be detected with probability `power` at `level`.
        half_width: half the width of one model's interval.
        level: confidence level.
        power: probability of detection.
        assumed: assumptions, by the names of ASSUMPTIONS.

    Raises:
        ConfigurationError: a value is impossible.
        UnknownName: there is no such assumption.
    """

    difference: float
    half_width: float
    level: float
    power: float
    assumed: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("difference", "half_width"):
            setting = getattr(self, name)
            if not (math.isfinite(setting) and setting > 0):
                raise ConfigurationError(
                    f"The {name.replace('_', ' ')} must be above 0, for example 0.02"
                    f" for 2 points, not {setting:g}."
                )
        for name, usual in (("level", 0.95), ("power", 0.8)):
            setting = getattr(self, name)
            if not 0 < setting < 1:
                raise ConfigurationError(
                    f"The {name} must be between 0 and 1, as {usual}, not {setting:g}."
                )
        if self.power < 0.5:
            raise ConfigurationError(
                f"A power of {self.power:g}, under 0.5, means missing the difference"
                " more often than not."
            )
        self._check_assumed()

    def _check_assumed(self) -> None:
        assumed = self.assumed
        for name, assumption in assumed.items():
            check_known("assumption", [name], ASSUMPTIONS)
            least = 1.0 if name == "design_effect" else 0.0
            most = 1.0 if name in ("accuracy", "discordant") else math.inf
            if not (math.isfinite(assumption) and least <= assumption <= most):
                raise ConfigurationError(
                    f"'{name}' is {ASSUMPTIONS[name]}; {assumption:g} cannot be."
                )
        if "variance" in assumed and "discordant" in assumed:
            raise ConfigurationError(
                "Assume either 'discordant' or 'variance', not both: one determines the"
                " other."
            )
        if assumed.get("discordant", math.inf) < self.difference:
            raise ConfigurationError(
                f"Models that differ by {self.difference:g} disagree on at least that"
                " share of the items, so 'discordant' cannot be"
                f" {assumed['discordant']:g}."
            )
        if assumed.get("variance", 1.0) == 0.0:
            raise ConfigurationError(
                "'variance' cannot be 0: then a single item would show any difference."
            )

    def check_bounded(self, task: str) -> None:
        """Raise ConfigurationError if scores from 0 to 1 cannot differ by that much."""
        for name in ("difference", "half_width"):
            setting = getattr(self, name)
            if setting >= 1:
                raise ConfigurationError(
                    f"The {name.replace('_', ' ')} is given in the unit of scores,"
                    f" which are between 0 and 1 on '{task}': 2 points are 0.02, and"
                    f" {setting:g} cannot be."
                )

    def for_pairs(self, n_pairs: int) -> Aim:
        """The aim of one of several comparisons, at a level that holds over all of them.

        It is Bonferroni's, the level at which Holm's correction tests the clearest pair.
        """
        if n_pairs == 1:
            return self
        return replace(self, level=1 - (1 - self.level) / n_pairs)

    def visible(
        self, n: int, variance: Amount, bounded: bool, power: float | None = None
    ) -> Amount:
        """Compute the smallest difference that n items show; at most 1 for bounded scores."""

        def seen(v: float) -> float:
            difference = float(
                smallest_visible_difference(
                    n, v, level=self.level, power=power or self.power
                )
            )
            return min(1.0, difference) if bounded else difference

        return variance.through(seen)

    def unpaired(self, half: float, bounded: bool) -> float:
        """Compute the smallest visible difference of two models on different items.

        Each model's mean is known to +- half.
        """
        z = normal_quantile(0.5 + self.level / 2)
        difference = math.sqrt(2) * half * (z + normal_quantile(self.power)) / z
        return min(1.0, difference) if bounded else difference


def read_assumptions(texts: Sequence[str]) -> dict[str, float]:
    """Parse `["accuracy=0.7,discordant=0.2"]`. Raises ConfigurationError."""
    assumed: dict[str, float] = {}
    for pair in (piece.strip() for text in texts for piece in text.split(",")):
        name, equals, number = (field.strip() for field in pair.partition("="))
        if not equals or not name:
            raise ConfigurationError(
                f"--assume takes name=number, for example accuracy=0.7, not '{pair}'."
            )
        assumed[name] = _parse_number(number, f"--assume {name}")
    return assumed


def read_prices(texts: Sequence[str]) -> dict[str, Price]:
    """Parse prices such as `["0.15/0.60", "openai/m=2/8"]` by model; "" stands for all others.

    Raises:
        ConfigurationError: a price cannot be parsed.
    """
    prices: dict[str, Price] = {}
    for text in texts:
        model, equals, in_and_out = text.rpartition("=")
        into, slash, outof = in_and_out.partition("/")
        if not slash or (equals and not model.strip()):
            raise ConfigurationError(
                "--price takes dollars for a million tokens in and out, IN/OUT or"
                f" MODEL=IN/OUT, for example 0.15/0.60, not '{text}'."
            )
        price = Price(_parse_number(into, "--price"), _parse_number(outof, "--price"))
        if min(price.input, price.output) < 0:
            raise ConfigurationError(f"--price cannot be negative, as in '{text}'.")
        prices[model.strip()] = price
    return prices


def _parse_number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigurationError(f"{where} needs a number, not '{text.strip()}'.")
    return number
