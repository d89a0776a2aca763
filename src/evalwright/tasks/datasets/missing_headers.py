"""Recognises a table whose first row is data, so that its columns have no names."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

QUESTION_WORDS = 4
"""A cell of this many words is hardly the name of a column."""

LONGEST_NAME_CHARS = 60
"""A cell that is longer is hardly the name of a column."""


def missing_header_hint(cells: Sequence[str]) -> str:
    """Say that the first row looks like data, and which line to put above it.

    Args:
        cells: the first row.

    Returns:
        A sentence without its full stop; "" if the row looks like names of columns.
    """
    if not any(map(_looks_like_data, cells)) and not _ends_with_letter(cells):
        return ""
    names = ",".join(_suggest_names(cells))
    return (
        "The first row looks like data, not like the names of the columns: put a line"
        f" with their names above it, such as {names}"
    )


def _looks_like_data(cell: str) -> bool:
    text = cell.strip()
    return (
        text.endswith("?")
        or len(text.split()) >= QUESTION_WORDS
        or len(text) > LONGEST_NAME_CHARS
        or _is_number(text)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _option_count(cells: Sequence[str]) -> int:
    """Count the cells between a question and its answer."""
    return len(cells) - 2


def _ends_with_letter(cells: Sequence[str]) -> bool:
    """Tell whether the last cell is the letter of one of the options before it."""
    if len(cells) < 4:
        return False
    letter = cells[-1].strip()
    letters = ascii_uppercase[: _option_count(cells)]
    names = {cell.strip() for cell in cells[:-1]}
    return len(letter) == 1 and letter in letters and not names & set(letters)


def _suggest_names(cells: Sequence[str]) -> list[str]:
    if _ends_with_letter(cells):
        return ["question", *ascii_uppercase[: _option_count(cells)], "answer"]
    names = ["question", "answer"]
    return names + [f"column{number}" for number in range(3, len(cells) + 1)]
