"""Small facts that took long to find out, kept in the home folder between commands.

A note says something about a subject (a file, a model) that holds while the subject's state is the
same. It is a sealed file (`sealed_files`) of its own under `$EVALWRIGHT_HOME/KIND`, replaced as a
whole, so several processes can use the folder. A note that is damaged, is about another state, or
was written by somebody else, is not there; a folder that cannot be written costs only time.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from evalwright.core.sealed_files import SealedFolder

MAX_NOTES = 1_000
"""Most notes of a kind; the least recently used ones are removed."""
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
        encoded = _folder(kind).read_about(_encode(subject), MAX_NOTE_BYTES)
        if encoded is None:
            return None
        note = json.loads(encoded)
        # The state goes through JSON, as that of the note did.
        if note["state"] == json.loads(json.dumps(state)):
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
    note = {"subject": subject, "state": state, "content": content}
    _folder(kind).write_about(_encode(subject), _encode(note))


def _folder(kind: str) -> SealedFolder:
    return SealedFolder(kind, max_files=MAX_NOTES)


def _encode(fact: Any) -> bytes:
    return json.dumps(fact).encode()
