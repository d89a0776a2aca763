"""The one place where a run is put together: resolve -> plan -> ask -> score -> aggregate -> record.

A question becomes a number here: `evaluate_sample` forms an answer and scores it, `_ask_all` does so for every sample,
`_finish` turns the scores into metrics and writes the record.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.configuration import Configuration, ModelSpec, home_folder
from evalwright.core.asking import Ask
from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    EvalwrightError,
    Failure,
    RequestFailed,
    RunError,
)
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.engine.engine import Counts, Door, Engine
from evalwright.engine.store import Store
from evalwright.models.base import LocalModel, Model, fingerprint_of
from evalwright.models.registry import open_model
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.environment import environment
from evalwright.runs.progress import Progress, ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter
from evalwright.strategies.generate import TARGET
from evalwright.tasks.loading import load_tasks

TaskLike = str | Path | Task
ModelLike = str | ModelSpec | Model

REMOTE_AT_ONCE = 8
"""How many remote models are evaluated side by side; local ones take turns."""


@dataclass(slots=True)
class Plan:
    """One run before it is asked: everything is resolved and checked, and nothing has been spent."""

    id: str
    folder: Path
    model: Model
    spec: ModelSpec
    roles: Mapping[str, Model]
    tasks: Sequence[Task]
    orders: Sequence[array[int]]
    identity: str
    configuration: Mapping[str, Any]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def total(self) -> int:
        """Answers wanted: samples times draws, over all tasks."""
        return sum(len(order) * task.draws for task, order in zip(self.tasks, self.orders, strict=True))

    def units(self) -> Iterator[tuple[int, int, int, int]]:
        """(place in the record, task number, sample index, draw) in the order of asking."""
        offset = 0
        for number, (task, order) in enumerate(zip(self.tasks, self.orders, strict=True)):
            for index in order:
                for draw in range(task.draws):
                    yield offset + index * task.draws + draw, number, index, draw
            offset += len(task.samples) * task.draws


def evaluate(
    tasks: TaskLike | Sequence[TaskLike],
    models: ModelLike | Sequence[ModelLike],
    *,
    progress: ProgressReporter | None = None,
    **settings: Any,
) -> list[Run]:
    """Evaluate models on tasks: one run per model, written to a folder and returned.

    tasks: names, paths of YAML files, or Task objects. models: names ("demo/small"), ModelSpec or Model objects.
    settings: the fields of `Configuration`: limit, seed, name, out, roles, format, home, max_resident, replace.

    Answers already in the store are not asked again. Samples that fail are counted in `run.n_failed`, not raised.
    Raises UsageError before anything is spent where the request cannot be carried out, and StoreError where answers
    cannot be kept.
    """
    objects = _Objects()
    configuration = Configuration(
        tasks=tuple(objects.task(task) for task in _as_list(tasks)),
        models=tuple(objects.model(model) for model in _as_list(models)),
        **settings,
    )
    return run_blocking(lambda: evaluate_configuration(configuration, progress=progress, objects=objects))


async def evaluate_configuration(
    configuration: Configuration, *, progress: ProgressReporter | None = None, objects: _Objects | None = None
) -> list[Run]:
    """As `evaluate`, for a whole Configuration, inside a running event loop."""
    plans = make_plans(configuration, objects or _Objects())
    store = Store.open(home_folder(configuration.home))
    async with Engine(
        store, max_resident=configuration.max_resident, on_event=progress.say if progress else None
    ) as engine:
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
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(make()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="evalwright-evaluate")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


# -- resolve and plan ---------------------------------------------------------------------------------------------------


class _Objects:
    """Task and Model objects passed in Python, which a Configuration can only name."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.models: dict[str, Model] = {}

    def task(self, task: TaskLike) -> str:
        if isinstance(task, Task):
            self.tasks[task.name] = task
            return task.name
        return str(task)

    def model(self, model: ModelLike) -> ModelSpec:
        if isinstance(model, ModelSpec):
            return model
        if isinstance(model, Model):
            self.models[model.name] = model
            return ModelSpec(model.name)
        return ModelSpec(model)

    def open(self, spec: ModelSpec) -> Model:
        return self.models.get(spec.model) or open_model(spec.model, spec.arguments)


def make_plans(configuration: Configuration, objects: _Objects) -> list[Plan]:
    """Resolve and check everything, for every model, before anything is asked. Raises UsageError."""
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to evaluate: name at least one task. `evalwright tasks list` shows them."
        )
    if not configuration.models:
        raise ConfigurationError(
            "Nobody to ask: name at least one model with --model, for example demo/small."
        )
    if configuration.limit is not None and configuration.limit < 1:
        raise ConfigurationError(f"The limit must be at least 1, not {configuration.limit}.")
    roles = {role: objects.open(spec) for role, spec in configuration.roles.items()}
    plans = [_make_plan(configuration, spec, roles, objects) for spec in configuration.models]
    seen: dict[Path, Plan] = {}
    for plan in plans:
        if plan.folder in seen:
            raise ConfigurationError(
                f"Two of the models would write the same run '{plan.id}': give them labels."
            )
        seen[plan.folder] = plan
    for plan in plans:
        _check_folder(plan, configuration.replace)
    return plans


def _make_plan(
    configuration: Configuration, spec: ModelSpec, roles: Mapping[str, Model], objects: _Objects
) -> Plan:
    model = objects.open(spec)
    model.check()
    for other in roles.values():
        other.check()
    tasks = _load(configuration, "chat" in model.abilities, objects)
    for task in tasks:
        _check_abilities(task, model, roles)
    orders = [_order(len(task.samples), configuration.seed, configuration.limit) for task in tasks]
    identity = fingerprint_of(
        {
            "model": model.fingerprint,
            "roles": {role: other.fingerprint for role, other in roles.items()},
            "tasks": [[task.name, task.definition, task.samples.content_hash] for task in tasks],
            "limit": configuration.limit,
            "seed": configuration.seed,
        }
    )
    run_id = _run_id(configuration, spec, identity)
    return Plan(
        id=run_id,
        folder=Path(configuration.out) / run_id,
        model=model,
        spec=spec,
        roles=roles,
        tasks=tasks,
        orders=orders,
        identity=identity,
        configuration=replace(configuration, models=(spec,), name=run_id).as_dict(),
    )


def _load(configuration: Configuration, chat: bool, objects: _Objects) -> list[Task]:
    tasks: list[Task] = []
    for name in configuration.tasks:
        if name in objects.tasks:
            tasks.append(objects.tasks[name])
        else:
            tasks.extend(load_tasks(name, prompt_format=configuration.format, chat=chat))
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"The task '{name}' is asked for twice.")
    return tasks


def _check_abilities(task: Task, model: Model, roles: Mapping[str, Model]) -> None:
    missing = task.strategy.needs - model.abilities
    if missing:
        raise AbilityError(
            f"The task '{task.name}' needs a model that can do: {', '.join(sorted(missing))}; "
            f"'{model.name}' can do: {', '.join(sorted(model.abilities))}."
        )
    for scorer in task.scorers:
        for role in scorer.roles:
            if role not in roles and role != TARGET:
                raise ConfigurationError(
                    f"The scorer '{scorer.name}' of the task '{task.name}' asks a model in the role '{role}': "
                    f"name it with --role {role}=provider/name."
                )


def _order(n: int, seed: int, limit: int | None) -> array[int]:
    """A random order of the samples, fixed by the seed alone; a limit takes its beginning."""
    order = array("q", range(n))
    random.Random(seed).shuffle(order)
    return order if limit is None else order[:limit]


def _run_id(configuration: Configuration, spec: ModelSpec, identity: str) -> str:
    model = slug(spec.label or spec.model)
    if configuration.name:
        return (
            slug(configuration.name)
            if len(configuration.models) == 1
            else f"{slug(configuration.name)}-{model}"
        )
    names = [Path(name).stem if name.endswith((".yaml", ".yml")) else name for name in configuration.tasks]
    tasks = slug("+".join(names))
    return f"{tasks[:60]}--{model[:60]}--{identity[:8]}"


def slug(text: str) -> str:
    """A text as a file name: letters, digits, dot, dash, plus and underscore; never empty, hidden or a way out."""
    kept = "".join(char if char.isalnum() or char in "._+-" else "-" for char in text)
    return kept.strip(".-") or "run"


def _check_folder(plan: Plan, may_replace: bool) -> None:
    if (plan.folder / RUN_FILE).exists() and not may_replace:
        try:
            old = open_run(plan.folder).data.get("identity")
        except RunError:
            return
        if old != plan.identity:
            raise ConfigurationError(
                f"The run '{plan.id}' in '{plan.folder.parent}' was made from another configuration (model, task, data, "
                f"seed or limit). Choose another --name, or replace it with --replace."
            )


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
        return _finish(plan, door.counts, writer, tallies, time.monotonic() - began)


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
    """Scores and scorers' own failures, by scorer name."""
    scores: dict[str, Score] = {}
    failures: dict[str, Failure] = {}
    for scorer in scorers:
        try:
            made = scorer.function(sample, answer, ask) if scorer.asks else scorer.function(sample, answer)
            scores[scorer.name] = await made if isawaitable(made) else made
        except RequestFailed as error:
            failures[scorer.name] = error.failure
        except Exception as error:
            failures[scorer.name] = Failure("scorer error", "scorer", f"{type(error).__name__}: {error}")
    return scores, failures


class _Meter(AbstractContextManager["_Meter"]):
    """Counts finished samples and reports a few times a second."""

    def __init__(self, plan: Plan, door: Door, reporter: ProgressReporter | None, began: float) -> None:
        self.plan = plan
        self.door = door
        self.reporter = reporter
        self.began = began
        self.done = 0
        self.failed = 0
        self._ticker: asyncio.Task[None] | None = None

    def count(self, record: SampleRecord) -> None:
        self.done += 1
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
    plan: Plan, counts: Counts, writer: RunWriter, tallies: Sequence[TaskTally], seconds: float
) -> Run:
    tasks = []
    for task, tally in zip(plan.tasks, tallies, strict=True):
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
        "usage": counts.as_dict(),
        "tasks": tasks,
    }
    writer.finish(data)
    return open_run(plan.folder)


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
            {"label": spec.label, "kind": spec.kind, "scorer": spec.scorer, "options": dict(spec.options)}
            for spec in metrics
        ],
    }


def _as_list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
