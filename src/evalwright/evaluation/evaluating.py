"""`evaluate`: what a call in Python asks for becomes settings, a plan, and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

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
from evalwright.models.local.cluster import Cluster, On
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
    """Evaluate models on tasks: one run per model, written to a folder and returned.

    A function or a Model may also stand first: `evaluate(my_function, "kmmlu")`. Answers that are
    in the store are not asked for again. Samples that fail are counted in `run.n_missing`, not
    raised.

    Args:
        tasks: names, paths of files, or Task objects.
        models: names ("demo/small"), ModelSpec or Model objects, functions from a prompt to an
            answer, or a mapping from labels to these.
        progress: hears how far runs are; a notebook shows it without.
        callbacks: one or several that hear of runs and samples (`runs.callbacks.Callback`).
        track: trackers to log to, "mlflow" or "mlflow=ADDRESS".
        settings: the fields of `Configuration`: where, limit, seed, name, out, roles, overrides,
            format, home, max_resident, replace, resend_empty, until, budget, price, batch, plugins;
            a role's model may also be a name or a Model object. on, replicas, gpus_per_replica:
            "ray" or "ray:ADDRESS", "auto" or a number, and the GPUs of each replica of local models
            (docs/ray.md).

    Raises:
        UsageError: it cannot be carried out; nothing was spent.
        StoreError: answers cannot be kept.
    """
    named_tasks: Any = list(tasks) if isinstance(tasks, Iterator) else tasks
    under_test: Any = list(models) if isinstance(models, Iterator) else models
    if are_models(named_tasks):
        named_tasks, under_test = under_test, named_tasks
    reporter = progress or notebook_progress()
    on = On.given(
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
    """Plan what was asked and carry it out; the other arguments are those of `run_plan`.

    Raises:
        UsageError: it cannot be carried out; nothing was spent.
        StoreError: answers cannot be kept.
    """
    with ExitStack() as stack:
        cluster = None
        if settings.on is not None:
            max_resident = settings.configuration.max_resident
            cluster = stack.enter_context(Cluster(settings.on, max_resident))
        with at_once():
            plan = make_plan(resolve(settings, cluster))
        return await run_plan(plan, progress=progress, callbacks=callbacks, grace=grace)
