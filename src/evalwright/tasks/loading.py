"""From a name or a path to Tasks: the only entrance for everything that runs tasks."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from evalwright.core.errors import TaskError, UnknownName, closest
from evalwright.core.local_paths import check_local
from evalwright.core.private import no_file
from evalwright.core.tasks import SampleSource, Strategy, Task
from evalwright.tasks import decorator, dialects
from evalwright.tasks.data_files import as_data_file, data_file_task
from evalwright.tasks.datasets.formats import SUFFIXES
from evalwright.tasks.definitions import Definition, expand, merged, with_includes
from evalwright.tasks.index import TaskIndex, bundled_files
from evalwright.tasks.overrides import BEFORE_FOR_EACH, nested, with_overrides
from evalwright.tasks.yaml_files import Document, Trust, read_document, shown_path

PromptFormat = Literal["auto", "chat", "text"]


def load_task(
    name_or_path: str | Path,
    *,
    prompt_format: PromptFormat = "auto",
    chat: bool = False,
    overrides: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
    num_fewshot: int | None = None,
    trust: Sequence[str | Path] = (),
) -> Task:
    """Load a task by name or from a file. Its data are read once, and every row is checked.

    Args:
        name_or_path: a bundled name, one from `folders` or $EVALWRIGHT_TASKS, one registered with
            `@task`, a path to a YAML, CSV or JSONL file, or `file.yaml:member`.
        prompt_format: "auto", "chat" or "text", in place of the file's own.
        chat: whether the model under test takes messages.
        overrides: settings in place of the file's, keys nested or dotted; file names in them are
            relative to the working folder.
        folders: further folders with task files.
        num_fewshot: number of worked examples in place of the file's own.
        trust: folders whose task files may read files anywhere.

    Returns:
        The task.

    Raises:
        UnknownName: there is no such task; the message has the closest names.
        TaskError: the definition cannot be used; the message has file and line.
        DatasetError: the data cannot be read; the message has file and row.
    """
    how: dict[str, Any] = {
        "prompt_format": prompt_format,
        "chat": chat,
        "num_fewshot": num_fewshot,
    }
    how["dialect"] = {"trust": tuple(trust)}
    return load_tasks(
        name_or_path, overrides=overrides, folders=folders, _only_one=True, **how
    )[0]


def load_tasks(
    name_or_path: str | Path,
    *,
    prompt_format: PromptFormat = "auto",
    chat: bool = False,
    overrides: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
    dialect: Mapping[str, Any] | None = None,
    num_fewshot: int | None = None,
    limit: float | None = None,
    used: set[str] | None = None,
    n_names: int | None = None,
    may_lack_data: bool = False,
    _only_one: bool = False,
) -> list[Task]:
    """Load all tasks of a name: the members of a `for_each` file or of a group, or the one task.

    A name `DIALECT:NAME` is a task of another framework (`tasks.dialects`). The arguments are those
    of `load_task`, and:

    Args:
        dialect: the settings of other frameworks' tasks; `trust` among them also applies to our
            task files, which may read files anywhere if they are in a trusted folder.
        limit: the run's limit of samples, for tasks whose scores depend on it.
        used: collects the settings that a task file of ours used.
        n_names: number of names in the run; with several, a task whose data are unreachable fails
            alone instead of raising the error.
        may_lack_data: whether a task whose data cannot be fetched is made without them, for a look
            at its definition.
    """
    if num_fewshot is not None and (type(num_fewshot) is not int or num_fewshot < 0):
        raise TaskError(
            "The number of shots must be a whole number of 0 or more, not"
            f" {num_fewshot!r}."
        )
    if (foreign := dialects.named(str(name_or_path))) is not None:
        if overrides:
            raise TaskError(
                f"The task '{name_or_path}' is another framework's, so its settings"
                " cannot be overridden: edit its file."
            )
        dialect_module, name = foreign
        of_run = {
            "num_fewshot": num_fewshot,
            "limit": limit if getattr(dialect_module, "takes_limit", False) else None,
        }
        fails_alone = may_lack_data or (n_names or 1) > 1
        if fails_alone and getattr(dialect_module, "takes_among_others", False):
            of_run["among_others"] = True
        run_settings = {
            key: value for key, value in of_run.items() if value is not None
        }
        return dialect_module.load(
            name,
            {**(dialect or {}), **run_settings},
            prompt_format=prompt_format,
            chat=chat,
        )
    from evalwright.tasks.compiling import compile_task

    trusted = (dialect or {}).get("trust", ())
    trust = Trust(tuple(map(Path, [trusted] if isinstance(trusted, str) else trusted)))
    definitions = find_definitions(
        name_or_path, overrides=overrides, folders=folders, chat=chat, trust=trust
    )
    definitions = [with_shots(definition, num_fewshot) for definition in definitions]
    if _only_one and len(definitions) != 1:
        names = [definition.name for definition in definitions]
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise TaskError(
            f"'{name_or_path}' is {len(names)} tasks ({listed}); name one of them."
        )
    may_fail_alone = n_names is not None and max(n_names, len(definitions)) > 1
    how: dict[str, Any] = {
        "prompt_format": prompt_format,
        "chat": chat,
        "may_fail_alone": may_fail_alone,
        "may_lack_data": may_lack_data,
    }
    tasks = [
        definition if isinstance(definition, Task) else compile_task(definition, **how)
        for definition in definitions
    ]
    if trust.used and used is not None:
        used.add("trust")
    return tasks


def names_like(
    name: str,
    dialect: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
) -> list[str]:
    """Find the names of tasks that a pattern stands for.

    Args:
        name: a pattern (`mmlu_*`, `lm-eval:mmlu_*`); any other name stands for itself.
        dialect: settings of the dialect, such as `task_root`.
        folders: further folders with task files.

    Returns:
        The names, groups first.

    Raises:
        UnknownName: no task has such a name.
    """
    if not has_magic(name) or Path(name).is_file():
        return [name]
    foreign = dialects.named(name)
    prefix = name[: -len(foreign[1])] if foreign else ""
    pattern = name.removeprefix(prefix)
    if pattern.endswith((".yaml", ".yml")):
        files = Path(pattern).parent.glob(Path(pattern).name)
        known_names = [
            str(path)
            for path in sorted(files, key=lambda path: (not _is_group(path), path))
        ]
    elif foreign:
        roots = (dialect or {}).get("task_root", ())
        listed = foreign[0].names(
            [Path(root) for root in ([roots] if isinstance(roots, str) else roots)]
        )
        known_names = [
            entry.name
            for entry in sorted(
                listed, key=lambda entry: (entry.kind == "task", entry.name)
            )
        ]
    else:
        known_names = TaskIndex(folders).names()
    matching = [
        f"{prefix}{known_name}"
        for known_name in known_names
        if fnmatch.fnmatchcase(known_name, pattern)
    ]
    if not matching and foreign:
        raise _no_foreign_task(name, foreign[0], prefix, known_names)
    if not matching:
        raise _unknown_task(name, known_names)
    return matching


def _no_foreign_task(
    name: str, dialect: dialects.Dialect, prefix: str, known_names: Sequence[str]
) -> UnknownName:
    dialect_name = prefix.rstrip(":")
    if known_names:
        shown = f"`evalwright tasks list --dialect {dialect_name}`"
        hint = f"No task's name fits the pattern; {shown} shows all of them."
    else:
        files_from = getattr(dialect, "files_from", "")
        hint = (
            f"There are no tasks of {dialect_name}: name their folder with --task-root"
            f" DIR. {files_from}"
        ).rstrip()
    return UnknownName(
        "task", name, [f"{prefix}{known_name}" for known_name in known_names], hint
    )


def _is_group(file: Path) -> bool:
    with file.open("rb") as lines:
        return re.search(rb"^group:", lines.read(1 << 16), re.MULTILINE) is not None


def find_definitions(
    name_or_path: str | Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
    chat: bool = False,
    trust: Trust | None = None,
) -> list[Definition | Task]:
    """Return what a name stands for before its data is read.

    These are definitions, or Tasks if Python made them. Errors are those of `load_task`.
    """
    name = str(name_or_path)
    path, member = _as_path(name)
    if path is not None:
        document = read_document(path)
        _check_own(document, shown_path(path))
        return list(_expanded(document, overrides, trust, member, shown_path(path)))
    if (data := as_data_file(name)) is not None:
        overrides_of_task = {
            key: value
            for key, value in nested(overrides or {}).items()
            if key != "columns"
        }
        return list(
            definitions_of(
                data_file_task(data, overrides),
                base=Path.cwd(),
                overrides=overrides_of_task,
            )
        )
    registered = decorator.find(name)
    if registered is None:
        index = TaskIndex(folders)
        entries = index.named(name)
        if entries:
            definitions: list[Definition | Task] = []
            for entry in entries:
                file = Path(entry.path)
                member_name = (
                    name if name in entry.members and name not in entry.groups else None
                )
                definitions.extend(
                    _expanded(
                        read_document(file),
                        overrides,
                        trust,
                        member_name,
                        shown_path(file),
                    )
                )
            return definitions
        registered = decorator.from_entry_point(name)
        if registered is None:
            raise _unknown_task(name, index.names())
    task = registered.make(chat)
    if isinstance(task, Task):
        if overrides:
            raise TaskError(
                f"The task '{name}' is made in Python, so its settings cannot be"
                " overridden from outside."
            )
        return [task]
    return list(
        definitions_of(task, base=registered.base, name=name, overrides=overrides)
    )


def _check_own(document: Document, name: str) -> None:
    """Raise TaskError, with the name to use, if a file is a task of another framework."""
    keys = document.value if isinstance(document.value, Mapping) else {}
    if keys.keys() & _OURS:
        return
    dialect_and_key = dialects.dialect_of_file([str(key) for key in keys])
    if dialect_and_key is None:
        return
    dialect, key = dialect_and_key
    raise document.error(
        (key,), f"`{key}` is of a task file of {dialect}. Run it as {dialect}:{name}"
    )


_OURS = frozenset({"dataset", "sample", "prompt", "scorers", "for_each"})
"""Keys that identify a task file of ours."""


def definitions_of(
    definition: Mapping[str, Any],
    *,
    base: Path,
    name: str = "",
    overrides: Mapping[str, Any] | None = None,
) -> list[Definition]:
    """Return the definitions in a mapping of the task file's schema.

    `base` is the folder from which relative paths in it start.
    """
    value = {**({"task": name} if name else {}), **_lists(definition)}
    return _expanded(
        Document(value, f"The task '{value.get('task', '')}'", base), overrides
    )


def task_from_definition(
    definition: Mapping[str, Any],
    *,
    base: str | Path = ".",
    chat: bool = False,
    prompt_format: PromptFormat = "auto",
    samples: SampleSource | None = None,
    strategy: Strategy | None = None,
) -> Task:
    """Make a task of a mapping in the schema of task files (docs/tasks.md).

    Args:
        definition: the mapping.
        base: the folder from which relative paths in it start.
        chat: whether the model under test takes messages.
        prompt_format: "auto", "chat" or "text", in place of the definition's own.
        samples: those of a reader of your own; the definition then has no `dataset`, and its
            samples are taken as they are, unchecked.
        strategy: how answers are formed, in place of what the definition says of that.

    Returns:
        The task.

    Raises:
        TaskError: the definition cannot be used, or gives several tasks.
        DatasetError: its data cannot be read.
    """
    from evalwright.tasks.compiling import compile_task

    if samples is not None:
        if "dataset" in definition:
            raise TaskError(
                "The definition has a `dataset`, and `samples` are given beside it: leave"
                " one of them out."
            )
        definition = {**definition, "dataset": {"rows": []}}
    definitions = definitions_of(definition, base=Path(base))
    if len(definitions) != 1:
        raise TaskError(
            f"The definition gives {len(definitions)} tasks through `for_each`; only one is"
            " allowed here."
        )
    return compile_task(
        definitions[0],
        prompt_format=prompt_format,
        chat=chat,
        samples=samples,
        strategy=strategy,
    )


def task_definition(name: str) -> Mapping[str, Any]:
    """The definition of a bundled task, in the schema of task files; none of its data is read.

    Args:
        name: of the task. A task of the same name in a folder of the user's is another one.

    Returns:
        The definition, with what it includes and the variables of `for_each` put in.

    Raises:
        UnknownName: no such task is bundled; the message has the closest names.
    """
    path_by_name = {
        member: Path(entry.path)
        for entry in bundled_files()
        for member in entry.members
    }
    path = path_by_name.get(name)
    if path is None:
        raise _unknown_task(name, sorted(path_by_name))
    (definition,) = _expanded(read_document(path), None, None, name, shown_path(path))
    return definition.document.value


def _lists(value: Any) -> Any:
    """Convert Python's values to those of a file: tuples to lists, paths to text."""
    if isinstance(value, Mapping):
        return {str(key): _lists(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(element) for element in value]
    return str(value) if isinstance(value, Path) else value


def with_shots(definition: Definition | Task, count: int | None) -> Definition | Task:
    """Return the definition with another number of shots.

    Raises:
        TaskError: the task does not say where to draw shots from.
    """
    if count is None:
        return definition
    if isinstance(definition, Task):
        raise TaskError(
            f"The task '{definition.name}' is made in Python, so its shots cannot be set"
            " from outside: leave out --num-fewshot."
        )
    document = definition.document
    prompt = document.value.get("prompt")
    if not isinstance(prompt, Mapping) or not isinstance(
        prompt.get("few_shot"), Mapping
    ):
        if count == 0:
            return definition
        problem = (
            f"The task '{definition.name}' has no source of shots, so --num-fewshot {count}"
            " cannot be used."
        )
        if data_file := _data_file_of(document):
            setting = f"prompt.few_shot.dataset.path={data_file}"
            raise TaskError(
                f"{problem} Name it with -T {quote(setting)}: shots of the same file work,"
                " because a question is never its own shot. Another file works too."
            )
        raise TaskError(
            f"{problem} Add `few_shot: {{count: {count}, dataset: FILE}}` to its"
            " `prompt`, or name the file with -T prompt.few_shot.dataset.path=FILE."
        )
    value = merged(document.value, {"prompt": {"few_shot": {"count": count}}})
    return replace(definition, document=replace(document, value=value))


def _data_file_of(document: Document) -> str:
    """Return the one data file of a task that no task file defines; "" for any other task."""
    dataset = document.value.get("dataset")
    if document.files or not isinstance(dataset, Mapping):
        return ""
    paths = dataset.get("path")
    if isinstance(paths, list) and len(paths) == 1:
        paths = paths[0]
    if not isinstance(paths, str):
        return ""
    return shown_path(Path(paths))


def _expanded(
    document: Document,
    overrides: Mapping[str, Any] | None,
    trust: Trust | None = None,
    member: str | None = None,
    label: str = "",
) -> list[Definition]:
    """Return the definitions of a file, or the named one, with the overrides applied.

    `label` is the file, for errors.
    """
    document_with_includes = with_includes(
        replace(document, trust=trust) if trust else document
    )
    changes = nested(overrides or {})
    folder = Path.cwd()
    names = {key: changes.pop(key) for key in BEFORE_FOR_EACH if key in changes}
    if names:
        document_with_includes = with_overrides(document_with_includes, names, folder)
    members = _members(expand(document_with_includes), member, label)
    if not changes:
        return members
    return [
        replace(
            definition,
            document=with_overrides(
                definition.document, changes, folder, definition.variables
            ),
        )
        for definition in members
    ]


def _as_path(name: str) -> tuple[Path | None, str | None]:
    """Return a path and member, if the name is one: it ends in .yaml, .yml, or also `:member`."""
    for text, member in (
        (name, None),
        (name.rpartition(":")[0], name.rpartition(":")[2]),
    ):
        if text.lower().endswith((".yaml", ".yml")):
            check_local(text, "The task file")
            path = Path(text).expanduser()
            if not path.is_file():
                if os.path.lexists(path):
                    raise TaskError(
                        f"The task file '{text}' cannot be read: it {no_file(path)}."
                    )
                raise _unknown_file(text, path)
            return path, member
    return None, None


_HUB = re.compile(
    r"(?:hf|hub|huggingface)(?:://|:)(?:datasets/)?(?P<dataset>[\w.-]+(?:/[\w.-]+)?)",
    re.IGNORECASE,
)
"""How other programs write a dataset of the Hugging Face Hub."""

_FOREIGN = re.compile(r"(?P<dialect>[\w-]+?)(?::/*|/)(?P<task>.+)")


def _unknown_task(name: str, known_names: Sequence[str]) -> UnknownName:
    """Make the error for a name that no task has.

    It has the right spelling if the name is of another framework, or of the hub.
    """
    if hub := _HUB.fullmatch(name):
        return UnknownName(
            "task",
            name,
            (),
            "A dataset of the Hugging Face Hub becomes a task in a file: `dataset:"
            f" {{hub: {hub['dataset']}, revision: first-fetch, split: test}}`, with"
            " `sample` for its columns (docs/tasks.md).",
        )
    if Path(name).suffix.lower() in SUFFIXES:
        hint = f"There is no file '{name}'. `evalwright tasks list` shows all of them."
        return UnknownName("task", name, known_names, hint)
    foreign = _FOREIGN.fullmatch(name)
    near = (
        closest(foreign["dialect"].replace("_", "-"), dialects.names(), 1)
        if foreign
        else []
    )
    if foreign and near:
        return UnknownName(
            "task", name, (), f"Did you mean '{near[0]}:{foreign['task']}'?"
        )
    dialect_name, colon, _ = name.partition(":")
    if colon and re.fullmatch(r"[\w-]+", dialect_name):
        hint = (
            f"No dialect '{dialect_name}' is loaded: --plugin FILE loads one of your own,"
            " as installing its package does. `evalwright tasks list` shows all other"
            " tasks."
        )
        return UnknownName("task", name, known_names, hint)
    pattern = "No task's name fits the pattern; " if has_magic(name) else ""
    return UnknownName(
        "task",
        name,
        known_names,
        f"{pattern}`evalwright tasks list` shows all of them.",
    )


def _unknown_file(text: str, path: Path) -> UnknownName:
    """Make the error for a task file that does not exist.

    It lists files in the same folder with similar names.
    """
    files = sorted(path.parent.glob("*.y*ml"))
    near = closest(path.stem, [file.stem for file in files])
    alike = [str(file) for file in files if file.stem in near]
    known_names = TaskIndex().names()
    hint = (
        f"A bundled task has the name '{path.stem}', without an ending."
        if path.stem in known_names
        else ""
    )
    return UnknownName("task file", text, (), _did_you_mean(alike, hint))


def _did_you_mean(names: Sequence[str], hint: str) -> str:
    if not names:
        return hint
    return f"Did you mean {' or '.join(repr(name) for name in names)}? {hint}".rstrip()


def _members(
    definitions: list[Definition], member: str | None, label: str
) -> list[Definition]:
    if member is None:
        return definitions
    by_name = [definition for definition in definitions if definition.name == member]
    by_value = [
        definition
        for definition in definitions
        if member in map(str, definition.variables.values())
    ]
    for matching in (by_name, by_value):
        if len(matching) == 1:
            return matching
    raise UnknownName(
        "task",
        member,
        [definition.name for definition in definitions],
        f"The file is {label}.",
    )
