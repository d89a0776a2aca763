"""Mistral's chat completions on loopback: strict about fields and the order of roles, its own errors and thinking chunks.

Kinds of answer: "length", "model-length", "error", "tool", "empty", "text" (content as text), "error-event".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support.strict_server import KEY, Refused, StrictServer, check_schema, sse

_TEXT = {"type": "string"}
_NUMBER = {"type": ["number", "null"]}
_ASSISTANT = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"const": "assistant"}, "content": _TEXT, "prefix": {"type": "boolean"}},
    "additionalProperties": False,
}
_OTHER = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["system", "user"]}, "content": _TEXT},
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": _TEXT,
        "messages": {"type": "array", "minItems": 1, "items": {"anyOf": [_ASSISTANT, _OTHER]}},
        "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 1.5},
        "top_p": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
        "max_tokens": {"type": ["integer", "null"], "minimum": 0},
        "stream": {"type": "boolean"},
        "stop": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "random_seed": {"type": ["integer", "null"], "minimum": 0},
        "response_format": {"type": "object"},
        "presence_penalty": _NUMBER,
        "frequency_penalty": _NUMBER,
        "n": {"const": 1},
        "safe_prompt": {"type": "boolean"},
        "prompt_mode": {"enum": ["reasoning", None]},
        "reasoning_effort": {"enum": ["none", "high", None]},
        "metadata": {"type": ["object", "null"]},
    },
    "additionalProperties": False,
}
_FINISHES = {"length": "length", "model-length": "model_length", "error": "error", "tool": "tool_calls"}


class MistralServer(StrictServer):
    """POST /v1/chat/completions."""

    base: ClassVar[str] = "/v1"
    rate_headers: ClassVar[Mapping[str, str]] = {
        "x-ratelimit-limit-req-minute": "60",
        "x-ratelimit-remaining-req-minute": "59",
        "x-ratelimit-limit-tokens-minute": "500000",
        "x-ratelimit-remaining-tokens-minute": "499000",
    }

    def check(self, request: web.Request, body: Any) -> None:
        """Path, key, body, the order of roles, greedy decoding."""
        if (request.method, request.path) != ("POST", "/v1/chat/completions") or request.query:
            raise Refused(404, "no Route matched with those values")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "Unauthorized")
        check_schema(SCHEMA, body, 422)
        last = body["messages"][-1]
        if last["role"] != "user" and not last.get("prefix"):
            words = "Expected last role User or Tool (or Assistant with prefix True) for serving"
            raise Refused(400, f"{words} but got {last['role']}", code="3230")
        if any(message.get("prefix") for message in body["messages"][:-1]):
            raise Refused(400, "Only the last message may have prefix True", code="3230")
        if body.get("temperature") == 0 and body.get("top_p") not in (None, 1):
            raise Refused(400, "top_p must be 1 when using greedy sampling.", code="3051")

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """Mistral's shapes: validation in a list, an unknown key in one word, the rest as an error object."""
        if status == 401:
            return {"detail": message}
        kind = {429: "rate_limited", 422: "invalid_request_error"}.get(status, "invalid_request")
        words: Any = message
        if status == 422:
            where = ["body", *filter(None, place.split("."))]
            words = {"detail": [{"type": "extra_forbidden", "loc": where, "msg": message, "input": None}]}
        return {"object": "error", "message": words, "type": kind, "param": None, "code": code or None}

    def whole(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The completion."""
        last = body.get("messages", [{}])[-1]
        content: Any = (last["content"] if last.get("prefix") else "") + self.answer
        if kind != "text" and (
            body["model"].startswith("magistral") or body.get("reasoning_effort") == "high"
        ):
            thought = {
                "type": "thinking",
                "thinking": [{"type": "text", "text": "Hm. “Where”?"}],
                "closed": True,
            }
            content = [thought, {"type": "text", "text": content}]
        message: dict[str, Any] = {"role": "assistant", "tool_calls": None, "content": content}
        if kind in ("empty", "tool"):
            message["content"] = ""
        if kind == "tool":
            message["tool_calls"] = [{"id": "t", "function": {"name": "f", "arguments": "{}"}}]
        return {
            "id": "c14c",
            "object": "chat.completion",
            "created": 1700000000,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": _FINISHES.get(kind, "stop")}],
            "usage": {
                "prompt_tokens": 30,
                "completion_tokens": 20,
                "total_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 16},
            },
        }

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The chunks; the last has the finish reason and the usage."""
        whole = self.whole(body, kind)
        head = {
            "id": whole["id"],
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": body["model"],
        }
        choice = whole["choices"][0]
        deltas: list[Any] = [{"role": "assistant", "content": ""}]
        content = choice["message"]["content"]
        if isinstance(content, list):
            deltas.append(
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm. “"}]}]}
            )
            deltas.append(
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Where”?"}]}]}
            )
            content = content[1]["text"]
        half = len(content) // 2
        deltas.extend({"content": piece} for piece in (content[:half], content[half:]))
        found: list[Any] = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        if kind == "error-event":
            return sse([*found, self.error(503, "It broke.", "", "1100")])
        last: dict[str, Any] = {"content": ""}
        if choice["message"]["tool_calls"]:
            last["tool_calls"] = choice["message"]["tool_calls"]
        end = [{"index": 0, "delta": last, "finish_reason": choice["finish_reason"]}]
        return sse([*found, {**head, "choices": end, "usage": whole["usage"]}, "[DONE]"])
