"""`evaluate`: turns a call in Python into settings, a plan, and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from evalwright.core.errors import ConfigurationError
from evalwright.engine.opening import open_store
from evalwright.engine.store import Store
from evalwright.evaluation.call_settings import EvaluationSettings, with_named_settings
from evalwright.evaluation.interruption import at_once
from evalwright.evaluation.objects import (
    ModelLike,
    TaskLike,
    are_models,
    settings_from_python,
)
from evalwright.evaluation.planning import Plan, make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import GRACE, run_blocking, run_plan
from evalwright.evaluation.settings import Settings, as_list, check_kind
from evalwright.models.local.cluster import Cluster, Placement
from evalwright.runs.callbacks import Callbacks, check_callbacks
from evalwright.runs.progress import ProgressReporter, notebook_progress
from evalwright.runs.reader import Run
from evalwright.tasks.row_tasks import (
    DEFAULT_NAME,
    ScorerLike,
    are_rows,
    rows_of,
    rows_task,
)
from evalwright.trackers import open_trackers

if TYPE_CHECKING:
    from evalwright.evaluation.worker_rounds import RunEnd


@with_named_settings
def evaluate(
    tasks: TaskLike | ModelLike | Iterable[TaskLike] | Iterable[Mapping[str, Any]],
    models: ModelLike | TaskLike | Iterable[ModelLike] | Mapping[str, ModelLike],
    *,
    input: str = "",
    target: str = "",
    scorers: ScorerLike | Sequence[ScorerLike] = (),
    metrics: Any = (),
    prompt: str = "",
    task_name: str = "",
    progress: ProgressReporter | None = None,
    callbacks: Any = (),
    track: str | Iterable[str] = (),
    **settings: Unpack[EvaluationSettings],
) -> list[Run]:
    """Evaluate models on tasks. Each model gets one run, which is written to a folder.

    Responses in the store are used again, so a second call sends only what is missing. Samples that
    fail are counted in `run.n_missing`; they raise nothing::

        (run,) = evaluate("factual-choice", "demo/small", limit=20)
        print(run.tasks[0].main.estimate)

    Rows are a task, too::

        rows = [{"question": "Capital of France?", "answer": "Paris"}]
        (run,) = evaluate(rows, "demo/small", target="answer", prompt="Q: {{ input }}\\nA:")

    Args:
        tasks: names, patterns of names (`mmlu_*`), paths of YAML, CSV or JSONL files, Task objects;
            or rows: a list of mappings, a pandas or polars data frame, or a Hugging Face data set.
        models: names ("demo/small"), ModelSpec or Model objects, functions from a prompt to an
            answer, or a mapping from labels to these. Functions and Model objects may also come
            first.
        input: for rows, the column with what is asked; else it is found by its name.
        target: for rows, the column with what is expected; else it is found by its name.
        scorers: for rows, names of scorers, mappings as in task files, or functions
            `f(sample, answer)`; by default `choice` where there are options, else `short-answer`.
        metrics: for rows, metrics as in task files; by default those of the scorers.
        prompt: for rows, a template of the prompt; by default the input alone.
        task_name: for rows, what the task is called; by default "rows".
        progress: what is shown while the runs are made; a notebook shows it without.
        callbacks: one Callback or several, called when runs and samples start or finish.
        track: experiment trackers to log to: "mlflow", "mlflow=ADDRESS".
        **settings: the fields of `Configuration`, such as `limit`, `seed`, `name`, `roles`,
            `prompts` and `budget`; `on`, `replicas` and `gpus_per_replica` spread local models over
            a Ray cluster; `worker=True` makes the runs together with other processes that call
            this with the same arguments and share the store; `push` copies finished runs into a
            folder of a bucket.

    Returns:
        One run per model and prompt, in the order of `models`; for a worker, those whose folders
        can be seen from here.

    Raises:
        UsageError: a task, model or setting that cannot be used; before any request is sent.
        StoreError: responses cannot be stored.
    """
    call = _Call(**locals())  # every argument, by its name
    reporter = progress or notebook_progress()
    runs: list[Run] = run_blocking(lambda: call.runs(reporter))
    call.listeners.warn()
    return runs


@with_named_settings
async def evaluate_async(
    tasks: TaskLike | ModelLike | Iterable[TaskLike] | Iterable[Mapping[str, Any]],
    models: ModelLike | TaskLike | Iterable[ModelLike] | Mapping[str, ModelLike],
    *,
    input: str = "",
    target: str = "",
    scorers: ScorerLike | Sequence[ScorerLike] = (),
    metrics: Any = (),
    prompt: str = "",
    task_name: str = "",
    progress: ProgressReporter | None = None,
    callbacks: Any = (),
    track: str | Iterable[str] = (),
    **settings: Unpack[EvaluationSettings],
) -> list[Run]:
    """Like `evaluate`, for code that already runs in an event loop.

    Cancelling the task stops the evaluation: answers to requests that were sent get a few seconds
    to arrive, and are stored.

    Args:
        tasks: as in `evaluate`, and so are all other arguments.
        models: as in `evaluate`.
        input: as in `evaluate`.
        target: as in `evaluate`.
        scorers: as in `evaluate`.
        metrics: as in `evaluate`.
        prompt: as in `evaluate`.
        task_name: as in `evaluate`.
        progress: what is shown while the runs are made.
        callbacks: as in `evaluate`.
        track: as in `evaluate`.
        **settings: as in `evaluate`.

    Returns:
        One run per model and prompt, in the order of `models`.

    Raises:
        UsageError: a task, model or setting that cannot be used; before any request is sent.
        StoreError: responses cannot be stored.
    """
    call = _Call(**locals())  # every argument, by its name
    runs = await call.runs(progress)
    call.listeners.warn()
    return runs


class _Call:
    """A call of `evaluate` or `evaluate_async`, read: its settings, and who listens.

    Args:
        tasks: as in `evaluate`, and so are all other arguments.
        models: as in `evaluate`.
        progress: as in `evaluate`; `runs` takes it.
        callbacks: as in `evaluate`.
        track: as in `evaluate`.
        settings: as in `evaluate`.
        of_rows: the arguments of `evaluate` that only rows take.

    Raises:
        UsageError: an argument cannot be used.
    """

    def __init__(
        self,
        *,
        tasks: Any,
        models: Any,
        progress: ProgressReporter | None,
        callbacks: Any,
        track: str | Iterable[str],
        settings: Mapping[str, Any],
        **of_rows: Any,
    ) -> None:
        named_tasks = list(tasks) if isinstance(tasks, Iterator) else tasks
        under_test = list(models) if isinstance(models, Iterator) else models
        if are_rows(named_tasks):
            name = of_rows.pop("task_name") or DEFAULT_NAME
            named_tasks = rows_task(rows_of(named_tasks), name=name, **of_rows)
        else:
            _check_no_row_settings(of_rows)
            if are_models(named_tasks):
                named_tasks, under_test = under_test, named_tasks
        fields = dict(settings)
        worker = fields.pop("worker", None) or False
        check_kind(worker, bool, "true or false", "worker")
        push = fields.pop("push", None) or ""
        check_kind(push, str, "text", "push")
        on = Placement.parse(
            *(fields.pop(key, None) for key in ("on", "replicas", "gpus_per_replica"))
        )
        self.listeners = Callbacks(
            (*check_callbacks(callbacks), *open_trackers(as_list(track)))
        )
        self.settings = replace(
            settings_from_python(named_tasks, under_test, fields, on=on),
            worker=worker,
            push=push,
        )

    async def runs(self, progress: ProgressReporter | None) -> list[Run]:
        """Carry it out."""
        return await evaluate_settings(
            self.settings, progress=progress, callbacks=self.listeners
        )


def _check_no_row_settings(of_rows: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for an argument that only rows take."""
    for name, argument in of_rows.items():
        if isinstance(argument, str) and not argument:
            continue
        if isinstance(argument, Sequence | Mapping) and not len(argument):
            continue
        way_out = {
            "prompt": "prompts= puts a prompt in place of a task's own",
            "task_name": "tasks have their own names",
        }.get(name, f'overrides={{"{name}": ...}} changes a task')
        raise ConfigurationError(
            f"'{name}' is for rows (a list of mappings or a data frame), and the tasks"
            f" are none: {way_out}."
        )


async def evaluate_settings(
    settings: Settings,
    *,
    progress: ProgressReporter | None = None,
    callbacks: Callbacks | None = None,
    grace: float = GRACE,
) -> list[Run]:
    """Plan an evaluation and carry it out; the other arguments are those of `run_plan`.

    Returns:
        The runs; for a worker, those whose folders can be seen from here.

    Raises:
        UsageError: it cannot be carried out; nothing was spent.
        StoreError: answers cannot be stored.
    """
    if settings.worker:
        ends = await work_on_settings(
            settings, progress=progress, callbacks=callbacks, grace=grace
        )
        return [run for run in (end.open() for end in ends) if run is not None]
    with _planned(settings) as (plan, store):
        return await run_plan(
            plan, store, progress=progress, callbacks=callbacks, grace=grace
        )


async def work_on_settings(
    settings: Settings,
    *,
    progress: ProgressReporter | None = None,
    callbacks: Callbacks | None = None,
    grace: float = GRACE,
) -> list[RunEnd]:
    """Like `evaluate_settings`, as one of several workers; return how each run ended."""
    from evalwright.evaluation.workers import work_on_plan

    with _planned(settings) as (plan, store):
        return await work_on_plan(
            plan, store, progress=progress, callbacks=callbacks, grace=grace
        )


@contextmanager
def _planned(settings: Settings) -> Iterator[tuple[Plan, Store]]:
    """Plan an evaluation, and open its store."""
    with ExitStack() as stack:
        cluster = None
        if settings.on is not None:
            max_resident = settings.configuration.max_resident
            cluster = stack.enter_context(Cluster(settings.on, max_resident))
        with at_once():
            resolved = resolve(settings, cluster)
            plan = make_plan(resolved, in_python=settings.in_python)
        store = stack.enter_context(open_store(plan.home))
        yield plan, store
