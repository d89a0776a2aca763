"""OpenAI's embeddings, which most providers and local servers speak: a text goes out, its vector comes back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Embed
from evalwright.core.responses import Response
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.format import SAMPLING, Settings, Wire, not_documented, sound
from evalwright.models.remote.wire.openai_chat import read_usage, with_named_cost

_MOST_DIMENSIONS = 1_000_000
_SHOWN = 2


def embedding_payload(request: Embed, settings: Settings) -> dict[str, Any]:
    """The body: one text, and the model's extra fields (`dimensions`, `input_type`)."""
    return {"model": settings.model, "input": request.text, **settings.extra_body}


def read_embedding(reply: Reply, request: Embed, settings: Settings) -> Response:
    """The vector. Raises BadReply where there is not exactly one of finite numbers, or the error that a 200 carries."""
    data = sound(reply.data, settings)
    items = data.get("data")
    if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], Mapping):
        raise not_documented(settings, "exactly one embedding in data", _brief(data))
    model = data.get("model")
    response = Response(
        values=_vector(items[0].get("embedding"), data, settings),
        usage=replace(read_usage(data.get("usage")), output_tokens=0, reasoning_tokens=0),
        latency=reply.seconds,
        model=model if isinstance(model, str) else "",
        rate_limits=reply.rate_limits,
    )
    return with_named_cost(response, data, settings)


def _vector(values: Any, data: Mapping[str, Any], settings: Settings) -> tuple[float, ...]:
    if not isinstance(values, list) or not 0 < len(values) <= _MOST_DIMENSIONS:
        raise not_documented(settings, "data[0].embedding as a list of numbers", _brief(data))
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise not_documented(settings, "only numbers in data[0].embedding", _brief(data))
    try:
        vector = tuple(map(float, values))
    except OverflowError:
        vector = (math.inf,)
    if not all(map(math.isfinite, vector)):
        raise not_documented(settings, "finite numbers in data[0].embedding", _brief(data))
    return vector


def _brief(data: Any) -> Any:
    """The reply with long lists cut, for messages."""
    if isinstance(data, Mapping):
        return {name: _brief(value) for name, value in data.items()}
    return [_brief(value) for value in data[:_SHOWN]] if isinstance(data, list) else data


WIRE = Wire(
    name="openai-embeddings",
    path=lambda settings: "/embeddings",
    payload=embedding_payload,
    read=read_embedding,
    abilities=frozenset(("embed",)),
    lacks=frozenset(SAMPLING),
    names_limit=False,
    end="/embeddings",
)
