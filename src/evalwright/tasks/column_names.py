"""What the names of a table's columns say of what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from string import ascii_lowercase

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "question", "prompt", "query", "instruction"),
    "answer": ("answer", "output", "response", "completion", "prediction"),
    "target": (
        "reference",
        "target",
        "expected",
        "expected_output",
        "ideal",
        "gold",
        "ground_truth",
    ),
    "passages": ("context", "passage", "article", "document", "source_text"),
    "images": (
        "image",
        "images",
        "image_path",
        "image_file",
        "image_url",
        "picture",
        "photo",
    ),
}
"""The names that a column of each role may have, the likeliest first."""

_OPTION = ("option", "choice", "answer", "")
"""How the name of a column with one option begins: option_a, choice1, or the letter alone."""


def columns_by_fold(columns: list[str]) -> dict[str, str]:
    """Map names in lower case, with underscores for spaces, to columns; the first of equals."""
    return {
        column.strip().casefold().replace(" ", "_"): column
        for column in reversed(columns)
    }


def option_columns(columns: list[str]) -> list[str]:
    """Return the columns with the options of a question.

    They are one column with lists, or one for each option, in the order of letters or numbers.
    """
    by_fold = columns_by_fold(columns)
    for name in ("choices", "options"):
        if name in by_fold:
            return [by_fold[name]]
    for stem in _OPTION:
        for signs in ascii_lowercase, range(1, 27) if stem else ():
            for joint in ("_", "") if stem else ("",):
                names = list(
                    takewhile(
                        by_fold.__contains__, (f"{stem}{joint}{sign}" for sign in signs)
                    )
                )
                if len(names) >= (
                    2 if stem else 3
                ):  # columns 'a' and 'b' alone may be anything
                    return [by_fold[name] for name in names]
    return []
