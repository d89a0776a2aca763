"""HRET's own arithmetic, faults included: what each evaluation method reads, writes into a sample
and adds up.

A method gives every sample a Score: its value is the verdict, `item["row"]` what HRET writes into
the sample's dict, its parts what the metrics are made of. A metric is a share of all samples that
were asked, those that failed among them, or a mean of those that have a part.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar

from evalwright import Score
from evalwright.compat.hret import judge_types, methods
from evalwright.compat.hret.judge_types import CORRECT, JUDGE_SCORE, PAIR
from evalwright.compat.hret.patterns import without
from evalwright.compat.hret.published.math_verify import compare_with_math_verify
from evalwright.compat.hret.published.replies import final_answer
from evalwright.compat.hret.row_samples import Given
from evalwright.extend import (
    LimitExceeded,
    MissingExtra,
    RaisedInProcess,
    ScoringError,
    call_with_limits,
)

VERDICT = "verdict"
"""The part that is the verdict itself, 1 or 0."""

_MATH_SECONDS = 2.0

_LONG = 2000
"""Processor time for one comparison, and the characters from which on it gets a quarter of it."""

_MARKUP = re.compile(r"\*\*|__|~~|`")


class NoText(ScoringError, AttributeError):
    """Something in a row is no text, or no mapping, where HRET uses it as one; caught as HRET's own
    error is.
    """


class NoKey(ScoringError, KeyError):
    """A row lacks a key; caught as HRET's own error is."""

    __str__ = Exception.__str__


class Method:
    """An evaluation method. shares: metrics that are a share of all samples, by the part that
    counts; means: those that are a mean of a part.
    """

    shares: ClassVar[Mapping[str, str]] = {"accuracy": VERDICT}
    means: ClassVar[Mapping[str, str]] = {}

    def shares_of(self, rows: Iterable[Given]) -> Mapping[str, str]:
        """The metrics that are shares."""
        return self.shares

    def parse(self, raw: Any) -> Any:
        """A reply as it is compared; it takes the place of the prediction."""
        return raw

    def score(self, row: Given) -> Score:
        """What a sample with its `prediction` is worth."""
        raise NotImplementedError

    def written(self, row: dict[str, Any], score: Score) -> Score:
        """The score, once its fields stand in the sample."""
        row.update((score.item or {})["row"])
        return score

    def numbers(
        self, rows: Sequence[Given], scores: Sequence[Score]
    ) -> dict[str, float]:
        """The metrics of all samples."""
        parts = [score.parts for score in scores]
        shares = self.shares_of(rows)
        numbers = {
            label: share([score_parts.get(part, 0.0) for score_parts in parts])
            for label, part in shares.items()
        }
        for label, part in self.means.items():
            if values := [
                score_parts[part] for score_parts in parts if part in score_parts
            ]:
                numbers[label] = sum(values) / len(values)
        return numbers


def share(values: Sequence[float], lost: int = 0) -> float:
    """The sum of values over their number and that of what was lost; 0 of nothing."""
    return sum(values) / (len(values) + lost) if values or lost else 0.0


def scored(
    right: bool, written: Given, parts: Mapping[str, float] | None = None
) -> Score:
    """A verdict with what HRET writes."""
    label = "correct" if right else "incorrect"
    return Score(
        float(right),
        label,
        "",
        {VERDICT: float(right), **(parts or {})},
        {"row": dict(written)},
    )


@dataclass
class Matching(methods.Matching, Method):
    """`string_match` and `partial_match`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        dropped = string.punctuation if self.ignore_punctuation else ""
        self.dropped = str.maketrans(
            "", "", dropped + (string.digits if self.ignore_numbers else "")
        )

    def normalised(self, text: str) -> str:
        """A text without what is to be ignored, its white space as single spaces."""
        text = without(self.patterns, text)
        text = text.lower() if self.ignore_case else text
        return " ".join(text.translate(self.dropped).split())

    def parse(self, raw: Any) -> str:
        text = "" if raw is None else str(raw)
        text = final_answer(text) if self.extract_final_answer else text
        if self.compares_whole:
            lines = [
                line.strip()
                for line in _MARKUP.sub("", text).splitlines()
                if line.strip()
            ]
        else:
            lines = text.strip().splitlines() or [text]
        return self.normalised(lines[0] if lines else "")

    def score(self, row: Given) -> Score:
        """Parsed once more, as HRET does.

        A row without a reference has an empty one in `partial_match`, which every text contains.
        """
        if self.compares_whole and "reference" not in row:
            raise NoKey("KeyError: 'reference'")
        prediction = self.parse(row.get("prediction", ""))
        reference = self.parse(row.get("reference", ""))
        options = row.get("options")
        right = (
            prediction == reference if self.compares_whole else reference in prediction
        )
        if self.mcqa and isinstance(options, list) and options:
            right = right and reference in [
                self.normalised(option) for option in options
            ]
        texts = {"normalized_pred": prediction, "normalized_ref": reference}
        return scored(
            right, {"evaluation": {**texts, "is_correct": right, "options": options}}
        )


class Likelihood(methods.Likelihood, Method):
    """`log_likelihood`: the option of the highest log-probability, the first of equals; without
    log-probabilities the prediction.

    Nothing is written into the sample, whose prediction stays what it was.
    """

    def score(self, row: Given) -> Score:
        """The verdict.

        Raises NoText for `logits` that are no mapping, and for a prediction or reference that is no
        text.
        """
        options = row.get("options", [])
        logits = row.get("logits", {})
        if not isinstance(logits, Mapping):
            raise NoText(
                f"AttributeError: the row's logits are {logits!r}, and no mapping with"
                " option_log_probs"
            )
        values = logits.get("option_log_probs")
        prediction = row.get("prediction", "")
        if values is not None and options and len(values) == len(options):
            prediction = options[list(values).index(max(values))]
        reference = row.get("reference", "")
        if not isinstance(prediction, str) or not isinstance(reference, str):
            raise NoText("AttributeError: a prediction or reference that is not a text")
        return scored(prediction.strip() == reference.strip(), {})


@dataclass
class Mathematics(methods.Mathematics, Method):
    """`math_match`: math-verify on the first line behind a marker.

    Nothing that it reads nothing in is equal to anything.
    """

    shares: ClassVar[Mapping[str, str]] = {
        "accuracy": VERDICT,
        "parse_failure_rate": "parse_failure",
        "verify_failure_rate": "verify_failure",
    }

    def extracted(self, text: str) -> str:
        """The first line with text behind the first marker."""
        if not text or not self.extract_final_answer:
            return text
        text = final_answer(text)
        return next((line.strip() for line in text.splitlines() if line.strip()), text)

    def score(self, row: Given) -> Score:
        prediction, reference = (
            self.extracted(str(row.get(key, ""))) for key in ("prediction", "reference")
        )
        pred, ref, right = verified(
            prediction,
            reference,
            self.latex_only or not self.expr_only,
            not self.latex_only,
        )
        unread = pred is None or ref is None
        if unread:
            right = prediction.strip() == reference.strip()
        texts = {
            "extracted_pred": prediction,
            "extracted_ref": reference,
            "parsed_pred": pred,
            "parsed_ref": ref,
        }
        evaluation = {**texts, "is_correct": right, "fallback_used": unread}
        failures = {"parse_failure": float(unread), "verify_failure": 0.0}
        return scored(right, {"evaluation": evaluation}, failures)


@dataclass(kw_only=True)
class Judging(judge_types.Judging, Method):
    """`llm_judge`: the mean of the grades, and of pairs the share in which the judge names the
    reference.
    """

    means: ClassVar[Mapping[str, str]] = {"average_judge_score": JUDGE_SCORE}

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


Read = tuple[list[str] | None, list[str] | None, bool]


def verified(prediction: str, reference: str, latex: bool, expression: bool) -> Read:
    """What math-verify reads in two texts, None where it raises, and whether it finds them equal;
    in the process with limits.

    Work that meets the limit of time has read nothing. Raises MissingExtra.
    """
    if not find_spec("math_verify"):
        raise MissingExtra("The method 'math_match'", "math", "math-verify")
    seconds = _MATH_SECONDS / (4 if max(len(prediction), len(reference)) > _LONG else 1)
    try:
        # It takes time to load.
        call_with_limits(
            compare_with_math_verify,
            "$1$",
            "$1$",
            True,
            True,
            seconds=10 * _MATH_SECONDS,
        )
        verdict: Read = call_with_limits(
            compare_with_math_verify,
            prediction,
            reference,
            latex,
            expression,
            seconds=seconds,
        )
        return verdict
    except LimitExceeded:
        return [], [], False
    except RaisedInProcess:
        return None, None, False


METHODS: Mapping[str, Callable[..., Method]] = {
    "string_match": partial(Matching, True),
    "partial_match": partial(Matching, False),
    "log_likelihood": Likelihood,
    "math_match": Mathematics,
    "llm_judge": Judging,
}
"""The methods by HRET's names."""


def method_of(name: str, params: Given) -> Method:
    """A method with those of its parameters that it has."""
    known_parameters = methods.parameters_of(name)
    return METHODS[name](
        **{key: value for key, value in params.items() if key in known_parameters}
    )


def measure(
    method: Method,
    rows: list[dict[str, Any]],
    judge_batch: Callable[[list[dict[str, Any]]], Sequence[Given]] | None,
) -> dict[str, Any]:
    """The metrics of rows that have a prediction; verdicts are written into them. A judge is sent
    all prompts at once.
    """
    if isinstance(method, Judging):
        return _judged(method, rows, judge_batch)
    return method.numbers(
        rows, [method.written(row, method.score(row)) for row in rows]
    )


def _judged(
    method: Judging, rows: list[dict[str, Any]], judge_batch: Any
) -> dict[str, Any]:
    if judge_batch is None:
        return {"error": "'NoneType' object has no attribute 'judge_batch'"}
    prompts = [method.prompt(row) for row in rows]
    judge_inputs = [{"input": prompt} for prompt in prompts if prompt is not None]
    try:
        replies = iter(judge_batch(judge_inputs) if judge_inputs else [])
    except Exception as error:
        return {"error": str(error)}
    scores = []
    for row, prompt in zip(rows, prompts, strict=True):
        score = method.lost()
        if prompt is not None:
            reply = next(replies)
            score = method.read(row, reply.get("prediction"), reply.get("judge_score"))
        scores.append(method.written(row, score))
    return method.numbers(rows, scores)
