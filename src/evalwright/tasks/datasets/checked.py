"""Caches that large data were checked, and which of their rows a task uses.

A check is of one content of the files and one definition. It is kept under
`$EVALWRIGHT_HOME/checked`, one sealed file for each definition: a line of JSON, then the positions
of the rows. It is used only if the data, the definition and this version's code are unchanged; else
the rows are checked again.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.sealed_files import SealedFolder
from evalwright.tasks.datasets.jsonl_rows import Rows

SMALLEST = 4 << 20
"""Least bytes of data whose check is cached; smaller data are checked faster than looked up."""

CHECKED = SealedFolder("checked", max_bytes=1 << 30)
"""The checks; twelve bytes for each row."""

_FORMAT = 2


@dataclass(frozen=True)
class Check:
    """The cached check of some rows for one definition.

    Attributes:
        rows: the rows.
        recipe: returns everything besides the rows on which the check depends, as JSON.
    """

    rows: Rows
    recipe: Callable[[], Any]

    def load(self) -> str | None:
        """Restore rows that were checked before; return the samples' hash, None without any."""
        if not self._is_large():
            return None
        content = CHECKED.read_about(self._subject())
        if content is None:
            return None
        encoded_facts, _, body = content.partition(b"\n")
        facts = json.loads(encoded_facts)
        if facts["sources"] != [source.content() for source in self.rows.sources]:
            return None
        n_offset_bytes = 8 * facts["kept"]
        offsets = array("Q")
        lengths = array("I")
        offsets.frombytes(body[:n_offset_bytes])
        lengths.frombytes(body[n_offset_bytes:])
        self.rows.restore(offsets, lengths, facts["starts"], facts["total"])
        return str(facts["hash"])

    def save(self, content_hash: str) -> None:
        """Record that these rows passed. A folder that cannot be written costs only time."""
        if not self._is_large():
            return
        offsets, lengths, starts = self.rows.places()
        facts = {
            "hash": content_hash,
            "kept": len(offsets),
            "starts": list(starts),
            "total": self.rows.total,
            "sources": [source.content() for source in self.rows.sources],
        }
        encoded_facts = json.dumps(facts).encode()
        body = offsets.tobytes() + lengths.tobytes()
        CHECKED.write_about(self._subject(), encoded_facts + b"\n" + body)

    def _is_large(self) -> bool:
        return sum(source.size for source in self.rows.sources) >= SMALLEST

    def _subject(self) -> bytes:
        """Return what the check depends on, besides the content of the rows."""
        names = [source.label for source in self.rows.sources]
        subject = [_FORMAT, _code(), names, self.recipe()]
        return json.dumps(subject, sort_keys=True, default=str).encode()


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
