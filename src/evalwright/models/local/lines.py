"""Requests as JSON and back, whole: with the bytes of their images, which no record has."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evalwright.core.images import Image
from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Reward,
    RollingLogLikelihood,
)

_KINDS: Mapping[str, type[Request]] = {
    kind.ability: kind for kind in (Classify, Embed, Generate, LogLikelihood, Reward, RollingLogLikelihood)
}


def request_as_json(request: Request) -> dict[str, Any]:
    """A plain mapping that JSON can carry."""
    found = {one.name: getattr(request, one.name) for one in fields(request)}
    for name, value in found.items():
        if isinstance(value, tuple) and value and isinstance(value[0], Message):
            found[name] = [[turn.role, _content(turn)] for turn in value]
    return {"ability": request.ability, **found}


def request_from(data: Mapping[str, Any]) -> Request:
    """The inverse of `request_as_json`."""
    found = {name: value for name, value in data.items() if name != "ability"}
    for name, value in found.items():
        if name in ("prompt", "context") and not isinstance(value, str):
            found[name] = tuple(Message(role, _content_from(content)) for role, content in value)
        elif isinstance(value, list):
            found[name] = tuple(value)
    return _KINDS[data["ability"]](**found)


def _content(turn: Message) -> Any:
    if isinstance(turn.content, str):
        return turn.content
    return [
        part
        if isinstance(part, str)
        else [base64.b64encode(part.data).decode(), part.media_type, part.source]
        for part in turn.content
    ]


def _content_from(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return tuple(
        part if isinstance(part, str) else Image(base64.b64decode(part[0]), part[1], part[2])
        for part in content
    )
