"""Anthropic's messages interface on loopback, as documented: version header, key, schema, order of roles, replies, events.

Plans may name, besides what every server does: "refusal", "max-tokens", "context", "stop-sequence", "pause", "empty",
"thinking" (a redacted block among them), "cached", "error-in-200", and the documented errors of `FAULTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from support.wire_server import Asked, Refused, WireServer, first_wrong, sse

KEY = "sk-ant-api03-test-0123456789"


def error_body(kind: str, message: str) -> dict[str, Any]:
    """Anthropic's error shape."""
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }


def refused(status: int, kind: str, message: str, **headers: str) -> Refused:
    """A documented error."""
    return Refused(
        status, error_body(kind, message), {name.replace("_", "-"): value for name, value in headers.items()}
    )


_CACHE = {
    "type": ["object", "null"],
    "properties": {"type": {"const": "ephemeral"}, "ttl": {"enum": ["5m", "1h"]}},
}
_TEXT_BLOCK = {
    "type": "object",
    "properties": {
        "type": {"const": "text"},
        "text": {"type": "string", "minLength": 1},
        "cache_control": _CACHE,
        "citations": {"type": ["array", "null"]},
    },
    "required": ["type", "text"],
    "additionalProperties": False,
}
_DISPLAY = {"enum": ["summarized", "omitted", None]}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "model": {"type": "string", "minLength": 1},
        "max_tokens": {"type": "integer", "minimum": 1},
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": 100_000,
            "items": {
                "type": "object",
                "properties": {
                    "role": {"enum": ["user", "assistant"]},
                    "content": {
                        "oneOf": [
                            {"type": "string", "minLength": 1},
                            {"type": "array", "minItems": 1, "items": _TEXT_BLOCK},
                        ]
                    },
                },
                "required": ["role", "content"],
                "additionalProperties": False,
            },
        },
        "system": {"oneOf": [{"type": "string"}, {"type": "array", "items": _TEXT_BLOCK}]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "top_k": {"type": "integer", "minimum": 0},
        "stop_sequences": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
        "stream": {"type": "boolean"},
        "metadata": {"type": "object", "properties": {"user_id": {"type": ["string", "null"]}}},
        "service_tier": {"enum": ["auto", "standard_only"]},
        "inference_geo": {"type": ["string", "null"]},
        "cache_control": _CACHE,
        "output_config": {
            "type": "object",
            "properties": {
                "effort": {"enum": ["low", "medium", "high", "xhigh", "max", None]},
                "format": {"type": ["object", "null"]},
            },
            "additionalProperties": False,
        },
        "thinking": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": "enabled"},
                        "budget_tokens": {"type": "integer", "minimum": 1024},
                        "display": _DISPLAY,
                    },
                    "required": ["type", "budget_tokens"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"type": {"const": "adaptive"}, "display": _DISPLAY},
                    "required": ["type"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"type": {"const": "disabled"}},
                    "required": ["type"],
                    "additionalProperties": False,
                },
            ]
        },
        "tools": {"type": "array"},
        "tool_choice": {"type": "object"},
        "container": {"type": ["string", "object", "null"]},
    },
    "required": ["model", "max_tokens", "messages"],
    "additionalProperties": False,
}


def check_body(body: Any, schema: Mapping[str, Any] = SCHEMA, model: str = "") -> None:
    """Raise Refused for a body that does not fit the schema, or breaks a rule between its fields."""
    wrong = first_wrong(schema, body)
    if wrong is not None:
        raise refused(400, "invalid_request_error", ": ".join(part for part in wrong if part))
    model = body.get("model", model)
    thinking = body.get("thinking", {}).get("type", "disabled")
    last = body["messages"][-1]
    if body["messages"][0]["role"] != "user":
        raise refused(400, "invalid_request_error", 'messages: first message must use the "user" role')
    if last["role"] == "assistant":
        if thinking != "disabled" or is_new(model) or "4-6" in model:
            raise refused(
                400, "invalid_request_error", "This model does not support assistant message prefill."
            )
        if str(last["content"]) != str(last["content"]).rstrip():
            words = "messages: final assistant content cannot end with trailing whitespace"
            raise refused(400, "invalid_request_error", words)
    if is_new(model):
        for name in ("temperature", "top_p", "top_k"):
            if name in body:
                raise refused(400, "invalid_request_error", f"`{name}` is deprecated for this model.")
        if thinking == "enabled":
            raise refused(
                400, "invalid_request_error", '"thinking.type.enabled" is not supported for this model.'
            )
    if thinking == "enabled" and body["thinking"]["budget_tokens"] >= body["max_tokens"]:
        raise refused(
            400, "invalid_request_error", "`max_tokens` must be greater than `thinking.budget_tokens`."
        )
    if thinking != "disabled" and body.get("temperature", 1) != 1:
        words = "`temperature` may only be set to 1 when thinking is enabled."
        raise refused(400, "invalid_request_error", words)
    if "temperature" in body and "top_p" in body and any(part in model for part in ("4-1", "4-5", "4-6")):
        words = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        raise refused(400, "invalid_request_error", words)


def is_new(model: str) -> bool:
    """Whether a model takes no sampling parameters."""
    return any(part in model for part in ("4-7", "4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos"))


def message_of(body: Mapping[str, Any], kind: str | None, model: str) -> dict[str, Any]:
    """The documented reply. The text says the last turn; thinking is shown where it was asked for."""
    last = body["messages"][-1]["content"]
    last = last if isinstance(last, str) else "".join(block["text"] for block in last)
    content: list[dict[str, Any]] = [{"type": "text", "text": f"You said: {last} ✓"}]
    stop, sequence, details = "end_turn", None, None
    usage: dict[str, Any] = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 15,
        "service_tier": "standard",
    }
    if kind == "thinking" or body.get("thinking", {}).get("type", "disabled") != "disabled":
        content = [
            {"type": "thinking", "thinking": "Let me see. 思考", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
            *content,
        ]
        usage["output_tokens_details"] = {"thinking_tokens": 9}
    if kind == "refusal":
        content, stop = [], "refusal"
        details = {"type": "refusal", "category": "bio", "explanation": None}
    if kind in ("max-tokens", "context", "pause"):
        stop = {
            "max-tokens": "max_tokens",
            "context": "model_context_window_exceeded",
            "pause": "pause_turn",
        }[kind]
    if kind == "stop-sequence":
        stop, sequence = "stop_sequence", (body.get("stop_sequences") or ["END"])[0]
    if kind == "empty":
        content, usage["output_tokens"] = [], 3
    if kind == "cached":
        usage.update(cache_creation_input_tokens=100, cache_read_input_tokens=2000)
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": sequence,
        "stop_details": details,
        "usage": usage,
    }


def message_events(message: Mapping[str, Any]) -> list[bytes]:
    """The documented events of a streamed message."""
    usage = dict(message["usage"])
    ended = {"output_tokens": usage.pop("output_tokens")}
    if "output_tokens_details" in usage:
        ended["output_tokens_details"] = usage.pop("output_tokens_details")
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**opening, "usage": {**usage, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    for index, block in enumerate(message["content"]):
        events.extend(_block_events(index, block))
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    events.append({"type": "message_delta", "delta": delta, "usage": ended})
    events.append({"type": "message_stop"})
    return [sse(event, event["type"]) for event in events]


def _block_events(index: int, block: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    opening = dict(block)
    if kind in ("text", "thinking"):
        text = block[kind]
        half = len(text) // 2
        deltas = [{"type": f"{kind}_delta", kind: part} for part in (text[:half], text[half:])]
        opening[kind] = ""
    if kind == "thinking":
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        opening["signature"] = ""
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


class AnthropicServer(WireServer):
    """POST /v1/messages."""

    ROOT = "/v1"
    FAULTS: ClassVar[Mapping[str, Refused]] = {
        "400": refused(
            400, "invalid_request_error", "max_tokens: 99999 > 8192, which is the maximum allowed."
        ),
        "credit": refused(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
        ),
        "401": refused(401, "authentication_error", "invalid x-api-key"),
        "402": refused(402, "billing_error", "There is an issue with your billing."),
        "403": refused(403, "permission_error", "Your API key does not have permission to use this model."),
        "404": refused(404, "not_found_error", "model: claude-nothing"),
        "413": refused(413, "request_too_large", "Request exceeds the maximum size"),
        "429": refused(
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute.",
            retry_after="7",
            anthropic_ratelimit_requests_limit="50",
            anthropic_ratelimit_requests_remaining="0",
            anthropic_ratelimit_requests_reset="2020-01-01T00:00:00Z",
        ),
        "500": refused(500, "api_error", "Internal server error"),
        "504": refused(504, "timeout_error", "Request timed out"),
        "529": refused(529, "overloaded_error", "Overloaded"),
    }

    def unparsable(self) -> Refused:
        return refused(400, "invalid_request_error", "The request body is not valid JSON")

    def check(self, asked: Asked) -> None:
        if (asked.method, asked.path) != ("POST", "/v1/messages"):
            raise refused(404, "not_found_error", "Not found")
        # The official library of 2026 sends the key as a bearer; the documented header is x-api-key.
        sent = asked.headers.get("x-api-key") or asked.headers.get("Authorization", "").removeprefix(
            "Bearer "
        )
        if sent != KEY:
            raise refused(401, "authentication_error", "invalid x-api-key")
        if asked.headers.get("anthropic-version") != "2023-06-01":
            raise refused(400, "invalid_request_error", "anthropic-version: header is required")
        if asked.query:
            raise refused(400, "invalid_request_error", f"unexpected query: {dict(asked.query)}")
        check_body(asked.body)

    def reply(self, asked: Asked, kind: str | None) -> Any:
        if kind == "error-in-200":
            return error_body("overloaded_error", "Overloaded")
        return message_of(asked.body, kind, asked.body["model"])

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def frames(self, reply: Any, asked: Asked) -> list[bytes]:
        return message_events(reply)

    def error_frame(self) -> bytes:
        return sse(error_body("overloaded_error", "Overloaded"), "error")
