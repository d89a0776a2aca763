"""Forecasts as typed records: what a task can show, and what a run would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.plain import Plain


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with the bounds in which it may lie, and its basis.

    Without bounds the number is as exact as its basis.

    Args:
        value: None if unknown; `basis` then says why, and `low` and `high` what is known anyway.
        low: the optimistic bound of what is paid or needed.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    basis: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is a number at all."""
        return self.value is not None or self.high is not None

    @property
    def least(self) -> float | None:
        """The lower bound, or the number where it has none."""
        return self.value if self.low is None else self.low

    @property
    def most(self) -> float | None:
        """The upper bound, or the number where it has none."""
        return self.value if self.high is None else self.high

    def through(self, function: Callable[[float], float]) -> Amount:
        """The amount with an increasing function applied to its value and bounds."""
        changed, low, high = (
            None if amount is None else function(amount)
            for amount in (self.value, self.low, self.high)
        )
        return Amount(changed, low, high, self.basis)

    def times(self, factor: float) -> Amount:
        """The amount multiplied by a factor."""
        return self.through(lambda amount: amount * factor)

    def because(self, basis: str) -> Amount:
        """The same amount with another basis."""
        return replace(self, basis=basis)


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What a run takes of one model: requests, tokens, US dollars and seconds.

    Args:
        stored: requests that the store answers already, at no cost; None if not all were looked up.
    """

    requests: Amount
    input_tokens: Amount
    output_tokens: Amount
    money: Amount
    seconds: Amount
    stored: int | None


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """What a judge of unsure answers takes.

    Args:
        model: "" if none is named for the role.
    """

    role: str
    model: str
    requests: Amount
    money: Amount


@dataclass(frozen=True, slots=True)
class DrawsForecast:
    """Draws per item: planned by the task, best for the money, and needed to make up for items."""

    planned: int
    best: Amount
    needed: Amount


@dataclass(frozen=True, slots=True)
class PartsForecast:
    """The parts of the variance of one item's difference between two models.

    Args:
        item, draw, prompt: of items, of one draw of both models, and of the prompt on single items.
        shift: the variance of the mean difference between prompts.
    """

    item: Amount
    draw: Amount
    prompt: Amount
    shift: Amount


@dataclass(frozen=True, slots=True)
class DesignForecast:
    """What a comparison with so many items, repeats and prompts shows.

    With one prompt the numbers are about that prompt, with several about prompts like these.

    Args:
        half_width: half of its interval.
        visible: the smallest difference that it detects.
        answers: needed of each model.
        made: whether this design was run.
        cheapest: whether it detects the difference with the fewest answers.
        enough: whether it detects the difference.
    """

    items: int
    repeats: float
    prompts: int
    half_width: float
    visible: float
    answers: int
    made: bool
    cheapest: bool
    enough: bool


@dataclass(frozen=True, slots=True)
class TaskForecast(Plain):
    """What one task can show.

    Args:
        n_total: its items, in `n_clusters` clusters (None if every item stands alone).
        paired_variance: of one item's difference between two models.
        single_variance: of one item's score.
        design_effect: the factor by which clusters increase variances.
        items_for_difference, items_for_half_width: how many items are needed.
        visible_paired, visible_unpaired: the smallest difference that all items show, for two
            models on the same items and on different ones.
        half_width: of one model's interval on all items.
        n_used: items that the plan uses; `models` says what they take, by model.
        parts, designs: the variance of two models' difference and what other designs would show, if
            there are runs of two models.
    """

    task: str
    metric: str
    bounded: bool
    n_total: int
    n_clusters: int | None
    score: Amount
    single_variance: Amount
    paired_variance: Amount
    design_effect: Amount
    items_for_difference: Amount
    items_for_half_width: Amount
    visible_paired: Amount
    visible_unpaired: Amount
    half_width: Amount
    n_used: int
    draws: DrawsForecast
    models: Mapping[str, ModelForecast]
    parts: PartsForecast | None = None
    designs: tuple[DesignForecast, ...] = ()

    @property
    def enough(self) -> bool | None:
        """Whether the task has the items that the difference needs; None if unknown."""
        needed = self.items_for_difference.value
        return None if needed is None else needed <= self.n_total

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {**Plain.as_dict(self), "enough": self.enough}


@dataclass(frozen=True, slots=True)
class Forecast(Plain):
    """A plan for some tasks and models.

    Args:
        pilot: items of each task that were run for the plan, None without a pilot.
        pilot_failed: samples of the pilot without a score.
        visible_overall: the smallest difference that the average over several tasks shows.
        models: what a run takes over all tasks, by model.
        judges: what judges of unsure answers take in addition.
        command: the command of the planned run.
        conclusion: the plan in words, filled in by `reports.documents.plan`.
    """

    difference: float
    half_width: float
    level: float
    power: float
    pilot: int | None
    pilot_runs: tuple[str, ...]
    pilot_failed: int
    tasks: tuple[TaskForecast, ...]
    visible_overall: Amount | None
    models: Mapping[str, ModelForecast]
    notes: tuple[str, ...]
    command: str
    judges: tuple[JudgeForecast, ...] = ()
    conclusion: str = ""
