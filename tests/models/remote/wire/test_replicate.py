"""Replicate: names and inputs of models, predictions that are waited for, and addresses that are not followed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire import replicate
from evalwright.models.remote.wire.format import Settings
from support.replicate_server import VERSION, ReplicateServer, schema
from support.strict_asking import HELLO, PREFILLED, TALK, ask, failing, remote, through_the_engine
from support.strict_server import KEY, check_schema, strictly

SYSTEM = (Message("system", "Be brief."), Message("user", "Where?"))
NAME = "meta/meta-llama-3-8b-instruct"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplicateServer]:
    monkeypatch.setenv("REPLICATE_API_TOKEN", KEY)
    monkeypatch.setattr(replicate, "FIRST_PAUSE", 0.01)
    with strictly(ReplicateServer()) as found:
        yield found


def settings(model: str = NAME, **options: Any) -> Settings:
    return Settings(model, "host", refuses=replicate.WIRE.lacks, **options)


# ---- names and inputs


@pytest.mark.parametrize(
    ("model", "path", "version"),
    [
        (NAME, f"/models/{NAME}/predictions", None),
        (f"owner/name.v1:{VERSION}", "/predictions", VERSION),
        (VERSION, "/predictions", VERSION),
    ],
)
def test_names(model: str, path: str, version: str | None) -> None:
    assert replicate.path(settings(model)) == path
    assert replicate.replicate_payload(HELLO, settings(model)).get("version") == version


@pytest.mark.parametrize(
    "model", ["llama", "a/b/c", "a/b:short", "../b", "a/../b", f":{VERSION}", f"a{VERSION}", "a/b?x=1"]
)
def test_names_that_are_none(model: str) -> None:
    with pytest.raises(Rejected, match="write owner/name"):
        replicate.path(settings(model))


@pytest.mark.parametrize(
    ("request_", "options", "inputs"),
    [
        (HELLO, {}, {"prompt": "hello", "max_tokens": 32, "temperature": 0.0}),
        (
            Generate(SYSTEM, max_tokens=9, temperature=0.5, top_p=0.9, stop=("\n",), seed=3, draw=2),
            {},
            {
                "prompt": "Where?",
                "system_prompt": "Be brief.",
                "max_tokens": 9,
                "temperature": 0.5,
                "top_p": 0.9,
                "seed": 5,
            },
        ),
        (
            HELLO,
            {"max_tokens": 64, "temperature": 1.0, "tokens_field": "max_new_tokens", "extra_body": {"input": {"top_k": 5}}},
            {"prompt": "hello", "max_new_tokens": 64, "temperature": 1.0, "top_k": 5},
        ),
    ],
)  # fmt: skip
def test_inputs(request_: Generate, options: dict[str, Any], inputs: dict[str, Any]) -> None:
    body = replicate.replicate_payload(request_, settings(**options))
    assert body == {"input": inputs}
    check_schema(schema(options.get("tokens_field", "max_tokens"), version=False), body)


@pytest.mark.parametrize("prompt", [TALK, PREFILLED, (), (Message("system", "x"),)])
def test_conversations_are_refused_with_the_way_out(prompt: Any) -> None:
    with pytest.raises(Rejected, match=r"no conversation.*write the prompt as text"):
        replicate.replicate_payload(Generate(prompt), settings())


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(ConfigurationError, match="cannot stream its answers"):
        open_model(f"replicate/{NAME}", {"stream": True})
    assert open_model(f"replicate/{NAME}").describe()["arguments"]["refuses"] == ["stop"]


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (NAME, "max_tokens"),
        ("meta/llama-2-7b-chat", "max_new_tokens"),
        ("openai/gpt-5", "max_completion_tokens"),
    ],
)
def test_the_limit_has_the_models_own_name(model: str, field: str, server: ReplicateServer) -> None:
    ask(remote(f"replicate/{server.url}#{model}"))
    inputs = server.log[0]["body"]["input"]
    assert inputs[field] == 32
    assert ("temperature" in inputs) is (model != "openai/gpt-5")


def test_effort(server: ReplicateServer) -> None:
    ask(remote(f"replicate/{server.url}#openai/gpt-5", thinking="minimal"))
    assert server.log[0]["body"]["input"]["reasoning_effort"] == "minimal"


# ---- waiting


@pytest.mark.parametrize(("kind", "asked"), [(None, 1), ("text", 1), ("slow", 4), ("slow-failing", 4)])
def test_through_the_engine(kind: str | None, asked: int, server: ReplicateServer, tmp_path: Path) -> None:
    server.script = [kind]
    model = remote(f"replicate/{server.url}#{NAME}")
    found, counts = through_the_engine(model, tmp_path, Generate(SYSTEM, max_tokens=30))
    assert (found.text, found.finish_reason, found.model) == (server.answer, "stop", "meta/llama")
    assert found.usage == Usage(30, 20)
    assert (counts["asked"], counts["failed"]) == (1, 0)
    assert len(server.log) == asked
    assert server.log[0]["headers"]["Prefer"] == "wait"
    assert {entry["path"] for entry in server.log[1:]} <= {"/v1/predictions/p0"}


def test_pauses_grow() -> None:
    pause, pauses = replicate.FIRST_PAUSE, []
    while pause < replicate.LONGEST_PAUSE:
        pauses.append(pause)
        pause = min(replicate.LONGEST_PAUSE, pause * replicate.GROWTH)
    assert sum(pauses) < 20 and len(pauses) < 10


def test_a_version(server: ReplicateServer) -> None:
    assert ask(remote(f"replicate/{server.url}#o/n:{VERSION}")).text == server.answer
    assert server.log[0]["path"] == "/v1/predictions"
    other = failing(remote(f"replicate/{server.url}#o/n:{'0' * 64}"))
    assert isinstance(other, Rejected)
    assert "The specified version does not exist" in str(other)


def test_stop_strings_and_the_limit(server: ReplicateServer) -> None:
    server.answer = "one END two"
    model = remote(f"replicate/{server.url}#{NAME}")
    found = ask(model, Generate("x", max_tokens=20, stop=("END",)))
    assert (found.text, found.finish_reason) == ("one ", "length")
    assert "stop_sequences" not in server.log[0]["body"]["input"]


def test_a_prediction_that_never_ends_is_cancelled(server: ReplicateServer) -> None:
    server.script = ["never"]
    error = failing(remote(f"replicate/{server.url}#{NAME}", timeout=0.3))
    assert isinstance(error, TimedOut)
    assert "did not end the prediction within 0.3 s" in str(error)
    assert server.cancelled == ["p0"]


def test_a_prediction_that_nobody_waits_for_is_cancelled(server: ReplicateServer) -> None:
    server.script = ["never"]

    async def go() -> None:
        model = remote(f"replicate/{server.url}#{NAME}")
        asking = asyncio.create_task(model.answer(HELLO))
        while len(server.log) < 2:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await model.close()

    asyncio.run(go())
    assert server.cancelled == ["p0"]


@pytest.mark.parametrize("kind", ["elsewhere", "scheme"])
def test_the_key_goes_to_no_other_address(kind: str, server: ReplicateServer) -> None:
    server.script = [kind]
    error = failing(remote(f"replicate/{server.url}#{NAME}"))
    assert isinstance(error, Rejected)
    assert "it was not followed, because the key would go with it" in str(error)
    assert len(server.log) == 1


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("429", RateLimited, "wrong on purpose"),
        ("402", OutOfCredit, ""),
        ("401", AuthenticationFailed, ""),
        ("500", Overloaded, "wrong on purpose"),
        ("html", BadReply, ""),
        ("broken-json", BadReply, ""),
        ("cut", ConnectionFailed, ""),
        ("none", EmptyReply, ""),
        ("object", BadReply, "output as text"),
        ("removed", BadReply, "output as text"),
        ("failed", Overloaded, "the prediction has failed: CUDA out of memory"),
        ("canceled", Overloaded, "the prediction has been canceled"),
        ("gone", Rejected, "wrong on purpose"),
        ("no-urls", BadReply, "urls.get"),
        ("odd", BadReply, "a prediction with its status"),
    ],
)
def test_faults(kind: str, error: type[RequestError], words: str, server: ReplicateServer) -> None:
    server.script = [kind]
    model = remote(f"replicate/{server.url}#{NAME}")
    found = failing(model)
    assert type(found) is error
    assert words in str(found)
    if kind == "429":
        assert found.retry_after == 7.0
    assert ask(model).text == server.answer


def test_inputs_that_a_model_lacks_are_refused_in_its_words(server: ReplicateServer) -> None:
    error = failing(remote(f"replicate/{server.url}#{NAME}", extra_body={"input": {"stop": "x"}}))
    assert isinstance(error, Rejected)
    assert "'stop' was unexpected" in str(error)


def test_the_token_is_not_shown(server: ReplicateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICATE_API_TOKEN", "r8_wrongsecretvalue123")
    model = remote(f"replicate/{server.url}#{NAME}")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "wrongsecret" not in f"{error} {model.describe()} {model.fingerprint}"
