"""What is expected of runs that were not made yet, as typed records: what a task can show, and what
a run would take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.plain import Plain


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, the bounds between which it may lie, and what it rests on.

    value None: not known; `basis` says why, and `low` and `high` what is known of it all the same.
    low is the optimistic bound of what is paid or needed. Without bounds (None) the number is as
    exact as its basis.
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
        """The amount with an increasing function applied to its number and both bounds."""
        changed, low, high = (
            None if amount is None else function(amount)
            for amount in (self.value, self.low, self.high)
        )
        return Amount(changed, low, high, self.basis)

    def times(self, factor: float) -> Amount:
        """The amount as many times."""
        return self.through(lambda amount: amount * factor)

    def because(self, basis: str) -> Amount:
        """The same number, resting on `basis`."""
        return replace(self, basis=basis)


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What a run takes of one model: requests and tokens of the model under test, US dollars,
    seconds.

    stored: requests for all items of the task that the store answers already, which take nothing of
    this; None where not all were looked up.
    """

    requests: Amount
    input_tokens: Amount
    output_tokens: Amount
    money: Amount
    seconds: Amount
    stored: int | None


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """What a judge takes that reads only what rules are unsure of. model: "" where none is named
    for the role.
    """

    role: str
    model: str
    requests: Amount
    money: Amount


@dataclass(frozen=True, slots=True)
class DrawsForecast:
    """Draws an item: `planned` by the task, `best` for the money, and `needed` where all items are
    too few.
    """

    planned: int
    best: Amount
    needed: Amount


@dataclass(frozen=True, slots=True)
class PartsForecast:
    """Parts of the variance of one item's difference of two models: of items, of one draw of both,
    of the prompt on single items; and `shift`, the variance of the mean difference between prompts.
    """

    item: Amount
    draw: Amount
    prompt: Amount
    shift: Amount


@dataclass(frozen=True, slots=True)
class DesignForecast:
    """What a comparison of so many items, repeats and prompts shows: half of its interval, and the
    smallest difference it detects.

    With one prompt both are about that prompt, with several about prompts like these. answers: of
    each model. made: it was run; cheapest: the fewest answers that detect the wished difference;
    enough: whether it does.
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

    n_total: its items, in `n_clusters` clusters (None: every item is alone). paired_variance,
    single_variance: of one item's difference of two models, and of one item's score. design_effect:
    what clusters multiply variances by. items_for_difference, items_for_half_width: items that are
    needed. visible_paired, visible_unpaired: the smallest difference that all items show, of two
    models on the same items and on different ones; half_width: of one model's interval on all
    items. n_used: items that the plan takes. models: what that takes, by model. parts, designs: of
    runs of two models, what their difference varies by, and what other designs would show; None and
    () without such runs.
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
        """Whether the task has the items that the difference needs; None where it is not known how
        many.
        """
        needed = self.items_for_difference.value
        return None if needed is None else needed <= self.n_total

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {**Plain.as_dict(self), "enough": self.enough}


@dataclass(frozen=True, slots=True)
class Forecast(Plain):
    """A plan for some tasks and models.

    difference, half_width, level, power: what is to be seen. pilot: items of each task that were
    run for the plan, None for no pilot; pilot_runs: their records; pilot_failed: samples of them
    without a score. visible_overall: the smallest difference that the average over several tasks
    shows. models: what a run takes, by model, over all tasks. judges: of unsure answers, with what
    they take beside that. command: what runs it. conclusion: the plan in words, filled in by
    `reports.documents.plan`.
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
