"""Combines the opinions of several judges, or on several turns, into one score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Score
from evalwright.scorers.judge.material import Exchange
from evalwright.scorers.judge.panel import (
    DIFFER,
    PANEL_PARTS,
    VERDICTS,
    Combine,
    PanelVerdicts,
    gather_verdicts,
)
from evalwright.strategies.several import gather_all

SPLIT = "split"
"""The label if no class has more than half of the judges; the score is then their mean."""
AGREEMENT = "agreement"
"""The part of a score that holds the share of pairs of judges with the same label."""
_TURN = re.compile(r"turn \d+")


@dataclass(frozen=True, slots=True)
class Opinion:
    """One judge's opinion: a score from 0 to 1, a label, the reason, and numbers by name."""

    value: float
    label: str
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scale:
    """How opinions are combined.

    Attributes:
        labels: all labels, in the order of their numbers.
        label_of: gives the label of a mean score; None where the majority decides the label.
        combine: "mean" or "majority" for several judges, whatever `label_of` is; "" goes by it.
    """

    labels: tuple[str, ...]
    label_of: Callable[[float], str] | None = None
    combine: Combine = ""


def check_parts(names: Sequence[str], roles: Sequence[str], turns: str) -> None:
    """Raise ConfigurationError if a criterion has the name of another part of the score."""
    reserved: set[str] = set()
    if len(roles) > 1:
        judge_parts = [f"{role} {name}" for role in roles for name in ("class", *names)]
        reserved = {AGREEMENT, *PANEL_PARTS, *roles, *judge_parts}
    for name in names:
        if name in reserved or (turns == "each" and _TURN.fullmatch(name)):
            raise ConfigurationError(
                f"A criterion cannot be called '{name}': another part of the score has"
                " that name. Give it another `name`."
            )


def pass_or_fail(threshold: float, combine: Combine = "") -> Scale:
    """Return the scale of two labels: "pass" from `threshold` on, else "fail"."""

    def label_of(mean: float) -> str:
        return "pass" if mean >= threshold else "fail"

    return Scale(("fail", "pass"), label_of, combine)


async def score_opinions(
    roles: Sequence[str],
    turns: Sequence[Exchange],
    opinion: Callable[[str, Exchange], Awaitable[Opinion]],
    scale: Scale,
    needs: int = 0,
) -> Score:
    """Score an answer by the judges' opinions of all turns.

    Waits until every request has ended, then raises the first error.

    Args:
        roles: of the judges.
        turns: what each of them judges.
        opinion: asks one judge about one turn.
        scale: how opinions are combined.
        needs: how many judges must give all their opinions; 0 for all.

    Raises:
        RequestFailed: fewer judges did.
    """

    async def judge(role: str) -> Opinion:
        opinions = await gather_all([opinion(role, turn) for turn in turns])
        return _combine_turns(opinions, scale)

    verdicts = await gather_verdicts({role: judge(role) for role in roles}, needs)
    return _combine_judges(verdicts, scale)


async def score_by_judges(
    roles: Sequence[str],
    judge: Callable[[str], Awaitable[Score]],
    labels: Sequence[str],
    label_of: Callable[[float], str] | None = None,
) -> Score:
    """Score an answer by the opinions of several judges.

    Args:
        roles: of the judges; all are asked side by side.
        judge: asks the judge of a role, and gives its opinion as a Score from 0 to 1.
        labels: that opinions can have, in the order of their numbers.
        label_of: the label of a mean score; by default that of more than half of the judges.

    Returns:
        The opinion of a single judge; of several their mean, with a part for each judge and for how
        far they agree.

    Raises:
        RequestFailed: a judge failed; every request has ended by then.
    """

    async def opinion(role: str, _: Exchange) -> Opinion:
        scored = await judge(role)
        return Opinion(scored.value, scored.label, scored.explanation, scored.parts)

    scale = Scale(tuple(labels), label_of)
    return await score_opinions(roles, [Exchange((), "", "")], opinion, scale)


def _combine_turns(opinions: Sequence[Opinion], scale: Scale) -> Opinion:
    """Average one judge's opinions over the turns; the score of each turn becomes a part."""
    if len(opinions) == 1:
        return opinions[0]
    mean = fmean(opinion.value for opinion in opinions)
    label = (
        scale.label_of(mean)
        if scale.label_of
        else _majority([opinion.label for opinion in opinions]) or SPLIT
    )
    explanation = "; ".join(
        f"turn {number}: {opinion.label} ({opinion.reason})"
        for number, opinion in enumerate(opinions, 1)
    )
    by_turn = {
        f"turn {number}": opinion.value for number, opinion in enumerate(opinions, 1)
    }
    return Opinion(
        mean,
        label,
        explanation,
        {**_mean_parts([opinion.parts for opinion in opinions]), **by_turn},
    )


def _combine_judges(verdicts: PanelVerdicts[Opinion], scale: Scale) -> Score:
    """Combine the judges' opinions into the score of the answer."""
    by_role = verdicts.by_role
    opinions = list(by_role.values())
    if len(opinions) == 1 and not verdicts.failures:
        opinion = opinions[0]
        return Score(opinion.value, opinion.label, opinion.reason, opinion.parts)
    remarks = [
        f"{role}: {opinion.label} ({opinion.reason})"
        for role, opinion in by_role.items()
    ]
    if verdicts.remark:
        remarks.append(verdicts.remark)
    value, label = _combine_values(opinions, scale)
    return Score(
        value,
        label,
        "; ".join(remarks),
        _panel_parts(by_role, scale),
        {role: opinion.label for role, opinion in by_role.items()},
    )


def _combine_values(opinions: Sequence[Opinion], scale: Scale) -> tuple[float, str]:
    """Return a panel's score and label.

    Without a majority the label is `SPLIT`, or that of the mean if the mean decides.
    """
    mean = fmean(opinion.value for opinion in opinions)
    combine = scale.combine or ("majority" if scale.label_of is None else "mean")
    majority = _majority([opinion.label for opinion in opinions])
    if combine == "mean":
        label = majority if scale.label_of is None else scale.label_of(mean)
        return mean, label or SPLIT
    if not majority:
        return mean, SPLIT
    in_majority = [opinion.value for opinion in opinions if opinion.label == majority]
    return fmean(in_majority), majority


def _panel_parts(by_role: Mapping[str, Opinion], scale: Scale) -> dict[str, float]:
    """Return the parts of a panel's score: means, agreement, and what each judge said."""
    opinions = list(by_role.values())
    labels = [opinion.label for opinion in opinions]
    pairs = list(combinations(labels, 2))
    agreement = {AGREEMENT: sum(a == b for a, b in pairs) / len(pairs)} if pairs else {}
    return {
        **_mean_parts([opinion.parts for opinion in opinions]),
        **agreement,
        DIFFER: float(len(set(labels)) > 1),
        VERDICTS: float(len(opinions)),
        # What `evalwright check judge agreement` and the metric `rater-agreement` read.
        **{role: opinion.value for role, opinion in by_role.items()},
        **{
            f"{role} class": float(scale.labels.index(opinion.label))
            for role, opinion in by_role.items()
        },
        **{
            f"{role} {name}": number
            for role, opinion in by_role.items()
            for name, number in opinion.parts.items()
        },
    }


def _mean_parts(parts_by_opinion: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average each part over the opinions that have it."""
    names = dict.fromkeys(name for parts in parts_by_opinion for name in parts)
    return {
        name: fmean(parts[name] for parts in parts_by_opinion if name in parts)
        for name in names
    }


def _majority(labels: Sequence[str]) -> str:
    """Return the label of more than half of the judges, or ""."""
    label, count = Counter(labels).most_common(1)[0]
    return label if 2 * count > len(labels) else ""
