"""Runs whose tasks have metadata, made from scores alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.runs.reader import Run, open_run
from support.runs import Scores, edited, make_run


def make_tagged_run(
    folder: Path,
    scores: Mapping[str, Scores],
    metadata: Mapping[str, Mapping[str, Any]],
    *,
    tree: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Run:
    """Write a run and give its tasks metadata, and its configuration a tree.

    Args:
        folder: where the run's folder goes.
        scores: by task, as of `make_run`.
        metadata: by task.
        tree: as in a suite file.
        settings: further arguments of `make_run`.
    """
    run = make_run(folder, scores=scores, **settings)
    with edited(run.folder) as record:
        for task in record["tasks"]:
            task["metadata"] = dict(metadata.get(task["name"], {}))
        if tree is not None:
            record["configuration"]["tree"] = dict(tree)
    return open_run(run.folder)


def language_metadata(tasks: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Read language and competency off names such as "th-reading"."""
    metadata = {}
    for name in tasks:
        language, _, competency = name.partition("-")
        if competency:
            metadata[name] = {"language": language, "competency": competency}
    return metadata
