"""Checks of a remote model's arguments: each returns the value to use, or raises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.text import printable
from evalwright.models.model_interface import Pacing

_DEFAULT_START_CONCURRENCY = 64
_MAX_START_CONCURRENCY = 512


def one_of(argument: str, value: str, allowed: Sequence[str]) -> str:
    """Check that a value is one of the allowed words."""
    if value not in allowed:
        raise ConfigurationError(
            f"The argument {argument} must be one of {', '.join(allowed)}, not '{value}'."
        )
    return value


def number(
    argument: str, value: float | None, *, low: float | None = None
) -> float | None:
    """Check for a finite number above `low`, or None."""
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ):
        raise ConfigurationError(
            f"The argument {argument} must be a number, not {value!r}."
        )
    if low is not None and value <= low:
        raise ConfigurationError(
            f"The argument {argument} must be a number above {low:g}, not {value!r}."
        )
    return value


def whole_number(
    argument: str, value: int | None, *, low: float | None = 0
) -> int | None:
    """Check for a whole number above `low`, or None."""
    checked = number(argument, value, low=low)
    if checked is not None and not isinstance(checked, int):
        raise ConfigurationError(
            f"The argument {argument} must be a whole number, not {value!r}."
        )
    return checked


def text(argument: str, value: str | None) -> str | None:
    """Check for text, or None."""
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(
            f"The argument {argument} must be text, not {value!r}."
        )
    return value


def flag(argument: str, value: bool | None) -> bool | None:
    """Check for true, false or None."""
    if value is not None and not isinstance(value, bool):
        raise ConfigurationError(
            f"The argument {argument} must be true or false, not {value!r}."
        )
    return value


def refuse_dot_segments(name: str, model: str) -> None:
    """Raise ConfigurationError for a model name that would lead to another path of the server.

    The API key would be sent there too.
    """
    if any(segment in (".", "..") for segment in re.split(r"[/\\]", unquote(model))):
        raise ConfigurationError(
            f"'{printable(name)}' is no model's name: '.' and '..' between slashes"
            " would lead to another path of the server. Write the name as the"
            " provider's list of models has it."
        )


def mapping(argument: str, value: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Check for a mapping, or JSON text of one."""
    if isinstance(value, str):
        try:
            value = from_json(value)
        except ValueError:
            value = ""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) for name in value
    ):
        raise ConfigurationError(
            f"The argument {argument} must be names with values: -M"
            f" {argument}.name=value, or a JSON object."
        )
    return dict(value)


def extra_body(value: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Check the fields to add to every request body.

    Fields that hold the request itself or the model are refused, because the record would be wrong.
    """
    fields = mapping("extra_body", value)
    for name in ("model", "messages", "prompt", "contents", "input", "n"):
        # a mapping under `input` may add fields to the request's own
        if name in fields and not isinstance(fields[name], Mapping):
            raise ConfigurationError(
                f"extra_body.{name} would replace what the task asks, of which model,"
                " or how often, and the record would not say so: leave it out. The"
                " model is in the model's name, the prompt in the task, and draws are"
                " the task's `answer.draws`."
            )
    return fields


def headers(argument: str, value: Mapping[str, str] | str | None) -> dict[str, str]:
    """Check headers and return them as text."""
    checked = {name: str(content) for name, content in mapping(argument, value).items()}
    for name, content in checked.items():
        if not (name + content).isascii() or not (name + content).isprintable():
            raise ConfigurationError(
                f"The header '{name}' has characters that are not allowed in a header."
            )
    return checked


def pacing(
    timeout: float,
    deadline: float,
    max_concurrency: int | None,
    max_attempts: int,
    most: int = 512,
    requests_per_minute: float | None = None,
) -> Pacing:
    """Make the pacing of requests to a remote model; times are in seconds.

    `most` is the number of requests at once if `max_concurrency` is not set. A number that is set
    is also where the pace starts, because the user knows what the server accepts.
    """
    limit = whole_number("max_concurrency", max_concurrency)
    return Pacing(
        max_concurrency=limit or most,
        start_concurrency=(
            min(limit, _MAX_START_CONCURRENCY)
            if limit
            else min(_DEFAULT_START_CONCURRENCY, most)
        ),
        timeout=number("timeout", timeout, low=0) or 1.0,
        deadline=number("deadline", deadline, low=0) or 1.0,
        max_attempts=whole_number("max_attempts", max_attempts) or 1,
        requests_per_minute=number("requests_per_minute", requests_per_minute, low=0),
    )
