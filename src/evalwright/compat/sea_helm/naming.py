"""What a name stands for - a set, a group, a task, one language of them - and the settings that
such tasks are run with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
)

from evalwright.compat.sea_helm.config import Tree, has_tasks, read_tree, root_of
from evalwright.compat.sea_helm.sea_task import DIALECT, PREFIX, log
from evalwright.extend import (
    ConfigurationError,
    ListedTask,
    Sampling,
    UnknownName,
    check_known,
    checked_sampling,
    first_mistake,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is run. tasks: (task, language) in order. missing: names of a set that the folder does
    not have, skipped: those that its lists leave out for such a model, each with its languages.
    """

    tasks: list[tuple[str, str]]
    missing: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    set_name: str = ""


def skipped_by(tree: Tree, base: bool) -> Collection[str]:
    """The tasks that its lists leave out for base models, or for the others."""
    skipped = tree.constants.get(
        "base_models_skip_tasks" if base else "instruct_models_skip_tasks"
    )
    return frozenset(map(str, skipped or ()))


def expanded(tree: Tree, name: str) -> Mapping[str, Sequence[str]]:
    """The tasks of a set by language: a group's name stands for its tasks, which come after those
    that are named.
    """
    tasks_by_language: dict[str, list[str]] = {}
    for language, named in tree.sets[name].items():
        if isinstance(named, str):  # "all"
            tasks_by_language[language] = [
                task for task in tree.tasks if language in tree.languages(task)
            ]
            continue
        named_tasks = list(dict.fromkeys(named))
        groups = [group_name for group_name in tree.groups if group_name in named_tasks]
        members = [task for group in groups for task in tree.groups[group]]
        tasks_by_language[language] = list(
            dict.fromkeys(
                [
                    *(
                        task_name
                        for task_name in named_tasks
                        if task_name not in tree.groups
                    ),
                    *members,
                ]
            )
        )
    return tasks_by_language


def chosen(
    tree: Tree, name: str, skip: Collection[str], skip_of_groups: Collection[str] = ()
) -> Chosen:
    """What a name stands for. skip: tasks of sets that are left out; skip_of_groups: those of
    groups. Raises UnknownName with the closest ones.
    """
    what, _, language = name.partition("/")
    if of_set := what in tree.sets:
        members = [
            (task, task_language)
            for task_language, tasks in expanded(tree, what).items()
            for task in tasks
        ]
    else:
        members_by_name = {
            **tree.sets,
            **tree.groups,
            **{task: [task] for task in tree.tasks},
        }
        hint = (
            f"`evalwright tasks list --dialect {DIALECT} --task-root DIR` shows all of"
            " them; one language is named as in TASK/id."
        )
        if what not in members_by_name:
            raise UnknownName("SEA-HELM task or set", what, members_by_name, hint)
        members = [
            (task, task_language)
            for task in members_by_name[what]
            for task_language in tree.languages(task)
        ]
    languages = sorted({task_language for _, task_language in members})
    check_known(
        f"language of '{what}'", [language] if language else (), languages, "It has: "
    )
    selection = Chosen([], {}, {}, what if of_set else "")
    skippable = skip_of_groups if what not in tree.tasks else ()
    if of_set:
        skippable = skip
    for task, task_language in members:
        if language not in ("", task_language):
            continue
        if task in skippable:
            selection.skipped.setdefault(task, []).append(task_language)
        elif task in tree.tasks and task_language in tree.languages(task):
            selection.tasks.append((task, task_language))
        elif task not in tree.tasks or (
            of_set and task in tree.sets[what][task_language]
        ):
            # A group's task that is not there in this language is no fault of the set.
            selection.missing.setdefault(task, []).append(task_language)
    for task, missing_languages in selection.missing.items():
        twin = [
            sibling
            for sibling in (task.removesuffix("-logprobs"),)
            if sibling in tree.tasks
        ]
        near = [*twin, *get_close_matches(task, list(tree.tasks), 2 - len(twin))]
        closest = f"; the closest: {', '.join(near)}" if near else ""
        log.warning(
            "%s%s names '%s' (%s), which the folder does not have%s. The rest is run,"
            " and totals are without it.",
            PREFIX,
            what,
            task,
            ", ".join(missing_languages),
            closest,
        )
    if selection.skipped:
        named = "; ".join(
            f"{task} ({', '.join(skipped_languages)})"
            for task, skipped_languages in selection.skipped.items()
        )
        log.warning(
            "%s%s: left out, as skip_tasks or the folder's list for such models"
            " says: %s.",
            PREFIX,
            what,
            named,
        )
    return selection


def listed(tree: Tree) -> Sequence[ListedTask]:
    """Every name: tasks, and each in its languages; groups and sets with their members."""
    entries: list[ListedTask] = []
    for name, file in tree.files.items():
        pairs = tuple(f"{name}/{language}" for language in tree.languages(name))
        entries.append(ListedTask(name, "task", file, pairs))
        entries += [ListedTask(pair, "task in a language", file) for pair in pairs]
    taken_names = {*tree.tasks, *tree.sets}
    entries += [
        ListedTask(name, "group", "", tuple(group_members))
        for name, group_members in tree.groups.items()
        if name not in taken_names
    ]
    for name in tree.sets:
        set_members = (
            f"{task}/{language}"
            for language, tasks in expanded(tree, name).items()
            for task in tasks
        )
        entries.append(ListedTask(name, "set", "", tuple(set_members)))
    return entries


def names(roots: Sequence[Path]) -> Sequence[ListedTask]:
    """All that can be named; nothing where a folder of another framework's has none of these."""
    root = root_of(roots)
    return listed(read_tree(root)) if has_tasks(root) else ()


class Options(BaseModel):
    """How tasks are run. task_root: SEA-HELM's folder. trust: folders whose Python may run. limit:
    of the run. num_fewshot: shots in place of the tasks' own.

    base_model: prompts are texts, and answers have two phases. reasoning: the model thinks first,
    so more tokens are allowed. runs: answers per question, each by the model's own sampling. seed:
    of the first; those of the eight published runs by default. generation: sampling put over the
    tasks' own. skip_tasks: what sets leave out, in place of the folder's lists. tokenizer: what
    measures texts that are made to a length. among_others: whether other tasks are run beside those
    of a name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_root: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    scoring: Literal["corrected", "published"] = "corrected"
    limit: Annotated[float, Field(gt=0)] | None = None
    num_fewshot: Annotated[StrictInt, Field(ge=0)] | None = None
    base_model: StrictBool = False
    reasoning: StrictBool = False
    runs: Annotated[StrictInt, Field(ge=1)] = 1
    seed: Annotated[StrictInt, Field(ge=0)] | None = None
    generation: Mapping[str, Any] = Field(default_factory=dict)
    skip_tasks: tuple[str, ...] | None = None
    tokenizer: str = ""
    among_others: StrictBool = False

    @property
    def published(self) -> bool:
        """Whether SEA-HELM's own arithmetic is wanted, faults included."""
        return self.scoring == "published"


def options_of(settings: Mapping[str, Any]) -> Options:
    """Options from a configuration's `dialect` settings.

    Raises UnknownName or ConfigurationError.
    """
    values = dict(settings)
    check_known("setting of SEA-HELM's tasks", values, Options.model_fields)
    for key in ("task_root", "trust", "skip_tasks"):
        if isinstance(value := values.get(key), str | Path):
            values[key] = [
                piece
                for piece in str(value).split("," if key == "skip_tasks" else "\0")
                if piece
            ]
    if isinstance(generation := values.get("generation"), Mapping):
        check_known(
            "setting of `generation`",
            generation,
            [field.name for field in fields(Sampling)],
        )
        values["generation"] = checked_sampling(generation, "The setting `generation`")
    try:
        return Options(**values)
    except ValidationError as error:
        raise ConfigurationError(
            f"A setting of SEA-HELM's tasks: {first_mistake(error, values)}"
        ) from None
