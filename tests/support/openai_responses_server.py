"""OpenAI's responses interface on loopback: the documented schema of requests, the documented items and events of replies.

Kinds of answer: "length", "filter", "refusal", "empty", "failed", "failed-rate", "failed-policy", "error-event".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support.openai_schema import error_body
from support.strict_server import KEY, Refused, StrictServer, check_schema, sse

EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"]
_NULLABLE_TEXT = {"type": ["string", "null"]}
_PART = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"enum": ["input_text", "output_text"]}, "text": {"type": "string"}},
    "additionalProperties": False,
}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "type": {"const": "message"},
        "role": {"enum": ["user", "assistant", "system", "developer"]},
        "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": _PART, "minItems": 1}]},
    },
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input"],
    "properties": {
        "model": {"type": "string"},
        "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": _MESSAGE, "minItems": 1}]},
        "instructions": _NULLABLE_TEXT,
        "max_output_tokens": {"type": ["integer", "null"], "minimum": 16},
        "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
        "top_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "store": {"type": ["boolean", "null"]},
        "stream": {"type": ["boolean", "null"]},
        "reasoning": {
            "type": ["object", "null"],
            "properties": {
                "effort": {"enum": [*EFFORTS, None]},
                "summary": {"enum": ["auto", "concise", "detailed", None]},
            },
            "additionalProperties": False,
        },
        "text": {
            "type": "object",
            "properties": {
                "verbosity": {"enum": ["low", "medium", "high", None]},
                "format": {"type": "object"},
            },
            "additionalProperties": False,
        },
        "metadata": {"type": ["object", "null"]},
        "include": {"type": ["array", "null"]},
        "service_tier": _NULLABLE_TEXT,
        "truncation": {"enum": ["auto", "disabled", None]},
        "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
    },
    "additionalProperties": False,
}
_FAILURES = {
    "failed": ("server_error", "The model failed."),
    "failed-rate": ("rate_limit_exceeded", "Slow down."),
    "failed-policy": ("bio_policy", "Not this."),
}


class ResponsesServer(StrictServer):
    """POST /v1/responses."""

    base: ClassVar[str] = "/v1"
    rate_headers: ClassVar[Mapping[str, str]] = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29000",
        "x-ratelimit-reset-tokens": "2s",
    }

    def check(self, request: web.Request, body: Any) -> None:
        """Path, key, body."""
        if (request.method, request.path) != ("POST", "/v1/responses") or request.query:
            raise Refused(404, f"Invalid URL ({request.method} {request.path})")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(
                401,
                f"Incorrect API key provided: {request.headers.get('Authorization')}",
                code="invalid_api_key",
            )
        check_schema(SCHEMA, body)

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """OpenAI's error shape."""
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return error_body(message, kind, place or None, code or None)

    def whole(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The response object."""
        effort = (body.get("reasoning") or {}).get("effort")
        wants_summary = bool((body.get("reasoning") or {}).get("summary"))
        status, details = "completed", None
        if kind in ("length", "filter"):
            status = "incomplete"
            details = {"reason": {"length": "max_output_tokens", "filter": "content_filter"}[kind]}
        error = None
        if kind in _FAILURES:
            status, (code, message) = "failed", _FAILURES[kind]
            error = {"code": code, "message": message}
        return {
            "id": "resp_1", "object": "response", "created_at": 1700000000, "status": status, "error": error,
            "incomplete_details": details, "instructions": body.get("instructions"), "metadata": {},
            "model": f"{body['model']}-2026-01-01", "output": self._output(kind, wants_summary), "parallel_tool_calls": True,
            "temperature": body.get("temperature"), "tool_choice": "auto", "tools": [], "top_p": body.get("top_p"),
            "max_output_tokens": body.get("max_output_tokens"), "previous_response_id": None,
            "reasoning": {"effort": effort, "summary": None}, "store": body.get("store"),
            "text": {"format": {"type": "text"}}, "truncation": "disabled",
            "usage": None if status == "failed" else {
                "input_tokens": 30, "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 0},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 12}, "total_tokens": 50,
            },
        }  # fmt: skip

    def _output(self, kind: str, wants_summary: bool) -> list[dict[str, Any]]:
        if kind in _FAILURES:
            return []
        texts = ("**Places**", "It is a city.") if wants_summary else ()
        summary = [{"type": "summary_text", "text": text} for text in texts]
        items: list[dict[str, Any]] = [{"id": "rs_1", "type": "reasoning", "summary": summary}]
        if kind == "empty":
            return []
        if kind == "length":
            return items
        part: dict[str, Any] = {"type": "output_text", "text": self.answer, "annotations": [], "logprobs": []}
        if kind == "refusal":
            part = {"type": "refusal", "refusal": "I cannot."}
        message = {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
        return [*items, message]

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The events of a stream, with their names and numbers."""
        whole = self.whole(body, kind)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None}
        found: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for place, item in enumerate(whole["output"]):
            found.append(
                {
                    "type": "response.output_item.added",
                    "output_index": place,
                    "item": {**item, "content": []} if item["type"] == "message" else item,
                }
            )
            if item["type"] == "message" and item["content"][0]["type"] == "output_text":
                here = {"item_id": item["id"], "output_index": place, "content_index": 0}
                half = len(self.answer) // 2
                found.extend(
                    {"type": "response.output_text.delta", **here, "delta": piece, "logprobs": []}
                    for piece in (self.answer[:half], self.answer[half:])
                )
                found.append(
                    {"type": "response.output_text.done", **here, "text": self.answer, "logprobs": []}
                )
            found.append({"type": "response.output_item.done", "output_index": place, "item": item})
        if kind == "error-event":
            found.append({"type": "error", "code": "server_error", "message": "It broke.", "param": None})
        else:
            found.append({"type": f"response.{whole['status']}", "response": whole})
        return sse([{**event, "sequence_number": number} for number, event in enumerate(found)], named=True)
