"""The calls that a model made while it answered, by the user turn in which it made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.core.requests import Message
from evalwright.core.samples import Answer
from evalwright.core.tool_calls import ToolCall


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a model made.

    Args:
        call: the call.
        turn: in which of the answered user turns, from 0.
        failed: whether its result was an error.
    """

    call: ToolCall
    turn: int = 0
    failed: bool = False


def calls_of(answer: Answer) -> list[MadeCall]:
    """List the calls of an answer in order: those in the conversation, then the last reply's.

    Assistant turns of the prompt that the task wrote (worked examples, a history) are not the
    model's: only turns that repeat the calls of a response are.
    """
    messages = () if isinstance(answer.prompt, str) else answer.prompt
    own_turns = _own_turns(messages, answer)
    made: list[MadeCall] = []
    n_users = 0
    for index in range(own_turns[0] if own_turns else len(messages), len(messages)):
        message = messages[index]
        if message.role == "user":
            n_users += 1
        elif index in own_turns:
            made += _with_results(message, messages[index + 1 :], n_users)
    made += [MadeCall(call, n_users) for call in answer.tool_calls]
    return made


def _own_turns(messages: Sequence[Message], answer: Answer) -> list[int]:
    """Return the indices of the assistant's turns that are the responses before the last."""
    earlier = answer.responses[:-1]
    assistants = [
        index for index, message in enumerate(messages) if message.role == "assistant"
    ]
    own = assistants[len(assistants) - len(earlier) :]
    if not earlier or len(assistants) < len(earlier):
        return []
    repeats = all(
        messages[index].tool_calls == response.tool_calls
        for index, response in zip(own, earlier, strict=True)
    )
    return own if repeats else []


def _with_results(
    message: Message, following: Sequence[Message], turn: int
) -> list[MadeCall]:
    """Return the calls of a turn with what their results say."""
    results = []
    for later in following:
        if later.role != "tool":
            break
        results.append(later)
    failed_ids = {result.tool_call_id for result in results if result.is_error} - {""}
    made = []
    for index, call in enumerate(message.tool_calls):
        by_place = index < len(results) and results[index].is_error
        failed = call.id in failed_ids if call.id else by_place
        made.append(MadeCall(call, turn, failed))
    return made
