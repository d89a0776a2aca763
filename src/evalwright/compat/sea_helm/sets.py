"""What a name stands for: a set, a group of tasks, a task, each in all of its languages or in one (`sentiment/id`)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from evalwright.compat.sea_helm.config import Tree
from evalwright.core.errors import UnknownName
from evalwright.tasks.dialects import Listed

DIALECT = "sea-helm"
PREFIX = f"{DIALECT}:"

log = logging.getLogger("evalwright.sea_helm")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is run. tasks: (task, language) in order. missing: names of a set that the folder does not have, skipped: those that its
    lists leave out for such a model, each with its languages."""

    tasks: list[tuple[str, str]]
    missing: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    set_name: str = ""


def skipped_by(tree: Tree, base: bool) -> Collection[str]:
    """The tasks that its lists leave out for base models, or for the others."""
    found = tree.constants.get("base_models_skip_tasks" if base else "instruct_models_skip_tasks")
    return frozenset(map(str, found or ()))


def expanded(tree: Tree, name: str) -> Mapping[str, Sequence[str]]:
    """The tasks of a set by language: a group's name stands for its tasks, which come after those that are named."""
    out: dict[str, list[str]] = {}
    for language, named in tree.sets[name].items():
        if isinstance(named, str):  # "all"
            out[language] = [task for task in tree.tasks if language in tree.languages(task)]
            continue
        own = list(dict.fromkeys(named))
        groups = [one for one in tree.groups if one in own]
        members = [task for group in groups for task in tree.groups[group]]
        out[language] = list(dict.fromkeys([*(one for one in own if one not in tree.groups), *members]))
    return out


def chosen(tree: Tree, name: str, skip: Collection[str]) -> Chosen:
    """What a name stands for. skip: tasks of sets that are left out. Raises UnknownName with the closest ones."""
    what, _, language = name.partition("/")
    own = tree.sets.get(what)
    if own is not None:
        members = [(task, one) for one, tasks in expanded(tree, what).items() for task in tasks]
    else:
        tasks = [what] if what in tree.tasks else tree.groups.get(what)
        if tasks is None:
            known = [*tree.tasks, *tree.groups, *tree.sets]
            hint = f"`evalwright tasks list --dialect {DIALECT} --task-root DIR` shows all of them; "
            hint += "one language is named as in TASK/id."
            raise UnknownName("SEA-HELM task or set", what, known, hint)
        members = [(task, one) for task in tasks for one in tree.languages(task)]
    languages = sorted({one for _, one in members})
    if language and language not in languages:
        raise UnknownName(f"language of '{what}'", language, languages, f"It has: {', '.join(languages)}.")
    found = Chosen([], {}, {}, what if own is not None else "")
    for task, one in members:
        if language not in ("", one):
            continue
        if own is not None and task in skip:
            found.skipped.setdefault(task, []).append(one)
        elif task in tree.tasks and one in tree.languages(task):
            found.tasks.append((task, one))
        elif task not in tree.tasks or (own is not None and task in own[one]):
            # A group's task that is not there in this language is no fault of the set.
            found.missing.setdefault(task, []).append(one)
    _say(tree, found)
    return found


def _say(tree: Tree, found: Chosen) -> None:
    for task, languages in found.missing.items():
        twin = [one for one in (task.removesuffix("-logprobs"),) if one in tree.tasks]
        near = [*twin, *get_close_matches(task, list(tree.tasks), 2 - len(twin))]
        named = f"'{task}' ({', '.join(languages)}), which the folder does not have"
        closest = f"; the closest: {', '.join(near)}" if near else ""
        rest = "The rest is run, and totals are without it."
        log.warning("%s%s names %s%s. %s", PREFIX, found.set_name, named, closest, rest)
    if found.skipped:
        named = "; ".join(f"{task} ({', '.join(languages)})" for task, languages in found.skipped.items())
        log.warning("%s%s: left out for this kind of model: %s.", PREFIX, found.set_name, named)


def listed(tree: Tree) -> Sequence[Listed]:
    """Every name: tasks, and each in its languages; groups and sets with their members."""
    found: list[Listed] = []
    for name, file in tree.files.items():
        pairs = tuple(f"{name}/{one}" for one in tree.languages(name))
        found.append(Listed(name, "task", file, pairs))
        found += [Listed(pair, "task in a language", file) for pair in pairs]
    taken = {*tree.tasks, *tree.sets}
    found += [Listed(name, "group", "", tuple(own)) for name, own in tree.groups.items() if name not in taken]
    for name in tree.sets:
        own = (f"{task}/{one}" for one, tasks in expanded(tree, name).items() for task in tasks)
        found.append(Listed(name, "set", "", tuple(own)))
    return found
