"""The table of scorers: every name loads, options are checked, and what does not fit is refused."""

from __future__ import annotations

import pytest

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind, registry, scorer


@pytest.mark.parametrize(
    "name",
    [
        "choice",
        "citation",
        "exact-match",
        "likelihood",
        "numeric",
        "perplexity",
        "short-answer",
    ],
)
def test_every_built_in_scorer_loads(name: str) -> None:
    assert name in registry.names()
    assert bind(name).asks is False


def test_options_are_bound_and_checked() -> None:
    bound = bind("exact-match", {"ignore_case": True}, "loose")
    assert bound.name == "loose"
    assert bound.function(Sample("s", targets=("A",)), Answer("a")).value == 1.0  # type: ignore[union-attr]
    with pytest.raises(UnknownName, match="ignore_case"):
        bind("exact-match", {"ignore_cases": True})
    with pytest.raises(UnknownName, match="short-answer"):
        bind("short-answr")


def test_a_function_of_another_form_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="def f\\(sample, answer"):

        @scorer("no-answer")
        def no_answer(sample: Sample) -> Score:
            return Score(0.0)

    with pytest.raises(ConfigurationError, match="async def f"):

        @scorer("no-ask")
        async def no_ask(sample: Sample, answer: Answer) -> Score:
            return Score(0.0)


def test_a_scorer_that_asks_names_its_role() -> None:
    @scorer("asking")
    async def asking(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        return Score(1.0)

    assert (bind("asking").asks, bind("asking").roles) == (True, ("judge",))
    assert bind("asking", {"role": "second"}).roles == ("second",)


def test_a_scorer_says_what_its_models_need_to_be_able_to() -> None:
    @scorer("needs-reward-here", able=["reward"])
    async def needs_reward(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "reward"
    ) -> Score:
        return Score(1.0)

    bound = bind("needs-reward-here")
    assert (bound.roles, bound.able) == (("reward",), frozenset({"reward"}))
