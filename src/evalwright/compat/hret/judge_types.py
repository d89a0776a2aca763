"""HRET's types of judgement: what a judge is sent, and how its reply is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalwright import Score
from evalwright.compat.hret.examples import filled
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.tables import tables
from evalwright.extend import (
    ConfigurationError,
    LimitExceeded,
    RaisedInProcess,
    call_with_limits,
)

RUBRIC = "rubric_and_response"

GOLD = "rubric_response_and_gold"

PAIR = "response_comparison"

K2 = "k2_eval"

TYPES = (RUBRIC, GOLD, PAIR, K2)

CORRECT = "judge_correct"

WINNER = "judge_winner"
JUDGE_SCORE = "judge_score"

Parser = Callable[[str], Given]

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
            group = call_with_limits(_group, parser, reply, key=parser)
        except (LimitExceeded, RaisedInProcess) as error:
            raise ValueError(f"the pattern {parser!r}: {error}") from None
        if group is None:
            raise ValueError(f"nothing in the reply is like {parser!r}")
        return {"winner": group} if group in ("A", "B") else {"score": float(group)}

    return read


def _group(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return str(match[1]) if match else None


@dataclass(kw_only=True)
class Judging:
    """`llm_judge`. judge_prompts, judge_parsers: of further types by their names.

    A parser is a function of the reply that gives `score`, `winner` or `correct`, or raises
    ValueError; or a pattern whose group is a number or A or B.
    """

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
            for name, judge_table in tables()["judges"].items()
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
