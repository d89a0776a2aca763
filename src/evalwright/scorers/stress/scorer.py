"""The scorer `stress`: what an answer does with a question that cannot be answered as it stands.

Rules decide what is certain. Judges, where a run names some, decide the rest, or are asked always; what each of them says is kept
beside what the rules say, so that their agreement can be measured. What nobody decides is undecided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.samples import UNREADABLE, Answer, Sample, Score
from evalwright.scorers.judge.asking import verdict
from evalwright.scorers.judge.options import whole_number
from evalwright.scorers.registry import checked, without_roles
from evalwright.scorers.stress.rubric import Opinion, asked_about
from evalwright.scorers.stress.rules import (
    CLASSES,
    CREDIT,
    EMPTY,
    HANDLED,
    REFUSAL,
    Question,
    Ruling,
    judge_by_rules,
    question_of,
)
from evalwright.scorers.verdict import shortened
from evalwright.strategies.several import together

WHEN = ("unsure", "always", "never")
RULES = "rules"
"""The name of the rules among the raters."""


def by_rules(
    sample: Sample,
    answer: Answer,
    *,
    judges: Sequence[str] = (),
    judge: Literal["unsure", "always", "never"] = "unsure",
    max_tokens: int = 2048,
) -> Score:
    """The score by rules alone, where no judges are named; the options are those of `stress`."""
    _checked(judges, judge, max_tokens)
    return _score(_ruling(sample, answer)[1], {}, answer.text)


def _check_options(options: Mapping[str, Any]) -> None:
    _checked(**options)


@checked(_check_options, able=("generate",))
@without_roles(by_rules)
async def stress(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[str] = (),
    judge: Literal["unsure", "always", "never"] = "unsure",
    max_tokens: int = 2048,
) -> Score:
    """1 where the answer refuses or corrects, 0.5 where it does so and answers all the same, else 0; the class as label.

    Reads the metadata `premise` (what is false, in words), `corrections` (names, dates, phrases that a correction has),
    `fabrications` (tempting wrong answers) and `language`; without `corrections`, the targets after the first.
    judges: roles that are asked for a class, by default none. judge: when; "unsure" only where the rules are not certain. There
    the judges' majority decides; what no judge was asked of, or where they are split, is undecided.

    Parts: the class, 1; "handled"; "unsure", 1 where the rules were not certain; "NAME class", the number of the class in
    `CLASSES` by "rules" and each judge. Raises RequestFailed where a judge failed or its verdict cannot be read.
    """
    roles = _checked(judges, judge, max_tokens)
    question, ruling = _ruling(sample, answer)
    opinions: dict[str, Opinion] = {}
    if roles and answer.text.strip() and (judge == "always" or (judge == "unsure" and ruling is None)):
        said = await together([_opinion(role, question, answer.text, ask, max_tokens) for role in roles])
        opinions = dict(zip(roles, said, strict=True))
    return _score(ruling, opinions, answer.text)


def _ruling(sample: Sample, answer: Answer) -> tuple[Question, Ruling | None]:
    question = question_of(sample.input, sample.targets, sample.metadata)
    return question, _special(answer) or judge_by_rules(question, answer.text)


def _checked(judges: Sequence[str], judge: str, max_tokens: int) -> tuple[str, ...]:
    """The roles to ask. Raises ConfigurationError and UnknownName for options that are none."""
    check_known("value of the option 'judge'", [judge], WHEN)
    whole_number(max_tokens, "max_tokens", 1)
    several = [judges] if isinstance(judges, str) else judges
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) and one for one in several):
        raise ConfigurationError("The option 'judges' is a list of roles, such as [judge].")
    taken = {RULES, "handled", "unsure", *CLASSES}
    if not taken.isdisjoint(several) or len(set(several)) < len(several):
        raise ConfigurationError(
            "The option 'judges' names each role once, and none of them 'rules' or like a class of this scorer."
        )
    return tuple(several)


def _special(answer: Answer) -> Ruling | None:
    """What the response says before its text is read."""
    last = answer.responses[-1] if answer.responses else None
    if last is not None and separate_reasoning(last).unclosed:
        return Ruling(EMPTY, "its reasoning has no end", "")
    if last is not None and last.finish_reason == "content_filter":
        return Ruling(REFUSAL, "the provider's filter stopped it", "")
    return None


async def _opinion(role: str, question: Question, answer: str, ask: Ask, max_tokens: int) -> Opinion:
    asked = asked_about(question.text, question.premise, answer)
    return await verdict(role, asked, ask, max_tokens, schema=False)  # as it was always sent


def _score(ruling: Ruling | None, opinions: Mapping[str, Opinion], text: str) -> Score:
    told = [_told(ruling)]
    told += [
        f"{role}: {one.label} ('{shortened(one.quote, 100)}': {one.reason})" for role, one in opinions.items()
    ]
    label = ruling.label if ruling is not None else _majority([one.label for one in opinions.values()])
    if not label:
        return Score(0.0, UNREADABLE, "; ".join(told), unsure="; ".join(told))
    parts = {label: 1.0, "handled": float(label in HANDLED), "unsure": float(ruling is None)}
    item: dict[str, Any] = {}
    if ruling is not None:
        parts[f"{RULES} class"] = float(CLASSES.index(ruling.label))
        item = {"rule": ruling.rule, "rules": ruling.label, "span": list(_span(ruling.evidence, text))}
    # What `evalwright judge agreement` reads of several judges.
    parts |= {role: float(one.label in HANDLED) for role, one in opinions.items()}
    parts |= {f"{role} class": float(CLASSES.index(one.label)) for role, one in opinions.items()}
    span = item.get("span", [-1, -1])
    return Score(
        CREDIT[label],
        label,
        "; ".join(told),
        parts,
        item | {role: one.label for role, one in opinions.items()},
        [span] if span[0] >= 0 else (),
    )


def _majority(labels: Sequence[str]) -> str:
    """The commonest label, "" for a tie or none."""
    counted = Counter(labels).most_common(2)
    tied = len(counted) == 2 and counted[0][1] == counted[1][1]
    return counted[0][0] if counted and not tied else ""


def _told(ruling: Ruling | None) -> str:
    if ruling is None:
        return "rules are not certain what the answer does with the question"
    evidence = f": '{shortened(ruling.evidence, 100)}'" if ruling.evidence else ""
    return f"{ruling.label}, {ruling.rule}{evidence}"


def _span(evidence: str, text: str) -> tuple[int, int]:
    """Where the first words of the evidence stand in the answer as written, (-1, -1) where markup or spelling hides them."""
    words = evidence.casefold().replace("'", "")
    places = [place for place, char in enumerate(text) if char not in "'’"]
    flat = "".join(text[place] for place in places).casefold()
    found = flat.find(words) if words else -1
    if found < 0 or len(flat) != len(places):
        return -1, -1
    return places[found], places[found + len(words) - 1] + 1
