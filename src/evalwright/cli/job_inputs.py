"""The local files that a `run` command needs, for pods that have only what they are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import find_key_prefix
from evalwright.reports.kubernetes_jobs import MAX_FILES_BYTES, check_size
from evalwright.tasks.safe_files import is_within

_YAML_SUFFIXES = (".yaml", ".yml")
_MAX_PATH_CHARS = 1_000
"""Longer texts in a task file are no paths."""


def input_files(
    words: Sequence[str], folders: Sequence[str], further: Sequence[str]
) -> dict[str, bytes]:
    """Read the local files that a command needs.

    These are the files that its words name, the content of the folders, and the files that these
    files name if they are YAML (prompts, rows, tasks of a suite).

    Args:
        words: the command's words, of which some name files: `suite.yaml`, `template=grader.txt`.
        folders: folders that the command names.
        further: files and folders that the user adds.

    Returns:
        The content of the files, by path relative to the working folder.

    Raises:
        ConfigurationError: a file is outside of the working folder, has a key in it or cannot be
            read, there is no such file, or the files are too large.
    """
    root = Path.cwd().resolve()
    # Each file with the folder or the folder of the YAML file that names it; None for the user.
    waiting: list[tuple[Path, Path | None]] = [
        (Path(text), None) for word in words for text in _texts(word) if _is_file(text)
    ]
    searched = [Path(folder) for folder in folders]
    for name in further:
        path = Path(name)
        if not path.exists():
            raise ConfigurationError(f"--file {name}: there is no such file or folder.")
        if path.is_dir():
            searched.append(path)
        else:
            waiting.append((path, None))
    for folder in searched:
        waiting += [(path, folder) for path in _folder_files(folder)]
    contents: dict[str, bytes] = {}
    while waiting:
        path, named_by = waiting.pop(0)
        relative = _relative_path(path, root)
        if relative in contents:
            continue
        if named_by is not None:
            _check_inside(path, root, named_by)
        contents[relative] = _read(path)
        check_size(contents)
        if path.suffix in _YAML_SUFFIXES:
            named = _named_files(contents[relative], path.parent)
            waiting += [(named_path, path.parent) for named_path in named]
    return contents


def _texts(word: str) -> list[str]:
    """Return the parts of a word that may name a file: `K=FILE`, `--config=FILE`, `FILE:NAME`."""
    after_equals = word.partition("=")[2]
    candidates = [word, after_equals]
    candidates += [text.rpartition(":")[0] for text in (word, after_equals)]
    for text in list(candidates):
        candidates.append(text.partition("/")[2] if text.startswith("python/") else "")
    return [text for text in candidates if text]


def _is_file(text: str) -> bool:
    """Tell whether a text names a local file that is not hidden."""
    if len(text) > _MAX_PATH_CHARS or "\0" in text or "\n" in text:
        return False
    path = Path(text)
    try:
        return not path.name.startswith(".") and path.is_file()
    except OSError:
        return False


def _folder_files(folder: Path) -> list[Path]:
    """Return the files of a folder, without hidden ones and bytecode."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(
            part.startswith(".") or part == "__pycache__"
            for part in path.relative_to(folder).parts
        )
    ]


def _named_files(content: bytes, folder: Path) -> list[Path]:
    """Return the existing files that the texts of a YAML file name, relative to its folder or to
    the working folder.
    """
    import yaml

    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        return []  # `run` says what is wrong with it
    paths = []
    for text in _strings(document):
        for part in _texts(text):
            candidates = [folder / part, Path(part)] if part else []
            paths += [path for path in candidates if _is_file(str(path))]
    return paths


def _strings(node: object) -> Iterator[str]:
    """Return all texts of a document, keys of mappings excepted."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for part in node.values():
            yield from _strings(part)
    elif isinstance(node, list):
        for part in node:
            yield from _strings(part)


def _relative_path(path: Path, root: Path) -> str:
    """Return a file's path in the working folder.

    Raises:
        ConfigurationError: it is outside.
    """
    absolute = Path.cwd() / path
    resolved = Path(*absolute.parts[:1])
    for part in absolute.parts[1:]:
        resolved = resolved.parent if part == ".." else resolved / part
    for base in (Path.cwd(), root):
        if not path.is_absolute() and resolved.is_relative_to(base):
            return resolved.relative_to(base).as_posix()
    raise ConfigurationError(
        f"Pods have the files of the working folder only, under the same relative names,"
        f" and '{path}' is not one of them. Copy it into the working folder and name it"
        " there."
    )


def _check_inside(path: Path, root: Path, folder: Path) -> None:
    """Check a file that a YAML file or a folder names, which a stranger may have written.

    Raises:
        ConfigurationError: it is a link that leads out of the working folder and of `folder`, or
            it is hidden there; `run` does not read it either.
    """
    if not is_within(path, root, folder):
        raise ConfigurationError(
            f"'{path}' is outside of the working folder (links followed), or hidden there,"
            f" so it is not copied. If pods need it, add --file '{path}'."
        )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILES_BYTES + 1)  # a larger file is refused anyway
    except OSError as error:
        raise ConfigurationError(
            f"'{path}' cannot be read: {error.strerror}."
        ) from None
    if key_start := find_key_prefix(content.decode("utf-8", errors="replace")):
        raise ConfigurationError(
            f"'{path}' has a text of the form of a key ('{key_start}...'), and job files"
            " hold none: put keys into the secret."
        )
    return content
