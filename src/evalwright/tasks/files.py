"""The one place that writes files: whole or not at all, and only where they change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evalwright.core.errors import ConfigurationError


def is_within(path: Path, *folders: Path) -> bool:
    """Whether a path leads, links followed, to a place within one of the folders that is not hidden there (`.env`, `.git/`)."""
    try:
        found = path.resolve()
        inner = [found.relative_to(one) for one in map(Path.resolve, folders) if found.is_relative_to(one)]
    except (OSError, RuntimeError, ValueError):
        return False
    return any(not any(part.startswith(".") for part in one.parts) for one in inner)


def write_bytes(path: Path, data: bytes) -> bool:
    """Write a file so that it is either the old or the new one; False where it already says this.

    Missing folders are made. A file that was there keeps its permissions, and a link keeps leading to it. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if target.is_file():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def write_text(path: Path, text: str) -> bool:
    """As `write_bytes`, for text; a lone surrogate, which has no UTF-8 form, is escaped."""
    return write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_file(path: Path, data: bytes | str) -> bool:
    """Write a file that a person named, as `write_bytes` does. Raises ConfigurationError with a sentence."""
    try:
        return write_text(path, data) if isinstance(data, str) else write_bytes(path, data)
    except OSError as error:
        raise ConfigurationError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def read_file(path: Path) -> bytes:
    """The bytes of a file that a person named, none where there is no file. Raises ConfigurationError with a sentence."""
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise ConfigurationError(f"'{path}' cannot be read: {error.strerror or error}.") from error
