"""What goes wrong on purpose: which request fails, how often, and how."""

from __future__ import annotations

import asyncio
import json
import random
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from aiohttp import web

from support.wire_schemas import error_body

KINDS = (
    "429", "429-retry-after", "429-retry-after-ms", "429-date", "insufficient-quota", "500", "502", "503",
    "504", "529", "408", "400", "filtered", "401", "403", "404", "reset", "cut", "truncated", "invalid-json",
    "missing-field", "content-type", "empty", "error-in-200", "redirect", "hang", "too-long", "still-writing", "still-silent",
)  # fmt: skip

RANDOM_KINDS = (
    "429",
    "429-retry-after",
    "500",
    "reset",
    "truncated",
    "empty",
    "content-type",
    "hang",
)
"""The mix of `--faults RATE`."""

Script = Callable[[Mapping[str, Any], int], str | None]
"""(request body, how often this content was asked before) -> a kind, or None for a good answer."""


@dataclass
class Faults:
    """rate: share of askings that fail, spread evenly over `kinds`, decided by seed, content and
    how often it was asked before, so the order of arrival does not matter. most: askings of one
    content that fail at the most. script: goes first. filtered: status and body of the fault of
    that name.
    """

    rate: float = 0.0
    kinds: Sequence[str] = RANDOM_KINDS
    seed: int = 0
    most: int = 3
    script: Script | None = None
    retry_after: float = 1.0
    filtered: tuple[int, Any] = (
        400,
        error_body("The prompt was filtered.", "invalid", code="content_filter"),
    )

    def choose(self, content: str, body: Mapping[str, Any], before: int) -> str | None:
        """The kind of fault for this asking, or None."""
        if self.script is not None and (fault := self.script(body, before)):
            if fault not in KINDS:
                raise ValueError(f"no such fault: {fault}")
            return fault
        if not self.rate or before >= self.most:
            return None
        dice = random.Random(f"{self.seed} {content} {before}")
        return dice.choice(list(self.kinds)) if dice.random() < self.rate else None


def rules(text: str) -> Script:
    """A script from JSON: `[{"match": "substring of the body", "fault": "500", "times": 2},
    ...]`; times null = always.
    """
    script_rules = json.loads(text)

    def script(body: Mapping[str, Any], before: int) -> str | None:
        words = json.dumps(body, ensure_ascii=False)
        for rule in script_rules:
            if rule.get("match", "") in words and (
                rule.get("times") is None or before < rule["times"]
            ):
                return str(rule["fault"])
        return None

    return script


_STATUS: dict[str, tuple[int, str, str | None]] = {
    "400": (400, "The request is wrong on purpose.", None),
    "401": (401, "Incorrect API key provided: {key}.", "invalid_api_key"),
    "403": (403, "You are not allowed to use this model.", None),
    "404": (
        404,
        "The model does not exist or you do not have access to it.",
        "model_not_found",
    ),
    "408": (408, "Request timed out.", None),
    "500": (
        500,
        "The server had an error while processing your request.",
        "server_error",
    ),
    "502": (502, "Bad gateway.", None),
    "503": (503, "The engine is currently overloaded.", None),
    "504": (504, "Gateway timeout.", None),
    "529": (529, "Overloaded.", "overloaded_error"),
    "insufficient-quota": (
        429,
        "You exceeded your current quota.",
        "insufficient_quota",
    ),
}


async def misbehave(
    kind: str, request: web.Request, good: Mapping[str, Any], faults: Faults
) -> web.StreamResponse:
    """Answer `request` with the fault. good: the answer that a healthy server would give."""
    if kind in _STATUS:
        status, message, code = _STATUS[kind]
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return web.json_response(
            error_body(message.format(key=key), code or "error", code=code),
            status=status,
        )
    if kind == "filtered":
        return web.json_response(faults.filtered[1], status=faults.filtered[0])
    if kind.startswith("429"):
        body = error_body(
            "Rate limit reached for requests.", "requests", code="rate_limit_exceeded"
        )
        return web.json_response(
            body, status=429, headers=_retry_headers(kind, faults.retry_after)
        )
    if kind == "too-long":
        message_text = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
        return web.json_response(
            error_body(message_text, "invalid", code="context_length_exceeded"),
            status=400,
        )
    if kind in ("hang", "still-writing", "still-silent"):
        await asyncio.sleep(3600)
    if kind == "reset":
        return _reset(request)
    text = json.dumps(good)
    if kind == "cut":
        return await _cut(request, text)
    if kind == "truncated":
        return web.Response(
            text=text[: len(text) * 2 // 3], content_type="application/json"
        )
    if kind == "invalid-json":
        return web.Response(
            text=text.replace(":", ";", 1), content_type="application/json"
        )
    if kind == "content-type":
        return web.Response(
            text="<html><body>Please wait</body></html>", content_type="text/html"
        )
    if kind == "missing-field":
        return web.json_response(
            {name: value for name, value in good.items() if name != "choices"}
        )
    if kind == "error-in-200":
        return web.json_response(
            error_body("Upstream overloaded.", "upstream", code="busy")
        )
    if kind == "redirect":
        return web.Response(
            status=307, headers={"Location": "http://example.invalid/v1"}
        )
    assert kind == "empty", kind
    return web.json_response(emptied(good))


def _retry_headers(kind: str, seconds: float) -> dict[str, str]:
    if kind == "429-retry-after":
        return {"Retry-After": f"{seconds:g}"}
    if kind == "429-retry-after-ms":
        return {"retry-after-ms": f"{seconds * 1000:g}"}
    if kind == "429-date":
        return {"Retry-After": formatdate(time.time() + seconds, usegmt=True)}
    return {}


def _reset(request: web.Request) -> web.StreamResponse:
    """Close the socket with RST in place of an answer."""
    assert request.transport is not None
    sock = request.transport.get_extra_info("socket")
    sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
    return web.Response()


async def _cut(request: web.Request, text: str) -> web.StreamResponse:
    """Promise the whole body, send half, close."""
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": str(len(text))}
    )
    await response.prepare(request)
    await response.write(text[: len(text) // 2].encode())
    assert request.transport is not None
    request.transport.close()
    return response


def emptied(good: Mapping[str, Any]) -> dict[str, Any]:
    """The reply without its content."""
    body: dict[str, Any] = json.loads(json.dumps(good))
    choice = body["choices"][0]
    choice["finish_reason"] = "stop"
    if "message" in choice:
        choice["message"]["content"] = ""
    else:
        choice["text"] = ""
        choice["logprobs"] = None
    body["usage"]["completion_tokens"] = 0
    return body
