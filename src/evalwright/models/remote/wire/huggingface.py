"""Hugging Face's inference providers: OpenAI's chat by way of a router, with the words of the servers behind it.

A model is `org/name`, or `org/name:provider` for one provider; the router chooses where none is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.remote.http import Reply
from evalwright.models.remote.http_faults import error_for
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_chat import WIRE as CHAT
from evalwright.models.remote.wire.openai_chat import ChatGatherer, read_chat

_FINISHES = {"eos_token": "stop", "stop_sequence": "stop"}
_ERROR_TYPES = {"validation": 422, "overloaded": 503, "generation": 500, "incomplete_generation": 500}
"""What Hugging Face's own servers call an error, and the status that they send it with."""


def read_huggingface(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a chat completion."""
    _raise_error(reply.data, settings)
    found = read_chat(reply, request, settings)
    finish = _FINISHES.get(found.finish_reason)
    return replace(found, finish_reason=finish) if finish else found


def _raise_error(data: Any, settings: Settings) -> None:
    """Raise the error that a 200 or a chunk carries in words with a type of its own."""
    if isinstance(data, Mapping) and isinstance(data.get("error"), str):
        status = _ERROR_TYPES.get(str(data.get("error_type")), 500)
        raise error_for(settings.where, status, data["error"], key_source=settings.key_source)


class HuggingFaceGatherer(ChatGatherer):
    """The chunks of a streamed completion; an error may stand in place of a chunk."""

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk; `[DONE]` ends the answer."""
        _raise_error(data, self._settings)
        return super().add(event, data)


WIRE = replace(
    CHAT,
    name="huggingface",
    read=read_huggingface,
    gather=HuggingFaceGatherer,
    pasted="/chat/completions",
)
