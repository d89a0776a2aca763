"""The HTTP layer against real servers on loopback."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evalwright.core.errors import (
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import HttpClient, check_url, encode, proxy_for

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def with_server(handler: Handler, use: Callable[[str], Awaitable[Any]]) -> Any:
    """Run `use(url)` against a server that answers everything with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        return await use(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def ask(handler: Handler, **options: Any) -> Reply:
    """One POST to a server with that handler."""

    async def use(url: str) -> Reply:
        client = HttpClient(url, **options)
        try:
            return await client.post("/x", {"a": 1})
        finally:
            await client.close()

    found: Reply = asyncio.run(with_server(handler, use))
    return found


def answering(body: bytes | str, kind: str = "application/json") -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        raw = body.encode() if isinstance(body, str) else body
        return web.Response(body=raw, headers={"Content-Type": kind})

    return handler


def test_json_goes_out_and_comes_in() -> None:
    seen: dict[str, Any] = {}

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.update(body=await request.json(), headers=dict(request.headers), path=request.path)
        return web.json_response({"text": "žluť 😀"}, headers={"x-ratelimit-remaining-requests": "5"})

    reply = ask(handler, headers={"Authorization": "Bearer abc"})
    assert reply.data == {"text": "žluť 😀"}
    assert reply.rate_limits is not None
    assert reply.rate_limits.remaining_requests == 5
    assert 0 < reply.seconds < 5
    assert seen["body"] == {"a": 1}
    assert seen["path"] == "/x"
    assert seen["headers"]["Content-Type"] == "application/json"
    assert seen["headers"]["Authorization"] == "Bearer abc"
    assert seen["headers"]["User-Agent"].startswith("evalwright/")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"a": [1, 2', "application/json"),
        ("", "application/json"),
        (b'{"a": "\xff"}', "application/json"),
        ("[" * 200_000, "application/json"),
        ("<html>wait</html>", "text/html"),
        ('{"a": 1}', "text/plain"),
    ],
)
def test_what_is_not_whole_valid_json_is_a_bad_reply(body: str | bytes, kind: str) -> None:
    with pytest.raises(BadReply) as caught:
        ask(answering(body, kind))
    assert len(str(caught.value)) < 250
    assert caught.value.retryable


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/problem+json", "Text/JSON"])
def test_json_content_types(kind: str) -> None:
    assert ask(answering('{"a": 1}', kind)).data == {"a": 1}


def test_a_reply_may_be_in_many_parts_but_not_too_large() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"text": "')
        for _ in range(50):
            await response.write(b"x" * 1000)
            await asyncio.sleep(0)
        await response.write(b'"}')
        return response

    assert len(ask(handler).data["text"]) == 50_000
    with pytest.raises(Rejected, match="more than 20000 bytes"):
        ask(handler, largest_reply=20_000)


def test_a_small_reply_that_unpacks_to_a_large_one_is_refused() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = gzip.compress(b'{"text": "' + b"x" * 5_000_000 + b'"}')
        return web.Response(body=body, headers={"Content-Encoding": "gzip"}, content_type="application/json")

    with pytest.raises(Rejected, match="more than 100000 bytes"):
        ask(handler, largest_reply=100_000)
    assert len(ask(handler).data["text"]) == 5_000_000


def test_a_hang_times_out() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(TimedOut, match=r"did not answer within 0\.2 s"):
        ask(handler, timeout=0.2)


def test_a_body_that_hangs_times_out() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"a":')
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(TimedOut):
        ask(handler, timeout=0.2)


def test_a_connection_that_breaks() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", "Content-Length": "100"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(b'{"a":')
        assert request.transport is not None
        request.transport.close()
        return response

    async def abort(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    with pytest.raises(ConnectionFailed, match="broke before the answer was whole"):
        ask(cut)
    with pytest.raises(ConnectionFailed):
        ask(abort)


def asked_at(url: str, **options: Any) -> RequestError:
    async def go() -> None:
        client = HttpClient(url, **options)
        try:
            await client.get("/")
        finally:
            await client.close()

    with pytest.raises(RequestError) as caught:
        asyncio.run(go())
    return caught.value


def test_refused_and_unknown_hosts() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = asked_at(f"http://127.0.0.1:{port}")
    assert isinstance(refused, ConnectionFailed)
    assert f"127.0.0.1:{port}" in str(refused)
    unknown = asked_at("http://no-such-host.invalid")
    assert isinstance(unknown, ConnectionFailed)
    assert "no-such-host.invalid" in str(unknown)


def asked_raw(answer: bytes) -> Any:
    """GET from a server that writes just these bytes: the data, or the error."""

    async def go() -> Any:
        async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(write, "127.0.0.1", 0)
        client = HttpClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            return (await client.get("/")).data
        except RequestError as error:
            return error
        finally:
            await client.close()
            server.close()
            await server.wait_closed()

    return asyncio.run(go())


def test_replies_that_aiohttp_servers_would_not_send() -> None:
    mail = asked_raw(b"220 mail ready\r\n\r\n")
    assert isinstance(mail, BadReply)
    assert "is not HTTP" in str(mail)
    assert asked_raw(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}') == {"a": 1}
    assert isinstance(asked_raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), BadReply)
    assert isinstance(asked_raw(b""), ConnectionFailed)


def test_plain_http_on_a_tls_port_is_said_and_not_retried() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def use(url: str) -> RequestError:
        client = HttpClient(url.replace("http:", "https:"), timeout=5)
        try:
            with pytest.raises(ConnectionFailed) as caught:
                await client.get("/")
        finally:
            await client.close()
        return caught.value

    error = asyncio.run(with_server(handler, use))
    assert not error.retryable


def test_redirects_are_not_followed() -> None:
    followed = []

    async def handler(request: web.Request) -> web.StreamResponse:
        followed.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    with pytest.raises(Rejected, match="/elsewhere"):
        ask(handler, headers={"Authorization": "Bearer abc"})
    assert followed == ["/x"]


def test_connections_are_kept_and_bounded() -> None:
    peers = set()
    flying = most = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal flying, most
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.005)
        flying -= 1
        return web.json_response({})

    async def use(url: str) -> None:
        client = HttpClient(url, max_connections=4)
        await asyncio.gather(*(client.post("/", i) for i in range(40)))
        await client.close()

    asyncio.run(with_server(handler, use))
    assert len(peers) == most == 4


def test_one_client_on_several_loops_one_after_another() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({"ok": True})

    clients: list[HttpClient] = []

    async def leave_open(url: str) -> None:
        clients.append(HttpClient(url))
        assert (await clients[0].get("/")).data == {"ok": True}

    async def again(url: str) -> None:
        client = clients[0]
        client.base_url = url
        client._urls.clear()
        assert (await client.get("/")).data == {"ok": True}
        await client.close()
        assert not client._sessions

    asyncio.run(with_server(handler, leave_open))
    asyncio.run(with_server(handler, again))
    clients.clear()
    gc.collect()


def test_cookies_are_not_kept() -> None:
    seen = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(dict(request.cookies))
        response = web.json_response({})
        response.set_cookie("who", "you")
        return response

    async def use(url: str) -> None:
        client = HttpClient(url)
        for _ in range(2):
            await client.get("/")
        await client.close()

    asyncio.run(with_server(handler, use))
    assert seen == [{}, {}]


def test_a_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.json_response({"via": "proxy"})

    async def use(url: str) -> Any:
        monkeypatch.setenv("HTTP_PROXY", url)
        client = HttpClient("http://api.example.com/v1")
        reply = await client.get("/models")
        await client.close()
        return reply.data

    assert asyncio.run(with_server(proxy, use)) == {"via": "proxy"}
    assert asked == ["http://api.example.com/v1/models"]


def test_which_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert proxy_for("https://api.example.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert proxy_for("https://api.example.com/v1") == "http://proxy:3128"
    assert proxy_for("http://api.example.com/v1") is None
    assert proxy_for("https://localhost:8000/v1") is None
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert proxy_for("https://api.example.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1080")
    with pytest.raises(ConfigurationError, match="socks5"):
        proxy_for("https://api.other.com/v1")


def test_what_cannot_be_json_is_rejected() -> None:
    assert encode({"a": "é\ud800"}) == b'{"a":"\\u00e9\\ud800"}'
    assert encode({"a": "é"}) == '{"a":"é"}'.encode()
    for value in (float("nan"), float("inf"), object(), {1, 2}):
        with pytest.raises(Rejected):
            encode({"a": value})


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "http://a b/", "http://h:99999/", ""]
)
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not a usable base_url"):
        check_url(url)


def test_urls_lose_their_last_slash() -> None:
    assert check_url("http://host/v1/") == "http://host/v1"


def test_what_is_percent_encoded_in_a_path_is_sent_as_it_is() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.raw_path)
        return web.json_response({})

    async def use(url: str) -> None:
        client = HttpClient(f"{url}/bäse/a%2Fb/")
        for path in ("/model/a%3A1%2Fb/converse", "/models/x:stream?alt=sse"):
            await client.post(path, {})
        await client.close()

    asyncio.run(with_server(handler, use))
    base = "/b%C3%A4se/a%2Fb"
    assert seen == [f"{base}/model/a%3A1%2Fb/converse", f"{base}/models/x:stream?alt=sse"]


def test_a_login_is_made_ready_before_each_request_and_signs_what_is_sent() -> None:
    order: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        order.append((request.headers["X-Signed"], await request.text()))
        return web.json_response({})

    async def ready() -> None:
        order.append("ready")

    def sign(method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        order.append((method, url.rpartition("/")[2], body, headers["Content-Type"]))
        return {**headers, "X-Signed": "yes"}

    ask(handler, sign=sign, ready=ready)
    sent = '{"a":1}'
    assert order == ["ready", ("POST", "x", sent.encode(), "application/json"), ("yes", sent)]


def test_a_login_that_fails_is_the_requests_failure() -> None:
    async def ready() -> None:
        raise ConnectionFailed("No token.")

    with pytest.raises(ConnectionFailed, match="No token"):
        ask(answering("{}"), ready=ready)
