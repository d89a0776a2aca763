"""A run made by workers: processes on any hosts that share nothing but the store.

Every worker makes the same plan, and takes slices of it (`slicing.py`) by the claims in the store
(`engine/slices.py`). A slice is evaluated as in any run, but its records are dropped: when all
slices are done, one worker makes the ordinary run, for which every response is in the store, and
writes it. The others wait for that. Whatever a dead worker had claimed, another one takes; samples
at which one worker after the other dies are found and left out (`quarantine.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice

from evalwright.core.errors import RequestFailed, StoreError
from evalwright.core.postgres import store_url
from evalwright.core.text import printable
from evalwright.engine.budget import Budget
from evalwright.engine.claims import process_of
from evalwright.engine.engine import Engine
from evalwright.engine.shared_budget import SharedBudget
from evalwright.engine.slices import SharedSlices, SliceCounts
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED
from evalwright.evaluation.planning import Plan, PlannedRun
from evalwright.evaluation.program_scores import keep_program_scores
from evalwright.evaluation.quarantine import (
    SLICE_DEATHS,
    WRITER_DEATHS,
    FatalSample,
    Seclusion,
    SlicePart,
    divide_slice,
    fatal_samples,
    leave_out,
)
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
from evalwright.evaluation.slice_feed import OpenSlice, SliceFeed
from evalwright.evaluation.slicing import SlicedRun, Unit, cut_slices
from evalwright.evaluation.worker_deaths import (
    ANSWERS,
    RECORD,
    SCORES,
    OpenWork,
    Phase,
    WorkerDeaths,
)
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
from evalwright.runs.reader import Run
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
        seclusion: lets a run evaluate samples with nothing beside them in the process.
    """

    store: Store
    engine: Engine
    reporter: ProgressReporter | None
    budget: Budget | None
    callbacks: Callbacks
    seclusion: Seclusion = field(default_factory=Seclusion)

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


@dataclass(frozen=True, slots=True)
class SlicedWork:
    """What is done with a run slice by slice.

    Attributes:
        name: what is done.
        sliced: the run and its slices.
        slices: which of them are done, and who has which.
    """

    name: Phase
    sliced: SlicedRun
    slices: SharedSlices

    @property
    def n_slices(self) -> int:
        """The number of slices."""
        return len(self.sliced.slices)


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
        tasks = keep_program_scores(run.tasks, joined.score_notes)
        self._plan = run = replace(run, tasks=tasks)
        self._place = workplace
        self._notes = joined.run_notes
        self._round = joined.number
        self._end_key = joined.end_key
        self._others = len(joined.others)
        self._turn = turn
        self._models = models
        self._round_notes = joined.notes
        self._deaths = WorkerDeaths(joined.run_notes, joined.notes)
        self._answers = self._sliced_work(ANSWERS, cut_slices(run))
        self._scores: SlicedWork | None = None
        self._part = self._answers
        self._session: Session | None = None
        self._open_slices: frozenset[int] = frozenset()
        self._door = workplace.engine.door({TARGET: run.model, **run.roles})
        self._began = time.monotonic()
        self._tally = WorkerTally(datetime.now(UTC), joined.number)
        self._meter = WorkersMeter(run, self._door, workplace.reporter, self._began)

    async def work(self) -> RunEnd:
        """Evaluate slices while there are any; then have the run written, here or elsewhere."""
        self._place.say(self._welcome())
        try:
            is_mine = await self._evaluate_run()
            return await (self._write_run() if is_mine else self._read_end())
        finally:
            self._tally.has_left = True
            with suppress(StoreError):
                await self._write_tally()

    async def _evaluate_run(self) -> bool:
        """Take part until all slices are done; return whether this worker is to write the run."""
        reporting = asyncio.create_task(self._report_repeatedly())
        try:
            with self._meter:
                await self._work_through(self._answers)
                while True:
                    if await self._writing_kills():
                        await self._try_scores()
                    is_mine = await self._claim_end()
                    if not is_mine or not await self._writing_kills():
                        break
                    self._notes.release(self._end_key)
            self._place.say(self._farewell(is_mine))
        finally:
            reporting.cancel()
        return is_mine

    async def _work_through(self, part: SlicedWork) -> None:
        """Evaluate slices until all are done, by this worker and others."""
        self._part = part
        while True:
            async with self._turn:
                await self._take_slices()
            if await self._wait_for_others():
                return

    def _welcome(self) -> str:
        others = f", beside {_count(self._others, 'worker')}" if self._others else ""
        return (
            f"Worker {process_of(self._notes.worker)} joins the run '{self._plan.id}'"
            f" ({_count(self._answers.n_slices, 'slice')}){others}."
        )

    def _farewell(self, is_mine: bool) -> str:
        # Says why the next line counts all responses as stored.
        ending = ", which now writes the run from the store" if is_mine else ""
        return (
            f"Run '{self._plan.id}': {_count(self._answers.n_slices, 'slice')} done,"
            f" {self._tally.slices:,} by this worker{ending}."
        )

    # -- slices

    async def _take_slices(self) -> None:
        """Evaluate slices until none is free."""
        part = self._part
        seclusion = self._place.seclusion
        most = max(1, -(-part.n_slices // MOST_OF_A_RUN))
        if is_local(self._plan):
            most = min(most, LOCAL_SLICES)
        concurrency = self._place.engine.concurrency(self._plan.model)
        width = min(concurrency, most * part.sliced.n_answers + 1)
        while True:
            feed = SliceFeed(
                part.sliced,
                part.slices,
                most,
                is_suspect=self._is_suspect,
                is_interrupted=lambda: seclusion.is_wanted,
            )
            await seclusion.beside_others(partial(self._evaluate_feed, feed, width))
            if feed.none_free:
                return
            if feed.suspect is not None:
                suspect = feed.suspect
                await seclusion.alone(partial(self._evaluate_suspect, suspect))

    async def _evaluate_feed(self, feed: SliceFeed, width: int) -> None:
        last_answers = LastAnswers(self._place.engine)
        await at_the_same_time(
            last_answers.awaited(self._evaluate_units(feed)) for _ in range(width)
        )

    async def _evaluate_units(self, feed: SliceFeed) -> None:
        turns = self._place.engine.loop_turns()
        while (next_unit := await feed.next_unit()) is not None:
            slice_number, unit = next_unit
            await turns.take()
            is_answered = await self._evaluate_unit(unit)
            finished = feed.count(slice_number, answered=is_answered)
            if finished is not None:
                await self._finish_slice(slice_number, finished)
                feed.release(slice_number)

    async def _evaluate_unit(self, unit: Unit) -> bool:
        """Evaluate one draw of a sample; return whether the budget allowed it."""
        _, number, index, draw = unit
        task = self._part.sliced.run.tasks[number]
        record = await paid_sample(task, index, draw, self._door, self._place.budget)
        if record is not None and self._part.name == ANSWERS:
            self._meter.count(record)
        return record is not None

    async def _announce(self, number: int) -> None:
        """Store that this worker begins a slice."""
        self._open_slices = self._part.slices.mine | {number}
        self._tally.open = OpenWork(self._part.name, self._open_slices)
        await self._write_tally()

    async def _finish_slice(
        self, number: int, counts: OpenSlice, fatal: Sequence[FatalSample] = ()
    ) -> None:
        """Store that a slice is done, with this worker's tally so far."""
        part = self._part
        if part.name == ANSWERS:
            self._tally.slices += 1
            self._tally.answers += counts.answered
        # Not those of `slices.mine`: the next slice may just be claimed.
        self._open_slices -= {number}
        self._tally.open = OpenWork(part.name, self._open_slices)
        note = {
            "worker": self._notes.worker,
            "answers": counts.answered,
            "not_sent": counts.not_sent,
            "fatal": [[sample.task, sample.index, sample.process] for sample in fatal],
        }
        await asyncio.gather(part.slices.finish(number, note), self._write_tally())
        self._show()

    # -- slices and samples that kill workers

    async def _is_suspect(self, number: int) -> bool:
        """Return whether enough workers died at a slice for evaluating it alone, in parts."""
        await self._deaths.look()
        name = self._part.name
        # Scores are tried because workers died at some of them: no slice is above suspicion.
        enough = SLICE_DEATHS if name == ANSWERS else 1
        return self._deaths.at_slice(name, number) >= enough

    async def _evaluate_suspect(self, number: int) -> None:
        """Evaluate a slice in parts, without the samples that kill."""
        part = self._part
        samples = part.sliced.samples(number)
        deaths = self._deaths.alone(part.name, number)
        self._place.say(
            f"Run '{self._plan.id}': workers died at slice {number + 1:,} of"
            f" {part.n_slices:,}, which is now evaluated in small parts with"
            " nothing beside it."
        )
        if part.name == ANSWERS:
            # Before samples are noted: a model that kills while it loads is not their fault.
            with suppress(RequestFailed):  # which their requests report
                await self._place.engine.load(self._plan.model)
        counts = OpenSlice(0)
        fatal = []
        for group in divide_slice(len(samples), deaths):
            if group.killed:
                fatal.append(self._report_fatal(samples[group.start][0], group))
                continue
            sample_range = (group.start, group.end)
            self._tally.open = OpenWork(part.name, frozenset({number}), sample_range)
            await self._write_tally()
            units = chain.from_iterable(samples[group.start : group.end])
            await self._evaluate_group(units, counts)
        await self._finish_slice(number, counts, fatal)

    async def _evaluate_group(self, units: Iterator[Unit], counts: OpenSlice) -> None:
        last_answers = LastAnswers(self._place.engine)

        async def evaluate_from(first: Unit) -> None:
            for unit in chain((first,), units):
                is_answered = await self._evaluate_unit(unit)
                counts.answered += is_answered
                counts.not_sent += not is_answered

        width = self._place.engine.concurrency(self._plan.model)
        await at_the_same_time(
            last_answers.awaited(evaluate_from(first)) for first in islice(units, width)
        )

    def _report_fatal(self, unit: Unit, group: SlicePart) -> FatalSample:
        _, number, index, _ = unit
        task = self._plan.tasks[number]
        self._place.say(
            f"Run '{self._plan.id}': the sample '{printable(task.samples[index].id)}' of"
            f" {task.name} has killed {len(group.killed)} workers and is recorded as failed."
        )
        return FatalSample(number, index, process_of(group.killed[-1]))

    async def _writing_kills(self) -> bool:
        """Return whether workers died writing the run, and scores were not tried since."""
        await self._deaths.look()
        return self._scores is None and self._deaths.writers >= WRITER_DEATHS

    async def _try_scores(self) -> None:
        """Score the answers slice by slice, to find those whose scores kill workers."""
        self._place.say(
            f"Run '{self._plan.id}': workers died writing it, so its answers are scored"
            " slice by slice first."
        )
        tasks = leave_out(self._plan.tasks, await self._fatal_samples(self._answers))
        sliced = self._answers.sliced.with_all_scorers(tasks)
        self._scores = self._sliced_work(SCORES, sliced)
        await self._work_through(self._scores)

    def _sliced_work(self, name: Phase, sliced: SlicedRun) -> SlicedWork:
        slices = SharedSlices(
            self._round_notes,
            len(sliced.slices),
            in_order=self._place.budget is not None,
            kind="slice" if name == ANSWERS else name,
            announce=self._announce,
        )
        return SlicedWork(name, sliced, slices)

    async def _fatal_samples(self, part: SlicedWork | None) -> list[FatalSample]:
        """Return the samples that killed workers, as all workers have noted."""
        if part is None:
            return []
        notes = await part.slices.contents()
        return [
            sample
            for note in notes
            for sample in fatal_samples(self._plan.tasks, note.get("fatal"))
        ]

    # -- the worker's note

    async def _write_tally(self) -> None:
        """Store what this worker has done, and what it has begun."""
        session = self._session
        counts = [self._door.counts, *([session.door.counts] if session else [])]
        self._tally.seconds = time.monotonic() - self._began
        worker = self._notes.worker
        note = self._tally.as_note(worker, counts)
        await self._notes.write(self._notes.key("worker", worker), note)

    # -- other workers

    async def _wait_for_others(self) -> bool:
        """Wait until all slices are done, or some are free again; return whether all are done."""
        slices = self._part.slices
        while True:
            await slices.look()
            if slices.all_done:
                return True
            if slices.some_free:
                return False
            counts = slices.counts
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
                await self._part.slices.look()
            self._show()

    def _show(self) -> None:
        counts = self._part.slices.counts
        noun = "slices"
        if self._part.name == ANSWERS:
            self._meter.slices = counts
        else:
            noun = "slices scored:"
        self._meter.state = (
            f"{noun} {counts.done:,} of {counts.total:,},"
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
        fatal_answers = await self._fatal_samples(self._answers)
        fatal_scores = await self._fatal_samples(self._scores)
        tasks = leave_out(self._plan.tasks, fatal_answers, fatal_scores)
        plan = replace(self._plan, tasks=tasks)
        written: list[Run] = []

        async def write() -> None:
            self._tally.open = OpenWork(RECORD)
            await self._write_tally()
            written.extend(
                await run_all(
                    [plan],
                    place.engine,
                    place.reporter,
                    place.budget,
                    place.callbacks,
                    workers=self._work_of_all,
                )
            )

        try:
            async with self._turn:
                await place.seclusion.beside_others(write)
            end = end_of(self._plan, written[0], self._notes.worker)
            await self._notes.write(self._end_key, end.as_dict())
        except BaseException:
            self._notes.release(self._end_key)
            raise
        return end

    async def _work_of_all(self, session: Session) -> WorkOfAll:
        # What this worker sent last is in the ledger once its tally is stored.
        self._session = session
        await self._write_tally()
        return await work_of_all(
            self._notes, self._round, self._models, session.door.counts
        )

    async def _read_end(self) -> RunEnd:
        (note,) = await self._notes.read([self._end_key])
        return read_end(self._plan, note or {})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
