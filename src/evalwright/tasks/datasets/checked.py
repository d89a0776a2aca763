"""Caches that large data were checked, and which of their rows a task uses.

An entry is for one content of the files and one definition. It is kept under
`$EVALWRIGHT_HOME/checked`, one file for each definition: a line of JSON, then the positions of the
rows. It is used only if the data, the definition, this version's code and its own checksum are
unchanged; else the rows are checked again.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.private import home_folder, private_folder
from evalwright.tasks.datasets.jsonl_rows import Rows
from evalwright.tasks.safe_files import write_bytes

SMALLEST = 4 << 20
"""Least bytes of data whose check is cached; smaller data are checked faster than looked up."""

_FORMAT = 1


@dataclass(frozen=True)
class Check:
    """The cached check of some rows for one definition.

    Attributes:
        rows: the rows.
        recipe: returns everything besides the rows on which the check depends, as JSON.
    """

    rows: Rows
    recipe: Callable[[], Any]

    @property
    def _file(self) -> Path:
        names = [source.label for source in self.rows.sources]
        key = json.dumps(
            [_FORMAT, _code(), names, self.recipe()], sort_keys=True, default=str
        ).encode()
        return (
            home_folder() / "checked" / hashlib.blake2b(key, digest_size=16).hexdigest()
        )

    def _is_large(self) -> bool:
        return sum(source.size for source in self.rows.sources) >= SMALLEST

    def load(self) -> str | None:
        """Restore rows that were checked before; return the samples' hash, None without any."""
        if not self._is_large():
            return None
        with suppress(OSError, ValueError, LookupError, TypeError):
            head, _, body = self._file.read_bytes().partition(b"\n")
            data = json.loads(head)
            if (
                data["sum"] != _sum(data["of"], body)
                or len(body) != 12 * data["of"]["kept"]
            ):
                return None
            of = data["of"]
            if of["sources"] != [source.content() for source in self.rows.sources]:
                return None
            offsets = array("Q")
            lengths = array("I")
            offsets.frombytes(body[: 8 * of["kept"]])
            lengths.frombytes(body[8 * of["kept"] :])
            self.rows.restore(offsets, lengths, of["starts"], of["total"])
            return str(of["hash"])
        return None

    def save(self, content_hash: str) -> None:
        """Record that these rows passed. A folder that cannot be written costs only time."""
        if not self._is_large():
            return
        offsets, lengths, starts = self.rows.places()
        of = {
            "hash": content_hash,
            "kept": len(offsets),
            "starts": list(starts),
            "total": self.rows.total,
            "sources": [source.content() for source in self.rows.sources],
        }
        body = offsets.tobytes() + lengths.tobytes()
        head = json.dumps({"of": of, "sum": _sum(of, body)}).encode()
        with suppress(OSError):
            private_folder(self._file.parent)
            write_bytes(self._file.resolve(), head + b"\n" + body)


def _sum(of: Any, body: bytes) -> str:
    digest = hashlib.blake2b(json.dumps(of, sort_keys=True).encode(), digest_size=16)
    digest.update(body)
    return digest.hexdigest()


@cache
def _code() -> Sequence[Any]:
    """Return what stands for the checking code: the version, and the state of its files."""
    root = Path(__file__).resolve().parents[2]
    files = sorted(
        path
        for room in ("core", "tasks", "scorers")
        for path in (root / room).rglob("*.py")
    )
    states = [
        (str(path.relative_to(root)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in files
    ]
    return [
        __version__,
        os.name,
        hashlib.blake2b(repr(states).encode(), digest_size=16).hexdigest(),
    ]
