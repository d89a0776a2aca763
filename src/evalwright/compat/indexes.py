"""Caches indexes of other frameworks' task folders under `$EVALWRIGHT_HOME`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright import __version__
from evalwright.extend import home_folder, regular_file, write_text

_VERSION = 1
"""Version of the cache's format."""
State = tuple[str, int, int]
"""A file's state: path, size, time."""
Stamp = list[int]
"""Size and times of a file; empty where there is none."""


def stamp(path: str) -> Stamp:
    """The present stamp of a file."""
    try:
        status = Path(path).stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def cached_index(
    system: str, folder: Path, files: Iterable[State], build: Callable[[], Any]
) -> Any:
    """Build the index of a folder, cached for one state of its files.

    The index is plain JSON; its key `outside` holds the stamps of files elsewhere.
    """
    digest = hashlib.blake2b(f"{__version__}/{_VERSION}".encode(), digest_size=16)
    for path, size, time in files:
        digest.update(f"{path}\0{size}\0{time}\n".encode(errors="surrogateescape"))
    state = digest.hexdigest()
    name = hashlib.blake2b(
        str(folder).encode(errors="surrogateescape"), digest_size=8
    ).hexdigest()
    cache = home_folder() / system / f"index-{name}.json"
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        text = regular_file(cache).read_text(encoding="utf-8")
        stored = json.loads(text)
        outside = stored["made"].get("outside", {})
        if stored["state"] == state and all(
            stamp(file) == recorded for file, recorded in outside.items()
        ):
            return stored["made"]
    stored = {"state": state, "made": build()}
    with suppress(OSError):  # a folder that cannot be written costs only time
        write_text(cache.resolve(), json.dumps(stored, separators=(",", ":")))
    return stored["made"]
