"""Files of SEA-HELM's folder that a task names: nothing outside of it is read."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.extend import DatasetError, OutOfReach, TaskError, is_within


def local_file(task: SeaTask, name: str) -> Path:
    """A file of its folder that a task names.

    Raises TaskError for one outside of the folder, DatasetError for one that is not there.
    """
    where = f"The task '{task.name}' ({task.language}) reads '{name[:200]}'"
    if task.root is None:
        raise DatasetError(
            f"{where}: name SEA-HELM's tree, which has it, with --task-root."
        )
    if "://" in name:
        raise TaskError(f"{where}: addresses are not opened.")
    path = task.root / name
    folder = shown_path(task.root)
    if "\0" in name or not is_within(path, task.root):
        raise TaskError(
            f"{where}, which is outside of its folder '{folder}' (links followed), or"
            " hidden."
        )
    with suppress(OSError):  # a name that is too long
        if path.is_file():  # no pipe, for which nothing would be read
            return path
    raise OutOfReach(f"{where}, which does not exist in '{folder}' or is not a file.")


def assigned(task: SeaTask, file: str, name: str) -> list[ast.expr]:
    """What a file of the tree assigns to a name or an attribute of that name.

    Its code is read, not run.
    """
    try:
        tree = ast.parse(local_file(task, file).read_text(encoding="utf-8"))
    except (
        OSError,
        DatasetError,
        TaskError,
        ValueError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ):
        return []
    assignments = [
        (node.targets, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
    ]
    return [
        value
        for to, value in assignments
        if name in (getattr(to[0], "id", ""), getattr(to[0], "attr", ""))
    ]


def shown_path(path: Path) -> str:
    """A path as errors show it: relative to the working folder where it lies inside it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError, RuntimeError):  # RuntimeError: links in a circle
        return str(path)
