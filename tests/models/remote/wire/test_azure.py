"""Azure's two chat interfaces: addresses with a version, the key's header, filtered prompts, each asked whole and in a stream."""

from __future__ import annotations

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
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import azure_inference, azure_openai
from evalwright.models.remote.wire.format import Settings, Wire
from support.azure_server import AzureInferenceServer, AzureOpenAIServer, AzureServer
from support.strict_asking import HELLO, TALK, ask, check_every_cut, failing, remote, through_the_engine
from support.strict_server import KEY, strictly

SERVERS = {"azure-inference": AzureInferenceServer, "azure-openai": AzureOpenAIServer}
WIRES: dict[str, Wire] = {"azure-inference": azure_inference.WIRE, "azure-openai": azure_openai.WIRE}
PATHS = {
    "azure-inference": "/models/chat/completions",
    "azure-openai": "/openai/deployments/my-gpt/chat/completions",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INFERENCE_ENDPOINT", "INFERENCE_API_VERSION", "OPENAI_ENDPOINT", "OPENAI_API_VERSION"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    monkeypatch.setenv("AZURE_INFERENCE_CREDENTIAL", KEY)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)


@pytest.fixture(params=sorted(SERVERS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(provider: str) -> Iterator[AzureServer]:
    with strictly(SERVERS[provider]()) as found:
        yield found


# ---- addresses and bodies


def test_paths() -> None:
    other = Settings("my/dep ü", "host", variables={"api_version": "2025-01-01 preview&x=1"})
    assert azure_inference.path(Settings("m", "host")) == "/chat/completions?api-version=2024-05-01-preview"
    assert azure_openai.path(Settings("m", "host")) == (
        "/openai/deployments/m/chat/completions?api-version=2024-10-21"
    )
    assert azure_openai.path(other) == (
        "/openai/deployments/my%2Fdep%20%C3%BC/chat/completions?api-version=2025-01-01%20preview%26x%3D1"
    )


def test_bodies(provider: str) -> None:
    request = Generate(TALK, max_tokens=9, temperature=0.5, top_p=0.9, stop=("\n",), seed=3, draw=2)
    body = WIRES[provider].payload(request, Settings("m", "host", extra_body={"user": "u"}))
    expected = {
        "messages": [{"role": turn.role, "content": turn.content} for turn in TALK],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["\n"],
        "seed": 5,
        "user": "u",
    }
    assert body == ({"model": "m", **expected} if provider == "azure-inference" else expected)


@pytest.mark.parametrize(
    ("name", "base_url", "version"),
    [
        ("azure-inference/https://r.services.ai.azure.com/models#Phi-4", "https://r.services.ai.azure.com/models", None),
        (
            "azure-inference/https://r.services.ai.azure.com/models/chat/completions?api-version=2025-04-01#Phi-4",
            "https://r.services.ai.azure.com/models",
            "2025-04-01",
        ),
        ("azure-openai/https://r.openai.azure.com/#gpt", "https://r.openai.azure.com", None),
        (
            "azure-openai/https://r.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2025-01-01-preview#gpt",
            "https://r.openai.azure.com",
            "2025-01-01-preview",
        ),
    ],
)  # fmt: skip
def test_an_address_as_the_portal_shows_it(name: str, base_url: str, version: str | None) -> None:
    described = open_model(name).describe()
    assert described["base_url"] == base_url
    assert described["arguments"].get("variables") == ({"api_version": version} if version else None)


def test_the_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="AZURE_OPENAI_ENDPOINT"):
        open_model("azure-openai/gpt")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com/")
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2025-01-01-preview")
    described = open_model("azure-openai/gpt").describe()
    assert described["base_url"] == "https://r.openai.azure.com"
    assert described["arguments"]["variables"] == {"api_version": "2025-01-01-preview"}
    assert described["key"] == "$AZURE_OPENAI_API_KEY"
    given = open_model("azure-openai/gpt", {"variables": {"api_version": "2024-10-21"}})
    assert given.describe()["arguments"]["variables"] == {"api_version": "2024-10-21"}
    assert given.fingerprint != open_model("azure-openai/gpt").fingerprint


def test_the_end_of_a_whole_url_is_no_part_of_the_base() -> None:
    for provider in ("mistral", "groq", "huggingface"):
        described = open_model(f"{provider}/http://localhost:1/v1/chat/completions#org/m").describe()
        assert described["base_url"] == "http://localhost:1/v1"


def test_other_queries_are_refused() -> None:
    for query in ("key=1", "api-version=1&key=2", "api-version="):
        with pytest.raises(ConfigurationError, match="without '\\?'"):
            open_model(f"azure-openai/https://r.openai.azure.com?{query}#gpt")
    with pytest.raises(ConfigurationError, match="without '\\?'"):
        open_model("mistral/https://h/v1?api-version=1#m")


# ---- asking


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(stream: bool, provider: str, server: AzureServer, tmp_path: Path) -> None:
    server.piece = 7
    model = remote(f"{provider}/{server.url}#my-gpt", stream=stream)
    found, counts = through_the_engine(model, tmp_path, Generate(TALK, max_tokens=20, seed=1))
    assert (found.text, found.finish_reason, found.model) == (server.answer, "stop", "gpt-4o-2024-11-20")
    assert found.usage == Usage(30, 20, 12, 16)
    assert (counts["asked"], counts["failed"]) == (1, 0)
    assert server.log[0]["path"] == PATHS[provider]
    assert list(server.log[0]["query"]) == ["api-version"]


def test_another_version(provider: str, server: AzureServer) -> None:
    version = server.versions[1]
    assert ask(remote(f"{provider}/{server.url}#my-gpt", variables={"api_version": version})).text
    assert server.log[0]["query"] == {"api-version": version}
    error = failing(remote(f"{provider}/{server.url}#my-gpt", variables={"api_version": "1999-01-01"}))
    assert isinstance(error, Rejected)


@pytest.mark.parametrize("kind", ["", "length", "filtered"])
def test_a_stream_cut_anywhere_is_the_whole_reply(kind: str, provider: str) -> None:
    server, settings = AzureOpenAIServer("Zürich, “natürlich”."), Settings("m", "host")
    body = {"model": "m", "stream_options": {"include_usage": True}}
    found = check_every_cut(WIRES[provider], server.events(body, kind), settings)
    assert found == WIRES[provider].read(Reply(server.whole(body, kind), 0.5, None), HELLO, settings)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_the_filter_stops_is_an_answer(
    stream: bool, provider: str, server: AzureServer, tmp_path: Path
) -> None:
    server.script = ["filter"]
    model = remote(f"{provider}/{server.url}#my-gpt", stream=stream)
    found, counts = through_the_engine(model, tmp_path)
    assert (found.text, found.finish_reason) == ("", "content_filter")
    assert found.latency > 0
    assert (counts["asked"], counts["failed"]) == (1, 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("kind", "finish"), [("filtered", "content_filter"), ("length", "length")])
def test_finish_reasons(kind: str, finish: str, stream: bool, provider: str, server: AzureServer) -> None:
    server.script = [kind]
    found = ask(remote(f"{provider}/{server.url}#my-gpt", stream=stream))
    assert (found.text, found.finish_reason) == (server.answer, finish)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("429", RateLimited),
        ("500", Overloaded),
        ("400", Rejected),
        ("html", BadReply),
        ("broken-json", BadReply),
        ("cut", ConnectionFailed),
        ("empty", EmptyReply),
    ],
)
def test_faults(
    kind: str, error: type[RequestError], stream: bool, provider: str, server: AzureServer
) -> None:
    server.script = [kind]
    model = remote(f"{provider}/{server.url}#my-gpt", stream=stream)
    found = failing(model)
    assert type(found) is error
    if kind == "429":
        assert found.retry_after == 7.0
        assert found.rate_limits.remaining_requests == 99
    assert ask(model).text == server.answer


def test_an_error_in_a_stream(provider: str, server: AzureServer) -> None:
    server.script = ["error-event"]
    error = failing(remote(f"{provider}/{server.url}#my-gpt", stream=True))
    assert isinstance(error, Overloaded)
    assert "It broke." in str(error)


def test_keys(provider: str, server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_INFERENCE_CREDENTIAL", "az-wrong-secret-value")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-wrong-secret-value")
    model = remote(f"{provider}/{server.url}#my-gpt")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "az-wrong-secret" not in f"{error} {model.describe()} {model.fingerprint}"


# ---- what each has alone


def test_fields_that_only_the_model_knows_pass_through() -> None:
    with strictly(AzureInferenceServer()) as server:
        assert ask(remote(f"azure-inference/{server.url}#m", extra_body={"top_k": 3})).text
        assert server.log[0]["body"]["top_k"] == 3
        dropping = remote(
            f"azure-inference/{server.url}#m", extra_body={"top_k": 3}, headers={"extra-parameters": "error"}
        )
        assert isinstance(failing(dropping), Rejected)


def test_a_deployment_that_is_not_there() -> None:
    with strictly(AzureOpenAIServer()) as server:
        error = failing(remote(f"azure-openai/{server.url}#other"))
        assert isinstance(error, Rejected)
        assert "deployment for this resource does not exist" in str(error)


@pytest.mark.parametrize("provider", ["azure-openai", "azure-inference"])
def test_reasoning_models_by_name(provider: str) -> None:
    with strictly(SERVERS[provider]()) as server:
        request = Generate("hello", max_tokens=50, temperature=0.0)
        ask(remote(f"{provider}/{server.url}#gpt-5-mini", thinking="low"), request)
        sent: dict[str, Any] = server.log[0]["body"]
    del sent["messages"]
    sent.pop("model", None)
    assert sent == {"max_completion_tokens": 50, "reasoning_effort": "low"}
