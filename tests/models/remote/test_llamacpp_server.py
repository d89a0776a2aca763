"""Tools with llama.cpp's own server and a tiny model, where `llama-server` is installed.

`$LLAMA_SERVER` is its path if it is not on the PATH.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from time import sleep
from typing import Any

import pytest

from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Call
from support.openai_asking import ask
from support.tiny_gguf import write_tiny_gguf

SERVER = shutil.which(os.environ.get("LLAMA_SERVER", "llama-server"))
pytestmark = pytest.mark.skipif(SERVER is None, reason="needs llama.cpp's llama-server")
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TOOLS = (
    ToolDefinition.of("now"),
    ToolDefinition.of("weather", "Weather of a city.", CITY),
)
REQUEST = Generate("Weather in 서울, and the time?", max_tokens=60, tools=TOOLS)
POLL_SECONDS = 0.1


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a server that has loaded its model."""
    folder = tmp_path_factory.mktemp("llama")
    model = write_tiny_gguf(folder / "tiny.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert SERVER is not None
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [SERVER, "-m", str(model), "--port", str(port), "-c", "4096", "-np", "1"],
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    while not is_ready(address):
        assert process.poll() is None, (folder / "log").read_text(errors="replace")
        sleep(POLL_SECONDS)
    yield f"{address}/v1"
    process.terminate()
    process.wait()


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health") as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def at(url: str, **arguments: Any) -> ApiModel:
    model = open_model(f"llamacpp/{url}#tiny", arguments)
    assert isinstance(model, ApiModel)
    return model


@pytest.mark.parametrize("stream", [False, True])
def test_calls_are_read_and_go_back(url: str, stream: bool) -> None:
    model = at(url, stream=stream)
    reply = ask(model, REQUEST)
    assert [(call.name, call.parsed()) for call in reply.tool_calls] == [
        ("weather", {"city": "서울"}),
        ("now", {}),
    ]
    assert all(call.id for call in reply.tool_calls)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    results = [result_turn(call, "12") for call in reply.tool_calls]
    turns = (Message("user", str(REQUEST.prompt)), reply_turn(reply), *results)
    again = ask(model, replace(REQUEST, prompt=turns))
    assert len(again.tool_calls) == 2
    assert again.usage.input_tokens > reply.usage.input_tokens


def test_choices(url: str) -> None:
    model = at(url)
    assert len(ask(model, replace(REQUEST, tool_choice="required")).tool_calls) == 2
    none = ask(model, replace(REQUEST, tool_choice="none"))
    assert none.tool_calls == () and none.text.startswith("<tool_call>")
    assert ask(model, replace(REQUEST, tools=())).text.startswith("<tool_call>")
    cut = ask(model, replace(REQUEST, max_tokens=2))
    assert cut.finish_reason == "length"


def test_a_tools_name_would_be_ignored_so_it_is_refused(url: str) -> None:
    model = at(url)
    named = replace(REQUEST, tool_choice="now")
    why = model.refuses(named)
    assert why is not None and "cannot be told which tool to call" in why
    assert [call.name for call in ask(model, named).tool_calls] == ["weather", "now"]


def test_malformed_arguments_and_names_go_back(url: str) -> None:
    """The server parses arguments for the template: as the model wrote them they are refused."""
    calls = (ToolCall("weather", '{"city": '), ToolCall("look up!", "[1]"))
    turns = (
        Message("user", "Time?"),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "The arguments are not valid JSON.", is_error=True),
        Message("tool", "There is no such tool.", is_error=True),
    )
    model = at(url)
    request = replace(REQUEST, prompt=turns)
    assert ask(model, request).tool_calls
    body = model.body(request)
    body["messages"][1]["tool_calls"][0]["function"]["arguments"] = '{"city": '

    async def send() -> Response:
        try:
            await model.client.send(Call("/chat/completions", body))
        finally:
            await model.close()
        raise AssertionError("it was taken")

    with pytest.raises(RequestError, match="arguments"):
        asyncio.run(send())
