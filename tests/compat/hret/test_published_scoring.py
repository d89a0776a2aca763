"""Hostile texts and patterns through HRET's own arithmetic; its numbers are those of the recorded runs (test_golden.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from evalwright.compat.hret import judging as judges
from evalwright.compat.hret import published, settings
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.scoring import method_of
from evalwright.compat.hret.utils.prompt_template import JUDGE_PROMPTS, JudgeType
from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName

LONG = [
    "정답:" + " " * 100_000, "Answer" * 16_000, "Final " * 16_000 + ":", "정답: " * 25_000, "\n" * 100_000, "[[score: " + "1" * 100_000,
    "Feedback:" * 11_000, "**" * 50_000, "답" + "\u3000" * 100_000 + ":x", "Score: " + "1" * 99_000 + ".", "[RESULT] " * 11_000, "\\boxed{" * 14_000,
]  # fmt: skip


@pytest.fixture(autouse=True)
def as_published() -> Iterator[None]:
    settings.set_scoring("published")
    yield
    settings.set_scoring("corrected")


def test_judge_prompts_have_hret_names_and_fields() -> None:
    assert {kind.value for kind in JUDGE_PROMPTS} == set(judges.TYPES)
    assert "{rubric}" in JUDGE_PROMPTS[JudgeType.RUBRIC_AND_RESPONSE]


@pytest.mark.parametrize("method", ["string_match", "partial_match", "math_match"])
def test_long_hostile_replies_take_little_time(method: str) -> None:
    made = method_of(method, {})
    if method == "math_match":
        published.verified("1", "1", True, True)  # loads the library
    for text in LONG:
        begun = time.process_time()
        made.score({"prediction": made.parse(text), "reference": "(B)"})
        assert time.process_time() - begun < 0.5, text[:20]


@pytest.mark.parametrize("text", LONG, ids=lambda text: repr(text[:8]))
def test_long_hostile_verdicts_take_little_time(text: str) -> None:
    begun = time.process_time()
    judges.from_huggingface(text, text)
    for read in (judges.read_rubric, judges.read_k2, judges.read_winner, judges.read_gold):
        with suppress(ValueError):
            read(text)
    assert time.process_time() - begun < 0.5


def test_patterns_of_a_call_are_bounded_and_checked_at_once() -> None:
    slow = method_of("string_match", {"regexes_to_ignore": ["(a+)+$"]})
    with pytest.raises(ScoringError, match="processor time"):
        slow.parse("a" * 40 + "!")
    with pytest.raises(ConfigurationError, match="no pattern"):
        method_of("partial_match", {"regexes_to_ignore": ["("]})
    with pytest.raises(UnknownName, match="Unknown parameter 'normalize'"):
        method_of("log_likelihood", {"normalize": True})


def test_logits_that_are_none_raise_as_hret_does() -> None:
    row = {"options": ["a", "b"], "reference": "a", "prediction": "a", "logits": None}
    with pytest.raises(AttributeError, match="logits are None") as raised:
        get_evaluator("log_likelihood").evaluate([dict(row)])
    assert isinstance(raised.value, ScoringError)
    without = {key: one for key, one in row.items() if key != "logits"}
    assert get_evaluator("log_likelihood").evaluate([without])["metrics"] == {"accuracy": 1.0}
    with pytest.raises(KeyError, match="reference"):
        get_evaluator("string_match").evaluate([{"prediction": "a"}])
    for name in ("log_likelihood", "string_match"):
        with pytest.raises(TypeError, match="Unknown parameter 'normalize'"):
            get_evaluator(name, normalize=True)
