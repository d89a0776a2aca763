"""The scorer `stress`: how an answer treats a question that cannot be answered as it stands.

Rules read every answer, and say if a careful reader might argue. If a run names judges, they decide
those answers, or all answers; what each judge says is kept beside what the rules say, so that their
agreement can be measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, RequestFailed, check_known
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.outcomes import REFUSAL as REFUSAL_FIELD
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.judge.judge_questions import request_verdict
from evalwright.scorers.judge.options import check_whole_number
from evalwright.scorers.registry import JUDGE_FAILED, JUDGE_READ, checked, without_roles
from evalwright.scorers.stress.question import Question, read_question
from evalwright.scorers.stress.rubric import Opinion, build_question
from evalwright.scorers.stress.rules import (
    CLASSES,
    CREDIT,
    EMPTY,
    HANDLED,
    REFUSAL,
    Ruling,
    judge_by_rules,
)
from evalwright.strategies.several import gather_all

WHEN = ("unsure", "always", "never")
RULES = "rules"
"""The name under which the rules appear among the raters."""


def by_rules(
    sample: Sample,
    answer: Answer,
    *,
    judges: Sequence[str] = (),
    judge: Literal["unsure", "always", "never"] = "unsure",
    max_tokens: int = 2048,
) -> Score:
    """Score by rules alone, if no judges are named; the options are those of `stress`."""
    _check_roles(judges, judge, max_tokens)
    return _build_score(_rule(sample, answer)[1], {}, answer.text)


def _check_options(options: Mapping[str, Any]) -> None:
    _check_roles(**options)


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
    """Score 1 if the answer refuses or corrects, 0.5 if it does so but answers as well, else 0.

    The label is the class. It reads the metadata `premise` (what is false, in words), `corrections`
    (names, dates, phrases that a correction has), `fabrications` (tempting wrong answers) and
    `language`; without `corrections`, the targets after the first.

    Parts: 1 under the name of the class; "handled"; "unsure", 1 if the rules were unsure; "NAME
    class", the number of the class in `CLASSES` by "rules" and each judge; "read by judge", 1 if
    the judges were asked; "judge failed", 1 if a judge failed or its verdict cannot be read.

    Args:
        judges: roles that are asked for a class, by default none. Their majority decides; if no
            judge was asked, one failed, or they are split, the rules' class stands, unsure.
        judge: when judges are asked: "unsure" only if the rules are unsure, "always" or "never".
        max_tokens: limit on a verdict.
    """
    roles = _check_roles(judges, judge, max_tokens)
    question, ruling = _rule(sample, answer)
    if (
        not roles
        or not answer.text.strip()
        or not (judge == "always" or (judge == "unsure" and ruling.unsure))
    ):
        return _build_score(ruling, {}, answer.text)
    try:
        opinions = await gather_all(
            [
                _request_opinion(role, question, answer.text, ask, max_tokens)
                for role in roles
            ]
        )
    except RequestFailed as error:
        if error.failure.party != "judge":
            raise  # the run was stopped, or its budget is spent
        score = _build_score(ruling, {}, answer.text)
        unsure = (
            f"{ruling.unsure}; the judge failed: {error.failure.kind}:"
            f" {error.failure.message}"
            if ruling.unsure
            else ""
        )
        return replace(score, unsure=unsure, parts={**score.parts, JUDGE_FAILED: 1.0})
    score = _build_score(ruling, dict(zip(roles, opinions, strict=True)), answer.text)
    return replace(score, parts={**score.parts, JUDGE_READ: 1.0})


def _rule(sample: Sample, answer: Answer) -> tuple[Question, Ruling]:
    question = read_question(sample.input, sample.targets, sample.metadata)
    return question, _rule_by_response(answer) or judge_by_rules(question, answer.text)


def _check_roles(judges: Sequence[str], judge: str, max_tokens: int) -> tuple[str, ...]:
    """Check the roles to ask. Raises ConfigurationError or UnknownName."""
    check_known("value of the option 'judge'", [judge], WHEN)
    check_whole_number(max_tokens, "max_tokens", 1)
    roles = [judges] if isinstance(judges, str) else judges
    if not isinstance(roles, list | tuple) or not all(
        isinstance(role, str) and role for role in roles
    ):
        raise ConfigurationError(
            "The option 'judges' is a list of roles, such as [judge]."
        )
    reserved = {RULES, "handled", "unsure", JUDGE_FAILED, JUDGE_READ, *CLASSES}
    if not reserved.isdisjoint(roles) or len(set(roles)) < len(roles):
        raise ConfigurationError(
            "The option 'judges' names each role once, and none of them 'rules' or like"
            " a class of this scorer."
        )
    return tuple(roles)


def _rule_by_response(answer: Answer) -> Ruling | None:
    """Classify a reply by its response alone, before its text is read; None if the text decides."""
    last = answer.responses[-1] if answer.responses else None
    if last is not None and separate_reasoning(last).unclosed:
        return Ruling(EMPTY, "its reasoning has no end", "")
    if last is not None and last.finish_reason == CONTENT_FILTER:
        return Ruling(REFUSAL, "the provider's filter stopped it", "")
    if last is not None and last.finish_reason == REFUSAL_FIELD:
        return Ruling(REFUSAL, "refused in the reply's field for refusals", "")
    return None


async def _request_opinion(
    role: str, question: Question, answer: str, ask: Ask, max_tokens: int
) -> Opinion:
    question_to_judge = build_question(question.text, question.premise, answer)
    return await request_verdict(
        role, question_to_judge, ask, max_tokens, schema=False
    )  # without a schema, so that requests equal those of earlier versions and stay cached


def _build_score(ruling: Ruling, opinions: Mapping[str, Opinion], text: str) -> Score:
    judged = (
        _majority([opinion.label for opinion in opinions.values()])
        if ruling.unsure
        else ""
    )
    label = judged or ruling.label
    reasons = [_explain_ruling(ruling)]
    reasons += [
        f"{role}: {opinion.label} ('{shortened(opinion.quote, 100)}': {opinion.reason})"
        for role, opinion in opinions.items()
    ]
    parts = {
        label: 1.0,
        "handled": float(label in HANDLED),
        "unsure": float(bool(ruling.unsure)),
    }
    parts[f"{RULES} class"] = float(CLASSES.index(ruling.label))
    # What `evalwright check judge agreement` reads of several judges.
    parts |= {
        role: float(opinion.label in HANDLED) for role, opinion in opinions.items()
    }
    parts |= {
        f"{role} class": float(CLASSES.index(opinion.label))
        for role, opinion in opinions.items()
    }
    span = _find_span(ruling.evidence, text)
    metadata: dict[str, Any] = {
        "rule": ruling.rule,
        "rules": ruling.label,
        "span": list(span),
    }
    unsure = "" if judged else ruling.unsure
    if unsure and opinions:
        unsure = f"{unsure}; the judges are split"
    return Score(
        CREDIT[label],
        label,
        "; ".join(reasons),
        parts,
        metadata | {role: opinion.label for role, opinion in opinions.items()},
        [span] if span[0] >= 0 else (),
        unsure,
    )


def _majority(labels: Sequence[str]) -> str:
    """Return the most frequent label, "" for a tie or none."""
    counted = Counter(labels).most_common(2)
    tied = len(counted) == 2 and counted[0][1] == counted[1][1]
    return counted[0][0] if counted and not tied else ""


def _explain_ruling(ruling: Ruling) -> str:
    evidence = f": '{shortened(ruling.evidence, 100)}'" if ruling.evidence else ""
    doubt = f" (unsure: {ruling.unsure})" if ruling.unsure else ""
    return f"{ruling.label}, {ruling.rule}{evidence}{doubt}"


def _find_span(evidence: str, text: str) -> tuple[int, int]:
    """Find the first words of the evidence in the answer as written.

    It is (-1, -1) if markup or spelling hides them.
    """
    words = evidence.casefold().replace("'", "")
    written_positions = [
        position for position, char in enumerate(text) if char not in "'’"
    ]
    flat = "".join(text[position] for position in written_positions).casefold()
    start = flat.find(words) if words else -1
    if start < 0 or len(flat) != len(written_positions):
        return -1, -1
    return written_positions[start], written_positions[start + len(words) - 1] + 1
