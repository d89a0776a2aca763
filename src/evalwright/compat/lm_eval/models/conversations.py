"""Conversations as servers take them: messages as JSON, with images."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any, NamedTuple


class JsonChatStr(NamedTuple):
    """A conversation as JSON: messages that go to the server as they are."""

    prompt: str

    def encode(self, encoding: str) -> bytes:
        """The JSON's bytes."""
        return self.prompt.encode(encoding)


def create_image_prompt(imgs: list[Any], chat: Any, fmt: str = "PNG") -> Any:
    """A conversation whose last message has these PIL images before its text."""
    parts: list[dict[str, Any]] = []
    for image in imgs:
        written = BytesIO()
        image.save(written, format=fmt)
        data = base64.b64encode(written.getvalue()).decode()
        address = {"url": f"data:image/{fmt.lower()};base64,{data}", "detail": "auto"}
        parts.append({"type": "image_url", "image_url": address})
    last = chat[-1]
    content = last["content"]
    last["content"] = parts + (content if isinstance(content, list) else [{"type": "text", "text": content}])
    last.pop("type", None)
    return chat
