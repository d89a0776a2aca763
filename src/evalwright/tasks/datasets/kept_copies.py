"""Which copies of data files were made by this user, and which are removed again.

A copy decides what is asked, so one that came with somebody else's `.evalwright` must not count: a
sealed note has the state of each copy that was written or compared here. Copies that were not used
for long are removed when another one is made, but for those that a process reads. They can be made
again from their files; copies of hub datasets cannot without the hub, and stay. Files without such
a note stay too: the folder may have files of the user's, or be a link to somewhere else.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from evalwright.core.file_hashes import file_state
from evalwright.core.notes import read_note, write_note

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]

HUB_PREFIX = "hub-"
"""The names of copies of hub datasets begin with it."""
PARTIAL_PREFIX = ".partial-"
"""The names of copies that are being written begin with it."""
_PARTIAL_NAME = re.compile(r"\.partial-\w{8}")
UNUSED_DAYS = 30
"""A copy that was not used for so long is removed; its note stays for longer."""
ABANDONED_DAYS = 7
"""A partial copy of this age is removed."""
MAX_BYTES = 1 << 36
"""Most bytes of all copies that can be made again; the least recently used ones are removed."""
USE_MARKED_DAYS = 7
"""A copy's last use is set anew once it is so long ago."""
_DAY_SECONDS = 86_400
_NOTES = "copies"


def is_own_copy(path: Path) -> bool:
    """Tell whether a copy is as it was when this user made or compared it, and mark its use."""
    with suppress(OSError):  # another process has just removed it
        is_own = _has_note(path)
        last_use_days = (time.time() - _last_use(path.stat())) / _DAY_SECONDS
        if is_own and last_use_days > USE_MARKED_DAYS:
            note_own_copy(path)
        return is_own
    return False


def note_own_copy(path: Path) -> None:
    """Note that a copy is right as it is, and mark its use."""
    with suppress(OSError):  # another user's file
        # Only the time of the last access: that of the last change tells readers of a change.
        modified_ns = path.stat().st_mtime_ns
        os.utime(path, ns=(max(time.time_ns(), modified_ns), modified_ns))
    # Before the notes of old copies are removed, of which nobody knew then whose they are.
    sweep_copies(path.parent)
    write_note(_NOTES, path.name, file_state(path), True)


def _has_note(path: Path) -> bool:
    """Tell whether a copy is as a note of this user says. Raises OSError where it is gone."""
    return read_note(_NOTES, path.name, file_state(path)) is True


def hold_copy(handle: int) -> None:
    """Keep a copy from being removed while a descriptor of it is open."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


def sweep_copies(folder: Path) -> None:
    """Remove copies that were not used for long or are too much, and abandoned partial ones.

    Args:
        folder: the folder of copies.
    """
    now = time.time()
    states: dict[Path, os.stat_result] = {}
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):  # another process has just removed it
                states[path] = path.lstat()
    last_uses: dict[Path, float] = {}
    for path, state in states.items():
        age_days = (now - state.st_mtime) / _DAY_SECONDS
        if _PARTIAL_NAME.fullmatch(path.name) and age_days > ABANDONED_DAYS:
            _remove(path)
        if _can_be_made_again(path, state):
            last_uses[path] = _last_use(state)
    n_bytes = 0
    for path in sorted(last_uses, key=last_uses.__getitem__, reverse=True):
        n_bytes += states[path].st_size
        unused_days = (now - last_uses[path]) / _DAY_SECONDS
        is_too_much = n_bytes > MAX_BYTES and unused_days > 1
        if unused_days > UNUSED_DAYS or is_too_much:
            _remove_own(path)


def _can_be_made_again(path: Path, state: os.stat_result) -> bool:
    return (
        path.suffix == ".jsonl"
        and not path.name.startswith((".", HUB_PREFIX))
        and stat.S_ISREG(state.st_mode)
    )


def _last_use(state: os.stat_result) -> float:
    return max(state.st_atime, state.st_mtime)


def _remove_own(path: Path) -> None:
    """Remove a copy if this user made it and no process holds it."""
    with suppress(OSError):
        if _has_note(path):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a file unless a process holds it."""
    with suppress(OSError), path.open("r+b") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
