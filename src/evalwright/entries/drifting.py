"""Asks a board's fixed sample again, of every model behind an API and of the judge.

Each round is written as a line of `drift/NAME.jsonl` (`analysis.drift_record`), which goes into
git; the runs themselves stay in the home folder, so that an interrupted round goes on where it
was. A repeat is a round of its own to the store, so that temperature 0 is repeated, too.

The judge scores the same answers every time: those of the entry whose score was in the middle
when they were chosen. Where they are lost with the home folder, others are chosen, and the
judge's test begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evalwright.analysis.drift import ItemsOfRound, judge_of, read_items, unit_is_share
from evalwright.analysis.drift_record import (
    JUDGE_FILE,
    Followed,
    RecordedRound,
    RecordedTask,
    follow,
    read_record,
    with_round,
    write_record,
)
from evalwright.core.errors import EvalwrightError, RunError, StoreError
from evalwright.core.private import home_folder
from evalwright.entries.board_file import DRIFT_FOLDER, BoardFile
from evalwright.entries.entry_file import Entry
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.planning import PlannedRun, make_plan
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.rescoring import score_run
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.models.model_interface import Model, RemoteModel, fingerprint_of
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE

JUDGE = Path(JUDGE_FILE).stem
ALL_TASKS = "all tasks"
ROUND_FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}

ItemColumns = tuple[dict[str, list[float]], dict[str, list[int | None]]]
"""Scores and digests of texts of each repeat, by item."""
State = Literal["asked", "missing", "failed"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """What became of a model, or of the judge, in a round.

    Attributes:
        name: the entry's name, or that of the judge's file.
        label: what the board calls it.
        state: "missing" if answers or scores are missing; "failed" if nothing could be asked.
        sentence: what is missing and why; "" if nothing is.
        followed: what its rounds say; None without any.
    """

    name: str
    label: str
    state: State
    sentence: str
    followed: Followed | None

    @property
    def is_alarm(self) -> bool:
        """Whether the newest round gave an alarm."""
        followed = self.followed
        return followed is not None and any(
            change.alarm == followed.newest for change in followed.changes
        )


def name_round(every: str, today: datetime | None = None) -> str:
    """Name the round of a day: its ISO week ("2026-W49"), the day or the month."""
    return (today or datetime.now(UTC)).strftime(ROUND_FORMATS[every])


@dataclass(slots=True)
class DriftWatch:
    """A round of a board.

    Attributes:
        board: the board, which `require_allowed` has let pass.
        round: the round's name.
        home: the folder of the store, and of the runs.
        progress: hears how far a run is.
        say: hears what is done.
    """

    board: BoardFile
    round: str
    home: str | None = None
    progress: ProgressReporter | None = None
    say: Say = lambda sentence: None
    _runs: dict[str, tuple[Entry, list[Run]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the files of rounds are."""
        return self.board.drift_folder

    def watch(self, entries: Sequence[Entry]) -> list[Watched]:
        """Ask every model behind an API, then the judge, and test their rounds.

        Args:
            entries: the board's entries; those of local models are left out.

        Raises:
            RunError: a file of rounds cannot be read or written.
            StoreError: answers cannot be stored.
        """
        budget = RemainingBudget.parse(
            [self.board.drift.budget] if self.board.drift.budget else []
        )
        outcomes: list[Watched] = []
        plans: list[tuple[Entry, PlannedRun]] = []
        records: dict[str, list[RecordedRound]] = {}
        problems: dict[str, tuple[Entry, State, str]] = {}
        for entry in entries:
            try:
                planned_run = self._plan(self._configuration(entry))
            except EvalwrightError as error:
                problems[entry.name] = entry, "failed", str(error)
                records[entry.name] = read_record(self._file(entry.name))
                continue
            if is_behind_api(planned_run.model):
                plans.append((entry, planned_run))
        has_judge = any(
            is_behind_api(judge) for _, plan in plans for judge in plan.roles.values()
        )
        n_shares = len(plans) + has_judge
        for model_index, (entry, planned_run) in enumerate(plans):
            share = budget.divided(n_shares - model_index)
            state, sentence = self._ask(entry, planned_run, share, budget)
            problems[entry.name] = entry, state, sentence
            records[entry.name] = read_record(self._file(entry.name))
        judge_problem: tuple[State, str] = "asked", ""
        if has_judge:
            judge_problem = self._ask_judge()
            records[JUDGE] = read_record(self._file(JUDGE))
        n_subjects = sum(bool(rounds) for rounds in records.values())
        followed = {
            name: follow(rounds, n_subjects)
            for name, rounds in records.items()
            if rounds
        }
        for name, (entry, state, sentence) in problems.items():
            outcomes.append(
                Watched(name, entry.shown_name, state, sentence, followed.get(name))
            )
        if has_judge:
            judge = followed.get(JUDGE)
            label = judge.label if judge else "the judge"
            outcomes.append(Watched(JUDGE, label, *judge_problem, judge))
        return outcomes

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    @property
    def _runs_folder(self) -> Path:
        return home_folder(self.home) / DRIFT_FOLDER

    def _configuration(self, entry: Entry, repeat: int = 1) -> Configuration:
        return replace(
            self.board.configuration([entry.model_spec(self.board)]),
            name=entry.name,
            round=self.round if repeat == 1 else f"{self.round}.{repeat}",
            limit=self.board.drift.items,
            out=str(self._runs_folder),
            home=self.home,
            replace=True,
        )

    def _plan(self, configuration: Configuration) -> PlannedRun:
        (planned_run,) = make_plan(resolve(Settings(configuration))).runs
        return planned_run

    def _ask(
        self,
        entry: Entry,
        planned_run: PlannedRun,
        share: RemainingBudget,
        budget: RemainingBudget,
    ) -> tuple[State, str]:
        """Ask an entry's model, as often as the board says, and write the round's line.

        Args:
            entry: the entry.
            planned_run: its run of the whole sample; says how many tasks there are.
            share: what it may spend.
            budget: the round's budget, from which that is subtracted.
        """
        self.say(f"{entry.name}: round {self.round}")
        limit = max(1, math.ceil(self.board.drift.items / len(planned_run.tasks)))
        runs = []
        try:
            for repeat in range(1, self.board.drift.repeats + 1):
                if share.is_spent:
                    break
                configuration = replace(
                    self._configuration(entry, repeat),
                    limit=limit,
                    budget=share.as_settings(),
                )
                run = self._evaluate(configuration)
                share.subtract(run)
                budget.subtract(run)
                runs.append(run)
        except StoreError:
            raise
        except EvalwrightError as error:
            return "failed", str(error)
        if not runs:
            return (
                "missing",
                f"The budget of {budget.text} was spent before this model.",
            )
        record = RecordedRound(
            round=self.round,
            date=str(runs[0].data["started"])[:10],
            label=entry.shown_name,
            settings=self._settings(planned_run, limit),
            tasks=record_tasks(runs),
        )
        self._runs[entry.name] = entry, runs
        return self._write(entry.name, record, len(runs) < self.board.drift.repeats)

    def _evaluate(self, configuration: Configuration) -> Run:
        (run,) = run_blocking(
            lambda: evaluate_settings(Settings(configuration), progress=self.progress)
        )
        evaluated: Run = run
        return evaluated

    def _settings(self, planned_run: PlannedRun, limit: int) -> str:
        """Compute a digest of what decides the scores besides the model itself."""
        return fingerprint_of(
            {
                "model": planned_run.model.fingerprint,
                "roles": {
                    role: judge.fingerprint for role, judge in planned_run.roles.items()
                },
                "tasks": [[task.name, task.definition] for task in planned_run.tasks],
                "limit": limit,
                "seed": planned_run.configuration.get("seed", 0),
            }
        )

    def _write(
        self, name: str, record: RecordedRound, is_short: bool
    ) -> tuple[State, str]:
        """Write a round's line, unless it has no score at all."""
        n_missing = n_all = 0
        for task in record.tasks.values():
            for repeats in task.scores.values():
                n_all += len(repeats)
                n_missing += sum(map(math.isnan, repeats))
        if n_missing == n_all:
            return (
                "missing",
                "Nothing was answered and scored; the round is not counted. Run the same"
                " command again.",
            )
        file = self._file(name)
        write_record(file, with_round(read_record(file), record))
        if n_missing:
            share = f"{n_missing:,} of {n_all:,}"
            return "missing", f"{share} scores are missing; they are left out."
        if is_short:
            return "missing", "The budget was spent before the last repeat."
        return "asked", ""

    def _ask_judge(self) -> tuple[State, str]:
        """Have the fixed answers scored again, and write the round's line."""
        rounds = read_record(self._file(JUDGE))
        answers = self._kept_answers(rounds) or self._choose_answers()
        if answers is None:
            return "missing", "There are no answers that the judge could score."
        self.say(f"judge: round {self.round}")
        try:
            runs = [
                score_run(
                    answers,
                    name=f"{JUDGE}-{answers.id}",
                    out=self._runs_folder,
                    home=self.home,
                    roles=dict(self.board.suite.roles),
                    asked_in=(self.round if repeat == 1 else f"{self.round}.{repeat}"),
                )
                for repeat in range(1, self.board.drift.repeats + 1)
            ]
        except StoreError:
            raise
        except EvalwrightError as error:
            return "failed", str(error)
        record = RecordedRound(
            round=self.round,
            date=str(runs[0].data["started"])[:10],
            label=judge_of(runs[0]),
            settings=fingerprint_of(
                {
                    "roles": {
                        role: role_record["fingerprint"]
                        for role, role_record in runs[0].data["roles"].items()
                    },
                    "scorers": [task["scorers"] for task in runs[0].data["tasks"]],
                }
            ),
            tasks=record_tasks(runs, of_judge=True),
            answers=answers.samples_sha256,
        )
        return self._write(JUDGE, record, is_short=False)

    def _kept_answers(self, rounds: Sequence[RecordedRound]) -> Run | None:
        """Find the run whose answers the judge scored last, if it is still there."""
        if not rounds:
            return None
        for record in sorted(self._runs_folder.glob(f"*/{RUN_FILE}")):
            try:
                run = open_run(record.parent)
                is_same = run.samples_sha256 == rounds[-1].answers
            except RunError:
                continue
            if is_same and "scored_from" not in run.data:
                return run
        return None

    def _choose_answers(self) -> Run | None:
        """Choose the complete run of this round whose score is in the middle."""
        candidates = []
        for _, runs in self._runs.values():
            run = runs[0]
            scores = [
                task.metrics[0].estimate.value for task in run.tasks if task.metrics
            ]
            if scores and not any(map(math.isnan, scores)):
                candidates.append((float(np.mean(scores)), run.id, run))
        candidates.sort(key=lambda candidate: candidate[:2])
        return candidates[len(candidates) // 2][2] if candidates else None


def is_behind_api(model: Model) -> bool:
    """Tell whether a model may change without the board's doing."""
    return isinstance(model, RemoteModel) and not model.name.startswith("demo/")


def record_tasks(
    repeats: Sequence[Run], *, of_judge: bool = False
) -> dict[str, RecordedTask]:
    """Put the repeats of a round together; tasks with scores from 0 to 1 are tested as one.

    A judge has its own test by task no more than a model: what changed is in the runs.
    """
    shares: dict[str, tuple[str, ItemColumns]] = {}
    unbounded: dict[str, tuple[str, ItemColumns]] = {}
    for task in repeats[0].tasks:
        if not task.metrics:
            continue
        items_by_repeat = [
            read_items(run, repeats[0], task, of_judge=of_judge) for run in repeats
        ]
        (shares if unit_is_share(task) else unbounded)[task.name] = (
            task.metrics[0].label,
            _join_repeats(items_by_repeat),
        )
    tasks = {
        name: RecordedTask(metric, False, scores, texts)
        for name, (metric, (scores, texts)) in unbounded.items()
    }
    if len(shares) == 1:
        ((name, (metric, (scores, texts))),) = shares.items()
        tasks[name] = RecordedTask(metric, True, scores, texts)
    elif shares:
        tasks[ALL_TASKS] = RecordedTask(
            "score",
            True,
            dict(_of_all(shares, 0)),
            dict(_of_all(shares, 1)),
        )
    return tasks


def _join_repeats(
    repeats: Sequence[ItemsOfRound],
) -> ItemColumns:
    """Put repeats side by side, as many of each item as there can be."""
    scores: dict[str, list[float]] = {}
    texts: dict[str, list[int | None]] = {}
    keys = sorted(set().union(*(repeat.scores for repeat in repeats)))
    for key in keys:
        n_draws = max(len(repeat.scores.get(key, ())) for repeat in repeats)
        scores[key] = []
        texts[key] = []
        for repeat in repeats:
            repeat_scores = list(repeat.scores.get(key, ()))
            drawn_texts = list(repeat.texts.get(key, ()))
            n_lacking = n_draws - len(repeat_scores)
            scores[key] += [*repeat_scores, *([math.nan] * n_lacking)]
            texts[key] += [*drawn_texts, *([None] * n_lacking)]
    return scores, texts


def _of_all(
    tasks: Mapping[str, tuple[str, ItemColumns]], column_index: int
) -> Iterator[tuple[str, Any]]:
    """Yield the items of all tasks, under names that no two tasks share."""
    for name, (_, columns) in sorted(tasks.items()):
        for key, repeats in columns[column_index].items():
            task_digest = fingerprint_of({"task": name})[:4]
            yield f"{task_digest}{key}", repeats
