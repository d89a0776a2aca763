"""The scorer `judge-rubric`: which of some criteria does an answer meet, and how many of their
points does it reach?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.asking import MAX_TOKENS, question, verdict
from evalwright.scorers.judge.criteria import Criterion, points_of, read_criteria
from evalwright.scorers.judge.forms import Form, choice, group, reason
from evalwright.scorers.judge.material import Exchange, exchanges, material
from evalwright.scorers.judge.opinions import Opinion, check_parts, judged, pass_or_fail
from evalwright.scorers.judge.options import SHOWN, check_common, one_of, roles_of
from evalwright.scorers.registry import checked
from evalwright.strategies.several import together

_TASK = """\
You judge an answer by criteria, each on its own: by what the answer says, not by how sure, fluent, long or polite it is, unless the
criterion asks for that. A criterion of several demands is met only where all of them are."""


def _check(options: Mapping[str, Any]) -> None:
    check_common(options)
    one_of(options["calls"], "calls", ("one", "each"))
    read_criteria(["any"], "The option 'classes'", options["classes"])
    if options["criteria"]:
        known = read_criteria(
            options["criteria"], "The option 'criteria'", options["classes"]
        )
        check_parts(
            [one.name for one in known], roles_of(options["judges"]), options["turns"]
        )
    elif not isinstance(options["criteria"], list | tuple):
        raise ConfigurationError(
            f"The option 'criteria' is a list of texts, not {options['criteria']!r}."
        )


@checked(_check, able=("generate",))
async def judge_rubric(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    criteria: Sequence[Any] = (),
    classes: Mapping[str, float] | None = None,
    calls: Literal["one", "each"] = "one",
    threshold: float = 0.5,
    turns: Literal["last", "each"] = "last",
    judges: Sequence[str] = ("judge",),
    show: Sequence[str] = SHOWN,
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """The share of the rubric's points that the answer reaches; "pass" from `threshold` on, else
    "fail".

    criteria: texts, or mappings with text, name, points (below 0 for what is bad) or severity (low
    1, medium 5, high 10 points), and classes with the share of the points that each gets; the
    sample's own, in its metadata `criteria`, are added. classes: of criteria that name none, else
    "not met" and "met". calls: one request for all criteria, or one for each. turns: judge the last
    reply of a conversation, or each (the mean counts). show: of the sample.

    Parts: each criterion's credit from 0 to 1, by its name. Raises RequestFailed where a judge
    failed or its verdict cannot be read.
    """
    known = criteria_of(sample, criteria, classes)
    roles = roles_of(judges)
    try:
        check_parts([one.name for one in known], roles, turns)
    except ConfigurationError as error:
        raise ScoringError(str(error)) from None

    async def opinion(role: str, turn: Exchange) -> Opinion:
        shown = [*material(sample, turn, show), ("answer", turn.answer)]
        parts = [[one] for one in known] if calls == "each" else [list(known)]
        asked = [_question(part, shown, instructions) for part in parts]
        found = await together(
            [
                verdict(role, one, ask, max_tokens, schema=schema, images=turn.images)
                for one in asked
            ]
        )
        return _opinion(
            known,
            {name: each for one in found for name, each in one.items()},
            threshold,
        )

    return await judged(
        roles, exchanges(sample, answer, turns), opinion, pass_or_fail(threshold)
    )


def criteria_of(
    sample: Sample, given: Sequence[Any], classes: Any = None
) -> tuple[Criterion, ...]:
    """The rubric of a sample: the task's criteria, then its own.

    Raises ScoringError where there are none, or they cannot be used.
    """
    own = sample.metadata.get("criteria") or ()
    if isinstance(own, str):
        own = (own,)
    if not own and not given:
        raise ScoringError(
            f"The sample '{sample.id}' has no criteria, in the option or metadata"
            " 'criteria'."
        )
    try:
        return read_criteria([*given, *own], "The list of criteria", classes)
    except (ConfigurationError, TypeError) as error:
        raise ScoringError(str(error)) from None


Found = dict[str, tuple[str, str]]
"""Class and reason by the name of the criterion."""


def _question(
    part: Sequence[Criterion], shown: Sequence[tuple[str, str]], instructions: str
) -> Any:
    keys = {f"c{number}": one for number, one in enumerate(part, 1)}
    listed = "\n".join(f"{key}: {one.text}" for key, one in keys.items())
    fields = [
        group(key, [reason(), choice("class", list(one.classes))])
        for key, one in keys.items()
    ]

    def made(given: dict[str, Any]) -> Found:
        return {
            one.name: (given[key]["class"], given[key]["reason"])
            for key, one in keys.items()
        }

    body = (
        "Judge the answer by"
        f" {'this criterion' if len(part) == 1 else 'these criteria'}:\n{listed}"
    )
    body += f"\n\n{instructions}" if instructions else ""
    return question(_TASK, shown, body, Form(tuple(fields)), made)


def _opinion(criteria: Sequence[Criterion], found: Found, threshold: float) -> Opinion:
    credits = {one.name: one.classes[found[one.name][0]] for one in criteria}
    value = points_of(criteria, credits)
    told = "; ".join(
        f"{one.name.rstrip('.')}: {' - '.join(filter(None, found[one.name]))}"
        for one in criteria
    )
    return Opinion(value, "pass" if value >= threshold else "fail", told, credits)
