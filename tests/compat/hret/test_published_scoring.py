"""HRET's arithmetic as it was recorded: replies of recorded runs through the published scorers, and hostile texts through all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytest

from evalwright.compat.hret import judging as judges
from evalwright.compat.hret import published, settings
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.evaluation.llm_judge import GoldComparisonParser, RubricScoreParser
from evalwright.compat.hret.scoring import method_of
from evalwright.compat.hret.utils.metrics import language_penalizer
from evalwright.compat.hret.utils.prompt_template import JUDGE_PROMPTS, JudgeType, default_cot_parser
from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName

LANGUAGE = find_spec("langdetect") is not None
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
    evaluator = get_evaluator("llm_judge", model=None, default_judge_type="k2_eval")
    assert "**Question:**\n가\n" in evaluator.prepare_prompt({"input": "가", "response": "나"})
    with pytest.raises(KeyError):
        evaluator.prepare_prompt({"input": "가", "prediction": "나"})


def test_parsers_read_as_hret_does() -> None:
    assert RubricScoreParser().parse("[[score:4.5]]") == {"score": 4.5, "model_name": "unknown"}
    assert GoldComparisonParser().parse("[[FALSE]] step: [3]") == {
        "correct": False,
        "step": 3,
        "model_name": "unknown",
    }
    assert default_cot_parser("생각한다. 정답: (B)") == ("생각한다. 정답:", "(B)")
    with pytest.raises(ValueError, match="No valid winner found in response"):
        judges.read_winner("[[C]]")


def test_one_evaluator_without_a_run() -> None:
    rows: list[dict[str, Any]] = [
        {"input": "a", "reference": "(B)", "prediction": "정답: (B)"},
        {"reference": "b"},
    ]
    found = get_evaluator("string_match").evaluate(rows)
    assert found["metrics"] == {"accuracy": 0.5}
    assert found["samples"][0]["prediction"] == "(b)"
    assert found["samples"][1]["evaluation"] == {
        "normalized_pred": "", "normalized_ref": "b", "is_correct": False, "options": None,
    }  # fmt: skip


@pytest.mark.skipif(not LANGUAGE, reason="langdetect is not installed")
def test_the_penalty_is_langdetects_with_a_fixed_seed() -> None:
    assert [language_penalizer(one) for one in ("안녕하세요 반갑습니다", "(b)", "", None, 3)] == [
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ]


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
