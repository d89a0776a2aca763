"""Shorter forms of a long conversation, so that it goes on fitting into the model's context.

The results of older calls are left out first, and then the model is asked to sum up what was done.
The record keeps everything: only what is sent gets shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalwright.core.requests import Message
from evalwright.core.responses import Response

CHARS_PER_TOKEN = 3.5
"""How long a token is, where no reply has said how many there were."""
KEPT_TURNS = 6
"""Turns at the end that stay as they are."""
MIN_LEFT_OUT_CHARS = 200
"""Shorter results stay: the line in their place would be as long."""
ROOM_SHARE = 0.7
"""The share of the limit that a shorter form may have, so that it lasts for a while."""
SUMMARY_REQUEST = (
    "The conversation is about to be cut to what you write now, because it has become too long."
    " Sum up what is needed to go on: the task, what was done and found so far, with paths, names"
    " and numbers, what failed, and what is to be done next. Write the summary alone, and call no"
    " tool."
)
SUMMARY_HEAD = "[The conversation so far was too long, and was cut. You summed it up:]"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A shorter form of a conversation.

    Args:
        messages: what is sent from now on.
        summary: the model's summary in it; "" if there is none.
        response: the reply that the summary is of.
    """

    messages: tuple[Message, ...]
    summary: str = ""
    response: Response | None = None


def estimated_tokens(
    messages: Sequence[Message], last: Response | None, n_answered: int
) -> int:
    """Estimate the tokens of a request.

    Args:
        messages: what is sent.
        last: the last reply, which says how many tokens it read and wrote; None if there is none.
        n_answered: how many of the messages that reply had read, and its own turn.
    """
    if last is not None and last.usage.input_tokens:
        known = last.usage.input_tokens + last.usage.output_tokens
        return known + _tokens_of(messages[n_answered:])
    return _tokens_of(messages)


def _tokens_of(messages: Sequence[Message]) -> int:
    n_chars = sum(
        len(message.text)
        + len(message.reasoning)
        + sum(len(call.arguments) + len(call.name) for call in message.tool_calls)
        for message in messages
    )
    return int(n_chars / CHARS_PER_TOKEN)


def without_old_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with a line in place of each long result but the latest."""
    n_old = len(messages) - KEPT_TURNS
    return tuple(
        _left_out(message) if index < n_old else message
        for index, message in enumerate(messages)
    )


def _left_out(message: Message) -> Message:
    n_chars = len(message.text)
    if message.role != "tool" or n_chars < MIN_LEFT_OUT_CHARS:
        return message
    return replace(
        message, content=f"[This result had {n_chars:,} characters, and was left out.]"
    )


def with_summary(
    opening: Sequence[Message], messages: Sequence[Message], summary: str
) -> tuple[Message, ...]:
    """Return the opening, the summary, and the last turns of a conversation.

    The summary is part of the opening's last turn, because some models take no two turns of the
    user one after another.

    Args:
        opening: the turns that the conversation began with.
        messages: the conversation as it was sent so far.
        summary: what the model wrote.
    """
    head = list(opening)
    note = f"{SUMMARY_HEAD}\n\n{summary}"
    if head and head[-1].role == "user":
        head[-1] = _followed_by(head[-1], note)
    else:
        head.append(Message("user", note))
    return (*head, *_last_turns(messages, len(opening)))


def _followed_by(turn: Message, note: str) -> Message:
    if isinstance(turn.content, str):
        return replace(turn, content=f"{turn.content}\n\n{note}")
    return replace(turn, content=(*turn.content, f"\n\n{note}"))


def _last_turns(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    """Return the last turns, from a reply on, so that each result has its call."""
    for index in range(max(start, len(messages) - KEPT_TURNS), len(messages)):
        if messages[index].role == "assistant":
            return tuple(messages[index:])
    return ()
