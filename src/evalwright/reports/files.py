"""Writes published files: whole or not at all, and only where they change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evalwright.core.errors import ConfigurationError


def write_whole(path: Path, data: bytes | str) -> bool:
    """Write a file so that it is either the old or the new one; False where it already says this.

    A file that was there keeps its permissions, and a link keeps leading to it. Raises ConfigurationError.
    """
    wanted = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        target = path.resolve()
        if target.is_file() and target.read_bytes() == wanted:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as out:
                out.write(wanted)
                out.flush()
                os.fsync(out.fileno())
            if target.is_file():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise ConfigurationError(
            f"'{path}' cannot be written: {getattr(error, 'strerror', None) or error}."
        ) from error
    return True


def read_whole(path: Path) -> bytes:
    """A file's bytes, none where there is no file. Raises ConfigurationError."""
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise ConfigurationError(f"'{path}' cannot be read: {error.strerror}.") from error


def link_to(target: Path, page: Path) -> str:
    """The relative address of a file as a page beside it links to it; "" where there is none (another drive)."""
    from urllib.parse import quote

    try:
        found = os.path.relpath(target.resolve(), page.resolve().parent)
    except ValueError:
        return ""
    return quote(found.replace(os.sep, "/"), safe="/")
