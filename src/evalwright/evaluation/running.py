"""The one place where a run is put together: plan -> ask -> score -> aggregate -> record.

A question becomes a number here: `scoring.evaluate_sample` forms an answer and scores it,
`_ask_all` does so for many samples, `recording.finish_run` turns the scores into metrics and writes
the record. Without stopping rules every model is asked at once, with them in rounds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from evalwright.core.errors import (
    Cancelled,
    Failure,
    RunError,
    StoreError,
)
from evalwright.core.private import home_folder
from evalwright.core.samples import SampleRecord
from evalwright.engine.budget import SPENT, Budget
from evalwright.engine.collecting import seldom_collecting
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.engine.shared_budget import SharedBudget
from evalwright.evaluation.budgets import make_budget
from evalwright.evaluation.configuration import Configuration, as_list
from evalwright.evaluation.effects import check_sandbox
from evalwright.evaluation.interruption import (
    EndedByCancel,
    at_once,
    cancellable,
    ended_by_cancel,
)
from evalwright.evaluation.objects import ModelLike, Objects, TaskLike, are_models
from evalwright.evaluation.planning import Plan, make_plans
from evalwright.evaluation.recording import Session, finish_run, stopping_record
from evalwright.evaluation.schedule import SampleSlice, Schedule, in_step, write_plans
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.base import LocalModel
from evalwright.models.local.cluster import Cluster, On
from evalwright.runs.callbacks import Callbacks, check_callbacks
from evalwright.runs.progress import ProgressReporter, Unfailing, notebook_progress
from evalwright.runs.reader import Run
from evalwright.trackers import open_trackers

Made = TypeVar("Made")

LAST_ANSWERS = 60.0
"""Seconds in which responses may arrive where a run ends because nothing can be written."""
GRACE = 4.0
"""Seconds in which requests that were sent before an interruption may be answered."""

MANY_SAMPLES = 100_000
"""From so many on it is said that a record is being written, which takes seconds."""

REMOTE_AT_ONCE = 8
"""How many remote models are evaluated side by side; local ones take turns."""


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
    asked, under_test = (
        list(one) if isinstance(one, Iterator) else one for one in (tasks, models)
    )
    if are_models(asked):
        asked, under_test = under_test, asked
    objects = Objects()
    shown = progress or notebook_progress()
    on = On.given(
        *(settings.pop(key, None) for key in ("on", "replicas", "gpus_per_replica"))
    )
    told = Callbacks((*check_callbacks(callbacks), *open_trackers(as_list(track))))
    configuration = objects.configuration(asked, under_test, settings)
    runs: list[Run] = run_blocking(
        lambda: evaluate_configuration(
            configuration, progress=shown, objects=objects, callbacks=told, on=on
        )
    )
    told.warn()
    return runs


async def evaluate_configuration(
    configuration: Configuration,
    *,
    progress: ProgressReporter | None = None,
    objects: Objects | None = None,
    grace: float = GRACE,
    sandbox: str | None = None,
    callbacks: Callbacks | None = None,
    on: On | None = None,
) -> list[Run]:
    """As `evaluate`, for a whole Configuration, inside a running event loop.

    grace: seconds in which requests that were sent may be answered, and their answers stored, once
    this is cancelled. sandbox: what was chosen for this evaluation alone, which is an error where
    no scorer runs programs. callbacks: told of runs and samples, with what failed of them in
    `faults`. on: where local models have their replicas.
    """
    with ExitStack() as stack:
        objects = objects or Objects()
        if on is not None:
            objects.cluster = stack.enter_context(
                Cluster(on, configuration.max_resident)
            )
        progress = Unfailing(progress) if progress else None
        with at_once():
            plans = make_plans(configuration, objects)
            check_sandbox(
                sandbox,
                [
                    scorer
                    for plan in plans
                    for task in plan.tasks
                    for scorer in task.scorers
                ],
            )
            for plan in plans:
                plan.tasks = [objects.placed(task) for task in plan.tasks]
        models = [(plan.spec, plan.model) for plan in plans]
        budget = make_budget(
            configuration,
            models,
            plans[0].roles,
            [plan.shard for plan in plans if plan.shard],
        )
        say = progress.say if progress else None
        if say and plans[0].left_out:
            say(plans[0].left_out)
        for model in {plan.model.name: plan.model for plan in plans}.values():
            if say and not model.is_known:
                say(
                    f"It cannot be known what answers behind '{model.name}', so its"
                    " responses are not shared with other runs. To share them, give"
                    f" what answers a name: {model.naming}."
                )
        with open_store(home_folder(configuration.home)) as store, seldom_collecting():
            async with Engine(
                store,
                max_resident=configuration.max_resident,
                resend_empty=configuration.resend_empty,
                on_event=say,
            ) as engine:
                if isinstance(budget, SharedBudget):
                    budget.open(store)
                try:
                    return await interruptible(
                        _run_all(
                            plans, engine, progress, budget, callbacks or Callbacks()
                        ),
                        engine,
                        grace,
                        say,
                    )
                finally:
                    if isinstance(budget, SharedBudget):
                        with suppress(
                            StoreError
                        ):  # what was set aside then counts as spent
                            await budget.close()


async def interruptible(
    work: Coroutine[Any, Any, Made],
    engine: Engine,
    grace: float = GRACE,
    say: Callable[[str], None] | None = None,
) -> Made:
    """The work's result.

    Where this is cancelled, what was sent is paid for, so it gets a moment to arrive and be stored.
    """
    running = asyncio.create_task(work)
    try:
        return await asyncio.shield(running)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError):
            if say and grace:
                say(
                    "Interrupted: answers to requests that were sent are kept if they"
                    f" arrive within {grace:g} s."
                )
            await engine.stop(grace=grace)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        raise


def run_blocking(make: Callable[[], Any]) -> Any:
    """Run a coroutine to its end, also where an event loop is already running (a notebook)."""

    async def cancelled_by_signals() -> Any:
        with cancellable():
            return await make()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        try:
            return asyncio.run(cancelled_by_signals())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
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


# -- ask and score ---------------------------------------------------------------------


async def _run_all(
    plans: Sequence[Plan],
    engine: Engine,
    progress: ProgressReporter | None,
    budget: Budget | None,
    told: Callbacks,
) -> list[Run]:
    if budget is None and not plans[0].rules:

        async def whole(plan: Plan) -> Run:
            with Session(plan, engine, progress, told) as session:
                await told.started(plan)
                with session.meter:
                    await _ask_all(session, engine, plan.units())
                run = await _finish(session)
            await told.finished(run)
            return run

        return await _in_turns(
            [partial(whole, plan) for plan in plans],
            [_is_local(plan) for plan in plans],
        )
    write_plans(plans)
    groups = in_step(plans, budget)
    work = [
        partial(_run_in_step, plans, members, engine, progress, budget, told)
        for members in groups
    ]
    local = [any(_is_local(plans[number]) for number in members) for members in groups]
    found: dict[int, Run] = {}
    for runs in await _in_turns(work, local):
        found |= runs
    return [found[number] for number in range(len(plans))]


async def _run_in_step(
    plans: Sequence[Plan],
    members: Sequence[int],
    engine: Engine,
    progress: ProgressReporter | None,
    budget: Budget | None,
    told: Callbacks,
) -> dict[int, Run]:
    """Some of the models together, a stretch at a time, until their rules are decided.

    Where the budget is spent before, what is left is looked up in the store alone.
    """
    schedule = Schedule(plans, members)
    with ExitStack() as stack:
        sessions = {
            number: stack.enter_context(Session(plans[number], engine, progress, told))
            for number in members
        }
        for number in members:
            await told.started(plans[number])
        with ExitStack() as meters:
            for session in sessions.values():
                meters.enter_context(session.meter)
            for count, work in enumerate(schedule.rounds(budget)):
                await _ask_round(
                    sessions, engine, schedule, work, budget, backwards=count % 2 == 1
                )
                schedule.look()
                for number, session in sessions.items():
                    session.meter.state = schedule.state(number)
        runs = {
            number: await _finish(
                session, stopping_record(schedule, number, session, budget)
            )
            for number, session in sessions.items()
        }
    for run in runs.values():
        await told.finished(run)
    return runs


async def _ask_round(
    sessions: Mapping[int, Session],
    engine: Engine,
    schedule: Schedule,
    work: Mapping[int, Sequence[SampleSlice]],
    budget: Budget | None,
    *,
    backwards: bool,
) -> None:
    """One round. backwards: the last model first, so that the one that is still in memory goes
    on.
    """

    async def ask(number: int) -> None:
        plan = sessions[number].plan
        units = chain.from_iterable(
            plan.stretch(part.task, part.start, part.end) for part in work[number]
        )
        await _ask_all(
            sessions[number], engine, units, budget, partial(schedule.add, number)
        )

    numbers = sorted(work, reverse=backwards)
    local = [_is_local(sessions[number].plan) for number in numbers]
    await _in_turns([partial(ask, number) for number in numbers], local)


async def _finish(session: Session, stopping: Mapping[str, Any] | None = None) -> Run:
    """As `finish_run`.

    Metrics and record of a million samples take a minute, which an interruption does not wait for.
    """
    if session.meter.done >= MANY_SAMPLES and session.meter.reporter is not None:
        session.meter.reporter.say(
            f"Computing the metrics and writing the record of {session.meter.done:,}"
            " answers."
        )
    try:
        with ended_by_cancel():
            return finish_run(session, stopping)
    except EndedByCancel:
        await asyncio.Event().wait()
        raise  # never: this is cancelled


def _is_local(plan: Plan) -> bool:
    return isinstance(plan.model, LocalModel)


async def _in_turns(
    work: Sequence[Callable[[], Awaitable[Made]]], local: Sequence[bool]
) -> list[Made]:
    """Remote models side by side, local ones one after another so that each gets whole batches."""
    side_by_side = asyncio.Semaphore(REMOTE_AT_ONCE)
    one_by_one = asyncio.Semaphore(1)

    async def turn(make: Callable[[], Awaitable[Made]], alone: bool) -> Made:
        async with one_by_one if alone else side_by_side:
            return await make()

    return await at_the_same_time(
        turn(make, alone) for make, alone in zip(work, local, strict=True)
    )


async def at_the_same_time(work: Iterable[Coroutine[Any, Any, Made]]) -> list[Made]:
    """What all of it gives; where one part fails or this is cancelled, the others are cancelled and
    waited for.
    """
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask_all(
    session: Session,
    engine: Engine,
    units: Iterator[tuple[int, int, int, int]],
    budget: Budget | None = None,
    also: Callable[[int, SampleRecord], None] | None = None,
) -> None:
    """Ask and score these units and record them. also: told of each record, with its task's number.

    Once the budget is spent, only units whose responses are all stored are recorded; what was begun
    is finished.
    """
    turns = engine.loop_turns()
    ending = False

    async def worker(first: tuple[int, int, int, int]) -> None:
        nonlocal ending
        try:
            await units_from(first)
        except (StoreError, RunError):
            # Nothing can be written any more, which ends the run. What is in flight is paid for,
            # and may be kept elsewhere.
            if ending:
                await asyncio.Event().wait()
            ending = True
            await engine.stop(LAST_ANSWERS)
            raise

    async def units_from(first: tuple[int, int, int, int]) -> None:
        for position, number, index, draw in chain((first,), units):
            await turns.take()
            record = await _paid_sample(session, number, index, draw, budget)
            if record is None:
                continue
            if _was_stopped(record):
                # What is in flight elsewhere may still arrive, so nothing here ends the run: it
                # will be cancelled.
                await asyncio.Event().wait()
            session.add(position, number, record)
            if also is not None:
                also(number, record)
            await session.writer.has_room()

    width = engine.concurrency(session.plan.model)
    await at_the_same_time(worker(first) for first in islice(units, width))


async def _paid_sample(
    session: Session, number: int, index: int, draw: int, budget: Budget | None
) -> SampleRecord | None:
    """One sample answered and scored; None where the budget did not allow for it."""
    task = session.plan.tasks[number]
    sample = task.samples[index]
    if budget is None:
        return await evaluate_sample(task, index, sample, draw, session.door)
    reservation = budget.reservation()
    try:
        record = await evaluate_sample(
            task, index, sample, draw, session.door.paid_by(reservation)
        )
    finally:
        reservation.close()
    refused = any(failure.kind == SPENT for failure in _failures(record))
    return None if refused or reservation.refused else record


def _failures(record: SampleRecord) -> list[Failure]:
    return [
        *record.score_failures.values(),
        *([record.failure] if record.failure else []),
    ]


def _was_stopped(record: SampleRecord) -> bool:
    """Whether the run was interrupted before this sample was answered and scored."""
    if record.failure is None and not record.score_failures:
        return False
    return any(failure.kind == Cancelled.kind for failure in _failures(record))
