"""Runs the entries of a board that have no result of its present settings, and publishes them.

What decides is the identity of a run: the model's fingerprint, the judges, the tasks with their
prompts and data, limit and seed. Runs and answers stay in the home folder, so that an interrupted
command continues where it was; a result is published when its run is complete, or lacks no more
than the board accepts. What fails of one entry does not stop the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import EvalwrightError, RunError, StoreError
from evalwright.core.private import home_folder
from evalwright.entries.board_file import BoardFile
from evalwright.entries.checking import check_price, find_left_out
from evalwright.entries.entry_file import Entry
from evalwright.entries.judge_changes import (
    JudgeChange,
    UnjudgedAnswers,
    are_judged_by,
    describe_differences,
    find_unjudged,
    is_judge,
    is_of_present_settings,
)
from evalwright.entries.outcomes import EntryOutcome, State
from evalwright.entries.problems import Problem
from evalwright.entries.results import (
    SHORT_IDENTITY_CHARS,
    Result,
    check_results_folder,
    publish_result,
    read_results,
    update_description,
)
from evalwright.entries.sample_files import (
    RUNS_FOLDER,
    compress_samples,
    uploads_folder,
)
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.planning import PlannedRun, is_same_evaluation, make_plan
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.models.model_interface import Model
from evalwright.reports.endings import unscored_sentences
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE

LEFT_OUT = "The entry is left out"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EntriesRunner:
    """How entries are run.

    Attributes:
        board: the board, which `require_allowed` has let pass.
        home: the folder of the store, and of the runs.
        samples_into: where files of samples are prepared; None for the board's own place.
        progress: hears how far a run is.
        say: hears what is done and why.
        round: of a round, everything is asked again; "" takes results of any round.
        rejudge_dollars: what scoring old answers by a changed judge may cost, all together; None
            for `most_dollars` of the board.
    """

    board: BoardFile
    home: str | None = None
    samples_into: Path | None = None
    progress: ProgressReporter | None = None
    say: Say = lambda sentence: None
    round: str = ""
    rejudge_dollars: float | None = None

    def run(
        self,
        entries: Sequence[Entry],
        budget: RemainingBudget,
        present: Sequence[Entry] | None = None,
    ) -> list[EntryOutcome]:
        """Run the entries that have no result of the board's present settings.

        Answers that a changed judge has not scored are scored first. An entry that the board does
        not allow, or that imitates another one, is left out: it has failed, and the others go on.

        Args:
            entries: the entries, which are run in this order.
            budget: what they may spend together.
            present: all entries of the board, among which names are compared; without it, these.

        Raises:
            ConfigurationError: results cannot be written; nothing was sent.
            StoreError: answers cannot be stored.
        """
        check_results_folder(self.board.results_folder)
        results = read_results(self.board.results_folder)
        by_entry: dict[str, list[Result]] = {}
        for result in results:
            by_entry.setdefault(result.entry, []).append(result)
        outcomes = self._leave_out(entries, present or entries, by_entry)
        if not self.round:
            usable = [entry for entry in entries if entry.name not in outcomes]
            outcomes |= self._score_again(usable, by_entry, budget)
        for outcome in outcomes.values():
            self.say(f"{outcome.entry}: {_summary(outcome)}")
        for entry in entries:
            if entry.name in outcomes:
                continue
            try:
                own_results = by_entry.get(entry.name, [])
                outcome = self._run_entry(entry, own_results, budget)
            except StoreError:
                raise
            except EvalwrightError as error:
                outcome = _failed(entry, str(error))
            self.say(f"{entry.name}: {_summary(outcome)}")
            outcomes[entry.name] = outcome
        return [outcomes[entry.name] for entry in entries]

    def _leave_out(
        self,
        entries: Sequence[Entry],
        present: Sequence[Entry],
        by_entry: Mapping[str, Sequence[Result]],
    ) -> dict[str, EntryOutcome]:
        """Leave out what the board does not allow, before anything of it is opened.

        Of two entries that look alike, the one stays that the board shows under this name already.
        """
        settled_first = sorted(
            present,
            key=lambda entry: not _is_shown_as(entry, by_entry.get(entry.name, [])),
        )
        left_out = find_left_out(self.board, settled_first)
        outcomes: dict[str, EntryOutcome] = {}
        for entry in entries:
            if problems := left_out.get(entry.name):
                outcomes[entry.name] = _failed(entry, left_out_sentence(problems))
        return outcomes

    def _score_again(
        self,
        entries: Sequence[Entry],
        by_entry: Mapping[str, Sequence[Result]],
        budget: RemainingBudget,
    ) -> dict[str, EntryOutcome]:
        """Have the answers scored that only lack verdicts of the board's judge."""
        unjudged: list[UnjudgedAnswers] = []
        roles: Mapping[str, Model] = {}
        for entry in entries:
            own_results = by_entry.get(entry.name)
            if not own_results or not any(map(is_judge, self.board.suite.roles)):
                continue
            if roles and are_judged_by(roles, self.board.suite.panel, own_results):
                continue
            try:
                planned_run = plan_entry(self.configuration(entry))
            except StoreError:
                raise
            except EvalwrightError:
                continue  # it is said when the entry's turn comes
            roles = planned_run.roles
            if unjudged_answers := find_unjudged(planned_run, entry, own_results):
                unjudged += unjudged_answers
                for result in own_results:
                    update_description(result, entry)
        if not unjudged:
            return {}
        limit = self.rejudge_dollars
        change = JudgeChange(
            board=self.board,
            most_dollars=self.board.entries.most_dollars if limit is None else limit,
            home=self.home,
            samples_into=self.samples_into,
            say=self.say,
        )
        return {outcome.entry: outcome for outcome in change.score(unjudged, budget)}

    def _run_entry(
        self,
        entry: Entry,
        own_results: Sequence[Result],
        budget: RemainingBudget,
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
        reason = explain(planned_run, own_results)
        if self.round:
            reason = f"its requests are sent again, in the round {self.round}"
        if problems := check_price(self.board, entry):
            return _failed(entry, left_out_sentence(problems))
        if budget.is_spent:
            return _failed(
                entry,
                f"The budget of {budget.text} was spent before this entry. Run the same"
                " command again.",
            )
        self.say(f"{entry.name}: {reason}")
        run = self.evaluate(configuration, planned_run, entry, budget)
        budget.subtract(run)
        if problem := why_incomplete(run):
            return replace(_failed(entry, problem), dollars=run.cost)
        self._keep_samples(run, entry)
        for result in own_results:
            update_description(result, entry)
        folder = publish_result(
            run, entry.name, self.board.results_folder, planned_run.identity
        )
        return EntryOutcome(
            entry.name, entry.shown_name, "published", reason, folder, run.cost
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
        named_configuration = replace(
            configuration, name=name, budget=budget.as_settings()
        )
        (run,) = run_blocking(
            lambda: evaluate_settings(
                Settings(named_configuration), progress=self.progress
            )
        )
        evaluated: Run = run
        return evaluated

    def _keep_samples(self, run: Run, entry: Entry) -> None:
        """Put the samples where the board keeps them, before the result that names their hash."""
        destination = self.board.publish.samples
        if destination.startswith("s3://"):
            from evalwright.runs.bucket_runs import push_run
            from evalwright.runs.buckets import parse_bucket_address

            push_run(run, parse_bucket_address(destination), replace=True)
        folder = uploads_folder(self.board, self.home, self.samples_into)
        if folder is not None:
            short_identity = str(run.data["identity"])[:SHORT_IDENTITY_CHARS]
            name = f"{entry.name}--{short_identity}"
            self.say(f"{entry.name}: samples in {compress_samples(run, folder, name)}")


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


def _failed(entry: Entry, sentence: str) -> EntryOutcome:
    return EntryOutcome(entry.name, entry.shown_name, "failed", sentence)


def left_out_sentence(problems: Sequence[Problem]) -> str:
    """Say why an entry is left out, which stops no other."""
    lines = [
        f"{LEFT_OUT}; the others go on. What the board has of it stays.",
        *map(str, problems),
    ]
    return "\n".join(lines)


def _is_shown_as(entry: Entry, own_results: Sequence[Result]) -> bool:
    """Tell whether a result of an entry has the entry's present model and label."""
    return any(
        (result.run.model, str(result.run.data["model"].get("label") or ""))
        == (entry.model, entry.label)
        for result in own_results
    )


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


def explain(planned_run: PlannedRun, own_results: Sequence[Result]) -> str:
    """Say why an entry is run.

    Args:
        planned_run: its run with the present settings.
        own_results: its results of other settings, the newest last.
    """
    if not own_results:
        return "it has no result yet"
    newest = own_results[-1].run
    changes = describe_differences(planned_run, newest)
    date = str(newest.data["started"])[:10]
    difference = "; ".join(changes) if changes else "another setting of the board"
    return f"its result of {date} is of other settings ({difference})"


def why_incomplete(run: Run) -> str:
    """Say why a run cannot be published yet, and what to do; "" if it can be."""
    stopping: Mapping[str, Any] = run.data.get("stopping") or {}
    if reached := stopping.get("budget_reached"):
        return (
            f"The budget of {reached} was spent before everything was answered. Run the"
            " same command again: stored answers cost nothing."
        )
    return unscored_sentences([run])


def _summary(outcome: EntryOutcome) -> str:
    """Return an outcome in a line."""
    if outcome.state not in ("published", "scored again"):
        lines = outcome.sentence.split("\n")
        is_left_out = lines[0].startswith(LEFT_OUT)
        return f"{outcome.state}: {' '.join(lines[:2]) if is_left_out else lines[0]}"
    cost = "" if outcome.dollars is None else f", ${outcome.dollars:,.2f}"
    folder = os.path.relpath(outcome.folder) if outcome.folder else ""
    return f"{outcome.state} in {folder}{cost}"
