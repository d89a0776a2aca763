"""The files of a configuration, read within its folder and never run; notes on what is left out."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.extend import (
    ConfigurationError,
    is_within,
    parse_json,
    printable,
    read_json_lines,
    read_yaml,
    regular_file,
    reraise_as,
)

MAX_BYTES = 16 << 20
"""Of a file that a configuration names."""
MAX_FILES = 1_000
"""That one pattern may stand for."""
MAX_SHOWN_CHARS = 120
"""Of a name in a message."""
MAX_NOTE_CHARS = 400
MAX_NOTES = 40
"""Sentences about what is left out; more are counted."""
SCRIPTS = [
    ".bash",
    ".bat",
    ".cjs",
    ".cmd",
    ".cts",
    ".exe",
    ".go",
    ".js",
    ".mjs",
    ".mts",
    ".php",
    ".pl",
    ".ps1",
    ".py",
    ".rb",
    ".sh",
    ".ts",
]
"""Endings of files that promptfoo would run."""
ELSEWHERE = (
    "az://",
    "gs://",
    "helicone://",
    "http://",
    "https://",
    "huggingface://",
    "langfuse://",
    "package:",
    "portkey://",
    "s3://",
    "sharepoint://",
)
"""Beginnings of what stands on another machine."""
_PREFIX = "file://"


@dataclass(slots=True)
class Notes:
    """What a conversion left out or changed, each sentence once, with how often."""

    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, sentence: str) -> None:
        """Note one thing."""
        self._counts[printable(sentence)[:MAX_NOTE_CHARS]] += 1

    def sentences(self) -> list[str]:
        """Return the sentences in the order in which they were first noted."""
        sentences = [
            sentence if times == 1 else f"{sentence} ({times:,} times)"
            for sentence, times in self._counts.items()
        ]
        if len(sentences) <= MAX_NOTES:
            return sentences
        hidden = len(sentences) - MAX_NOTES
        return [*sentences[:MAX_NOTES], f"And {hidden:,} more of this kind."]


def is_reference(text: Any) -> bool:
    """Return whether a value names a file."""
    return isinstance(text, str) and text.startswith(_PREFIX)


def suffix_of(reference: str) -> str:
    """Return the ending of a file's name; a function's name may follow it: `prompt.py:make`."""
    name = reference.removeprefix(_PREFIX).rpartition("/")[2]
    suffixes = [Path(part).suffix.lower() for part in name.split(":")]
    return next((suffix for suffix in suffixes if suffix in SCRIPTS), suffixes[0])


@dataclass(frozen=True, slots=True)
class ConfigFolder:
    """The folder of a configuration; nothing outside of it is read."""

    folder: Path

    def find(self, reference: str) -> Path:
        """Return the file that a reference names.

        Raises:
            ConfigurationError: it is outside the folder, hidden there, or does not exist.
        """
        name = reference.removeprefix(_PREFIX)
        path = self.folder / name
        if "\0" in name or not is_within(path, self.folder):
            raise ConfigurationError(
                f"'{_shown(name)}' is outside of the configuration's folder"
                f" '{self.folder}' (links followed), or hidden there, so it is not"
                " read. Copy it there."
            )
        with reraise_as(ConfigurationError, f"'{_shown(name)}' cannot be read"):
            path.stat()
        return path

    def find_all(self, reference: str) -> list[Path]:
        """Return the files that a reference names, which may be a pattern or a folder.

        Raises:
            ConfigurationError: there is none, or too many, or one is outside the folder.
        """
        name = reference.removeprefix(_PREFIX)
        if "*" not in name:
            path = self.find(name)
            return (
                sorted(filter(Path.is_file, path.iterdir()))
                if path.is_dir()
                else [path]
            )
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigurationError(
                f"The pattern '{_shown(name)}' leads outside of the configuration's"
                f" folder '{self.folder}', so it is not read."
            )
        files: list[Path] = []
        with reraise_as(ConfigurationError, f"'{_shown(name)}' cannot be searched"):
            for path in self.folder.glob(name):
                if path.is_file() and is_within(path, self.folder):
                    files.append(path)
                if len(files) > MAX_FILES:
                    raise ConfigurationError(
                        f"The pattern '{_shown(name)}' stands for more than"
                        f" {MAX_FILES:,} files."
                    )
        if not files:
            raise ConfigurationError(
                f"No file in '{self.folder}' fits '{_shown(name)}'."
            )
        return sorted(files)

    def named(self, path: Path) -> str:
        """Return a file's name as messages show it."""
        return path.relative_to(self.folder).as_posix()


def _shown(name: str) -> str:
    """Return a name as a message shows it."""
    text = printable(name)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is not UTF-8.
    """
    with reraise_as(ConfigurationError, f"'{path}' cannot be read"):
        content = regular_file(path, MAX_BYTES).read_bytes()
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"'{path}' is not UTF-8 text; save it as UTF-8."
        ) from None


def read_document(path: Path, kind: str) -> Any:
    """Read a YAML or JSON file: a mapping, or a list.

    Raises:
        EvalwrightError: it cannot be read; the message names file and line.
    """
    if path.suffix.lower() == ".json":
        return parse_json(read_text(path), str(path))
    document = read_yaml(path, kind, list_key="list").value
    return document["list"] if list(document) == ["list"] else document


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a JSON Lines file.

    Raises:
        RunError: a row is not a JSON object; the message names the line.
    """
    return [row.content for row in read_json_lines(path)]


def read_table(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file, by the columns' names.

    Raises:
        ConfigurationError: it cannot be read as CSV; the message names the line.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        header: Sequence[str] = [column.strip() for column in next(reader, [])]
        rows = [
            dict(zip(header, [*cells, *[""] * len(header)], strict=False))
            for cells in reader
            if cells
        ]
    except csv.Error as error:
        raise ConfigurationError(
            f"'{path}', line {reader.line_num}: this is not CSV: {error}."
        ) from None
    if not header or len(set(header)) < len(header):
        raise ConfigurationError(
            f"'{path}' has no header, or one with the same column twice."
        )
    return rows
