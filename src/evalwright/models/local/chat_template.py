"""Renders messages to text by the model's own chat template, in jinja2's immutable sandbox.

Templates come with model files, so they are untrusted: the sandbox keeps them from changing objects
or reaching code, and they are rendered in a process with limits of time and memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalwright import bounded
from evalwright.core.errors import ConfigurationError, Rejected
from evalwright.core.requests import Message


class _GenerationBlock(Extension):
    """Renders what is inside `{% generation %}...{% endgeneration %}`, which marks model output."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own attribute

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the content of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """A compiled template; a source that is not a jinja2 template raises ConfigurationError."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        self._source = source
        self._special_tokens = dict(special_tokens)
        try:
            bounded.call(_check, source)
        except (bounded.LimitExceeded, bounded.Raised) as error:
            raise ConfigurationError(
                f"The chat template cannot be read: {error}"
            ) from None

    def render(self, messages: tuple[Message, ...]) -> str:
        """Render the prompt up to where the model continues.

        It ends with the opening of the model's turn, or with an assistant's prefill.

        Raises:
            Rejected: the template does not accept these messages; the message has its own words.
        """
        prefill = (
            messages[-1].text if messages and messages[-1].role == "assistant" else None
        )
        variables = {
            "messages": [message.as_dict() for message in messages],
            "add_generation_prompt": prefill is None,
            "tools": None,
            "documents": None,
            **self._special_tokens,
        }
        try:
            text: str = bounded.call(_render, self._source, variables, key=self._source)
        except bounded.LimitExceeded as error:
            raise Rejected(
                f"The model's chat template cannot be used on these messages: {error}."
            ) from None
        except bounded.Raised as error:
            raise Rejected(
                f"The model's chat template does not take these messages: {error}"
            ) from None
        return text if prefill is None else _up_to(text, prefill)


def _up_to(text: str, prefill: str) -> str:
    """Cut off what the template puts after an assistant's turn."""
    prefill_text = prefill.strip()
    start = text.rfind(prefill_text)
    if start < 0:
        raise Rejected(
            "The model's chat template changes the assistant's text, so it cannot be"
            " continued."
        )
    if text[start : start + len(prefill.lstrip())] == prefill.lstrip():
        prefill_text = prefill.lstrip()
    return text[: start + len(prefill_text)]


@lru_cache(maxsize=16)
def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _now
    return environment.from_string(source)


def _check(source: str) -> None:
    _compile(source)


def _render(source: str, variables: Mapping[str, Any]) -> str:
    return _compile(source).render(variables)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
