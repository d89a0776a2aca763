"""Options of wire formats beyond plain sampling: body fields, images, log-probabilities of tokens.

Each format has a table from an option's name to its fields in the body. An option that is not in it
is refused before anything is sent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from evalwright.core.images import Image
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import TokenLogProb
from evalwright.core.tools import TOOL_CHOICES, ToolDefinition

Options = Mapping[str, Callable[[Any], Mapping[str, Any]]]
"""By an option's name: turns its value into fields of the body, at their places."""
PartOf = Callable[[Part], Mapping[str, Any]]

ALL_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
SCHEMA_NAME = "answer"
"""The name of a schema, for APIs that require one."""


def nested(place: str, value: Any) -> Any:
    """Nest `value` at a dotted place: {"a": {"b": value}} for "a.b"."""
    for step in reversed(place.split(".")):
        value = {step: value}
    return value


def at_place(place: str) -> Callable[[Any], Mapping[str, Any]]:
    """Make an option that is sent unchanged at one place."""
    return lambda value: nested(place, value)


def fields_of(request: Generate, options: Options) -> list[Mapping[str, Any]]:
    """Return the fields of the options that a request uses."""
    return [
        options[name](value)
        for name, value in request.options().items()
        if name in options
    ]


def _openai_logprobs(alternatives: int) -> Mapping[str, Any]:
    return {
        "logprobs": True,
        **({"top_logprobs": alternatives} if alternatives else {}),
    }


def _openai_schema(schema: str) -> Mapping[str, Any]:
    named = {"name": SCHEMA_NAME, "strict": True, "schema": json.loads(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


@lru_cache(maxsize=256)  # all samples of a task mostly offer the same tools
def openai_tools(tools: tuple[ToolDefinition, ...]) -> Mapping[str, Any]:
    """Return the field of chat completions with definitions of tools, which must not be changed."""
    return {
        "tools": [{"type": "function", "function": tool.as_dict()} for tool in tools]
    }


def openai_tool_choice(tool_choice: str) -> Mapping[str, Any]:
    """Return the field of chat completions with a choice among the tools."""
    if tool_choice in TOOL_CHOICES:
        return {"tool_choice": tool_choice}
    return {"tool_choice": {"type": "function", "function": {"name": tool_choice}}}


TOOL_OPTIONS = ("tools", "tool_choice", "parallel_tool_calls")
"""Options of a request that offers tools."""
NAMED_TOOL_CHOICE = "named_tool_choice"
"""The word of a row's `lacks` for the choice of one tool by its name."""
OPENAI_TOOLS: Options = {
    "tools": openai_tools,
    "tool_choice": openai_tool_choice,
    "parallel_tool_calls": at_place("parallel_tool_calls"),
}
SAMPLERS: Options = {
    "top_k": at_place("top_k"),
    "min_p": at_place("min_p"),
    # The server keeps as many hypotheses as answers are requested; the first answer is the best.
    "num_beams": lambda beams: {"use_beam_search": True, "n": beams},
    "length_penalty": at_place("length_penalty"),
}
"""Options that servers of open models add to OpenAI's fields."""
OPENAI_CHAT: Options = {
    **SAMPLERS,
    **OPENAI_TOOLS,
    "top_logprobs": _openai_logprobs,
    "json_schema": _openai_schema,
}
OPENAI_COMPLETIONS: Options = {**SAMPLERS, "top_logprobs": at_place("logprobs")}


def openai_part(part: Part) -> Mapping[str, Any]:
    """Return a part of a message of chat completions."""
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part.data_url()}}
    return {"type": "text", "text": part}


def content(turn: Message, part_of: PartOf) -> Any:
    """Return a turn's content: text as it is, parts in the format's form, no empty texts."""
    return turn.content if isinstance(turn.content, str) else parts(turn, part_of)


def parts(turn: Message, part_of: PartOf) -> list[Mapping[str, Any]]:
    """Return a turn's parts in the format's form, a single text as one part."""
    nonempty = [part for part in turn.parts if part != ""]
    return [part_of(part) for part in nonempty or [""]]


class NoLogProbs(Exception):
    """A reply's log-probabilities are missing or malformed."""


def chat_tokens(data: Any) -> list[TokenLogProb]:
    """Return the tokens of a chat completion.

    Raises:
        NoLogProbs: they are missing or malformed.
    """
    try:
        rows = data["choices"][0]["logprobs"]["content"]
    except (KeyError, IndexError, TypeError):
        raise NoLogProbs from None
    return read_tokens(rows, "token", "logprob", "top_logprobs")


def completion_tokens(data: Any) -> list[TokenLogProb]:
    """Return the tokens of a completion, in OpenAI's or llama.cpp's form.

    Raises:
        NoLogProbs: they are missing or malformed.
    """
    try:
        log_probs = data["choices"][0]["logprobs"]
        if "content" in log_probs:
            return chat_tokens(data)
        tokens = log_probs["tokens"]
        values = log_probs["token_logprobs"]
        others = log_probs.get("top_logprobs") or [{}] * len(tokens)
        rows = [
            {
                "token": token,
                "logprob": value,
                "others": [{"token": t, "logprob": v} for t, v in (top or {}).items()],
            }
            for token, value, top in zip(tokens, values, others, strict=True)
        ]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise NoLogProbs from None
    return read_tokens(rows, "token", "logprob", "others")


def read_tokens(rows: Any, text: str, value: str, others: str) -> list[TokenLogProb]:
    """Read rows of a token's text, its value and, in `others`, rows of its alternatives.

    Raises:
        NoLogProbs: a row is malformed.
    """
    if not isinstance(rows, list):
        raise NoLogProbs
    tokens = []
    for row in rows:
        alternatives = (row.get(others) if isinstance(row, Mapping) else None) or ()
        pairs = sorted(
            (
                _pair(alternative_row, text, value)
                for alternative_row in _rows(alternatives)
            ),
            key=lambda pair: -pair[1],
        )
        tokens.append(TokenLogProb(*_pair(row, text, value), tuple(pairs)))
    return tokens


def _rows(value: Any) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise NoLogProbs
    return value


_ROUNDING = 0.1
"""How far above 0 rounding can leave a logarithm; a larger value is not one."""


def _pair(row: Any, text: str, value: str) -> tuple[str, float]:
    token, number = (
        (row.get(text), row.get(value)) if isinstance(row, Mapping) else (None, None)
    )
    if (
        not isinstance(token, str)
        or not isinstance(number, int | float)
        or isinstance(number, bool)
        or math.isnan(number)
        or number > _ROUNDING
    ):
        raise NoLogProbs
    # JSON has no infinities.
    return token, max(min(float(number), 0.0), -9999.0)
