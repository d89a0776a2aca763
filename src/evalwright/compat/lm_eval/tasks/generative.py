"""Finds variants of a task in which the model writes its answer.

They suit models without log-likelihoods, such as most chat interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright import EvalwrightError
from evalwright.compat.lm_eval.tasks.index import Index
from evalwright.compat.lm_eval.tasks.options import PREFIX
from evalwright.compat.lm_eval.tasks.task_yaml import Files
from evalwright.extend import ListedTask

FORM_WORDS = frozenset(("chat", "cot", "gen", "generate", "generative"))
"""Words that mark a generative variant's name."""
IDLE_WORDS = frozenset(
    (
        "fewshot",
        "greedy",
        "loglikelihood",
        "mc",
        "mc1",
        "mc2",
        "multiple",
        "choice",
        "n",
        "shot",
        "zeroshot",
    )
)
"""Words of a task's name that its generative variant lacks."""
MAX_FORMS = 3


def advice(task: str, index: Index) -> str:
    """Suggest a task's generative variants, or what else can be done."""
    forms = [f"{PREFIX}{name}" for name in generative_forms(task, index)]
    scoring = (
        "Log-likelihoods come from local models (--model hf) and from completions of a"
        " server that echoes prompts (--model local-completions)."
    )
    if not forms:
        return (
            "No form of it in which the model writes its answer is among the tasks."
            f" {scoring}"
        )
    plural = len(forms) > 1
    return (
        f"{'Forms' if plural else 'A form'} of it in which the model writes its"
        f" answer: {', '.join(forms)}. {scoring}"
    )


def generative_forms(task: str, index: Index) -> list[str]:
    """Find up to three generative variants of a task by name, the closest first."""
    task_words = _name_words(task) - IDLE_WORDS
    forms: list[tuple[int, str]] = []
    for name in index:
        words = _name_words(name)
        if name == task or not words & FORM_WORDS or not task_words <= words:
            continue
        forms.append((len(words - task_words), name))
    ranked = (index[name] for _, name in sorted(forms))
    generating = (
        listed_task.name for listed_task in ranked if _generates(listed_task, index)
    )
    return [name for name, _ in zip(generating, range(MAX_FORMS), strict=False)]


def _name_words(name: str) -> set[str]:
    return set(filter(None, re.split(r"[^a-z0-9]+", name.lower())))


def _generates(listed: ListedTask, index: Index) -> bool:
    """Whether a task, or the first task of a group or tag, is answered by text."""
    for task in _leaves(listed, index, ()):
        try:
            settings = Files().read(Path(task.path))
        except EvalwrightError:
            return False
        return (
            "class" not in settings
            and settings.get("output_type", "generate_until") == "generate_until"
        )
    return False


def _leaves(
    listed: ListedTask, index: Index, parents: tuple[str, ...]
) -> Iterator[ListedTask]:
    if listed.kind == "task":
        yield listed
        return
    if listed.kind == "group":
        try:
            names = list(_member_names(Files().read(Path(listed.path)).get("task")))
        except EvalwrightError:
            return
    else:
        names = list(listed.members)
    for name in names:
        if name in index and name not in parents:
            yield from _leaves(index[name], index, (*parents, listed.name))


def _member_names(members: Any) -> Iterator[str]:
    """The names in a group's list, including those of nested groups."""
    if isinstance(members, str):
        yield members
    elif isinstance(members, dict):
        yield from _member_names(members.get("task"))
    elif isinstance(members, list):
        for member in members:
            yield from _member_names(member)
