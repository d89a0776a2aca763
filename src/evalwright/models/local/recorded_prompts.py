"""Messages as the text that a model got, from what a run's record says of its chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import Message

RenderMessages = Callable[[Sequence[Message]], str | None]


def prompt_renderer(
    model: Mapping[str, Any], *, leaves_out_system: bool = False
) -> RenderMessages:
    """Choose how the messages of a recorded prompt are written as text.

    Args:
        model: what a run's record says of its model (`run.data["model"]`).
        leaves_out_system: whether a system message that the template refuses is left out; otherwise
            it opens the first turn of the user, as the models here do it.

    Returns:
        A function from messages to text; it gives None where the model has no template, or one that
        cannot be used on these messages.
    """
    template_facts = model.get("template") or {}
    source = template_facts.get("source")
    if not source:
        return _without_template

    from evalwright.models.local.chat_template import ChatTemplate
    from evalwright.models.local.hf.prompts import fold_system

    try:
        template = ChatTemplate(source, template_facts.get("variables", {}))
    except EvalwrightError:
        return _without_template

    def render(messages: Sequence[Message]) -> str | None:
        with suppress(EvalwrightError):
            text = template.render(tuple(messages))
            if leaves_out_system or _holds_system(text, messages):
                return text
        others = tuple(message for message in messages if message.role != "system")
        with suppress(EvalwrightError):
            return template.render(
                others if leaves_out_system else fold_system(messages)
            )
        return None

    return render


def _holds_system(text: str, messages: Sequence[Message]) -> bool:
    """Tell whether a template kept the system messages, which some leave out without a word."""
    return all(
        message.text.strip() in text for message in messages if message.role == "system"
    )


def _without_template(messages: Sequence[Message]) -> None:
    """Give no text: how the model writes messages is not known."""
