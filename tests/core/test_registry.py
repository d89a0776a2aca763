"""A mismatch is an error at registration, not at call."""

from __future__ import annotations

import pytest

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind, registry, scorer


def test_a_scorer_of_the_wrong_form_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"must have the form"):

        @scorer("too-few")
        def too_few(answer: Answer) -> Score:
            return Score(1.0)

    with pytest.raises(ConfigurationError, match=r"async def f\(sample, answer, ask"):

        @scorer("no-ask")
        async def no_ask(sample: Sample, answer: Answer) -> Score:
            return Score(1.0)

    assert "too-few" not in registry.names()


def test_options_are_checked_when_bound() -> None:
    @scorer("test-length")
    def length(
        sample: Sample, answer: Answer, *, most: int, unit: str = "words"
    ) -> Score:
        return Score(float(len(answer.text.split()) <= most))

    with pytest.raises(UnknownName, match=r"Did you mean 'most'"):
        bind("test-length", {"mosst": 3})
    with pytest.raises(ConfigurationError, match=r"needs the option 'most'"):
        bind("test-length", {"unit": "words"})
    bound = bind("test-length", {"most": 2}, name="short")
    assert (bound.name, bound.kind, bound.asks, bound.roles) == (
        "short",
        "test-length",
        False,
        (),
    )
    assert bound.function(Sample("1"), Answer("one two")) == Score(1.0)


def test_a_scorer_that_asks_names_its_role() -> None:
    @scorer("test-judge")
    async def judged(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        return Score(1.0)

    assert bind("test-judge").roles == ("judge",)
    assert bind("test-judge", {"role": "second"}).roles == ("second",)


def test_an_unknown_scorer_comes_with_the_closest() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'exact-match'"):
        bind("exactmatch")
