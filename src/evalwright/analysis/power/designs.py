"""What other designs of a task's comparison would show: more items, more repeats of each, more prompts; from runs of two models.

Runs of a task with the same items and another prompt (the same data by their hash; `-T prompt...`, or a task of another name) are prompts of
the same questions. The comparison is made exactly as `evalwright compare` makes it, so the row of the design that was run has its numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.comparison import read_matrices
from evalwright.analysis.power.forecasts import Amount, DesignForecast, PartsForecast
from evalwright.analysis.power.opening import MeasuredRun
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.variances import more_clustered
from evalwright.analysis.words import counted
from evalwright.core.errors import RunError
from evalwright.runs.measurements import Measured
from evalwright.runs.measures import Matrix, paired_of
from evalwright.statistics import PairedComparison
from evalwright.statistics.designs import Design, variance_parts
from evalwright.statistics.paired import paired_differences
from evalwright.statistics.power import Limits

MOST_REPEATS = 64
PROMPTS = (3, 5, 10)
"""Prompts of the designs that are shown: fewer than three are no sample of prompts."""

F64 = NDArray[np.float64]


class MeasuredPair(NamedTuple):
    """Two models on a task as `compare` sees them: the matrix, the comparison, and the design with what is known of its parts."""

    names: str
    found: Matrix
    made: PairedComparison
    design: Design

    @property
    def n(self) -> int:
        """The items that both were asked."""
        return self.design.asked


def measured_pair(
    task: str, sources: Sequence[MeasuredRun], clusters: NDArray[np.int64] | None, aim: Aim
) -> MeasuredPair | None:
    """The two models of these runs that show least, or None where the runs are not of two models on common items."""
    if {"variance", "discordant", "design_effect"} & set(aim.assumed):
        return None
    runs = of_one_prompt(task, sources)
    pairs = [(a, b) for a, b in combinations(runs, 2) if a.run.label != b.run.label]
    found = [_pair(task, a, b, sources, clusters, aim) for a, b in pairs or list(combinations(runs, 2))]
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: one.design.visible(one.n), default=None)


def of_one_prompt(task: str, sources: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Those runs of a task that have the prompt of the first, where they are of several models; else all."""
    runs = [source for source in sources if task in source.tasks]
    same = [one for one in runs if _prompt(one, task) == _prompt(runs[0], task)]
    return same if len({one.run.label for one in same}) > 1 else runs


def _pair(
    task: str,
    a: MeasuredRun,
    b: MeasuredRun,
    sources: Sequence[MeasuredRun],
    clusters: NDArray[np.int64] | None,
    aim: Aim,
) -> MeasuredPair | None:
    matrix = next((one for one in _matrices(a, b) if one.measure.task == task), None)
    if matrix is None or not matrix.common().any():
        return None
    made = paired_of(matrix, level=aim.level, power=aim.power)
    part = matrix.part(matrix.common())
    values, ids, asked = part.values, part.clusters, len(part.keys)
    pairs = paired_differences(values[0], values[1], clusters=ids, value_range=matrix.measure.value_range)[0]
    seen = made.smallest_visible_difference
    if made.n < 2 or math.isnan(seen) or matrix.scores is not None:
        return None
    plain = Design(pairs, asked, aim.level, aim.power)
    one, other, codes = _scores(task, a, b, sources)
    design = replace(
        plain,
        parts=variance_parts(one, other, clusters=codes, level=aim.level),
        unknown=seen - plain.visible(asked),
        wider=max(0.0, (made.high - made.low) / 2 - plain.half_width(asked)),
        clusters=more_clustered(values[0] - values[1], ids, clusters),
    )
    return MeasuredPair(f"{a.run.label} and {b.run.label}", matrix, made, design)


def _matrices(a: MeasuredRun, b: MeasuredRun) -> list[Matrix]:
    try:
        return read_matrices([a.run, b.run])
    except RunError:  # scored otherwise, or nothing in common: then there is nothing to go by
        return []


def _prompt(source: MeasuredRun, task: str) -> str:
    prompt = source.run.record(task)["definition"].get("prompt")
    return json.dumps([task, prompt], sort_keys=True, default=str)


def _variants(task: str, model: MeasuredRun, sources: Sequence[MeasuredRun]) -> dict[str, Measured]:
    """What a model's runs measured on the items of a task, by prompt; the run's own prompt first."""
    data = model.run.record(task)["content_hash"]
    scorer = model.tasks[task].metric
    out = {_prompt(model, task): model.tasks[task]}
    for source in sources:
        if source.run.label == model.run.label:
            for name, measured in source.tasks.items():
                if measured.metric == scorer and source.run.record(name)["content_hash"] == data:
                    out.setdefault(_prompt(source, name), measured)
    return out


def _scores(
    task: str, a: MeasuredRun, b: MeasuredRun, sources: Sequence[MeasuredRun]
) -> tuple[F64, F64, NDArray[np.int64] | None]:
    """Scores (items, prompts, draws) of both models on the prompts and items that both have, and clusters of the items."""
    ours, theirs = _variants(task, a, sources), _variants(task, b, sources)
    keys = [key for key in ours if key in theirs] or [next(iter(ours))]
    mine = [ours[key] for key in keys]
    others = [theirs[key] for key in keys] if keys[0] in theirs else [next(iter(theirs.values()))]
    common = set(mine[0].ids).intersection(*(one.ids for one in (*mine[1:], *others)))
    first = mine[0]
    there = np.array([name in common for name in first.ids])
    ids = [name for name in first.ids if name in common]
    codes = None if first.clusters is None else first.clusters[there]
    return _stacked(mine, ids), _stacked(others, ids), codes


def _stacked(measured: Sequence[Measured], ids: Sequence[str]) -> F64:
    draws = max(one.scores.shape[1] for one in measured)
    out = np.full((len(ids), len(measured), draws), np.nan)
    for number, one in enumerate(measured):
        places = {name: place for place, name in enumerate(one.ids)}
        out[:, number, : one.scores.shape[1]] = one.scores[[places[name] for name in ids]]
    return out


# -- what is said of them ----------------------------------------------------------------------------------------------


def parts_forecast(pair: MeasuredPair) -> PartsForecast:
    """The parts of the variance, or why one is not known."""
    parts = pair.design.parts
    assert parts is not None
    on = f"measured on {counted(parts.items, 'item')} of {pair.names}"
    single, one = "one draw of each item", "one prompt"
    part = "the runs have {}, so this is part of the items' share"
    return PartsForecast(
        item=_amount(parts.item, on, ""),
        draw=_amount(parts.draw, f"{on}, {parts.repeats:g} repeats", part.format(single)),
        prompt=_amount(parts.prompt, f"{on}, {parts.prompts} prompts", part.format(one)),
        shift=_amount(parts.shift, f"{on}, {parts.prompts} prompts", f"the runs have {one}"),
    )


def _amount(limits: Limits, on: str, unknown: str) -> Amount:
    if math.isnan(limits.value):
        return Amount(None, basis=unknown)
    return Amount(limits.value, limits.low, limits.high, on)


def designs_of(pair: MeasuredPair, n_total: int, repeats: bool, aim: Aim) -> Iterator[DesignForecast]:
    """The design that was run, all items, and what more items, more repeats or more prompts would buy; then the cheapest.

    repeats: whether answers are drawn at random, so that another draw is another answer.
    """
    design, parts = pair.design, pair.design.parts
    assert parts is not None
    made = parts.repeats
    known = repeats and not math.isnan(parts.draw.value)
    several = not math.isnan(parts.shift.value)
    more = [made * 2, made * 4] if known else []
    rows = [(pair.n, made, 1), (n_total, made, 1), (2 * n_total, made, 1), (4 * n_total, made, 1)]
    rows += [(n_total, count, 1) for count in more]
    rows += [(n_total, made, count) for count in PROMPTS] if several else []
    grid = [2**k for k in range(MOST_REPEATS.bit_length())] if known else [made]
    options = [(design.items_for(aim.difference, k), k, 1) for k in sorted({made, *grid})]
    reached = [(n, k, p) for n, k, p in options if n is not None]
    here = [one for one in reached if one[0] <= n_total]
    cheapest = min(here or reached, key=lambda one: one[0] * one[1] * one[2], default=None)
    if cheapest is not None:
        rows.append(cheapest)
    for items, count, prompts in dict.fromkeys(rows):
        seen = design.visible(items, count, prompts)
        yield DesignForecast(
            items=items,
            repeats=count,
            prompts=prompts,
            half_width=design.half_width(items, count, prompts),
            visible=seen,
            answers=math.ceil(items * count * prompts),
            made=(items, count, prompts) == (pair.n, made, 1),
            cheapest=(items, count, prompts) == cheapest,
            enough=seen <= aim.difference,
        )
