"""MCP servers, real ones over stdio and HTTP on loopback, and servers that break every rule."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, RequestFailed, UsageError
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.tools.mcp_settings import read_server
from evalwright.tools.toolbox import DefinedTools, Toolbox, ToolResult, ToolSource

pytest.importorskip("mcp")

from evalwright.tools.mcp_tools import McpTools
from evalwright.tools.shared_sources import SharedTools, close_shared_sources

SERVERS = Path(__file__).parent / "mcp_servers"
WEATHER = [sys.executable, str(SERVERS / "weather_server.py")]
NEEDED = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
"""Where this interpreter finds the package, if that is no folder of its own."""


def hostile(kind: str) -> list[str]:
    return [sys.executable, str(SERVERS / "hostile_server.py"), kind]


def answers(
    command: Any,
    *calls: tuple[str, str],
    call_seconds: float = 60.0,
    others: tuple[ToolSource, ...] = (),
    **settings: Any,
) -> tuple[list[ToolDefinition], list[ToolResult]]:
    """A server's tools, and the results of calls in one session."""
    if isinstance(command, list):
        settings = {"env": NEEDED, **settings}
    server = read_server({"mcp": command, **settings}, None)

    async def run() -> tuple[list[ToolDefinition], list[ToolResult]]:
        sources = [*others, McpTools(server, call_seconds)]
        async with Toolbox(
            sources, call_seconds=call_seconds, result_chars=1_000
        ) as toolbox:
            results = [await toolbox.call(ToolCall(*call)) for call in calls]
            return [*toolbox.definitions], results

    return asyncio.run(run())


def fault(command: Any, *calls: tuple[str, str], **settings: Any) -> str:
    """Why a server was not used, or no longer."""
    with pytest.raises(RequestFailed) as caught:
        answers(command, *(calls or (("echo", '{"x": "a"}'),)), **settings)
    message = caught.value.failure.message
    assert caught.value.failure.party == "task"
    assert "Traceback" not in message and str(SERVERS) not in message
    return message


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The official package's server over streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*WEATHER, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 300
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def check_weather(command: Any) -> None:
    definitions, results = answers(
        command,
        ("get_weather", '{"city": "Oslo"}'),
        ("get_weather", '{"city": 3}'),
        ("fail", '{"reason": "closed"}'),
        ("count", '{"word": "a"}'),
        ("count", '{"word": "b"}'),
        ("repeat", '{"text": "x", "times": 100000}'),
        ("picture", "{}"),
        ("get_weather", "{"),
        ("got_weather", "{}"),
    )
    by_name = {definition.name: definition for definition in definitions}
    assert by_name["get_weather"].description == "Look up the weather of a city."
    assert by_name["get_weather"].schema["properties"]["unit"]["enum"] == ["c", "f"]
    assert results[0].text == "Oslo: 21 c" and not results[0].is_error
    assert results[1].is_error and results[2].is_error
    first, second = int(results[3].text), int(results[4].text)
    assert second == first + 1
    assert "[The result was cut: it has 100,000 characters" in results[5].text
    assert results[6].text.startswith("[image of")
    assert results[7].is_error and "not valid JSON" in results[7].text
    assert results[8].is_error and "Did you mean 'get_weather'?" in results[8].text
    assert all(result.seconds >= 0 for result in results)


def test_a_server_over_stdio() -> None:
    check_weather(WEATHER)


def test_a_server_over_http(address: str) -> None:
    check_weather(address)


def test_a_call_is_stopped_and_the_session_goes_on(address: str) -> None:
    calls = (("wait", '{"seconds": 30}'), ("get_weather", '{"city": "Oslo"}'))
    _, results = answers(address, *calls, call_seconds=3.0)
    assert "longer than 3 seconds" in results[0].text
    assert results[1].text == "Oslo: 21 c"


def test_a_result_over_http_is_bounded(address: str) -> None:
    message = fault(address, ("repeat", '{"text": "xxxxxxxxxx", "times": 3000000}'))
    assert "does not answer" in message or "was stopped" in message


def test_a_server_has_none_of_our_variables_but_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-123456")
    monkeypatch.setenv("HOME", "/home/of-this-test")
    monkeypatch.setenv("CITY", "Oslo")
    variables = {**NEEDED, "CITY": "${CITY}"}
    _, (result,) = answers(WEATHER, ("list_environment", "{}"), env=variables)
    expected = {"CITY", "LANG", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED"}
    assert set(result.text.split()) - {"LC_CTYPE"} == expected


def test_a_variable_that_is_not_set_is_said() -> None:
    with pytest.raises(
        ConfigurationError, match="The variable NO_SUCH_VARIABLE is not set"
    ):
        answers(WEATHER, env=["NO_SUCH_VARIABLE"])


def test_tools_may_be_chosen_and_renamed() -> None:
    definitions, (result,) = answers(
        WEATHER,
        ("my-get_weather", '{"city": "Oslo"}'),
        only=["get_weather"],
        prefix="my-",
    )
    assert [definition.name for definition in definitions] == ["my-get_weather"]
    assert result.text == "Oslo: 21 c"
    with pytest.raises(UsageError, match="Did you mean 'get_weather'"):
        answers(WEATHER, only=["get_wether"])


def test_a_name_that_shadows_another_tool_is_a_sentence() -> None:
    echo = DefinedTools([ToolDefinition("echo")], "the task's definitions")
    message = fault(hostile("plain"), others=(echo,))
    assert (
        "Two tools have the name 'echo', one from the task's definitions and one from"
        in message
    )


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("array-schema", "is not what the protocol says (tools.0.inputSchema"),
        ("bad-properties", "is not what the protocol says"),
        ("choice-name", "cannot be offered"),
        ("deep-schema", "the schema of its tool 'echo' has more than 24 levels"),
        ("dies", "does not answer: Connection closed. The last line of its standard error: out of memory in [path]"),
        ("endless-pages", "lists its tools on more than 64 pages"),
        ("flood", "it sent a message of more than 8 MiB"),
        ("flood-lines", "more than 50 lines to its standard output that are no messages"),
        ("flood-messages", "it sent more than 2,000 messages without being asked"),
        ("huge-description", "has 30,000 characters; 20,000 are allowed"),
        ("huge-schema", "characters; 100,000 are allowed"),
        ("long-name", "has a name of 200 characters"),
        ("many-tools", "has more than 256 tools"),
        ("near-names", "two of its tools have the name 'read_file'"),
        ("no-content", "is not what the protocol says (content"),
        ("no-name", "has a name of 0 characters"),
        ("old-protocol", "Unsupported protocol version"),
        ("other-id", "it answered a request that was not sent (id '9999')"),
        ("same-names", "two of its tools have the name 'echo'"),
        ("lone-surrogate", "it sent a message that cannot be read"),
        ("no-utf-8", "it sent a message that cannot be read"),
        ("deep-result", "it sent a message that cannot be read"),
        ("text-tools", "is not what the protocol says (tools"),
        ("too-huge-result", "it sent a message of more than 8 MiB"),
    ],
)  # fmt: skip
def test_a_server_that_breaks_a_rule_is_a_sentence(kind: str, sentence: str) -> None:
    assert sentence in fault(hostile(kind))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("plain", "done"),
        ("greets", "done"),
        ("asks-back", "refused"),  # no model of ours is lent to a server
        ("slow-pattern", "done"),  # its schema of results is not searched with
        ("twice", "done"),
        ("huge-result", "[The result was cut: it has 5,000,000 characters"),
    ],
)
def test_what_a_server_may_do(kind: str, text: str) -> None:
    _, (result,) = answers(hostile(kind), ("echo", '{"x": "a"}'))
    assert text in result.text and not result.is_error


def test_a_server_that_never_starts_or_answers() -> None:
    message = fault(hostile("never-starts"), start_seconds=0.5)
    assert "did not list its tools within 0.5 seconds" in message
    _, (result,) = answers(hostile("silent"), ("echo", '{"x": "a"}'), call_seconds=1.0)
    assert result.is_error and "longer than 1 seconds" in result.text


def test_a_program_or_address_that_is_not_there() -> None:
    assert "cannot be started: No such file" in fault(["no-such-program-here"])
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
        assert "does not answer" in fault(url)


class _Odd(BaseHTTPRequestHandler):
    """Answers as its path says."""

    seen: list[dict[str, str]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.seen.append({name.lower(): text for name, text in self.headers.items()})
        size = int(self.headers.get("content-length", 0))
        self.rfile.read(size)
        kind = self.path.strip("/")
        if kind == "redirects":
            self.send_response(307)
            self.send_header("location", "http://127.0.0.2:9/elsewhere")
            self.end_headers()
            return
        self.send_response(500 if kind == "fails" else 200)
        body_type = "text/html" if kind == "page" else "application/json"
        self.send_header("content-type", body_type)
        if kind == "compressed":
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        bodies = {
            "other-id": b'{"jsonrpc": "2.0", "id": 77, "result": {}}',
            "no-json": b"{",
            "page": b"<html>",
        }
        if kind == "endless":
            for _ in range(400):
                self.wfile.write(b" " * (1 << 16))
        self.wfile.write(bodies.get(kind, b"{}"))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Odd)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "kind",
    ["compressed", "endless", "fails", "no-json", "other-id", "page", "redirects"],
)
def test_an_address_that_is_no_server_is_a_sentence(kind: str, odd: str) -> None:
    message = fault(f"{odd}/{kind}", start_seconds=5 if kind == "other-id" else 60)
    assert message.startswith("The MCP server 'http://127.0.0.1")


_TEXT = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "%s"}]}}'
_WRONG_CALL = b'{"jsonrpc": "2.0", "id": %d, "error": {"code": -32602, "message": "x is no city"}}'
_ON_CALL = {
    "accepted": (202, "application/json", b""),
    "cut-text": (200, "application/json", _TEXT.replace(b"%s", b"\\ud800")),
    "elsewhere": (307, "application/json", b""),
    "forbidden": (403, "application/json", b"{}"),
    "gone": (404, "text/plain", b""),
    "overloaded": (503, "text/html", b"<html>"),
    "page": (200, "text/html", b"<html>"),
    "wrong-call": (400, "application/json", _WRONG_CALL),
}


class _FailsOnCall(BaseHTTPRequestHandler):
    """Lists a tool, and answers its calls as its path says."""

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        message = json.loads(self.rfile.read(size))
        identifier = message.get("id", 0)
        results = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
            "tools/list": {
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]
            },
        }
        status, kind, body = 202, "application/json", b""
        if message["method"] in results:
            reply = {
                "jsonrpc": "2.0",
                "id": identifier,
                "result": results[message["method"]],
            }
            status, body = 200, json.dumps(reply).encode()
        elif message["method"] == "tools/call":
            status, kind, body = _ON_CALL[self.path.strip("/")]
            body = body.replace(b"%d", str(identifier).encode())
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("location", "http://127.0.0.2:9/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def fails_on_call() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _FailsOnCall)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", sorted(set(_ON_CALL) - {"wrong-call"}))
def test_what_an_address_breaks_is_no_models_fault(
    kind: str, fails_on_call: str
) -> None:
    message = fault(f"{fails_on_call}/{kind}")
    assert message.startswith("The MCP server 'http://127.0.0.1")


def test_what_an_address_says_of_a_call_is_for_the_model(fails_on_call: str) -> None:
    _, (result,) = answers(f"{fails_on_call}/wrong-call", ("echo", "{}"))
    assert result.is_error and "x is no city" in result.text


def test_headers_are_those_that_are_named(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS_TOKEN", "token-of-this-test-1234")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    _Odd.seen.clear()
    fault(f"{odd}/fails", headers={"Authorization": "Bearer ${TOOLS_TOKEN}"})
    assert _Odd.seen[0]["authorization"] == "Bearer token-of-this-test-1234"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"mcp": ""}, "is named by its command"),
        ({"mcp": []}, "is named by its command"),
        ({"mcp": ["a", 3]}, "is named by its command"),
        ({"mcp": "http://"}, "no address"),
        ({"mcp": "a", "headers": {"A": "b"}}, "at an address"),
        ({"mcp": "https://a.example", "env": ["A"]}, "that are programs"),
        ({"mcp": "http://a.example", "headers": {"A": "b"}}, "unencrypted"),
        ({"mcp": "a", "env": {"A": 3}}, "names to texts"),
        ({"mcp": "a", "prefix": "a b"}, "prefix"),
        ({"mcp": "a", "session": "task"}, "session"),
        ({"mcp": "a", "start_seconds": 0}, "above 0"),
        ({"mcp": "a", "only": "b"}, "is a list"),
        ({"mcp": "a", "sesion": "run"}, "Did you mean 'session'"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_server(settings, None)


def test_records_have_the_names_of_variables_alone() -> None:
    server = read_server({"mcp": "a --b", "env": {"TOKEN": "a-secret"}}, None)
    assert server.as_dict() == {
        "mcp": ["a", "--b"],
        "env": ["TOKEN"],
        "session": "sample",
    }


def test_samples_may_share_a_session() -> None:
    server = read_server({"mcp": WEATHER, "env": NEEDED, "session": "run"}, None)

    async def sample() -> str:
        source = SharedTools("weather", lambda: McpTools(server), server.label)
        async with Toolbox([source]) as toolbox:
            return (await toolbox.call(ToolCall("count", '{"word": "a"}'))).text

    async def run() -> list[str]:
        try:
            return [*await asyncio.gather(sample(), sample()), await sample()]
        finally:
            await close_shared_sources()

    assert sorted(asyncio.run(run())) == ["1", "2", "3"]


def test_a_shared_server_that_died_is_started_again() -> None:
    server = read_server({"mcp": WEATHER, "env": NEEDED, "session": "run"}, None)

    async def sample(name: str) -> str:
        source = SharedTools("dying", lambda: McpTools(server), server.label)
        async with Toolbox([source]) as toolbox:
            return (await toolbox.call(ToolCall(name, '{"city": "Oslo"}'))).text

    async def run() -> str:
        try:
            with pytest.raises(RequestFailed):
                await sample("end")
            return await sample("get_weather")
        finally:
            await close_shared_sources()

    assert asyncio.run(run()) == "Oslo: 21 c"


def test_no_more_servers_run_than_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalwright.tools import mcp_tools

    monkeypatch.setattr(mcp_tools, "MAX_PROCESSES", 1)
    server = read_server({"mcp": hostile("plain")}, None)

    async def sample() -> str:
        async with Toolbox([McpTools(server)]) as toolbox:
            return (await toolbox.call(ToolCall("echo"))).text

    async def run() -> list[str]:
        async with Toolbox([McpTools(server)]):
            waiting = [asyncio.create_task(sample()) for _ in range(3)]
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in waiting)
        return [*await asyncio.gather(*waiting)]

    assert asyncio.run(run()) == ["done"] * 3


def test_nothing_is_left_running() -> None:
    """Servers end with their session, also one that does not listen."""
    for kind in ("plain", "silent", "flood-lines"):
        mark = f"of-process-{os.getpid()}"
        server = read_server({"mcp": [*hostile(kind), mark]}, None)
        tools = McpTools(server, 1.0)

        async def run(tools: McpTools = tools) -> None:
            try:
                async with Toolbox([tools], call_seconds=1.0) as toolbox:
                    await toolbox.call(ToolCall("echo"))
            except RequestFailed:
                pass

        asyncio.run(run())
        listing = subprocess.run(
            ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
        )
        assert f"hostile_server.py {kind} {mark}" not in listing.stdout


_OUTLIVED = """
import asyncio, sys
from evalwright.core.tool_calls import ToolCall
from evalwright.tools.mcp_settings import read_server
from evalwright.tools.mcp_tools import McpTools
from evalwright.tools.toolbox import Toolbox

async def main():
    server = read_server({"mcp": sys.argv[1:]}, None)
    async with Toolbox([McpTools(server, 600.0)], call_seconds=600.0) as toolbox:
        print("ready", flush=True)
        await toolbox.call(ToolCall("echo"))

asyncio.run(main())
"""


def test_a_server_does_not_outlive_a_run_that_is_killed() -> None:
    """Also one that waits for something else than its input."""
    mark = f"outlived-{os.getpid()}"
    run = subprocess.Popen(
        [sys.executable, "-c", _OUTLIVED, *hostile("silent"), mark],
        stdout=subprocess.PIPE,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()

    def is_running() -> bool:
        listing = subprocess.run(
            ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
        )
        return f"hostile_server.py silent {mark}" in listing.stdout

    for _ in range(600):
        if not is_running():
            return
        time.sleep(0.1)
    pytest.fail("the server runs on")
