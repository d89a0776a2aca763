"""What is wrong with the files of a board, by file and line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from evalwright.core.errors import UsageError
from evalwright.core.text import printable

_ORDINARY_PATH = re.compile(r"[A-Za-z0-9_./-]{1,200}")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A sentence about one line of a file.

    Attributes:
        file: the file's path, as it may be shown (`shown_file`).
        line: the line, from 1.
        sentence: what is wrong, why, and what to do; one line.
    """

    file: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}"

    def as_dict(self) -> dict[str, str | int]:
        """The problem as JSON has it."""
        return {"file": self.file, "line": self.line, "sentence": self.sentence}


class WrongFiles(UsageError):
    """Files of a board that cannot be used; the message has every problem on a line of its own.

    Args:
        problems: all problems, in the order in which they are shown.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def shown_file(path: str) -> str:
    """Return a path as messages show it; one of unusual characters in quotes, escaped.

    A path comes first on its line, where `::error::` would be a command of a GitHub workflow.
    """
    return path if _ORDINARY_PATH.fullmatch(path) else json.dumps(path[:200])


def shown_text(text: object) -> str:
    """Return a text of a stranger as messages show it: short, on one line, in quotes."""
    shortened = str(text)
    if len(shortened) > 60:
        shortened = f"{shortened[:60]}…"
    return f"'{printable(shortened)}'"


def as_annotation(problem: Problem) -> str:
    """Write a problem as an annotation of a GitHub workflow; nothing in it can be a command."""
    file = _escaped(problem.file).replace(":", "%3A").replace(",", "%2C")
    return f"::error file={file},line={problem.line},title=Entry::{_escaped(problem.sentence)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
