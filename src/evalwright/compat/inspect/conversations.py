"""Converts inspect_ai's messages to ours and back.

Ours hold text and images; tool calls and their results become text, and messages that hold more are
kept with the sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright import Message
from evalwright.compat.recording import as_list, as_mapping
from evalwright.extend import DatasetError, Image, Prompt

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


def read_prompt(messages: Sequence[Any]) -> tuple[Prompt, bool]:
    """Convert messages to a prompt, and say whether they hold more than ours can."""
    turns = []
    lossy = False
    for message in map(as_mapping, messages):
        parts, _, changed = read_content(message)
        role = _ROLES.get(str(message.get("role")), "user")
        if message.get("role") == "tool":
            parts = (
                f"[result of {str(message.get('function') or 'a tool')[:200]}]\n",
                *parts,
            )
        calls = message.get("tool_calls")
        for call in map(as_mapping, as_list(calls)):
            arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
            parts = (
                *parts,
                f"[calls {str(call.get('function'))[:200]} with {arguments}]",
            )
        lossy = (
            lossy
            or changed
            or bool(calls)
            or message.get("role") not in ("system", "user", "assistant")
        )
        texts = [part for part in parts if isinstance(part, str)]
        turns.append(
            Message(role, "".join(texts) if len(texts) == len(parts) else parts)
        )
    return tuple(turns), lossy


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

    return [{"role": turn.role, "content": content(turn)} for turn in turns]


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
