"""Embeddings of OpenAI-compatible servers, against a strict one on loopback, alone and through the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from evalwright import evaluate, open_model
from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    Rejected,
    RequestError,
    UsageError,
)
from evalwright.core.requests import Embed, Generate, Request
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.store import Store
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.openai import OpenAIModel
from evalwright.models.scripted import ScriptedModel
from evalwright.scorers.similarity import cosines
from evalwright.tasks.decorator import task_from_definition
from support.embeddings_server import EmbeddingsServer, vector_of
from support.strict_server import KEY, strictly

NAME = "openai/text-embedding-3-small"
TEXTS = ("a cat", "Ein Hund läuft.", "猫が好きです", "قطة", "x" * 10_000, "line\nbreak \u2028 \U0001f600")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with strictly(EmbeddingsServer()) as found:
        yield found


def opened(server: EmbeddingsServer, name: str = NAME, **arguments: Any) -> ApiModel:
    return cast(ApiModel, open_model(name, {"base_url": server.url, "interface": "embeddings", **arguments}))


def ask(model: ApiModel, request: Request) -> Response:
    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


@pytest.mark.parametrize("text", TEXTS)
def test_the_vector_of_a_text(server: EmbeddingsServer, text: str) -> None:
    model = opened(server)
    assert model.abilities == {"embed"}
    found = ask(model, Embed(text))
    assert found.values == tuple(vector_of(text))
    assert (found.model, found.usage.input_tokens) == ("text-embedding-3-small-v1", len(text.split()))
    assert found.usage.output_tokens == 0
    assert found.latency > 0
    assert server.log[-1]["body"] == {"model": "text-embedding-3-small", "input": text}


def test_extra_fields_are_sent_and_are_another_model(server: EmbeddingsServer) -> None:
    model = opened(server, extra_body={"dimensions": 3})
    assert len(ask(model, Embed("a cat")).values) == 3
    assert model.fingerprint != opened(server).fingerprint
    assert opened(server).fingerprint != opened(server, interface="chat").fingerprint


@pytest.mark.parametrize("kind", ["none", "two", "text", "nan", "huge", "base64"])
def test_what_is_no_vector(server: EmbeddingsServer, kind: str) -> None:
    server.script = [kind]
    with pytest.raises(BadReply) as caught:
        ask(opened(server), Embed("a cat"))
    assert len(str(caught.value)) < 1500


def test_tokens_that_are_not_told_are_none(server: EmbeddingsServer) -> None:
    server.script = ["no-usage"]
    assert ask(opened(server), Embed("a cat")).usage.input_tokens == 0


def test_an_error_in_a_good_status(server: EmbeddingsServer) -> None:
    server.script = ["fault"]
    with pytest.raises(RequestError, match="It broke"):
        ask(opened(server), Embed("a cat"))


def test_refusals_say_what_is_wrong(server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Rejected, match="input"):
        ask(opened(server), Embed(""))
    with pytest.raises(Rejected, match="it can do: embed"):
        ask(opened(server), Generate("hello"))
    with pytest.raises(Rejected, match="interface=embeddings"):
        ask(opened(server, interface="chat"), Embed("a cat"))
    monkeypatch.setenv("OPENAI_API_KEY", "another-key-0123456789")
    with pytest.raises(AuthenticationFailed):
        ask(opened(server), Embed("a cat"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"temperature": 0.5},
        {"max_tokens": 5},
        {"seed": 1},
        {"stream": True},
        {"max_tokens_field": "max_tokens"},
        {"echo": True},
    ],
)
def test_arguments_that_an_embedder_has_no_use_for(
    server: EmbeddingsServer, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError):
        opened(server, **arguments)


def test_thinking_is_for_models_that_write(server: EmbeddingsServer) -> None:
    with pytest.raises(UsageError, match="thinking"):
        opened(server, "openai/gpt-5", thinking="low")


def test_a_pasted_address_says_the_interface(server: EmbeddingsServer) -> None:
    model = open_model(f"openai/{server.url}/embeddings#m")
    assert isinstance(model, OpenAIModel)
    assert (model.interface, model.base_url) == ("embeddings", server.url)
    assert ask(model, Embed("a cat")).values == tuple(vector_of("a cat"))


@pytest.mark.parametrize("provider", ["together", "fireworks", "ollama", "mistral", "deepinfra"])
def test_other_providers_of_the_same_interface(
    server: EmbeddingsServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    model = opened(server, f"{provider}/m", api_key_env="SOME_KEY")
    assert model.abilities == {"embed"}
    assert ask(model, Embed("a cat")).values == tuple(vector_of("a cat"))


def test_providers_without_it_say_what_they_have() -> None:
    with pytest.raises(UsageError, match="interface"):
        open_model("anthropic/claude-sonnet-4-5", {"interface": "embeddings"})


def through_engine(home: Path, model: ApiModel, requests: list[Embed]) -> list[Response]:
    async def go() -> list[Response]:
        with Store.open(home) as store:
            async with Engine(store) as engine:
                door = engine.door({"embedder": model})
                return await asyncio.gather(*(door("embedder", request) for request in requests))

    return asyncio.run(go())


def test_through_the_engine_each_text_is_asked_once_and_stored(
    server: EmbeddingsServer, tmp_path: Path
) -> None:
    server.script = ["503", "cut"]
    requests = [Embed(text) for text in TEXTS] * 3
    first = through_engine(tmp_path, opened(server), requests)
    assert [found.values for found in first] == [tuple(vector_of(text)) for text in TEXTS] * 3
    assert len(server.log) == len(TEXTS) + 2
    again = through_engine(tmp_path, opened(server), requests)
    assert [found.values for found in again] == [found.values for found in first]
    assert len(server.log) == len(TEXTS) + 2


def test_a_run_scored_by_it(
    server: EmbeddingsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = task_from_definition(
        {
            "task": "t",
            "dataset": {"rows": [{"id": "1", "q": "What happened?", "a": ["rain fell", "it poured"]}]},
            "sample": {"id": "{{ id }}", "input": "{{ q }}", "target": "{{ a }}"},
            "prompt": {"user": "{{ input }}"},
            "answer": {"mode": "generate", "max_tokens": 20},
            "scorers": [{"use": "similarity", "name": "similarity", "role": "embedder"}],
            "metrics": ["mean"],
        }
    )
    (run,) = evaluate(task, ScriptedModel("it rained"), roles={"embedder": opened(server)}, name="r")
    (record,) = run.samples()
    wanted = max(cosines([vector_of(text) for text in ("it rained", "rain fell", "it poured")]))
    assert record.scores["similarity"].parts["cosine"] == pytest.approx(wanted)
    assert sorted(asked["body"]["input"] for asked in server.log) == ["it poured", "it rained", "rain fell"]
