"""Where a reply that reasons first says its answer: the last `\\boxed{}`, `####` line or "the answer is ...".

Nothing is judged here; the scorer `final-answer` compares what was found.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_CHARACTERS = 200_000
"""What of a reply is looked at, counted from its end."""

_MARK = re.compile(
    r"(?:final answer|correct answer|correct option|correct choice|answer)\**\s*(?:is|=|:|：)(?:\s*:)?\**[ \t]*",
    re.IGNORECASE,
)
_HASHES = re.compile(r"(?m)^\s*####[ \t]*(?P<rest>\S.*)$")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")


class Conclusion(NamedTuple):
    """text: what stands where the answer is said, "" where there is nothing. rule: how it was found. marked: by a mark."""

    text: str
    rule: str
    marked: bool


def conclusion(reply: str) -> Conclusion:
    """The last mark in a reply decides; without one, its last line that is not empty."""
    reply = reply[-MOST_CHARACTERS:]
    found: list[tuple[int, Conclusion]] = []
    boxes = list(_BOX.finditer(reply))
    for box in reversed(boxes[-20:]):
        content = braced(reply, box.end())
        if content is not None:
            found.append((box.start(), Conclusion(content.strip(), "the last \\boxed{}", True)))
            break
    for line in reversed(list(_HASHES.finditer(reply))):
        found.append((line.start(), Conclusion(line["rest"].strip(), "the last line after ####", True)))
        break
    for mark in reversed(list(_MARK.finditer(reply))):
        rest = _line_after(reply, mark.end())
        if rest:
            found.append(
                (mark.start(), Conclusion(rest, "what follows the last 'answer is' or 'answer:'", True))
            )
            break
    if found:
        # "The answer is \boxed{4}." has two marks on one line; the box is the narrower.
        _, best = max(found, key=lambda item: item[0])
        return best
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return Conclusion(lines[-1] if lines else "", "the last line", False)


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


def _line_after(text: str, start: int) -> str:
    """The rest of the line, or the next line that is not empty where the mark ends its own."""
    for line in text[start:].splitlines():
        stripped = line.strip().strip("*").strip()
        if stripped:
            return stripped
    return ""
