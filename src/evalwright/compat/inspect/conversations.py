"""Converts inspect_ai's messages to ours and back.

Ours hold text, images, and calls of tools with their results; messages that hold more are kept with
the sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright import Message
from evalwright.compat.recording import as_list, as_mapping
from evalwright.extend import DatasetError, Image, Prompt, ToolCall

STOPS = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "unknown": "",
}
"""inspect_ai's stop reasons, where ours have another name."""
_ROLES: Mapping[Any, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "assistant": "assistant",
}


def read_content(message: Any) -> tuple[tuple[str | Image, ...], str, bool]:
    """A message's (parts, reasoning, whether something was replaced by text)."""
    content = as_mapping(message).get("content")
    parts: list[str | Image] = []
    thoughts: list[str] = []
    changed = False
    for raw_block in [content] if isinstance(content, str) else as_list(content):
        block = (
            {"type": "text", "text": raw_block}
            if isinstance(raw_block, str)
            else as_mapping(raw_block)
        )
        if block.get("type") == "text":
            parts.append(str(block.get("text") or ""))
        elif block.get("type") == "reasoning":
            hidden = block.get("redacted") and block.get("summary")
            thoughts.append(str((hidden or block.get("reasoning")) or ""))
        elif (image := _image(block)) is not None:
            parts.append(image)
        else:
            changed = True
            parts.append(f"[{str(block.get('type') or 'something else')[:40]}]")
    return tuple(parts), "\n\n".join(filter(None, thoughts)), changed


def message_text(message: Any) -> str:
    """A message's text without reasoning; images by hash, so that they tell questions apart."""
    return "".join(
        part if isinstance(part, str) else image_name(part)
        for part in read_content(message)[0]
    )


def content_text(message: Any) -> str:
    """A message's own text, without its reasoning and without what images are called."""
    return "".join(part for part in read_content(message)[0] if isinstance(part, str))


def read_calls(message: Any) -> tuple[ToolCall, ...]:
    """The calls of tools in a message."""
    calls = []
    for call in map(as_mapping, as_list(as_mapping(message).get("tool_calls"))):
        arguments = call.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        name = str(call.get("function") or "")[:200]
        calls.append(ToolCall(name, arguments, str(call.get("id") or "")))
    return tuple(calls)


def read_prompt(messages: Sequence[Any]) -> tuple[Prompt, bool]:
    """Convert messages to a prompt, and say whether they hold more than ours can."""
    turns = []
    lossy = False
    for message in map(as_mapping, messages):
        parts, reasoning, changed = read_content(message)
        name = str(message.get("role"))
        texts = [part for part in parts if isinstance(part, str)]
        content = "".join(texts) if len(texts) == len(parts) else parts
        lossy = lossy or changed or name not in (*_ROLES, "user", "tool")
        if name == "tool":
            turns.append(_result_turn(message, content))
            continue
        calls = read_calls(message) if name == "assistant" else ()
        turns.append(
            Message(
                _ROLES.get(name, "user"),
                content,
                tool_calls=calls,
                reasoning=reasoning if calls else "",
            )
        )
    return tuple(turns), lossy


def _result_turn(
    message: Mapping[str, Any], content: str | tuple[str | Image, ...]
) -> Message:
    error = as_mapping(message.get("error"))
    return Message(
        "tool",
        content or str(error.get("message") or ""),
        tool_call_id=str(message.get("tool_call_id") or ""),
        tool_name=str(message.get("function") or "")[:200],
        is_error=bool(error),
    )


def shrink_messages(content: Any) -> Any:
    """Shrink messages for storage: images by hash, other bytes by type, internal keys dropped."""
    if isinstance(content, str):
        return (
            f"[{content[5:45].partition(';')[0]}]"
            if content.startswith("data:")
            else content
        )
    if isinstance(content, dict):
        if (image := _image(content)) is not None:
            return {"type": "text", "text": image_name(image)}
        unused = (
            ("internal", "signature")
            if "function" in content
            else ("id", "internal", "signature")
        )
        return {
            key: shrink_messages(child)
            for key, child in content.items()
            if key not in unused
        }
    return (
        [shrink_messages(child) for child in content]
        if isinstance(content, list)
        else content
    )


def write_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """Convert our prompt to inspect_ai's messages; images become their name and hash."""
    turns = (Message("user", prompt),) if isinstance(prompt, str) else prompt

    def content(turn: Message) -> Any:
        if isinstance(turn.content, str):
            return turn.content
        texts = (
            part if isinstance(part, str) else image_name(part) for part in turn.parts
        )
        return [{"type": "text", "text": text} for text in texts]

    messages = []
    waiting: list[str] = []  # the ids of calls that have no result yet
    for number, turn in enumerate(turns):
        message: dict[str, Any] = {"role": turn.role, "content": content(turn)}
        if turn.tool_calls:
            message["tool_calls"] = write_calls(turn.tool_calls, f"call_{number}_")
            waiting = [call["id"] for call in message["tool_calls"]]
        elif turn.role == "tool":
            call_id = turn.tool_call_id or next(iter(waiting), None)
            waiting = [other_id for other_id in waiting if other_id != call_id]
            message |= {"tool_call_id": call_id, "function": turn.tool_name or None}
            if turn.is_error:
                message["error"] = {"type": "unknown", "message": turn.text}
        messages.append(message)
    return messages


def write_calls(calls: Sequence[Any], prefix: str = "call_") -> list[dict[str, Any]]:
    """Convert our calls of tools to inspect_ai's; malformed arguments are its `parse_error`.

    Args:
        calls: the calls of a turn or a response.
        prefix: begins the ids of calls without one; their number follows.
    """
    rows = []
    for number, call in enumerate(calls):
        row: dict[str, Any] = {
            "id": call.id or f"{prefix}{number}",
            "function": call.name,
            "type": "function",
        }
        try:
            row["arguments"] = call.parsed()
        except ValueError as error:
            row["arguments"] = {"arguments": call.arguments}
            row["parse_error"] = str(error)
        rows.append(row)
    return rows


def image_name(image: Image) -> str:
    """Describe an image as text."""
    return f"[image {image.source or image.media_type}, SHA-256 {image.digest}]"


def _image(block: Mapping[str, Any]) -> Image | None:
    url = block.get("image")
    if (
        block.get("type") != "image"
        or not isinstance(url, str)
        or not url.startswith("data:")
    ):
        return None
    try:
        return Image.from_data_url(url, "")
    except DatasetError:
        return None
