"""Keeps the records of published runs, so that a rerun with equal results does not look new.

A rerun answered from the store has the same results, but another date and other request counts.
The kept record says when the results were first obtained, and a board made from it changes only
where results do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from evalwright.core.errors import RunError, UnknownName
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.safe_files import place_of

_WHAT = ("identity", "model", "roles", "tasks", "groups")
"""The parts of a record that define a question and its results."""
_ACCEPTED = ("accept_failures", "give_up")
"""Settings that decide whether missing samples are accepted, which boards report."""


def kept_runs(runs: Sequence[Run], folder: Path) -> list[Run]:
    """Replace each run by the one kept in the folder if that has the same results.

    Raises RunError for two runs with one folder name, or if the folder is the runs' own.
    """
    seen: dict[str, Run] = {}
    for run in runs:
        name = run.folder.resolve().name
        if name in seen:
            raise RunError(
                f"'{seen[name].folder}' and '{run.folder}' are both named '{name}', so"
                " they cannot be kept in one folder."
            )
        if run.folder.resolve().parent == folder.resolve():
            raise RunError(
                f"'{run.folder}' is inside '{folder}': keep runs in another folder."
            )
        seen[name] = run
    return [_earlier(run, folder / name) or run for name, run in seen.items()]


def keep_runs(runs: Sequence[Run], folder: Path) -> None:
    """Copy the runs into the folder, except those that are there already.

    Other files in it stay. Raises RunError.
    """
    try:
        place_of(folder).mkdir(parents=True, exist_ok=True)
        for run in runs:
            if run.folder.resolve().parent != folder.resolve():
                _copy(run, folder / run.folder.resolve().name)
    except (OSError, shutil.Error) as error:
        raise RunError(f"Runs cannot be kept in '{folder}': {error}.") from error


def _earlier(run: Run, folder: Path) -> Run | None:
    try:
        earlier = open_run(folder)
    except (RunError, UnknownName):
        return None  # none is kept yet, or it is damaged: use the run itself
    return earlier if _results(earlier) == _results(run) else None


def _results(run: Run) -> tuple[object, ...]:
    configuration = run.data["configuration"]
    accepted = [configuration.get(key) for key in _ACCEPTED]
    return (
        *(run.data.get(key) for key in _WHAT),
        *accepted,
        run.data["samples"].get("sha256"),
    )


def _copy(run: Run, target: Path) -> None:
    """Copy a run's two files to `target`, which holds the old or the new ones, never a mixture."""
    new, old = (
        target.with_name(f".{target.name}.{os.getpid()}.{suffix}")
        for suffix in ("new", "old")
    )
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        shutil.copyfile(run.samples_file, new / run.samples_file.name)
        shutil.copyfile(run.folder / RUN_FILE, new / RUN_FILE)
        if target.exists():
            target.replace(old)
        new.replace(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
