"""The results of a board: `results/NAME/RUN/`, a run without its samples, for each entry.

An entry may have several: of other dates, or of other settings of the board. The newest is the
one that the board shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.analysis.model_series import ModelSeries, series_of
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.entries.entry_file import Entry
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.confirmed import confirm
from evalwright.runs.published_scores import publish_scores
from evalwright.runs.reader import Run, list_runs
from evalwright.runs.writer import RUN_FILE, to_json
from evalwright.tasks.safe_files import failing_as, place_of, read_json, write_file

SHORT_IDENTITY_CHARS = 8
"""Characters of a run's identity in the name of its folder: enough for the runs of one entry."""

_HEXADECIMAL = re.compile(r"[0-9a-f]{8,128}")


@dataclass(frozen=True, slots=True)
class Result:
    """A published result of an entry.

    Attributes:
        entry: the entry's name, which is that of the folder.
        run: the run, without samples.
    """

    entry: str
    run: Run


def read_results(folder: Path) -> list[Result]:
    """Read all results of a board, those of each entry from the oldest to the newest.

    Args:
        folder: the folder of results; a missing one has none.

    Raises:
        RunError: a record cannot be read; a board without it would be another board.
    """
    results: list[Result] = []
    if not folder.is_dir():
        return results
    for entry_folder in sorted(folder.iterdir()):
        if not entry_folder.is_dir() or entry_folder.is_symlink():
            continue
        damaged: dict[Path, str] = {}
        runs = list_runs(entry_folder, damaged)
        if damaged:
            raise RunError(
                f"{next(iter(damaged.values()))} It is a result of the board: restore it"
                " from git, or remove its folder."
            )
        results += [Result(entry_folder.name, run) for run in runs]
    return results


def shown_series(results: Sequence[Result]) -> dict[str, ModelSeries]:
    """Return, by entry, the results that the board shows: the newest, and its history.

    An entry whose file came to name another model or label has results that are not of one series;
    the one with the newest answers is shown.

    Args:
        results: all results of the board.
    """
    runs_by_entry: dict[str, list[Run]] = {}
    for result in results:
        runs_by_entry.setdefault(result.entry, []).append(result.run)
    return {
        name: max(series_of(runs), key=lambda series: series.answers[-1].answered)
        for name, runs in sorted(runs_by_entry.items())
    }


def shown_runs(results: Sequence[Result]) -> list[Run]:
    """Return the runs of a board, by entry: those that it shows, and their history."""
    return [
        run
        for series in shown_series(results).values()
        for dated in series.answers
        for run in dated.runs
    ]


def check_results_folder(folder: Path) -> None:
    """Raise ConfigurationError if results could not be written, before anything is paid for."""
    with failing_as(
        ConfigurationError,
        f"Results cannot be written to '{folder}', so nothing was sent",
    ):
        target = place_of(folder)
        target.mkdir(parents=True, exist_ok=True)
        probe = target / ".writable"
        probe.write_bytes(b"")
        probe.unlink()


def publish_result(run: Run, entry: str, folder: Path, identity: str) -> Path:
    """Write a finished run as a result of an entry, and return its folder.

    A result of the same settings is replaced, and keeps its folder.

    Args:
        run: the run with its samples.
        entry: the entry's name.
        folder: the folder of results.
        identity: the identity of the run.

    Raises:
        RunError: the samples do not give the run's numbers, or the result cannot be written.
    """
    confirmed = confirm(run)
    short_identity = _short_identity(identity)
    date = str(run.data["started"])[:10]
    target = folder / entry / f"{date}-{short_identity}"
    for earlier in list_runs(folder / entry):
        if earlier.data.get("identity") == identity:
            target = earlier.folder
    publish_scores(confirmed, target)
    return target


def _short_identity(identity: str) -> str:
    """Return the end of a result's folder: a record of another person may have any identity."""
    if not _HEXADECIMAL.fullmatch(identity):
        identity = fingerprint_of({"identity": identity})
    return identity[:SHORT_IDENTITY_CHARS]


def update_description(result: Result, entry: Entry) -> bool:
    """Write an entry's present label and facts into its result; nothing else changes.

    Returns:
        Whether something was different.

    Raises:
        RunError: the record cannot be read or written.
    """
    file = result.run.folder / RUN_FILE
    record: dict[str, Any] = read_json(file, RunError, str(file))
    text_before = json.dumps(record, sort_keys=True)
    model_records = [record["model"], *record["configuration"].get("models", ())]
    for model_record in model_records:
        for key, setting in (("label", entry.label), ("facts", dict(entry.facts))):
            model_record.pop(key, None)
            if setting:
                model_record[key] = setting
    if json.dumps(record, sort_keys=True) == text_before:
        return False
    with failing_as(RunError, f"'{file}' cannot be written"):
        write_file(file, to_json(record, indent=2) + "\n")
    return True
