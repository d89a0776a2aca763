"""A real proxy in a thread of its own, and a small client for it that can do what no library does."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.engine.memory import MemoryStore
from evalwright.engine.opening import open_store
from evalwright.engine.store import Store
from evalwright.evaluation.budgets import BudgetTerms
from evalwright.models.model_interface import EVERY_OPTION, Model, RemoteModel
from evalwright.proxy.serving import Listener, Plan, State, serve
from evalwright.proxy.tokens import Access

TOKEN = "the-token-of-these-tests"
SECONDS = 60.0
"""Of patience, for a loaded machine."""


class Sampler(RemoteModel):
    """A model whose answers count up: a sample never comes twice. `reply` overrides the answer,
    `gate` holds answers back.
    """

    def __init__(self, name: str = "test/sampler") -> None:
        self.name = name
        self.abilities = frozenset(("generate", "chat"))
        self.carries = EVERY_OPTION - {"generation_arguments"}
        self.fingerprint = f"sampler {name}"
        self.asked: list[Request] = []
        self.reply: Response | Exception | None = None
        self.gate: threading.Event | None = None

    async def answer(self, request: Request) -> Response:
        self.asked.append(request)
        number = len(self.asked)
        while self.gate is not None and not self.gate.is_set():
            await asyncio.sleep(0.005)
        if isinstance(self.reply, Exception):
            raise self.reply
        usage = Usage(10, 5)
        return self.reply or Response(
            f"sample {number}", finish_reason="stop", usage=usage
        )


@dataclass
class Reply:
    """What came back: status, headers by lower-case name, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The text of an answer, in any of the formats."""
        reply = self.json
        if "choices" in reply:
            choice = reply["choices"][0]
            return str(
                choice["message"]["content"] if "message" in choice else choice["text"]
            )
        if "output" in reply:
            return str(reply["output"][-1]["content"][0]["text"])
        return str(reply["content"][-1]["text"])

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The events of a stream: name and data."""
        events = []
        for block in self.body.decode().split("\n\n"):
            fields = dict(
                line.split(": ", 1)
                for line in block.split("\n")
                if line and not line.startswith(":")
            )
            if fields:
                data = fields["data"]
                events.append(
                    (
                        fields.get("event", ""),
                        data if data == "[DONE]" else json.loads(data),
                    )
                )
        return events


@dataclass
class Proxy:
    """A running proxy."""

    port: int
    said: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    failure: BaseException | None = None

    def send(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "POST",
        token: str | None = TOKEN,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        sent = {"Content-Type": "application/json"} if method == "POST" else {}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, content, {**sent, **(headers or {})})
            reply = connection.getresponse()
            named = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, named, reply.read())
        finally:
            connection.close()

    def chat(self, text: str = "hello", trajectory: str = "a", **fields: Any) -> Reply:
        """Send a chat completion, within a trajectory or, with "", without."""
        before = f"/t/{trajectory}" if trajectory else ""
        return self.send(f"{before}/v1/chat/completions", chat_body(text, **fields))

    def raw(self, content: bytes, *, closes: bool = True) -> bytes:
        """Send bytes as they are, and return the first reply, or what comes until the end."""
        with self.connect() as connection:
            received = b""
            try:
                connection.sendall(content)
                if closes:
                    connection.shutdown(socket.SHUT_WR)
                while not _is_whole(received) and (piece := connection.recv(65536)):
                    received += piece
            except (TimeoutError, ConnectionError):
                pass
            return received

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)


def _is_whole(reply: bytes) -> bool:
    """Whether a reply with a length has come to its end."""
    head, end, body = reply.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
    return bool(end) and length is not None and len(body) >= int(length[1])


def chat_body(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """The body of a chat completion at temperature 1."""
    return {
        "model": "test/sampler",
        "messages": [{"role": "user", "content": text}],
        "temperature": 1,
        **fields,
    }


def raw_request(
    body: Any, path: str = "/t/a/v1/chat/completions", **headers: str
) -> bytes:
    """The bytes of a request to a proxy whose port is put in place of PORT."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {
        "Host": "127.0.0.1:PORT",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    return (
        f"POST {path} HTTP/1.1\r\n".encode()
        + "\r\n".join([*lines, "", ""]).encode()
        + content
    )


@contextmanager
def running_proxy(
    *models: Model,
    home: Path | None = None,
    store: Store | None = None,
    access: Mapping[str, Access] | None = None,
    **settings: Any,
) -> Iterator[Proxy]:
    """A proxy in front of models, with the store of a home folder or one in memory."""
    proxy_store = store
    if proxy_store is None:  # an empty store is false
        proxy_store = MemoryStore() if home is None else open_store(home)
    budget: BudgetTerms | None = settings.pop("budget", None)
    plan = Plan(
        models, access or {TOKEN: Access("test")}, TOKEN, budget=budget, **settings
    )
    proxy = Proxy(0)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    tasks: list[asyncio.Task[int]] = []

    def started(address: str) -> None:
        proxy.port = int(address.rpartition(":")[2])
        ready.set()

    async def work() -> None:
        listener = Listener(proxy.said.append, started, proxy.states.append)
        tasks.append(asyncio.ensure_future(serve(plan, proxy_store, listener)))
        try:
            await tasks[0]
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            proxy.failure = error
        finally:
            ready.set()

    thread = threading.Thread(
        target=lambda: loop.run_until_complete(work()), daemon=True
    )
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(SECONDS)
        assert not thread.is_alive()
        loop.close()
        if store is None:
            proxy_store.close()


def texts(replies: Sequence[Reply]) -> list[str]:
    """The texts of answers."""
    return [reply.text for reply in replies]


def tool_response() -> Response:
    """A reply with two calls, one of them malformed, and what a provider wants back."""
    return Response(
        "",
        reasoning="I need the weather.",
        finish_reason="tool_calls",
        usage=Usage(10, 5),
        tool_calls=(
            ToolCall("weather", '{"city": "Łódź"}', "call_1"),
            ToolCall("weather", '{"city": ', "call_2"),
        ),
        provider_content='{"content":[1],"format":"test"}',
    )


def last_prompt(model: Sampler) -> Any:
    """The turns that a model was asked last."""
    request = model.asked[-1]
    assert isinstance(request, Generate)
    return request.prompt
