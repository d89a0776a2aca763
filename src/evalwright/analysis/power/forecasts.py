"""Forecasts as typed records: what a task can show, and what a run would cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.plain import Plain


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its bounds and its basis.

    Without bounds the number is as exact as its basis.

    Args:
        value: None if unknown; `basis` then says why, and `low` and `high` what is known anyway.
        low: the lower bound, the optimistic one for costs and needs.
        high: the upper bound.
        basis: where the number comes from, in words.
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
        """The lower bound, or the number if there is none."""
        return self.value if self.low is None else self.low

    @property
    def most(self) -> float | None:
        """The upper bound, or the number if there is none."""
        return self.value if self.high is None else self.high

    def through(self, function: Callable[[float], float]) -> Amount:
        """Apply an increasing function to value and bounds."""
        changed, low, high = (
            None if amount is None else function(amount)
            for amount in (self.value, self.low, self.high)
        )
        return Amount(changed, low, high, self.basis)

    def times(self, factor: float) -> Amount:
        """Multiply the amount by a factor."""
        return self.through(lambda amount: amount * factor)

    def because(self, basis: str) -> Amount:
        """Return the same amount with another basis."""
        return replace(self, basis=basis)


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What a run requires of one model: requests, tokens, US dollars and seconds.

    Args:
        requests: number of requests.
        input_tokens: tokens read.
        output_tokens: tokens written.
        money: US dollars.
        seconds: duration.
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
    """What the model in a role, such as a judge, costs.

    Args:
        role: the judge's role.
        model: "" if none is named for the role.
        requests: number of requests.
        money: US dollars.
        input_tokens: tokens read.
        output_tokens: tokens written.
        unsure_only: whether it only reads answers of which rules are unsure.
    """

    role: str
    model: str
    requests: Amount
    money: Amount
    input_tokens: Amount
    output_tokens: Amount
    unsure_only: bool = False

    @property
    def is_known(self) -> bool:
        """Whether its requests, tokens and cost can be added to those of the models under test."""
        amounts = (self.requests, self.input_tokens, self.output_tokens, self.money)
        return all(amount.is_known for amount in amounts)


@dataclass(frozen=True, slots=True)
class DrawsForecast:
    """Draws per item: as planned, the best for the money, and those that replace items."""

    planned: int
    best: Amount
    needed: Amount


@dataclass(frozen=True, slots=True)
class PartsForecast:
    """The parts of the variance of one item's difference between two models.

    Args:
        item: variance over items.
        draw: variance of one draw of both models.
        prompt: variance over prompts on single items.
        shift: variance of the mean difference between prompts.
        compares_prompts: whether the two are one model with two prompts.
    """

    item: Amount
    draw: Amount
    prompt: Amount
    shift: Amount
    compares_prompts: bool = False


@dataclass(frozen=True, slots=True)
class DesignForecast:
    """What a comparison of a given design shows.

    With one prompt the numbers are about that prompt, with several about prompts like these.

    Args:
        items: number of items.
        repeats: draws of each.
        prompts: number of prompts.
        half_width: half the width of its interval.
        visible: the smallest difference that it detects.
        answers: answers needed from each model.
        made: whether this design was run.
        cheapest: whether it detects the difference with the fewest answers.
        enough: whether it detects the difference.
        money: US dollars for all runs, judges included; None if unknown.
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
    money: Amount | None = None


@dataclass(frozen=True, slots=True)
class TaskForecast(Plain):
    """What one task can show.

    Args:
        task: the task's name.
        metric: the main metric.
        bounded: whether scores are between 0 and 1.
        n_total: number of its items.
        n_clusters: number of clusters; None if every item is independent.
        score: the mean score.
        single_variance: of one item's score.
        paired_variance: of one item's difference between two models.
        design_effect: the factor by which clusters increase variances.
        items_for_difference: items needed to detect the difference.
        items_for_half_width: items needed for the interval's width.
        visible_paired: the smallest difference that all items show, for two models on the same
            items.
        visible_unpaired: the same for two models on different items.
        half_width: half the width of one model's interval on all items.
        n_used: items that the plan uses.
        draws: what repeated draws are worth.
        models: what a run on these items costs, by model.
        parts: the parts of the variance of two models' difference, if there are runs of two models.
        designs: what other designs would show, likewise.
        money_per_item: US dollars for one item in all runs, judges included.
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
    money_per_item: Amount = Amount(None)

    @property
    def enough(self) -> bool | None:
        """Whether the task has the items that the difference needs; None if unknown."""
        needed = self.items_for_difference.value
        return None if needed is None else needed <= self.n_total

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return {**Plain.as_dict(self), "enough": self.enough}


@dataclass(frozen=True, slots=True)
class Forecast(Plain):
    """A plan for some tasks and models.

    Args:
        difference: the difference to detect.
        half_width: the half width of an interval to reach.
        level: confidence level.
        power: the probability of detection.
        pilot: items of each task that were run for the plan, None without a pilot.
        pilot_runs: ids of the pilot's runs.
        pilot_failed: samples of the pilot without a score.
        tasks: the forecasts by task.
        visible_overall: the smallest difference that the average over several tasks shows.
        models: what a run costs over all tasks, by model.
        notes: what a reader must know, one sentence each.
        command: the command of the planned run.
        judges: what judges and other models in roles cost in addition.
        n_pairs: how many pairs of runs share the level, where several prompts are compared.
        total: what all runs cost together, judges included, for several prompts or with judges.
        several_prompts: whether each model has a run for each of several prompts.
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
    n_pairs: int = 1
    total: ModelForecast | None = None
    several_prompts: bool = False
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON; what is about several prompts only where there are."""
        fields = Plain.as_dict(self)
        del fields["several_prompts"]
        if self.total is None:
            del fields["total"]
        if not self.several_prompts:
            del fields["n_pairs"]
        return fields
