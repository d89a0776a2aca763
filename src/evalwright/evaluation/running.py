"""Carries out a plan: ask -> score -> aggregate -> record.

A question becomes a number here: `scoring.evaluate_sample` forms an answer and scores it,
`_ask_all` does so for many samples, `recording.finish_run` turns the scores into metrics and writes
the record. Without stopping rules all models are evaluated concurrently, with them in rounds.
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
from evalwright.core.samples import Sample, SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.budget import SPENT, Budget
from evalwright.engine.collecting import rare_collections
from evalwright.engine.engine import Engine, RoleClient
from evalwright.engine.event_loop import run_in_loop
from evalwright.engine.store import Store
from evalwright.evaluation.budgets import open_budget
from evalwright.evaluation.interruption import (
    EndedByCancel,
    cancellable,
    ended_by_cancel,
)
from evalwright.evaluation.planning import Plan, PlannedRun
from evalwright.evaluation.recording import (
    Session,
    WorkOfAll,
    finish_run,
    stopping_record,
)
from evalwright.evaluation.schedule import (
    SampleSlice,
    Schedule,
    group_models,
    write_plans,
)
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.model_interface import LocalModel
from evalwright.runs.buckets import BucketAddress
from evalwright.runs.callbacks import Callbacks
from evalwright.runs.progress import ProgressReporter, Unfailing
from evalwright.runs.reader import Run
from evalwright.tools.shared_sources import close_shared_sources

Made = TypeVar("Made")

Workers = Callable[[Session], Awaitable[WorkOfAll]]
"""Returns what all workers of a run did, at the end of the session that writes it."""

LAST_ANSWERS = 60.0
"""Seconds in which responses may arrive if a run ends because nothing can be written."""
GRACE = 4.0
"""Seconds in which requests that were sent before an interruption may be answered."""

MANY_SAMPLES = 100_000
"""Number of samples from which writing the record takes seconds, so that a message announces it."""

REMOTE_AT_ONCE = 8
"""How many remote models are evaluated concurrently; local ones take turns."""


async def run_plan(
    plan: Plan,
    store: Store,
    *,
    progress: ProgressReporter | None = None,
    callbacks: Callbacks | None = None,
    grace: float = GRACE,
) -> list[Run]:
    """Carry out a plan: one run per model, written to a folder and returned.

    Args:
        plan: what is done.
        store: keeps the answers, and has those of earlier runs.
        progress: hears how far the runs are.
        callbacks: hear of runs and samples; what failed of them is in their `faults`.
        grace: seconds in which requests that were sent may be answered, and their answers stored,
            once this is cancelled.

    Raises:
        StoreError: answers cannot be stored.
    """

    async def work(
        engine: Engine, reporter: ProgressReporter | None, budget: Budget | None
    ) -> list[Run]:
        return await run_all(
            plan.runs, engine, reporter, budget, callbacks or Callbacks()
        )

    return await carry_out(plan, store, work, progress=progress, grace=grace)


async def carry_out(
    plan: Plan,
    store: Store,
    work: Callable[
        [Engine, ProgressReporter | None, Budget | None], Coroutine[Any, Any, Made]
    ],
    *,
    progress: ProgressReporter | None,
    grace: float,
) -> Made:
    """Do some work with an engine and the budget of a plan, and return its result.

    Args:
        plan: what is done.
        store: keeps the answers.
        work: the work; it gets a reporter that never fails.
        progress: hears how far the runs are.
        grace: see `run_plan`.
    """
    reporter = Unfailing(progress) if progress else None
    say = reporter.say if reporter else None
    if say:
        for remark in plan.remarks:
            say(remark)
    with rare_collections():
        async with (
            Engine(
                store,
                max_resident=plan.max_resident,
                resend_empty=plan.resend_empty,
                asked_in=plan.asked_in,
                on_event=say,
            ) as engine,
            open_budget(plan.budget, store) as budget,
        ):
            try:
                return await interruptible(
                    work(engine, reporter, budget), engine, grace, say
                )
            finally:
                await close_shared_sources()


async def interruptible(
    work: Coroutine[Any, Any, Made],
    engine: Engine,
    grace: float = GRACE,
    say: Callable[[str], None] | None = None,
) -> Made:
    """Return the work's result.

    If it is cancelled, requests that were sent are paid for, so they get a moment to be answered
    and stored.
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


def _is_in_event_loop() -> bool:
    """Tell whether an event loop runs in this thread.

    Apart from its caller, so that an error raised there is not shown as raised "during handling"
    of the RuntimeError for a missing loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_blocking(make: Callable[[], Any]) -> Any:
    """Run a coroutine to its end, even if an event loop is already running (a notebook).

    Args:
        make: makes the coroutine.

    Returns:
        What the coroutine returns.

    Raises:
        KeyboardInterrupt: the user interrupted it.
    """

    async def cancelled_by_signals() -> Any:
        with cancellable():
            return await make()

    if not _is_in_event_loop():
        try:
            return run_in_loop(cancelled_by_signals())
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
            outcome.set_result(run_in_loop(work()))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=target, name="evalwright-evaluate")
    thread.start()
    try:
        thread.join()
    except BaseException:
        # Interrupted while waiting: the work must not continue behind the user's back.
        for loop, task in running:
            with suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return outcome.result()


# -- ask and score ---------------------------------------------------------------------


async def run_all(
    plans: Sequence[PlannedRun],
    engine: Engine,
    progress: ProgressReporter | None,
    budget: Budget | None,
    callbacks: Callbacks,
    workers: Workers | None = None,
) -> list[Run]:
    """Ask, score and record; `workers` returns what other processes did for the runs before."""
    if budget is None and not plans[0].rules:

        async def run_at_once(plan: PlannedRun) -> Run:
            with Session(plan, engine, progress, callbacks) as session:
                await callbacks.started(plan)
                with session.meter:
                    await _ask_all(session, engine, plan.units())
                run = await _finish(session, workers=workers)
            await callbacks.finished(run)
            return run

        return await _in_turns(
            [partial(run_at_once, plan) for plan in plans],
            [is_local(plan) for plan in plans],
        )
    write_plans(plans)
    groups = group_models(plans, budget)
    work = [
        partial(
            _run_in_step, plans, members, engine, progress, budget, callbacks, workers
        )
        for members in groups
    ]
    local = [any(is_local(plans[number]) for number in members) for members in groups]
    run_by_number: dict[int, Run] = {}
    for runs in await _in_turns(work, local):
        run_by_number |= runs
    return [run_by_number[number] for number in range(len(plans))]


async def _run_in_step(
    plans: Sequence[PlannedRun],
    members: Sequence[int],
    engine: Engine,
    progress: ProgressReporter | None,
    budget: Budget | None,
    callbacks: Callbacks,
    workers: Workers | None,
) -> dict[int, Run]:
    """Evaluate some of the models together, a slice of the samples at a time, until rules decide.

    If the budget is spent first, the rest is looked up in the store only.
    """
    schedule = Schedule(plans, members)
    with ExitStack() as stack:
        sessions = {
            number: stack.enter_context(
                Session(plans[number], engine, progress, callbacks)
            )
            for number in members
        }
        for number in members:
            await callbacks.started(plans[number])
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
                session, stopping_record(schedule, number, session, budget), workers
            )
            for number, session in sessions.items()
        }
    for run in runs.values():
        await callbacks.finished(run)
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
    """Carry out one round; `backwards` starts with the last model, which is still in memory."""

    async def ask(number: int) -> None:
        plan = sessions[number].plan
        units = chain.from_iterable(
            plan.units_between(sample_slice.task, sample_slice.start, sample_slice.end)
            for sample_slice in work[number]
        )
        await _ask_all(
            sessions[number], engine, units, budget, partial(schedule.add, number)
        )

    numbers = sorted(work, reverse=backwards)
    local = [is_local(sessions[number].plan) for number in numbers]
    await _in_turns([partial(ask, number) for number in numbers], local)


async def _finish(
    session: Session,
    stopping: Mapping[str, Any] | None = None,
    workers: Workers | None = None,
) -> Run:
    """Finish a run in a thread.

    Metrics and record of a million samples take a minute, for which an interruption does not wait.
    """
    if workers is not None:
        session.work_of_all = await workers(session)
    if session.meter.done >= MANY_SAMPLES and session.meter.reporter is not None:
        session.meter.reporter.say(
            f"Computing the metrics and writing the record of {session.meter.done:,}"
            " answers."
        )
    try:
        with ended_by_cancel():
            run = finish_run(session, stopping)
    except EndedByCancel:
        await asyncio.Event().wait()
        raise  # never reached: this task is cancelled
    if session.plan.push is not None:
        await asyncio.to_thread(_push, run, session.plan.push)
    return run


def _push(run: Run, folder: BucketAddress) -> None:
    """Copy a run into a folder of a bucket. Raises RunError and BucketError."""
    from evalwright.runs.bucket_runs import push_run

    push_run(run, folder)


def is_local(plan: PlannedRun) -> bool:
    """Return whether the model under test answers in this process."""
    return isinstance(plan.model, LocalModel)


async def _in_turns(
    work: Sequence[Callable[[], Awaitable[Made]]], local: Sequence[bool]
) -> list[Made]:
    """Run remote models concurrently, local ones one by one so that each gets whole batches."""
    side_by_side = asyncio.Semaphore(REMOTE_AT_ONCE)
    one_by_one = asyncio.Semaphore(1)

    async def turn(make: Callable[[], Awaitable[Made]], is_local: bool) -> Made:
        async with one_by_one if is_local else side_by_side:
            return await make()

    return await at_the_same_time(
        turn(make, is_local) for make, is_local in zip(work, local, strict=True)
    )


async def at_the_same_time(work: Iterable[Coroutine[Any, Any, Made]]) -> list[Made]:
    """Return all results; if one part fails or this is cancelled, cancel the other parts.

    It waits until they have ended.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
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
    """Evaluate these units and record them.

    `also` is called with each record and its task's number. Once the budget is spent, only units
    whose responses are all stored are recorded; what has begun is finished.
    """
    turns = engine.loop_turns()
    last_answers = LastAnswers(engine)

    async def units_from(first: tuple[int, int, int, int]) -> None:
        for position, number, index, draw in chain((first,), units):
            await turns.take()
            task = session.plan.tasks[number]
            record = await paid_sample(task, index, draw, session.door, budget)
            if record is None:
                continue
            session.add(position, number, record)
            if also is not None:
                also(number, record)
            await session.writer.has_room()

    width = engine.concurrency(session.plan.model)
    await at_the_same_time(
        last_answers.awaited(units_from(first)) for first in islice(units, width)
    )


class LastAnswers:
    """What is in flight when nothing can be written any more, which ends the run.

    It is paid for, and may be saved elsewhere.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ending = False

    async def awaited(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; if it cannot write, raise only once what is in flight has arrived."""
        try:
            await work
        except (StoreError, RunError):
            if self._ending:
                await asyncio.Event().wait()
            self._ending = True
            await self._engine.stop(LAST_ANSWERS)
            raise


async def paid_sample(
    task: Task, index: int, draw: int, door: RoleClient, budget: Budget | None
) -> SampleRecord | None:
    """Evaluate one sample; return None if the budget does not allow it.

    It never returns if the run was interrupted before: what is in flight elsewhere may still
    arrive, so that nothing here ends the run, which will be cancelled.
    """
    sample = task.samples[index]
    record: SampleRecord | None
    if budget is None:
        record = await evaluate_sample(task, index, sample, draw, door)
    else:
        record = await _within_budget(task, index, sample, draw, door, budget)
    if record is not None and _was_stopped(record):
        await asyncio.Event().wait()
    return record


async def _within_budget(
    task: Task, index: int, sample: Sample, draw: int, door: RoleClient, budget: Budget
) -> SampleRecord | None:
    reservation = budget.reservation()
    try:
        record = await evaluate_sample(
            task, index, sample, draw, door.paid_by(reservation)
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
    """Return whether the run was interrupted before this sample was answered and scored."""
    if record.failure is None and not record.score_failures:
        return False
    return any(failure.kind == Cancelled.kind for failure in _failures(record))
