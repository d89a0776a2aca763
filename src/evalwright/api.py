"""The calls around `evaluate`: open and compare runs, make a board, plan a run.

Results come with their sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from evalwright.analysis.comparison import Comparison, compare_runs
from evalwright.analysis.several import SeveralComparison, compare_several
from evalwright.core.errors import ConfigurationError
from evalwright.reports.conclusions import worded_comparison, worded_several
from evalwright.runs.reader import Run
from evalwright.runs.reader import open_run as _open_run
from evalwright.runs.simulations import refuse_baseline_judges
from evalwright.tasks.yaml_files import kind_of

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.power.forecasts import Forecast
    from evalwright.evaluation.objects import ModelLike, TaskLike
    from evalwright.statistics.macro import TasksAre
    from evalwright.statistics.multiplicity import Adjustment
    from evalwright.statistics.pairwise import MissingPolicy

__all__ = ["compare", "leaderboard", "open_run", "plan"]

RunLike = Run | str | Path


def open_run(run: RunLike, runs_folder: str | Path = "runs") -> Run:
    """The run at a folder, or of that name in `runs_folder`.

    Raises UnknownName with the closest names.
    """
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | Path):
        raise ConfigurationError(
            f"A run is a name, a folder or a Run, not {kind_of(run)}."
        )
    return _open_run(run, Path(runs_folder))


@overload
def compare(
    a: RunLike | ModelLike,
    b: RunLike | ModelLike,
    /,
    *,
    tasks: TaskLike | Sequence[TaskLike] | None = None,
    baseline: None = None,
    metric: str | None = ...,
    slices: Sequence[str] = ...,
    slices_adjust: Adjustment = ...,
    most_flips: int = ...,
    equivalent: float | None = ...,
    tasks_are: TasksAre = ...,
    missing: MissingPolicy = ...,
    runs_folder: str | Path = ...,
    **settings: Any,
) -> Comparison: ...


@overload
def compare(
    *runs: RunLike
    | ModelLike
    | Mapping[str, ModelLike]
    | Iterable[RunLike | ModelLike],
    tasks: TaskLike | Sequence[TaskLike] | None = None,
    baseline: RunLike | None = None,
    metric: str | None = ...,
    slices: Sequence[str] = ...,
    slices_adjust: Adjustment = ...,
    most_flips: int = ...,
    equivalent: float | None = ...,
    tasks_are: TasksAre = ...,
    missing: MissingPolicy = ...,
    runs_folder: str | Path = ...,
    **settings: Any,
) -> Comparison | SeveralComparison: ...


def compare(
    *runs: Any,
    tasks: TaskLike | Sequence[TaskLike] | None = None,
    baseline: RunLike | None = None,
    metric: str | None = None,
    slices: Sequence[str] = (),
    slices_adjust: Adjustment = "bh",
    most_flips: int = 20,
    equivalent: float | None = None,
    tasks_are: TasksAre = "fixed",
    missing: MissingPolicy = "scored",
    runs_folder: str | Path = "runs",
    **settings: Any,
) -> Comparison | SeveralComparison:
    """Compare two runs, paired by item, or three and more with their error controlled;
    `.conclusion` says it in words.

    tasks: evaluate models or functions on these first, and compare their runs: `compare(small,
    large, tasks="kmmlu", limit=50)`, or `compare({"a": small, "b": large}, tasks="kmmlu")`;
    settings: as of `evaluate`. baseline: with three or more runs, the one that every other is
    compared with; else all pairs are. metric: compare by this one, a label or TASK.LABEL, and not
    by the main one of each task with the others beside it. slices: metadata keys by whose values to
    compare too; slices_adjust: "bh" (false discovery rate), "holm" or "none". most_flips: flipped
    items named of two runs, in each direction. equivalent: the margin of a test of equivalence of
    two runs. tasks_are: "fixed", or "sample" for a mean that is about tasks like these. missing:
    "scored", so that verdicts rest on the items that both have, or "worst-case", so that they hold
    whatever the missing answers would have scored. Raises RunError where the runs share no task,
    and UnknownName for a metric that there is not.
    """
    given: Any = runs
    if (
        len(runs) == 1
        and isinstance(runs[0], Iterable)
        and not isinstance(runs[0], str)
    ):
        given = runs[0]  # a list, as `evaluate` returns and takes it
    if tasks is not None:
        from evalwright.evaluation.evaluating import evaluate

        given = evaluate(tasks, given, **settings)
    elif settings:
        raise ConfigurationError(
            f"Finished runs take no {' or '.join(settings)}: name tasks= to make runs"
            " first."
        )
    shared: dict[str, Any] = {
        "metric": metric,
        "slices": slices,
        "slices_adjust": slices_adjust,
        "tasks_are": tasks_are,
        "missing": missing,
    }
    opened = [open_run(run, runs_folder) for run in given]
    if len(opened) == 2 and baseline is None:
        found = compare_runs(
            *opened, most_flips=most_flips, equivalent=equivalent, **shared
        )
        return worded_comparison(found)
    if equivalent is not None:
        raise ConfigurationError(
            "Equivalence is tested between two runs. Compare them pair by pair."
        )
    base = None if baseline is None else open_run(baseline, runs_folder)
    return worded_several(compare_several(opened, baseline=base, **shared))


def leaderboard(
    runs: RunLike | Sequence[RunLike],
    *,
    metric: str | None = None,
    runs_folder: str | Path = "runs",
    allow_baseline_judge: bool = False,
    tasks_are: TasksAre = "fixed",
    ratings: bool = False,
) -> Board:
    """A leaderboard of some runs as data; `evalwright.reports` shows it. Raises RunError for none.

    metric: the one to show, a label or TASK.LABEL, in place of each task's main one. tasks_are: as
    of `compare`, for overall scores and ranks. ratings: whether to rate the models too.

    Raises ConfigurationError for runs that a baseline judged, unless `allow_baseline_judge`.
    """
    from evalwright.analysis.board import make_board

    several = [runs] if isinstance(runs, (Run, str, Path)) else runs
    opened = [open_run(run, runs_folder) for run in several]
    refuse_baseline_judges(opened, allow_baseline_judge)
    return make_board(opened, metric, tasks_are, ratings=ratings)


def plan(
    tasks: TaskLike | Sequence[TaskLike],
    models: ModelLike | Sequence[ModelLike] = (),
    **settings: Any,
) -> Forecast:
    """What it takes to see a difference, what the tasks can detect, and what a run would cost;
    `.conclusion` says it in words.

    settings: as of `evalwright.analysis.power.plan` (difference, half_width, power, level, pilot,
    runs, assume, prices) and of `evaluate`. No request is sent unless a pilot is asked for. Raises
    UsageError.
    """
    from evalwright.analysis.power.making import plan as make_plan
    from evalwright.reports.documents.plan import worded_plan

    return worded_plan(make_plan(tasks, models, **settings))
