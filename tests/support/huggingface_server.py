"""Hugging Face's router on loopback: `org/name[:provider]`, OpenAI's schema, errors in one word, a model that is loading.

Kinds of answer: "length", "eos", "reasoning", "empty", "loading", "broke", "error-event", "validation-event".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support import openai_stream
from support.openai_schema import InvalidRequest, error_body, validate
from support.strict_server import KEY, Refused, StrictServer, sse

PROVIDERS = ("cerebras", "groq", "together", "hf-inference", "fastest", "cheapest", "preferred")
_MODEL = re.compile(r"[\w.-]+/[\w.-]+(?::([\w-]+))?")
_EVENTS = {"error-event": "incomplete_generation", "validation-event": "validation"}


class HuggingFaceServer(StrictServer):
    """POST /v1/chat/completions."""

    base: ClassVar[str] = "/v1"

    def check(self, request: web.Request, body: Any) -> None:
        """Path, key, body, and a model with a provider that serves it."""
        if (request.method, request.path) != ("POST", "/v1/chat/completions") or request.query:
            raise Refused(404, "Not Found")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "Invalid credentials in Authorization header")
        try:
            validate("chat", body)
        except InvalidRequest as wrong:
            raise Refused(422, wrong.body["error"]["message"]) from None
        match = _MODEL.fullmatch(body["model"])
        if match is None or match[1] not in (None, *PROVIDERS):
            raise Refused(
                400, f"The requested model '{body['model']}' does not exist", code="model_not_found"
            )

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """The router's shapes: an object for an unknown model, one line for the rest."""
        if code == "model_not_found":
            return error_body(message, "invalid_request_error", "model", code)
        if code == "loading":
            return {"error": message, "estimated_time": 20.5}
        return {"error": "You have exceeded your monthly included credits." if status == 402 else message}

    def whole(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The completion."""
        if kind == "loading":
            raise Refused(503, f"Model {body['model']} is currently loading", code="loading")
        if kind == "broke":
            return {"error": "Incomplete generation", "error_type": "incomplete_generation"}
        message: dict[str, Any] = {"role": "assistant", "content": "" if kind == "empty" else self.answer}
        if kind == "reasoning":
            message["reasoning_content"] = "Hm. “Where”?"
        finish = {"length": "length", "eos": "eos_token"}.get(kind, "stop")
        usage = {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}
        return {
            "id": "c1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": body["model"].partition(":")[0],
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": usage,
        }

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The chunks."""
        if kind == "broke":
            kind = "error-event"
        if kind in _EVENTS:
            found = openai_stream.events(self.whole(body, ""), body)[:2]
            return found + sse([{"error": "It broke.", "error_type": _EVENTS[kind]}])
        return openai_stream.events(self.whole(body, kind), body)
