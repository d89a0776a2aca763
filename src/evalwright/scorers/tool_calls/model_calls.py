"""The calls that a model made while it answered, by the user turn in which it made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.core.requests import Message
from evalwright.core.samples import Answer
from evalwright.core.tool_calls import ToolCall


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a model made.

    Args:
        call: the call.
        turn: in which of the answered user turns, from 0.
        failed: whether its result was an error.
    """

    call: ToolCall
    turn: int = 0
    failed: bool = False


def calls_of(answer: Answer) -> list[ModelCall]:
    """List the calls of an answer in order: those in the conversation, then the last reply's.

    Assistant turns of the prompt that the task wrote (worked examples, a history) are not the
    model's: only turns that repeat the calls of a response are.
    """
    messages = () if isinstance(answer.prompt, str) else answer.prompt
    own_turns = _own_turns(messages, answer)
    model_calls: list[ModelCall] = []
    n_users = 0
    for index in range(own_turns[0] if own_turns else len(messages), len(messages)):
        message = messages[index]
        if message.role == "user":
            n_users += 1
        elif index in own_turns:
            model_calls += _with_results(message, messages[index + 1 :], n_users)
    model_calls += [ModelCall(call, n_users) for call in answer.tool_calls]
    return model_calls


def _own_turns(messages: Sequence[Message], answer: Answer) -> list[int]:
    """Return the indices of the assistant's turns that are the responses before the last."""
    earlier = answer.responses[:-1]
    assistants = [
        index for index, message in enumerate(messages) if message.role == "assistant"
    ]
    model_turns = assistants[len(assistants) - len(earlier) :]
    if not earlier or len(assistants) < len(earlier):
        return []
    repeats = all(
        messages[index].tool_calls == response.tool_calls
        for index, response in zip(model_turns, earlier, strict=True)
    )
    return model_turns if repeats else []


def _with_results(
    message: Message, following: Sequence[Message], turn: int
) -> list[ModelCall]:
    """Return the calls of a turn with what their results say."""
    results = []
    for later in following:
        if later.role != "tool":
            break
        results.append(later)
    failed_ids = {result.tool_call_id for result in results if result.is_error} - {""}
    calls = []
    for index, call in enumerate(message.tool_calls):
        by_position = index < len(results) and results[index].is_error
        failed = call.id in failed_ids if call.id else by_position
        calls.append(ModelCall(call, turn, failed))
    return calls
