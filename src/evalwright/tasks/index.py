"""Every task there is, without loading any.

It covers the bundled library, folders, `@task` functions and entry points. What a file says about
itself is read once and cached as JSON, keyed by its path, size and time and those of the files it
includes. A listing in which nothing changed opens no task file and imports neither yaml, jinja2 nor
pydantic.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright._version import __version__
from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, EvalwrightError, TaskError
from evalwright.core.private import cache_folder, check_ordinary
from evalwright.tasks import decorator
from evalwright.tasks.entry_points import offered
from evalwright.tasks.names import RULE, is_name
from evalwright.tasks.safe_files import write_text

if TYPE_CHECKING:
    from evalwright.tasks.definitions import Definition

LIBRARY = Path(__file__).parent / "library"
"""The folder of the bundled tasks."""

_VERSION = f"{__version__}/3"
_VARYING = re.compile(r"\s*\([^(){}]*\{\{[^{}]*\}\}[^(){}]*\)")
"""A parenthesis in a description that differs from task to task."""
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
"""A variable of `for_each` in a description."""
MOST_LISTED_VALUES = 3
"""How many values of a variable a description names."""
Stamp = list[Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or function that defines tasks.

    Attributes:
        name: the task's name; for a `for_each` file its group, or the file's name.
        members: the names of all its tasks.
        groups: groups to which they belong.
        path: the YAML file, "" for a Python task.
        problem: why it cannot be used.
    """

    name: str
    description: str = ""
    version: str = "1"
    language: str = ""
    domain: str = ""
    path: str = ""
    members: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return asdict(self)


def find(text: str = "", *, folders: Sequence[str | Path] = ()) -> list[Entry]:
    """Return all entries by name; with `text`, those that have it in name or description."""
    entries = TaskIndex(folders).entries()
    lowered = text.lower()
    return [
        entry
        for entry in entries
        if lowered
        in "\n".join(
            (entry.name, entry.description, *entry.members, *entry.groups)
        ).lower()
    ]


class TaskIndex:
    """The index over the bundled library and folders.

    Besides `folders` it has those of $EVALWRIGHT_TASKS, a path list. A task in a folder hides a
    bundled one of the same name.

    Raises:
        ConfigurationError: a folder does not exist.
    """

    def __init__(self, folders: Sequence[str | Path] = ()) -> None:
        listed = [
            part
            for part in os.environ.get("EVALWRIGHT_TASKS", "").split(os.pathsep)
            if part
        ]
        self._folders = [Path(folder).expanduser() for folder in (*folders, *listed)]
        for folder in self._folders:
            if not folder.is_dir():
                raise ConfigurationError(f"The task folder '{folder}' does not exist.")
        self._files: list[Entry] | None = None

    def entries(self) -> list[Entry]:
        """Return all entries, sorted by name."""
        entries = [*self.files(), *self._python()]
        return sorted(entries, key=lambda entry: (entry.name, entry.path))

    def names(self) -> list[str]:
        """Return every name that can be loaded: tasks, members and groups."""
        entries = self.entries()
        return sorted(
            {
                name
                for entry in entries
                for name in (entry.name, *entry.members, *entry.groups)
            }
        )

    def named(self, name: str) -> list[Entry]:
        """Return the files behind a name: one for a task, all members' for a group, [] for none.

        Raises:
            TaskError: two files of equal rank define the task.
        """
        bundled = f"{LIBRARY}{os.sep}"
        own_entries = [
            entry for entry in self.files() if not entry.path.startswith(bundled)
        ]
        for entries in (
            own_entries,
            [entry for entry in self.files() if entry.path.startswith(bundled)],
        ):
            exact = [entry for entry in entries if name in entry.members]
            if len(exact) > 1:
                paths = " and ".join(f"'{entry.path}'" for entry in exact[:3])
                raise TaskError(
                    f"The task '{name}' is defined by {paths}; name one of them by its"
                    " path."
                )
            if exact:
                return exact
            group = [
                entry for entry in entries if name in entry.groups or name == entry.name
            ]
            if group:
                return group
        return []

    def files(self) -> list[Entry]:
        """Return entries of all YAML files: folders first, then the library."""
        if self._files is None:
            self._files = _read_folders([*self._folders, LIBRARY])
        return self._files

    def _python(self) -> Iterator[Entry]:
        done = set()
        for registered in decorator.registered():
            done.add(registered.name)
            about = (
                registered.description,
                registered.version,
                registered.language,
                registered.domain,
            )
            yield Entry(registered.name, *about, members=(registered.name,))
        for name, target in offered(decorator.ENTRY_POINTS).items():
            if name not in done:
                yield Entry(name, f"From {target}.", members=(name,))


def bundled_files() -> list[Entry]:
    """Entries of the files of the library alone."""
    return _read_folders([LIBRARY])


def _read_folders(folders: Sequence[Path]) -> list[Entry]:
    cache = _Cache()
    entry_by_path: dict[str, Entry] = {}
    for folder in folders:
        for path, state in _task_files(str(folder)):
            if path not in entry_by_path:
                entry_by_path[path] = cache.entry(path, state)
    cache.save()
    return list(entry_by_path.values())


def _task_files(folder: str) -> Iterator[tuple[str, Stamp]]:
    """Yield the YAML files in a folder and below, sorted.

    Names that begin with `_` are pieces to include, not tasks.
    """
    try:
        files = sorted(os.scandir(folder), key=lambda file: file.name)
    except OSError:
        return
    for file in files:
        if file.name.startswith((".", "_")):
            continue
        if file.is_dir(follow_symlinks=False):
            yield from _task_files(file.path)
        elif file.name.endswith((".yaml", ".yml")):
            with suppress(OSError):
                status = file.stat()
                yield file.path, [status.st_size, status.st_mtime_ns]


class _Cache:
    """The cache of what files said about themselves when they were last read."""

    def __init__(self) -> None:
        self._path = _cache_path()
        self._files: dict[str, Any] = {}
        self._changed = False
        with suppress(OSError, ValueError, LookupError, TypeError):
            data = from_json(check_ordinary(self._path).read_text(encoding="utf-8"))
            if data["version"] == _VERSION:
                self._files = dict(data["files"])

    def entry(self, path: str, state: Stamp) -> Entry:
        """Return what the file with that path and stamp says."""
        key = path if Path(path).is_absolute() else str(Path(path).absolute())
        # A damaged cache counts as empty.
        with suppress(LookupError, TypeError, AttributeError):
            cached = self._files[key]
            if cached["stamp"] == state and unchanged(cached["with"]):
                fields = cached["entry"]
                lists = {name: tuple(fields[name]) for name in ("members", "groups")}
                return Entry(**{**fields, **lists, "path": path})
        entry, others = _described(path)
        # A broken file is read again each time, because a change of another file may mend it.
        if not entry.problem:
            stamps = {str(file.absolute()): stamp(str(file)) for file in others}
            self._files[key] = {
                "stamp": state,
                "with": stamps,
                "entry": entry.as_dict(),
            }
            self._changed = True
        return entry

    def save(self) -> None:
        """Write the cache, unless nothing changed.

        A folder that cannot be written costs only time.
        """
        if not self._changed:
            return
        files = {
            path: cached for path, cached in self._files.items() if Path(path).exists()
        }
        with suppress(OSError):
            write_text(
                self._path.resolve(), json.dumps({"version": _VERSION, "files": files})
            )


def _cache_path() -> Path:
    return cache_folder() / "tasks.json"


def unchanged(stamps: Mapping[str, Stamp]) -> bool:
    """Return whether files are unchanged since these stamps were taken."""
    return all(stamp(path) == recorded_stamp for path, recorded_stamp in stamps.items())


def stamp(path: str) -> Stamp:
    """Return size and times of a file; empty if there is none."""
    try:
        status = Path(path).stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _described(path: str) -> tuple[Entry, list[Path]]:
    """Return what a file says about itself, and the other files on which that depends."""
    from evalwright.tasks.definitions import expand, table_file, with_includes
    from evalwright.tasks.yaml_files import read_document

    try:
        document = with_includes(read_document(Path(path)))
        others = [file for file in document.files if str(file) != path]
        if table := table_file(document):
            others.append(table)
        first, *others_defined = expand(document)
        members = (first.name, *(definition.name for definition in others_defined))
        for name in members:
            if not name:
                raise document.error(("task",), "the key `task` is missing.")
            if not is_name(name):
                raise document.error(
                    ("task",), f"'{name}' cannot be the name of a task: {RULE}."
                )
    except EvalwrightError as error:
        return Entry(Path(path).stem, path=path, problem=str(error)), []
    # Several tasks are described together by the file's text before their variables are filled in.
    value = document.value if others_defined else first.document.value
    about = value.get("metadata")
    about = about if isinstance(about, Mapping) and not others_defined else {}
    group = first.document.value.get("group")
    groups = tuple(
        map(str, group if isinstance(group, list) else [] if group is None else [group])
    )
    entry = Entry(
        name=(groups or (Path(path).stem,))[0] if others_defined else first.name,
        description=_describe_members([first, *others_defined], value),
        version=_words(value.get("version", "1")),
        language=_words(about.get("language")),
        domain=_words(about.get("domain")),
        path=path,
        members=members,
        groups=groups,
    )
    return entry, others


def _describe_members(members: Sequence[Definition], value: Mapping[str, Any]) -> str:
    """Describe all tasks of a file in one sentence, each variable by its first values.

    `value` is the file's own text, with its variables where the file has several tasks.
    """
    template = _VARYING.sub("", _words(value.get("description")))

    def list_values(variable: re.Match[str]) -> str:
        values = [
            str(member.variables[variable[1]])
            for member in members
            if variable[1] in member.variables
        ]
        distinct = list(dict.fromkeys(values))
        shown = ", ".join(distinct[:MOST_LISTED_VALUES])
        n_more = len(distinct) - MOST_LISTED_VALUES
        return f"{shown} and {n_more} more" if n_more > 0 else shown

    text = _VARIABLE.sub(list_values, template)
    if "{{" not in text and "{%" not in text:
        return text
    # What is more than a variable is shown as the first task has it.
    return _words(members[0].document.value.get("description"))


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
