"""The same as `test_any_shape`, for the other formats: whatever a server sends is an answer or an error in words."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.replicate import wait
from models.remote.wire.test_any_shape import changed
from support.azure_server import AzureOpenAIServer
from support.cohere_server import CohereServer
from support.huggingface_server import HuggingFaceServer
from support.mistral_server import MistralServer
from support.openai_responses_server import ResponsesServer
from support.wire_asking import PREFILLED

SETTINGS = Settings("org/m", "host", refuses=frozenset({"stop", "seed"}))
BODY: dict[str, Any] = {
    "model": "magistral-reasoning",
    "reasoning": {"summary": "auto"},
    "messages": [{"role": "user", "content": "hé"}],
    "stream_options": {"include_usage": True},
}
SERVERS: dict[str, Any] = {
    "openai-responses": ResponsesServer("a"),
    "cohere": CohereServer("a"),
    "mistral": MistralServer("a"),
    "azure-openai": AzureOpenAIServer("a"),
    "azure-inference": AzureOpenAIServer("a"),
    "huggingface": HuggingFaceServer("a"),
}
REPLIES: dict[str, Any] = {name: server.whole(BODY, "") for name, server in SERVERS.items()}
REPLIES["replicate"] = {
    "id": "p0",
    "model": "org/m",
    "status": "succeeded",
    "output": ["a"],
    "error": None,
    "metrics": {"input_token_count": 3, "output_token_count": 2},
    "urls": {"get": "http://127.0.0.1:9/v1/predictions/p0"},
}


def streamed(name: str) -> list[tuple[str, Any]]:
    """(event, data) of a format's stream."""
    found = []
    for event in SERVERS[name].events(BODY, ""):
        text = event.decode().partition("data: ")[2].strip()
        found.append(("", "[DONE]" if text == "[DONE]" else json.loads(text)))
    return found


@pytest.mark.parametrize("name", REPLIES)
def test_any_reply(name: str) -> None:
    form, good = wire(name), REPLIES[name]
    assert form.read(Reply(good, 0.1, None), Generate("x"), SETTINGS).text == "a"
    for request in (Generate("x"), Generate(PREFILLED)):
        for data in changed(good):
            try:
                found = form.read(Reply(copy.deepcopy(data), 0.1, None), request, SETTINGS)
            except RequestError as error:
                assert len(str(error)) > 20
            else:
                assert isinstance(found, Response) and isinstance(found.as_dict(), dict)


@pytest.mark.parametrize("name", SERVERS)
def test_any_event(name: str) -> None:
    form, good = wire(name), streamed(name)
    assert form.gather is not None
    answers = 0
    for place, (event, data) in enumerate(good):
        for other in [data, *changed(data)]:
            gatherer = form.gather(SETTINGS)
            try:
                whole = False
                for kind, piece in [*good[:place], (event, other), *good[place + 1 :]]:
                    whole = gatherer.add(kind, copy.deepcopy(piece))
                    if whole:
                        break
                if whole:
                    form.read(Reply(gatherer.result(), 0.1, None), Generate("x"), SETTINGS)
                    answers += 1
            except RequestError as error:
                assert len(str(error)) > 20
    assert answers > len(good)


def test_any_prediction_that_is_waited_for() -> None:
    """Nothing is asked after at an address that is not below the base URL."""
    client = HttpClient("http://127.0.0.1:9/v1", timeout=0.05)
    good = {**REPLIES["replicate"], "status": "processing"}

    async def go() -> None:
        for data in changed(good):
            try:
                found = await wait(client, Reply(data, 0.0, None), SETTINGS)
            except RequestError as error:
                assert len(str(error)) > 20
            else:
                assert found.data["status"] not in ("starting", "processing")
        await client.close()

    asyncio.run(asyncio.wait_for(go(), 60))
