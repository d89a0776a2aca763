"""Each wire format from the engine's door to a strict server and back: keys, bodies, streams,
faults, and nothing sent twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.engine.store import Store
from evalwright.models.model_interface import RemoteModel
from support.openai_asking import ask, failing, remote
from support.openai_faults import Faults, rules
from support.openai_server import OpenAIServer, serving
from support.tables import table

KEY = "test-key-0123456789abcdef"
PLACES: dict[str, tuple[str, str, str]] = {
    name: (path, model, key)
    for name, path, model, key in table(str(Path(__file__).parent), "places")
}
"""By provider: what the base URL has below the host, a model, and the variable of its key."""
WAYS: list[tuple[str, str, dict[str, Any]]] = [
    *((provider, model, {}) for provider, (_, model, _) in PLACES.items()),
    *(
        (provider, model, {"stream": True})
        for provider, (_, model, _) in PLACES.items()
        if provider != "replicate"
    ),
    ("vertex", "claude-sonnet-4-5@20250929", {}),
    ("vertex", "claude-sonnet-4-5@20250929", {"stream": True}),
    ("openai", "m", {"interface": "responses"}),
    ("openai", "m", {"interface": "responses", "stream": True}),
    ("openai", "m", {"interface": "completions", "stream": True}),
]
IDS = [
    f"{provider}-{model}-{'-'.join(map(str, given.values()))}"
    for provider, model, given in WAYS
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for _, _, variable in PLACES.values():
        monkeypatch.setenv(variable, KEY)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving(lambda prompt: f"Said “{prompt}”.", key=KEY) as found:
        yield found


def model_at(
    server: OpenAIServer, provider: str, model: str, **given: Any
) -> RemoteModel:
    return remote(f"{provider}/{server.root}{PLACES[provider][0]}#{model}", **given)


@pytest.mark.parametrize(("provider", "model", "given"), WAYS, ids=IDS)
def test_an_answer(
    server: OpenAIServer, provider: str, model: str, given: dict[str, Any]
) -> None:
    """The strict server takes what is sent, and its answer comes back."""
    made = model_at(server, provider, model, **given)
    talk = (
        Message("user", "One?"),
        Message("assistant", "Two."),
        Message("user", "Where?"),
    )
    plain = provider == "replicate" or given.get("interface") == "completions"
    prompt: Any = "Where?" if plain else talk
    for request in (
        Generate(prompt, max_tokens=32),
        Generate("Where?", max_tokens=32, temperature=0.5, stop=("END",)),
    ):
        found = ask(made, request)
        assert (found.text, found.reasoning, found.finish_reason) == (
            "Said “Where?”.",
            "",
            "stop",
        )
        assert (
            found.usage.input_tokens > 0
            and found.usage.output_tokens > 0
            and found.latency > 0
        )
    shown = json.dumps(made.describe()) + repr(made) + made.fingerprint
    assert KEY not in shown and made.describe()["key"] == f"${PLACES[provider][2]}"


@pytest.mark.parametrize(("provider", "model", "given"), WAYS, ids=IDS)
def test_through_the_engine(
    tmp_path: Path, provider: str, model: str, given: dict[str, Any]
) -> None:
    """Sent again where that helps, stored whole, and never sent a second time."""

    async def run(made: RemoteModel, store: Store) -> list[Response]:
        async with Engine(store) as engine:
            door = engine.door({"target": made})
            requests = [Generate(f"question {n}", max_tokens=20) for n in range(3)]
            return list(
                await asyncio.gather(*(door("target", request) for request in requests))
            )

    faults = Faults(script=rules('[{"match": "", "fault": "503", "times": 1}]'))
    with (
        serving(str, faults=faults, key=KEY) as server,
        open_store(tmp_path / "home") as store,
    ):
        answers = asyncio.run(run(model_at(server, provider, model, **given), store))
        received = sum(server.received.values())
        again = asyncio.run(run(model_at(server, provider, model, **given), store))
        assert (received, sum(server.received.values())) == (6, 6)
    assert [answer.text for answer in answers] == [f"question {n}" for n in range(3)]
    assert again == answers


WHOLE = {
    "401": AuthenticationFailed,
    "429-retry-after": RateLimited,
    "500": Overloaded,
    "reset": ConnectionFailed,
    "cut": ConnectionFailed,
    "truncated": BadReply,
    "content-type": BadReply,
    "empty": EmptyReply,
}
STREAM = {
    "cut": ConnectionFailed,
    "truncated": ConnectionFailed,
    "invalid-json": BadReply,
    "500": Overloaded,
    "empty": EmptyReply,
}


@pytest.mark.parametrize(
    "provider", ["anthropic", "bedrock", "cohere", "gemini", "mistral", "replicate"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_faults(provider: str, stream: bool) -> None:
    if provider == "replicate" and stream:
        pytest.skip("its answers cannot be streamed")
    for kind, error in (STREAM if stream else WHOLE).items():
        with serving(
            str,
            faults=Faults(script=lambda body, before, kind=kind: kind),  # type: ignore[misc]
            key=KEY,
        ) as server:
            made = model_at(
                server,
                provider,
                PLACES[provider][1],
                **({"stream": True} if stream else {}),
            )
            found = failing(made)
        assert type(found) is error and KEY not in str(found), (kind, found)
        assert found.retry_after == (1.0 if kind == "429-retry-after" else None)


@pytest.mark.parametrize("provider", PLACES)
def test_a_wrong_key(
    server: OpenAIServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLACES[provider][2], "another-key-0123456789")
    found = failing(model_at(server, provider, PLACES[provider][1]))
    assert type(found) is AuthenticationFailed and f"${PLACES[provider][2]}" in str(
        found
    )
    assert "another-key" not in str(found)
