"""How many draws an item are worth their price, and whether more of them can make up for items that do not exist."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalwright.analysis.power.designs import MeasuredPair
from evalwright.analysis.power.forecasts import Amount, DrawsForecast
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.spending import ModelBasis
from evalwright.analysis.power.variances import ASSUMED, Variances
from evalwright.core.tasks import Task
from evalwright.models.base import LocalModel
from evalwright.runs.measurements import Measured
from evalwright.statistics.power import best_draws, smallest_visible_difference
from evalwright.statistics.units import variance_components

MOST_DRAWS = 64
"""More draws an item than this are not proposed."""

GREEDY = "answers are not drawn at random, so another draw is the same answer"


def draws_of(
    task: Task,
    spread: Variances,
    sources: Sequence[Measured],
    models: Sequence[ModelBasis],
    aim: Aim,
    pair: MeasuredPair | None = None,
) -> DrawsForecast:
    """What draws are worth on this task. sources: runs of it; models: those under test; pair: two of the runs compared."""
    if not drawn_at_random(task):
        return DrawsForecast(task.draws, Amount(1, basis=GREEDY), Amount(None, basis=GREEDY))
    within, draws, basis = _within(sources, aim.assumed)
    if not within:
        unknown = Amount(
            None, basis="needs a run with two or more draws an item, or --assume within=VARIANCE"
        )
        return DrawsForecast(task.draws, unknown, unknown)
    n_total = len(task.samples)
    if pair is not None and "within" not in aim.assumed:
        needed = _needed_of(pair, n_total, aim, basis)
    else:
        noise = [variance / count for variance, count in zip(within, draws, strict=True)]
        between = (spread.paired.value or 0.0) - (sum(noise) if len(noise) > 1 else 2 * noise[0])
        needed = _needed(n_total, max(0.0, between), within, spread, aim, basis)
    return DrawsForecast(task.draws, _best(spread, sources, models, aim.assumed), needed)


def drawn_at_random(task: Task) -> bool:
    """Whether another draw is another answer."""
    # None where the strategy does not show it.
    temperature = getattr(getattr(task.strategy, "sampling", None), "temperature", None)
    return "generate" in task.strategy.needs and temperature != 0


def _needed_of(pair: MeasuredPair, n_total: int, aim: Aim, basis: str) -> Amount:
    """The draws with which all items show the difference, by the comparison that was made."""
    for count in range(1, MOST_DRAWS + 1):
        if pair.design.visible(n_total, count) <= aim.difference:
            return Amount(count, basis=basis)
    return _too_few(pair.design.visible(n_total, math.inf), aim)


def _too_few(limit: float, aim: Aim) -> Amount:
    """Why no number of draws that is proposed shows the difference. limit: what draws without end would show."""
    if limit > aim.difference:
        return Amount(None, basis=f"no number of draws replaces items: the limit is {100 * limit:.1f} points")
    return Amount(None, basis=f"more than {MOST_DRAWS} draws")


def _within(
    sources: Sequence[Measured], assumed: Mapping[str, float]
) -> tuple[list[float], list[float], str]:
    """The variance of one draw of each model, and the draws that the spread was measured with."""
    if "within" in assumed:
        return [assumed["within"]], [1.0], ASSUMED
    found = [(source, variance_components(source.scores).within) for source in sources]
    kept = [(source, within) for source, within in found if not math.isnan(within)]
    draws = [float(source.scores.shape[1]) for source, _ in kept]
    names = " and ".join(source.run.label for source, _ in kept)
    return [within for _, within in kept], draws, f"measured on draws of {names}"


def _best(
    spread: Variances, sources: Sequence[Measured], models: Sequence[ModelBasis], assumed: Mapping[str, float]
) -> Amount:
    """The draws that make one model's mean the most precise for the money."""
    per_item, per_draw, said = _costs(models)
    if "within" in assumed:
        single = spread.single.value or 0.0
        between = single - assumed["within"]
        if between <= 0:
            return Amount(MOST_DRAWS, basis="items do not differ, so any number of draws")
        best = best_draws(assumed["within"], between, per_item=per_item, per_draw=per_draw, most=MOST_DRAWS)
        return Amount(best, basis=f"{ASSUMED}; {said}")
    for source in sources:
        between, within = variance_components(source.scores)
        if not math.isnan(within):
            best = best_draws(within, between, per_item=per_item, per_draw=per_draw, most=MOST_DRAWS)
            share = between / (between + within) if between + within > 0 else math.nan
            said = f"measured on {source.run.label}; {said}"
            return Amount(best, basis=f"{100 * share:.0f}% of the variance is between items, {said}")
    return Amount(None, basis="no run has two draws of an item")


def _costs(models: Sequence[ModelBasis]) -> tuple[float, float, str]:
    """What is paid once an item and for every draw, in tokens: a local model reads the prompt of several draws once."""
    own = [one.own for one in models if one.own is not None and one.own.counts_tokens]
    if own and all(isinstance(one.model, LocalModel) for one in models):
        into = sum(float(source.input_tokens.mean()) for source in own)
        out = sum(float(source.output_tokens.mean()) for source in own)
        return into, max(1.0, out), "a prompt is read once for all its draws"
    return 0.0, 1.0, "every draw pays for its prompt again"


def _needed(
    n_total: int, between: float, within: list[float], spread: Variances, aim: Aim, basis: str
) -> Amount:
    """The draws of both models with which all items show the difference."""
    draws = np.arange(1, MOST_DRAWS + 1)
    variance = between + within[0] / draws + within[:2][-1] / draws
    design = spread.design.value or 1.0

    def seen(variance: Any) -> Any:
        return smallest_visible_difference(n_total, variance * design, level=aim.level, power=aim.power)

    enough = np.flatnonzero(seen(variance) <= aim.difference)
    if len(enough):
        return Amount(int(draws[enough[0]]), basis=basis)
    return _too_few(float(seen(between)), aim)
