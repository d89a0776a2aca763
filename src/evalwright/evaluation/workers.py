"""A run made by workers: processes on any hosts that share nothing but the store.

Every worker makes the same plan, and takes slices of it (`slicing.py`) by the claims in the store
(`engine/slices.py`). A slice is evaluated as in any run, but its records are dropped: when all
slices are done, one worker makes the ordinary run, for which every response is in the store, and
writes it. The others wait for that. Whatever a dead worker had claimed, another one takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from evalwright.core.errors import StoreError
from evalwright.core.postgres import store_url
from evalwright.engine.budget import Budget
from evalwright.engine.claims import process_of
from evalwright.engine.engine import Engine
from evalwright.engine.shared_budget import SharedBudget
from evalwright.engine.slices import SharedSlices, SliceCounts
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED
from evalwright.evaluation.planning import Plan, PlannedRun
from evalwright.evaluation.recording import Meter, Session, WorkOfAll
from evalwright.evaluation.running import (
    GRACE,
    REMOTE_AT_ONCE,
    LastAnswers,
    at_the_same_time,
    carry_out,
    is_local,
    paid_sample,
    run_all,
)
from evalwright.evaluation.slicing import SlicedRun, Unit, cut_slices
from evalwright.evaluation.worker_record import WorkerTally, models_apart, work_of_all
from evalwright.evaluation.worker_rounds import (
    JoinedRound,
    RunEnd,
    end_of,
    join_round,
    read_end,
)
from evalwright.runs.callbacks import Callbacks
from evalwright.runs.progress import ProgressReporter
from evalwright.strategies.sampling import TARGET

MOST_OF_A_RUN = 8
"""A worker has at most this part of the slices of a run at a time, so that others find some."""

LOCAL_SLICES = 2
"""Most slices of a local model at a time: the next batch forms while one is answered."""

LOOK_SECONDS = 5.0
"""Seconds between two looks at how far all workers are, for the progress."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What the runs of one worker share.

    Attributes:
        store: the store that all workers share.
        engine: sends the requests.
        reporter: shows progress; None for none.
        budget: what all workers may spend together; None for no limit.
        callbacks: hear of the runs that this worker writes.
    """

    store: Store
    engine: Engine
    reporter: ProgressReporter | None
    budget: Budget | None
    callbacks: Callbacks

    def say(self, sentence: str) -> None:
        """Show a sentence."""
        if self.reporter is not None:
            self.reporter.say(sentence)


async def work_on_plan(
    plan: Plan,
    store: Store,
    *,
    progress: ProgressReporter | None = None,
    callbacks: Callbacks | None = None,
    grace: float = GRACE,
) -> list[RunEnd]:
    """Take part in a plan until all its runs are written, by this worker or by others.

    The arguments are those of `run_plan`.

    Returns:
        How each run ended, in the order of the plan.

    Raises:
        ConfigurationError: living workers evaluate something else under a run's name.
        StoreError: answers cannot be stored.
    """

    async def work(
        engine: Engine, reporter: ProgressReporter | None, budget: Budget | None
    ) -> list[RunEnd]:
        workplace = Workplace(store, engine, reporter, budget, callbacks or Callbacks())
        if not store_url():
            workplace.say(
                "The store is a file of this machine, so all workers have to be on this machine;"
                " for several, set EVALWRIGHT_STORE to a PostgreSQL server."
            )
        return await _work_on_runs(plan, workplace)

    return await carry_out(plan, store, work, progress=progress, grace=grace)


async def _work_on_runs(plan: Plan, workplace: Workplace) -> list[RunEnd]:
    joined = [
        await join_round(run, workplace.store, replaces=plan.replaces)
        for run in plan.runs
    ]
    side_by_side = asyncio.Semaphore(REMOTE_AT_ONCE)
    one_by_one = asyncio.Semaphore(1)

    async def work(run: PlannedRun, joined_round: JoinedRound | RunEnd) -> RunEnd:
        if isinstance(joined_round, RunEnd):
            return joined_round
        turn = one_by_one if is_local(run) else side_by_side
        models = models_apart(run, plan.runs)
        worker = RunWorker(run, workplace, joined_round, turn, models)
        return await worker.work()

    return await at_the_same_time(
        work(run, joined_round)
        for run, joined_round in zip(plan.runs, joined, strict=True)
    )


class WorkersMeter(Meter):
    """Shows how far all workers are together; a worker's own part is in `state`."""

    slices: SliceCounts | None = None

    def report(self, finished: bool = False) -> None:
        """Report progress; nothing at the end, as the run goes on until it is written."""
        if finished:
            return
        n_own = self.done
        if self.slices is not None and self.slices.total:
            share = self.slices.done / self.slices.total
            self.done = max(n_own, round(share * self.plan.total))
        super().report()
        self.done = n_own


class RunWorker:
    """This worker at one run.

    Args:
        run: the run.
        workplace: what it shares with the worker's other runs.
        joined: the round of the run that it has joined.
        turn: held while requests are sent, so that local models take turns.
        models: names of the models of the run, if none of them answers for another run.
    """

    def __init__(
        self,
        run: PlannedRun,
        workplace: Workplace,
        joined: JoinedRound,
        turn: AbstractAsyncContextManager[None],
        models: frozenset[str],
    ) -> None:
        self._plan = run
        self._place = workplace
        self._notes = joined.run_notes
        self._round = joined.number
        self._end_key = joined.end_key
        self._others = len(joined.others)
        self._turn = turn
        self._models = models
        self._sliced = cut_slices(run)
        self._slices = SharedSlices(
            joined.notes,
            len(self._sliced.slices),
            in_order=workplace.budget is not None,
        )
        self._door = workplace.engine.door({TARGET: run.model, **run.roles})
        self._began = time.monotonic()
        self._tally = WorkerTally(datetime.now(UTC), joined.number)
        self._meter = WorkersMeter(run, self._door, workplace.reporter, self._began)

    async def work(self) -> RunEnd:
        """Evaluate slices while there are any; then have the run written, here or elsewhere."""
        self._place.say(self._welcome())
        reporting = asyncio.create_task(self._report_repeatedly())
        try:
            with self._meter:
                while True:
                    async with self._turn:
                        await self._take_slices()
                    if await self._wait_for_others():
                        break
                is_mine = await self._claim_end()
            self._place.say(self._farewell(is_mine))
        finally:
            reporting.cancel()
            with suppress(StoreError):
                await self._write_tally()
        return await (self._write_run() if is_mine else self._read_end())

    def _welcome(self) -> str:
        others = f", beside {_count(self._others, 'worker')}" if self._others else ""
        return (
            f"Worker {process_of(self._notes.worker)} joins the run '{self._plan.id}'"
            f" ({_count(len(self._sliced.slices), 'slice')}){others}."
        )

    def _farewell(self, is_mine: bool) -> str:
        # Says why the next line counts all responses as stored.
        ending = ", which now writes the run from the store" if is_mine else ""
        return (
            f"Run '{self._plan.id}': {_count(len(self._sliced.slices), 'slice')} done,"
            f" {self._tally.slices:,} by this worker{ending}."
        )

    # -- slices

    async def _take_slices(self) -> None:
        """Evaluate slices until none is free."""
        n_slices = len(self._sliced.slices)
        most = max(1, -(-n_slices // MOST_OF_A_RUN))
        if is_local(self._plan):
            most = min(most, LOCAL_SLICES)
        feed = SliceFeed(self._sliced, self._slices, most)
        concurrency = self._place.engine.concurrency(self._plan.model)
        width = min(concurrency, most * self._sliced.n_answers + 1)
        last_answers = LastAnswers(self._place.engine)
        await at_the_same_time(
            last_answers.awaited(self._evaluate_units(feed)) for _ in range(width)
        )

    async def _evaluate_units(self, feed: SliceFeed) -> None:
        turns = self._place.engine.loop_turns()
        while (next_unit := await feed.next_unit()) is not None:
            slice_number, (_, number, index, draw) = next_unit
            await turns.take()
            task = self._sliced.run.tasks[number]
            record = await paid_sample(
                task, index, draw, self._door, self._place.budget
            )
            if record is not None:
                self._meter.count(record)
            finished = feed.count(slice_number, answered=record is not None)
            if finished is not None:
                await self._finish_slice(slice_number, finished)
                feed.release(slice_number)

    async def _finish_slice(self, number: int, counts: OpenSlice) -> None:
        """Store that a slice is done, with this worker's tally so far."""
        self._tally.slices += 1
        self._tally.answers += counts.answered
        note = {"worker": self._notes.worker, "answers": counts.answered}
        await asyncio.gather(
            self._slices.finish(number, {**note, "not_sent": counts.not_sent}),
            self._write_tally(),
        )
        self._show()

    async def _write_tally(self, session: Session | None = None) -> None:
        """Store what this worker has done. session: the one that writes the run, if it does."""
        counts = [self._door.counts, *([session.door.counts] if session else [])]
        self._tally.seconds = time.monotonic() - self._began
        worker = self._notes.worker
        note = self._tally.as_note(worker, counts)
        await self._notes.write(self._notes.key("worker", worker), note)

    # -- other workers

    async def _wait_for_others(self) -> bool:
        """Wait until all slices are done, or some are free again; return whether all are done."""
        while True:
            await self._slices.look()
            if self._slices.all_done:
                return True
            if self._slices.some_free:
                return False
            counts = self._slices.counts
            self._meter.state = (
                f"waiting for {_count(counts.elsewhere, 'slice')} of"
                f" {_count(counts.workers, 'other worker')}"
            )
            await self._give_back()
            await asyncio.sleep(self._notes.poll_seconds)

    async def _give_back(self) -> None:
        """Leave to others what this worker has of the budget and does not use while it waits."""
        if isinstance(self._place.budget, SharedBudget):
            await self._place.budget.give_back()

    async def _report_repeatedly(self) -> None:
        """Show how far all workers are, while this one evaluates."""
        while self._place.reporter is not None:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(StoreError):  # whoever needs the store reports it
                await self._slices.look()
            self._show()

    def _show(self) -> None:
        counts = self._slices.counts
        self._meter.slices = counts
        self._meter.state = (
            f"slices {counts.done:,} of {counts.total:,},"
            f" {self._tally.slices:,} by this worker; {_count(counts.workers + 1, 'worker')}"
        )

    # -- the end

    async def _claim_end(self) -> bool:
        """Wait for the run to be written; return whether this worker is to write it."""
        await self._give_back()
        outcome = await self._notes.claim(self._end_key)
        if outcome not in (MINE, STORED):
            self._meter.state = f"waiting for the worker {process_of(outcome)} to write"
            outcome = await self._notes.claim_in_turn(self._end_key)
        return outcome == MINE

    async def _write_run(self) -> RunEnd:
        """Make the ordinary run from the store, and write it.

        What other workers have given back of the budget pays for answers that are missing.
        """
        place = self._place
        if isinstance(place.budget, SharedBudget):
            place.budget.reopen()
        try:
            async with self._turn:
                (written,) = await run_all(
                    [self._plan],
                    place.engine,
                    place.reporter,
                    place.budget,
                    place.callbacks,
                    workers=self._work_of_all,
                )
            end = end_of(self._plan, written, self._notes.worker)
            await self._notes.write(self._end_key, end.as_dict())
        except BaseException:
            self._notes.release(self._end_key)
            raise
        return end

    async def _work_of_all(self, session: Session) -> WorkOfAll:
        # What this worker sent last is in the ledger once its tally is stored.
        await self._write_tally(session)
        return await work_of_all(
            self._notes, self._round, self._models, session.door.counts
        )

    async def _read_end(self) -> RunEnd:
        (note,) = await self._notes.read([self._end_key])
        return read_end(self._plan, note or {})


@dataclass(slots=True)
class OpenSlice:
    """A slice at work: units without an outcome, answered ones, and ones beyond the budget."""

    left: int
    answered: int = 0
    not_sent: int = 0


class SliceFeed:
    """Hands out the units of slices, and claims the next slice when they are used up.

    Args:
        sliced: the run and its slices.
        slices: their claims.
        most: most slices at a time.
    """

    def __init__(self, sliced: SlicedRun, slices: SharedSlices, most: int) -> None:
        self._sliced = sliced
        self._slices = slices
        self._most = most
        self._units: deque[tuple[int, Unit]] = deque()
        self._open: dict[int, OpenSlice] = {}
        self._has_room = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._none_free = False

    async def next_unit(self) -> tuple[int, Unit] | None:
        """Return a unit with the number of its slice; None if no slice is free."""
        while not self._units and not self._none_free:
            async with self._claiming:
                if not self._units and not self._none_free:
                    await self._claim_slice()
        return self._units.popleft() if self._units else None

    def count(self, slice_number: int, *, answered: bool) -> OpenSlice | None:
        """Count a unit that has ended; return the slice's counts if it was the last one."""
        counts = self._open[slice_number]
        counts.left -= 1
        counts.answered += answered
        counts.not_sent += not answered
        return None if counts.left else counts

    def release(self, slice_number: int) -> None:
        """Make room for another slice."""
        del self._open[slice_number]
        self._has_room.set()

    async def _claim_slice(self) -> None:
        while len(self._open) >= self._most:
            self._has_room.clear()
            await self._has_room.wait()
        number = await self._slices.claim()
        if number is None:
            self._none_free = True
            return
        units = list(self._sliced.units(number))
        self._open[number] = OpenSlice(len(units))
        self._units.extend((number, unit) for unit in units)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
