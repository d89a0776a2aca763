"""The turns of a conversation that follow from a response: the model's own, and tools' results."""

from __future__ import annotations

from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall


def reply_turn(response: Response) -> Message:
    """Return the assistant's turn that a response is.

    Its reasoning is kept only with calls of tools: models that reason between calls want it back
    until they have answered.

    Args:
        response: a model's response to a `Generate`.

    Returns:
        The turn, with the answer's text, its calls and what the provider wants back.
    """
    separated = separate_reasoning(response)
    calls = response.tool_calls
    return Message(
        "assistant",
        separated.answer,
        tool_calls=calls,
        reasoning=separated.reasoning if calls else "",
        provider_content=response.provider_content,
    )


def result_turn(call: ToolCall, content: str, *, is_error: bool = False) -> Message:
    """Return the turn that shows the model the result of one of its calls.

    Args:
        call: the call.
        content: what the tool returned, or why it failed.
        is_error: whether the call failed.

    Returns:
        The turn, which belongs behind the assistant's turn and the results of earlier calls.
    """
    return Message(
        "tool",
        content,
        tool_call_id=call.id,
        tool_name=call.name,
        is_error=is_error,
    )
