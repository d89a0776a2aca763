"""Reads another system's JSON: errors say where it is broken, and its size is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.bounded import from_json
from evalwright.core.errors import RunError
from evalwright.core.private import LARGEST_DOCUMENT, check_ordinary, lines_of
from evalwright.tasks.safe_files import failing_as

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonLine(NamedTuple):
    """A row of a JSON Lines file.

    Attributes:
        where: "FILE, line N", for messages.
        offset: where the line begins, in bytes.
        content: the parsed mapping.
    """

    where: str
    offset: int
    content: dict[str, Any]


def read_json(path: Path) -> Any:
    """Read a JSON file of at most 256 MiB.

    Args:
        path: the file.

    Returns:
        Its content.

    Raises:
        RunError: it cannot be read, or is not valid JSON; the message says where it is broken.
    """
    with failing_as(RunError, f"{path} cannot be read"):
        text = check_ordinary(path, LARGEST_DOCUMENT).read_bytes()
    return parse_json(text.removeprefix(_BYTE_ORDER_MARK), str(path))


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """Read a JSON Lines file row by row, without holding it in memory. Empty lines are skipped.

    Args:
        path: the file.

    Returns:
        An iterator of (where, offset, content): "FILE, line N" for messages, where the line begins
        in bytes, and its mapping.

    Raises:
        RunError: the file cannot be read, or a line is not a JSON object; the message names it.
    """
    offset = 0
    with (
        failing_as(RunError, f"{path} cannot be read"),
        check_ordinary(path).open("rb") as lines,
    ):
        for number, line in enumerate(lines_of(lines), 1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if text.strip():
                where = f"{path}, line {number}"
                row = parse_json(text, where)
                if not isinstance(row, dict):
                    raise RunError(
                        f"{where} is not a record: {type(row).__name__} instead of a"
                        " mapping."
                    )
                yield JsonLine(where, offset, row)
            offset += len(line)


def parse_json(text: bytes | str, where: str) -> Any:
    """Parse JSON that another program wrote.

    Args:
        text: the JSON.
        where: the file, or the file and the line, for messages.

    Returns:
        Its content.

    Raises:
        RunError: it is not valid JSON, nested too deeply, or has a number that is too large.
    """
    from pydantic_core import from_json as parse_fast

    # The fast parser accepts numbers that our records cannot hold, and rejects lone surrogates.
    has_huge_number = (
        re.search(r"\d{300}", text)
        if isinstance(text, str)
        else re.search(rb"\d{300}", text)
    )
    if not has_huge_number:
        with suppress(ValueError):
            return parse_fast(text)
    try:
        return from_json(text)
    except ValueError as error:
        raise RunError(
            f"{where} is not valid JSON: {error}. Correct or remove it."
        ) from error
