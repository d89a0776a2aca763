"""The judges that SEA-HELM's files propose, and how their prompts are filled. Which model a judge is, the person says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalwright.compat.sea_helm.published import SeaHelmRaised
from evalwright.compat.sea_helm.task import SeaTask, drawing
from evalwright.core.errors import TaskError, UnknownName

_PROVIDERS = {
    "local_openai": "openai",
    "online_sglang": "sglang",
    "online_vllm": "vllm",
    "vertexai": "vertex",
}
_GENERATION = ("max_tokens", "min_p", "reasoning_effort", "seed", "temperature", "top_k", "top_p")
_NAME = re.compile(r"[\w.:@/+-]{1,300}")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge as a task's file proposes it. role: by which the person says which model it is."""

    role: str
    model: str
    type: str
    init_args: Mapping[str, Any]
    generation: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What to write in the person's flag."""
        kind = self.type.lower()
        return f"{_PROVIDERS.get(kind, kind)}/{self.model}"


def judges_of(task: SeaTask) -> tuple[Judge, ...]:
    """The judges that a task's file names, in the roles "judge", "judge-2" and so on. Raises TaskError, UnknownName."""
    given = task.config.get("judge")
    if not isinstance(given, Mapping) or not given.get("judge_model_name"):
        raise TaskError(f"The task '{task.name}' has no judge (`judge.judge_model_name`).")
    names, *others = (
        list(value) if isinstance(value := given.get(f"judge_{key}") or {}, list | tuple) else [value]
        for key in ("model_name", "model_type", "init_args", "generation_kwargs")
    )
    others = [column * len(names) if len(column) == 1 else column for column in others]
    if any(len(column) != len(names) for column in others):
        raise TaskError(
            f"The task '{task.name}' has {len(names)} judges, and a list of another length beside them."
        )
    found = []
    for number, (name, kind, init, generation) in enumerate(zip(names, *others, strict=True), 1):
        if not (isinstance(generation or {}, Mapping) and isinstance(init or {}, Mapping)):
            raise TaskError(f"The task '{task.name}' has no mapping for the arguments of its judge.")
        if not _NAME.fullmatch(f"{kind or ''}{name}"):  # it is shown for the person to write
            raise TaskError(
                f"The task '{task.name}' has a judge whose name is none of a model: {str(name)[:80]!r}."
            )
        for key in generation or {}:
            if key not in _GENERATION:
                known = f"Known: {', '.join(_GENERATION)}."
                raise UnknownName(f"argument of the judge in '{task.name}'", str(key), _GENERATION, known)
        role = "judge" if number == 1 else f"judge-{number}"
        how = drawing(generation or {}, f"The judge of the task '{task.name}'")
        found.append(Judge(role, str(name), str(kind or ""), init or {}, how))
    return tuple(found)


def filled(template: Any, values: Mapping[str, Any], published: bool = False) -> str:
    """A template with its placeholders filled once; other braces stay, in templates and in what is filled in.

    published: raises SeaHelmRaised where Python's own formatting would.
    """

    def put(found: re.Match[str]) -> str:
        if found[1] in values:
            return str(values[found[1]])
        if len(found[0]) == 2 and found[1] is None:
            return found[0][0]
        if published:
            raise SeaHelmRaised(f"KeyError: '{found[1]}'" if found[1] else "ValueError: a single brace")
        return found[0]

    return _BRACES.sub(put, str(template or ""))
