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

from evalwright.compat.sea_helm.config import (
    DIALECT,
    PREFIX,
    Tree,
    drawing,
    has_tasks,
    log,
    read_tree,
    root_of,
)
from evalwright.core.errors import ConfigurationError, UnknownName, check_known
from evalwright.strategies.generate import Sampling
from evalwright.tasks.dialects import Listed
from evalwright.tasks.validation import first_mistake


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
    found = tree.constants.get(
        "base_models_skip_tasks" if base else "instruct_models_skip_tasks"
    )
    return frozenset(map(str, found or ()))


def expanded(tree: Tree, name: str) -> Mapping[str, Sequence[str]]:
    """The tasks of a set by language: a group's name stands for its tasks, which come after those
    that are named.
    """
    out: dict[str, list[str]] = {}
    for language, named in tree.sets[name].items():
        if isinstance(named, str):  # "all"
            out[language] = [
                task for task in tree.tasks if language in tree.languages(task)
            ]
            continue
        own = list(dict.fromkeys(named))
        groups = [one for one in tree.groups if one in own]
        members = [task for group in groups for task in tree.groups[group]]
        out[language] = list(
            dict.fromkeys([*(one for one in own if one not in tree.groups), *members])
        )
    return out


def chosen(
    tree: Tree, name: str, skip: Collection[str], skip_of_groups: Collection[str] = ()
) -> Chosen:
    """What a name stands for. skip: tasks of sets that are left out; skip_of_groups: those of
    groups. Raises UnknownName with the closest ones.
    """
    what, _, language = name.partition("/")
    if of_set := what in tree.sets:
        members = [
            (task, one) for one, tasks in expanded(tree, what).items() for task in tasks
        ]
    else:
        known = {**tree.sets, **tree.groups, **{task: [task] for task in tree.tasks}}
        hint = (
            f"`evalwright tasks list --dialect {DIALECT} --task-root DIR` shows all of"
            " them; one language is named as in TASK/id."
        )
        if what not in known:
            raise UnknownName("SEA-HELM task or set", what, known, hint)
        members = [(task, one) for task in known[what] for one in tree.languages(task)]
    languages = sorted({one for _, one in members})
    check_known(
        f"language of '{what}'", [language] if language else (), languages, "It has: "
    )
    found = Chosen([], {}, {}, what if of_set else "")
    for task, one in members:
        if language not in ("", one):
            continue
        if task in (
            skip if of_set else skip_of_groups if what not in tree.tasks else ()
        ):
            found.skipped.setdefault(task, []).append(one)
        elif task in tree.tasks and one in tree.languages(task):
            found.tasks.append((task, one))
        elif task not in tree.tasks or (of_set and task in tree.sets[what][one]):
            # A group's task that is not there in this language is no fault of the set.
            found.missing.setdefault(task, []).append(one)
    for task, own in found.missing.items():
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
            ", ".join(own),
            closest,
        )
    if found.skipped:
        named = "; ".join(
            f"{task} ({', '.join(own)})" for task, own in found.skipped.items()
        )
        log.warning(
            "%s%s: left out, as skip_tasks or the folder's list for such models"
            " says: %s.",
            PREFIX,
            what,
            named,
        )
    return found


def listed(tree: Tree) -> Sequence[Listed]:
    """Every name: tasks, and each in its languages; groups and sets with their members."""
    found: list[Listed] = []
    for name, file in tree.files.items():
        pairs = tuple(f"{name}/{one}" for one in tree.languages(name))
        found.append(Listed(name, "task", file, pairs))
        found += [Listed(pair, "task in a language", file) for pair in pairs]
    taken = {*tree.tasks, *tree.sets}
    found += [
        Listed(name, "group", "", tuple(own))
        for name, own in tree.groups.items()
        if name not in taken
    ]
    for name in tree.sets:
        own = (
            f"{task}/{one}"
            for one, tasks in expanded(tree, name).items()
            for task in tasks
        )
        found.append(Listed(name, "set", "", tuple(own)))
    return found


def names(roots: Sequence[Path]) -> Sequence[Listed]:
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
    """Options from a configuration's `dialect` settings. Raises UnknownName or ConfigurationError."""
    given = dict(settings)
    check_known("setting of SEA-HELM's tasks", given, Options.model_fields)
    for key in ("task_root", "trust", "skip_tasks"):
        if isinstance(value := given.get(key), str | Path):
            given[key] = [
                one
                for one in str(value).split("," if key == "skip_tasks" else "\0")
                if one
            ]
    if isinstance(generation := given.get("generation"), Mapping):
        check_known(
            "setting of `generation`",
            generation,
            [one.name for one in fields(Sampling)],
        )
        given["generation"] = drawing(generation, "The setting `generation`")
    try:
        return Options(**given)
    except ValidationError as error:
        raise ConfigurationError(
            f"A setting of SEA-HELM's tasks: {first_mistake(error, given)}"
        ) from None
