"""Turns with calls of tools and their results, completed as a wire format needs them.

A prompt may leave out the ids of calls, as models without ids do, and the names of results. Formats
need one or the other: both are filled in here, the same in every request of a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Message, Prompt, has_tool_turns
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import MAX_NAME_CHARS
from evalwright.models.remote.wire.format import turns as turns_of

MALFORMED_ARGUMENTS = "arguments"
"""The key of a malformed call's raw text, in formats whose history needs an object."""
_FOREIGN_SIGNS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class CallIds:
    """The ids of calls that a format takes.

    Attributes:
        pattern: what an id must match as a whole; another is replaced.
        make: makes an id from the number of the turn and that of the call in it, from 0.
        unique: whether no two calls of a prompt may share one; those of a turn never do.
    """

    pattern: re.Pattern[str]
    make: Callable[[int, int], str]
    unique: bool = False


ANY_ID = CallIds(re.compile(r".+", re.DOTALL), "call_{}_{}".format)
"""Any id that is not empty. Other formats' ids are kept, too."""


def complete_tool_turns(prompt: Prompt, ids: CallIds = ANY_ID) -> tuple[Message, ...]:
    """Return a prompt's turns, in which every call has an id, and every result its id and name.

    Args:
        prompt: a text becomes one user turn.
        ids: what the format takes as an id; others are replaced, on both sides.

    Returns:
        The turns; the same objects where nothing was missing.

    Raises:
        Rejected: a result belongs to no call before it, or a call has no result before the next
            turn of another role.
    """
    turns = turns_of(prompt)
    if not has_tool_turns(turns):
        return turns
    completed: list[Message] = []
    waiting: list[
        tuple[ToolCall, str]
    ] = []  # calls without a result, and their new ids
    earlier: set[str] = set()
    for turn_index, turn in enumerate(turns):
        if turn.role == "tool":
            call, call_id = _take_call(turn, waiting, turn_index)
            turn = replace(
                turn, tool_call_id=call_id, tool_name=turn.tool_name or call.name
            )
        else:
            _require_results(waiting)
            call_ids = _ids_of(turn.tool_calls, turn_index, ids, earlier)
            if ids.unique:
                earlier.update(call_ids)
            waiting = list(zip(turn.tool_calls, call_ids, strict=True))
            calls = tuple(replace(call, id=call_id) for call, call_id in waiting)
            turn = replace(turn, tool_calls=calls) if calls else turn
        completed.append(turn)
    _require_results(waiting)
    return tuple(completed)


def _require_results(waiting: Sequence[tuple[ToolCall, str]]) -> None:
    """Raise Rejected if calls wait for results that do not come; all providers refuse that."""
    if waiting:
        name = waiting[0][0].name
        raise Rejected(
            f"The prompt has a call of the tool '{name[:MAX_NAME_CHARS]}' without its"
            " result: put a turn of the role 'tool' for each call behind the"
            " assistant's turn."
        )


def allowed_name(name: str) -> str:
    """Return a call's name as a history may hold it: a model may have written other signs.

    Most providers would refuse the whole conversation for them.
    """
    return _FOREIGN_SIGNS.sub("_", name)[:MAX_NAME_CHARS] or "_"


def _ids_of(
    calls: Sequence[ToolCall], turn_index: int, ids: CallIds, earlier: Collection[str]
) -> list[str]:
    """Return an id for each call of a turn, all different, and none of the earlier ones."""
    call_ids: list[str] = []
    used_ids = {*earlier, *(call.id for call in calls)}
    for call_index, call in enumerate(calls):
        is_usable = (
            ids.pattern.fullmatch(call.id)
            and call.id not in call_ids
            and call.id not in earlier
        )
        if is_usable:
            call_ids.append(call.id)
            continue
        numbered = (ids.make(turn_index, index) for index in count(call_index))
        call_ids.append(
            next(name for name in numbered if name not in used_ids | set(call_ids))
        )
    return call_ids


def _take_call(
    turn: Message, waiting: list[tuple[ToolCall, str]], turn_index: int
) -> tuple[ToolCall, str]:
    """Remove the call that a result belongs to from those that wait for one, and return it.

    It is the first with the result's id; a result without an id belongs to the first call with its
    name, and one without a name to the first call.
    """
    for index, (call, _) in enumerate(waiting):
        if turn.tool_call_id:
            matches = call.id == turn.tool_call_id
        else:
            matches = turn.tool_name in ("", call.name)
        if matches:
            return waiting.pop(index)
    name = f" '{turn.tool_name[:64]}'" if turn.tool_name else ""
    raise Rejected(
        f"Turn {turn_index + 1} of the prompt is a result of a tool{name} that the"
        " assistant's turn before it did not call: put each result behind the turn with"
        " its call, with the call's id or the tool's name."
    )


def object_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as a mapping, for formats whose history needs one.

    What the model wrote malformed is its raw text under `MALFORMED_ARGUMENTS`.
    """
    try:
        return call.parsed()
    except ValueError:
        return {MALFORMED_ARGUMENTS: call.arguments}


def json_arguments(call: ToolCall, *, raw: bool = False) -> str:
    """Return a call's arguments as text, for formats whose history has text.

    Args:
        call: the call.
        raw: whether malformed arguments may be sent as the model wrote them. Most servers parse
            them, for the model's template, and refuse what is not JSON; they get
            `object_arguments` as text.
    """
    if raw:
        return call.arguments
    try:
        call.parsed()
    except ValueError:
        return json.dumps(object_arguments(call), ensure_ascii=False)
    return call.arguments if call.arguments.strip() else "{}"


def text_arguments(arguments: Any) -> str:
    """Return the arguments of a call in a reply as text: text as it is, an object as its JSON."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def provider_content(wire_name: str, content: Any) -> str:
    """Return what the provider wants back unchanged, as `Response.provider_content` holds it."""
    if not content:
        return ""
    return json.dumps(
        {"format": wire_name, "content": content},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )


def content_for_provider(turn: Message, *wire_names: str) -> Any:
    """Return what a turn holds for a provider of one of these formats, or None."""
    if not turn.provider_content:
        return None
    try:
        provider_turn = json.loads(turn.provider_content)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(provider_turn, dict)
        or provider_turn.get("format") not in wire_names
    ):
        return None
    return provider_turn.get("content")
