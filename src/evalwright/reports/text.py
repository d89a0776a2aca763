"""Makes untrusted text safe to show on one line, and measures texts in terminal cells."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1 controls: ESC, BEL, CR, newlines
    "\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that act instead of being seen, which `inert` shows as escapes.

They are terminal controls, bidirectional overrides, invisible characters and lone surrogates.
Joiners (U+200C, U+200D) stay: Persian, Indic scripts and emoji need them.
"""

_FORMULA = re.compile(r"""(^|[,;|\t\n])((?:[^\S\t\n]|['"])*+)(?=[\t=+@＝＋－＠-])""")
"""Positions where a spreadsheet would see a formula, whatever separates its cells."""

CODE_SPAN = re.compile(r"(?<!`)`(?! )([^`|\\]+)(?<! )`(?!`)")
"""A command or a name between backticks in a sentence.

The pattern excludes characters that could act within Markdown code.
"""

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BREAK_AFTER = frozenset("/-_.,:+@")


def inert(text: object) -> str:
    r"""Return the text on one line, with active characters shown as escapes, such as ESC as \x1b.

    Args:
        text: a text from outside.

    Returns:
        A text that a terminal shows and does not obey.

    >>> inert("red\x1b[31m\nline")
    'red\\x1b[31m\\nline'
    """
    return _ACTIVE.sub(_escape, str(text))


def inert_lines(text: str) -> str:
    """Show active characters of the text as escapes; lines and tabs stay."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        "\t".join(inert(cell) for cell in line.split("\t")) for line in lines
    )


def inert_cell(text: str, *, lines: bool = False) -> str:
    """Return untrusted text as a cell that no spreadsheet executes.

    Formulas start with an apostrophe.

    Args:
        text: The text.
        lines: Whether line breaks and tabs stay.
    """
    return _FORMULA.sub(r"\1'\2", inert_lines(text) if lines else inert(text))


def json_escaped(document: str) -> str:
    """Escape active characters in a JSON document, which still parses to the same value."""

    def escaped(match: re.Match[str]) -> str:
        units = match.group().encode("utf-16-be", "surrogatepass").hex()
        return (
            "\n"
            if match.group() == "\n"
            else "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
        )

    return _ACTIVE.sub(escaped, document)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cell_width(text: str) -> int:
    """Count the terminal cells of a text: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if char in "\u200c\u200d" or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, width: int) -> str:
    """Return the text if it fits into `width` cells, else its beginning and an ellipsis."""
    if cell_width(text) <= width:
        return text
    return _take(text, width - 1) + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad the text with spaces to `width` cells; `right` aligns it right."""
    spaces = " " * (width - cell_width(text))
    return spaces + text if right else text + spaces


def wrap(text: str, width: int) -> list[str]:
    """Break text into lines of at most `width` cells, at spaces or after separators.

    Lines are not broken between digits, and only spaces are lost.
    """
    lines = []
    remaining = text
    while len(head := _take(remaining, max(1, width))) < len(remaining):
        head = head or remaining[0]
        head = head[: _break(head, remaining[len(head) : len(head) + 1])]
        lines.append(head.rstrip())
        remaining = remaining[len(head) :].lstrip(" ")
    return [*lines, remaining] if remaining or not lines else lines


def _break(head: str, following: str) -> int:
    """Choose where to cut the line `head`, which `following` continues."""
    if following == " ":
        return len(head)
    earliest_break = len(head) // 4
    space = head.rfind(" ") + 1
    if space > earliest_break:
        return space
    for i in range(len(head), earliest_break, -1):
        after = head[i] if i < len(head) else following
        number = i > 1 and head[i - 2].isdigit() and after.isdigit()
        if head[i - 1] in _BREAK_AFTER and not number:
            return i
    return space or len(head)


def _take(text: str, width: int) -> str:
    """Return the longest beginning that fits into `width` cells."""
    used_cells = 0
    for i, char in enumerate(text):
        used_cells += _char_width(char)
        if used_cells > width:
            return text[:i]
    return text
