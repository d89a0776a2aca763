"""HRET's own arithmetic, faults included: what each evaluation method reads, writes into a sample and adds up.

A method gives every sample a Score: its value is the verdict, `item["row"]` what HRET writes into the sample's dict, its parts what the metrics
are made of. A metric is a share of all samples that were asked, those that failed among them, or a mean of those that have a part.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

from evalwright import bounded
from evalwright.core.errors import ConfigurationError, MissingExtra, ScoringError
from evalwright.core.samples import Score

PENALTY, JUDGE_SCORE = "language_penalizer", "judge_score"
VERDICT = "verdict"
"""The part that is the verdict itself, 1 or 0."""
_MATH_SECONDS, _LONG = 2.0, 2000
"""Processor time for one comparison, and the characters from which on it gets a quarter of it."""
_MARKUP = re.compile(r"\*\*|__|~~|`")
_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")
_FEEDBACK = "Feedback:"
_MOST = 1e100


@cache
def texts() -> Mapping[str, Any]:
    """The table of what HRET sends and looks for."""
    import tomllib

    text = (resources.files("evalwright.compat.hret") / "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _marker() -> re.Pattern[str]:
    words = {kind: "|".join(some).replace(" ", r"\s*") for kind, some in texts()["markers"].items()}
    parts = [rf"(?:{words[kind]})\s*{colon}" for kind, colon in (("narrow", ":"), ("wide", "[:：]"))]
    return re.compile(rf"(?:{'|'.join(parts)})\s*(.+)", re.IGNORECASE | re.DOTALL)


def final_answer(text: str) -> str:
    """Everything behind the first marker, also behind one inside of a word; without a marker the whole text."""
    found = _marker().search(text)
    return found[1].strip() if found else text


def detected(text: object, language: str) -> float:
    """1 where langdetect gives the language (with the seed 0), else 0; 0 for what is no text, or has no letters.

    Raises MissingExtra.
    """
    try:
        detector = _detectors().create()
        detector.append(text)
        return float(detector.detect() == language)
    except MissingExtra:
        raise
    except Exception:
        return 0.0


@cache
def _detectors() -> Any:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError:
        raise MissingExtra("HRET's published language penalty", "hret-published", "langdetect") from None
    made = DetectorFactory()
    made.load_profile(PROFILES_DIRECTORY)
    made.seed = 0
    return made


def without(patterns: Sequence[str], text: str) -> str:
    """A text without what some patterns match, worked out in the process with limits. Raises ScoringError."""
    if not patterns:
        return text
    try:
        return str(bounded.call(_without, tuple(patterns), text, key=tuple(patterns)))
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ScoringError(
            f"The patterns {list(patterns)!r} cannot be taken out of a text: {error}"
        ) from None


def last_group(patterns: Sequence[str], text: str) -> str:
    """The first group of the last match of any pattern, or the match; without one the text. Raises ScoringError."""
    try:
        return str(bounded.call(_last_group, tuple(patterns), text, key=tuple(patterns)))
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ScoringError(f"The patterns {list(patterns)!r} cannot be looked for: {error}") from None


def _last_group(patterns: Sequence[str], text: str) -> str:
    found = [one for pattern in patterns for one in re.finditer(pattern, text)]
    if not found:
        return text
    last = max(found, key=lambda one: one.start())
    return (last[1] if last.re.groups else last[0]) or ""


def _without(patterns: Sequence[str], text: str) -> str:
    for pattern in patterns:
        text = re.sub(pattern, "", text)
    return text


class Method:
    """An evaluation method. shares: metrics that are a share of all samples, by the part that counts; means: those that are a mean of a part."""

    shares: Mapping[str, str] = {"accuracy": VERDICT}
    means: Mapping[str, str] = {}

    def parse(self, raw: Any) -> Any:
        """A reply as it is compared; it takes the place of the prediction."""
        return raw

    def score(self, row: Mapping[str, Any]) -> Score:
        """What a sample with its `prediction` is worth."""
        raise NotImplementedError

    def evaluated(self, rows: Sequence[dict[str, Any]]) -> dict[str, float]:
        """Write into samples, and their metrics; the parsed prediction is there already."""
        return self.numbers([self.written(row, self.score(row)) for row in rows])

    def written(self, row: dict[str, Any], score: Score) -> Score:
        """The score, once its fields stand in the sample."""
        row.update((score.item or {})["row"])
        return score

    def numbers(self, scores: Sequence[Score]) -> dict[str, float]:
        """The metrics of all samples."""
        parts = [one.parts for one in scores]
        found = {label: share([one.get(part, 0.0) for one in parts]) for label, part in self.shares.items()}
        for label, part in self.means.items():
            if values := [one[part] for one in parts if part in one]:
                found[label] = sum(values) / len(values)
        return found


def share(values: Sequence[float], lost: int = 0) -> float:
    """The sum of values over their number and that of what was lost; 0 of nothing."""
    return sum(values) / (len(values) + lost) if values or lost else 0.0


def scored(right: bool, written: Mapping[str, Any], parts: Mapping[str, float] | None = None) -> Score:
    """A verdict with what HRET writes."""
    label = "correct" if right else "incorrect"
    return Score(float(right), label, "", {VERDICT: float(right), **(parts or {})}, {"row": dict(written)})


def _text(raw: Any) -> str:
    return "" if raw is None else raw if isinstance(raw, str) else str(raw)


class Matching(Method):
    """`string_match`, and with `whole` off `partial_match`. The names of the options are HRET's."""

    def __init__(
        self,
        whole: bool,
        *,
        ignore_case: bool = True,
        ignore_punctuation: bool = False,
        ignore_numbers: bool = False,
        regexes_to_ignore: Sequence[str] | None = None,
        extract_final_answer: bool = True,
        mcqa: bool = True,
    ) -> None:
        self.whole, self.mcqa, self.extract = whole, mcqa, extract_final_answer
        self.ignore_case = ignore_case
        self.dropped = (string.punctuation if ignore_punctuation else "") + (
            string.digits if ignore_numbers else ""
        )
        self.patterns = tuple(regexes_to_ignore or ())
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except (re.error, TypeError, RecursionError, OverflowError) as error:
                raise ConfigurationError(
                    f"The parameter 'regexes_to_ignore' has {pattern!r}, which is no pattern: {error}."
                ) from None

    def normalised(self, text: str) -> str:
        """A text without what is to be ignored, its white space as single spaces."""
        text = without(self.patterns, text)
        text = text.lower() if self.ignore_case else text
        return " ".join(text.translate(str.maketrans("", "", self.dropped)).split())

    def parse(self, raw: Any) -> str:
        text = _text(raw)
        text = final_answer(text) if self.extract else text
        if self.whole:
            lines = [line.strip() for line in _MARKUP.sub("", text).splitlines() if line.strip()]
        else:
            lines = text.strip().splitlines() or [text]
        return self.normalised(lines[0] if lines else "")

    def score(self, row: Mapping[str, Any]) -> Score:
        """Parsed once more, as HRET does. A row without a reference has an empty one in `partial_match`, which every text contains."""
        if self.whole and "reference" not in row:
            raise ScoringError("KeyError: 'reference'")
        said, reference = self.parse(row.get("prediction", "")), self.parse(row.get("reference", ""))
        options = row.get("options")
        right = said == reference if self.whole else reference in said
        if self.mcqa and isinstance(options, list) and options:
            right = right and reference in [self.normalised(one) for one in options]
        evaluation = {
            "normalized_pred": said,
            "normalized_ref": reference,
            "is_correct": right,
            "options": options,
        }
        return scored(right, {"evaluation": evaluation})


class Likelihood(Method):
    """`log_likelihood`: the option of the highest log-probability, the first of equals; without log-probabilities the prediction.

    Nothing is written into the sample, whose prediction stays what it was.
    """

    def score(self, row: Mapping[str, Any]) -> Score:
        options = row.get("options", [])
        values = (row.get("logits") or {}).get("option_log_probs")
        said = row.get("prediction", "")
        if values is not None and options and len(values) == len(options):
            said = options[list(values).index(max(values))]
        reference = row.get("reference", "")
        if not isinstance(said, str) or not isinstance(reference, str):
            raise ScoringError("AttributeError: a prediction or reference that is no text")
        return scored(said.strip() == reference.strip(), {})


class Mathematics(Method):
    """`math_match`: math-verify on the first line behind a marker. Nothing that it reads nothing in is equal to anything."""

    shares: Mapping[str, str] = {
        "accuracy": VERDICT,
        "parse_failure_rate": "parse_failure",
        "verify_failure_rate": "verify_failure",
    }

    def __init__(
        self,
        *,
        latex_only: bool = True,
        expr_only: bool = False,
        extract_final_answer: bool = True,
        answer_patterns: Sequence[str] | None = None,
    ) -> None:
        self.latex, self.expression = latex_only or not expr_only, not latex_only
        self.extract = extract_final_answer

    def extracted(self, text: str) -> str:
        """The first line with text behind the first marker."""
        if not text or not self.extract:
            return text
        text = final_answer(text)
        return next((line.strip() for line in text.splitlines() if line.strip()), text)

    def score(self, row: Mapping[str, Any]) -> Score:
        said, reference = (self.extracted(str(row.get(key, ""))) for key in ("prediction", "reference"))
        pred, ref, right = verified(said, reference, self.latex, self.expression)
        unread = pred is None or ref is None
        if unread:
            right = said.strip() == reference.strip()
        evaluation = {
            "extracted_pred": said,
            "extracted_ref": reference,
            "parsed_pred": pred,
            "parsed_ref": ref,
            "is_correct": right,
            "fallback_used": unread,
        }
        return scored(
            right, {"evaluation": evaluation}, {"parse_failure": float(unread), "verify_failure": 0.0}
        )


def verified(
    said: str, reference: str, latex: bool, expression: bool
) -> tuple[list[str] | None, list[str] | None, bool]:
    """What math-verify reads in two texts, None where it raises, and whether it finds them equal; in the process with limits.

    Work that meets the limit of time has read nothing. Raises MissingExtra.
    """
    if not find_spec("math_verify"):
        raise MissingExtra("The method 'math_match'", "math", "math-verify")
    long = max(len(said), len(reference)) > _LONG
    try:
        bounded.call(_verify, "$1$", "$1$", True, True, seconds=10 * _MATH_SECONDS)  # it takes time to load
        found: tuple[list[str] | None, list[str] | None, bool] = bounded.call(
            _verify, said, reference, latex, expression, seconds=_MATH_SECONDS / (4 if long else 1)
        )
    except bounded.LimitExceeded:
        return [], [], False
    except bounded.Raised:
        return None, None, False
    return found


def _verify(said: str, reference: str, latex: bool, expression: bool) -> Any:
    """Run in the process with limits."""
    import logging

    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig()] * latex + [ExprExtractionConfig()] * expression
    read: list[Any] = []
    for text in (said, reference):
        try:
            read.append(parse(text, extraction_config=configs))
        except Exception:
            read.append(None)
    pred, ref = read
    try:
        right = pred is not None and ref is not None and bool(verify(ref, pred))
    except Exception:
        right = False
    return *(one and [str(value) for value in one] for one in read), right


# -- judges -------------------------------------------------------------------------------------------------------------

RUBRIC, GOLD, PAIR, K2 = "rubric_and_response", "rubric_response_and_gold", "response_comparison", "k2_eval"
TYPES = (RUBRIC, GOLD, PAIR, K2)

Parser = Callable[[str], Mapping[str, Any]]
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
        "judge_score": score,
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
    means: Mapping[str, str] = {"average_judge_score": "judge_score"}

    def __init__(
        self,
        *,
        default_judge_type: Any = RUBRIC,
        judge_prompts: Mapping[str, str] | None = None,
        judge_parsers: Mapping[str, Parser | str] | None = None,
    ) -> None:
        self.default = getattr(default_judge_type, "value", default_judge_type)
        self.asked = {name: one.get("asked", one["template"]) for name, one in texts()["judges"].items()}
        self.asked |= judge_prompts or {}
        self.parsers = {name: _parser(name, one) for name, one in (judge_parsers or {}).items()}
        self.own = frozenset((*(judge_prompts or ()), *self.parsers))
        if without_parser := [name for name in judge_prompts or () if name not in (*self.parsers, *TYPES)]:
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
            return str(self.asked[kind].format(**values))
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
            written["judge_score"] = found["score"]
            parts["judge_score"] = float(found["score"])
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
        value = parts.get("judge_correct", parts.get("judge_score", 0.0))
        return Score(value, str(kind), why, parts, {"row": written})

    def lost(self) -> Score:
        """A row for which there is no prompt."""
        return Score(0.0, "lost", "no prompt could be made for the judge", {}, {"row": {}})

    def shares_of(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """The metrics that are shares: the one of pairs, over all rows, where any row is one."""
        return {"judge_accuracy": "judge_correct"} if any(self.type_of(row) == PAIR for row in rows) else {}


METHODS: Mapping[str, Callable[..., Method]] = {
    "string_match": lambda **options: Matching(True, **options),
    "partial_match": lambda **options: Matching(False, **options),
    "log_likelihood": Likelihood,
    "math_match": Mathematics,
    "llm_judge": Judging,
}
"""The methods by HRET's names."""


def method_of(name: str, params: Mapping[str, Any]) -> Method:
    """A method with its parameters. Raises ConfigurationError for one that it does not take."""
    given = {key: value for key, value in params.items() if name != "llm_judge" or key in _JUDGE_PARAMS}
    try:
        return METHODS[name](**given)
    except TypeError as error:
        raise ConfigurationError(
            f"The evaluation method '{name}' does not take these parameters: {error}."
        ) from None


_JUDGE_PARAMS = ("default_judge_type", "judge_prompts", "judge_parsers")
