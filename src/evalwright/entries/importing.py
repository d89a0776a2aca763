"""Takes runs that are there already as results of a board: imported ones, or made before it.

A result needs no entry: without one its model is on the board, and is never run again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.analysis.words import listed
from evalwright.core.errors import RunError
from evalwright.core.text import printable
from evalwright.entries.board_file import BoardFile
from evalwright.entries.entry_file import SUFFIX, Entry, wrong_file_name
from evalwright.entries.results import (
    SHORT_IDENTITY_CHARS,
    Result,
    check_results_folder,
    publish_result,
    read_results,
)
from evalwright.runs.reader import Run

MAX_NAME_CHARS = 80
MAX_NAMED_TASKS = 3


@dataclass(frozen=True, slots=True)
class ImportedResult:
    """A run that became a result of a board.

    Attributes:
        entry: the name of its folder in results/, which is that of the entry if there is one.
        label: what the board calls the model.
        folder: the result's folder.
        has_entry: whether there is an entry of that name, so that the model can be run again.
        was_there: whether it was a result already, and nothing was written.
    """

    entry: str
    label: str
    folder: Path
    has_entry: bool
    was_there: bool


def import_results(
    board: BoardFile, runs: Sequence[Run], entries: Sequence[Entry], name: str = ""
) -> list[ImportedResult]:
    """Write runs as results of a board.

    Args:
        board: the board.
        runs: the runs, with their samples, or as `export scores` writes them.
        entries: the board's entries.
        name: the name of the entry that all runs are results of; by default each run is one of the
            entry of its model and label, or of the name that its label gives.

    Raises:
        ConfigurationError: results cannot be written.
        RunError: a run has no task of the board's other results, or its numbers are not those of
            its samples; runs before it are results by then.
    """
    check_results_folder(board.results_folder)
    results = read_results(board.results_folder)
    _check_tasks(runs, results)
    entry_names = {entry.name for entry in entries}
    folder_by_hash = {result.run.samples_sha256: result for result in results}
    label_by_name = {result.entry: result.run.label for result in results}
    imported = []
    for run in runs:
        label = printable(run.label)
        present_result = folder_by_hash.get(run.samples_sha256)
        if present_result is not None:
            has_entry = present_result.entry in entry_names
            imported.append(
                ImportedResult(
                    present_result.entry,
                    label,
                    present_result.run.folder,
                    has_entry,
                    True,
                )
            )
            continue
        entry_name = name or _name_of(run, entries, label_by_name)
        label_by_name.setdefault(entry_name, run.label)
        identity = str(run.data.get("identity") or run.samples_sha256)
        folder = publish_result(run, entry_name, board.results_folder, identity)
        imported.append(
            ImportedResult(entry_name, label, folder, entry_name in entry_names, False)
        )
    return imported


def _check_tasks(runs: Sequence[Run], results: Sequence[Result]) -> None:
    """Raise RunError if a run could never be on one board with the results, or with the others."""
    all_runs = [*(result.run for result in results), *runs]
    expected = {task.name for task in all_runs[0].tasks} if all_runs else set()
    for run in runs:
        names = [task.name for task in run.tasks]
        if expected.isdisjoint(names):
            raise RunError(
                f"'{run.id}' has {_listed_tasks(names)}, and the board's results have"
                f" {_listed_tasks(sorted(expected))}: they cannot be on one board. Nothing was"
                " written."
            )


def _listed_tasks(names: Sequence[str]) -> str:
    quoted = [f"'{printable(name)}'" for name in names]
    return listed(quoted, MAX_NAMED_TASKS) or "no task"


def _name_of(run: Run, entries: Sequence[Entry], label_by_name: dict[str, str]) -> str:
    """Find the entry of a run's model and label, or make a name of its label."""
    models = (run.model, run.shown_model)
    for entry in entries:
        if entry.shown_name == run.label and entry.model in (*models, run.label):
            return entry.name
    words = re.sub(r"[^a-z0-9.]+", "-", run.label.lower())
    name = words[:MAX_NAME_CHARS].strip(".-")
    if wrong_file_name(f"{name}{SUFFIX}"):
        return f"model-{run.samples_sha256[:SHORT_IDENTITY_CHARS]}"
    if label_by_name.get(name, run.label) == run.label:
        return name
    n_name_chars = MAX_NAME_CHARS - SHORT_IDENTITY_CHARS - 1
    return (
        f"{name[:n_name_chars].strip('.-')}-{run.samples_sha256[:SHORT_IDENTITY_CHARS]}"
    )
