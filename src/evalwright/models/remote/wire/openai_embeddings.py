"""The wire format of OpenAI's embeddings, which most providers and local servers support."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Embed
from evalwright.core.responses import Usage
from evalwright.models.remote.wire.format import (
    SAMPLING,
    ReplyContent,
    Settings,
    Wire,
    not_documented,
    require_success,
)
from evalwright.models.remote.wire.openai_text import reply_usage

_MOST_DIMENSIONS = 1_000_000
_SHOWN = 2


def embedding_payload(request: Embed, settings: Settings) -> dict[str, Any]:
    """Build the request body: one text and the extra fields (`dimensions`, `input_type`)."""
    return {"model": settings.model, "input": request.text, **settings.extra_body}


def parse_embedding(data: Any, request: Embed, settings: Settings) -> ReplyContent:
    """Parse the vector.

    Raises:
        BadReply: there is not exactly one, of finite numbers.
    """
    rows = require_success(data, settings).get("data")
    if not isinstance(rows, list) or len(rows) != 1 or not isinstance(rows[0], Mapping):
        raise not_documented(
            settings, "exactly one embedding in data", _shorten_lists(data)
        )
    vector = _vector(rows[0].get("embedding"), data, settings)
    return ReplyContent(
        "", usage=_usage(data), model=data.get("model"), excused=True, values=vector
    )


def _usage(data: Any) -> Usage:
    return replace(reply_usage(data), output_tokens=0, reasoning_tokens=0)


def _vector(
    values: Any, data: Mapping[str, Any], settings: Settings
) -> tuple[float, ...]:
    if not isinstance(values, list) or not 0 < len(values) <= _MOST_DIMENSIONS:
        raise not_documented(
            settings, "data[0].embedding as a list of numbers", _shorten_lists(data)
        )
    if any(
        isinstance(value, bool) or not isinstance(value, int | float)
        for value in values
    ):
        raise not_documented(
            settings, "only numbers in data[0].embedding", _shorten_lists(data)
        )
    try:
        vector = tuple(map(float, values))
    except OverflowError:
        vector = (math.inf,)
    if not all(map(math.isfinite, vector)):
        raise not_documented(
            settings, "finite numbers in data[0].embedding", _shorten_lists(data)
        )
    return vector


def _shorten_lists(data: Any) -> Any:
    """Return the reply with long lists cut, for messages."""
    if isinstance(data, Mapping):
        return {name: _shorten_lists(value) for name, value in data.items()}
    return (
        [_shorten_lists(value) for value in data[:_SHOWN]]
        if isinstance(data, list)
        else data
    )


WIRE = Wire(
    name="openai-embeddings",
    path=lambda settings: "/embeddings",
    payload=embedding_payload,
    parse=parse_embedding,
    usage=_usage,
    abilities=frozenset(("embed",)),
    lacks=frozenset(SAMPLING),
    names_limit=False,
    end="/embeddings",
)
