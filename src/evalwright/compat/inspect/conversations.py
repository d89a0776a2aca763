"""Messages of inspect_ai as ours, and ours as theirs.

We have text and images; a call of a tool and its result stand as text, and the messages that hold
more are kept beside the sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.compat.recording import listed, mapping
from evalwright.core.errors import DatasetError
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER, LENGTH
from evalwright.core.requests import Message, Part, Prompt

STOPS = {
    "max_tokens": LENGTH,
    "model_length": LENGTH,
    "content_filter": CONTENT_FILTER,
    "unknown": "",
}
"""Their reasons for the end of a reply, where ours have another name."""
_ROLES: Mapping[Any, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "assistant": "assistant",
}


def content_of(message: Any) -> tuple[tuple[Part, ...], str, bool]:
    """(parts, reasoning, whether something of it stands here as text alone) of a message's content."""
    content = mapping(message).get("content")
    parts: list[Part] = []
    thoughts: list[str] = []
    changed = False
    for part in (
        [content]
        if isinstance(content, str)
        else content
        if isinstance(content, list)
        else []
    ):
        one = {"type": "text", "text": part} if isinstance(part, str) else mapping(part)
        if one.get("type") == "text":
            parts.append(str(one.get("text") or ""))
        elif one.get("type") == "reasoning":
            hidden = one.get("redacted") and one.get("summary")
            thoughts.append(str((hidden or one.get("reasoning")) or ""))
        elif (image := _image(one)) is not None:
            parts.append(image)
        else:
            changed = True
            parts.append(f"[{str(one.get('type') or 'something else')[:40]}]")
    return tuple(parts), "\n\n".join(filter(None, thoughts)), changed


def text_of(message: Any) -> str:
    """A message as text, without its reasoning; an image by its hash, so that other images are
    another question.
    """
    return "".join(
        part if isinstance(part, str) else image_name(part)
        for part in content_of(message)[0]
    )


def prompt_of(messages: Sequence[Any]) -> tuple[Prompt, bool]:
    """Messages as ours, and whether they hold more than ours can."""
    turns = []
    more = False
    for one in map(mapping, messages):
        parts, _, changed = content_of(one)
        role = _ROLES.get(str(one.get("role")), "user")
        if one.get("role") == "tool":
            parts = (
                f"[result of {str(one.get('function') or 'a tool')[:200]}]\n",
                *parts,
            )
        calls = one.get("tool_calls")
        for call in map(mapping, listed(calls)):
            given = json.dumps(call.get("arguments"), ensure_ascii=False)
            parts = (*parts, f"[calls {str(call.get('function'))[:200]} with {given}]")
        more = (
            more
            or changed
            or bool(calls)
            or one.get("role") not in ("system", "user", "assistant")
        )
        texts = [part for part in parts if isinstance(part, str)]
        turns.append(
            Message(role, "".join(texts) if len(texts) == len(parts) else parts)
        )
    return tuple(turns), more


def slim(kept: Any) -> Any:
    """Messages to be kept: an image by its hash, other bytes by their type, and without what only
    their program needs.
    """
    if isinstance(kept, str):
        return f"[{kept[5:45].partition(';')[0]}]" if kept.startswith("data:") else kept
    if isinstance(kept, dict):
        if (image := _image(kept)) is not None:
            return {"type": "text", "text": image_name(image)}
        unused = (
            ("internal", "signature")
            if "function" in kept
            else ("id", "internal", "signature")
        )
        return {key: slim(part) for key, part in kept.items() if key not in unused}
    return [slim(part) for part in kept] if isinstance(kept, list) else kept


def messages_from(prompt: Prompt) -> list[dict[str, Any]]:
    """Our prompt as their messages; an image, whose bytes no record holds, by its name and hash."""
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
    """An image as text."""
    return f"[image {image.source or image.media_type}, SHA-256 {image.digest}]"


def _image(part: Mapping[str, Any]) -> Image | None:
    url = part.get("image")
    if (
        part.get("type") != "image"
        or not isinstance(url, str)
        or not url.startswith("data:")
    ):
        return None
    try:
        return Image.from_data_url(url, "")
    except DatasetError:
        return None
