"""Judges of ours for HRET's types of judgement: the question is shown, an unread verdict is a
failure, pairs are asked in both orders.

Each kind of number has its own scorer: grades (a rubric, K2-Eval's criteria, types of a user),
answers compared with a reference, and pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright import (
    Answer,
    Ask,
    Failure,
    Generate,
    NoScore,
    RequestFailed,
    Sample,
    Score,
)
from evalwright.compat.hret.call import JUDGE
from evalwright.compat.hret.judge_types import (
    CORRECT,
    GOLD,
    JUDGE_SCORE,
    K2,
    PAIR,
    RUBRIC,
    WINNER,
    Judging,
)
from evalwright.compat.hret.judges import KIND, as_prompt, judge_scorer_facts
from evalwright.compat.hret.row_samples import ROW, Given, row_of
from evalwright.compat.hret.rules import ScorersAndMetrics
from evalwright.extend import (
    MetricSpec,
    Scored,
    Scorer,
    ScoringError,
    bind_scorer,
    separate_reasoning,
)

_SCALE = (1, 5)

_BY_RUBRIC = "How well does the answer meet the rubric that follows?"

_BY_ITSELF = "How well does the answer do what was asked?"

_BY_CRITERIA = (
    "How good is the answer? Four things count alike: completeness (it does all that was"
    " asked), logic (its reasoning is clear and consistent),\nfluency (its language is"
    " natural), and culture (it keeps to the language and the customs of the people who"
    " asked, here Koreans)."
)


def judging_of(method: Judging, samples: Sequence[Sample]) -> ScorersAndMetrics:
    """The scorers and metrics for the types of judgement that rows ask for; for the default type
    where there are no rows.
    """
    rows = [row_of(sample) for sample in samples] or [{}]
    kinds = {method.type_of(row) for row in rows}
    names = {_scorer_of(kind, method) for kind in kinds}
    specs = []
    if JUDGE_SCORE in names:
        scale = {} if kinds & method.own else {"value_range": list(_SCALE)}
        specs.append(MetricSpec("average_judge_score", "mean", JUDGE_SCORE, scale))
    if CORRECT in names:
        specs.append(MetricSpec("accuracy", "accuracy", CORRECT))
    if WINNER in names:
        has_pair_references = any(row.get("reference") in ("A", "B") for row in rows)
        labels = (
            *(["judge_accuracy"] if has_pair_references else []),
            "win_rate",
            "same_verdict",
        )
        specs += [
            MetricSpec(label, "part-mean", WINNER, {"part": label}) for label in labels
        ]
    return [
        _scorer(name, method)
        for name in (JUDGE_SCORE, CORRECT, WINNER)
        if name in names
    ], specs


def _scorer_of(kind: str, method: Judging) -> str:
    return (
        JUDGE_SCORE
        if kind in method.own
        else {GOLD: CORRECT, PAIR: WINNER}.get(kind, JUDGE_SCORE)
    )


def _scorer(name: str, method: Judging) -> Scorer:
    async def judged(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        row = row_of(sample, answer)
        kind = method.type_of(row)
        if kind not in method.asked:
            raise ScoringError(
                f"The row asks for the type of judgement {kind!r}; there are"
                f" {', '.join(method.asked)}."
            )
        if _scorer_of(kind, method) != name:
            return NoScore("another type of judgement")
        if kind in method.own:
            return await _judge_with_template(method, row, ask)
        question = sample.input or str(row.get("input") or "")
        shown_sample = replace(
            sample, input=question, targets=(), choices=(), gold=(), passages=()
        )
        judge = {GOLD: _correct, PAIR: _winner}.get(kind, _grade)
        return await judge(
            row,
            kind,
            shown_sample,
            replace(answer, text=str(row.get("prediction") or "")),
            ask,
        )

    def unanswered(sample: Sample, answer: Answer) -> Scored:
        """A reply that is no answer: the lowest grade, not correct, a lost match."""
        kind = method.type_of(row_of(sample, answer))
        if _scorer_of(kind, method) != name or kind in method.own:
            return NoScore("another type of judgement, or one without a known scale")
        parts = {
            JUDGE_SCORE: {JUDGE_SCORE: float(_SCALE[0])},
            WINNER: {"win_rate": 0.0},
        }.get(name, {})
        return Score(worst, parts=parts)

    worst = float(_SCALE[0]) if name == JUDGE_SCORE else 0.0
    options = {"scoring": "corrected", "type": method.default}
    return Scorer(
        name,
        KIND,
        options,
        judged,
        **judge_scorer_facts(True),
        worst=worst,
        on_fault=unanswered,
    )


def _written(
    score: Score, value: float, parts: Mapping[str, float], **fields: Any
) -> Score:
    item = {ROW: {"judge_evaluation": score.explanation, **fields}}
    return replace(score, value=value, parts=parts, item=item)


async def _judged(
    kind: str, options: Given, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The verdict of a judge of ours."""
    verdict: Any = bind_scorer(kind, options).function(sample, answer, ask)
    score = await verdict
    assert isinstance(score, Score)
    return score


async def _grade(
    row: Given, kind: str, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The grade on the scale of the type itself.

    A reference is not shown: it may be the grade that people gave.
    """
    rubric = str(row.get("rubric") or "").strip() if kind == RUBRIC else ""
    question = _BY_RUBRIC if rubric else _BY_ITSELF
    if kind == K2:
        question = _BY_CRITERIA
    options = {
        "question": question,
        "instructions": rubric,
        "scale": _SCALE,
        "show": ("question",),
    }
    rating = await _judged("judge-rating", options, sample, answer, ask)
    grade = rating.parts["rating"]
    return _written(rating, grade, {JUDGE_SCORE: grade}, judge_score=grade)


async def _judge_with_template(method: Judging, row: Given, ask: Ask) -> Score:
    """A type of a user's: the template as it is filled, and its parser.

    Raises RequestFailed where the reply cannot be parsed.
    """
    prompt = method.prompt(row)
    if prompt is None:
        raise ScoringError(
            "The template of the judge cannot be filled: it may have {input},"
            " {response} (the answer), {response_b} (model_response_b), {rubric} and"
            " {gold} (the reference), and each must be a text in the row."
        )
    response = await ask(JUDGE, Generate(as_prompt(prompt, ask)))
    score = method.read(row, separate_reasoning(response).answer)
    if not {JUDGE_SCORE, CORRECT} & score.parts.keys():
        why = f"The verdict of '{JUDGE}' cannot be used: {score.explanation}."
        raise RequestFailed(Failure("bad verdict", "judge", why))
    return score


async def _correct(
    row: Given, kind: str, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    reference = row.get("reference")
    with_target = replace(
        sample, targets=() if reference is None else (str(reference),)
    )
    options = {"instructions": str(row.get("rubric") or "").strip()}
    correctness = await _judged("judge-correct", options, with_target, answer, ask)
    right = correctness.label == "correct"
    evaluation = {
        "normalized_ref": str(reference),
        "is_correct": right,
        "label": correctness.label,
    }
    return _written(
        correctness, correctness.value, {}, judge_correct=right, evaluation=evaluation
    )


async def _winner(
    row: Given, kind: str, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The share of both orders in which the judge names the reference; without A or B as the
    reference, how often the answer wins.
    """
    other_response = str(row.get("model_response_b") or "")
    gold = {"A": 1.0, "B": 0.0}.get(str(row.get("reference")))
    pair = replace(sample, targets=(other_response,))
    options = {"ties": gold is None, "show": ("question",)}
    preference = await _judged("judge-pair", options, pair, answer, ask)
    orders = [preference.parts[order] for order in ("answer_first", "answer_second")]
    value = preference.value
    winner = {1.0: "A", 0.0: "B"}.get(value, "tie")
    parts = {"win_rate": value, "same_verdict": preference.parts["same verdict"]}
    parsed = {"winner": winner, "shown_first": orders[0], "shown_second": orders[1]}
    evaluation: dict[str, Any] = {"winner": winner, "parsed": parsed}
    fields: dict[str, Any] = {"judge_winner": winner, "evaluation": evaluation}
    if gold is not None:
        value = parts["judge_accuracy"] = sum(order == gold for order in orders) / 2
        fields["judge_correct"] = evaluation["is_correct"] = value == 1
    return _written(preference, value, parts, **fields)
