"""Biases of judges, from recorded scores alone: for long answers, for the answer shown first, and for a judge's own answers.

Without labels by people a bias for long answers may be right (longer answers may be better), so the number says what the judge does,
not that it is wrong. Self-preference is told from quality by other judges of the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.panels import RecordedJudge, judges_of
from evalwright.analysis.judge_validation.probes import look_for
from evalwright.analysis.judge_validation.verdicts import ANSWER_FIRST, ANSWER_SECOND, Records, log_lengths
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.statistics import (
    Estimate,
    LengthProbe,
    SwapProbe,
    length_bias,
    mean_interval,
    swap_consistency,
)

LENGTH_RATIO = "log length ratio"
"""The part of a score of two answers that says how much longer the one is (`judge-pair`)."""
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SelfPreference(Plain):
    """A judge on the answers of its own model, less the other judges on the same answers: `own`; the same on other models' answers:
    `others`; `excess`: own less others, by item, from -2 to 2 (own alone, where the score compares two answers)."""

    own: Estimate
    others: Estimate | None
    excess: Estimate


@dataclass(frozen=True, slots=True)
class JudgeBias(Plain):
    """What one judge does in one scorer. unknown: by bias the reason why nothing can be said. n: its verdicts."""

    judge: str
    scorer: str
    runs: tuple[str, ...]
    n: int
    length: LengthProbe | None
    position: SwapProbe | None
    self_preference: SelfPreference | None
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Table:
    """One judge's verdicts in one run: (records,) each. pairs: the score compares two answers."""

    own: bool
    pairs: bool
    keys: NDArray[np.int64]
    clusters: NDArray[np.int64]
    values: F64
    verdicts: F64
    lengths: F64
    first: F64
    second: F64


def judge_biases(runs: Sequence[Run], *, scorer: str = "", level: float = 0.95) -> list[JudgeBias]:
    """The biases of every judge of some runs. scorer: whose judges; "" takes every scorer that asks a model.

    Raises ConfigurationError where no score is a judge's, UnknownName for a scorer that no run has, RunError for records that
    cannot be read.
    """
    if not 0 < level < 1:
        raise ConfigurationError(f"The confidence level must be between 0 and 1, not {level:g}.")
    found: dict[tuple[str, str], list[tuple[Run, _Table]]] = {}
    for run in runs:
        # What rules decided for the most part is not a judge's.
        scorers = [one for task in run.data["tasks"] for one in task["scorers"]]
        mixed = {one["name"] for one in scorers if "undecided" in one["options"]}
        judges = [one for one in judges_of(run, scorer) if one.scorer not in mixed]
        roles = [one.part for one in judges if one.part]
        names = (ANSWER_FIRST, ANSWER_SECOND, LENGTH_RATIO)
        of_roles = (f"{role} {name}" for role in roles for name in names)
        records = Records(run, parts=tuple({*names, "score", *roles, *of_roles}))
        for one in judges:
            table = _table(one, records)
            if not np.isnan(table.values).all():
                found.setdefault((one.name, one.scorer), []).append((run, table))
    if not found:
        raise ConfigurationError("No score of these runs is a judge's, so there is no bias to look for.")
    out = []
    for (judge, name), own in found.items():
        others = [each for (_, other), each in found.items() if other == name and each is not own]
        out.append(_bias(judge, name, own, others, level))
    return out


def _table(judge: RecordedJudge, records: Records) -> _Table:
    def part(name: str) -> F64:
        return records.column(judge.scorer, f"{judge.part} {name}" if judge.part else name)

    values = records.column(judge.scorer, judge.part)
    ratio, lengths = part(LENGTH_RATIO), records.lengths
    pairs = not np.isnan(ratio).all() or not np.isnan(part(ANSWER_FIRST)).all()
    verdicts = values if pairs else np.where(np.isnan(values), np.nan, values >= judge.threshold)
    shown = ratio if pairs else log_lengths(lengths), part(ANSWER_FIRST), part(ANSWER_SECOND)
    keys, clusters = records.ints("keys"), records.ints("clusters")
    return _Table(judge.run.model == judge.name, pairs, keys, clusters, values, verdicts, *shown)


def _bias(
    judge: str,
    scorer: str,
    own: list[tuple[Run, _Table]],
    others: list[list[tuple[Run, _Table]]],
    level: float,
) -> JudgeBias:
    tables = [table for _, table in own]

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(table, name) for table in tables])

    clusters = joined("clusters")

    def length() -> LengthProbe:
        verdicts = joined("verdicts")
        if len(np.unique(verdicts[~np.isnan(verdicts)])) < 2:
            raise ValueError("the judge gave one and the same verdict to all answers")
        return length_bias(verdicts, joined("lengths"), clusters=clusters, level=level)

    def position() -> SwapProbe:
        first, second = joined("first"), joined("second")
        if not (~np.isnan(first) & ~np.isnan(second)).any():
            raise ValueError("no score has verdicts in both orders, as those of judge-pair do")
        return swap_consistency(first, second, clusters=clusters, level=level)

    preference = partial(_self_preference, own, others, level)
    found, unknown = look_for({"length": length, "position": position, "self_preference": preference})
    results = found.get("length"), found.get("position"), found.get("self_preference")
    n = int((~np.isnan(joined("values"))).sum())
    return JudgeBias(judge, scorer, tuple(run.id for run, _ in own), n, *results, unknown)


def _self_preference(
    own: list[tuple[Run, _Table]], others: list[list[tuple[Run, _Table]]], level: float
) -> SelfPreference:
    if not any(table.own for _, table in own):
        raise ValueError("no run is of the judge's own model")
    if not others:
        raise ValueError(
            "one judge alone cannot tell its own answers' quality from its preference: use several (`judges`)"
        )
    excess = {True: dict[int, list[float]](), False: dict[int, list[float]]()}
    clusters: dict[int, int] = {}
    for run, table in own:
        beside = [other for judge in others for theirs, other in judge if theirs is run]
        if not beside:
            continue
        for place, key in enumerate(table.keys.tolist()):
            said = [one.values[place] for one in beside if not math.isnan(one.values[place])]
            if said and not math.isnan(table.values[place]):
                excess[table.own].setdefault(key, []).append(float(table.values[place] - np.mean(said)))
                clusters[key] = int(table.clusters[place])
    means = {
        side: {key: float(np.mean(values)) for key, values in found.items()} for side, found in excess.items()
    }
    if not means[True]:
        raise ValueError("no answer of the judge's own model was judged by another judge too")

    def mean(values: Mapping[int, float], most: float = 1.0) -> Estimate:
        codes = np.array([clusters[key] for key in values])
        scores = np.array(list(values.values()))
        return mean_interval(scores, clusters=codes, value_range=(-most, most), level=level)

    if own[0][1].pairs:
        return SelfPreference(mean(means[True]), None, mean(means[True]))
    both = {key: value - means[False][key] for key, value in means[True].items() if key in means[False]}
    if not both:
        raise ValueError(
            "no answer of another model to the same items was judged, so leniency cannot be told from preference"
        )
    return SelfPreference(mean(means[True]), mean(means[False]), mean(both, 2.0))
