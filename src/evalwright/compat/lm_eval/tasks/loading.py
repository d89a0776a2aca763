"""Loads tasks by name: finds them in the index, reads and expands them, and compiles them.

No dataset is opened here; that happens when samples are first needed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from evalwright import Task
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.compiling import compile_definition
from evalwright.compat.lm_eval.tasks.config import read
from evalwright.compat.lm_eval.tasks.functions import Functions
from evalwright.compat.lm_eval.tasks.index import Index, kind_and_name
from evalwright.compat.lm_eval.tasks.options import PREFIX, Options, as_paths
from evalwright.compat.lm_eval.tasks.results import Group, parse_averages
from evalwright.compat.lm_eval.tasks.row_requests import FURTHER_GENERATION, GENERATION
from evalwright.compat.lm_eval.tasks.task_classes import compile_class
from evalwright.compat.lm_eval.tasks.task_yaml import (
    Files,
    Unavailable,
    refusals,
    replace_functions,
    unavailable_in,
)
from evalwright.extend import (
    SCORINGS,
    ConfigurationError,
    ListedTask,
    TaskError,
    check_known,
)

_GROUP_KEYS = frozenset(
    {"group", "group_alias", "task", "aggregate_metric_list", "metadata"}
)
Settings = dict[str, Any]

log = logging.getLogger("evalwright.lm_eval")


@dataclass(slots=True)
class Collection:
    """What a name stands for.

    tasks: merged settings by name. groups: by name, inner groups first.
    """

    tasks: dict[str, Settings] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)


class Library:
    """The tasks of some folders. Files and functions are read once for all tasks."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.roots = options.folders()
        self.index = Index(self.roots)
        self.files = Files(self._may_include)
        self.functions = Functions(options, self.roots)
        self._open: list[str] = []

    def _may_include(self, path: Path) -> bool:
        is_below_root = any(path.is_relative_to(root) for root in self.roots)
        return (
            is_below_root
            or self.options.trusts(path.parent)
            or self.options.is_beside(path)
        )

    def load(self, name: str, generated: Options | None = None) -> list[Task]:
        """Load the tasks of a name or a YAML file.

        generated: options for tasks that generate text, if different. Raises UnknownName,
        TaskError.
        """
        collection = self.collect(name)
        tasks = [
            self.compile(settings, collection, generated)
            for settings in collection.tasks.values()
        ]
        self._log_findings(name, tasks, collection)
        return tasks

    def compile(
        self,
        settings: Settings,
        collection: Collection,
        generated: Options | None = None,
    ) -> Task:
        """Compile one task from its merged settings."""
        name = str(settings.get("task", ""))
        groups = [group for group in collection.groups.values() if name in group.tasks]
        if "class" in settings:
            return compile_class(
                settings, self.functions, self.options, groups, generated
            )
        where = str((settings.get("metadata") or {}).get("config_source", ""))
        refused = refusals(name, settings, resolved=False)
        if refused:  # nothing is imported
            resolved = replace_functions(
                settings, lambda ref: Unavailable(ref, refused[0])
            )
        else:
            resolved = self.functions.resolve(settings, name)
        definition = read(resolved, where)
        lacking = refused or [*refusals(name, resolved), *unavailable_in(resolved)]
        generates = definition.config.output_type == "generate_until"
        options = generated if generated and generates else self.options
        return compile_definition(definition, options, groups, lacking)

    def collect(self, name: str) -> Collection:
        """Collect the settings of all tasks that a name stands for."""
        collection = Collection()
        self._open.clear()
        if name.endswith((".yaml", ".yml")) and Path(name).is_file():
            path = Path(name).resolve()
            kind, task_name = kind_and_name(self.files.read(path))
            if task_name is None:
                raise TaskError(f"The file '{name}' names no task and no group.")
            self._add(ListedTask(task_name, kind, str(path)), {}, collection)
        else:
            self._add(self.index[name], {}, collection)
        return collection

    def _add(
        self, listed: ListedTask, overrides: Settings, collection: Collection
    ) -> list[str]:
        """Add what a name stands for, and return the names of its tasks."""
        if listed.kind == "tag":
            tasks_by_member = [
                self._add(self.index[member], overrides, collection)
                for member in listed.members
            ]
            return [task for member_tasks in tasks_by_member for task in member_tasks]
        if listed.kind == "group":
            return self._add_group(
                listed.name,
                dict(self.files.read(Path(listed.path))),
                overrides,
                collection,
            )
        settings = {**self.files.read(Path(listed.path)), **overrides}
        return [self._add_task(settings, listed.path, collection)]

    def _add_task(self, settings: Settings, path: str, collection: Collection) -> str:
        metadata = settings.get("metadata") or {}
        task_metadata = (
            dict(metadata) if isinstance(metadata, Mapping) else {"_metadata": metadata}
        )
        name = str(settings["task"])
        settings["metadata"] = {
            **task_metadata,
            **self.options.metadata,
            "config_source": path or "inline",
        }
        if self.options.predict_only:
            settings["metric_list"] = [{"metric": "bypass"}]
            settings.pop("process_results", None)
        collection.tasks[name] = settings
        return name

    def _add_group(
        self, name: str, config: Settings, overrides: Settings, collection: Collection
    ) -> list[str]:
        if name in self._open:
            raise TaskError(f"The group '{name}' is a member of itself.")
        self._open.append(name)
        shared_settings = {
            key: value for key, value in config.items() if key not in _GROUP_KEYS
        } | overrides
        members = config.get("task")
        tasks: list[str] = []
        children: list[str] = []
        for member in [members] if isinstance(members, str) else members or ():
            child, leaves = self._add_member(name, member, shared_settings, collection)
            children += child
            tasks += leaves
        self._open.remove(name)
        averages, findings = parse_averages(config.get("aggregate_metric_list"), name)
        alias = config.get("group_alias") or name
        version = (config.get("metadata") or {}).get("version", "N/A")
        direct, below_it = (tuple(dict.fromkeys(names)) for names in (children, tasks))
        collection.groups[name] = Group(
            name, str(alias), averages, str(version), direct, below_it, findings
        )
        return tasks

    def _add_member(
        self, group: str, member: Any, overrides: Settings, collection: Collection
    ) -> tuple[list[str], list[str]]:
        """Add one member of a group, and return its direct children and all its tasks."""
        if isinstance(member, str):
            member = {"task": member}
        if not isinstance(member, Mapping) or not (
            "task" in member or "group" in member
        ):
            raise TaskError(
                f"The group '{group}' has a member without `task` and `group`:"
                f" {member!r}."
            )
        if "group" in member:
            group_name = str(member["group"])
            if group_name in self.index:
                inner = {key: value for key, value in member.items() if key != "group"}
                return [group_name], self._add(
                    self.index[group_name], {**overrides, **inner}, collection
                )
            return [f"{group}::{group_name}"], self._add_group(
                f"{group}::{group_name}", dict(member), overrides, collection
            )
        base = str(member["task"])
        inner = {
            **overrides,
            **{key: value for key, value in member.items() if key != "task"},
        }
        if base not in self.index and {"dataset_path", "custom_dataset"} & inner.keys():
            task_name = self._add_task(
                {**inner, "task": f"{group}::{base}"}, "", collection
            )
            return [task_name], [task_name]
        listed = self.index[base]
        leaves = self._add(listed, inner, collection)
        return (leaves if listed.kind == "tag" else [base]), leaves

    def _log_findings(
        self, name: str, tasks: Sequence[Task], collection: Collection
    ) -> None:
        """Log oddities in the files of a name, and what corrected scoring changes."""
        for group in collection.groups.values():
            for finding in group.findings:
                log.warning("%s%s: %s", PREFIX, group.name, finding)
        tasks_by_note: dict[str, list[str]] = {}
        for task in tasks:
            if notes := task.metadata.get("notes"):
                tasks_by_note.setdefault(" ".join(notes), []).append(task.name)
        for note, names in tasks_by_note.items():
            suffix = f" (and {len(names) - 1} more tasks)" if len(names) > 1 else ""
            log.warning("%s%s: %s", names[0], suffix, note)
        corrections = _describe_corrections(tasks)
        if corrections and not self.options.published:
            log.warning("%s%s: %s", PREFIX, name, corrections)


def _describe_corrections(tasks: Sequence[Task]) -> str:
    """Say which of the corrections of scoring apply to these tasks; "" if none does."""
    corrections = []
    if any(task.definition.get("num_fewshot") for task in tasks):
        corrections += [
            "a question is never its own shot",
            "shots depend on the row and not on its position",
        ]
    output_types = {
        (task.definition.get("config") or {}).get("output_type") for task in tasks
    }
    if "generate_until" in output_types:
        corrections.append("several right answers keep graded scores")
    if any(map(_may_read_digits, tasks)):
        corrections.append("answers that are digits are not read as positions")
    if not corrections:
        return ""
    return (
        f"corrected scoring: {', '.join(corrections)}. Published numbers: --scoring"
        " published."
    )


def _may_read_digits(task: Task) -> bool:
    """Tell whether a template gives the right answer of a row, which may be digits and a choice."""
    config = task.definition.get("config") or {}
    choices = config.get("doc_to_choice")
    if isinstance(choices, list) and not any(
        str(choice).strip().isdigit() for choice in choices
    ):
        return False
    target = config.get("doc_to_target")
    return choices is not None and isinstance(target, str) and "{{" in target


_SETTINGS = (
    "task_root",
    *(
        option.name
        for option in fields(Options)
        if option.name not in ("roots", "chat")
    ),
)


def read_options(settings: Mapping[str, Any], *, chat: bool = False) -> Options:
    """Read Options from a configuration's `dialect` settings.

    Raises UnknownName or ConfigurationError.
    """
    check_known("setting of `dialect`", settings, _SETTINGS)
    arguments = dict(settings)
    scoring = arguments.get("scoring", "corrected")
    check_known("scoring", [scoring], SCORINGS, "")
    shots = arguments.get("num_fewshot")
    if shots is not None and (not isinstance(shots, int) or shots < 0):
        raise ConfigurationError(f"The number of shots must be 0 or more, not {shots}.")
    for key, name in (
        ("task_root", "roots"),
        ("trust", "trust"),
        ("named_folders", "named_folders"),
    ):
        arguments[name] = as_paths(arguments.pop(key, ()))
    # What a person sets must be what a request can carry; the tasks' own may have more.
    for key, value in (arguments.get("generation") or {}).items():
        _check_generation(key, value)
    if not isinstance(arguments.get("as_written", False), bool):
        raise ConfigurationError(
            f"The setting as_written is true or false, not {arguments['as_written']!r}."
        )
    return Options(**arguments, chat=chat)


def _check_generation(key: str, value: Any) -> None:
    """Raise UnknownName for an unknown setting, ConfigurationError for an invalid value."""
    settable = (*GENERATION, *FURTHER_GENERATION, *TABLES["speed_only"])
    check_known("setting of generation", [key], settable)
    if key not in GENERATION:
        return
    is_valid, requirement = GENERATION[key]
    if value is not None and not is_valid(value):
        raise ConfigurationError(
            f"The setting of generation {key} must be {requirement}, not {value!r}."
        )


def check_used(settings: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Raise UnknownName if rows are selected of a task that is not loaded."""
    task_names = [task.name.removeprefix(PREFIX) for task in tasks]
    check_known("task in samples", settings.get("samples") or (), task_names, "")


def load(
    name: str,
    settings: Mapping[str, Any],
    *,
    prompt_format: str = "auto",
    chat: bool = False,
) -> list[Task]:
    """Load the tasks of a name or a task file.

    Prompts are messages on request or, in corrected scoring, for generation tasks if the model
    takes messages. Published prompts are text unless messages are requested.

    settings: see `options.Options`. chat: whether the model takes messages.
    """
    options = read_options(settings, chat=prompt_format == "chat")
    path = Path(name)
    if not options.roots and path.suffix in (".yaml", ".yml"):
        options = replace(options, roots=(path.parent,))
    chats = prompt_format == "auto" and chat and not options.published
    return Library(options).load(
        name, generated=replace(options, chat=True) if chats else None
    )
