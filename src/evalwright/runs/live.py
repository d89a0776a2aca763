"""`live.jsonl`: what the trajectories of a run's open samples have said and done so far.

A line is one event: {"task", "id", "draw", "attempt", "turns": [...]} with the turns that were
added, as a record's prompt has them, or "ended": true in place of them. The file holds open samples
only, is bounded, and goes when the run ends; nothing else depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from evalwright.core.private import open_private
from evalwright.runs.writer import to_json

LIVE_FILE = "live.jsonl"
MAX_BYTES = 64 << 20
"""Most bytes of the file. What comes on top is not in it."""
MAX_SHOWN_CHARS = 20_000
"""Most characters of one turn's text."""
_MIN_DEAD_BYTES = 1 << 20
"""Bytes of samples that are done for which the file is not written anew."""

_Key = tuple[str, str, int]


class LiveFile:
    """Writes the file of one run. An error of the disk ends it, and nothing else.

    Args:
        folder: the run's folder, which exists by the first event.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LIVE_FILE
        self._file: IO[bytes] | None = None
        self._is_broken = False
        self._places: dict[_Key, list[tuple[int, int]]] = {}
        """By open sample, where its lines begin and how long they are."""
        self._size = 0
        self._dead_bytes = 0
        with suppress(OSError):
            self.path.unlink(missing_ok=True)  # a run that was killed left it

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event of a trajectory."""
        if self._is_broken:
            return
        line = to_json(_shortened(event), separators=(",", ":"))
        encoded = line.encode("utf-8", "backslashreplace") + b"\n"
        if self._size + len(encoded) > MAX_BYTES:
            return
        try:
            self._append(_key_of(event), encoded)
        except OSError:
            self._is_broken = True

    def done(self, task: str, sample: str, draw: int) -> None:
        """Drop a sample that has its record."""
        places = self._places.pop((task, sample, draw), None)
        if places is None:
            return
        self._dead_bytes += sum(length for _, length in places)
        if self._is_broken or self._dead_bytes < max(_MIN_DEAD_BYTES, self._size // 2):
            return
        try:
            self._rewrite()
        except OSError:
            self._is_broken = True

    def close(self) -> None:
        """Remove the file."""
        if self._file is None:
            return
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _append(self, key: _Key, encoded: bytes) -> None:
        if self._file is None:
            self._file = open_private(self.path, "w+b", buffering=0)
        self._file.seek(0, os.SEEK_END)
        self._file.write(encoded)
        self._places.setdefault(key, []).append((self._size, len(encoded)))
        self._size += len(encoded)

    def _rewrite(self) -> None:
        """Write the lines of open samples to a new file, which replaces the old one."""
        assert self._file is not None
        beside = self.path.with_suffix(".partial")
        file = open_private(beside, "w+b", buffering=0)
        try:
            size = self._copy_open(file)
            beside.replace(self.path)
        except OSError:
            file.close()
            raise
        self._file.close()
        self._file = file
        self._size = size
        self._dead_bytes = 0

    def _copy_open(self, file: IO[bytes]) -> int:
        assert self._file is not None
        size = 0
        for places in self._places.values():
            for index, (start, length) in enumerate(places):
                self._file.seek(start)
                file.write(self._file.read(length))
                places[index] = (size, length)
                size += length
        return size


def _key_of(event: Mapping[str, Any]) -> _Key:
    return str(event["task"]), str(event["id"]), int(event["draw"])


def _shortened(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event whose texts are no longer than a view of it needs."""
    turns = event.get("turns")
    if not turns:
        return dict(event)
    return {**event, "turns": [cut_texts(turn, MAX_SHOWN_CHARS) for turn in turns]}


def cut_texts(content: Any, max_chars: int) -> Any:
    """Return plain JSON whose texts are cut, each with a line that says how much is left out.

    Args:
        content: plain JSON.
        max_chars: most characters of a text, without that line.
    """
    if isinstance(content, str) and len(content) > max_chars:
        n_cut = len(content) - max_chars
        return f"{content[:max_chars]}\n[{n_cut:,} more characters]"
    if isinstance(content, list | tuple):
        return [cut_texts(member, max_chars) for member in content]
    if isinstance(content, Mapping):
        return {name: cut_texts(member, max_chars) for name, member in content.items()}
    return content
