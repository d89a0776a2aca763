"""Puts a board into a text file between two markers, and touches nothing else in it.

    <!-- evalwright:leaderboard:start -->
    <!-- evalwright:leaderboard:end -->

The markers of the HHEM leaderboard engine (LEADERBOARD_START, LEADERBOARD_END) work too. A marker
in a code block or a code span is an example and is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.tasks.datasets.formats import SUFFIXES

START = "<!-- evalwright:leaderboard:start -->"
END = "<!-- evalwright:leaderboard:end -->"

SETTINGS_SUFFIXES = frozenset(
    {".yaml", ".yml", ".toml", ".py", ".ini", ".cfg", ".lock"}
)
"""Suffixes of files that programs read, besides those of data files."""

_MARKER = re.compile(
    r"<!--[ \t]*"
    r"(?:(?P<ours>evalwright:leaderboard:)(?P<side>start|end)"
    r"|LEADERBOARD_(?P<theirs>START|END))"
    r"[ \t]*-->"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])\1(?!`)")


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text: its start, its end, and its line."""

    opens: bool
    ours: bool
    start: int
    end: int
    line: int


def check_text_file(path: Path) -> None:
    """Raise ConfigurationError for a file of data or settings, which a board would break."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES or suffix in SETTINGS_SUFFIXES:
        raise ConfigurationError(
            f"The board cannot be written into '{path}': it is a file of data or"
            " settings. Name a Markdown file, such as README.md."
        )


def put_between(content: bytes, block: str, heading: str) -> bytes:
    """Put a block between the markers of a file, or at its end under the heading.

    Line ends stay the file's own.

    Args:
        content: The file's bytes.
        block: The text to put in.
        heading: The heading, used where the file has no markers.

    Raises:
        ConfigurationError: The file is not UTF-8 text, or its markers are not one pair.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"it is not UTF-8 text (byte {error.start}). Save it as UTF-8."
        ) from None
    if "\0" in text:
        raise ConfigurationError("it is not a text file.")
    line_end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    board_text = f"\n\n{block.strip()}\n\n".replace("\n", line_end)
    pair = _pair(list(_markers(text)))
    if pair is not None:
        first, last = pair
        return (text[: first.end] + board_text + text[last.start :]).encode()
    empty = not text.strip("\ufeff \t\r\n")
    before = (
        text if empty else text + ("" if text.endswith("\n") else line_end) + line_end
    )
    level = "#" if empty else "##"
    return f"{before}{level} {heading}{2 * line_end}{START}{board_text}{END}{line_end}".encode()


def _pair(markers: list[Marker]) -> tuple[Marker, Marker] | None:
    opening = [marker for marker in markers if marker.opens]
    closing = [marker for marker in markers if not marker.opens]
    if not markers:
        return None
    if len(opening) > 1 or len(closing) > 1:
        lines = ", ".join(str(marker.line) for marker in markers)
        raise ConfigurationError(
            f"it has several markers of a leaderboard (lines {lines}), so it is not"
            " clear which one to use. Keep one pair."
        )
    if not opening or not closing:
        present_side, missing_side = ("start", "end") if opening else ("end", "start")
        raise ConfigurationError(
            f"it has the {present_side} marker of a leaderboard (line {markers[0].line}) without"
            f" the {missing_side} marker. Add '{END if opening else START}', or remove the"
            " one that it has."
        )
    first = opening[0]
    last = closing[0]
    if first.start > last.start:
        raise ConfigurationError(
            f"the end marker of the leaderboard (line {last.line}) is before the start"
            f" marker (line {first.line})."
        )
    if first.ours != last.ours:
        raise ConfigurationError(
            f"the start and the end marker of the leaderboard (lines {first.line} and"
            f" {last.line}) do not match. Use '{START}' and '{END}'."
        )
    return first, last


def _markers(text: str) -> Iterator[Marker]:
    fence = ""
    position = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        opened = _FENCE.match(line)
        if fence:
            closes = opened and opened[1].startswith(fence) and not opened[2].strip()
            fence = "" if closes else fence
        elif opened and not (opened[1][0] == "`" and "`" in opened[2]):
            fence = opened[1]
        else:
            spans = [span_match.span() for span_match in _SPAN.finditer(line)]
            for match in _MARKER.finditer(line):
                if not any(start < match.start() < end for start, end in spans):
                    opens = (match["side"] or match["theirs"].lower()) == "start"
                    start, end = (position + offset for offset in match.span())
                    yield Marker(opens, match["ours"] is not None, start, end, number)
        position += len(line)
