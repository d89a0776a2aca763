"""Small facts that took long to find out, kept in the home folder between commands.

A note says something about a subject (a file, a model) that holds while the subject's state is the
same. It is a JSON file of its own under `$EVALWRIGHT_HOME/KIND`, replaced as a whole, so several
processes can use the folder. A note that is damaged, or is about another state, is not there; a
folder that cannot be written costs only time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright.core.private import check_ordinary, home_folder, private_folder

MAX_NOTES = 1_000
"""Most notes of a kind; the oldest are removed."""
MAX_NOTE_BYTES = 1 << 20


def read_note(kind: str, subject: Any, state: Any) -> Any:
    """Return what was noted of a subject.

    Args:
        kind: the folder of such notes.
        subject: what the note is about, as JSON.
        state: what must be the same as when it was written, as JSON.

    Returns:
        The content; None if there is no such note.
    """
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        file = check_ordinary(_file(kind, subject), MAX_NOTE_BYTES)
        note = json.loads(file.read_bytes())
        noted = [note["subject"], note["state"], note["content"]]
        # The first two go through JSON, as those of the note did.
        if noted[:2] == json.loads(json.dumps([subject, state])) and (
            note["sum"] == _sum(noted)
        ):
            return note["content"]
    return None


def write_note(kind: str, subject: Any, state: Any, content: Any) -> None:
    """Note something about a subject, in place of an earlier note about it.

    Args:
        kind: the folder of such notes.
        subject: what the note is about, as JSON.
        state: what must be the same when it is read, as JSON.
        content: what is noted, as JSON, not None.
    """
    file = _file(kind, subject)
    note = {"subject": subject, "state": state, "content": content}
    encoded = json.dumps({**note, "sum": _sum([subject, state, content])})
    with suppress(OSError):
        private_folder(file.parent)
        handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                opened.write(encoded)
            Path(temporary).replace(file)
        finally:
            Path(temporary).unlink(missing_ok=True)
        _remove_oldest(file.parent)


def _file(kind: str, subject: Any) -> Path:
    name = hashlib.blake2b(json.dumps(subject).encode(), digest_size=16).hexdigest()
    return home_folder() / kind / f"{name}.json"


def _sum(noted: Any) -> str:
    return hashlib.blake2b(json.dumps(noted).encode(), digest_size=16).hexdigest()


def _remove_oldest(folder: Path) -> None:
    """Remove the oldest notes of a folder once it has too many."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    if len(names) <= MAX_NOTES:
        return
    modified: dict[Path, int] = {}
    for name in names:
        with suppress(OSError):  # another process has just removed it
            modified[folder / name] = (folder / name).stat().st_mtime_ns
    oldest = sorted(modified, key=modified.__getitem__)[: len(names) - MAX_NOTES]
    for file in oldest:
        file.unlink(missing_ok=True)
