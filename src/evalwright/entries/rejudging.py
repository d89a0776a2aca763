"""The results of a board, scored again by another judge: whose answers, where their texts are.

A board keeps results without samples, and a judge needs the texts. They are in the runs of the home
folder, or in the bucket that the board's samples are pushed to; a result whose samples are nowhere
is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.analysis.model_series import DatedAnswers, series_of, source_of
from evalwright.core.errors import (
    ConfigurationError,
    RunError,
    UnknownName,
    known_names,
)
from evalwright.core.text import printable
from evalwright.entries.board_file import BoardFile
from evalwright.runs.bucket_runs import pull_run, push_run
from evalwright.runs.buckets import BucketError, parse_bucket_address
from evalwright.runs.confirmed import confirm
from evalwright.runs.published_scores import publish_scores
from evalwright.runs.reader import Run, list_runs, open_run
from evalwright.runs.writer import RUN_FILE, slug, to_json
from evalwright.tasks.safe_files import failing_as, read_json, write_file

BUCKET = "s3://"
SHORT_HASH_CHARS = 8
"""Characters of the samples' hash in the name of a result's folder."""


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """A result of a board whose answers a judge scored.

    Attributes:
        entry: the entry's name.
        published: the result, without samples.
    """

    entry: str
    published: Run

    @property
    def shown_name(self) -> str:
        """What messages call it."""
        return f"{printable(self.entry)}/{self.published.name}"


def judged_results(board: BoardFile, names: Sequence[str]) -> list[JudgedResult]:
    """List the results of a board whose answers can be scored again, each answer once.

    Args:
        board: the board.
        names: of entries; without any, all.

    Raises:
        UnknownName: there is no result of such an entry.
        RunError: a result cannot be read.
    """
    folder = board.results_folder
    folders = sorted(folder.iterdir()) if folder.is_dir() else []
    by_entry = {
        entry_folder.name: entry_folder
        for entry_folder in folders
        if entry_folder.is_dir() and not entry_folder.is_symlink()
    }
    for name in names:
        if name not in by_entry:
            known_entries = [*by_entry]
            raise UnknownName(
                "entry with a result",
                name,
                known_entries,
                known_names(name, known_entries),
            )
    results: list[JudgedResult] = []
    for entry, entry_folder in by_entry.items():
        if names and entry not in names:
            continue
        damaged: dict[Path, str] = {}
        runs = list_runs(entry_folder, damaged)
        if damaged:
            raise RunError(
                f"{next(iter(damaged.values()))} It is a result of the board: restore it"
                " from git, or remove its folder."
            )
        results += [
            JudgedResult(entry, run_that_answered(dated))
            for series in series_of(runs)
            for dated in series.answers
        ]
    if not results:
        raise ConfigurationError(
            f"'{folder}' has no results yet: `evalwright entries run` makes them."
        )
    return results


def run_that_answered(dated: DatedAnswers) -> Run:
    """Return the result whose run gave the answers, whatever the clocks of two machines say."""
    answering = [run for run in dated.runs if not source_of(run)]
    return answering[0] if answering else dated.runs[0]


class SamplesFinder:
    """Finds the samples of results: in a folder of runs, else in the board's bucket."""

    def __init__(self, board: BoardFile, runs_folder: Path) -> None:
        self._place = board.publish.samples
        self._runs_folder = runs_folder
        self._by_hash = {
            str(run.data["samples"].get("sha256")): run
            for run in list_runs(runs_folder if runs_folder.is_dir() else None)
            if not run.has_published_scores
        }

    def find(self, result: JudgedResult) -> Run:
        """Return the run with the samples of a result.

        Raises:
            RunError: they are nowhere; the message says where they were looked for.
        """
        samples_hash = str(result.published.data["samples"].get("sha256"))
        if samples_hash in self._by_hash:
            return self._by_hash[samples_hash]
        looked_in = [f"'{self._runs_folder}'"]
        if self._place.startswith(BUCKET):
            looked_in.append(self._place)
            run = self._pull(result.published.id)
            if run is not None and run.data["samples"].get("sha256") == samples_hash:
                return run
        advice = "bring the run back there"
        if not self._place.startswith(BUCKET):
            advice = "run the entry again, or bring its run back there"
        raise RunError(
            f"{result.shown_name}: its samples are not in {' nor in '.join(looked_in)}, and"
            f" a judge needs the answers: {advice}."
        )

    def _pull(self, name: str) -> Run | None:
        address = parse_bucket_address(self._place).child(name)
        try:
            return open_run(pull_run(address, self._runs_folder).folder)
        except UnknownName:
            return None
        except BucketError as error:
            raise RunError(f"{address}: {error}") from error


def new_run_name(judges: Sequence[str]) -> str:
    """Return how runs that these judges scored again are named, with {} for the old run."""
    return f"{{}}--{slug('+'.join(name.rpartition('/')[2] for name in judges))}"


def publish_rejudged(board: BoardFile, result: JudgedResult, rescored: Run) -> Path:
    """Write a run that was scored again as a result of its entry, beside the old one.

    Its samples go to the board's bucket, if that is where samples go.

    Args:
        board: the board.
        result: the result whose answers were scored.
        rescored: the new run.

    Returns:
        The new result's folder.

    Raises:
        RunError: it cannot be written, or its samples do not give its numbers.
        BucketError: the bucket cannot be written.
    """
    if board.publish.samples.startswith(BUCKET):
        address = parse_bucket_address(board.publish.samples)
        push_run(rescored, address, replace=True)
    date = str(rescored.data["started"])[:10]
    short_hash = rescored.samples_sha256[:SHORT_HASH_CHARS]
    target = board.results_folder / result.entry / f"{date}-{short_hash}"
    publish_scores(confirm(rescored), target)
    _describe(target / RUN_FILE, result.published.data["model"])
    return target


def _describe(file: Path, earlier_record: dict[str, Any]) -> None:
    """Give a result the label and facts of the one before, which the board may have changed."""
    record: dict[str, Any] = read_json(file, RunError, str(file))
    for model_record in (record["model"], *record["configuration"].get("models", ())):
        for key in ("label", "facts"):
            model_record.pop(key, None)
            if earlier_record.get(key):
                model_record[key] = earlier_record[key]
    with failing_as(RunError, f"'{file}' cannot be written"):
        write_file(file, to_json(record, indent=2) + "\n")
