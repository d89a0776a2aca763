"""The scripted model: every kind of script and request, failures and latency, and those known by
name.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    UnknownName,
)
from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Reward,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel, RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.scripted import UNLIKELY, ScriptedLocalModel, ScriptedModel

HELLO = Generate("hello")
EVERY_KIND: list[Request] = [
    HELLO, Generate((Message("system", "s"), Message("user", "hello")), draw=1), LogLikelihood("a", " b"),
    RollingLogLikelihood("some text"), Embed("t"), Classify("p", "h"), Reward("p", "r"),
]  # fmt: skip


def ask(model: Any, *requests: Request) -> Any:
    """The answers, errors as values; one request gives one answer."""

    async def one(request: Request) -> Response | RequestError:
        try:
            found: Response = await model.answer(request)
            return found
        except RequestError as error:
            return error

    async def all_of_them() -> list[Any]:
        return [await one(request) for request in requests]

    answers = asyncio.run(all_of_them())
    return answers[0] if len(requests) == 1 else answers


def test_a_text_a_function_a_mapping_and_a_sequence() -> None:
    assert ask(ScriptedModel("Paris"), HELLO).text == "Paris"
    assert (
        ask(
            ScriptedModel(lambda request: request.payload()["generate"].upper()), HELLO
        ).text
        == "HELLO"
    )
    by_prompt = ScriptedModel(
        {"hello": "Paris", (Message("user", "x"),): "whole", "y": "last"}
    )
    assert ask(by_prompt, HELLO).text == "Paris"
    assert ask(by_prompt, Generate((Message("user", "x"),))).text == "whole"
    assert (
        ask(by_prompt, Generate((Message("system", "s"), Message("user", "y")))).text
        == "last"
    )
    assert isinstance(ask(by_prompt, Generate("other")), Rejected)
    in_turn = ask(
        ScriptedModel(["a", RateLimited("wait", retry_after=2), "c"]),
        HELLO,
        HELLO,
        HELLO,
        HELLO,
    )
    assert [type(found) for found in in_turn] == [
        Response,
        RateLimited,
        Response,
        Rejected,
    ]
    assert (in_turn[0].text, in_turn[1].retry_after, in_turn[2].text) == ("a", 2, "c")


def test_what_an_answer_means_for_each_kind() -> None:
    pair = LogLikelihood("The capital is", " Paris")
    number = ScriptedModel(lambda request: -1.5)
    assert ask(number, pair).log_likelihood == -1.5
    assert ask(number, RollingLogLikelihood("x")).log_likelihood == -1.5
    assert ask(number, Reward("p", "r")).values == (-1.5,)
    assert isinstance(ask(number, HELLO), ModelError)
    text = ScriptedModel("Paris")
    assert (ask(text, pair).log_likelihood, ask(text, pair).is_greedy) == (0.0, True)
    other = ask(text, LogLikelihood("The capital is", " Rome"))
    assert (other.log_likelihood, other.is_greedy) == (UNLIKELY, False)
    numbers = ScriptedModel(lambda request: [0.25, 0.75])
    assert ask(numbers, Classify("p", "h")).values == (0.25, 0.75)
    assert isinstance(ask(numbers, pair), ModelError)
    whole = Response("as it is", reasoning="because")
    assert ask(ScriptedModel(lambda request: whole), pair) is whole
    by_pair = ScriptedModel(
        {("The capital is", " Paris"): -1.0, "The capital is": -9.0}
    )
    assert ask(by_pair, pair).log_likelihood == -1.0
    assert ask(by_pair, LogLikelihood("The capital is", " Rome")).log_likelihood == -9.0


def test_abilities_failures_latency_coroutines_and_what_is_kept() -> None:
    async def script(request: Request) -> str:
        await asyncio.sleep(0)
        return "later"

    model = ScriptedModel(
        script,
        abilities=["generate"],
        failures=lambda request, before: Overloaded("down") if before < 2 else None,
        latency=lambda request: 0.02,
        record=True,
    )
    assert model.abilities == {"generate"}
    started = time.perf_counter()
    found = ask(model, HELLO, HELLO, HELLO, Generate("other"))
    assert [type(each) for each in found] == [
        Overloaded,
        Overloaded,
        Response,
        Overloaded,
    ]
    assert (found[2].text, found[2].latency) == ("later", 0.02)
    assert time.perf_counter() - started >= 0.07
    assert (model.asked, model.requests) == (
        4,
        [HELLO, HELLO, HELLO, Generate("other")],
    )
    assert isinstance(
        ask(ScriptedModel("x", abilities=["chat"]), LogLikelihood("a", " b")), Rejected
    )
    assert ScriptedModel("x").requests is None


def test_the_local_flavour_answers_in_batches() -> None:
    model = ScriptedLocalModel({"hello": "Paris", "bad": Rejected("no")}, record=True)
    assert isinstance(model, LocalModel)
    assert not model.heavy
    model.load()
    found = dict(model.answer_batch([HELLO, Generate("bad"), Generate("unknown")]))
    assert isinstance(found[0], Response)
    assert found[0].text == "Paris"
    assert [getattr(found[index], "kind", None) for index in (1, 2)] == [
        "request rejected",
        "request rejected",
    ]
    assert isinstance(found[1], Failure)
    model.unload()
    assert (model.loads, model.loaded, model.asked) == (1, False, 3)


def test_fingerprints() -> None:
    def script(request: Request) -> str:
        return "x"

    assert (
        ScriptedModel("x").fingerprint
        == ScriptedModel("x").fingerprint
        != ScriptedModel("y").fingerprint
    )
    assert (
        ScriptedModel({"a": "b"}).fingerprint == ScriptedModel({"a": "b"}).fingerprint
    )
    assert (
        ScriptedModel({"a": "b"}).fingerprint != ScriptedModel({"a": "c"}).fingerprint
    )
    assert (
        ScriptedModel("x", name="one").fingerprint
        != ScriptedModel("x", name="two").fingerprint
    )
    # Nobody can know what a function answers, so its answers are shared only where its behaviour
    # has a name.
    assert ScriptedModel(script).fingerprint != ScriptedModel(script).fingerprint
    assert (
        ScriptedModel(script, version="1").fingerprint
        == ScriptedModel(script, version="1").fingerprint
    )
    with pytest.raises(ConfigurationError, match="needs a text, a function"):
        ScriptedModel(7)  # type: ignore[arg-type]


def test_by_name() -> None:
    assert ask(open_model("scripted/echo"), HELLO).text == "hello"
    assert ask(open_model("scripted/constant", {"text": "B"}), HELLO).text == "B"
    assert ask(open_model("scripted/constant", {"text": 42}), HELLO).text == "42"
    assert (
        ask(open_model("scripted/constant"), LogLikelihood("a", " b")).log_likelihood
        == -1.0
    )
    assert isinstance(open_model("scripted/hash"), RemoteModel)
    assert isinstance(open_model("scripted/hash", {"local": True}), LocalModel)
    assert "not a language model" in open_model("scripted/hash").describe()["note"]
    with pytest.raises(UnknownName, match="Did you mean 'echo'"):
        open_model("scripted/ecko")
    with pytest.raises(UnknownName, match="argument 'txt' of 'scripted' models"):
        open_model("scripted/echo", {"txt": "x"})
    constants = [
        open_model("scripted/constant", {"text": text}).fingerprint
        for text in ("a", "b", "a")
    ]
    assert constants[0] == constants[2] != constants[1]


@pytest.mark.parametrize(
    "request_", EVERY_KIND, ids=lambda request: type(request).__name__
)
def test_hash_answers_every_kind_and_always_alike(request_: Request) -> None:
    first, again = (ask(open_model("scripted/hash"), request_) for _ in range(2))
    assert isinstance(first, Response)
    assert first == again
    assert ask(open_model("scripted/hash", {"seed": 1}), request_) != first


@given(st.text(), st.text(), st.text())
def test_hash_depends_on_all_of_the_request(context: str, one: str, other: str) -> None:
    model = open_model("scripted/hash")
    a, b = ask(model, LogLikelihood(context, one), LogLikelihood(context, other))
    assert (a.log_likelihood == b.log_likelihood) == (one == other)
    assert -20.1 < a.log_likelihood < 0


def test_hash_guesses_fairly() -> None:
    model = open_model("scripted/hash")
    wins = [0, 0, 0, 0]
    for question in range(2000):
        found = ask(
            model,
            *(LogLikelihood(f"question {question}", f" {letter}") for letter in "ABCD"),
        )
        values = [answer.log_likelihood for answer in found]
        wins[values.index(max(values))] += 1
    assert all(420 < count < 580 for count in wins)
