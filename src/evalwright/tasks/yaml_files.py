"""Reads a YAML file into plain values that know their lines, and reads scalars without surprises.

Plain scalars follow the core schema of YAML 1.2, with decimal numbers only: `no`, `on`,
`2024-01-31`, `1_000`, `12:30`, `007` and `0x1F` stay text. A decimal fraction remembers how it was
written, so `version: 1.10` is "1.10". Tags are refused, so that a file cannot create objects; a key
may appear only once.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import TaskError
from evalwright.core.private import check_ordinary
from evalwright.tasks.safe_files import is_within

if TYPE_CHECKING:
    import yaml

KeyPath = tuple[str | int, ...]

MAX_NODES = 2_000_000
MAX_DEPTH = 100
LARGEST = 1 << 26
"""Most bytes of a YAML or prompt file."""
_PLACED_DEPTH = 6
_DEEP_BLOCK = re.compile(rf"(?m)^(?:[ ]|[-?] ){{{MAX_DEPTH},}}")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"-?((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(0|[1-9][0-9]*)(?=[eE]))([eE][-+]?[0-9]+)?"
)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_PLAIN = "!plain"
_ODD_BREAKS = re.compile("[\x85\u2028\u2029]")


class WrittenFloat(float):
    """A number that is shown as it was written: `str(...)` of 1.10 is "1.10"."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (WrittenFloat, (self.text,))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line}"


@dataclass(slots=True)
class Trust:
    """Folders that the user trusts, and whether the trust was needed."""

    folders: tuple[Path, ...] = ()
    used: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A mapping and where each part of it was written.

    Attributes:
        value: the mapping.
        name: what errors call a part without a place.
        base: the folder from which relative paths in it start.
        places: where each part was written; empty if the document was not read from a file.
        files: every file that contributed to it.
        bases: by key, the folders of overrides from elsewhere.
        trust: whose task files may read files anywhere.
    """

    value: dict[str, Any]
    name: str
    base: Path
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    bases: Mapping[KeyPath, Path] = field(default_factory=dict)
    trust: Trust = field(default_factory=lambda: Trust())

    def place(self, path: KeyPath) -> Place | None:
        """Return where `path` was written, or the nearest part around it."""
        while True:
            place = self.places.get(path)
            if place is not None or not path:
                return place
            path = path[:-1]

    def at(self, path: KeyPath) -> str:
        """Return `file:line` of `path`, or the override that set it, to begin an error message."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.bases:
                return f"The override '{'.'.join(map(str, path[:length]))}' (-T)"
        if (
            path and path not in self.places
        ):  # a key that the file does not have came with an override
            for base in self.bases:
                if base[: len(path)] == path:
                    return f"The override '{'.'.join(map(str, base))}' (-T)"
        place = self.place(path)
        return str(place) if place else self.name

    def folder(self, path: KeyPath) -> Path:
        """Return the folder from which a relative file name written at `path` starts."""
        for length in range(len(path), 0, -1):
            if (base := self.bases.get(path[:length])) is not None:
                return base
        place = self.place(path)
        return place.file.parent if place else self.base

    def allowed(self, path: KeyPath, file: Path, *, beside: bool = False) -> Path:
        """Return a file that is named at `path`, if this document may read it.

        A task file reads what is in its folder, the working folder and those of $EVALWRIGHT_TASKS,
        and nothing hidden there; one in a folder that the user trusts reads any file, and so do
        overrides and Python.

        Args:
            path: the place.
            file: the file or folder.
            beside: whether the task file's own folder is the only one.

        Raises:
            TaskError: it may not.
        """
        place = self.place(path)
        if place is None or any(
            path[:length] in self.bases for length in range(1, len(path) + 1)
        ):
            return file
        folders = [place.file.parent]
        if not beside:
            named = os.environ.get("EVALWRIGHT_TASKS", "").split(os.pathsep)
            folders += [Path.cwd(), *map(Path, filter(None, named))]
        if is_within(file, *folders):
            return file
        if any(
            place.file.resolve().is_relative_to(folder.resolve())
            for folder in self.trust.folders
        ):
            self.trust.used = True
            return file
        where = "" if beside else " and the working folder"
        raise self.error(
            path,
            f"'{shown_path(file)}' is outside of this file's folder{where}"
            " (links followed), or hidden there, so it is not read. If you trust the"
            f" task files in '{shown_path(place.file.parent)}', add --trust"
            f" '{shown_path(place.file.parent)}'.",
        )

    def require_trust(self, path: KeyPath, what: str) -> None:
        """Raise TaskError unless what is written at `path` may run code or reach a server.

        Overrides, Python and the bundled tasks may; a file may if it is in a folder that the user
        trusts.

        Args:
            path: the place.
            what: what it would do, as in "runs the Python file 'tools.py'".
        """
        place = self.place(path)
        if place is None or any(
            path[:length] in self.bases for length in range(1, len(path) + 1)
        ):
            return
        file = place.file.resolve()
        if file.is_relative_to(Path(__file__).resolve().parent / "library"):
            return
        if any(file.is_relative_to(folder.resolve()) for folder in self.trust.folders):
            self.trust.used = True
            return
        folder = shown_path(place.file.parent)
        raise self.error(
            path,
            f"this {what}, which needs your permission. If you trust the task files in"
            f" '{folder}', add --trust '{folder}'.",
        )

    def error(self, path: KeyPath, message: str) -> TaskError:
        """Make a TaskError at that place."""
        return TaskError(f"{self.at(path)}: {message}")


def shown_path(path: Path) -> str:
    """Return a path as errors show it: relative to the working folder if it is inside."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError, RuntimeError):  # RuntimeError: circular links
        return str(path)


def read_document(path: Path, kind: str = "task file", list_key: str = "") -> Document:
    """Read the mapping in a YAML file, bounded in what its aliases may stand for.

    Args:
        path: the file.
        kind: what it is, for messages.
        list_key: where the file may hold a list: the key of which it is made the value.

    Returns:
        The document: its content is `value`.

    Raises:
        TaskError: it cannot be read, or is not one mapping; the message names file and line.
    """
    try:
        content = check_ordinary(path, LARGEST).read_bytes()
    except OSError as error:
        raise TaskError(
            f"The {kind} '{shown_path(path)}' cannot be read: {error.strerror}."
        ) from None
    return parse_document(content, path, kind, list_key)


def parse_document(
    content: bytes,
    path: Path,
    kind: str = "task file",
    list_key: str = "",
) -> Document:
    """Read the mapping in the bytes of a YAML file, as `read_document` does.

    Args:
        content: what the file holds.
        path: the file, to which relative paths in it belong.
        kind: what it is, for messages.
        list_key: where the file may hold a list: the key of which it is made the value.

    Raises:
        TaskError: it is not one mapping; the message names file and line.
    """
    import yaml

    name = shown_path(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TaskError(
            f"{name}:{line}: the file is not UTF-8 text; save it as UTF-8."
        ) from None
    if odd := _ODD_BREAKS.search(text):
        line = text[: odd.start()].count("\n") + 1
        escape = f"\\u{ord(odd[0]):04x}"
        raise TaskError(
            f"{name}:{line}: the file has a character (U+{ord(odd[0]):04X}) that"
            f" YAML treats as a line break; write it as {escape} in double quotes."
        )
    try:
        if too_deep(text):
            raise RecursionError
        node = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        raise TaskError(_syntax_message(name, error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise TaskError(
            f"{name}: this is not YAML: {str(error).splitlines()[0]}."
        ) from None
    except RecursionError:
        raise TaskError(f"{name}: the file is nested too deeply.") from None
    if node is None:
        hint = "; it begins with `task: name`" if kind == "task file" else ""
        raise TaskError(f"{name}: the {kind} is empty{hint}.")
    if (
        MAX_NODES < expanded_size(node) < math.inf
    ):  # a few lines with aliases could stand for billions of values
        raise TaskError(
            f"{name}: the file has more than {MAX_NODES:,} values; keep rows in"
            " a data file."
        )
    builder = _Builder(path)
    value = builder.build(node, ())
    if list_key and isinstance(value, list):
        value = {list_key: value}
    if not isinstance(value, dict):
        raise TaskError(
            f"{name}:1: a {kind} is a mapping (`key: value`), not {kind_of(value)}."
        )
    return Document(value, name, path.parent, builder.places, (path,))


def parse_yaml(
    content: bytes, tags: Mapping[str, Callable[[str], Any]] | None = None
) -> Any:
    """Parse YAML 1.1 that another system wrote, bounded in depth and in what aliases stand for.

    Args:
        content: the file's content.
        tags: what a text with a tag of the system's own becomes, by the tag (`!name`); other tags
            are refused.

    Returns:
        Its one document; None if it is empty.

    Raises:
        yaml.YAMLError: it is not YAML, or has another tag.
        ValueError: it is nested too deeply, stands for too many values, or a value is none of its
            type.
    """
    loader = _tagged_loader()(content)
    loader.tags = tags or {}
    try:
        if too_deep(content.decode("utf-8", "replace")):
            raise ValueError("it is nested too deeply")
        node = loader.get_single_node()
        if node is None:
            return None
        if expanded_size(node) > MAX_NODES:
            raise ValueError(
                f"with its aliases (*) written out it has more than {MAX_NODES:,}"
                " values"
            )
        return loader.construct_document(node)
    finally:
        loader.dispose()


@cache
def _tagged_loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads plain values, and texts with the tags that are known."""

        tags: Mapping[str, Callable[[str], Any]]

    def construct_tagged(loader: Any, suffix: str, node: yaml.Node) -> Any:
        construct = loader.tags.get(f"!{suffix}")
        if construct is None:
            return loader.construct_undefined(node)
        return construct(str(loader.construct_scalar(node)))

    Loader.add_multi_constructor("!", construct_tagged)
    return Loader


def too_deep(text: str) -> bool:
    """Return whether YAML is nested deeper than `MAX_DEPTH`.

    The parser would be slow, and at thousands of levels crash the program.
    """
    import yaml

    if text.count("[") + text.count("{") <= MAX_DEPTH and not _DEEP_BLOCK.search(text):
        return False
    depth = 0
    try:
        for event in yaml.parse(
            text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        ):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                return True
    except (yaml.YAMLError, ValueError):
        pass  # reading the file reports what is wrong
    return False


def expanded_size(node: yaml.Node) -> float:
    """Return how many values a file has once its aliases are expanded.

    It is infinite if an alias is inside its own anchor.
    """
    sizes: dict[int, float] = {}

    def size(inner_node: yaml.Node) -> float:
        if id(inner_node) not in sizes:
            sizes[id(inner_node)] = math.inf
            value = () if isinstance(inner_node.value, str) else inner_node.value
            parts = (
                part
                for child in value
                for part in (child if isinstance(child, tuple) else (child,))
            )
            sizes[id(inner_node)] = 1 + sum(map(size, parts))
        return sizes[id(inner_node)]

    return size(node)


def kind_of(value: object) -> str:
    """Describe the type of a value in words for a person."""
    if value is None:
        return "nothing (null)"
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
    }
    for kind, words in names.items():
        if isinstance(value, kind):
            return words
    if isinstance(value, Mapping):
        return "a mapping"
    return (
        "a list"
        if isinstance(value, list | tuple | set)
        else f"an object of '{type(value).__name__}'"
    )


def plain(value: Any) -> Any:
    """Return a value as JSON would return it.

    Raises:
        TaskError: it holds something that JSON does not have.
    """
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TaskError(
            f"A task's definition can contain only JSON values: {error}."
        ) from None


@cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Leaves plain scalars without a tag, so that this module decides what they mean."""

        yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012

    return Loader


def _syntax_message(name: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    problem = (error.problem or error.context or "there is a syntax error").rstrip(".")
    if "\\t" in problem or "tab" in problem:
        problem += " (indent with spaces)"
    return f"{name}:{line}: this is not YAML: {problem}."


class _Builder:
    """Turns composed nodes into values, and notes the line of every part."""

    def __init__(self, path: Path) -> None:
        self.file = path
        self.places: dict[KeyPath, Place] = {}
        self._open: set[int] = set()

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        import yaml

        if len(path) < _PLACED_DEPTH and path not in self.places:
            self.places[path] = self._place(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise self._error(
                node, "an alias (*) is inside the value that it refers to"
            )
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if node.tag != "tag:yaml.org,2002:seq":
                raise self._tag_error(node)
            return [
                self.build(item, (*path, index))
                for index, item in enumerate(node.value)
            ]
        except RecursionError:
            raise self._error(node, "the file is nested too deeply") from None
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        import yaml

        if node.tag != "tag:yaml.org,2002:map":
            raise self._tag_error(node)
        lines: dict[str, int] = {}
        own_values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        # Merged keys come first, so that places are those of the mapping's own keys.
        for key_node, value_node in sorted(
            node.value, key=lambda pair: pair[0].value != "<<"
        ):
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(
                    key_node,
                    "a key must be text; put quotes around a value that begins with {"
                    " or [",
                )
            if key_node.tag not in (_PLAIN, "tag:yaml.org,2002:str"):
                raise self._tag_error(key_node)
            key = key_node.value
            if key == "<<" and key_node.tag == _PLAIN:
                merged |= self._merged(value_node, path)
                continue
            if key in lines:
                raise self._error(
                    key_node,
                    f"the key '{key}' is given twice (first in line {lines[key]})",
                )
            lines[key] = key_node.start_mark.line + 1
            if len(path) + 1 < _PLACED_DEPTH:
                self.places[(*path, key)] = Place(self.file, lines[key])
            own_values[key] = self.build(value_node, (*path, key))
        return merged | own_values

    def _merged(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        """Return what a merge key (`<<: *NAME`, or a list, of which the first counts most) adds.

        The mapping's own keys take precedence.
        """
        import yaml

        merged: dict[str, Any] = {}
        for merged_node in reversed(
            node.value if isinstance(node, yaml.SequenceNode) else [node]
        ):
            if not isinstance(merged_node, yaml.MappingNode):
                raise self._error(merged_node, "'<<' merges mappings, and this is none")
            merged |= self.build(merged_node, path)
        return merged

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if node.tag == "tag:yaml.org,2002:str":
            return text
        if node.tag != _PLAIN:
            raise self._tag_error(node)
        if text in _WORDS:
            return _WORDS[text]
        if (
            _INTEGER.fullmatch(text) and len(text) <= 300
        ):  # no float can hold more digits, and this is not JSON
            return int(text)
        if _FLOAT.fullmatch(text):
            return WrittenFloat(text)
        return text

    def _tag_error(self, node: yaml.Node) -> TaskError:
        tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        return self._error(
            node, f"the tag '{tag}' is not allowed here; write plain values"
        )

    def _place(self, node: yaml.Node) -> Place:
        return Place(self.file, node.start_mark.line + 1)

    def _error(self, node: yaml.Node, message: str) -> TaskError:
        return TaskError(f"{self._place(node)}: {message}.")
