"""Puts files that the model never saw into a sandbox, where it may have prepared their place.

It may have left a link there, a folder in place of a file, or files beside them that a test runner
reads. So what is at their place is removed first, links on the way to it too, and the folder of a
file is emptied, unless it is the model's own or one of the system's.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.sandboxes.plan import PlannedFile
from evalwright.sandboxes.protocol import Sandbox, SandboxPathError
from evalwright.scorers.sandbox.state import BASH, environment

SECONDS = 120.0
"""Most seconds of clearing the place."""
STEERING = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    "sitecustomize.py",
    "usercustomize.py",
)
"""Files that test runners look for in the folders above tests."""
_SYSTEM = frozenset(
    (
        *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media"),
        *("/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp"),
        *("/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/var"),
        *("/var/lib", "/var/tmp", "/opt/python"),
    )
)
"""Folders that are not emptied because a hidden file is in them."""
_CLEAR = """
while [ "$1" != -- ]; do
  if [ -L "$1" ] || { [ -e "$1" ] && [ ! -d "$1" ]; }; then rm -rf -- "$1"; fi
  if [ -d "$1" ]; then chmod u+rwx -- "$1"; fi
  shift
done
shift
for place; do
  if [ -d "$place" ] && [ ! -L "$place" ]; then chmod -R u+rwx -- "$place"; fi
done
if [ "$#" -gt 0 ]; then rm -rf -- "$@"; fi
"""


class CannotPut(Exception):
    """What the model left prevents the files from being put in."""


@dataclass(frozen=True, slots=True)
class HiddenFiles:
    """Files of a scorer with the places that are cleared for them.

    Attributes:
        files: the files, with absolute paths.
        on_the_way: folders above them, which may be no links.
        cleared: what is removed before they are put in.
        import_folders: folders whose Python modules are those of the scorer alone.
    """

    files: tuple[PlannedFile, ...] = ()
    on_the_way: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    import_folders: tuple[str, ...] = ()


@dataclass(slots=True)
class _Places:
    files: list[PlannedFile] = field(default_factory=list)
    cleared: dict[str, None] = field(default_factory=dict)
    on_the_way: dict[str, None] = field(default_factory=dict)
    import_folders: dict[str, None] = field(default_factory=dict)


def check_hidden_files(files: Any) -> None:
    """Check the option `files`: a mapping of paths to texts, or to files of a folder.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(files, Mapping):
        raise ConfigurationError(
            "The option 'files' is a mapping of paths to texts or {from: FOLDER}, not"
            f" {files!r}."
        )
    for path, content in files.items():
        if not isinstance(path, str) or not path.strip("/.") or ".." in path.split("/"):
            raise ConfigurationError(
                "A path of the option 'files' names a file or folder, without '..', not"
                f" {str(path)[:80]!r}."
            )
        is_from = isinstance(content, Mapping) and isinstance(content.get("from"), str)
        is_tree = isinstance(content, list | tuple) and all(
            isinstance(part, PlannedFile) for part in content
        )
        if not isinstance(content, str | int | float) and not is_from and not is_tree:
            raise ConfigurationError(
                f"The file '{path[:80]}' of the option 'files' is a text or {{from: FOLDER}},"
                f" not {type(content).__name__}."
            )


def read_hidden_files(files: Mapping[str, Any], folder: str) -> HiddenFiles:
    """Return the files of the option `files` and what is cleared for them.

    Args:
        files: path -> text, or the files of a folder.
        folder: the sandbox's folder, in which relative paths start.
    """
    places = _Places()
    for path, content in files.items():
        place = posixpath.normpath(posixpath.join(folder, path))
        is_tree = isinstance(content, list | tuple) and bool(
            not content or content[0].path
        )
        if is_tree:
            places.files += [
                PlannedFile(f"{place}/{file.path}", file.content, file.is_executable)
                for file in content
            ]
            places.cleared[place] = None
            _note_imports(places, place, folder)
        else:
            file = (
                content[0]
                if isinstance(content, list | tuple)
                else PlannedFile("", str(content).encode("utf-8", "surrogatepass"))
            )
            places.files.append(PlannedFile(place, file.content, file.is_executable))
            places.cleared[place] = None
            parent = posixpath.dirname(place)
            is_apart = not _holds(parent, folder) and not _is_inside(parent, folder)
            if is_apart and parent not in _SYSTEM:
                places.cleared[parent] = None
                _note_imports(places, parent, folder)
        for above in _folders_above(place):
            if above not in _SYSTEM:
                places.on_the_way[above] = None
            if not _is_inside(above, folder):
                places.cleared |= dict.fromkeys(
                    posixpath.join(above, name) for name in STEERING
                )
    return HiddenFiles(
        tuple(places.files),
        tuple(places.on_the_way),
        tuple(places.cleared),
        tuple(places.import_folders),
    )


def _note_imports(places: _Places, path: str, folder: str) -> None:
    if not _is_inside(path, folder):
        places.import_folders[path] = None


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _holds(path: str, folder: str) -> bool:
    return path == folder or folder.startswith(f"{path.rstrip('/')}/")


def _folders_above(path: str) -> Sequence[str]:
    """Return the folders above a path, the outermost first."""
    above: list[str] = []
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        above.insert(0, path)
    return above


async def put_hidden_files(sandbox: Sandbox, hidden: HiddenFiles) -> None:
    """Clear the places of files and put them in.

    Raises:
        CannotPut: what the model left prevents it.
        SandboxFailed: the sandbox can no longer be used.
    """
    if not hidden.files:
        return
    cleared = await sandbox.exec(
        [*BASH, _CLEAR, "clear", *hidden.on_the_way, "--", *hidden.cleared],
        seconds=SECONDS,
        folder="/",
        environment=environment(sandbox),
    )
    if cleared.exit_code:
        errors = cleared.stderr[-300:].decode("utf-8", "replace").strip()
        why = f"the limit of {cleared.ended_by}" if cleared.ended_by else errors
        raise CannotPut(f"the place of the hidden files cannot be cleared: {why}")
    for file in hidden.files:
        try:
            await sandbox.write(
                file.path, file.content, is_executable=file.is_executable
            )
        except SandboxPathError as error:
            raise CannotPut(
                f"the file '{file.path}' cannot be put in: {error}"
            ) from None
