"""Runs the entries of a board that have no result of its present settings, and publishes them.

What decides is the identity of a run: the model's fingerprint, the judges, the tasks with their
prompts and data, limit and seed. Runs and answers stay in the home folder, so that an interrupted
command continues where it was; a result is published when its run is complete, or lacks no more
than the board accepts. What fails of one entry does not stop the others.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evalwright.core.errors import EvalwrightError, RunError, StoreError
from evalwright.core.private import home_folder, private_folder
from evalwright.entries.board_file import BoardFile
from evalwright.entries.checking import check_entries
from evalwright.entries.entry_file import Entry
from evalwright.entries.results import (
    SHORT_IDENTITY_CHARS,
    Result,
    check_results_folder,
    publish_result,
    read_results,
    update_description,
)
from evalwright.evaluation.changed_settings import describe_changes
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.planning import PlannedRun, is_same_evaluation, make_plan
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.reports.endings import unscored_sentences
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.published_record import published_task
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.safe_files import failing_as, replacing

RUNS_FOLDER = "runs"
SAMPLES_FOLDER = "samples"
ONLY_IN_RELEASES = ("release", "hub:")
"""Places for samples that a workflow's step uploads to, so that files are prepared for it."""

State = Literal["up to date", "described", "published", "failed"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """What became of an entry.

    Attributes:
        entry: its name.
        shown_name: what the board calls it.
        state: "up to date" if it had a result; "described" if only its label and facts changed.
        sentence: why it was run, or what failed and what to do.
        folder: the result's folder; None without one.
        dollars: what its answers cost, as recorded; None if that is not known.
    """

    entry: str
    shown_name: str
    state: State
    sentence: str
    folder: Path | None = None
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class EntriesRunner:
    """How entries are run.

    Attributes:
        board: the board, which `require_allowed` has let pass.
        home: the folder of the store, and of the runs.
        samples_into: where files of samples are prepared; None for no files.
        progress: hears how far a run is.
        say: hears what is done and why.
        round: of a round, everything is asked again; "" takes results of any round.
    """

    board: BoardFile
    home: str | None = None
    samples_into: Path | None = None
    progress: ProgressReporter | None = None
    say: Say = lambda sentence: None
    round: str = ""

    def run(
        self, entries: Sequence[Entry], budget: RemainingBudget
    ) -> list[EntryOutcome]:
        """Run the entries that have no result of the board's present settings.

        Args:
            entries: the entries, which are run in this order.
            budget: what they may spend together.

        Raises:
            ConfigurationError: results cannot be written; nothing was sent.
            StoreError: answers cannot be stored.
        """
        check_results_folder(self.board.results_folder)
        results = read_results(self.board.results_folder)
        outcomes = []
        for entry in entries:
            own_results = [result for result in results if result.entry == entry.name]
            try:
                outcome = self._run_entry(entry, own_results, budget)
            except StoreError:
                raise
            except EvalwrightError as error:
                outcome = EntryOutcome(
                    entry.name, entry.shown_name, "failed", str(error)
                )
            self.say(f"{entry.name}: {_summary(outcome)}")
            outcomes.append(outcome)
        return outcomes

    def _run_entry(
        self, entry: Entry, own_results: Sequence[Result], budget: RemainingBudget
    ) -> EntryOutcome:
        configuration = self.configuration(entry)
        planned_run = plan_entry(configuration)
        same_results = [
            result
            for result in own_results
            if is_of_present_settings(planned_run, result.run)
        ]
        if self.round:
            same_results = [
                result
                for result in same_results
                if result.run.data["configuration"].get("round") == self.round
            ]
        if same_results:
            return _keep(same_results[-1], own_results, entry)
        why = explain(planned_run, own_results)
        if self.round:
            why = f"its requests are sent again, in the round {self.round}"
        checked = check_entries(self.board, [entry])
        if checked.problems:
            sentence = "\n".join(map(str, checked.problems))
            return EntryOutcome(entry.name, entry.shown_name, "failed", sentence)
        if budget.is_spent:
            sentence = (
                f"The budget of {budget.text} was spent before this entry. Run the same"
                " command again."
            )
            return EntryOutcome(entry.name, entry.shown_name, "failed", sentence)
        self.say(f"{entry.name}: {why}")
        run = self.evaluate(configuration, planned_run, entry, budget)
        budget.subtract(run)
        if problem := why_incomplete(run):
            return EntryOutcome(
                entry.name, entry.shown_name, "failed", problem, dollars=run.cost
            )
        self._keep_samples(run, entry)
        for result in own_results:
            update_description(result, entry)
        folder = publish_result(
            run, entry.name, self.board.results_folder, planned_run.identity
        )
        return EntryOutcome(
            entry.name, entry.shown_name, "published", why, folder, run.cost
        )

    def configuration(self, entry: Entry) -> Configuration:
        """Return the evaluation of an entry, in the home folder and under the entry's name."""
        spec = replace(entry.model_spec(self.board), facts=dict(entry.facts))
        return replace(
            self.board.configuration([spec]),
            name=entry.name,
            out=str(home_folder(self.home) / RUNS_FOLDER),
            home=self.home,
            round=self.round,
        )

    def evaluate(
        self,
        configuration: Configuration,
        planned_run: PlannedRun,
        entry: Entry,
        budget: RemainingBudget,
    ) -> Run:
        """Evaluate one entry; its folder is named after the identity, so it can be resumed.

        A run that was completed there already, but not published, is not made again.
        """
        short_identity = planned_run.identity[:SHORT_IDENTITY_CHARS]
        name = f"{entry.name}--{short_identity}"
        finished_run = open_finished(Path(configuration.out) / name, planned_run)
        if finished_run is not None:
            return finished_run
        named = replace(configuration, name=name, budget=budget.as_settings())
        (run,) = run_blocking(
            lambda: evaluate_settings(Settings(named), progress=self.progress)
        )
        evaluated: Run = run
        return evaluated

    def _keep_samples(self, run: Run, entry: Entry) -> None:
        """Put the samples where the board keeps them, before the result that names their hash."""
        place = self.board.publish.samples
        if place.startswith("s3://"):
            from evalwright.runs.bucket_runs import push_run
            from evalwright.runs.buckets import parse_bucket_address

            push_run(run, parse_bucket_address(place), replace=True)
        folder = self.samples_into
        if folder is None and place.startswith(ONLY_IN_RELEASES):
            folder = home_folder(self.home) / SAMPLES_FOLDER
        if folder is not None:
            file = compress_samples(run, folder, entry.name)
            self.say(f"{entry.name}: samples in {file}")


def open_finished(folder: Path, planned_run: PlannedRun) -> Run | None:
    """Open a complete run of the planned settings; None if there is none."""
    if not (folder / RUN_FILE).is_file():
        return None
    try:
        run = open_run(folder)
    except RunError:
        return None
    is_same = is_same_evaluation(planned_run, run.data)
    asked_in = planned_run.configuration.get("round", "")
    is_same = is_same and run.data["configuration"].get("round", "") == asked_in
    return run if is_same and not why_incomplete(run) else None


def plan_entry(configuration: Configuration) -> PlannedRun:
    """Plan the run of one model; its model is opened, but nothing is sent.

    Raises:
        UsageError: the run cannot be made.
    """
    # Whatever has the name in the folder of runs, only the identity of the plan is used.
    settings = Settings(replace(configuration, replace=True))
    (planned_run,) = make_plan(resolve(settings)).runs
    return planned_run


def _keep(result: Result, own_results: Sequence[Result], entry: Entry) -> EntryOutcome:
    """Keep a result; an entry's present label and facts are those of all its results."""
    updates = [update_description(earlier, entry) for earlier in own_results]
    is_updated = any(updates)
    state: State = "described" if is_updated else "up to date"
    sentence = (
        "the label or the facts changed; the result is the same"
        if is_updated
        else "it has a result of these settings"
    )
    return EntryOutcome(
        entry.name, entry.shown_name, state, sentence, result.run.folder
    )


def is_of_present_settings(planned_run: PlannedRun, run: Run) -> bool:
    """Tell whether a result is of the settings of a planned run.

    A result whose answers were scored again by another judge is, if its model, answers' settings
    and judge are those of the plan.
    """
    if is_same_evaluation(planned_run, run.data):
        return True
    return "scored_from" in run.data and not _describe(planned_run, run)


def explain(planned_run: PlannedRun, own_results: Sequence[Result]) -> str:
    """Say why an entry is run.

    Args:
        planned_run: its run with the present settings.
        own_results: its results of other settings, the newest last.
    """
    if not own_results:
        return "it has no result yet"
    newest = own_results[-1].run
    changes = _describe(planned_run, newest)
    date = str(newest.data["started"])[:10]
    changed = "; ".join(changes) if changes else "another setting of the board"
    return f"its result of {date} is of other settings ({changed})"


def _describe(planned_run: PlannedRun, run: Run) -> list[str]:
    """Describe what differs between a planned run and a result, which has no texts of rows."""
    tasks = tuple(
        replace(
            task,
            definition=published_task({"definition": task.definition})["definition"],
        )
        for task in planned_run.tasks
    )
    return describe_changes(
        run.data,
        model=planned_run.model,
        roles=planned_run.roles,
        tasks=tasks,
        configuration=planned_run.configuration,
    )


def why_incomplete(run: Run) -> str:
    """Say why a run cannot be published yet, and what to do; "" if it can be."""
    stopping: Mapping[str, Any] = run.data.get("stopping") or {}
    if reached := stopping.get("budget_reached"):
        return (
            f"The budget of {reached} was spent before everything was answered. Run the"
            " same command again: stored answers cost nothing."
        )
    return unscored_sentences([run])


def compress_samples(run: Run, folder: Path, entry: str) -> Path:
    """Write a run's samples as `ENTRY--IDENTITY.jsonl.gz`: the same samples give the same bytes.

    Raises:
        RunError: they cannot be read or written.
    """
    identity = str(run.data["identity"])[:SHORT_IDENTITY_CHARS]
    file = folder / f"{entry}--{identity}.jsonl.gz"
    samples = run.samples_file
    with failing_as(RunError, f"'{file}' cannot be written"):
        private_folder(folder)
        with (
            replacing(file) as partial,
            samples.open("rb") as source,
            partial.open("wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target)
    return file


def _summary(outcome: EntryOutcome) -> str:
    """Return an outcome in a line."""
    first_line = outcome.sentence.split("\n")[0]
    if outcome.state != "published":
        return f"{outcome.state}: {first_line}"
    cost = "" if outcome.dollars is None else f", ${outcome.dollars:,.2f}"
    folder = os.path.relpath(outcome.folder) if outcome.folder else ""
    return f"published in {folder}{cost}"
