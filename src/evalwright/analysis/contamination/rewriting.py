"""Writes a task's rewritten questions as a new task: a YAML file with its data.

Every row names its original, the kind of rewrite, what wrote it, and whether a person has
checked it. The new file keeps the original's prompt, scorers and metrics, so the runs differ in
wording only.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evalwright.analysis.contamination.by_model import Rewrite, RewrittenTask
from evalwright.analysis.contamination.report import KIND, OF_TASK, REWRITE_KEYS
from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.core.tasks import Task
from evalwright.tasks.definitions import Definition
from evalwright.tasks.prompt_files import with_prompt_file
from evalwright.tasks.safe_files import failing_as, write_text
from evalwright.tasks.yaml_files import plain


def write_rewrites(
    rewritten: RewrittenTask,
    task: Task,
    definition: Definition,
    into: Path,
    *,
    name: str = "",
    over: bool = False,
) -> Path:
    """Write a task file with its data beside it, and return the data's path.

    Args:
        rewritten: the rewrites.
        task: the original task.
        definition: its definition.
        into: the task file.
        name: of the new task; by default derived from the original's.
        over: replace existing files.

    Raises:
        ConfigurationError: there is nothing to write, or a file exists or cannot be written.
    """
    if into.suffix.lower() not in (".yaml", ".yml"):
        raise ConfigurationError(f"A task file ends in .yaml: '{into}' does not.")
    if not rewritten.rewrites:
        why = "; ".join(
            f"{kind}: {reason} ({count:,})"
            for (kind, reason), count in rewritten.refused.items()
        )
        raise ConfigurationError(
            f"No sample of '{task.name}' could be rewritten. {why}".rstrip()
        )
    data_path = into.with_suffix(".jsonl")
    for path in (into, data_path):
        if path.exists() and not over:
            raise ConfigurationError(
                f"'{path}' already exists. Name another file, or replace it with"
                " --replace."
            )
    kinds = sorted({rewrite.kind for rewrite in rewritten.rewrites})
    title = name or f"{task.name}-{kinds[0] if len(kinds) == 1 else 'rewritten'}"
    shares_original = len(
        {rewrite.original.id for rewrite in rewritten.rewrites}
    ) < len(rewritten.rewrites)
    lines = [
        json.dumps(
            _make_row(rewrite, task.name, definition, shares_original),
            ensure_ascii=False,
        )
        for rewrite in rewritten.rewrites
    ]
    document = _make_document(
        rewritten, task, definition, title, data_path.name, into.parent
    )
    first = {
        key: document[key]
        for key in ("task", "version", "description", "dataset", "sample")
    }
    text = yaml.safe_dump(
        plain({**first, **document}), sort_keys=False, allow_unicode=True, width=120
    )
    with failing_as(ConfigurationError, f"'{into}' cannot be written"):
        into.parent.mkdir(parents=True, exist_ok=True)
        write_text(data_path, "\n".join([*lines, ""]))
        write_text(into, text)
    return data_path


def _make_row(
    rewrite: Rewrite, task: str, definition: Definition, shares_original: bool
) -> dict[str, Any]:
    """Build a row: the original's columns, with new wording, and the sample under "rewrite".

    Args:
        rewrite: the rewrite.
        task: the original task's name.
        definition: its definition.
        shares_original: whether originals may have several rewrites, which then form one cluster.
    """
    old = rewrite.original
    new = rewrite.sample
    row = {**definition.variables, **old.row}
    for before, after in (
        (old.input, new.input),
        (list(old.choices), list(new.choices)),
    ):
        row |= {
            key: after for key, content in row.items() if before and content == before
        }
    target: Any = list(new.targets)
    if new.choices:
        target = list(new.gold) if len(new.gold) != 1 else new.gold[0]
    origin = dict(
        zip(REWRITE_KEYS, (old.id, task, rewrite.kind, rewrite.by, False), strict=True)
    )
    sample: dict[str, Any] = {
        "id": f"{old.id}~{rewrite.kind}",
        "input": new.input,
        "target": target,
        "cluster": old.cluster or (old.id if shares_original else ""),
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


def _make_document(
    rewritten: RewrittenTask,
    task: Task,
    definition: Definition,
    title: str,
    data_name: str,
    folder: Path,
) -> dict[str, Any]:
    """Build the new task file: the original's, with the new data."""
    document = with_prompt_file(definition.document, definition.variables)
    document_fields: dict[str, Any] = dict(document.value)
    first = rewritten.rewrites[0]
    keys = sorted(
        {key for rewrite in rewritten.rewrites for key in rewrite.original.metadata}
    )
    names = [
        "id",
        "input",
        "target",
        "cluster",
        *(["choices"] if first.sample.choices else []),
    ]
    sample: dict[str, Any] = {name: f"{{{{ rewrite['{name}'] }}}}" for name in names}
    if any(rewrite.sample.passages for rewrite in rewritten.rewrites):
        sample["passages"] = "{{ rewrite['passages'] | default([]) }}"
    sample["metadata"] = {
        key: f"{{{{ rewrite['metadata'][{key!r}] | default(none) }}}}"
        for key in [*keys, *REWRITE_KEYS]
    }
    kinds = Counter(rewrite.kind for rewrite in rewritten.rewrites)
    counts_text = ", ".join(
        f"{count:,} {kind}" for kind, count in sorted(kinds.items())
    )
    prompt = document_fields.get("prompt")
    if isinstance(prompt, Mapping) and isinstance(prompt.get("few_shot"), Mapping):
        shots = _keep_shots(prompt["few_shot"], document_fields, definition, folder)
        document_fields["prompt"] = {**prompt, "few_shot": shots}
    changed = {
        "task": title,
        "version": task.version,
        "description": f"{task.name} in other words: {counts_text}.",
        "dataset": data_name,
        "sample": sample,
        "slices": list(dict.fromkeys([KIND, *task.slices])),
        "metadata": {**document_fields.get("metadata", {}), OF_TASK: task.name},
    }
    return {
        **{
            key: content
            for key, content in document_fields.items()
            if key not in ("where", "group")
        },
        **changed,
    }


def _keep_shots(
    shots: Mapping[str, Any],
    document: Mapping[str, Any],
    definition: Definition,
    folder: Path,
) -> dict[str, Any]:
    """Keep the few-shot settings of the original.

    Raises:
        ConfigurationError: they would show a rewrite its original, with the answer.
    """
    if shots.get("count") == 0:
        return {"count": 0}
    if "dataset" not in shots:
        raise ConfigurationError(
            f"'{definition.name}' takes its worked examples from its own questions, so"
            " a rewrite could be shown its original with the answer. Leave them out,"
            " here and in the run of the original: -T prompt.few_shot.count=0."
        )
    new_shots = dict(shots)
    if "sample" not in new_shots and "sample" in document:
        new_shots["sample"] = document["sample"]
    base = definition.document.folder(("prompt", "few_shot", "dataset"))
    new_shots["dataset"] = _rebase_dataset(new_shots["dataset"], base, folder)
    return new_shots


def _rebase_dataset(dataset: Any, base: Path, folder: Path) -> Any:
    """Rewrite a dataset's relative paths for another folder."""
    if isinstance(dataset, str):
        return os.path.relpath(base / dataset, folder)
    if isinstance(dataset, Mapping) and "path" in dataset:
        paths = dataset["path"]
        path_list = paths if isinstance(paths, list) else [paths]
        return {
            **dataset,
            "path": [os.path.relpath(base / str(path), folder) for path in path_list],
        }
    return dataset


def only_definition(name: str, definitions: Sequence[Definition | Task]) -> Definition:
    """Return the single definition of a task file.

    Raises:
        TaskError: there are several, or the task is not a file.
    """
    if len(definitions) != 1:
        raise TaskError(f"'{name}' is {len(definitions)} tasks; name one of them.")
    definition = definitions[0]
    if isinstance(definition, Task):
        raise TaskError(
            f"The task '{name}' is made in Python, so it cannot be written as a file."
        )
    return definition
