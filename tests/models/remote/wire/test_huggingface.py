"""Hugging Face's inference providers: names of models, the router's errors, and a strict server asked whole and in a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from evalwright.models.remote.wire.huggingface import WIRE

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire.format import Settings
from support.huggingface_server import HuggingFaceServer
from support.strict_asking import (
    HELLO,
    PREFILLED,
    TALK,
    ask,
    check_every_cut,
    failing,
    remote,
    through_the_engine,
)
from support.strict_server import KEY, strictly

PLAIN = Settings("org/m", "host")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HuggingFaceServer]:
    monkeypatch.setenv("HF_TOKEN", KEY)
    with strictly(HuggingFaceServer()) as found:
        yield found


@pytest.mark.parametrize(
    "name", ["org/m", "org/m:groq", "org/m:hf-inference", "org/m:fastest", "openai/gpt-oss-20b:groq"]
)
def test_names_keep_their_provider(name: str, server: HuggingFaceServer) -> None:
    official = open_model(f"huggingface/{name}")
    assert isinstance(official, ApiModel)
    assert (official.model, official.base_url) == (name, "https://router.huggingface.co/v1")
    assert ask(remote(f"huggingface/{server.url}#{name}")).text == server.answer
    assert server.log[0]["body"]["model"] == name


def test_each_provider_is_another_model() -> None:
    prints = {open_model(f"huggingface/org/m{suffix}").fingerprint for suffix in ("", ":groq", ":together")}
    assert len(prints) == 3


def test_the_body() -> None:
    request = Generate(PREFILLED, max_tokens=9, temperature=0.5, top_p=0.9, stop=("\n",), seed=3, draw=2)
    assert WIRE.payload(request, PLAIN) == {
        "model": "org/m",
        "messages": [turn.as_dict() for turn in PREFILLED],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["\n"],
        "seed": 5,
    }


@pytest.mark.parametrize("kind", ["", "length", "eos", "reasoning"])
def test_a_stream_cut_anywhere_is_the_whole_reply(kind: str) -> None:
    server = HuggingFaceServer("Zürich, “natürlich”.")
    body = {"model": "org/m", "stream_options": {"include_usage": True}}
    found = check_every_cut(WIRE, server.events(body, kind), PLAIN)
    assert found == WIRE.read(Reply(server.whole(body, kind), 0.5, None), HELLO, PLAIN)
    assert found.finish_reason == ("length" if kind == "length" else "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(stream: bool, server: HuggingFaceServer, tmp_path: Path) -> None:
    server.piece, server.script = 7, ["reasoning"]
    model = remote(f"huggingface/{server.url}#org/m:groq", stream=stream)
    found, counts = through_the_engine(model, tmp_path, Generate(TALK, max_tokens=20))
    assert (found.text, found.reasoning, found.finish_reason) == (server.answer, "Hm. “Where”?", "stop")
    assert (found.usage, found.model) == (Usage(30, 20), "org/m")
    assert (counts["asked"], counts["failed"]) == (1, 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("429", RateLimited, "wrong on purpose"),
        ("402", OutOfCredit, "monthly included credits"),
        ("loading", Overloaded, "currently loading"),
        ("broke", Overloaded, ""),
        ("401", AuthenticationFailed, ""),
        ("422", Rejected, "wrong on purpose"),
        ("html", BadReply, ""),
        ("broken-json", BadReply, ""),
        ("cut", ConnectionFailed, ""),
        ("empty", EmptyReply, ""),
    ],
)
def test_faults(
    kind: str, error: type[RequestError], words: str, stream: bool, server: HuggingFaceServer
) -> None:
    server.script = [kind]
    model = remote(f"huggingface/{server.url}#org/m", stream=stream)
    found = failing(model)
    assert type(found) is error
    assert words in str(found)
    assert found.retry_after == {"429": 7.0, "loading": 20.5}.get(kind)
    assert ask(model).text == server.answer


@pytest.mark.parametrize(("kind", "error"), [("error-event", Overloaded), ("validation-event", Rejected)])
def test_an_error_in_place_of_a_chunk(
    kind: str, error: type[RequestError], server: HuggingFaceServer
) -> None:
    server.script = [kind]
    found = failing(remote(f"huggingface/{server.url}#org/m", stream=True))
    assert type(found) is error
    assert "It broke." in str(found)


def test_a_model_or_provider_that_is_not_there(server: HuggingFaceServer) -> None:
    for name in ("m", "org/m:nowhere"):
        error = failing(remote(f"huggingface/{server.url}#{name}"))
        assert isinstance(error, Rejected)
        assert f"The requested model '{name}' does not exist" in str(error)


def test_the_token_is_not_shown(server: HuggingFaceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrongsecretvalue123")
    model = remote(f"huggingface/{server.url}#org/m")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "wrongsecret" not in f"{error} {model.describe()} {model.fingerprint}"
