"""Budgets: what a person writes, and runs that end when it is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.test_schedule import knows, quiz, stopping
from evalwright import ScriptedModel, evaluate, scorer
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, Score
from evalwright.engine.budget import SPENT, Limits
from evalwright.evaluation.budgets import parse_budget, parse_prices
from evalwright.models.model_interface import Pacing
from evalwright.models.remote.prices import Price
from support.command import records

pytestmark = pytest.mark.usefixtures("own_folder")


# -- what is written
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "limits"),
    [
        (["5 USD"], Limits(dollars=5.0)),
        (["$0.50"], Limits(dollars=0.5)),
        (["2M tokens"], Limits(tokens=2_000_000)),
        (["1,000 requests"], Limits(requests=1000)),
        (["1.5k requests"], Limits(requests=1500)),
        (["5 USD, 2M tokens"], Limits(dollars=5.0, tokens=2_000_000)),
        (["5 dollars and 1 request", "7 tokens"], Limits(1, 7, 5.0)),
    ],
)
def test_budgets_are_read(texts: list[str], limits: Limits) -> None:
    assert parse_budget(texts) == limits


@pytest.mark.parametrize(
    "text",
    [
        "", "much", "5", "5 EUR", "-5 USD", "0 tokens", "0 USD", "0.2 requests", "5 USD, 6 USD", "1e5 tokens",
        "5 USD,",
    ],
)  # fmt: skip
def test_what_is_no_budget_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError, match="budget"):
        parse_budget([text])


@given(st.text(max_size=40))
def test_any_text_is_a_budget_and_a_price_or_refused(text: str) -> None:
    for read in (parse_budget, parse_prices):
        try:
            assert read([text])
        except ConfigurationError as error:
            assert "\n" not in str(error)


def test_prices() -> None:
    assert parse_prices(["0.15/0.60"]) == {"": Price(0.15, 0.6)}
    assert parse_prices(["openai/gpt=$2 / $10 per million tokens", "b=1/2"]) == {
        "openai/gpt": Price(2.0, 10.0),
        "b": Price(1.0, 2.0),
    }
    for text in ("1", "1/", "a=1", "1/2/3", "1.2.3/4"):
        with pytest.raises(ConfigurationError, match="price"):
            parse_prices([text])


def test_money_needs_a_price_for_all_who_cost_something() -> None:
    models = [knows("p/one", 0.8), knows("p/two", 0.7)]
    with pytest.raises(
        ConfigurationError, match=r"price of 'p/one' is not known.*--price"
    ):
        evaluate(quiz(20), models, budget="1 USD")
    with pytest.raises(ConfigurationError, match="price of 'p/two'"):
        evaluate(quiz(20), models, budget="1 USD", price="one=1/2")
    with pytest.raises(UnknownName, match=r"'p/tow' in a price. Did you mean 'p/two'"):
        evaluate(quiz(20), models, budget="1 USD", price=["1/2", "p/tow=1/2"])
    assert not Path("runs").exists()
    for price in (None, "here=1/2"):
        local = knows("here", 0.8, local=True)
        (run,) = evaluate(
            quiz(20),
            local,
            budget="1 USD",
            price=price,
            home=str(price).replace("/", ""),
        )
        assert stopping(run)["settled"]
        assert (stopping(run)["budget"]["spent"]["dollars"] == 0) is (price is None)
    with pytest.raises(ConfigurationError, match="no effect"):
        evaluate(quiz(20), knows("here", 0.8, local=True), budget="1 USD", price="1/2")


# -- spending
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requests", [1, 7, 100, 333])
def test_not_one_request_more(requests: int) -> None:
    model = knows("one", 0.8)
    (run,) = evaluate(quiz(400), model, budget=f"{requests} requests")
    assert model.asked == requests == run.task("quiz").n_samples
    assert stopping(run)["budget_reached"] == "requests"
    assert not stopping(run)["settled"]
    assert run.n_missing == 0
    assert run.data["usage"]["requested"] == requests
    assert SPENT not in str(records(run.folder))


def test_open_rules_come_first() -> None:
    """The pair is decided with a part of the budget; what is left goes to the model without a
    rule.
    """
    models = [knows("one", 0.9), knows("two", 0.5), knows("three", 0.5)]
    a, b, c = evaluate(quiz(500), models, until="A beats B", budget="300 requests")
    assert stopping(a)["decisions"][0]["early"]
    seen = a.task("quiz").n_samples
    assert b.task("quiz").n_samples == seen
    assert c.task("quiz").n_samples == 300 - 2 * seen > 0
    assert (
        stopping(a)["settled"] and stopping(b)["settled"] and not stopping(c)["settled"]
    )


def test_tokens_and_dollars() -> None:
    def says(request: Request) -> Response:
        return Response("x", usage=Usage(90, 10))

    task = quiz(3000)
    model = ScriptedModel(says, name="one", version="1")
    (run,) = evaluate(task, model, budget="20k tokens", name="tokens")
    assert 190 <= run.task("quiz").n_samples <= 200
    (run,) = evaluate(
        task, model, budget="0.05 USD", price="1/10", home="other", name="dollars"
    )
    spent = stopping(run)["budget"]["spent"]
    assert 0.0475 < spent["dollars"] <= 0.05
    assert spent["dollars"] == pytest.approx(
        spent["requests"] * (90 + 10 * 10) / 1e6, abs=1e-6
    )


def test_a_judge_is_paid_from_the_same_budget_and_its_sample_is_finished() -> None:
    @scorer("test-budget-judge")
    async def judged(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        assert isinstance(sample.input, str)
        await ask("judge", Generate(f"Is {answer.text} right of {sample.id}?"))
        return Score(1.0)

    judge = ScriptedModel(
        "yes", name="judge", pacing=Pacing(max_concurrency=3, start_concurrency=3)
    )
    model = knows("one", 0.8)
    task = quiz(200, scorers=["test-budget-judge"])
    (run,) = evaluate(task, model, roles={"judge": judge}, budget="101 requests")
    assert 95 <= model.asked + judge.asked <= 104
    assert run.n_missing == 0
    assert run.task("quiz").n_samples == model.asked == judge.asked


def test_identical_requests_of_one_sample_and_another() -> None:
    """Twenty rows ask two different things: two requests, whoever of them is refused."""
    rows: list[dict[str, Any]] = [
        {"id": str(i), "input": f"Question {i % 2}?", "target": "1"} for i in range(20)
    ]
    from evalwright.tasks.loading import task_from_definition

    task = task_from_definition({"task": "twice", "dataset": {"rows": rows}})
    model = ScriptedModel("1", name="one", latency=0.01)
    (run,) = evaluate(task, model, budget="1 request")
    assert model.asked == 1
    assert 0 < run.task("twice").n_samples <= 10
    assert run.n_missing == 0
