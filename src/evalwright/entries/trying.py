"""Tries an entry before it is merged: the board's cases, some of its samples, within a budget.

The samples are the first of the board's own order, so that the answers are used again by the whole
run if nothing changes until then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evalwright.core.private import home_folder
from evalwright.core.samples import SampleRecord
from evalwright.entries.board_file import BoardFile
from evalwright.entries.checking import check_entries
from evalwright.entries.entry_file import Entry
from evalwright.entries.pricing import RunPrice
from evalwright.entries.problems import WrongFiles
from evalwright.entries.results import SHORT_IDENTITY_CHARS
from evalwright.entries.running import (
    EntriesRunner,
    open_finished,
    plan_entry,
    why_incomplete,
)
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.planning import PlannedRun
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.smoke import (
    LONGEST,
    OUTCOME,
    CaseResult,
    SmokeTask,
    judge_case,
)
from evalwright.models.registry import open_model
from evalwright.runs.callbacks import Callback, Callbacks
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run

TRIALS_FOLDER = "trials"
CASES_TASK = "test-cases"
PROVISIONAL = "provisional"
"""What the label of a tried entry has behind it, on the preview of the board."""


@dataclass(frozen=True, slots=True)
class TriedSample:
    """A sample of the board that is shown whole.

    Attributes:
        task: the task's name.
        id: the sample's id.
        question: its input.
        answer: the model's answer; "" without one.
        verdict: its scores in words, or why there is none.
    """

    task: str
    id: str
    question: str
    answer: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial of an entry showed.

    Attributes:
        entry: the entry.
        run: its answers to some samples.
        n_board_samples: number of samples of a whole run.
        price: what the whole run costs.
        cases: the outcomes of the test cases; none where the board's tasks cannot send them.
        samples: samples that are shown in their place.
        labels: how many answers got each label of the scorers that tell refusals from answers.
        n_unsent_cases: cases for which the budget did not suffice.
        dollars: what the trial cost; None if that is not known.
        incomplete: why answers are missing; "" if none is.
    """

    entry: Entry
    run: Run
    n_board_samples: int
    price: RunPrice
    cases: tuple[CaseResult, ...]
    samples: tuple[TriedSample, ...]
    labels: Counter[str]
    n_unsent_cases: int
    dollars: float | None
    incomplete: str


@dataclass(slots=True)
class _RecordCollector(Callback):
    """Keeps the records of a small run, with the samples as the task has them."""

    records: list[SampleRecord] = field(default_factory=list)

    def sample_finished(self, run_id: str, record: SampleRecord) -> None:
        """Keep a record."""
        self.records.append(record)


def try_entry(
    board: BoardFile,
    entry: Entry,
    *,
    present: Sequence[Entry] = (),
    home: str | None = None,
    progress: ProgressReporter | None = None,
) -> Trial:
    """Ask a model the board's cases and some samples, within the budget of trials.

    Args:
        board: the board, which `require_allowed` has let pass.
        entry: the entry, which need not be in the board's folder.
        present: the board's entries, for names that look like others.
        home: the folder of the store.
        progress: hears how far it is.

    Raises:
        WrongFiles: the board does not allow the entry; nothing was sent.
        UsageError: the model cannot be asked.
    """
    checked = check_entries(board, [entry], present)
    if checked.problems:
        raise WrongFiles(checked.problems)
    budget = RemainingBudget.parse([board.trial.budget])
    runner = EntriesRunner(board=board, home=home, progress=progress)
    configuration = replace(
        runner.configuration(entry),
        out=str(home_folder(home) / TRIALS_FOLDER),
        until=(),
        accept_failures="",
    )
    whole_run = plan_entry(configuration)
    cases: list[CaseResult] = []
    n_unsent_cases = 0
    cost_of_cases: float | None = 0.0
    if can_send_cases(whole_run):
        cases, cases_run = _ask_cases(board, configuration, budget, progress)
        cost_of_cases = cases_run.cost
        n_unsent_cases = board_cases(board) - len(cases)
    trial_configuration = _as_trial(board, configuration, whole_run)
    run, records = _ask_samples(trial_configuration, budget, progress)
    shown_records = [] if can_send_cases(whole_run) else records[: board.trial.cases]
    costs = [cost_of_cases, run.cost]
    return Trial(
        entry=entry,
        run=run,
        n_board_samples=sum(len(order.items) for order in whole_run.orders),
        price=checked.prices[entry.name],
        cases=tuple(cases),
        samples=tuple(map(_as_shown, shown_records)),
        labels=_count_labels(whole_run, records),
        n_unsent_cases=n_unsent_cases,
        dollars=None
        if None in costs
        else math.fsum(cost for cost in costs if cost is not None),
        incomplete=why_incomplete(run),
    )


def board_cases(board: BoardFile) -> int:
    """Return how many of the three test cases a board sends."""
    return min(board.trial.cases, 3)


def can_send_cases(whole_run: PlannedRun) -> bool:
    """Tell whether a task of the board tells answers from refusals, as the cases need."""
    return any(
        scorer.kind == OUTCOME for task in whole_run.tasks for scorer in task.scorers
    )


def _ask_cases(
    board: BoardFile,
    configuration: Configuration,
    budget: RemainingBudget,
    progress: ProgressReporter | None,
) -> tuple[list[CaseResult], Run]:
    """Send the test cases in the form of the board's task."""
    (spec,) = configuration.models
    abilities = open_model(spec.model, spec.arguments).abilities
    cases = SmokeTask.of(configuration).cases(chat="chat" in abilities, words=LONGEST)
    task = replace(cases, name=CASES_TASK)
    names = {spec.model}
    prices = board.entries.price_texts
    own_configuration = Configuration(
        tasks=(CASES_TASK,),
        models=(spec,),
        limit=board_cases(board),
        name=f"{configuration.name}--{CASES_TASK}",
        out=configuration.out,
        home=configuration.home,
        plugins=configuration.plugins,
        price=tuple(f"{name}={prices[name]}" for name in names & prices.keys()),
        budget=budget.as_settings(),
        replace=True,
    )
    settings = Settings(own_configuration, tasks={CASES_TASK: task})
    run, records = _evaluate(settings, progress)
    budget.subtract(run)
    return [judge_case(record) for record in records], run


def _as_trial(
    board: BoardFile, configuration: Configuration, whole_run: PlannedRun
) -> Configuration:
    """Return the evaluation of a trial: the board's, of fewer samples of each task."""
    per_task = max(1, board.trial.samples // max(1, len(whole_run.tasks)))
    board_limit = configuration.limit
    if board_limit is not None and board_limit >= 1:
        per_task = min(per_task, int(board_limit))
    (spec,) = configuration.models
    label = f"{spec.label or spec.model} ({PROVISIONAL})"
    return replace(configuration, models=(replace(spec, label=label),), limit=per_task)


def _ask_samples(
    configuration: Configuration,
    budget: RemainingBudget,
    progress: ProgressReporter | None,
) -> tuple[Run, list[SampleRecord]]:
    planned_run = plan_entry(configuration)
    short_identity = planned_run.identity[:SHORT_IDENTITY_CHARS]
    name = f"{configuration.name}--{short_identity}"
    finished_run = open_finished(Path(configuration.out) / name, planned_run)
    if finished_run is not None:
        return finished_run, list(finished_run.samples())
    named_configuration = replace(
        configuration, name=name, budget=budget.as_settings(), replace=True
    )
    return _evaluate(Settings(named_configuration), progress)


def _evaluate(
    settings: Settings, progress: ProgressReporter | None
) -> tuple[Run, list[SampleRecord]]:
    collector = _RecordCollector()
    (run,) = run_blocking(
        lambda: evaluate_settings(
            settings, progress=progress, callbacks=Callbacks([collector])
        )
    )
    records = sorted(collector.records, key=lambda record: (record.index, record.task))
    return run, records


def _count_labels(
    whole_run: PlannedRun, records: Sequence[SampleRecord]
) -> Counter[str]:
    outcome_scorers = {
        (task.name, scorer.name)
        for task in whole_run.tasks
        for scorer in task.scorers
        if scorer.kind == OUTCOME
    }
    labels: Counter[str] = Counter()
    for record in records:
        for name, score in record.scores.items():
            if (record.task, name) in outcome_scorers and score.label:
                labels[score.label] += 1
    return labels


def _as_shown(record: SampleRecord) -> TriedSample:
    scores = [
        f"{name} {score.value:g}{f' ({score.label})' if score.label else ''}"
        for name, score in record.scores.items()
    ]
    verdict = ", ".join(scores)
    if record.failure is not None:
        verdict = f"no answer: {record.failure.message}"
    return TriedSample(
        task=record.task,
        id=record.sample.id,
        question=record.sample.input,
        answer=record.answer.text if record.answer else "",
        verdict=verdict or "no score",
    )
