"""HRET's `llm_judge`: what a judge is sent, how its reply is read and what comes of it, faults
included; and the same by judges of ours.

Corrected, the question is shown, an unread verdict is a failure, pairs are asked in both orders.
Each kind of number has its own scorer: grades (a rubric, K2-Eval's criteria, types of a user),
answers compared with a reference, and pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from evalwright import (
    Answer,
    Ask,
    Failure,
    Generate,
    Message,
    NoScore,
    RequestFailed,
    Sample,
    Score,
    bounded,
)
from evalwright.compat.hret.datasets.base import filled
from evalwright.compat.hret.published import JUDGE_SCORE, PENALTY, Method, texts
from evalwright.compat.hret.row_samples import ROW, row_of
from evalwright.compat.hret.settings import Given
from evalwright.extend import (
    ConfigurationError,
    MetricSpec,
    Scored,
    Scorer,
    ScoringError,
    abilities_of,
    separate_reasoning,
)
from evalwright.scorers.judge.correct import judge_correct
from evalwright.scorers.judge.pair import FIRST, SAME, SECOND, judge_pair
from evalwright.scorers.judge.rating import RATING, judge_rating
from evalwright.scorers.registry import JUDGE

RUBRIC = "rubric_and_response"
GOLD = "rubric_response_and_gold"
PAIR = "response_comparison"
K2 = "k2_eval"
TYPES = (RUBRIC, GOLD, PAIR, K2)
CORRECT = "judge_correct"
WINNER = "judge_winner"

Parser = Callable[[str], Given]
_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")
_FEEDBACK = "Feedback:"
_MOST = 1e100
_SCORE = re.compile(r"\[\[score:\s*(\d+(?:\.\d*)?)\]\]")
_K2_SCORE = re.compile(r"Score:\s*(\d+(?:\.\d+)?)")
_WINNER = re.compile(r"\[\[([AB])\]\]")
_STEP = re.compile(r"step:\s*\[(\d+)\]", re.IGNORECASE)


def _first(
    pattern: re.Pattern[str], reply: str, missing: str, of: str = "response"
) -> str:
    if match := pattern.search(reply):
        return match[1]
    raise ValueError(f"{missing} in {of}: {reply}")


def read_rubric(reply: str) -> dict[str, Any]:
    """`[[score: 3]]`, which no prompt asks for. Raises ValueError, as all of these."""
    return {"score": float(_first(_SCORE, reply, "No valid score found"))}


def read_k2(reply: str) -> dict[str, Any]:
    """`Score: 3.5`, the first one."""
    return {
        "score": float(
            _first(_K2_SCORE, reply, "No valid score found", "K2-Eval response")
        )
    }


def read_winner(reply: str, missing: str = "No valid winner found") -> dict[str, Any]:
    """`[[A]]` or `[[B]]`, the first one."""
    return {"winner": _first(_WINNER, reply, missing)}


def read_gold(reply: str) -> dict[str, Any]:
    """`[[true]]`, or `[[false]]` with the step that is wrong."""
    lower = reply.lower()
    if "[[true]]" in lower:
        return {"correct": True}
    if "[[false]]" in lower:
        step = _STEP.search(reply)
        return {"correct": False, "step": int(step[1]) if step else None}
    raise ValueError(f"No valid verdict found in response: {reply}")


def from_huggingface(prompt: str, reply: str) -> dict[str, Any]:
    """What HRET's `huggingface_judge` writes: its score is looked for in the prompt and the reply
    together.
    """
    full_text = prompt + reply
    start = full_text.find(_FEEDBACK) + len(_FEEDBACK)
    match = _RESULT.search(full_text, start) if start >= len(_FEEDBACK) else None
    feedback = full_text[start : match.start()].strip() if match else full_text
    match = match or _RESULT.search(full_text)
    score = float(match[1]) if match else "error"
    text = f"{_FEEDBACK} {feedback} [RESULT] {score}" if match else full_text
    written = {"prediction": text, JUDGE_SCORE: score, PENALTY: 1.0}
    return written | {"_subset_name": "Pointwise", "judge_type": RUBRIC}


def _parser(name: str, parser: Parser | str) -> Parser:
    if callable(parser):
        return parser
    try:
        good = isinstance(parser, str) and re.compile(parser).groups == 1
    except (re.error, RecursionError, OverflowError):
        good = False
    if not good:
        raise ConfigurationError(
            f"The parser of the type of judgement '{name}' is a function or a pattern"
            f" with one group, not {parser!r}."
        )

    def read(reply: str) -> dict[str, Any]:
        try:
            group = bounded.call(_group, parser, reply, key=parser)
        except (bounded.LimitExceeded, bounded.Raised) as error:
            raise ValueError(f"the pattern {parser!r}: {error}") from None
        if group is None:
            raise ValueError(f"nothing in the reply is like {parser!r}")
        return {"winner": group} if group in ("A", "B") else {"score": float(group)}

    return read


def _group(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return str(match[1]) if match else None


@dataclass(kw_only=True)
class Judging(Method):
    """`llm_judge`. judge_prompts, judge_parsers: of further types by their names.

    A parser is a function of the reply that gives `score`, `winner` or `correct`, or raises
    ValueError; or a pattern whose group is a number or A or B.
    """

    means: ClassVar[Mapping[str, str]] = {"average_judge_score": JUDGE_SCORE}

    default_judge_type: Any = RUBRIC
    judge_prompts: Mapping[str, str] | None = None
    judge_parsers: Mapping[str, Parser | str] | None = None

    def __post_init__(self) -> None:
        self.default = getattr(
            self.default_judge_type, "value", self.default_judge_type
        )
        prompts = {
            getattr(name, "value", name): template
            for name, template in (self.judge_prompts or {}).items()
        }
        parsers = {
            getattr(name, "value", name): parser
            for name, parser in (self.judge_parsers or {}).items()
        }
        self.asked = {
            name: judge_table.get("asked", judge_table["template"])
            for name, judge_table in texts()["judges"].items()
        }
        self.asked |= prompts
        self.parsers = {name: _parser(name, parser) for name, parser in parsers.items()}
        self.own = frozenset((*prompts, *parsers))
        for name in prompts.keys() - {*parsers, *TYPES}:
            raise ConfigurationError(
                f"The type of judgement '{name}' needs a parser:"
                f" judge_parsers={{'{name}': a function of the reply, or a pattern with"
                " one group}."
            )
        if self.default not in self.asked:
            raise ConfigurationError(
                f"{self.default!r} is not a valid JudgeType: {', '.join(self.asked)}."
            )

    def type_of(self, row: Given) -> Any:
        """The type of judgement that a row asks for."""
        return row.get("judge_type", self.default)

    def prompt(self, row: Given) -> str | None:
        """What the judge is sent; None where HRET fails to make it, and then loses the row."""
        kind = self.type_of(row)
        keys = {
            "input": "input",
            "response": "prediction",
            "response_b": "model_response_b",
        }
        keys |= {} if kind == PAIR else {"rubric": "rubric", "gold": "reference"}
        try:
            values = {name: row.get(key, "").strip() for name, key in keys.items()}
            return filled(self.asked[kind], values)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError):
            return None

    def read(self, row: Given, reply: str | None, score: Any = None) -> Score:
        """What a reply comes to. score: a number that the judge itself gives; the only one that
        counts for a rubric.
        """
        kind = self.type_of(row)
        parts = dict[str, float]()
        written: dict[str, Any] = {"judge_evaluation": reply}
        reading: Given = {}
        read = self.parsers.get(kind)
        try:
            if read is not None or kind not in (RUBRIC, GOLD):
                reading = (read or {K2: read_k2, PAIR: read_winner}[kind])(reply or "")
            elif kind == RUBRIC and isinstance(score, int | float):
                reading = {"score": score}
            why = "" if reading else "the reply is not read"
        except (ValueError, KeyError) as error:
            why = str(error)[:200]
        if (
            "score" in reading
            and math.isfinite(reading["score"])
            and abs(reading["score"]) < _MOST
        ):
            written[JUDGE_SCORE] = reading["score"]
            parts[JUDGE_SCORE] = float(reading["score"])
        right: bool | None = reading.get("correct")
        if "winner" in reading:
            right = row.get("reference") == reading["winner"]
            model = row.get(
                "model_a" if reading["winner"] == "A" else "model_b", "unknown"
            )
            evaluation = {
                "raw_output": reply,
                "parsed": {**reading, "model_name": model},
                "winner": reading["winner"],
            }
            written |= {"evaluation": {**evaluation, "is_correct": right}}
            written |= {WINNER: reading["winner"], CORRECT: right}
        if right is not None:
            parts[CORRECT] = float(right)
        value = parts.get(CORRECT, parts.get(JUDGE_SCORE, 0.0))
        return Score(value, str(kind), why, parts, {"row": written})

    def lost(self) -> Score:
        """A row for which there is no prompt."""
        return Score(
            0.0, "lost", "no prompt could be made for the judge", {}, {"row": {}}
        )

    def shares_of(self, rows: Iterable[Given]) -> Mapping[str, str]:
        """The one of pairs, over all rows, where any row is one."""
        return (
            {"judge_accuracy": CORRECT}
            if any(self.type_of(row) == PAIR for row in rows)
            else {}
        )


# -- corrected --

_SCALE = (1, 5)
_BY_RUBRIC = "How well does the answer meet the rubric that follows?"
_BY_ITSELF = "How well does the answer do what was asked?"
_BY_CRITERIA = (
    "How good is the answer? Four things count alike: completeness (it does all that was"
    " asked), logic (its reasoning is clear and consistent),\nfluency (its language is"
    " natural), and culture (it keeps to the language and the customs of the people who"
    " asked, here Koreans)."
)


def judging_of(
    method: Judging, samples: Sequence[Sample]
) -> tuple[list[Scorer], list[MetricSpec]]:
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
        "hret",
        options,
        judged,
        asks=True,
        roles=(JUDGE,),
        able=frozenset({"generate"}),
        worst=worst,
        on_fault=unanswered,
    )


def _written(
    score: Score, value: float, parts: Mapping[str, float], **fields: Any
) -> Score:
    item = {ROW: {"judge_evaluation": score.explanation, **fields}}
    return replace(score, value=value, parts=parts, item=item)


async def _grade(
    row: Given, kind: str, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    """The grade on the scale of the type itself.

    A reference is not shown: it may be the grade that people gave.
    """
    rubric = str(row.get("rubric") or "").strip() if kind == RUBRIC else ""
    question = _BY_CRITERIA if kind == K2 else _BY_RUBRIC if rubric else _BY_ITSELF
    rating = await judge_rating(
        sample,
        answer,
        ask,
        question=question,
        instructions=rubric,
        scale=_SCALE,
        show=("question",),
    )
    grade = rating.parts[RATING]
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


def as_prompt(text: str, ask: Ask) -> str | tuple[Message, ...]:
    """A judge's prompt as a message, or as text for a model without a chat."""
    abilities = abilities_of(ask, JUDGE)
    return (
        text
        if abilities is not None and "chat" not in abilities
        else (Message("user", text),)
    )


async def _correct(
    row: Given, kind: str, sample: Sample, answer: Answer, ask: Ask
) -> Score:
    reference = row.get("reference")
    with_target = replace(
        sample, targets=() if reference is None else (str(reference),)
    )
    correctness = await judge_correct(
        with_target, answer, ask, instructions=str(row.get("rubric") or "").strip()
    )
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
    preference = await judge_pair(
        pair, answer, ask, ties=gold is None, show=("question",)
    )
    orders = (preference.parts[FIRST], preference.parts[SECOND])
    value = preference.value
    winner = {1.0: "A", 0.0: "B"}.get(value, "tie")
    parts = {"win_rate": value, "same_verdict": preference.parts[SAME]}
    parsed = {"winner": winner, "shown_first": orders[0], "shown_second": orders[1]}
    evaluation: dict[str, Any] = {"winner": winner, "parsed": parsed}
    fields: dict[str, Any] = {"judge_winner": winner, "evaluation": evaluation}
    if gold is not None:
        value = parts["judge_accuracy"] = sum(order == gold for order in orders) / 2
        fields["judge_correct"] = evaluation["is_correct"] = value == 1
    return _written(preference, value, parts, **fields)
