"""The public calls around `evaluate`: open and compare runs, rank them, plan a run.

What they return also states its conclusions in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from evalwright.analysis.comparison import Comparison, compare_runs
from evalwright.analysis.several import SeveralComparison, compare_several
from evalwright.core.errors import ConfigurationError
from evalwright.core.local_paths import scheme_of
from evalwright.reports.conclusions import worded_comparison, worded_several
from evalwright.runs.reader import Run
from evalwright.runs.reader import open_run as _open_run
from evalwright.runs.simulations import refuse_baseline_judges
from evalwright.tasks.yaml_files import kind_of

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.power.forecasts import Forecast
    from evalwright.analysis.task_checks.examining import TaskExamination
    from evalwright.core.tasks import Task
    from evalwright.evaluation.objects import ModelLike, TaskLike
    from evalwright.statistics.macro import TasksAre
    from evalwright.statistics.multiplicity import Adjustment
    from evalwright.statistics.pairwise import MissingPolicy

__all__ = ["check_tasks", "compare", "leaderboard", "open_run", "plan"]

RunLike = Run | str | Path


def check_tasks(
    tasks: Task | str | Path | Sequence[Task | str | Path],
    *,
    trust: Sequence[str | Path] = (),
) -> tuple[TaskExamination, ...]:
    """Check tasks for faults before a model is paid, as `evalwright tasks check` does.

    No request is sent. Of tasks with a sandbox, the reference solutions are run, and an agent that
    does nothing.

    Args:
        tasks: one or several tasks, as names, files or Task objects.
        trust: folders whose task files may read files anywhere and run code.

    Returns:
        The findings of each task, then those of all of them together; `n_faults` of each counts
        what is wrong.

    Raises:
        TaskError: a task cannot be loaded.
        DatasetError: its data cannot be read.
    """
    from concurrent.futures import ThreadPoolExecutor

    from evalwright.analysis.task_checks.examining import examine
    from evalwright.core.tasks import Task
    from evalwright.tasks.loading import load_task

    listed = [tasks] if isinstance(tasks, Task | str | Path) else list(tasks)
    loaded = [
        task if isinstance(task, Task) else load_task(task, trust=trust)
        for task in listed
    ]
    # In a thread of its own, because a notebook has an event loop that runs already.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: tuple(examine(loaded))).result()


def open_run(run: RunLike, runs_folder: str | Path = "runs") -> Run:
    """Open a finished run.

    Args:
        run: the run's folder, its name in `runs_folder`, its address in a bucket
            (`s3://BUCKET/FOLDER/NAME`), or a Run, which is returned as it is.
        runs_folder: the folder in which names are looked up.

    Returns:
        The run. Its samples are read from disk one at a time, when they are asked for.

    Raises:
        UnknownName: there is no such run; the message has the closest names.
        RunError: the folder has no record, or one that cannot be read.
    """
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | Path):
        raise ConfigurationError(
            f"A run is a name, a folder or a Run, not {kind_of(run)}."
        )
    if isinstance(run, str) and scheme_of(run).lower() == "s3":
        from evalwright.runs.bucket_runs import open_bucket_run

        return open_bucket_run(run)
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
    """Compare runs item by item: two of them, or several with the error rate controlled.

    With `tasks`, models or functions are evaluated first, and their runs compared::

        small, large = evaluate("factual-choice", ["demo/small", "demo/large"], limit=40)
        print(compare(small, large).conclusion)

    Args:
        *runs: runs, their names or folders, one by one or as a list. With `tasks`, models,
            functions or a mapping from labels to them.
        tasks: evaluate the models on these tasks first.
        baseline: with three or more runs, compare every other run with this one; without it, all
            pairs are compared.
        metric: compare by this metric, a label or "TASK.LABEL"; without it, by each task's main
            one.
        slices: metadata keys by whose values to compare too, such as "language".
        slices_adjust: correction over slices: "bh" (false discovery rate), "holm" or "none".
        most_flips: how many items to list that only one of two runs got right, in each direction.
        equivalent: margin of an equivalence test of two runs, in the unit of the scores (0.02 is 2
            points).
        tasks_are: "fixed", or "sample" for a mean that is about tasks like these.
        missing: "scored" compares on the items that both runs have; "worst-case" gives verdicts
            that hold whatever the missing answers would have scored.
        runs_folder: the folder in which names of runs are looked up.
        **settings: settings of `evaluate`; only with `tasks`.

    Returns:
        The comparison. `.conclusion` says it in words, `.as_dict()` has every number.

    Raises:
        RunError: the runs have no task in common.
        UnknownName: there is no such run or metric.
        ConfigurationError: arguments that do not fit together.
    """
    runs_or_models: Any = runs
    if (
        len(runs) == 1
        and isinstance(runs[0], Iterable)
        and not isinstance(runs[0], str)
    ):
        runs_or_models = runs[0]  # a list, as `evaluate` returns and takes it
    if tasks is not None:
        from evalwright.evaluation.evaluating import evaluate

        runs_or_models = evaluate(tasks, runs_or_models, **settings)
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
    opened = [open_run(run, runs_folder) for run in runs_or_models]
    if len(opened) == 2 and baseline is None:
        comparison = compare_runs(
            *opened, most_flips=most_flips, equivalent=equivalent, **shared
        )
        return worded_comparison(comparison)
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
    by: str | Sequence[str] = (),
    rank_by: str = "",
    facts: Sequence[Mapping[str, str | float | bool | None]] = (),
    where: str | Sequence[str] = (),
) -> Board:
    """Rank runs by their scores, with intervals and the range of ranks that the data allow.

    Args:
        runs: a run or several: Run objects, names or folders.
        metric: the metric to show, a label or "TASK.LABEL"; without it, each task's main one.
        runs_folder: the folder in which names of runs are looked up.
        allow_baseline_judge: whether to take runs that a baseline judged, a stand-in for a real
            judge.
        tasks_are: "fixed", or "sample" for overall scores and ranks that are about tasks like
            these.
        ratings: whether to rate the models too, from their wins on items.
        by: metadata keys of tasks, then of samples, by which the board groups its scores.
        rank_by: the group, task, TASK.METRIC or slice (`language=th`) to sort and rank by.
        facts: what is known of the model of each run, such as {"size": 8, "open": True}.
        where: which models to show, as conditions on facts: "size<=8".

    Returns:
        The board as data. `print` and notebooks show it; `.save("board.html")` writes it to a file.

    Raises:
        RunError: there are no runs, or one cannot be read.
        UnknownName: there is no such run or metric.
        ConfigurationError: a baseline judged some of the runs.
    """
    from evalwright.analysis.board import make_board
    from evalwright.analysis.fact_filters import read_filter

    listed_runs = [runs] if isinstance(runs, (Run, str, Path)) else runs
    opened = [open_run(run, runs_folder) for run in listed_runs]
    refuse_baseline_judges(opened, allow_baseline_judge)
    return make_board(
        opened,
        metric,
        tasks_are,
        ratings=ratings,
        by=[by] if isinstance(by, str) else list(by),
        rank_by=rank_by,
        facts=facts,
        where=[
            read_filter(condition)
            for condition in ([where] if isinstance(where, str) else where)
        ],
    )


def plan(
    tasks: TaskLike | Sequence[TaskLike],
    models: ModelLike | Sequence[ModelLike] = (),
    **settings: Any,
) -> Forecast:
    """Plan a run: what it takes to see a difference, what the tasks can detect, and what it costs.

    No request is sent unless a pilot is asked for, and no weights are loaded.

    Args:
        tasks: names, paths of files, or Task objects.
        models: names, ModelSpec or Model objects, or functions; may be left out where `runs` has
            them.
        **settings: settings of the plan: `difference` and `half_width` in the unit of scores (0.02
            is 2 points), `power`, `level`, `pilot` (items of each task to run first), `runs`
            (stored runs to go by), `assume` and `prices`; and settings of `evaluate`.

    Returns:
        The forecast. `.conclusion` says it in words.

    Raises:
        UsageError: a setting, task or model that cannot be used.
    """
    from evalwright.analysis.power.making import plan as make_plan
    from evalwright.reports.documents.plan import worded_plan

    return worded_plan(make_plan(tasks, models, **settings))
