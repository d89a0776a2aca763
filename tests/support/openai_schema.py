"""Checks a request to /v1/chat/completions or /v1/completions against OpenAI's documented schema, strictly.

A field that the documentation does not have, or a value of another type or range, is a 400 in OpenAI's error shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], str | None]
"""What is wrong with a value, or None."""


class InvalidRequest(Exception):
    """A 400: `body` is the error as OpenAI words it."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.body = error_body(message, "invalid_request_error", param, code)


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected a number, but got {type(value).__name__}"
        return None if low <= value <= high else f"must be between {low:g} and {high:g}"

    return check


def _integer(low: int, high: int = 2**63 - 1) -> Check:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"expected an integer, but got {type(value).__name__}"
        return None if low <= value <= high else f"must be between {low} and {high}"

    return check


def _is(*kinds: type) -> Check:
    def check(value: Any) -> str | None:
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return None
        return f"expected {' or '.join(kind.__name__ for kind in kinds)}, but got {type(value).__name__}"

    return check


def _nullable(inner: Check) -> Check:
    return lambda value: None if value is None else inner(value)


def _stop(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "expected a string or an array of strings"
    return None if 1 <= len(value) <= 4 else "expected between 1 and 4 stop sequences"


def _prompt(value: Any) -> str | None:
    return None if isinstance(value, str) else "this server takes one string as the prompt"


_ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


def _messages(value: Any) -> str | None:
    if not isinstance(value, list) or not value:
        return "expected a non-empty array of messages"
    for index, message in enumerate(value):
        if not isinstance(message, dict):
            return f"[{index}] is not an object"
        if unknown := set(message) - {"role", "content", "name", "refusal", "tool_calls", "tool_call_id"}:
            return f"[{index}] has unknown fields {sorted(unknown)}"
        if message.get("role") not in _ROLES:
            return f"[{index}].role is '{message.get('role')}'"
        content = message.get("content")
        if not isinstance(content, str) and not _is_text_parts(content):
            return f"[{index}].content is neither a string nor text parts"
    return None


def _is_text_parts(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(
            isinstance(part, dict)
            and set(part) == {"type", "text"}
            and part["type"] == "text"
            and isinstance(part["text"], str)
            for part in content
        )
    )


def _stream_options(value: Any) -> str | None:
    if not isinstance(value, dict) or set(value) - {"include_usage", "include_obfuscation"}:
        return "expected an object of include_usage and include_obfuscation"
    return None if all(isinstance(flag, bool) for flag in value.values()) else "expected booleans"


_SHARED: dict[str, Check] = {
    "model": _is(str),
    "max_tokens": _nullable(_integer(0)),
    "temperature": _nullable(_number(0, 2)),
    "top_p": _nullable(_number(0, 1)),
    "n": _nullable(_integer(1, 1)),
    "stop": _stop,
    "seed": _nullable(_integer(-(2**63))),
    "stream": _nullable(_is(bool)),
    "stream_options": _nullable(_stream_options),
    "presence_penalty": _nullable(_number(-2, 2)),
    "frequency_penalty": _nullable(_number(-2, 2)),
    "logit_bias": _nullable(_is(dict)),
    "user": _is(str),
}

_CHAT: dict[str, Check] = {
    **_SHARED,
    "messages": _messages,
    "max_completion_tokens": _nullable(_integer(1)),
    "logprobs": _nullable(_is(bool)),
    "top_logprobs": _nullable(_integer(0, 20)),
    "reasoning_effort": _nullable(_is(str)),
    "response_format": _is(dict),
    "metadata": _nullable(_is(dict)),
    "service_tier": _nullable(_is(str)),
    "store": _nullable(_is(bool)),
    "verbosity": _nullable(_is(str)),
    "safety_identifier": _is(str),
    "prompt_cache_key": _is(str),
    "tools": _is(list),
    "tool_choice": _is(str, dict),
    "parallel_tool_calls": _is(bool),
    "modalities": _nullable(_is(list)),
}

_COMPLETIONS: dict[str, Check] = {
    **_SHARED,
    "prompt": _prompt,
    "logprobs": _nullable(_integer(0, 5)),
    "echo": _nullable(_is(bool)),
    "suffix": _nullable(_is(str)),
    "best_of": _nullable(_integer(1, 1)),
}

_SCHEMAS = {"chat": (_CHAT, "messages"), "completions": (_COMPLETIONS, "prompt")}


def validate(interface: str, body: Any, extra: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """`body`, if it fits; raises InvalidRequest. extra: undocumented fields that this server takes."""
    if not isinstance(body, dict):
        raise InvalidRequest("We could not parse the JSON body of your request: expected an object.")
    schema, needed = _SCHEMAS[interface]
    for name in ("model", needed):
        if name not in body:
            raise InvalidRequest(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    for name, value in body.items():
        if name in extra:
            continue
        if name not in schema:
            raise InvalidRequest(f"Unrecognized request argument supplied: {name}", name, "unknown_parameter")
        if wrong := schema[name](value):
            raise InvalidRequest(f"Invalid value for '{name}': {wrong}.", name, "invalid_value")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise InvalidRequest("Set either max_tokens or max_completion_tokens, not both.", "max_tokens")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise InvalidRequest(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )
    return body
