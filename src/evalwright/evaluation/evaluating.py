"""`evaluate`: turns a call in Python into settings, a plan, and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from evalwright.engine.opening import open_store
from evalwright.evaluation.interruption import at_once
from evalwright.evaluation.objects import (
    ModelLike,
    TaskLike,
    are_models,
    settings_from_python,
)
from evalwright.evaluation.planning import make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import GRACE, run_blocking, run_plan
from evalwright.evaluation.settings import Settings, as_list
from evalwright.models.local.cluster import Cluster, Placement
from evalwright.runs.callbacks import Callbacks, check_callbacks
from evalwright.runs.progress import ProgressReporter, notebook_progress
from evalwright.runs.reader import Run
from evalwright.trackers import open_trackers


def evaluate(
    tasks: TaskLike | ModelLike | Iterable[TaskLike],
    models: ModelLike | TaskLike | Iterable[ModelLike] | Mapping[str, ModelLike],
    *,
    progress: ProgressReporter | None = None,
    callbacks: Any = (),
    track: str | Iterable[str] = (),
    **settings: Any,
) -> list[Run]:
    """Evaluate models on tasks. Each model gets one run, which is written to a folder.

    Responses in the store are used again, so a second call sends only what is missing. Samples that
    fail are counted in `run.n_missing`; they raise nothing::

        (run,) = evaluate("factual-choice", "demo/small", limit=20)
        print(run.tasks[0].main.estimate)

    Args:
        tasks: names, patterns of names (`mmlu_*`), paths of YAML, CSV or JSONL files, or Task
            objects.
        models: names ("demo/small"), ModelSpec or Model objects, functions from a prompt to an
            answer, or a mapping from labels to these. Functions and Model objects may also come
            first.
        progress: what is shown while the runs are made; a notebook shows it without.
        callbacks: one Callback or several, called when runs and samples start or finish.
        track: experiment trackers to log to: "mlflow", "mlflow=ADDRESS".
        **settings: the fields of `Configuration`, such as `limit`, `seed`, `name`, `roles` and
            `budget`; `on`, `replicas` and `gpus_per_replica` spread local models over a Ray
            cluster.

    Returns:
        One run per model, in the order of `models`.

    Raises:
        UsageError: a task, model or setting that cannot be used; before any request is sent.
        StoreError: responses cannot be stored.
    """
    named_tasks: Any = list(tasks) if isinstance(tasks, Iterator) else tasks
    under_test: Any = list(models) if isinstance(models, Iterator) else models
    if are_models(named_tasks):
        named_tasks, under_test = under_test, named_tasks
    reporter = progress or notebook_progress()
    on = Placement.parse(
        *(settings.pop(key, None) for key in ("on", "replicas", "gpus_per_replica"))
    )
    listeners = Callbacks((*check_callbacks(callbacks), *open_trackers(as_list(track))))
    evaluation_settings = settings_from_python(named_tasks, under_test, settings, on=on)
    runs: list[Run] = run_blocking(
        lambda: evaluate_settings(
            evaluation_settings,
            progress=reporter,
            callbacks=listeners,
        )
    )
    listeners.warn()
    return runs


async def evaluate_settings(
    settings: Settings,
    *,
    progress: ProgressReporter | None = None,
    callbacks: Callbacks | None = None,
    grace: float = GRACE,
) -> list[Run]:
    """Plan an evaluation and carry it out; the other arguments are those of `run_plan`.

    Raises:
        UsageError: it cannot be carried out; nothing was spent.
        StoreError: answers cannot be stored.
    """
    with ExitStack() as stack:
        cluster = None
        if settings.on is not None:
            max_resident = settings.configuration.max_resident
            cluster = stack.enter_context(Cluster(settings.on, max_resident))
        with at_once():
            resolved = resolve(settings, cluster)
            plan = make_plan(resolved)
        store = stack.enter_context(open_store(plan.home))
        return await run_plan(
            plan, store, progress=progress, callbacks=callbacks, grace=grace
        )
