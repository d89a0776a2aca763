"""The judges of HRET's `llm_judge` as judges of ours: the question is shown, an unread verdict is a failure, pairs are asked in both orders.

Each kind of number has its own scorer: grades (a rubric, K2-Eval's criteria, types of a user), answers compared with a reference, and pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.compat.hret.published_judges import GOLD, K2, PAIR, RUBRIC, Judging
from evalwright.compat.hret.rows import ROW, row_of
from evalwright.core.asking import Ask, abilities_of
from evalwright.core.errors import Failure, RequestFailed, ScoringError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.tasks import MetricSpec, Scored, Scorer
from evalwright.scorers.judge.correct import judge_correct
from evalwright.scorers.judge.pair import FIRST, SAME, SECOND, judge_pair
from evalwright.scorers.judge.rating import RATING, judge_rating
from evalwright.scorers.registry import JUDGE

GRADE, CORRECT, WINNER = "judge_score", "judge_correct", "judge_winner"
_SCALE = (1, 5)
_BY_RUBRIC = "How well does the answer meet the rubric that follows?"
_BY_ITSELF = "How well does the answer do what was asked?"
_BY_CRITERIA = """\
How good is the answer? Four things count alike: completeness (it does all that was asked), logic (its reasoning is clear and consistent),
fluency (its language is natural), and culture (it keeps to the language and the customs of the people who asked, here Koreans)."""


def judging_of(method: Judging, samples: Sequence[Sample]) -> tuple[list[Scorer], list[MetricSpec]]:
    """The scorers and metrics for the types of judgement that rows ask for; for the default type where there are no rows."""
    rows = [row_of(one) for one in samples] or [{}]
    kinds = {method.type_of(row) for row in rows}
    scorers, specs = [], []
    if kinds - {GOLD, PAIR} or kinds & method.own:
        scorers.append(_scorer(GRADE, method, _grade))
        fixed = not kinds & method.own
        specs.append(
            MetricSpec("average_judge_score", "mean", GRADE, {"value_range": list(_SCALE)} if fixed else {})
        )
    if GOLD in kinds - method.own:
        scorers.append(_scorer(CORRECT, method, _correct))
        specs.append(MetricSpec("accuracy", "accuracy", CORRECT))
    if PAIR in kinds - method.own:
        scorers.append(_scorer(WINNER, method, _winner))
        if any(row.get("reference") in ("A", "B") for row in rows):
            specs.append(MetricSpec("judge_accuracy", "part-mean", WINNER, {"part": "judge_accuracy"}))
        specs += [
            MetricSpec(label, "part-mean", WINNER, {"part": label}) for label in ("win_rate", "same_verdict")
        ]
    return scorers, specs


def _scorer(name: str, method: Judging, score: Any) -> Scorer:
    async def judged(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        row = row_of(sample, answer)
        kind = method.type_of(row)
        if kind not in method.asked:
            raise ScoringError(
                f"The row asks for the type of judgement {kind!r}; there are {', '.join(method.asked)}."
            )
        if _scorer_of(kind, method) != name:
            return NoScore("another type of judgement")
        question = sample.input or str(row.get("input") or "")
        shown = replace(sample, input=question, targets=(), choices=(), gold=(), passages=())
        found: Scored = await score(
            method, kind, row, shown, replace(answer, text=str(row.get("prediction") or "")), ask
        )
        return found

    options = {"scoring": "corrected", "type": method.default}
    return Scorer(name, "hret", options, judged, True, (JUDGE,), frozenset({"generate"}))


def _scorer_of(kind: str, method: Judging) -> str:
    return GRADE if kind in method.own else {GOLD: CORRECT, PAIR: WINNER}.get(kind, GRADE)


def _written(score: Score, value: float, parts: Mapping[str, float], **fields: Any) -> Score:
    return replace(
        score, value=value, parts=parts, item={ROW: {"judge_evaluation": score.explanation, **fields}}
    )


async def _grade(
    method: Judging, kind: str, row: Mapping[str, Any], sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The grade on the scale of the type itself. A reference is not shown: it may be the grade that people gave."""
    if kind in method.own:
        return await _own(method, row, ask)
    rubric = str(row.get("rubric") or "").strip() if kind == RUBRIC else ""
    wanted = _BY_CRITERIA if kind == K2 else _BY_RUBRIC if rubric else _BY_ITSELF
    found = await judge_rating(
        sample, answer, ask, question=wanted, instructions=rubric, scale=_SCALE, show=("question",)
    )
    grade = found.parts[RATING]
    return _written(found, grade, {GRADE: grade}, judge_score=grade)


async def _own(method: Judging, row: Mapping[str, Any], ask: Ask) -> Score:
    """A type of a user's: the template as it is filled, and its parser. Raises RequestFailed where the reply cannot be parsed."""
    prompt = method.prompt(row)
    if prompt is None:
        raise ScoringError(
            "The template of the judge cannot be filled: it may have {input}, {response} (the answer), {response_b} (model_response_b), {rubric} "
            "and {gold} (the reference), and each must be a text in the row."
        )
    response = await ask(JUDGE, Generate(as_prompt(prompt, ask)))
    reply = separate_reasoning(response).answer
    found = method.read(row, reply)
    if not {GRADE, CORRECT} & found.parts.keys():
        raise RequestFailed(
            Failure("bad verdict", "judge", f"The verdict of '{JUDGE}' cannot be used: {found.explanation}.")
        )
    return found


def as_prompt(text: str, ask: Ask) -> str | tuple[Message, ...]:
    """A judge's prompt as a message, or as text for a model without a chat."""
    known = abilities_of(ask, JUDGE)
    return text if known is not None and "chat" not in known else (Message("user", text),)


async def _correct(
    method: Judging, kind: str, row: Mapping[str, Any], sample: Sample, answer: Answer, ask: Ask
) -> Score:
    reference = row.get("reference")
    known = replace(sample, targets=() if reference is None else (str(reference),))
    found = await judge_correct(known, answer, ask, instructions=str(row.get("rubric") or "").strip())
    right = found.label == "correct"
    evaluation = {"normalized_ref": str(reference), "is_correct": right, "label": found.label}
    return _written(found, found.value, {}, judge_correct=right, evaluation=evaluation)


async def _winner(
    method: Judging, kind: str, row: Mapping[str, Any], sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The share of both orders in which the judge names the reference; without A or B as the reference, how often the answer wins."""
    other, reference = str(row.get("model_response_b") or ""), row.get("reference")
    gold = {"A": 1.0, "B": 0.0}.get(str(reference))
    found = await judge_pair(
        replace(sample, targets=(other,)), answer, ask, ties=gold is None, show=("question",)
    )
    orders = (found.parts[FIRST], found.parts[SECOND])
    winner = {1.0: "A", 0.0: "B"}.get(found.value, "tie")
    parts = {"win_rate": found.value, "same_verdict": found.parts[SAME]}
    evaluation: dict[str, Any] = {
        "winner": winner,
        "parsed": {"winner": winner, "shown_first": orders[0], "shown_second": orders[1]},
    }
    fields: dict[str, Any] = {"judge_winner": winner, "evaluation": evaluation}
    value = found.value
    if gold is not None:
        value = parts["judge_accuracy"] = sum(order == gold for order in orders) / 2
        fields["judge_correct"] = evaluation["is_correct"] = value == 1
    return _written(found, value, parts, **fields)
