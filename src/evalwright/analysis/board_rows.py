"""The columns and rows of a leaderboard, and how a run becomes a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalwright.analysis.factual import hardware_of
from evalwright.core.plain import plain_fields
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, model_faults
from evalwright.statistics import Estimate
from evalwright.statistics.tipping import MAX_MISSING_SHARE

if TYPE_CHECKING:
    from evalwright.analysis.drift_record import DriftMark
    from evalwright.analysis.history import HistoryEntry


ANSWER_RATE = "answer-rate"
"""The label of the share of answers, also where another program measured it."""
ANSWER_RATE_OF_DATASET = "answer-rate-of-dataset"
"""The label of that share over all items, where an imported run lacks rows."""


@dataclass(frozen=True, slots=True)
class BoardTask:
    """A column: a task with the metric shown.

    Args:
        name: the task's name.
        metric: the metric's label.
        bounded: whether scores are between 0 and 1 and are shown in percentage points.
        lower_is_better: whether lower values are better.
    """

    name: str
    metric: str
    bounded: bool
    lower_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A run on the board.

    Args:
        run: the run's id.
        label: the model's label.
        model: the model's name.
        date: the day the run started.
        ranks: best and worst rank, simultaneously valid for all runs; None if the run lacks a task.
        own_ranks: best and worst rank if only this run had been chosen beforehand.
        letters: runs that share a letter cannot be separated.
        overall: the mean over tasks, by the tree that the runs have in common.
        groups: the numbers of the tree's other nodes, if any.
        together: the interval of the headline score that holds simultaneously for all runs.
        cells: the metric shown in each column, by task.
        n: scored items of `n_asked`, over all tasks of the board.
        n_asked: number of items requested.
        n_missing: how many of the items are missing.
        n_unsure: how many have an unsure score.
        n_not_asked: further items that a budget or a stopping rule left out.
        provisional: whether more than 5% of the answers are missing.
        other_judge: whether a judge scored answers of it, and another judge those of another run.
        cost: US dollars that the answers cost; None if unknown.
        outcomes: number of answers by outcome.
        faults: the model's own faults, by kind.
        metrics: all metrics by task, for reports that show more than the cells.
        run_index: the run's position among the runs that were passed in.
        shares: accuracy and the outcome of stress questions, if all runs are factual.
        hardware: the run's name for its machine.
        prompt: name and SHA-256 of the prompt in place of the tasks' own, where there is one.
        facts: what is known of the model: provider, size, licence, price and so on.
        fact_sources: what each fact was taken from: a table, the run's record, or the name.
        corrected: the headline score corrected by human labels, where there are labels.
        judge_errors: the judge's rates of false alarms and misses, where there are labels.
        history: the model's results by date, where the board was asked for them.
        drift: that the model, or its judge, has changed since, where that is known.
    """

    run: str
    label: str
    model: str
    date: str
    ranks: tuple[int, int] | None = None
    own_ranks: tuple[int, int] | None = None
    letters: str = ""
    overall: Estimate | None = None
    groups: Mapping[str, MetricResult] = field(default_factory=dict)
    together: Estimate | None = None
    cells: Mapping[str, MetricResult]
    n: int
    n_asked: int
    n_missing: int
    n_unsure: int = 0
    n_not_asked: int = 0
    provisional: bool = False
    other_judge: bool = False
    cost: float | None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, tuple[MetricResult, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    run_index: int = field(default=0, compare=False, repr=False)
    shares: Mapping[str, Estimate] = field(
        default_factory=dict, compare=False, repr=False
    )
    hardware: str = ""
    prompt: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    fact_sources: Mapping[str, str] = field(default_factory=dict)
    corrected: Estimate | None = None
    judge_errors: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[HistoryEntry, ...] = field(default=(), compare=False, repr=False)
    drift: DriftMark | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        optional = (
            "shares",
            "hardware",
            "prompt",
            "outcomes",
            "faults",
            "groups",
            "n_not_asked",
            "provisional",
            "other_judge",
            "facts",
            "fact_sources",
            "corrected",
            "judge_errors",
            "drift",
        )
        left_out = (
            "metrics",
            "run_index",
            "history",
            *(name for name in optional if not getattr(self, name)),
        )
        fields = plain_fields(self, left_out).items()
        return {
            ("tasks" if name == "cells" else name): content for name, content in fields
        }


def make_row(
    run: Run,
    tasks: Sequence[BoardTask],
    cells: Mapping[str, MetricResult],
    run_index: int,
    shares: Mapping[str, Estimate],
    ranked_tasks: Sequence[str] = (),
) -> BoardRow:
    """Build a run's row, without its rank.

    Args:
        run: the run.
        tasks: the columns.
        cells: the metric shown in each column, by task.
        run_index: the run's position among the runs of the board.
        shares: accuracy and the outcome of stress questions, if all runs are factual.
        ranked_tasks: the tasks that the rank is about; () for all.
    """
    ranked_cells = {
        name: cell
        for name, cell in cells.items()
        if not ranked_tasks or name in ranked_tasks
    }
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.shown_model,
        date=str(run.data["started"])[:10],
        cells=cells,
        n=sum(estimate.n for estimate in estimates),
        n_asked=sum(task.n_samples for task in run.tasks if task.name in cells),
        n_missing=sum(estimate.n_missing for estimate in estimates),
        n_unsure=sum(estimate.n_unsure for estimate in estimates),
        n_not_asked=sum(_count_not_asked(run, name) for name in cells),
        provisional=_lacks_many_answers(run, ranked_cells),
        cost=run.cost,
        outcomes=dict(
            sum((Counter(task.outcomes) for task in run.tasks), Counter[str]())
        ),
        faults={
            str(fault): n
            for fault, n in model_faults(
                [task for task in run.tasks if task.name in cells]
            ).items()
        },
        metrics={task.name: with_whole_answer_rate(task.metrics) for task in run.tasks},
        run_index=run_index,
        shares=shares,
        hardware=hardware_of(run),
        prompt=run.prompt,
    )


def with_whole_answer_rate(
    metrics: Sequence[MetricResult],
) -> tuple[MetricResult, ...]:
    """Put the answer rate over all items in place of one that leaves out lost rows.

    An imported run has both where its files lack rows: only the former is over the same items as
    the answer rates of other models.
    """
    whole_rate = next(
        (metric for metric in metrics if metric.label == ANSWER_RATE_OF_DATASET), None
    )
    if whole_rate is None or not count_lost_rows(metrics):
        return tuple(metrics)
    return tuple(
        replace(metric, estimate=whole_rate.estimate)
        if metric.label == ANSWER_RATE
        else metric
        for metric in metrics
    )


def count_lost_rows(metrics: Sequence[MetricResult]) -> int:
    """Count the items over which only the answer rate of the whole data set is."""
    n_by_label = {metric.label: metric.estimate.n for metric in metrics}
    n_whole = n_by_label.get(ANSWER_RATE_OF_DATASET, 0)
    return max(0, n_whole - n_by_label.get(ANSWER_RATE, n_whole))


def _count_not_asked(run: Run, task: str) -> int:
    """Count the items of a task that a stopping rule or a budget left out."""
    stopped_tasks = (run.data.get("stopping") or {}).get("tasks", ())
    draws = max(1, int(run.record(task).get("draws", 1)))
    return sum(
        (record["of"] - record["asked"]) // draws
        for record in stopped_tasks
        if record["task"] == task
    )


def _lacks_many_answers(run: Run, cells: Mapping[str, MetricResult]) -> bool:
    """Tell whether too many answers are missing for a final number, averaged over tasks.

    The share is of all requested items: items that the column's scorer does not score are not
    missing.
    """
    shares = [
        cells[task.name].estimate.n_missing / task.n_samples
        for task in run.tasks
        if task.name in cells and task.n_samples
    ]
    return bool(shares) and sum(shares) / len(shares) > MAX_MISSING_SHARE
