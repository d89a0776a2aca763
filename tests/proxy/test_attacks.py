"""What others may try: pages, other users, wrong tokens, smuggled and endless requests, poisoned
streams, names that act on a terminal or a path, and growth without end.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli.logs import logged
from evalwright.core import secrets
from evalwright.core.errors import ConfigurationError
from evalwright.core.responses import Response, Usage
from evalwright.engine.budget import Budget, Limits
from evalwright.engine.memory import MemoryStore
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote.prices import Price
from evalwright.proxy import server as http_side
from evalwright.proxy.faults import Fault
from evalwright.proxy.inbound import sign, unsign
from evalwright.proxy.server import check_loopback
from evalwright.proxy.sessions import Identified, Sessions
from evalwright.proxy.tokens import Access, Tokens, read_tokens
from evalwright.reports.text import inert
from support.openai_server import serving
from support.proxies import (
    SECONDS,
    TOKEN,
    Proxy,
    Sampler,
    chat_body,
    raw_request,
    running_proxy,
    tool_response,
)

PATH = "/t/a/v1/chat/completions"
MESSAGES = {
    "model": "test/sampler",
    "max_tokens": 5,
    "messages": [{"role": "user", "content": "hello"}],
}


def status_of(reply: bytes) -> int:
    """The status of the first reply in what came back; 0 for none."""
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.") else 0


def sent(proxy: Proxy, content: bytes, *, closes: bool = False) -> bytes:
    return proxy.raw(content.replace(b"PORT", str(proxy.port).encode()), closes=closes)


# -- pages and other hosts


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_is_refused_even_with_the_token(headers: dict[str, str]) -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        reply = proxy.send(PATH, chat_body(), headers=headers)
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert not model.asked


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:PORT",
    ],
)
def test_another_host_name_is_refused(host: str) -> None:
    """A page whose name was pointed at 127.0.0.1 sends its own name."""
    model = Sampler()
    with running_proxy(model) as proxy:
        reply = sent(proxy, raw_request(chat_body(), Host=host))
    assert status_of(reply) == 421
    assert not model.asked


def test_two_host_headers_or_none_are_refused() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        twice = raw_request(chat_body()).replace(
            b"Host: ", b"Host: evil.example\r\nHost: ", 1
        )
        assert status_of(sent(proxy, twice)) in (400, 421)
        assert status_of(sent(proxy, raw_request(chat_body(), Host=""))) in (400, 421)
    assert not model.asked


def test_a_preflight_gets_nothing_that_allows_it() -> None:
    with running_proxy(Sampler()) as proxy:
        headers = {
            "Access-Control-Request-Method": "POST",
            "Origin": "https://evil.example",
        }
        reply = proxy.send(PATH, method="OPTIONS", headers=headers)
        plain = proxy.send(PATH, method="OPTIONS")
    assert (reply.status, plain.status) == (403, 405)
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_form_of_a_page_is_no_json() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        headers = {"Content-Type": "text/plain"}
        assert proxy.send(PATH, chat_body(), headers=headers).status == 415
    assert not model.asked


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "", "127.1"]
)
def test_other_machines_cannot_be_let_in(host: str) -> None:
    with pytest.raises(ConfigurationError, match="only on this machine"):
        check_loopback(host)


# -- tokens


@pytest.mark.parametrize(
    "token", [None, "", "x", TOKEN + "x", TOKEN[:-1], "ｔｏｋｅｎ"]
)
def test_a_missing_or_wrong_token_is_refused_in_the_callers_format(
    token: str | None,
) -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        if token is not None:
            token = token.encode().decode("latin-1")
        chat = proxy.send(PATH, chat_body(), token=token)
        message = proxy.send("/t/a/v1/messages", MESSAGES, token=token)
        models = proxy.send("/v1/models", method="GET", token=token)
    assert (chat.status, message.status, models.status) == (401, 401, 401)
    assert chat.json["error"]["code"] == "invalid_api_key"
    assert message.json["error"]["type"] == "authentication_error"
    assert not model.asked


def test_two_different_tokens_in_one_request_are_none() -> None:
    with running_proxy(Sampler()) as proxy:
        assert (
            proxy.send(PATH, chat_body(), headers={"x-api-key": "other"}).status == 401
        )
        assert proxy.send(PATH, chat_body(), headers={"x-api-key": TOKEN}).status == 200


def test_an_expired_token_is_refused() -> None:
    access = {TOKEN: Access("old", expires=time.time() - 1)}
    model = Sampler()
    with running_proxy(model, access=access) as proxy:
        reply = proxy.chat()
    assert (reply.status, model.asked) == (401, [])
    assert "'old' has expired" in reply.json["error"]["message"]


def test_a_token_is_for_its_models() -> None:
    one, two = Sampler("test/one"), Sampler("test/two")
    access = {TOKEN: Access("t", models=frozenset(["test/one"]))}
    with running_proxy(one, two, access=access) as proxy:
        assert proxy.chat(model="test/one").status == 200
        reply = proxy.chat(model="two")
        listed = proxy.send("/v1/models", method="GET").json["data"]
        unknown = proxy.chat(model="tow").json["error"]["message"]
    assert (reply.status, reply.json["error"]["code"]) == (403, "model_not_allowed")
    assert [row["id"] for row in listed] == ["test/one"]
    assert "Served: test/one." in unknown
    assert not two.asked


def test_a_token_is_for_its_trajectory() -> None:
    access = {TOKEN: Access("t", "mine")}
    model = Sampler()
    with running_proxy(model, access=access) as proxy:
        assert proxy.chat(trajectory="mine").status == 200
        for other in ("yours", "MINE", "mine.", ""):
            assert proxy.chat(trajectory=other).status == 403
        assert proxy.send("/t/yours/restart").status == 403
    assert len(model.asked) == 1


def test_a_spent_budget_of_a_token_stops_clients_and_no_other_token() -> None:
    model = Sampler()
    model.price = Price(0, 1000.0)
    access = {
        TOKEN: Access("poor", budget=Budget(Limits(dollars=0.011))),
        "another-token-here": Access("rich"),
    }
    with running_proxy(model, access=access) as proxy:
        first = [proxy.chat(max_tokens=5) for _ in range(2)]
        spent = proxy.chat(max_tokens=5)
        in_messages = proxy.send("/t/a/v1/messages", {**MESSAGES, "temperature": 1})
        proxy.send("/t/a/restart")
        replayed = proxy.chat(max_tokens=5)
        body = chat_body("other", max_tokens=5)
        rich = proxy.send(PATH, body, token="another-token-here")
    assert [reply.status for reply in first] == [200, 200]
    assert (spent.status, spent.headers["x-should-retry"]) == (402, "false")
    assert spent.json["error"]["type"] == "insufficient_quota"
    assert in_messages.json["error"]["type"] == "billing_error"
    assert (replayed.text, rich.status) == ("sample 1", 200)


def test_budgets_of_a_token_and_the_proxy_hold_together() -> None:
    from evalwright.evaluation.budgets import BudgetTerms

    model = Sampler()
    access = {TOKEN: Access("t", budget=Budget(Limits(requests=5)))}
    terms = BudgetTerms(Limits(requests=2))
    with running_proxy(model, access=access, budget=terms) as proxy:
        statuses = [proxy.chat(str(number)).status for number in range(4)]
    assert statuses == [200, 200, 402, 402]
    assert len(model.asked) == 2


def test_tokens_and_keys_are_in_no_log_and_no_error(tmp_path: Path) -> None:
    key = "sk-secret-of-the-provider-12345"
    secrets.remember(key)
    model = Sampler()
    model.reply = RuntimeError(f"upstream said {key} and {TOKEN}")
    log = tmp_path / "log"
    said: list[str] = []
    with (
        logged(True, str(log), lambda text: said.append(secrets.mask(text))),
        running_proxy(model) as proxy,
    ):
        replies = [proxy.chat(), proxy.chat("x", model=TOKEN)]
        replies += [
            proxy.chat("x", unknown=key),
            proxy.send(f"/{TOKEN}", chat_body()),
        ]
        said += proxy.said
    told = log.read_text() + "".join(
        [*said, *(reply.body.decode() for reply in replies)]
    )
    assert "upstream said [key] and [key]" in told
    assert key not in told
    assert TOKEN not in told


def test_the_search_for_a_token_compares_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So its time says nothing about which token is nearly right."""
    from evalwright.proxy import tokens as module

    compared: list[bytes] = []

    def compare(one: bytes, two: bytes) -> bool:
        compared.append(one)
        return one == two

    monkeypatch.setattr(module, "compare_digest", compare)
    known = Tokens(
        {f"token-number-{number:04}": Access(str(number)) for number in range(5)}
    )
    assert known.find("token-number-0000").name == "0"
    with pytest.raises(Fault):
        known.find("token-number-9999")
    assert len(compared) == 10


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "has none"),
        ("a = 1", "must be a table"),
        ('[a]\ntoken = "short"', "16 to 512"),
        ('[a]\ntoken = "0123456789abcdef x"', "without spaces"),
        ('[a]\ntoken = "0123456789abcdef\\u00e9"', "without spaces"),
        ('[a]\ntoken = "0123456789abcdef"\nbudgett = "1 USD"', "Did you mean 'budget'"),
        (
            '[a]\ntoken = "0123456789abcdef"\nmodels = ["test/on"]',
            "Did you mean 'test/one'",
        ),
        ('[a]\ntoken = "0123456789abcdef"\nexpires = 2026-01-01T00:00:00', "time zone"),
        ('[a]\ntoken = "0123456789abcdef"\nexpires = "soon"', "without quotes"),
        ('[a]\ntoken = "0123456789abcdef"\ntrajectory = "../x"', "trajectory"),
        ('[a]\ntoken = "0123456789abcdef"\nbudget = "five"', "cannot be read"),
        (
            '[a]\ntoken = "0123456789abcdef"\n[b]\ntoken = "0123456789abcdef"',
            "the same token",
        ),
        ("[a", "cannot be read"),
    ],
)
def test_a_file_of_tokens_says_what_is_wrong_and_shows_none(
    content: str, wrong: str, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(content)
    with pytest.raises(Exception, match=wrong) as raised:
        read_tokens(file, ["test/one"])
    assert "0123456789abcdef" not in str(raised.value)


# -- what is not HTTP, or two requests at once

SMUGGLED = raw_request(chat_body("smuggled"))


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 300\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 300\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length:\x0b5\r\n",
        " Content-Length: 5\r\n",
    ],
)
def test_a_smuggled_request_is_not_answered(headers: str) -> None:
    """Two readings of where a body ends would make one of it."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\n{headers}\r\n"
    )
    model = Sampler()
    with running_proxy(model) as proxy:
        reply = sent(proxy, head.encode() + b"0\r\n\r\n" + SMUGGLED, closes=True)
        assert proxy.chat("after").status == 200
    assert status_of(reply) in (0, 400, 408, 411, 415, 501)
    assert [request.prompt[0].text for request in model.asked] == ["after"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST\r\n\r\n",
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 5_000 + b"\r\n",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_not_http_ends_its_own_connection_alone(content: bytes) -> None:
    with running_proxy(Sampler()) as proxy:
        reply = proxy.raw(content)
        assert status_of(reply) in (0, 400, 421, 431)
        assert proxy.chat().status == 200


# -- bodies


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    with running_proxy(Sampler()) as proxy:
        reply = sent(proxy, raw_request(b"", Content_Length=str(51 * 10**6)))
        assert status_of(reply) == 413
        assert b"Connection: close" in reply
        assert proxy.chat().status == 200


def test_a_chunked_body_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_side, "MAX_BODY_BYTES", 10**6)
    head = raw_request(b"", Content_Length="", Transfer_Encoding="chunked")
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with running_proxy(Sampler()) as proxy, proxy.connect() as connection:
        connection.sendall(head.replace(b"PORT", str(proxy.port).encode()))
        n_sent = 0
        try:
            while n_sent < 10**6:
                connection.sendall(piece)
                n_sent += 1
        except OSError:
            pass
        assert n_sent < 10**6
        assert proxy.chat().status == 200


def test_bodies_that_are_read_at_a_time_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_side, "MAX_BODIES_BYTES", 10_000)
    half = raw_request(b"", Content_Length="9000")
    with running_proxy(Sampler()) as proxy:
        with proxy.connect() as slow:
            slow.sendall(half.replace(b"PORT", str(proxy.port).encode()) + b"{")
            time.sleep(0.2)
            reply = sent(proxy, raw_request(b"", Content_Length="9000") + b"{")
            assert status_of(reply) == 503
            assert b"retry-after: 1" in reply.lower()
        deadline = time.monotonic() + SECONDS
        while proxy.chat("x" * 5_000).status != 200:
            assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"model": "test/sampler", "messages": ['
        + b"[" * 5_000
        + b"]" * 5_000
        + b"]}",
        b"{",
        b"",
        b"\xff\xfe\x00",
        b"NaN",
        b"[]",
        b'"text"',
        b'{"model": 1e999, "messages": []}',
        b'{"model": "test/sampler", "messages": [], "seed": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_broken_and_deep_json_is_a_400(body: bytes) -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        reply = proxy.send(PATH, body)
        assert proxy.send("/t/a/v1/messages", body).status == 400
        assert proxy.send("/t/a/v1/responses", body).status == 400
        assert proxy.send("/t/a/v1/completions", body).status == 400
    assert reply.status == 400
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert not model.asked


@pytest.mark.parametrize(
    "temperature", ["Infinity", "NaN", "-1", '"1"', "true", "[1]", "1e400"]
)
def test_numbers_that_are_none_are_refused(temperature: str) -> None:
    body = json.dumps(chat_body()).replace(
        '"temperature": 1', f'"temperature": {temperature}'
    )
    with running_proxy(Sampler()) as proxy:
        reply = proxy.send(PATH, body.encode())
    assert (reply.status, reply.json["error"]["param"]) == (400, "temperature")


def test_a_compressed_bomb_is_not_opened() -> None:
    with running_proxy(Sampler()) as proxy:
        reply = proxy.send(PATH, b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"})
    assert reply.status == 400


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.png",
        "file:///etc/passwd",
        "https://evil.example/",
        "data:x",
    ],
)
def test_no_address_in_a_request_is_fetched(url: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": url}}]
    model = Sampler()
    with running_proxy(model) as proxy:
        body = {**chat_body(), "messages": [{"role": "user", "content": content}]}
        assert proxy.send(PATH, body).status == 400
    assert not model.asked


# -- slow clients


def test_a_slow_head_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_side, "IDLE_SECONDS", 0.5)
    with running_proxy(Sampler()) as proxy, proxy.connect() as connection:
        connection.settimeout(SECONDS)
        connection.sendall(b"POST /t/a/v1/chat/completions HTTP/1.1\r\nX-Slow: ")
        with suppress(ConnectionError):
            assert connection.recv(100) == b""


def test_a_slow_body_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_side, "CLIENT_SECONDS", 0.5)
    model = Sampler()
    with running_proxy(model) as proxy, proxy.connect() as connection:
        connection.settimeout(SECONDS)
        head = raw_request(b"", Content_Length="1000").replace(
            b"PORT", str(proxy.port).encode()
        )
        connection.sendall(head + b"{")
        with suppress(ConnectionError):
            assert connection.recv(100) == b""
    assert not model.asked


def test_a_client_that_does_not_read_ends_and_its_draw_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_side, "CLIENT_SECONDS", 0.5)
    model = Sampler()
    model.reply = Response("x" * 30_000_000, finish_reason="stop", usage=Usage(1, 1))
    with running_proxy(model) as proxy:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", proxy.port))
            content = raw_request(chat_body()).replace(
                b"PORT", str(proxy.port).encode()
            )
            connection.sendall(content)
            deadline = time.monotonic() + SECONDS
            while not model.asked or (proxy.states and proxy.states[-1].in_flight):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(1.5)
        assert proxy.chat().status == 200
    assert len(model.asked) == 1


def test_connections_are_bounded() -> None:
    with running_proxy(Sampler()) as proxy:
        original = http_side.MAX_CONNECTIONS
        assert original <= 1_000
        connections = [proxy.connect() for _ in range(50)]
        assert proxy.chat().status == 200
        for connection in connections:
            # A reset, as by a client that is killed.
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            connection.close()
        assert proxy.chat("again").status == 200


def test_a_connection_too_many_is_ended() -> None:
    async def connected(door: http_side.Door) -> list[bool]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(door, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        await asyncio.sleep(0.1)
        ended = [
            reader.at_eof() or reader.exception() is not None for reader, _ in streams
        ]
        for _, writer in streams:
            writer.close()
        server.close()
        await door.shutdown(0.1)
        return ended

    async def handle(request: Any, connection: Any) -> Any:
        raise AssertionError

    async def run() -> list[bool]:
        return await connected(http_side.Door(handle, max_connections=2))

    assert sum(asyncio.run(run())) == 2


# -- what comes back from a model


@pytest.mark.parametrize(
    "poison",
    [
        "data: [DONE]\n\n",
        "\n\nevent: error\ndata: {}\n\n",
        "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "\u2028\u2029\x85\x0b\x0c\x1c",
        "\x1b]0;owned\x07\x1b[2J",
        "\ud800 lone",
        '"}],"usage":{}}',
        "\x00",
    ],
    ids=ascii,
)
def test_a_poisoned_answer_stays_one_answer_in_every_stream(poison: str) -> None:
    model = Sampler()
    model.reply = Response(
        poison, reasoning=poison, finish_reason="stop", usage=Usage(1, 1)
    )
    with running_proxy(model) as proxy:
        chat = proxy.chat(stream=True)
        messages = proxy.send("/t/a/v1/messages", {**MESSAGES, "stream": True})
        responses = proxy.send(
            "/t/a/v1/responses", {"model": "sampler", "input": "x", "stream": True}
        )
        plain = proxy.chat("plain")
    assert chat.body.isascii() and messages.body.isascii() and responses.body.isascii()
    deltas = [data["choices"][0]["delta"] for _, data in chat.events[:-1]]
    assert [delta["content"] for delta in deltas if delta.get("content")] == [poison]
    assert chat.events[-1][1] == "[DONE]"
    texts = [
        data["delta"].get("text") for name, data in messages.events if "delta" in data
    ]
    assert poison in texts
    assert [name for name, _ in messages.events].count("message_stop") == 1
    assert responses.events[-1][0] == "response.completed"
    assert plain.text == poison


def test_a_poisoned_call_stays_a_call() -> None:
    model = Sampler()
    model.reply = tool_response()
    tools = [
        {
            "type": "function",
            "function": {"name": "weather", "parameters": {"type": "object"}},
        }
    ]
    with running_proxy(model) as proxy:
        calls = proxy.chat(tools=tools).json["choices"][0]["message"]["tool_calls"]
    assert calls[1]["function"]["arguments"] == '{"city": '


@pytest.mark.parametrize(
    "kind",
    [
        "cut",
        "truncated",
        "invalid-json",
        "content-type",
        "error-in-200",
        "empty",
        "reset",
    ],
)
def test_a_broken_upstream_is_an_error_of_ours_and_never_stored(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.openai_faults import Faults

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    faults = Faults(script=lambda body, before: kind if before == 0 else None)
    with serving(faults=faults) as upstream:
        model = open_model(f"openai/{upstream.url}#m")
        assert isinstance(model, RemoteModel)
        model.pacing = replace(model.pacing, max_attempts=1)
        with running_proxy(model, home=tmp_path) as proxy:
            first = proxy.chat(model="m")
            second = proxy.chat(model="m")
    if kind != "empty":
        assert first.status >= 400
        assert first.json["error"]["message"]
    assert (second.status, second.text[:6]) == (200, "answer")


def test_signatures_of_reasoning_are_checked() -> None:
    content = '{"content":[1],"format":"x"}'
    assert unsign(sign(content), "s") == content
    bomb = sign(" " * 20_000_000)
    for wrong in (
        "ErUBCkYIARgCIkD",
        "evw1.!!!",
        "evw1.AAAA",
        sign("[]"),
        sign("1"),
        bomb,
    ):
        with pytest.raises(Fault):
            unsign(wrong, "s")


# -- names


@pytest.mark.parametrize(
    "name",
    [
        "\x1b[31mred",
        "a\r\nX-Injected: 1",
        "\u202eevil",
        "x" * 10_000,
        "",
        "demo/small\x00",
    ],
)
def test_a_models_name_acts_on_no_terminal_and_no_header(name: str) -> None:
    with running_proxy(Sampler()) as proxy:
        reply = proxy.chat(model=name)
        said = proxy.said
    assert reply.status == 404
    assert "x-injected" not in reply.headers
    assert b"\x1b" not in reply.body and len(reply.body) < 4_000
    assert all(inert(sentence) == sentence for sentence in said)


@pytest.mark.parametrize(
    "id",
    [
        "..", ".", "%2e%2e", "a%2fb", "a%00", "a/../b", "..%2f..%2fetc", "-rf", "a" * 101,
        "a b", "a\\b", "a;b", "a?b=c/v1/", "\u00e9", "", "a%0d%0aX:1", "a$(id)",
    ],
)  # fmt: skip
def test_no_trick_in_an_id_reaches_another_trajectory(id: str) -> None:
    model = Sampler()
    path = f"/t/{id}/v1/chat/completions".encode().decode("latin-1").replace(" ", "\t")
    with running_proxy(model) as proxy:
        content = raw_request(chat_body(), path="PATH").replace(
            b"PATH", path.encode("latin-1")
        )
        reply = sent(proxy, content)
    assert status_of(reply) in (0, 400, 404, 405)
    assert not model.asked


@pytest.mark.parametrize(
    "path",
    [
        "http://evil.example/v1/chat/completions", "//evil.example/v1/models", "/", "/v1", "/v1/",
        "/v1/chat/completions/", "/v1/../v1/chat/completions", "/V1/chat/completions",
        "/t/a/v1/embeddings", "/t/a/t/b/v1/chat/completions", "*",
    ],
)  # fmt: skip
def test_other_paths_are_nothing(path: str) -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        reply = sent(proxy, raw_request(chat_body(), path=path))
    assert status_of(reply) in (0, 400, 404)
    assert not model.asked


# -- growth


def test_trajectories_and_counted_requests_are_bounded() -> None:
    sessions = Sessions(max_trajectories=2, max_counted=3)
    for name in ("a", "b", "a"):
        sessions.trajectory(name)
    with pytest.raises(Fault, match="2 trajectories"):
        sessions.trajectory("c")
    a = sessions.trajectory("a")
    from evalwright.core.requests import Generate

    each = [Identified("m", Generate(str(number))) for number in range(4)]
    for one in each[:3]:
        a.take(one.digest, is_greedy=True)
    with pytest.raises(Fault, match="3 different requests"):
        a.take(each[3].digest, is_greedy=True)
    a.restart()
    a.take(each[3].digest, is_greedy=True)


def test_the_store_grows_to_its_limit_and_then_still_answers(tmp_path: Path) -> None:
    model = Sampler()
    with running_proxy(model, home=tmp_path, max_stored=100_000) as proxy:
        first = proxy.chat("small")
        for number in range(4):
            reply = proxy.chat(f"{number} " + "x" * 40_000)
        proxy.send("/t/a/restart")
        again = proxy.chat("small")
    assert (reply.status, reply.json["error"]["code"]) == (403, "store_limit")
    assert again.text == first.text


def test_a_store_in_memory_is_bounded() -> None:
    model = Sampler()
    store = MemoryStore(max_bytes=5_000)
    with running_proxy(model, store=store) as proxy:
        for number in range(20):
            model.reply = Response(
                str(number) * 30_000, finish_reason="stop", usage=Usage(1, 1)
            )
            proxy.chat(f"{number} ")
        model.reply = None
        assert 1 <= len(store) < 20
        proxy.send("/t/a/restart")
        assert proxy.chat("19 ").text == "19" * 30_000
    store.close()


def test_no_record_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    with running_proxy(Sampler()) as proxy:
        first = proxy.chat("a secret of somebody").text
        proxy.send("/t/a/restart")
        assert proxy.chat("a secret of somebody").text == first
    assert list(tmp_path.rglob("*")) == []


def test_many_draws_and_prompts_are_bounded() -> None:
    with running_proxy(Sampler()) as proxy:
        assert proxy.chat(n=129).status == 400
        assert proxy.chat(n=0).status == 400
        body = {"model": "sampler", "prompt": ["x"] * 2_049}
        assert proxy.send("/t/a/v1/completions", body).status == 400
        assert proxy.chat(stop=["x"] * 65).status == 400


def test_recursion_is_no_way_to_end_the_proxy() -> None:
    depth = sys.getrecursionlimit() - 200
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth // 4):
        schema = {"type": "object", "properties": {"a": schema}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with running_proxy(Sampler()) as proxy:
        assert proxy.chat(tools=tools).status in (200, 400)
        assert proxy.chat("after").status == 200
