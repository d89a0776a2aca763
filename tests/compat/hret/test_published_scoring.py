"""Hostile texts and patterns through HRET's own arithmetic; its numbers are those of the
recorded runs (test_golden.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from evalwright.compat.hret import judge_types as judges
from evalwright.compat.hret import rules
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.methods import check_method
from evalwright.compat.hret.published import methods as published
from evalwright.compat.hret.published.methods import method_of
from evalwright.compat.hret.published.scorers import from_huggingface
from evalwright.compat.hret.utils.prompt_template import JUDGE_PROMPTS, JudgeType
from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from support.bounds import assert_grows_linearly, repeated

LONG = [
    repeated(" ", "정답:"), repeated("Answer"), repeated("Final ", after=":"), repeated("정답: "), repeated("\n"), repeated("1", "[[score: "),
    repeated("Feedback:"), repeated("**"), repeated("\u3000", "답", ":x"), repeated("1", "Score: ", "."), repeated("[RESULT] "), repeated("\\boxed{"),
]  # fmt: skip
"""By its length, each text."""


@pytest.fixture(autouse=True)
def as_published() -> Iterator[None]:
    rules.set_scoring("published")
    yield
    rules.set_scoring("corrected")


def test_judge_prompts_have_hret_names_and_fields() -> None:
    assert {kind.value for kind in JUDGE_PROMPTS} == set(judges.TYPES)
    assert "{rubric}" in JUDGE_PROMPTS[JudgeType.RUBRIC_AND_RESPONSE]


@pytest.mark.parametrize("method", ["string_match", "partial_match", "math_match"])
def test_long_hostile_replies_take_little_time(method: str) -> None:
    made = method_of(method, {})
    if method == "math_match":
        published.verified("1", "1", True, True)  # loads the library
    for of_length in LONG:
        assert_grows_linearly(
            lambda text: made.score(
                {"prediction": made.parse(text), "reference": "(B)"}
            ),
            of_length,
        )


@pytest.mark.parametrize(
    "of_length", LONG, ids=lambda of_length: repr(of_length(20)[:8])
)
def test_long_hostile_verdicts_take_little_time(
    of_length: Callable[[int], str],
) -> None:
    def read_by_each(text: str) -> None:
        from_huggingface(text, text)
        for read in (
            judges.read_rubric,
            judges.read_k2,
            judges.read_winner,
            judges.read_gold,
        ):
            with suppress(ValueError):
                read(text)

    assert_grows_linearly(read_by_each, of_length)


def test_patterns_of_a_call_are_bounded_and_checked_at_once() -> None:
    slow = method_of("string_match", {"regexes_to_ignore": ["(a+)+$"]})
    with pytest.raises(ScoringError, match="processor time"):
        slow.parse("a" * 40 + "!")
    with pytest.raises(ConfigurationError, match="no pattern"):
        method_of("partial_match", {"regexes_to_ignore": ["("]})
    with pytest.raises(UnknownName, match="Unknown parameter 'normalize'"):
        check_method("log_likelihood", {"normalize": True})


def test_logits_that_are_none_raise_as_hret_does() -> None:
    row = {"options": ["a", "b"], "reference": "a", "prediction": "a", "logits": None}
    with pytest.raises(AttributeError, match="logits are None") as raised:
        get_evaluator("log_likelihood").evaluate([dict(row)])
    assert isinstance(raised.value, ScoringError)
    without = {key: one for key, one in row.items() if key != "logits"}
    assert get_evaluator("log_likelihood").evaluate([without])["metrics"] == {
        "accuracy": 1.0
    }
    with pytest.raises(KeyError, match="reference"):
        get_evaluator("string_match").evaluate([{"prediction": "a"}])
    for name in ("log_likelihood", "string_match"):
        with pytest.raises(TypeError, match="Unknown parameter 'normalize'"):
            get_evaluator(name, normalize=True)
