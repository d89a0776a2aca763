"""The content of a `\\boxed{}`."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")


def last_box(text: str) -> str | None:
    """The content of the last `\\boxed{...}`, or None."""
    for box in reversed(list(_BOX.finditer(text))[-20:]):
        content = braced(text, box.end())
        if content is not None:
            return content.strip()
    return None


def braced(text: str, start: int) -> str | None:
    """What stands between the brace at `start` and the one that closes it, or None where none does."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] == "\\":
            continue
        if text[position] == "{" and text[position - 1 : position] != "\\":
            depth += 1
        elif text[position] == "}" and text[position - 1 : position] != "\\":
            depth -= 1
            if depth == 0:
                return text[start + 1 : position]
    return None
