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
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any, ClassVar

from evalwright import Score, bounded
from evalwright.compat.hret.settings import Given
from evalwright.extend import ConfigurationError, MissingExtra, ScoringError
from evalwright.scorers.text.formulas import compare_with_math_verify

PENALTY = "language_penalizer"
JUDGE_SCORE = "judge_score"
VERDICT = "verdict"
"""The part that is the verdict itself, 1 or 0."""
_MATH_SECONDS = 2.0
_LONG = 2000
"""Processor time for one comparison, and the characters from which on it gets a quarter of it."""
_MARKUP = re.compile(r"\*\*|__|~~|`")


@cache
def texts() -> Given:
    """The table of what HRET sends and looks for."""
    import tomllib

    text = (resources.files("evalwright.compat.hret") / "published.toml").read_text(
        encoding="utf-8"
    )
    return tomllib.loads(text)


@cache
def markers() -> tuple[str, ...]:
    """The patterns of what stands before an answer."""
    marker_table = texts()["markers"]
    colons = dict.fromkeys(marker_table["wide"], "[:：]")
    return tuple(
        word.replace(" ", r"\s*") + r"\s*" + colons.get(word, ":")
        for word in marker_table["words"]
    )


@cache
def _marker() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(markers())})\s*(.+)", re.IGNORECASE | re.DOTALL)


def final_answer(text: str) -> str:
    """Everything behind the first marker, also behind one inside of a word; without a marker the
    whole text.
    """
    match = _marker().search(text)
    return match[1].strip() if match else text


def detected(text: object, language: str) -> float:
    """1 where langdetect gives the language (with the seed 0), else 0; 0 for what is no text, or
    has no letters.

    Raises MissingExtra.
    """
    detector = _detectors().create()
    try:
        detector.append(text)
        return float(detector.detect() == language)
    except Exception:
        return 0.0


@cache
def _detectors() -> Any:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError:
        raise MissingExtra(
            "HRET's published language penalty", "hret-published", "langdetect"
        ) from None
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = 0
    return factory


def without(patterns: Sequence[str], text: str) -> str:
    """A text without what some patterns match. Raises ScoringError."""
    return _within_limits(_without, patterns, text) if patterns else text


def last_group(patterns: Sequence[str], text: str) -> str:
    """The first group of the last match of any pattern, or the match; without one the text.

    Raises ScoringError.
    """
    return _within_limits(_last_group, patterns, text)


def _within_limits(work: Callable[..., str], patterns: Sequence[str], text: str) -> str:
    try:
        return str(bounded.call(work, tuple(patterns), text, key=tuple(patterns)))
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ScoringError(
            f"The patterns {list(patterns)!r} cannot be looked for: {error}"
        ) from None


def _last_group(patterns: Sequence[str], text: str) -> str:
    matches = [match for pattern in patterns for match in re.finditer(pattern, text)]
    if not matches:
        return text
    last = max(matches, key=lambda match: match.start())
    return (last[1] if last.re.groups else last[0]) or ""


def _without(patterns: Sequence[str], text: str) -> str:
    for pattern in patterns:
        text = re.sub(pattern, "", text)
    return text


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
class Matching(Method):
    """`string_match`, and with `whole` off `partial_match`. The names of the options are HRET's."""

    compares_whole: bool
    _: KW_ONLY
    ignore_case: bool = True
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: Sequence[str] | None = None
    extract_final_answer: bool = True
    mcqa: bool = True

    def __post_init__(self) -> None:
        dropped = string.punctuation if self.ignore_punctuation else ""
        self.dropped = str.maketrans(
            "", "", dropped + (string.digits if self.ignore_numbers else "")
        )
        self.patterns = tuple(self.regexes_to_ignore or ())
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except (re.error, TypeError, RecursionError, OverflowError) as error:
                raise ConfigurationError(
                    f"The parameter 'regexes_to_ignore' has {pattern!r}, which is no"
                    f" pattern: {error}."
                ) from None

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


class Likelihood(Method):
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
class Mathematics(Method):
    """`math_match`: math-verify on the first line behind a marker.

    Nothing that it reads nothing in is equal to anything.
    """

    shares: ClassVar[Mapping[str, str]] = {
        "accuracy": VERDICT,
        "parse_failure_rate": "parse_failure",
        "verify_failure_rate": "verify_failure",
    }

    _: KW_ONLY
    latex_only: bool = True
    expr_only: bool = False
    extract_final_answer: bool = True
    answer_patterns: Sequence[str] | None = None

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
        bounded.call(
            compare_with_math_verify,
            "$1$",
            "$1$",
            True,
            True,
            seconds=10 * _MATH_SECONDS,
        )
        verdict: Read = bounded.call(
            compare_with_math_verify,
            prediction,
            reference,
            latex,
            expression,
            seconds=seconds,
        )
        return verdict
    except bounded.LimitExceeded:
        return [], [], False
    except bounded.Raised:
        return None, None, False
