"""`litellm/...`: the real library against a real server, its errors in our tree, and nothing of
what it would do on its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    EmptyReply,
    MissingExtra,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
    UnknownName,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.core.tools import ToolDefinition
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.registry import open_model
from evalwright.models.remote import litellm
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.litellm import LiteLLMModel
from support.openai_answers import hash_answer
from support.openai_asking import PREFILLED, TALK, ask, failing, remote
from support.openai_faults import Faults
from support.openai_limits import Limits
from support.openai_server import OpenAIServer, serving
from support.tables import rows
from support.tool_server import ToolServer

needs_litellm = pytest.mark.skipif(
    find_spec("litellm") is None,
    reason="needs the library litellm (the extra of that name)",
)
KEY = "sk-test-0123456789abcdef"

# What the library's own code is warned of, by pydantic and by Python, is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "MISTRAL_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as found:
        yield found


def at(url: str, model: str = "gpt-4o-mini", **arguments: Any) -> Any:
    return remote(f"litellm/openai/{model}", base_url=url, **arguments)


# ---- without the library


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "evalwright.models.remote.litellm._import_library",
        litellm._import_library.__wrapped__,
    )
    monkeypatch.setattr("importlib.import_module", _missing)
    model = LiteLLMModel("openai/gpt-4o-mini")
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[litellm\]'"):
        model.check()


def _missing(name: str) -> Any:
    raise ImportError(name)


@pytest.mark.parametrize(("arguments", "words"), rows(__file__, "litellm_arguments"))
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        open_model("litellm/openai/m", arguments)
    with pytest.raises(UnknownName):
        open_model("litellm/openai/m", {"stream": True})


def test_names_and_fingerprints() -> None:
    made = open_model("litellm/vertex_ai/claude-sonnet-4@20250514")
    assert isinstance(made, LiteLLMModel)
    assert made.model == "vertex_ai/claude-sonnet-4@20250514"
    same = [
        LiteLLMModel("openai/m", **arguments)
        for arguments in ({}, {"timeout": 5.0}, {"api_key_env": "A_KEY"})
    ]
    assert len({model.fingerprint for model in same}) == 1
    changes: list[dict[str, Any]] = [
        {"max_tokens": 5},
        {"temperature": 0.5},
        {"seed": 1},
        {"base_url": "http://h/v1"},
        {"extra": {"reasoning_effort": "low"}},
        {"leave_out": "stop,seed"},
    ]
    other = {LiteLLMModel("openai/m", **change).fingerprint for change in changes}
    assert len(other | {same[0].fingerprint}) == len(changes) + 1


def test_the_tables_rules_hold_for_its_models() -> None:
    def refuses(model: str, **arguments: Any) -> Any:
        return LiteLLMModel(model, **arguments).describe()["arguments"].get("refuses")

    assert refuses("openai/gpt-5-mini") == ["stop", "temperature", "top_p"]
    assert refuses("openai/gpt-5-mini", base_url="http://h/v1") is None
    assert refuses("openai/gpt-4o") is None
    assert refuses("nowhere/m", leave_out="seed, stop") == ["seed", "stop"]


# ---- with the library


WATCHED = """
import asyncio, socket, sys

seen = []
connect, look_up = socket.socket.connect, socket.getaddrinfo
socket.socket.connect = lambda self, address: (seen.append(address[0]), connect(self, address))[1]
socket.getaddrinfo = lambda host, *rest, **more: (seen.append(host), look_up(host, *rest, **more))[1]

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate
from evalwright.models.remote.litellm import LiteLLMModel

async def ask(model):
    try:
        print((await model.answer(Generate("hello"))).text)
    except RequestError as error:
        print(type(error).__name__)
    finally:
        await model.close()

for name in ("openai/gpt-4o-mini", "anthropic/claude-3-5-sonnet-20241022"):
    model = LiteLLMModel(name, base_url=sys.argv[1])
    model.check()
    asyncio.run(ask(model))
print("hosts:", *sorted(set(map(str, seen))))
"""


@needs_litellm
def test_it_speaks_to_nobody_else(server: OpenAIServer) -> None:
    folder = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WATCHED, server.url],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(folder / "src"), os.environ.get("PYTHONPATH", "")]
            ),
        },
        capture_output=True,
        text=True,
        timeout=1800,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == hash_answer("hello")
    assert lines[-1] == "hosts: 127.0.0.1"


@needs_litellm
def test_through_the_engine(server: OpenAIServer, tmp_path: Path) -> None:
    request = Generate(
        TALK, max_tokens=20, temperature=0.5, top_p=0.9, stop=("zzz",), seed=3, draw=2
    )
    model = at(server.url)

    async def go() -> tuple[Response, dict[str, Any]]:
        with open_store(tmp_path) as store:
            async with Engine(store) as engine:
                door = engine.door({"target": model})
                return await door("target", request), door.counts.as_dict()

    found, counts = asyncio.run(go())
    assert (found.text, found.finish_reason) == (hash_answer("I do."), "stop")
    assert found.model == "gpt-4o-mini"
    assert found.usage.output_tokens > 0
    assert found.cost is not None and found.cost > 0
    assert (counts["asked"], counts["failed"]) == (1, 0)
    assert counts["cost"] == pytest.approx(found.cost)
    assert server.log is not None
    assert server.log[-1]["body"] == {
        "model": "gpt-4o-mini",
        "messages": [turn.as_dict() for turn in TALK],
        "max_tokens": 20,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["zzz"],
        "seed": 5,
    }


@needs_litellm
def test_usage_reasoning_and_prefills() -> None:
    def edit(reply: dict[str, Any], body: Any) -> dict[str, Any]:
        reply["choices"][0]["message"]["reasoning_content"] = "Hm."
        reply["usage"] = {
            "prompt_tokens": 30,
            "completion_tokens": 20,
            "total_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 12},
        }
        return reply

    with serving(edit=edit, limits=Limits(requests_per_minute=9)) as server:
        found = ask(
            at(server.url, model="some-model"), Generate(PREFILLED, max_tokens=20)
        )
    assert found.reasoning == "Hm."
    assert found.usage == Usage(30, 20, 12, 16)
    assert found.cost is None
    assert found.rate_limits is not None and found.rate_limits.limit_requests == 9


@needs_litellm
def test_a_parameter_is_never_dropped_in_silence(server: OpenAIServer) -> None:
    error = failing(
        at(server.url, model="gpt-5-mini"), Generate("hello", temperature=0.3)
    )
    assert isinstance(error, Rejected)
    assert "temperature" in str(error)
    with serving() as fresh:
        ask(
            at(fresh.url, model="gpt-5-mini", leave_out="temperature"),
            Generate("hello", max_tokens=20),
        )
        assert fresh.log is not None
        assert "temperature" not in fresh.log[0]["body"]
        assert fresh.log[0]["body"]["max_completion_tokens"] == 20


FAULTS: dict[str, tuple[type[RequestError], str]] = {
    "429-retry-after": (RateLimited, "slow down"),
    "insufficient-quota": (OutOfCredit, "credit"),
    "503": (Overloaded, "overloaded"),
    "401": (AuthenticationFailed, "does not accept the API key"),
    "400": (Rejected, "wrong on purpose"),
    "reset": (Overloaded, "onnection"),
    "truncated": (Overloaded, ""),
    "error-in-200": (Overloaded, "Upstream overloaded"),
    "empty": (EmptyReply, "without content"),
    "hang": (TimedOut, "did not answer within 0.5 s"),
}


@needs_litellm
@pytest.mark.parametrize("kind", FAULTS)
def test_errors_have_our_names_and_are_not_repeated(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    error, words = FAULTS[kind]
    with serving(
        faults=Faults(retry_after=3, script=lambda body, before: kind)
    ) as server:
        found = failing(
            at(server.url, api_key_env="A_KEY", timeout=0.5 if kind == "hang" else 60)
        )
        assert server.log is not None and len(server.log) == 1
    assert type(found) is error
    assert words in str(found)
    assert KEY not in str(found)
    if kind.startswith("429"):
        assert found.retry_after == 3.0
    if kind == "401":
        assert "$A_KEY" in str(found)


@needs_litellm
def test_a_missing_key_is_said_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        LiteLLMModel("openai/gpt-4o-mini").check()
    with pytest.raises(ConfigurationError, match="OTHER_KEY"):
        LiteLLMModel("openai/gpt-4o-mini", api_key_env="OTHER_KEY").check()
    Path(".env").write_text("OPENAI_API_KEY=sk-from-the-dot-env-file\n")
    model = LiteLLMModel("openai/gpt-4o-mini")
    model.check()
    assert "OPENAI_API_KEY" not in os.environ
    assert "sk-from" not in str(model.describe())
    monkeypatch.setenv("MISTRAL_API_KEY", "x-mistral-key")
    LiteLLMModel("mistral/mistral-small-latest").check()


@needs_litellm
def test_tools() -> None:
    """Calls, results and malformed arguments pass through the library to a strict server."""
    now = ToolDefinition.of("now")
    weather = ToolDefinition.of("weather", "Weather of a city.")
    with ToolServer() as tool_server:
        model = at(f"{tool_server.url}/v1")
        question = Message("user", "Break the arguments.")
        request = Generate((question,), max_tokens=64, tools=(weather, now))
        assert model.refuses(request) is None
        reply = ask(model, request)
        (call,) = reply.tool_calls
        assert (call.name, call.arguments) == ("weather", '{"city": ')
        result = result_turn(call, "The arguments are not valid JSON.", is_error=True)
        turns = (question, reply_turn(reply), result)
        assert ask(model, replace(request, prompt=turns)).text == result.content
        hello = replace(request, prompt="Hello.", parallel_tool_calls=False)
        forced = ask(model, replace(hello, tool_choice="now"))
        assert [called.name for called in forced.tool_calls] == ["now"]
        assert tool_server.bodies[-1]["parallel_tool_calls"] is False
        assert tool_server.refused == []
