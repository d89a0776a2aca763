"""Renaming and deleting runs. Stored responses are kept elsewhere and stay."""

from __future__ import annotations

import shutil
from pathlib import Path

from evalwright.core.errors import ConfigurationError, RunError
from evalwright.runs.reader import open_run
from evalwright.runs.writer import (
    RUN_FILE,
    SAMPLES_FILE,
    check_run_name,
    growing,
    write_json,
)
from evalwright.tasks.safe_files import failing_as


def removable_folder(name: str, runs_folder: Path) -> Path:
    """The folder of a run that may be changed: one that no process is writing.

    Args:
        name: the run's name or folder.
        runs_folder: the folder in which names are looked up.

    Raises:
        UnknownName: there is no such run.
        RunError: it is being made, or its folder is a link or holds no run.
    """
    folder = next(
        (
            candidate
            for candidate in (runs_folder / name, Path(name))
            if _holds_run(candidate)
        ),
        None,
    )
    if folder is None:
        folder = open_run(name, runs_folder).folder
    if folder.is_symlink():
        raise RunError(f"'{folder}' is a link: change the folder that it points to.")
    unfinished = growing(folder)
    if unfinished is not None and unfinished.running:
        raise RunError(f"'{folder.name}' is being made: stop its process first.")
    return folder


def _holds_run(folder: Path) -> bool:
    return folder.is_dir() and (
        (folder / RUN_FILE).is_file() or growing(folder) is not None
    )


def rename_run(name: str, new_name: str, runs_folder: Path) -> Path:
    """Rename a finished run: its folder, and its id in the record. Returns the new folder.

    Raises:
        UnknownName: there is no such run.
        ConfigurationError: the new name cannot be one, or is taken.
        RunError: the run is being made, or cannot be renamed.
    """
    folder = removable_folder(name, runs_folder)
    run = open_run(folder)
    check_run_name(new_name)
    target = folder.parent / new_name
    if not new_name or target.exists() or target.is_symlink():
        raise ConfigurationError(
            f"'{new_name}' is taken or empty: give the run another name."
        )
    with failing_as(RunError, f"'{name}' cannot be renamed"):
        folder.rename(target)
        write_json(target / RUN_FILE, {**run.data, "id": new_name})
    return target


def delete_run(folder: Path) -> list[Path]:
    """Delete a run: what Evalwright wrote into its folder, and the folder if nothing else is in it.

    Returns:
        The files of others that are left.

    Raises:
        RunError: it cannot be deleted.
    """
    with failing_as(RunError, f"'{folder}' cannot be deleted"):
        # The record goes first: what is left of an interrupted deletion is no run.
        (folder / RUN_FILE).unlink(missing_ok=True)
        foreign_files = []
        for path in sorted(folder.iterdir()):
            if not _is_ours(path):
                foreign_files.append(path)
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not foreign_files:
            folder.rmdir()
    return foreign_files


_OUR_NAMES = frozenset((SAMPLES_FILE, "plan.json", "trackers.json", "images"))
_OUR_BEGINNINGS = (f".{SAMPLES_FILE}", f".{RUN_FILE}", "labelling-", "calibration-")


def _is_ours(path: Path) -> bool:
    """Whether Evalwright writes files or folders of that name into the folder of a run."""
    return path.name in _OUR_NAMES or path.name.startswith(_OUR_BEGINNINGS)
