"""Renders messages to the text that the model reads, by its own chat template.

A last message with the role "assistant" is a prefill, with which the rendered text ends. If the
template has no place for a system message (it raises, or drops the text), that text goes in front
of the first user turn; under published rules it is dropped. For a model without a template the
contents are joined by blank lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright import bounded
from evalwright.core.requests import Message, Prompt
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.tokens import DoesNotFit
from evalwright.models.local.tool_formats import ToolFormat, format_of

Tools = tuple[ToolDefinition, ...]


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
        self._tried_tools = False
        self._tool_format: ToolFormat | None = None
        self.has_template = bool(template or getattr(tokenizer, "chat_template", None))

    def render(self, prompt: Prompt, tools: Tools = ()) -> tuple[str, bool]:
        """Render a prompt, and say whether the text contains its special tokens.

        A text with tools is one turn of the user: only a template has a place for them.

        Raises:
            DoesNotFit: the template refuses.
        """
        if isinstance(prompt, str):
            if not tools:
                return prompt, False
            prompt = (Message("user", prompt),)
        if not self.has_template:
            return "\n\n".join(message.text for message in prompt), False
        system = "\n\n".join(m.text for m in prompt if m.role == "system").strip()
        try:
            text = self._apply(prompt, tools)
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
                text = self._apply(placed, tools)
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

    def tool_format(self) -> ToolFormat | None:
        """Return how the template writes calls of tools, found out once by letting it write one."""
        if not self._tried_tools:
            self._tool_format = format_of(
                lambda turns, tools, opens: self._template_text(
                    turns, tools, add_generation_prompt=opens
                )
            )
            self._tried_tools = True
        return self._tool_format

    def _apply(self, messages: Sequence[Message], tools: Tools) -> str:
        prefill = bool(messages) and messages[-1].role == "assistant"
        if prefill and not messages[-1].text:
            messages = messages[:-1]
            prefill = False
        if not prefill:
            return self._template_text(messages, tools, add_generation_prompt=True)
        try:
            return self._template_text(messages, tools, continue_final_message=True)
        except ValueError:
            # The template changes the last message, so the text cannot be cut there; the generation
            # prompt opens the turn instead.
            return (
                self._template_text(messages[:-1], tools, add_generation_prompt=True)
                + messages[-1].text
            )

    def _template_text(
        self, messages: Sequence[Message], tools: Tools = (), **how: bool
    ) -> str:
        from transformers import PreTrainedTokenizerBase

        if self._parts:
            messages = [replace(message, content=message.parts) for message in messages]
        rows = [message.as_dict() for message in _with_local_ids(messages)]
        offered = {"tools": _as_functions(tools)} if tools else {}
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
                **offered,
                **self._arguments,
            )
            return text
        from evalwright.models.local.hf.chat_rendering import rendered

        source = tokenizer.get_chat_template(self._template, offered.get("tools"))
        variables = {**tokenizer.special_tokens_map, **self._arguments, **how}
        variables |= offered
        try:
            text = bounded.call(rendered, source, rows, variables, key=source)
        except bounded.Raised as error:
            raise (ValueError if error.kind == "ValueError" else RuntimeError)(
                str(error)
            ) from None
        return text


def _as_functions(tools: Tools) -> list[dict[str, Any]]:
    """Return tools as templates expect them, which is OpenAI's form."""
    return [{"type": "function", "function": tool.as_dict()} for tool in tools]


def _with_local_ids(messages: Sequence[Message]) -> list[Message]:
    """Return messages whose calls and results have ids of 9 digits, by place.

    Some templates demand ids of this length, and whatever made the call may have used others, or
    none. Results without an id follow the order of the calls.
    """
    renamed: list[Message] = []
    open_calls: list[tuple[str, str]] = []
    for turn_number, message in enumerate(messages):
        if message.tool_calls:
            ids = [f"{turn_number:05d}{n:04d}" for n in range(len(message.tool_calls))]
            calls = message.tool_calls
            open_calls = [(call.id, new) for call, new in zip(calls, ids, strict=True)]
            message = replace(
                message,
                tool_calls=tuple(
                    replace(call, id=new) for call, new in zip(calls, ids, strict=True)
                ),
            )
        elif message.role == "tool" and open_calls:
            place = next(
                (
                    number
                    for number, (old, _) in enumerate(open_calls)
                    if old == message.tool_call_id
                ),
                0,
            )
            message = replace(message, tool_call_id=open_calls.pop(place)[1])
        renamed.append(message)
    return renamed


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
