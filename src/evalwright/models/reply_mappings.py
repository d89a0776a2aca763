"""Replies that are written as mappings, in scripts, in recordings and by functions.

    {"text": "Let me look.", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}

The fields are those of a `Response`; `content` stands for `text`, as in OpenAI's messages, whose
form of calls is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ModelError
from evalwright.core.outcomes import LENGTH, TOOL_CALL, TOOL_CALLS
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall


def response_from_mapping(
    reply: Mapping[str, Any], offers_tools: bool | None = None
) -> Response:
    """Make the response that a mapping describes.

    Args:
        reply: fields of a response. `arguments` of calls are a mapping, or the text that a model
            would write.
        offers_tools: whether the request offered tools: calls of tools that were not offered are no
            answer, as from any other model. None if that is not known.

    Raises:
        ValueError: it describes none; the message says why.
    """
    fields = dict(reply)
    if "content" in fields:
        fields.setdefault("text", fields.pop("content") or "")
    fields.pop("role", None)
    listed = fields.pop("tool_calls", None) or ()
    if isinstance(listed, str | Mapping) or not hasattr(listed, "__iter__"):
        raise ValueError("`tool_calls` must be a list of calls")
    calls = tuple(_call_from(call) for call in listed)
    try:
        response = Response.from_dict(fields)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"it is no response: {error}") from None
    if not isinstance(response.text, str):
        raise ValueError(f"its text is a {type(response.text).__name__}")
    if not calls:
        reason = response.finish_reason or "stop"
        return replace(response, finish_reason=reason)
    if offers_tools is False:
        return replace(response, finish_reason=TOOL_CALL)
    reason = LENGTH if response.finish_reason == LENGTH else TOOL_CALLS
    return replace(response, tool_calls=calls, finish_reason=reason)


def reply_to(request: Request, reply: Mapping[str, Any], model_name: str) -> Response:
    """Make the response to a request that a mapping describes.

    Raises:
        ModelError: it describes none.
    """
    try:
        return response_from_mapping(reply, bool(getattr(request, "tools", ())))
    except ValueError as error:
        raise ModelError(
            f"'{model_name}' gave a mapping that is no reply: {error}."
        ) from None


def _call_from(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    function = call.get("function") if isinstance(call, Mapping) else None
    fields = function if isinstance(function, Mapping) else call
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        raise ValueError(
            "a call is a mapping with the `name` of a tool and `arguments`"
        )
    arguments = fields.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    identifier = call.get("id") or ""
    if not isinstance(identifier, str):
        raise ValueError("the `id` of a call is text")
    return ToolCall(fields["name"], arguments, identifier)
