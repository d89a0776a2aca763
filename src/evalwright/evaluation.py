"""The one place where a run is put together: plan -> ask -> score -> aggregate -> record.

A question becomes a number here: `evaluate_sample` forms an answer and scores it, `_ask_all` does so for every sample,
`_finish` turns the scores into metrics and writes the record.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from inspect import isawaitable
from typing import Any

from evalwright._version import __version__
from evalwright.configuration import Configuration, home_folder
from evalwright.core.asking import Ask
from evalwright.core.errors import (
    Cancelled,
    ConfigurationError,
    EvalwrightError,
    Failure,
    RequestFailed,
    ScoringError,
    StoreError,
)
from evalwright.core.responses import Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.engine.engine import Door, Engine
from evalwright.engine.store import Store
from evalwright.models.base import LocalModel
from evalwright.planning import ModelLike, Objects, Plan, TaskLike, make_plans
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.environment import environment
from evalwright.runs.groups import group_records
from evalwright.runs.progress import Progress, ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.scores import keep_scores
from evalwright.runs.writer import SCHEMA_VERSION, RunWriter
from evalwright.strategies.generate import TARGET

REMOTE_AT_ONCE = 8
"""How many remote models are evaluated side by side; local ones take turns."""


def evaluate(
    tasks: TaskLike | Sequence[TaskLike],
    models: ModelLike | Sequence[ModelLike],
    *,
    progress: ProgressReporter | None = None,
    **settings: Any,
) -> list[Run]:
    """Evaluate models on tasks: one run per model, written to a folder and returned.

    tasks: names, paths of YAML files, or Task objects. models: names ("demo/small"), ModelSpec or Model objects.
    settings: the fields of `Configuration`: limit, seed, name, out, roles, format, home, max_resident, replace; a role's
    model may also be a name or a Model object.

    Answers already in the store are not asked again. Samples that fail are counted in `run.n_failed`, not raised.
    Raises UsageError before anything is spent where the request cannot be carried out, and StoreError where answers
    cannot be kept.
    """
    objects = Objects()
    roles = {role: objects.model(model) for role, model in (settings.pop("roles", None) or {}).items()}
    configuration = Configuration(
        roles=roles,
        tasks=tuple(objects.task(task) for task in _as_list(tasks)),
        models=tuple(objects.model(model) for model in _as_list(models)),
        **settings,
    )
    runs: list[Run] = run_blocking(
        lambda: evaluate_configuration(configuration, progress=progress, objects=objects)
    )
    return runs


async def evaluate_configuration(
    configuration: Configuration, *, progress: ProgressReporter | None = None, objects: Objects | None = None
) -> list[Run]:
    """As `evaluate`, for a whole Configuration, inside a running event loop."""
    plans = make_plans(configuration, objects or Objects())
    say = progress.say if progress else None
    with Store.open(home_folder(configuration.home)) as store:
        async with Engine(store, max_resident=configuration.max_resident, on_event=say) as engine:
            return await _run_interruptibly(plans, engine, progress)


async def _run_interruptibly(
    plans: Sequence[Plan], engine: Engine, progress: ProgressReporter | None
) -> list[Run]:
    work = asyncio.create_task(_run_all(plans, engine, progress))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # Interrupted: what was sent is paid for, so it gets a moment to arrive and be stored.
        await engine.stop(grace=4.0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        raise
    except BaseException:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        raise


def run_blocking(make: Callable[[], Any]) -> Any:
    """Run a coroutine to its end, also where an event loop is already running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    outcome: Future[Any] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def work() -> Any:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await make()

    def target() -> None:
        try:
            outcome.set_result(asyncio.run(work()))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=target, name="evalwright-evaluate")
    thread.start()
    try:
        thread.join()
    except BaseException:
        # Interrupted while waiting: the work must not go on behind the person's back.
        for loop, task in running:
            with suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return outcome.result()


# -- ask and score ------------------------------------------------------------------------------------------------------


async def _run_all(plans: Sequence[Plan], engine: Engine, progress: ProgressReporter | None) -> list[Run]:
    """Remote models side by side, local ones one after another so that each gets whole batches."""
    remote, local = asyncio.Semaphore(REMOTE_AT_ONCE), asyncio.Semaphore(1)

    async def turn(plan: Plan) -> Run:
        async with local if isinstance(plan.model, LocalModel) else remote:
            return await _run_one(plan, engine, progress)

    tasks = [asyncio.create_task(turn(plan)) for plan in plans]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_one(plan: Plan, engine: Engine, progress: ProgressReporter | None) -> Run:
    began = time.monotonic()
    plan.started = datetime.now(UTC)
    door = engine.door({TARGET: plan.model, **plan.roles})
    tallies = [TaskTally([scorer.name for scorer in task.scorers], task.slices) for task in plan.tasks]
    with RunWriter(plan.folder) as writer:
        meter = _Meter(plan, door, progress, began)
        with meter:
            await _ask_all(plan, engine, door, writer, tallies, meter)
        return _finish(plan, meter, writer, tallies, time.monotonic() - began)


async def _ask_all(
    plan: Plan, engine: Engine, door: Door, writer: RunWriter, tallies: Sequence[TaskTally], meter: _Meter
) -> None:
    units = plan.units()
    loop = asyncio.get_running_loop()

    async def worker() -> None:
        breathed = loop.time()
        for position, number, index, draw in units:
            task = plan.tasks[number]
            record = await evaluate_sample(task, index, task.samples[index], draw, door)
            if _was_stopped(record):
                # What is in flight elsewhere may still arrive, so nobody ends the run: it will be cancelled.
                await asyncio.Event().wait()
            writer.add(position, record)
            tallies[number].add(record)
            meter.count(record)
            if loop.time() - breathed > 0.05:
                # Answers from the store arrive without waiting; the loop must still serve timers and signals.
                await asyncio.sleep(0)
                breathed = loop.time()

    crew = [asyncio.create_task(worker()) for _ in range(min(plan.total, engine.concurrency(plan.model)))]
    try:
        await asyncio.gather(*crew)
    finally:
        for member in crew:
            member.cancel()
        await asyncio.gather(*crew, return_exceptions=True)


def _was_stopped(record: SampleRecord) -> bool:
    """Whether the run was interrupted before this sample was answered and scored."""
    failures = [*record.score_failures.values(), *([record.failure] if record.failure else [])]
    return any(failure.kind == Cancelled.kind for failure in failures)


async def evaluate_sample(task: Task, index: int, sample: Sample, draw: int, ask: Ask) -> SampleRecord:
    """Answer one sample and score the answer. What fails is in the record, never in a score."""
    try:
        answer = await task.strategy(sample, ask, draw)
    except RequestFailed as error:
        return SampleRecord(task.name, index, draw, sample, None, {}, failure=error.failure)
    except EvalwrightError:
        raise  # the store or the configuration: not this sample's matter
    except Exception as error:
        failure = Failure("strategy error", "task", f"{type(error).__name__}: {error}")
        return SampleRecord(task.name, index, draw, sample, None, {}, failure=failure)
    scores, failures = await score_answer(task.scorers, sample, answer, ask)
    return SampleRecord(task.name, index, draw, sample, answer, scores, score_failures=failures)


async def score_answer(
    scorers: Sequence[Scorer], sample: Sample, answer: Answer, ask: Ask
) -> tuple[dict[str, Score], dict[str, Failure]]:
    """Scores and scorers' own failures, by scorer name. What is not a scorer's matter is raised: the store, a role."""
    scores: dict[str, Score] = {}
    failures: dict[str, Failure] = {}
    for scorer in scorers:
        try:
            made = scorer.function(sample, answer, ask) if scorer.asks else scorer.function(sample, answer)
            scores[scorer.name] = checked_score(await made if isawaitable(made) else made)
        except RequestFailed as error:
            failures[scorer.name] = error.failure
        except (ConfigurationError, StoreError):
            raise
        except Exception as error:
            failures[scorer.name] = Failure("scorer error", "scorer", f"{type(error).__name__}: {error}")
    return scores, failures


def checked_score(score: object) -> Score:
    """What a scorer gave, if it is a Score of finite numbers; else raises ScoringError."""
    if not isinstance(score, Score):
        raise ScoringError(f"The scorer must give a Score, not {type(score).__name__}.")
    for name, value in (("value", score.value), *score.parts.items()):
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ScoringError(f"The score's {name} must be a finite number, not {value!r}.")
    return score


class _Meter(AbstractContextManager["_Meter"]):
    """Counts finished samples and reports a few times a second."""

    def __init__(self, plan: Plan, door: Door, reporter: ProgressReporter | None, began: float) -> None:
        self.plan = plan
        self.door = door
        self.reporter = reporter
        self.began = began
        self.done = 0
        self.failed = 0
        self.usage = Usage()
        self._ticker: asyncio.Task[None] | None = None

    def count(self, record: SampleRecord) -> None:
        self.done += 1
        if record.answer is not None:
            self.usage = self.usage + record.answer.usage
        if record.failure is not None or record.score_failures:
            self.failed += 1

    def report(self, finished: bool = False) -> None:
        if self.reporter is not None:
            label = self.plan.spec.label or self.plan.model.name
            seconds = time.monotonic() - self.began
            self.reporter.update(
                Progress(
                    self.plan.id,
                    label,
                    self.plan.total,
                    self.done,
                    self.failed,
                    seconds,
                    self.door.counts,
                    finished,
                )
            )

    async def _tick(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(0.25)

    def __enter__(self) -> _Meter:
        if self.reporter is not None:
            self._ticker = asyncio.create_task(self._tick())
        return self

    def __exit__(self, *exception: object) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self.report(finished=True)


# -- aggregate and record -----------------------------------------------------------------------------------------------


def _finish(
    plan: Plan, meter: _Meter, writer: RunWriter, tallies: Sequence[TaskTally], seconds: float
) -> Run:
    tasks = []
    for task, tally in zip(plan.tasks, tallies, strict=True):
        if task.found_metrics is not None:
            task = replace(task, metrics=tuple(task.found_metrics(tally.names())))
        result = tally.result(task.name, task.version, task.metrics)
        tasks.append({**result.as_dict(), **task_record(task)})
    label = {"label": plan.spec.label} if plan.spec.label else {}
    data = {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": plan.id,
        "identity": plan.identity,
        "started": plan.started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "model": {**plan.model.describe(), **label},
        "roles": {role: model.describe() for role, model in plan.roles.items()},
        "configuration": plan.configuration,
        "environment": environment(),
        "usage": {**meter.door.counts.as_dict(), "answers": meter.usage.as_dict()},
        "tasks": tasks,
    }
    if groups := group_records(tasks):
        data["groups"] = groups
    writer.finish(data)
    run = open_run(plan.folder)
    keep_scores(run, {task.name: tally.table() for task, tally in zip(plan.tasks, tallies, strict=True)})
    return run


def task_record(task: Task) -> dict[str, Any]:
    """What `run.json` keeps of a task's definition, enough to score its records again."""
    return {
        "description": task.description,
        "metadata": dict(task.metadata),
        "definition": dict(task.definition),
        "content_hash": task.samples.content_hash,
        "draws": task.draws,
        "slice_keys": list(task.slices),
        **rules_record(task.scorers, task.metrics),
    }


def rules_record(scorers: Sequence[Scorer], metrics: Sequence[MetricSpec]) -> dict[str, Any]:
    """What `run.json` keeps of how answers were scored."""
    return {
        "scorers": [
            {"name": scorer.name, "kind": scorer.kind, "options": dict(scorer.options)} for scorer in scorers
        ],
        "metric_specs": [
            {
                "label": spec.label,
                "kind": spec.kind,
                "scorer": spec.scorer,
                "options": dict(spec.options),
                **({"lower_is_better": True} if spec.lower_is_better else {}),
            }
            for spec in metrics
        ],
    }


def _as_list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
