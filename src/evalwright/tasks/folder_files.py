"""Files of a task's folder that go into a sandbox: `{from: FOLDER}` of `files`.

A folder is copied with its tree, a file alone. A link is followed only within the folder of the
task file; one that leads out, a pipe or a device is refused, and so is what is hidden unless the
user trusts the task's folder.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from evalwright.core.errors import TaskError
from evalwright.core.private import check_ordinary
from evalwright.sandboxes.plan import PlannedFile
from evalwright.tasks.yaml_files import Document, KeyPath, shown_path

FROM = "from"
"""The key that names a folder or a file."""
DIGEST = "sha256"
"""The key under which a record has the digest of what was copied."""
MAX_TOTAL_BYTES = 64 << 20
"""Most bytes of all files of a sandbox together."""
MAX_FILES = 10_000
"""Most files and folders of one tree."""
_MEGABYTE = 1 << 20


def is_from(content: object) -> bool:
    """Return whether an entry of `files` names a folder or file."""
    return isinstance(content, Mapping) and FROM in content


def read_tree(name: str, at: KeyPath, document: Document) -> tuple[PlannedFile, ...]:
    """Read a folder beside the task file, or one file.

    Args:
        name: the folder or file, relative to the file that names it.
        at: where it is named.
        document: the task's definition.

    Returns:
        The files in the order of their names. Paths are relative to the folder; that of a file
        alone is "".

    Raises:
        TaskError: it is not there, may not be read, or is too large.
    """
    path = document.allowed(at, document.folder(at) / name, beside=True)
    try:
        if path.is_dir():
            return tuple(_read_folder(path, at, document))
        return (_read_file(path, "", at, document),)
    except FileNotFoundError:
        raise document.error(
            at, f"the folder or file '{name[:200]}' does not exist beside this file."
        ) from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise document.error(
            at, f"'{shown_path(path)}' cannot be read: {reason}."
        ) from None


def _read_folder(
    folder: Path, at: KeyPath, document: Document
) -> Iterator[PlannedFile]:
    n_bytes = 0
    for n_files, path in enumerate(_paths_in(folder), 1):
        if n_files > MAX_FILES:
            raise document.error(
                at,
                f"the folder '{shown_path(folder)}' has more than {MAX_FILES:,} files.",
            )
        if path.is_symlink() and path.is_dir():
            raise document.error(
                at,
                f"'{shown_path(path)}' is a link to a folder, which is not copied:"
                " put the folder in its place.",
            )
        file = _read_file(path, path.relative_to(folder).as_posix(), at, document)
        n_bytes += len(file.content)
        if n_bytes > MAX_TOTAL_BYTES:
            raise too_large(at, document)
        yield file


def _paths_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, by their names; links to folders are not entered."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.is_dir() and not path.is_symlink():
            yield from _paths_in(path)
        else:
            yield path


def _read_file(
    path: Path, relative: str, at: KeyPath, document: Document
) -> PlannedFile:
    real = document.allowed(at, path, beside=True).resolve(strict=True)
    content = check_ordinary(real, MAX_TOTAL_BYTES).read_bytes()
    is_executable = bool(real.stat().st_mode & stat.S_IXUSR)
    return PlannedFile(relative, content, is_executable)


def too_large(at: KeyPath, document: Document) -> TaskError:
    """Make the error for files that are too large together."""
    return document.error(
        at,
        "the files of a sandbox have more than"
        f" {MAX_TOTAL_BYTES // _MEGABYTE} MiB in all.",
    )


def placed_at(path: str, tree: Sequence[PlannedFile]) -> list[PlannedFile]:
    """Return the files of a tree with the paths that they have in the sandbox."""
    return [
        PlannedFile(
            f"{path.rstrip('/')}/{file.path}" if file.path else path,
            file.content,
            file.is_executable,
        )
        for file in tree
    ]


def digest_of(tree: Sequence[PlannedFile]) -> str:
    """Return a digest of the paths and contents of files."""
    state = sha256()
    for file in tree:
        head = json.dumps([file.path, len(file.content), file.is_executable])
        state.update(head.encode("utf-8", "surrogatepass"))
        state.update(file.content)
    return state.hexdigest()


def packed(tree: Sequence[PlannedFile]) -> bytes:
    """Return files as the bytes of a tar archive, equal for equal files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in tree:
            member = tarfile.TarInfo(file.path or ".")
            member.size = len(file.content)
            member.mode = 0o755 if file.is_executable else 0o644
            tar.addfile(member, io.BytesIO(file.content))
    return archive.getvalue()


def unpacked(archive: bytes) -> tuple[PlannedFile, ...]:
    """Return the files of a tar archive that `packed` made; nothing is written to disk.

    Raises:
        ValueError: it is none.
    """
    files: list[PlannedFile] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    raise ValueError("it has other things than files")
                path = "" if member.name == "." else member.name
                is_executable = bool(member.mode & 0o100)
                files.append(PlannedFile(path, content.read(), is_executable))
    except tarfile.TarError as error:
        raise ValueError(f"it is not an archive of files: {error}") from None
    return tuple(files)


def fixed_folder(name: str) -> tuple[str, str]:
    """Split a name with a template into the folder before the template, and what follows.

    Args:
        name: such as "tests/{{ id }}".

    Returns:
        Such as ("tests", "{{ id }}"); the whole name and "" where it is no template.
    """
    marks = [name.find(mark) for mark in ("{{", "{%", "{#") if mark in name]
    if not marks:
        return name, ""
    folder = name[: min(marks)].rpartition("/")[0]
    return folder, name[len(folder) :].lstrip("/")


def below(tree: Sequence[PlannedFile], name: str) -> tuple[PlannedFile, ...]:
    """Return what is in one folder of a tree, or one file of it.

    Args:
        tree: the files.
        name: a path in it; "" for all of it.
    """
    inner = os.path.normpath(name).strip("/") if name else ""
    if inner in ("", "."):
        return tuple(tree)
    parts: list[PlannedFile] = []
    for file in tree:
        if file.path == inner:
            return (PlannedFile("", file.content, file.is_executable),)
        if file.path.startswith(f"{inner}/"):
            relative = file.path.removeprefix(f"{inner}/")
            parts.append(PlannedFile(relative, file.content, file.is_executable))
    return tuple(parts)


def recorded_from(name: str, digest: str) -> dict[str, Any]:
    """Return what a record has of an entry that names a folder or file."""
    return {FROM: name, DIGEST: digest} if digest else {FROM: name}
