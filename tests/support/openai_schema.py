"""OpenAI's error shape, and the refusal of a request to /v1/chat/completions or /v1/completions in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.wire_schemas import fault_in


class InvalidRequest(Exception):
    """A 400: `body` is the error as OpenAI words it."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.body = error_body(message, "invalid_request_error", param, code)


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def validate(interface: str, body: Any, extra: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """`body`, if it fits the documented schema; raises InvalidRequest. extra: undocumented fields that this server takes."""
    if not isinstance(body, dict):
        raise InvalidRequest("We could not parse the JSON body of your request: expected an object.")
    known = {name: value for name, value in body.items() if name not in extra}
    if wrong := fault_in(f"openai-{interface}", known):
        raise InvalidRequest(wrong[1], wrong[0] or None)
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise InvalidRequest("Set either max_tokens or max_completion_tokens, not both.", "max_tokens")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise InvalidRequest("'stream_options' is only allowed when 'stream' is enabled.", "stream_options")
    return body
