"""Cohere's chat on loopback, version 2: the documented schema of requests, parts and typed events of replies.

Kinds of answer: "length", "stop", "tool", "empty", "toxic", "error", "timeout", "unmeasured", "error-event".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support.strict_server import KEY, Refused, StrictServer, check_schema, sse

_TEXT_PARTS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["type", "text"],
        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
        "additionalProperties": False,
    },
}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": {"anyOf": [{"type": "string", "minLength": 1}, _TEXT_PARTS]},
    },
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string"},
        "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
        "stream": {"type": "boolean"},
        "max_tokens": {"type": "integer", "minimum": 1},
        "temperature": {"type": "number", "minimum": 0},
        "p": {"type": "number", "minimum": 0.01, "maximum": 0.99},
        "k": {"type": "integer", "minimum": 0, "maximum": 500},
        "stop_sequences": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "seed": {"type": "integer", "minimum": 0},
        "frequency_penalty": {"type": "number", "minimum": 0, "maximum": 1},
        "presence_penalty": {"type": "number", "minimum": 0, "maximum": 1},
        "safety_mode": {"enum": ["CONTEXTUAL", "STRICT", "OFF"]},
        "response_format": {"type": "object"},
        "logprobs": {"type": "boolean"},
        "thinking": {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {"enum": ["enabled", "disabled"]},
                "token_budget": {"type": "integer", "minimum": 1},
            },
            "additionalProperties": False,
        },
        "priority": {"type": "integer"},
    },
    "additionalProperties": False,
}
_FINISHES = {
    "length": "MAX_TOKENS",
    "stop": "STOP_SEQUENCE",
    "tool": "TOOL_CALL",
    "toxic": "ERROR_TOXIC",
    "error": "ERROR",
    "timeout": "TIMEOUT",
}


class CohereServer(StrictServer):
    """POST /v2/chat."""

    base: ClassVar[str] = "/v2"
    rate_headers: ClassVar[Mapping[str, str]] = {"x-endpoint-monthly-call-limit": "1000"}

    def check(self, request: web.Request, body: Any) -> None:
        """Path, key, body."""
        if (request.method, request.path) != ("POST", "/v2/chat") or request.query:
            raise Refused(404, "the requested endpoint does not exist")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "invalid api token")
        check_schema(SCHEMA, body)
        if body["messages"][-1]["role"] not in ("user", "tool"):
            raise Refused(400, "invalid request: the last message must be of role user or tool")

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """Cohere's error shape."""
        return {"id": "0a1b", "message": message}

    def whole(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The reply."""
        thinks = (
            body.get("thinking", {}).get("type", "enabled" if "reasoning" in body["model"] else "")
            == "enabled"
        )
        content: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Hm. “Where”?"}] if thinks else []
        content.append({"type": "text", "text": self.answer})
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if kind in ("empty", "toxic"):
            message["content"] = []
        if kind == "tool":
            call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            message = {"role": "assistant", "tool_plan": "I will.", "tool_calls": [call]}
        usage: dict[str, Any] = {
            "billed_units": {"input_tokens": 5, "output_tokens": 18},
            "tokens": {"input_tokens": 71, "output_tokens": 20},
            "cached_tokens": 64,
        }
        if kind == "unmeasured":
            usage = {"billed_units": usage["billed_units"]}
        return {
            "id": "c14c",
            "message": message,
            "finish_reason": _FINISHES.get(kind, "COMPLETE"),
            "usage": usage,
        }

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The typed events."""
        whole = self.whole(body, kind)
        start = {
            "message": {
                "role": "assistant",
                "content": [],
                "tool_plan": "",
                "tool_calls": [],
                "citations": [],
            }
        }
        found: list[dict[str, Any]] = [{"type": "message-start", "id": whole["id"], "delta": start}]
        for index, part in enumerate(whole["message"].get("content", ())):
            name = part["type"]
            opened = {"message": {"content": {"type": name, name: ""}}}
            found.append({"type": "content-start", "index": index, "delta": opened})
            half = len(part[name]) // 2
            found.extend(
                {"type": "content-delta", "index": index, "delta": {"message": {"content": {name: piece}}}}
                for piece in (part[name][:half], part[name][half:])
            )
            found.append({"type": "content-end", "index": index})
        for index, call in enumerate(whole["message"].get("tool_calls", ())):
            found.append(
                {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}}
            )
            found.append({"type": "tool-call-end", "index": index})
        if kind == "error-event":
            return sse([*found, self.error(500, "It broke.", "", "")])
        end = {"finish_reason": whole["finish_reason"], "usage": whole["usage"]}
        if kind == "error":
            end["error"] = "It broke."
        found.append({"type": "message-end", "id": whole["id"], "delta": end})
        return sse(found, named=True)
