"""A reply as OpenAI streams it: chunks of a few characters, the finish reason, the usage where
it was asked for, `[DONE]`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from support.openai_faults import emptied
from support.wire_schemas import error_body

KINDS = (
    "cut", "truncated", "invalid-json", "missing-field", "empty", "error-in-200", "still-writing", "still-silent",
)  # fmt: skip
"""The faults that a stream has in its own way."""
_CHARACTERS = 7


def events(reply: Mapping[str, Any], body: Mapping[str, Any]) -> list[bytes]:
    """The reply as server-sent events, for this request."""
    return [
        f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
        for chunk in chunks(reply, body)
    ] + [b"data: [DONE]\n\n"]


def chunks(reply: Mapping[str, Any], body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a chat completion or a completion."""
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    head = {name: reply[name] for name in ("id", "created", "model")}
    head["object"] = (
        "chat.completion.chunk"
        if reply["object"] == "chat.completion"
        else "text_completion"
    )
    choice = reply["choices"][0]
    parts_of_choice = _chat(choice) if "message" in choice else _text(choice)
    stream_chunks = [
        {**head, "choices": [{"index": 0, "logprobs": None, **part}]}
        for part in parts_of_choice
    ]
    if wants_usage:
        stream_chunks = [{**chunk, "usage": None} for chunk in stream_chunks]
        stream_chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return stream_chunks


def _chat(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = choice["message"]
    yield {
        "delta": {"role": "assistant", "content": "", "refusal": None},
        "finish_reason": None,
    }
    for name, value in message.items():
        if name != "role" and isinstance(value, str):
            for piece in _pieces(value):
                yield {"delta": {name: piece}, "finish_reason": None}
    yield {"delta": {}, **_ending(choice)}


def _text(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in _pieces(choice["text"]):
        yield {"text": piece, "finish_reason": None}
    yield {"text": "", **_ending(choice)}


def _ending(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Why the answer ended, and at what, where a reply of vLLM's or SGLang's says it."""
    return {
        name: choice[name]
        for name in ("finish_reason", "stop_reason", "matched_stop")
        if name in choice
    }


def _pieces(text: str) -> Iterator[str]:
    yield from (text[at : at + _CHARACTERS] for at in range(0, len(text), _CHARACTERS))


async def stream(
    request: web.Request,
    good: Mapping[str, Any],
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    kind: str | None,
) -> web.StreamResponse:
    """Answer `request` with a stream. kind: the fault that it has, of `KINDS`."""
    stream_events = events(emptied(good) if kind == "empty" else good, body)
    if kind in ("cut", "truncated"):
        stream_events = stream_events[: len(stream_events) // 2]
    elif kind in ("still-writing", "still-silent"):
        # The first event has the role, the second the beginning of the text.
        stream_events = stream_events[: 2 if kind == "still-writing" else 1]
        return await send(request, stream_events, headers, complete=True, then=3600)
    elif kind == "invalid-json":
        stream_events[1] = stream_events[1].replace(b"}\n", b"\n", 1)
    elif kind == "missing-field":
        stream_events = [b'data: {"id": "x"}\n\n', b"data: [DONE]\n\n"]
    elif kind == "error-in-200":
        error = error_body("Upstream overloaded.", "upstream", code="busy")
        stream_events = [*stream_events[:2], f"data: {json.dumps(error)}\n\n".encode()]
    return await send(request, stream_events, headers, complete=kind != "cut")


async def send(
    request: web.Request,
    parts: Sequence[bytes],
    headers: Mapping[str, str],
    *,
    complete: bool,
    then: float = 0.0,
) -> web.StreamResponse:
    """Send the parts of a stream. whole: end it as HTTP does. then: seconds until that."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", **headers}
    )
    await response.prepare(request)
    for part in parts:
        await response.write(part)
        await asyncio.sleep(0)
    if then:
        await asyncio.sleep(then)
    if complete:
        await response.write_eof()
    else:
        assert request.transport is not None
        request.transport.close()
    return response
