"""A task's questions in other words, as a task of their own: a YAML file and its data beside it.

Every row names its original, the kind of rewrite, what made it, and whether a person has checked
it. The new file has the original's prompt, scorers and metrics, so that its run differs from the
original's in the wordings alone.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evalwright.analysis.contamination.by_model import Rewrite, Rewritten
from evalwright.analysis.contamination.report import KIND, OF_TASK, REWRITE_KEYS
from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.core.tasks import Task
from evalwright.tasks.definitions import Definition
from evalwright.tasks.files import failing_as, write_text
from evalwright.tasks.prompt_files import with_prompt_file
from evalwright.tasks.yaml_files import plain


def write_rewrites(
    found: Rewritten,
    task: Task,
    definition: Definition,
    into: Path,
    *,
    name: str = "",
    over: bool = False,
) -> Path:
    """Write the task file `into` and its data beside it; return the data's path.

    name: of the new task; made of the original's where it is "". over: replace files that are
    there. Raises ConfigurationError where there is nothing to write, and where a file is there or
    cannot be written.
    """
    if into.suffix.lower() not in (".yaml", ".yml"):
        raise ConfigurationError(f"A task file ends in .yaml: '{into}' does not.")
    if not found.rewrites:
        why = "; ".join(
            f"{kind}: {reason} ({count:,})"
            for (kind, reason), count in found.refused.items()
        )
        raise ConfigurationError(
            f"No sample of '{task.name}' could be rewritten. {why}".rstrip()
        )
    data = into.with_suffix(".jsonl")
    for path in (into, data):
        if path.exists() and not over:
            raise ConfigurationError(
                f"'{path}' already exists. Name another file, or replace it with"
                " --replace."
            )
    kinds = sorted({one.kind for one in found.rewrites})
    title = name or f"{task.name}-{kinds[0] if len(kinds) == 1 else 'rewritten'}"
    several = len({one.original.id for one in found.rewrites}) < len(found.rewrites)
    lines = [
        json.dumps(_row(one, task.name, definition, several), ensure_ascii=False)
        for one in found.rewrites
    ]
    value = _file(found, task, definition, title, data.name, into.parent)
    first = {
        key: value[key]
        for key in ("task", "version", "description", "dataset", "sample")
    }
    text = yaml.safe_dump(
        plain({**first, **value}), sort_keys=False, allow_unicode=True, width=120
    )
    with failing_as(ConfigurationError, f"'{into}' cannot be written"):
        into.parent.mkdir(parents=True, exist_ok=True)
        write_text(data, "\n".join([*lines, ""]))
        write_text(into, text)
    return data


def _row(
    one: Rewrite, task: str, definition: Definition, several: bool
) -> dict[str, Any]:
    """The original's columns, with the wording replaced where a column is the wording, and the
    sample under "rewrite".

    several: an original may have more than one rewrite; they are one cluster.
    """
    old = one.original
    new = one.sample
    row = {**definition.variables, **old.row}
    for before, after in (
        (old.input, new.input),
        (list(old.choices), list(new.choices)),
    ):
        row |= {key: after for key, value in row.items() if before and value == before}
    target: Any = list(new.targets)
    if new.choices:
        target = list(new.gold) if len(new.gold) != 1 else new.gold[0]
    origin = dict(
        zip(REWRITE_KEYS, (old.id, task, one.kind, one.by, False), strict=True)
    )
    sample: dict[str, Any] = {
        "id": f"{old.id}~{one.kind}",
        "input": new.input,
        "target": target,
        "cluster": old.cluster or (old.id if several else ""),
        "metadata": {**old.metadata, **origin},
    }
    if new.choices:
        sample["choices"] = list(new.choices)
    if new.passages:
        sample["passages"] = [
            {"id": passage.id, "text": passage.text} for passage in new.passages
        ]
    row.pop("id", None)
    plain_row: dict[str, Any] = plain({**row, "rewrite": sample})
    return plain_row


def _file(
    found: Rewritten,
    task: Task,
    definition: Definition,
    title: str,
    data: str,
    folder: Path,
) -> dict[str, Any]:
    """The original's definition over the new data."""
    document = with_prompt_file(definition.document, definition.variables)
    value: dict[str, Any] = dict(document.value)
    first = found.rewrites[0]
    keys = sorted({key for one in found.rewrites for key in one.original.metadata})
    names = [
        "id",
        "input",
        "target",
        "cluster",
        *(["choices"] if first.sample.choices else []),
    ]
    sample: dict[str, Any] = {name: f"{{{{ rewrite['{name}'] }}}}" for name in names}
    if any(one.sample.passages for one in found.rewrites):
        sample["passages"] = "{{ rewrite['passages'] | default([]) }}"
    sample["metadata"] = {
        key: f"{{{{ rewrite['metadata'][{key!r}] | default(none) }}}}"
        for key in [*keys, *REWRITE_KEYS]
    }
    kinds = Counter(one.kind for one in found.rewrites)
    made = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    prompt = value.get("prompt")
    if isinstance(prompt, Mapping) and isinstance(prompt.get("few_shot"), Mapping):
        shots = _shots(prompt["few_shot"], value, definition, folder)
        value["prompt"] = {**prompt, "few_shot": shots}
    changed = {
        "task": title,
        "version": task.version,
        "description": f"{task.name} in other words: {made}.",
        "dataset": data,
        "sample": sample,
        "slices": list(dict.fromkeys([KIND, *task.slices])),
        "metadata": {**value.get("metadata", {}), OF_TASK: task.name},
    }
    return {
        **{key: item for key, item in value.items() if key not in ("where", "group")},
        **changed,
    }


def _shots(
    shots: Mapping[str, Any],
    value: Mapping[str, Any],
    definition: Definition,
    folder: Path,
) -> dict[str, Any]:
    """Shots as they were.

    Raises ConfigurationError where they would show a rewrite its original, with the answer.
    """
    if shots.get("count") == 0:
        return {"count": 0}
    if "dataset" not in shots:
        raise ConfigurationError(
            f"'{definition.name}' takes its worked examples from its own questions, so"
            " a rewrite could be shown its original with the answer. Leave them out,"
            " here and in the run of the original: -T prompt.few_shot.count=0."
        )
    out = dict(shots)
    if "sample" not in out and "sample" in value:
        out["sample"] = value["sample"]
    base = definition.document.folder(("prompt", "few_shot", "dataset"))
    out["dataset"] = _relative(out["dataset"], base, folder)
    return out


def _relative(dataset: Any, base: Path, folder: Path) -> Any:
    """A dataset's paths as they are from another folder."""
    if isinstance(dataset, str):
        return os.path.relpath(base / dataset, folder)
    if isinstance(dataset, Mapping) and "path" in dataset:
        paths = dataset["path"]
        several = paths if isinstance(paths, list) else [paths]
        return {
            **dataset,
            "path": [os.path.relpath(base / str(path), folder) for path in several],
        }
    return dataset


def only_definition(name: str, found: Sequence[Definition | Task]) -> Definition:
    """The one definition of a task file.

    Raises TaskError for several, and for a task that is no file.
    """
    if len(found) != 1:
        raise TaskError(f"'{name}' is {len(found)} tasks; name one of them.")
    one = found[0]
    if isinstance(one, Task):
        raise TaskError(
            f"The task '{name}' is made in Python, so it cannot be written as a file."
        )
    return one
