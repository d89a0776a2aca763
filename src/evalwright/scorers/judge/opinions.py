"""What turns and judges come to: each judge's opinion of each turn, put together into one score
that keeps all of them.
"""

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
from evalwright.strategies.several import together

SPLIT = "split"
"""The label where no class has more than half of the judges; the value is then the mean of theirs.
"""
AGREEMENT = "agreement"
"""The part of a score that says which share of the pairs of judges gave the same label."""
_TURN = re.compile(r"turn \d+")


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says: a value from 0 to 1, a label, why, and further numbers by name."""

    value: float
    label: str
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scale:
    """How opinions become one. labels: all that there are, in the order of their numbers. label_of:
    the label of a mean value; None where labels are not of a value, so that the majority decides.
    """

    labels: tuple[str, ...]
    label_of: Callable[[float], str] | None = None


def check_parts(names: Sequence[str], roles: Sequence[str], turns: str) -> None:
    """Raise ConfigurationError where a part of one judge's opinion of one turn has a name that a
    part of the score has.
    """
    taken: set[str] = set()
    if len(roles) > 1:
        own = [f"{role} {name}" for role in roles for name in ("class", *names)]
        taken = {AGREEMENT, *roles, *own}
    for name in names:
        if name in taken or (turns == "each" and _TURN.fullmatch(name)):
            raise ConfigurationError(
                f"A criterion cannot be called '{name}': another part of the score has"
                " that name. Give it another `name`."
            )


def pass_or_fail(threshold: float) -> Scale:
    """ "pass" from a value on, else "fail"."""
    return Scale(
        ("fail", "pass"), lambda value: "pass" if value >= threshold else "fail"
    )


async def judged(
    roles: Sequence[str],
    turns: Sequence[Exchange],
    opinion: Callable[[str, Exchange], Awaitable[Opinion]],
    scale: Scale,
) -> Score:
    """The score of all judges' opinions of all turns.

    Raises what the first failed one raised, once all have ended.
    """
    found = await together([opinion(role, turn) for role in roles for turn in turns])
    several = [
        found[start : start + len(turns)] for start in range(0, len(found), len(turns))
    ]
    return _of_judges(
        dict(zip(roles, (_of_turns(own, scale) for own in several), strict=True)), scale
    )


def _of_turns(own: Sequence[Opinion], scale: Scale) -> Opinion:
    """One judge's opinions of the turns: their means; the value of each turn is a part."""
    if len(own) == 1:
        return own[0]
    value = fmean(one.value for one in own)
    label = (
        scale.label_of(value)
        if scale.label_of
        else _majority([one.label for one in own]) or SPLIT
    )
    told = "; ".join(
        f"turn {number}: {one.label} ({one.reason})"
        for number, one in enumerate(own, 1)
    )
    by_turn = {f"turn {number}": one.value for number, one in enumerate(own, 1)}
    return Opinion(
        value, label, told, {**_means([one.parts for one in own]), **by_turn}
    )


def _of_judges(said: Mapping[str, Opinion], scale: Scale) -> Score:
    opinions = list(said.values())
    if len(opinions) == 1:
        one = opinions[0]
        return Score(one.value, one.label, one.reason, one.parts)
    told = "; ".join(
        f"{role}: {one.label} ({one.reason})" for role, one in said.items()
    )
    labels = [one.label for one in opinions]
    value = fmean(one.value for one in opinions)
    if scale.label_of is not None:
        label = scale.label_of(value)
    elif label := _majority(labels):
        value = next(one.value for one in opinions if one.label == label)
    pairs = list(combinations(labels, 2))
    parts = {
        **_means([one.parts for one in opinions]),
        AGREEMENT: sum(a == b for a, b in pairs) / len(pairs),
        # What `evalwright judge agreement` and the metric `rater-agreement` read.
        **{role: one.value for role, one in said.items()},
        **{
            f"{role} class": float(scale.labels.index(one.label))
            for role, one in said.items()
        },
        **{
            f"{role} {name}": value
            for role, one in said.items()
            for name, value in one.parts.items()
        },
    }
    return Score(
        value,
        label or SPLIT,
        told,
        parts,
        {role: one.label for role, one in said.items()},
    )


def _means(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each name the mean over those that have it."""
    names = dict.fromkeys(name for one in parts for name in one)
    return {name: fmean(one[name] for one in parts if name in one) for name in names}


def _majority(labels: Sequence[str]) -> str:
    """The label of more than half, "" where none is."""
    label, count = Counter(labels).most_common(1)[0]
    return label if 2 * count > len(labels) else ""
