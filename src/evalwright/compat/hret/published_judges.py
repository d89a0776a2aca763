"""HRET's own judging: what a judge is sent, how its reply is read, and what comes of it, faults included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright import bounded
from evalwright.compat.hret.datasets.base import filled
from evalwright.compat.hret.published import JUDGE_SCORE, PENALTY, Method, texts
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Score

RUBRIC, GOLD, PAIR, K2 = "rubric_and_response", "rubric_response_and_gold", "response_comparison", "k2_eval"
TYPES = (RUBRIC, GOLD, PAIR, K2)

Parser = Callable[[str], Mapping[str, Any]]
_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")
_FEEDBACK = "Feedback:"
_MOST = 1e100
_SCORE = re.compile(r"\[\[score:\s*(\d+(?:\.\d*)?)\]\]")
_K2_SCORE = re.compile(r"Score:\s*(\d+(?:\.\d+)?)")
_WINNER = re.compile(r"\[\[([AB])\]\]")
_STEP = re.compile(r"step:\s*\[(\d+)\]", re.IGNORECASE)


def _first(pattern: re.Pattern[str], reply: str, missing: str, of: str = "response") -> str:
    if found := pattern.search(reply):
        return found[1]
    raise ValueError(f"{missing} in {of}: {reply}")


def read_rubric(reply: str) -> dict[str, Any]:
    """`[[score: 3]]`, which no prompt asks for. Raises ValueError, as all of these."""
    return {"score": float(_first(_SCORE, reply, "No valid score found"))}


def read_k2(reply: str) -> dict[str, Any]:
    """`Score: 3.5`, the first one."""
    return {"score": float(_first(_K2_SCORE, reply, "No valid score found", "K2-Eval response"))}


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
    """What HRET's `huggingface_judge` writes: its score is looked for in the prompt and the reply together."""
    whole = prompt + reply
    start = whole.find(_FEEDBACK) + len(_FEEDBACK)
    found = _RESULT.search(whole, start) if start >= len(_FEEDBACK) else None
    said = whole[start : found.start()].strip() if found else whole
    found = found or _RESULT.search(whole)
    score = float(found[1]) if found else "error"
    text = f"{_FEEDBACK} {said} [RESULT] {score}" if found else whole
    return {
        "prediction": text,
        JUDGE_SCORE: score,
        PENALTY: 1.0,
        "_subset_name": "Pointwise",
        "judge_type": RUBRIC,
    }


def _parser(name: str, given: Parser | str) -> Parser:
    if callable(given):
        return given
    try:
        good = isinstance(given, str) and re.compile(given).groups == 1
    except (re.error, RecursionError, OverflowError):
        good = False
    if not good:
        raise ConfigurationError(
            f"The parser of the type of judgement '{name}' is a function or a pattern with one group, not {given!r}."
        )

    def read(reply: str) -> dict[str, Any]:
        try:
            found = bounded.call(_group, given, reply, key=given)
        except (bounded.LimitExceeded, bounded.Raised) as error:
            raise ValueError(f"the pattern {given!r}: {error}") from None
        if found is None:
            raise ValueError(f"nothing in the reply is like {given!r}")
        return {"winner": found} if found in ("A", "B") else {"score": float(found)}

    return read


def _group(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return str(found[1]) if found else None


class Judging(Method):
    """`llm_judge`. judge_prompts, judge_parsers: of further types by their names. A parser is a function of the reply that gives `score`, `winner`
    or `correct`, or raises ValueError; or a pattern whose group is a number or A or B."""

    shares: Mapping[str, str] = {}
    means: Mapping[str, str] = {"average_judge_score": JUDGE_SCORE}

    def __init__(
        self,
        *,
        default_judge_type: Any = RUBRIC,
        judge_prompts: Mapping[str, str] | None = None,
        judge_parsers: Mapping[str, Parser | str] | None = None,
    ) -> None:
        self.default = getattr(default_judge_type, "value", default_judge_type)
        self.asked = {name: one.get("asked", one["template"]) for name, one in texts()["judges"].items()}
        judge_prompts = {getattr(name, "value", name): one for name, one in (judge_prompts or {}).items()}
        self.asked |= judge_prompts
        named = {getattr(name, "value", name): one for name, one in (judge_parsers or {}).items()}
        self.parsers = {name: _parser(name, one) for name, one in named.items()}
        self.own = frozenset((*judge_prompts, *self.parsers))
        if without_parser := [name for name in judge_prompts if name not in (*self.parsers, *TYPES)]:
            raise ConfigurationError(
                f"The type of judgement '{without_parser[0]}' needs a parser: judge_parsers={{'{without_parser[0]}': a function of the "
                "reply, or a pattern with one group}."
            )
        if self.default not in self.asked:
            raise ConfigurationError(f"{self.default!r} is not a valid JudgeType: {', '.join(self.asked)}.")

    def type_of(self, row: Mapping[str, Any]) -> Any:
        """The type of judgement that a row asks for."""
        return row.get("judge_type", self.default)

    def prompt(self, row: Mapping[str, Any]) -> str | None:
        """What the judge is sent; None where HRET fails to make it, and then loses the row."""
        kind = self.type_of(row)
        keys = {"input": "input", "response": "prediction", "response_b": "model_response_b"}
        if kind != PAIR:
            keys |= {"rubric": "rubric", "gold": "reference"}
        try:
            values = {name: row.get(key, "").strip() for name, key in keys.items()}
            return filled(self.asked[kind], values)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError):
            return None

    def read(self, row: Mapping[str, Any], reply: str | None, score: Any = None) -> Score:
        """What a reply comes to. score: a number that the judge itself gives; the only one that counts for a rubric."""
        kind = self.type_of(row)
        written: dict[str, Any] = {"judge_evaluation": reply}
        parts: dict[str, float] = {"unread": 0.0}
        try:
            if kind == RUBRIC and kind not in self.parsers:
                found: Mapping[str, Any] = {"score": score} if isinstance(score, int | float) else {}
            elif kind == GOLD and kind not in self.parsers:
                found = {}
            else:
                read = self.parsers.get(kind) or {K2: read_k2, PAIR: read_winner}[kind]
                found = read(reply or "")
        except (ValueError, KeyError) as error:
            found, parts["unread"] = {}, 1.0
            why = str(error)[:200]
        else:
            why = "" if found else "the reply is not read"
        if "score" in found and math.isfinite(found["score"]) and abs(found["score"]) < _MOST:
            written[JUDGE_SCORE] = found["score"]
            parts[JUDGE_SCORE] = float(found["score"])
        right: bool | None = found.get("correct")
        if "winner" in found:
            right = row.get("reference") == found["winner"]
            model = row.get("model_a" if found["winner"] == "A" else "model_b", "unknown")
            parsed = {**found, "model_name": model}
            evaluation = {
                "raw_output": reply,
                "parsed": parsed,
                "winner": found["winner"],
                "is_correct": right,
            }
            written |= {"evaluation": evaluation, "judge_winner": found["winner"], "judge_correct": right}
        if right is not None:
            parts["judge_correct"] = float(right)
        value = parts.get("judge_correct", parts.get(JUDGE_SCORE, 0.0))
        return Score(value, str(kind), why, parts, {"row": written})

    def lost(self) -> Score:
        """A row for which there is no prompt."""
        return Score(0.0, "lost", "no prompt could be made for the judge", {}, {"row": {}})

    def shares_of(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """The metrics that are shares: the one of pairs, over all rows, where any row is one."""
        return {"judge_accuracy": "judge_correct"} if any(self.type_of(row) == PAIR for row in rows) else {}
