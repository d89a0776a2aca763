"""Writes files whole or not at all, if their content changes; no other module writes files."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.core.local_paths import why_not_local
from evalwright.core.private import LARGEST_DOCUMENT, check_ordinary, open_private
from evalwright.core.secrets import mask
from evalwright.core.text import printable

_UNUSABLE = (OSError, ValueError)  # a name with a null character is a ValueError


def place_of(path: Path) -> Path:
    """Return the real place of a file or folder that the user named.

    Whoever brought a folder may have put links into it. So a name within the working folder must
    stay within it, and a name elsewhere within the folder that was named; to write where a link
    leads, name that place.

    Args:
        path: the name.

    Returns:
        The path, links followed.

    Raises:
        OSError: a link leads it elsewhere, it is an address such as s3://bucket, or a pipe or a
            device is there.
    """
    if why := why_not_local(path):
        raise OSError(errno.EINVAL, why)
    real = Path(os.path.realpath(path))
    start = (
        Path.cwd() if not path.is_absolute() and ".." not in path.parts else path.parent
    )
    folder = Path(os.path.realpath(start))
    if not real.is_relative_to(folder):
        raise OSError(
            errno.ELOOP,
            f"a link leads to '{real}', outside '{folder}'; name that place if it is"
            " meant",
        )
    if real.exists() and not (real.is_file() or real.is_dir()):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder")
    return real


def is_within(path: Path, *folders: Path) -> bool:
    """Return whether a path leads, links followed, into one of several folders.

    Args:
        path: a file or a folder.
        folders: the folders.

    Returns:
        Whether it does; False also for what is hidden there (`.env`, `.git/`).
    """
    try:
        resolved = path.resolve()
        inner = [
            resolved.relative_to(folder)
            for folder in map(Path.resolve, folders)
            if resolved.is_relative_to(folder)
        ]
    except (OSError, RuntimeError, ValueError):
        return False
    return any(
        not any(part.startswith(".") for part in relative.parts) for relative in inner
    )


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> bool:
    """Write a file so that it is either the old or the new one.

    Missing folders are made. An existing file keeps its permissions, and a link keeps leading to it
    (`place_of`). `private` makes a new file readable by its owner alone.

    Returns:
        False if the file already has this content.

    Raises:
        OSError: it cannot be written.
    """
    target = place_of(path)
    if (
        target.is_file()
        and target.stat().st_size == len(data)
        and target.read_bytes() == data
    ):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(
        f".{target.name}.{os.getpid()}.{threading.get_native_id()}.tmp"
    )
    temporary.unlink(missing_ok=True)
    try:
        with open_private(temporary, "xb") if private else temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.is_file():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of a file if the block succeeds.

    For what is too large to be held in memory; `write_text` and `write_file` are for the rest.

    Args:
        path: the file; missing folders are made.

    Returns:
        A context manager that gives the temporary file's path; the file is removed if the block
        fails.

    Raises:
        OSError: it cannot be written.
    """
    place_of(path.parent).mkdir(parents=True, exist_ok=True)
    target = place_of(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_text(path: Path, text: str, *, private: bool = False) -> bool:
    """Write a text file, without any secret, so that it is either the old or the new one.

    Missing folders are made. An existing file keeps its permissions. A lone surrogate, which has no
    UTF-8 form, is escaped.

    Args:
        path: the file.
        text: its content.
        private: whether a new file is readable by its owner alone.

    Returns:
        False if the file already has this content.

    Raises:
        OSError: it cannot be written.
    """
    return write_bytes(
        path, mask(text).encode("utf-8", "backslashreplace"), private=private
    )


def write_file(path: Path, data: bytes | str) -> bool:
    """Write a file that the user named, as `write_text` does.

    Args:
        path: the file.
        data: its content: text, from which secrets are removed, or bytes.

    Returns:
        False if the file already has this content.

    Raises:
        ConfigurationError: it cannot be written; the message says why.
    """
    with failing_as(
        ConfigurationError, f"'{printable(str(path))}' cannot be written", _UNUSABLE
    ):
        return (
            write_text(path, data) if isinstance(data, str) else write_bytes(path, data)
        )


def check_file(path: Path) -> None:
    """Check that `write_file` could write a file, without creating anything.

    Args:
        path: the file that the user named.

    Raises:
        ConfigurationError: it cannot be written; the message says why.
    """
    with failing_as(
        ConfigurationError, f"'{printable(str(path))}' cannot be written", _UNUSABLE
    ):
        real = place_of(path)
        folder = next(parent for parent in real.parents if parent.exists())
        if real.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"'{folder.name}' is not a folder")
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def read_file(path: Path) -> bytes:
    """Read the bytes of a file that the user named; empty if there is no file.

    Raises:
        ConfigurationError: it cannot be read; the message says why.
    """
    with failing_as(
        ConfigurationError, f"'{printable(str(path))}' cannot be read", _UNUSABLE
    ):
        return check_ordinary(path).read_bytes() if path.exists() else b""


@contextmanager
def failing_as(
    kind: type[EvalwrightError],
    message: str,
    caught: type[Exception] | tuple[type[Exception], ...] = OSError,
    *,
    where: str = "",
) -> Iterator[None]:
    """Turn errors in a `with` block into an error of ours.

    Args:
        kind: the class of the error to raise.
        message: what failed; the reason follows it after a colon.
        caught: the errors to turn.
        where: the file, or the file and the line, that is read; begins the message.

    Returns:
        A context manager.

    Raises:
        EvalwrightError: of the class `kind`, if the block raised one of `caught`.
    """
    try:
        yield
    except caught as error:
        place = f"{where}: " if where else ""
        raise kind(
            f"{place}{message}: {getattr(error, 'strerror', None) or error}."
        ) from error


def read_json(path: Path, kind: type[EvalwrightError], called: str) -> Any:
    """Read a JSON file.

    Raises an error of class `kind` if that fails; `called` names the file in it.
    """
    broken = failing_as(kind, f"{path} is not valid JSON", ValueError)
    with failing_as(kind, f"{called} cannot be read"), broken:
        return from_json(
            check_ordinary(path, LARGEST_DOCUMENT).read_bytes().decode("utf-8-sig")
        )
