"""What formats whose turns are lists of blocks share about tools: Anthropic's, Amazon's, Google's.

Their replies may hold blocks that the provider wants back unchanged (signed or encrypted thinking);
then the whole turn goes back as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate, Message, has_tool_turns
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import TOOL_CHOICES, ToolDefinition
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.options import Options
from evalwright.models.remote.wire.tool_turns import (
    CallIds,
    allowed_name,
    complete_tool_turns,
    content_for_provider,
    text_arguments,
)

TOOLS_IN_PAYLOAD: Options = {
    "tools": lambda tools: {},
    "tool_choice": lambda choice: {},
    "parallel_tool_calls": lambda allowed: {},
}
"""Options without fields here: theirs depend on each other, so the format's payload makes them."""
NO_OUTPUT = "(no output)"
"""Stands for a result without text where a format refuses an empty one."""


def system_and_tool_turns(
    request: Generate, settings: Settings, ids: CallIds
) -> tuple[str, tuple[Message, ...]]:
    """Split a prompt like `form.system_and_talk`, its turns of tools completed.

    Raises:
        Rejected: the prompt has no turn, a result belongs to no call, or a call has no result.
    """
    if not has_tool_turns(request.prompt):
        return form.system_and_talk(request, settings)
    turns = complete_tool_turns(request.prompt, ids)
    return form.system_and_talk(replace(request, prompt=turns), settings)


def stand_ins(talk: Sequence[Message]) -> tuple[ToolDefinition, ...]:
    """Return definitions of the tools that were called, of which only the names are known.

    Claude's API and Amazon's refuse a conversation with calls in a request without tools.
    """
    names = {allowed_name(call.name): None for turn in talk for call in turn.tool_calls}
    return tuple(
        ToolDefinition(f"{name}_" if name in TOOL_CHOICES else name) for name in names
    )


def kept_blocks(
    turn: Message,
    wire_name: str,
    call_in: Callable[[Mapping[str, Any]], Any],
    calls: Sequence[Any],
) -> list[Any] | None:
    """Return the blocks of a turn as the provider sent them.

    Args:
        turn: the assistant's turn.
        wire_name: the format that kept them.
        call_in: returns what identifies the call in a block, or None for other blocks.
        calls: what identifies the turn's calls.

    Returns:
        The blocks; None if there are none, or if they have other calls than the turn.
    """
    blocks = content_for_provider(turn, wire_name)
    if not isinstance(blocks, list) or not all(
        isinstance(block, Mapping) for block in blocks
    ):
        return None
    identities = [identity for identity in map(call_in, blocks) if identity is not None]
    return blocks if identities == list(calls) else None


def read_call(
    fields: Mapping[str, Any],
    *,
    id_field: str,
    arguments_field: str,
    data: Any,
    settings: Settings,
) -> ToolCall:
    """Read a call from a block of a reply; its arguments are an object, or text from a stream.

    Raises:
        BadReply: it has no name.
    """
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise form.not_documented(settings, "a call with the name of its tool", data)
    call_id = fields.get(id_field)
    arguments = fields.get(arguments_field)
    return ToolCall(
        name,
        text_arguments({} if arguments is None else arguments),
        call_id if isinstance(call_id, str) else "",
    )


def refuse_forced_choice(
    tool_choice: str | None, thinking: Any, settings: Settings
) -> None:
    """Raise Rejected if a call is forced while Claude thinks within a budget.

    Args:
        tool_choice: as in `Generate`.
        thinking: the body's `thinking`.
        settings: the model's settings.
    """
    is_forced = tool_choice not in (None, "auto", "none")
    if is_forced and form.get_nested(thinking, "type") == "enabled":
        raise Rejected(
            f"'{settings.model}' cannot be forced to call a tool (tool_choice"
            f" {tool_choice}) while it thinks within a budget: set tool_choice to auto,"
            " or thinking to off."
        )
