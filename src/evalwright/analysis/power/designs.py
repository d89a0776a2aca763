"""Predicts other designs of a comparison: more items, more repeats, more prompts.

Runs of a task with the same items and another prompt (the same data by hash; `-T prompt...`, or
a task of another name) are prompts of the same questions. The comparison is computed as in
`evalwright compare`, so the row of the design that was run has its numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.comparison import read_matrices
from evalwright.analysis.next_step import make_design
from evalwright.analysis.power.forecasts import (
    Amount,
    DesignForecast,
    DrawsForecast,
    PartsForecast,
)
from evalwright.analysis.power.opening import MeasuredRun
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.spending import ModelBasis
from evalwright.analysis.power.variances import ASSUMED, Variances, clustering_ratio
from evalwright.analysis.words import counted
from evalwright.core.errors import RunError
from evalwright.core.tasks import Task
from evalwright.models.model_interface import LocalModel
from evalwright.runs.measurements import Measured
from evalwright.runs.measures import Matrix, paired_of
from evalwright.statistics import PairedComparison
from evalwright.statistics.designs import Design, variance_parts
from evalwright.statistics.power import Limits, best_draws, smallest_visible_difference
from evalwright.statistics.units import variance_components

MOST_REPEATS = 64
PROMPTS = (3, 5, 10)
"""Numbers of prompts in the designs shown: fewer than three are no sample of prompts."""

F64 = NDArray[np.float64]


class MeasuredPair(NamedTuple):
    """Two models on a task: the matrix, the comparison, and the design with its variances.

    `compares_prompts` says that it is one model with two prompts.
    """

    names: str
    matrix: Matrix
    comparison: PairedComparison
    design: Design
    compares_prompts: bool = False

    @property
    def n(self) -> int:
        """How many items both models were asked."""
        return self.design.asked


def measure_pair(
    task: str,
    runs: Sequence[MeasuredRun],
    sources: Sequence[MeasuredRun],
    clusters: NDArray[np.int64] | None,
    aim: Aim,
) -> MeasuredPair | None:
    """Measure the pair of runs whose comparison detects least.

    Args:
        task: the task's name.
        runs: the runs that are compared.
        sources: these and others, which may have other prompts of the same items.
        clusters: a code for each item of the whole task; None without clusters.
        aim: the aim; if it assumes the variance, nothing is measured.

    Returns:
        The pair; None if the aim assumes the variance, or if no two runs have common items.
    """
    if {"variance", "discordant", "design_effect"} & set(aim.assumed):
        return None
    pairs = [(a, b) for a, b in combinations(runs, 2) if a.run.label != b.run.label]
    candidates = [
        _measure_pair(task, a, b, sources, clusters, aim)
        for a, b in pairs or list(combinations(runs, 2))
    ]
    measured = [pair for pair in candidates if pair is not None]
    return max(measured, key=lambda pair: pair.design.visible(pair.n), default=None)


def select_one_prompt(task: str, sources: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Select the runs with the prompt of the first, if they are of several models.

    Else all runs.
    """
    runs = [source for source in sources if task in source.tasks]
    same = [run for run in runs if _prompt_key(run, task) == _prompt_key(runs[0], task)]
    return same if len({run.run.label for run in same}) > 1 else runs


def _measure_pair(
    task: str,
    a: MeasuredRun,
    b: MeasuredRun,
    sources: Sequence[MeasuredRun],
    clusters: NDArray[np.int64] | None,
    aim: Aim,
) -> MeasuredPair | None:
    matrix = next(
        (
            candidate
            for candidate in _read_matrices(a, b)
            if candidate.measure.task == task
        ),
        None,
    )
    if matrix is None or not matrix.common().any():
        return None
    comparison = paired_of(matrix, level=aim.level, power=aim.power)
    common_items = matrix.part(matrix.common())
    values = common_items.values
    ids = common_items.clusters
    plain = make_design(matrix, comparison)
    if plain is None:
        return None
    scores_a, scores_b, codes = _stack_scores(task, a, b, sources)
    design = replace(
        plain,
        parts=variance_parts(scores_a, scores_b, clusters=codes, level=aim.level),
        clusters=clustering_ratio(values[0] - values[1], ids, clusters),
    )
    names = (
        (a.run.label, b.run.label)
        if a.run.label != b.run.label
        else (a.run.id, b.run.id)
    )
    compares_prompts = a.run.model == b.run.model and (
        _prompt_key(a, task) != _prompt_key(b, task)
    )
    return MeasuredPair(
        f"{names[0]} and {names[1]}", matrix, comparison, design, compares_prompts
    )


def _read_matrices(a: MeasuredRun, b: MeasuredRun) -> list[Matrix]:
    try:
        return read_matrices([a.run, b.run])
    except (
        RunError
    ):  # scored by other scorers, or nothing in common: there is no comparison
        return []


def _prompt_key(source: MeasuredRun, task: str) -> str:
    prompt = source.run.record(task)["definition"].get("prompt")
    return json.dumps([task, prompt], sort_keys=True, default=str)


def _measured_by_prompt(
    task: str, model: MeasuredRun, sources: Sequence[MeasuredRun]
) -> dict[str, Measured]:
    """Collect what a model's runs measured on a task's items, by prompt; its own prompt first."""
    content_hash = model.run.record(task)["content_hash"]
    scorer = model.tasks[task].metric
    measured_by_prompt = {_prompt_key(model, task): model.tasks[task]}
    for source in sources:
        if source.run.label == model.run.label:
            for name, measured in source.tasks.items():
                if (
                    measured.metric == scorer
                    and source.run.record(name)["content_hash"] == content_hash
                ):
                    measured_by_prompt.setdefault(_prompt_key(source, name), measured)
    return measured_by_prompt


def _stack_scores(
    task: str, a: MeasuredRun, b: MeasuredRun, sources: Sequence[MeasuredRun]
) -> tuple[F64, F64, NDArray[np.int64] | None]:
    """Stack both models' scores on shared prompts and items, (items, prompts, draws).

    The clusters of the items come with them.
    """
    if (
        a.run.label == b.run.label
    ):  # the prompt or a setting is what is compared, so it is not noise
        ours, theirs = ({"": run.tasks[task]} for run in (a, b))
    else:
        ours = _measured_by_prompt(task, a, sources)
        theirs = _measured_by_prompt(task, b, sources)
    keys = [key for key in ours if key in theirs] or [next(iter(ours))]
    mine = [ours[key] for key in keys]
    others = (
        [theirs[key] for key in keys]
        if keys[0] in theirs
        else [next(iter(theirs.values()))]
    )
    common = set(mine[0].ids).intersection(
        *(measured.ids for measured in (*mine[1:], *others))
    )
    first = mine[0]
    is_common = np.array([name in common for name in first.ids])
    ids = [name for name in first.ids if name in common]
    codes = None if first.clusters is None else first.clusters[is_common]
    return _stack(mine, ids), _stack(others, ids), codes


def _stack(measured: Sequence[Measured], ids: Sequence[str]) -> F64:
    draws = max(prompt_scores.scores.shape[1] for prompt_scores in measured)
    stacked = np.full((len(ids), len(measured), draws), np.nan)
    for number, prompt_scores in enumerate(measured):
        places = {name: index for index, name in enumerate(prompt_scores.ids)}
        stacked[:, number, : prompt_scores.scores.shape[1]] = prompt_scores.scores[
            [places[name] for name in ids]
        ]
    return stacked


# -- descriptions ----------------------------------------------------------------------


def forecast_parts(pair: MeasuredPair) -> PartsForecast:
    """Describe the parts of the variance, or why one is unknown."""
    variances = pair.design.parts
    assert variances is not None
    on = f"measured on {counted(variances.items, 'item')} of {pair.names}"
    single = "one draw of each item"
    single_prompt = "one prompt"
    unknown_share = "the runs have {}, so this is part of the items' share"
    prompt_share = unknown_share.format(single_prompt)
    shift_share = f"the runs have {single_prompt}"
    if pair.compares_prompts:
        prompt_share = (
            "the prompts are what is compared, so this is in the items' share"
        )
        shift_share = (
            "the prompts are what is compared, so this is the difference itself"
        )
    return PartsForecast(
        item=_amount_of(variances.item, on, ""),
        draw=_amount_of(
            variances.draw,
            f"{on}, {variances.repeats:g} repeats",
            unknown_share.format(single),
        ),
        prompt=_amount_of(
            variances.prompt,
            f"{on}, {variances.prompts} prompts",
            prompt_share,
        ),
        shift=_amount_of(
            variances.shift,
            f"{on}, {variances.prompts} prompts",
            shift_share,
        ),
        compares_prompts=pair.compares_prompts,
    )


def _amount_of(limits: Limits, on: str, unknown: str) -> Amount:
    if math.isnan(limits.value):
        return Amount(None, basis=unknown)
    return Amount(limits.value, limits.low, limits.high, on)


def forecast_designs(
    pair: MeasuredPair, n_total: int, repeats: bool, aim: Aim
) -> Iterator[DesignForecast]:
    """Predict the design that was run, all items, and more items, repeats or prompts.

    The cheapest sufficient one comes last.

    Args:
        pair: the measured comparison.
        n_total: number of items of the task.
        repeats: whether answers are sampled, so that another draw gives another answer.
        aim: the difference to detect, with level and power.
    """
    design = pair.design
    variances = pair.design.parts
    assert variances is not None
    repeats_run = variances.repeats
    repeats_help = repeats and not math.isnan(variances.draw.value)
    has_prompts = not math.isnan(variances.shift.value)
    more_repeats = [repeats_run * 2, repeats_run * 4] if repeats_help else []
    rows = [
        (pair.n, repeats_run, 1),
        (n_total, repeats_run, 1),
        (2 * n_total, repeats_run, 1),
        (4 * n_total, repeats_run, 1),
    ]
    rows += [(n_total, count, 1) for count in more_repeats]
    rows += [(n_total, repeats_run, count) for count in PROMPTS] if has_prompts else []
    grid = (
        [2**k for k in range(MOST_REPEATS.bit_length())]
        if repeats_help
        else [repeats_run]
    )
    options = [
        (design.items_for(aim.difference, k), k, 1)
        for k in sorted({repeats_run, *grid})
    ]
    reached = [(n, k, p) for n, k, p in options if n is not None]
    here = [option for option in reached if option[0] <= n_total]
    cheapest = min(
        here or reached,
        key=lambda option: option[0] * option[1] * option[2],
        default=None,
    )
    if cheapest is not None:
        rows.append(cheapest)
    for n_items, count, prompts in dict.fromkeys(rows):
        seen = design.visible(n_items, count, prompts)
        yield DesignForecast(
            items=n_items,
            repeats=count,
            prompts=prompts,
            half_width=design.half_width(n_items, count, prompts),
            visible=seen,
            answers=math.ceil(n_items * count * prompts),
            made=(n_items, count, prompts) == (pair.n, repeats_run, 1),
            cheapest=(n_items, count, prompts) == cheapest,
            enough=seen <= aim.difference,
        )


# -- repeats: how many per item are worth their price, and whether more can replace items --


MOST_DRAWS = 64
"""Most draws per item that are proposed."""

GREEDY = "answers are not drawn at random, so another draw is the same answer"


def forecast_draws(
    task: Task,
    spread: Variances,
    sources: Sequence[Measured],
    models: Sequence[ModelBasis],
    aim: Aim,
    pair: MeasuredPair | None = None,
) -> DrawsForecast:
    """Predict what repeated draws are worth on this task.

    Args:
        task: the task.
        spread: the variances of its scores.
        sources: measurements of the task.
        models: the models under test.
        aim: the difference to detect, with level and power.
        pair: the comparison of two runs, if there is one.
    """
    if not draws_at_random(task):
        return DrawsForecast(
            task.draws, Amount(1, basis=GREEDY), Amount(None, basis=GREEDY)
        )
    within, draws, basis = _variance_of_draws(sources, aim.assumed)
    if not within:
        unknown = Amount(
            None,
            basis=(
                "needs a run with two or more draws an item, or --assume"
                " within=VARIANCE"
            ),
        )
        return DrawsForecast(task.draws, unknown, unknown)
    n_total = len(task.samples)
    if pair is not None and "within" not in aim.assumed:
        needed = _draws_needed_by_pair(pair, n_total, aim, basis)
    else:
        noise = [
            variance / count for variance, count in zip(within, draws, strict=True)
        ]
        between = (spread.paired.value or 0.0) - (
            sum(noise) if len(noise) > 1 else 2 * noise[0]
        )
        needed = _draws_needed(n_total, max(0.0, between), within, spread, aim, basis)
    return DrawsForecast(
        task.draws, _best_draws(spread, sources, models, aim.assumed), needed
    )


def draws_at_random(task: Task) -> bool:
    """Tell whether answers are sampled, so that another draw gives another answer."""
    # None where the strategy has no temperature.
    temperature = getattr(getattr(task.strategy, "sampling", None), "temperature", None)
    return "generate" in task.strategy.needs and temperature != 0


def _draws_needed_by_pair(
    pair: MeasuredPair, n_total: int, aim: Aim, basis: str
) -> Amount:
    """Find how many draws make the difference visible on all items, from a measured comparison."""
    for count in range(1, MOST_DRAWS + 1):
        if pair.design.visible(n_total, count) <= aim.difference:
            return Amount(count, basis=basis)
    return _explain_too_few(pair.design.visible(n_total, math.inf), aim)


def _explain_too_few(limit: float, aim: Aim) -> Amount:
    """Explain why no proposed number of draws shows the difference.

    Args:
        limit: the difference that infinitely many draws would show.
        aim: the difference to detect.
    """
    if limit > aim.difference:
        return Amount(
            None,
            basis=(
                f"no number of draws replaces items: the limit is {100 * limit:.1f}"
                " points"
            ),
        )
    return Amount(None, basis=f"more than {MOST_DRAWS} draws")


def _variance_of_draws(
    sources: Sequence[Measured], assumed: Mapping[str, float]
) -> tuple[list[float], list[float], str]:
    """Return the variance of one draw for each model, how many draws measured it, and the basis."""
    if "within" in assumed:
        return [assumed["within"]], [1.0], ASSUMED
    components = [
        (source, variance_components(source.scores).within) for source in sources
    ]
    measured = [
        (source, within) for source, within in components if not math.isnan(within)
    ]
    draws = [float(source.scores.shape[1]) for source, _ in measured]
    names = " and ".join(source.run.label for source, _ in measured)
    return [within for _, within in measured], draws, f"measured on draws of {names}"


def _best_draws(
    spread: Variances,
    sources: Sequence[Measured],
    models: Sequence[ModelBasis],
    assumed: Mapping[str, float],
) -> Amount:
    """Choose the number of draws that makes one model's mean most precise for the money."""
    per_item, per_draw, price_text = _draw_costs(models)
    if "within" in assumed:
        single = spread.single.value or 0.0
        between = single - assumed["within"]
        if between <= 0:
            return Amount(
                MOST_DRAWS, basis="items do not differ, so any number of draws"
            )
        best = best_draws(
            assumed["within"],
            between,
            per_item=per_item,
            per_draw=per_draw,
            most=MOST_DRAWS,
        )
        return Amount(best, basis=f"{ASSUMED}; {price_text}")
    for source in sources:
        between, within = variance_components(source.scores)
        if not math.isnan(within):
            best = best_draws(
                within, between, per_item=per_item, per_draw=per_draw, most=MOST_DRAWS
            )
            share = between / (between + within) if between + within > 0 else math.nan
            price_text = f"measured on {source.run.label}; {price_text}"
            return Amount(
                best,
                basis=f"{100 * share:.0f}% of the variance is between items, {price_text}",
            )
    return Amount(None, basis="no run has two draws of an item")


def _draw_costs(models: Sequence[ModelBasis]) -> tuple[float, float, str]:
    """Estimate the cost of an item and of each draw, in tokens.

    A local model reads the prompt once for several draws.
    """
    measured = [
        model.own_run
        for model in models
        if model.own_run is not None and model.own_run.counts_tokens
    ]
    if measured and all(isinstance(model.model, LocalModel) for model in models):
        into = sum(float(source.input_tokens.mean()) for source in measured)
        output_tokens = sum(float(source.output_tokens.mean()) for source in measured)
        return into, max(1.0, output_tokens), "a prompt is read once for all its draws"
    return 0.0, 1.0, "every draw pays for its prompt again"


def _draws_needed(
    n_total: int,
    between: float,
    within: list[float],
    spread: Variances,
    aim: Aim,
    basis: str,
) -> Amount:
    """Find the number of draws of both models with which all items show the difference."""
    draws = np.arange(1, MOST_DRAWS + 1)
    variance = between + within[0] / draws + within[:2][-1] / draws
    design = spread.design.value or 1.0

    def visible_difference(variance: Any) -> Any:
        return smallest_visible_difference(
            n_total, variance * design, level=aim.level, power=aim.power
        )

    enough = np.flatnonzero(visible_difference(variance) <= aim.difference)
    if len(enough):
        return Amount(int(draws[enough[0]]), basis=basis)
    return _explain_too_few(float(visible_difference(between)), aim)
