"""Decides which options of a request a provider's model supports, by its row and its wire format.

How long a model thinks has one mechanism: the levels of its row. `-M thinking=` (or `-M
reasoning_effort=`, the field's usual name) names one for every request; a request may name its own,
by a word (`reasoning_effort`) or a number of tokens (`reasoning_budget`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Embed, Generate, images_of
from evalwright.core.tools import TOOL_CHOICES
from evalwright.models.model_interface import IMAGES, TOOLS
from evalwright.models.remote.providers import Provider
from evalwright.models.remote.wire.format import (
    Settings,
    Wire,
    begins_the_answer,
    merge_bodies,
)
from evalwright.models.remote.wire.options import (
    NAMED_TOOL_CHOICE,
    TOOL_OPTIONS,
    nested,
)

_WITH_TEMPERATURE = ("top_k", "min_p", "top_logprobs")
"""Options that need a temperature; models that reason accept neither while they do."""


def supported_options(row: Provider, wire: Wire, *, own_server: bool) -> frozenset[str]:
    """Return the options that a model supports; `own_server` is a user's server of open models."""
    beyond = (
        frozenset(("num_beams", "length_penalty"))
        if own_server
        else wire.extensions.difference(row.takes)
    )
    thinking_levels = levels(row.thinking, wire.name)
    options = {
        *wire.options.keys() - beyond,
        *([IMAGES] if wire.images else ()),
        *(["reasoning_effort"] if thinking_levels.keys() - {"budget"} else ()),
        *(["reasoning_budget"] if "budget" in thinking_levels else ()),
    }
    if TOOLS in row.lacks:
        options = options.difference(TOOL_OPTIONS)
    return frozenset(options.difference(row.lacks))


def describe_unsupported(
    request: Generate, wire: Wire, row: Provider, name: str
) -> str | None:
    """Return a sentence on why an option's value is not supported; None if it is.

    Args:
        request: the request.
        wire: the model's format.
        row: the provider's row.
        name: the model's name, for the sentence.
    """
    takes_name = wire.names_tool and NAMED_TOOL_CHOICE not in row.lacks
    if request.tool_choice not in (None, *TOOL_CHOICES) and not takes_name:
        return (
            f"'{name}' cannot be told which tool to call: set tool_choice to"
            f" {', '.join(TOOL_CHOICES[:-1])} or {TOOL_CHOICES[-1]}, or offer only the"
            f" tool '{request.tool_choice}'."
        )
    wrong = {image.media_type for image in images_of(request)} - wire.images
    if wrong:
        allowed_types = ", ".join(sorted(wire.images))
        return (
            f"'{name}' does not take images of the type {min(wrong)} (it takes:"
            f" {allowed_types}): convert them."
        )
    most = wire.most_alternatives
    if (request.top_logprobs or 0) > most:
        return (
            f"'{name}' gives at most {most} alternatives to a token: set top_logprobs"
            f" to {most} or less."
        )
    if request.reasoning_effort is not None and request.reasoning_budget is not None:
        return (
            f"'{name}' takes reasoning_effort or reasoning_budget, not both: leave one"
            " of them out."
        )
    return None


def not_without_temperature(request: Generate) -> str | None:
    """Return the first option of a request that requires a temperature."""
    return next((name for name in _WITH_TEMPERATURE if name in request.options()), None)


def one_level(
    thinking: str | int | bool | None, reasoning_effort: str | None
) -> str | int | bool | None:
    """Return the thinking level in a user's arguments.

    Raises:
        ConfigurationError: there are two.
    """
    if thinking is not None and reasoning_effort is not None:
        raise ConfigurationError(
            "thinking and reasoning_effort name the same level: leave one out."
        )
    return reasoning_effort if thinking is None else thinking


def level_of(request: Generate | Embed) -> str | int | None:
    """Return the thinking level that a request asks for."""
    if not isinstance(request, Generate):
        return None
    return (
        request.reasoning_effort
        if request.reasoning_budget is None
        else request.reasoning_budget
    )


def with_prefill_fields(
    request: Generate | Embed, settings: Settings, row: Provider
) -> Settings:
    """Add the fields needed to continue a prefill; the user's own fields take precedence."""
    if (
        not row.prefill
        or not isinstance(request, Generate)
        or not begins_the_answer(request)
    ):
        return settings
    return replace(settings, extra_body=merge_bodies(row.prefill, settings.extra_body))


def thinking_fields(
    level: str | int | bool | None, row: Provider, wire: Wire, name: str
) -> Mapping[str, Any]:
    """Return a row's `body` to merge and `refuses` to omit for a thinking level.

    Raises:
        UsageError: the level is unknown.
    """
    row_levels = levels(row.thinking, wire.name)
    if level is None:
        return {}
    level_names = [word for word in row_levels if word != "budget"]
    if not level_names:
        raise ConfigurationError(
            f"No thinking switch is known for '{name}': set the provider's own field"
            " with extra_body."
        )
    if isinstance(level, int) and not isinstance(level, bool):
        if "budget" not in row_levels:
            raise UnknownName(
                "level of thinking",
                str(level),
                level_names,
                f"Known: {', '.join(level_names)}.",
            )
        body = nested(str(row_levels["budget"]), level)
        on = row_levels.get("on", {})
        return {**on, "body": merge_bodies(on.get("body", {}), body)}
    word = level_word(level)
    if word not in level_names:
        number = ", or a number of tokens" if "budget" in row_levels else ""
        raise UnknownName(
            "level of thinking",
            str(word),
            level_names,
            f"Known: {', '.join(level_names)}{number}.",
        )
    named: Mapping[str, Any] = row_levels[word]
    return named


def level_word(level: Any) -> Any:
    """Return a level as rows name it: "on" and "off" for true and false."""
    if isinstance(level, bool):
        return "on" if level else "off"
    return level


def levels(thinking: Mapping[str, Any], wire: str) -> Mapping[str, Any]:
    """Return a row's thinking levels for one wire format.

    Each word of `efforts` becomes a level, put where `effort` says. `effort` is one place in the
    body, or a table of places by wire format. With an effort "none" there is also "off".
    """
    by_level = {
        name: level
        for name, level in thinking.items()
        if name not in ("effort", "efforts")
    }
    effort_place = thinking.get("effort", "")
    effort_place = (
        effort_place.get(wire, "")
        if isinstance(effort_place, Mapping)
        else effort_place
    )
    for word in thinking.get("efforts", ()) if effort_place else ():
        by_level.setdefault(word, {"body": nested(effort_place, word)})
    if "none" in by_level:
        by_level.setdefault("off", by_level["none"])
    return by_level


def formats(provider: Provider) -> tuple[str, ...]:
    """Return the wire formats of a row; OpenAI's chat format brings its embeddings."""
    embeddings = ("openai-embeddings",) if "openai-chat" in provider.wires else ()
    return tuple(dict.fromkeys((*provider.wires, *embeddings)))
