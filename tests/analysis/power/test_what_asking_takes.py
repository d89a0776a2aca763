"""What a plan says of asking: requests, tokens, money and time, against what a real run then
used; and that it asks nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright import (
    Answer,
    Ask,
    Generate,
    ModelSpec,
    Pacing,
    Sample,
    Score,
    ScriptedModel,
    evaluate,
    open_run,
    plan,
    scorer,
)
from evalwright.analysis.power.spending import MOST_READ
from evalwright.core.errors import Overloaded
from evalwright.models.remote.prices import Price
from support.openai_server import OpenAIServer, serving


def at(server: OpenAIServer) -> ModelSpec:
    return ModelSpec("openai/m", {"base_url": server.url})


def asked(server: OpenAIServer) -> int:
    return sum(server.received.values())


def test_nothing_is_asked_without_a_pilot_and_a_pilot_is_not_paid_twice() -> None:
    with serving() as server:
        first = plan("questions.yaml", at(server))
        assert (asked(server), first.pilot_runs) == (0, ())
        assert not list(Path("home").glob("store.sqlite*"))
        pilot = plan("questions.yaml", at(server), pilot=20)
        assert asked(server) == 20
        assert "20 answers are in the store" in pilot.notes[0]
        again = plan("questions.yaml", at(server), pilot=20)
        assert asked(server) == 20
        assert again.as_dict() == pilot.as_dict()
        assert pilot.models["openai/m"].stored == 20
        evaluate("questions.yaml", at(server))
        assert asked(server) == 60
        whole = plan("questions.yaml", at(server))
        assert whole.models["openai/m"].stored == 60
        assert whole.notes == (
            "The store already has 60 of these answers: they are neither requested nor paid for again.",
        )
        assert first.models["openai/m"].stored == 0


def test_a_pilot_measures_tokens_and_time_of_a_remote_model() -> None:
    with serving(latency=0.02) as server:
        forecast = plan(
            "questions.yaml", at(server), pilot=30, prices={"": Price(2.0, 8.0)}
        )
        run = evaluate("questions.yaml", at(server))[0]
    usage = forecast.models["openai/m"]
    really = run.data["usage"]["answers"]
    assert usage.requests.value == 60
    for found, key in (
        (usage.input_tokens, "input_tokens"),
        (usage.output_tokens, "output_tokens"),
    ):
        low = found.value if found.low is None else found.low
        high = found.value if found.high is None else found.high
        assert low is not None
        assert high is not None
        assert 0.9 * low <= really[key] <= 1.1 * high
        assert "measured on 30 answers of openai/m" in found.basis
    price = (
        (usage.input_tokens.value or 0) * 2 + (usage.output_tokens.value or 0) * 8
    ) / 1e6
    assert usage.money.value == pytest.approx(price)
    assert usage.seconds.low is not None
    assert usage.seconds.high is not None
    assert 0.02 <= usage.seconds.low <= usage.seconds.high
    assert "30 requests took" in usage.seconds.basis


@pytest.mark.parametrize("name", ["factual-closed-book", "factual-grounded"])
def test_tokens_in_are_those_that_the_run_then_counts(name: str) -> None:
    forecast = plan(
        name,
        "demo/small",
        difference=0.2,
        half_width=0.2,
        assume={"variance": 0.1, "accuracy": 0.5, "design_effect": 1.0},
    )
    (task,) = forecast.tasks
    everything = plan(name, "demo/small")
    run = evaluate(name, "demo/small")[0]
    usage = everything.models["demo/small"]
    counted = run.data["usage"]["answers"]["input_tokens"]
    into = usage.input_tokens
    assert into.value is not None and usage.money.value == 0.0
    if task.n_total <= MOST_READ:
        assert into.value == pytest.approx(counted) and into.low is None
    else:  # not all are read, and the rest is an estimate with its interval
        assert into.low is not None and into.high is not None
        assert into.low <= counted <= into.high
        assert into.value == pytest.approx(counted, rel=0.01)
    written = run.data["usage"]["answers"]["output_tokens"]
    assert usage.output_tokens.value is None
    assert usage.output_tokens.high is not None
    assert written <= usage.output_tokens.high == 48 * task.n_total
    assert task.n_used < task.n_total
    assert f"--limit {task.n_used}" in forecast.command


def test_a_model_that_hides_its_tokenizer_is_guessed_at() -> None:
    with serving() as server:
        usage = plan("questions.yaml", at(server)).models["openai/m"]
        assert asked(server) == 0
    assert usage.input_tokens.basis == "estimated at 4 characters a token"
    low = usage.input_tokens.low
    value = usage.input_tokens.value
    high = usage.input_tokens.high
    assert low is not None
    assert value is not None
    assert high is not None
    assert low < value < high
    assert usage.output_tokens.high == 20 * 60
    assert usage.money.value is None
    assert usage.money.basis == "no price is known for openai/m: give --price IN/OUT"
    assert usage.seconds.value is None
    assert "openai/m has not been timed" in usage.seconds.basis


def test_failures_of_a_pilot_are_counted_and_asked_again() -> None:
    model = ScriptedModel(
        "1",
        name="shaky",
        version="1",
        failures=lambda request, asked: (
            Overloaded("down", status=503) if "00003" in str(request) else None
        ),
        pacing=Pacing(max_attempts=1),
    )
    forecast = plan("questions.yaml", model, pilot=60)
    assert forecast.pilot_failed == 1
    before = model.asked
    plan("questions.yaml", model, pilot=60)
    assert model.asked - before == 1


def test_judges_are_counted_apart() -> None:
    @scorer("test-plan-judge")
    async def judge(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        reply = await ask(
            role, Generate(f"Is '{answer.text}' right for {sample.id}?", max_tokens=1)
        )
        return Score(float(reply.text == "yes"))

    text = (
        Path("questions.yaml").read_text().replace("[exact-match]", "[test-plan-judge]")
    )
    Path("questions.yaml").write_text(text)
    model = ScriptedModel("1", name="m/a", version="1")
    roles = {"judge": ScriptedModel("yes", name="m/j")}
    forecast = plan("questions.yaml", model, pilot=10, roles=roles)
    assert forecast.models["m/a"].requests.value == 60
    assert (
        "without the other roles: judge, about 1 for each of the model's own"
        in forecast.notes[1]
    )
    assert (
        "20 requests, those to other roles included, took"
        in forecast.models["m/a"].seconds.basis
    )
    took = open_run(forecast.pilot_runs[0]).data["seconds"]
    assert forecast.models["m/a"].seconds.high == pytest.approx(took * 120 / 20)
    without = plan("questions.yaml", model)
    assert without.notes[1].endswith("without the other roles: judge.")
    assert forecast.command.count("--role judge=m/j") == 1
    assert "--role judge=... " in f"{without.command} "
    assert (
        "--role judge=m/j"
        in plan("questions.yaml", model, runs=forecast.pilot_runs).command
    )
