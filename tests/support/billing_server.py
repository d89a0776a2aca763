"""A provider on loopback that goes wrong in every way that is known of, and keeps a bill of its
own.

    with running(BillingServer(lambda prompt, before: "empty" if before == 0 else "ok")) as server:
        ... server.url ... server.dollars() ...

`fate` names what becomes of a sending, by the prompt and how often it came before. What a fate
costs is in `BILLED`.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from aiohttp import web

Fate = Callable[[str, int], str]

IN = 12
OUT = 5
"""Tokens of every sending that is billed."""
PRICE = "1000/2000"
"""US dollars per million tokens, for --price: a sending costs 0.022."""
EACH = (IN * 1000 + OUT * 2000) / 1e6

TOLD = frozenset(
    [
        "ok", "empty", "no-choices", "wrong-types", "nameless", "truncated-after-usage", "cut-after-usage",
        "stopped-by-filter", "error-with-usage", "stream-cut-after-usage", "stream-empty", "html-with-usage",
    ]
)  # fmt: skip
"""Billed, and the reply says how much."""
UNTOLD = frozenset(
    [
        "hang", "reset", "truncated", "cut", "html", "garbage", "bad-gzip", "no-usage", "odd-usage",
        "stream-cut", "stream-garbage", "stream-error", "408", "502", "504", "524", "filtered",
    ]
)  # fmt: skip
"""Billed, and no reply says it."""
STATUS = (
    "400",
    "401",
    "403",
    "404",
    "408",
    "413",
    "422",
    "429",
    "500",
    "502",
    "503",
    "504",
    "524",
    "529",
)
WAITS: Mapping[str, str] = {
    "429-soon": "0.05",
    "429-day": "86400",
    "429-absurd": "1e300",
    "429-negative": "-5",
    "429-nan": "nan",
    "429-far-date": format_datetime(datetime(9999, 12, 31, tzinfo=UTC), usegmt=True),
    "429-broken-date": "Fri, 31 Dec 2026 23:59:99999999999999999999 GMT",
    "503-day": "86400",
}
"""Retry-After, by fate."""


@dataclass(frozen=True)
class Sending:
    """One request that came. billed: dollars."""

    prompt: str
    fate: str
    billed: float


class BillingServer:
    """answer: the text of a good reply, by the prompt."""

    def __init__(
        self,
        fate: Fate = lambda prompt, before: "ok",
        answer: Callable[[str], str] = lambda prompt: "7",
    ) -> None:
        self.fate = fate
        self.answer = answer
        self.sendings: list[Sending] = []
        self.received: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self.url = ""
        self.seconds = 0.0
        self._runner: web.AppRunner | None = None

    def dollars(self, fates: frozenset[str] | None = None) -> float:
        """The bill, of some fates or all."""
        return sum(
            sending.billed
            for sending in self.sendings
            if fates is None or sending.fate in fates
        )

    async def start(self) -> None:
        """Listen; `url` is then the base URL."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        fate = self.fate(prompt, self.received[prompt])
        self.received[prompt] += 1
        billed = EACH if fate in TOLD | UNTOLD else 0.0
        if fate == "filtered":
            billed = IN * 1000 / 1e6
        self.sendings.append(Sending(prompt, fate, billed))
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            return await self._reply(
                request, fate, good(self.answer(prompt)), body.get("stream") is True
            )
        finally:
            self.in_flight -= 1

    async def _reply(
        self, request: web.Request, fate: str, reply: dict[str, Any], streamed: bool
    ) -> web.StreamResponse:
        if fate == "hang":
            await asyncio.sleep(3600)
        if fate.startswith("stream-") or (streamed and fate in ("ok", "empty")):
            return await _stream(request, fate, reply)
        if fate in ("reset", "cut", "cut-after-usage"):
            return await _broken(request, fate, reply)
        if fate == "filtered":
            error = {"message": "The prompt was filtered.", "code": "content_filter"}
            return web.json_response({"error": error}, status=400)
        if fate.partition("-")[0] in STATUS:
            headers = {"Retry-After": WAITS[fate]} if fate in WAITS else {}
            error = {"message": "Wrong on purpose.", "type": "error"}
            return web.json_response(
                {"error": error}, status=int(fate[:3]), headers=headers
            )
        text = json.dumps(spoilt(fate, reply))
        if fate == "truncated":
            text = text[:20]
        elif fate == "truncated-after-usage":
            text = text[:-30]
        if fate == "bad-gzip":
            return web.Response(
                body=b"not gzip at all", headers={"Content-Encoding": "gzip"}
            )
        if fate == "garbage":
            text = "\x00\xff{]" * 20
        kind = (
            "text/html" if fate in ("html", "html-with-usage") else "application/json"
        )
        return web.Response(
            text="<p>Wait</p>" if fate == "html" else text, content_type=kind
        )


def good(text: str) -> dict[str, Any]:
    """A whole reply, its usage before its text."""
    return {
        "model": "m",
        "usage": {
            "prompt_tokens": IN,
            "completion_tokens": OUT,
            "total_tokens": IN + OUT,
        },
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
    }


def spoilt(fate: str, reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with what this fate does to it, for those that are still JSON."""
    choice = reply["choices"][0]
    match fate:
        case "empty":
            choice["message"]["content"] = ""
        case "stopped-by-filter":
            choice["finish_reason"] = "content_filter"
        case "no-choices":
            del reply["choices"]
        case "wrong-types":
            choice["message"] = ["not", "an", "object"]
        case "nameless":
            reply["choices"] = [[]]
        case "error-with-usage":
            reply["error"] = {"message": "The upstream broke off.", "code": 500}
        case "error-in-200":
            return {"error": {"message": "The upstream is busy.", "code": 503}}
        case "no-usage":
            del reply["usage"], reply["choices"]
        case "absurd-usage":
            reply["usage"] = {
                "prompt_tokens": 10**30,
                "completion_tokens": 1,
                "cost": 1e300,
            }
        case "odd-usage":
            reply["usage"] = {
                "prompt_tokens": "many",
                "completion_tokens": -3,
                "total_tokens": 1e300,
            }
            del reply["choices"]
    return reply


async def _broken(
    request: web.Request, fate: str, reply: dict[str, Any]
) -> web.StreamResponse:
    """A connection that ends before the reply does."""
    assert request.transport is not None
    text = json.dumps(reply)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(text)
    if fate == "reset":
        sock = request.transport.get_extra_info("socket")
        sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
        return web.Response()
    await response.prepare(request)
    await response.write(text[: 20 if fate == "cut" else len(text) - 30].encode())
    request.transport.close()
    return response


async def _stream(
    request: web.Request, fate: str, reply: dict[str, Any]
) -> web.StreamResponse:
    """The reply as server-sent events, as far as this fate goes."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    text = (
        ""
        if fate in ("empty", "stream-empty")
        else reply["choices"][0]["message"]["content"]
    )
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}
    ]
    if fate == "stream-garbage":
        events.append("{]")
    elif fate == "stream-error":
        events.append({"error": {"message": "Overloaded.", "code": 503}})
    elif fate != "stream-cut":
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        events.append({"choices": [], "usage": reply["usage"]})
        if fate != "stream-cut-after-usage":
            events.append("[DONE]")
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        await response.write(f"data: {data}\n\n".encode())
    assert request.transport is not None
    request.transport.close()
    return response
