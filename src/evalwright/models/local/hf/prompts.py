"""Renders messages to the text that the model reads, by its own chat template.

A last message with the role "assistant" is a prefill, with which the rendered text ends. If the
template has no place for a system message (it raises, or drops the text), that text goes in front
of the first user turn; under published rules it is dropped. For a model without a template the
contents are joined by blank lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright import bounded
from evalwright.core.requests import Message, Prompt
from evalwright.models.local.tokens import DoesNotFit


class ChatRenderer:
    """Renders prompts to text.

    Args:
        tokenizer: the model's tokenizer.
        template: text that replaces the tokenizer's own.
        arguments: variables for the template.
        parts: whether the template expects every content as a list of parts, as vision models do.
        published: see `TokenRules`.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str | None,
        arguments: Mapping[str, Any],
        *,
        parts: bool = False,
        published: bool = False,
    ) -> None:
        self._published = published
        self._parts = parts
        self._tokenizer = tokenizer
        self._template = template
        self._arguments = dict(arguments)
        self.has_template = bool(template or getattr(tokenizer, "chat_template", None))

    def render(self, prompt: Prompt) -> tuple[str, bool]:
        """Render a prompt, and say whether the text contains its special tokens.

        Raises:
            DoesNotFit: the template refuses.
        """
        if isinstance(prompt, str):
            return prompt, False
        if not self.has_template:
            return "\n\n".join(message.text for message in prompt), False
        system = "\n\n".join(m.text for m in prompt if m.role == "system").strip()
        try:
            text = self._apply(prompt)
        except Exception as error:  # a template can raise any exception
            if not system:
                raise _refusal_error(error) from error
            text = ""
        if system and not all(
            m.text.strip() in text for m in prompt if m.role == "system"
        ):
            if self._published and text:
                return text, True
            placed = (
                [m for m in prompt if m.role != "system"]
                if self._published
                else fold_system(prompt)
            )
            try:
                text = self._apply(placed)
            except Exception as error:
                raise _refusal_error(error) from error
        return text, True

    def whole(self, messages: Sequence[Message]) -> str:
        """Render a complete conversation.

        Raises:
            DoesNotFit: the template refuses.
        """
        try:
            return self._template_text(messages)
        except Exception as error:
            raise _refusal_error(error) from error

    def _apply(self, messages: Sequence[Message]) -> str:
        prefill = bool(messages) and messages[-1].role == "assistant"
        if prefill and not messages[-1].text:
            messages = messages[:-1]
            prefill = False
        if not prefill:
            return self._template_text(messages, add_generation_prompt=True)
        try:
            return self._template_text(messages, continue_final_message=True)
        except ValueError:
            # The template changes the last message, so the text cannot be cut there; the generation
            # prompt opens the turn instead.
            return (
                self._template_text(messages[:-1], add_generation_prompt=True)
                + messages[-1].text
            )

    def _template_text(self, messages: Sequence[Message], **how: bool) -> str:
        from transformers import PreTrainedTokenizerBase

        if self._parts:
            messages = [Message(message.role, message.parts) for message in messages]
        rows = [message.as_dict() for message in messages]
        tokenizer = self._tokenizer
        if (
            type(tokenizer).apply_chat_template
            is not PreTrainedTokenizerBase.apply_chat_template
        ):
            # The tokenizer's class writes prompts in Python, without a template.
            text: str = tokenizer.apply_chat_template(
                rows,
                chat_template=self._template,
                tokenize=False,
                **how,
                **self._arguments,
            )
            return text
        from evalwright.models.local.hf.chat_rendering import rendered

        source = tokenizer.get_chat_template(self._template)
        variables = {**tokenizer.special_tokens_map, **self._arguments, **how}
        try:
            text = bounded.call(rendered, source, rows, variables, key=source)
        except bounded.Raised as error:
            raise (ValueError if error.kind == "ValueError" else RuntimeError)(
                str(error)
            ) from None
        return text


def fold_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Move system messages into the first user turn, whose text they open."""
    system = "\n\n".join(
        message.text for message in messages if message.role == "system"
    )
    others = [message for message in messages if message.role != "system"]
    for index, message in enumerate(others):
        if message.role == "user":
            first = f"{system}\n\n"
            content = (
                first + message.content
                if isinstance(message.content, str)
                else (first, *message.content)
            )
            others[index] = Message("user", content)
            return tuple(others)
    return (Message("user", system), *others)


def _refusal_error(error: Exception) -> DoesNotFit:
    reason = " ".join(str(error).split())[:300]
    return DoesNotFit(
        "The model's chat template rejects these messages:"
        f" {reason or type(error).__name__}."
    )
