"""A run in progress and its final record: tallies, progress, and the content of `run.json`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from evalwright._version import __version__
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.budget import Budget
from evalwright.engine.engine import Engine, RoleClient
from evalwright.evaluation.planning import PlannedRun
from evalwright.evaluation.schedule import Schedule
from evalwright.models.replicas import summarise_replicas
from evalwright.runs.aggregation import AnswersUsage, TaskTally, rules_record
from evalwright.runs.callbacks import Callbacks
from evalwright.runs.confirmed import remember_numbers
from evalwright.runs.environment import environment
from evalwright.runs.grouping import group_records
from evalwright.runs.hardware import HardwareWatch
from evalwright.runs.live import LiveFile
from evalwright.runs.progress import Progress, ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.score_tables import keep_scores
from evalwright.runs.stopping import noted_groups, with_valid_intervals
from evalwright.runs.writer import SCHEMA_VERSION, RunWriter, drop_plan
from evalwright.strategies.sampling import TARGET

SHOWN_AFTER = 0.3
"""Seconds after which a record becomes visible to whoever follows the run."""
_log = logging.getLogger("evalwright.evaluation")


@dataclass(frozen=True, slots=True)
class WorkOfAll:
    """What all workers of a run did, where several made it together.

    Attributes:
        started: when the first of them began.
        usage: requests, tokens and costs of them all, in place of those of the session that writes
            the run, which finds every response in the store.
        workers: a row for each of them, for the record.
    """

    started: datetime
    usage: Mapping[str, Any]
    workers: Sequence[Mapping[str, Any]]


class Session:
    """One model's run while its requests are sent; leaving its context drops what is unfinished."""

    def __init__(
        self,
        plan: PlannedRun,
        engine: Engine,
        progress: ProgressReporter | None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.plan = plan
        self.started = datetime.now(UTC)
        tasks = ", ".join(task.name for task in plan.tasks)
        _log.info(
            "Run %s: %s, %d answers on %s",
            plan.folder,
            plan.model.name,
            plan.total,
            tasks,
        )
        self.callbacks = callbacks or Callbacks()
        self.began = time.monotonic()
        self.door = engine.door({TARGET: plan.model, **plan.roles})
        self.tallies = [
            TaskTally([scorer.name for scorer in task.scorers], task.slices)
            for task in plan.tasks
        ]
        store_images = bool(plan.configuration.get("store_images", True))
        self.writer = RunWriter(
            plan.folder, about_run(plan, self.started), store_images=store_images
        )
        self.meter = Meter(plan, self.door, progress, self.began)
        self.live = LiveFile(plan.folder)
        self.door.watch(self.live.add)
        self.hardware = HardwareWatch()
        self.work_of_all: WorkOfAll | None = None
        """What workers did for this run before, whose record this session writes."""
        self._showing: asyncio.TimerHandle | None = None

    def usage(self) -> dict[str, Any]:
        """Return requests, tokens and costs for the record."""
        counts = self.door.counts.as_dict()
        return (
            counts if self.work_of_all is None else {**counts, **self.work_of_all.usage}
        )

    def add(self, position: int, number: int, record: SampleRecord) -> None:
        """Record a sample of task `number`."""
        self.writer.add(position, record)
        self.live.done(record.task, record.sample.id, record.draw)
        if self._showing is None:
            self._showing = asyncio.get_running_loop().call_later(
                SHOWN_AFTER, self._show
            )
        self.tallies[number].add(record)
        self.meter.count(record)
        self.hardware.look()
        self.callbacks.sample(self.plan.id, record)

    def _show(self) -> None:
        self._showing = None
        self.writer.show()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._showing is not None:
            self._showing.cancel()
        self.live.close()
        self.writer.discard()


class Meter(AbstractContextManager["Meter"]):
    """Counts finished samples and reports progress a few times a second."""

    def __init__(
        self,
        plan: PlannedRun,
        door: RoleClient,
        reporter: ProgressReporter | None,
        began: float,
    ) -> None:
        self.plan = plan
        self.door = door
        self.reporter = reporter
        self.began = began
        self.done = 0
        self.failed = 0
        self.answers = AnswersUsage()
        self.state = ""
        """The state of stopping rules, in a few words."""
        self._ticker: asyncio.Task[None] | None = None

    def count(self, record: SampleRecord) -> None:
        """Count one record."""
        self.done += 1
        self.answers.add(record)
        if record.failure is not None or record.score_failures:
            self.failed += 1

    def report(self, finished: bool = False) -> None:
        """Report progress, if there is a reporter."""
        if self.reporter is not None:
            label = self.plan.spec.label or self.plan.model.name
            seconds = time.monotonic() - self.began
            counts = self.door.counts
            total = self.plan.total
            state = self.plan.id, label, total, self.done, self.failed, seconds, counts
            where = "; ".join(
                filter(None, (self.state, summarise_replicas(self.plan.model.replicas)))
            )
            self.reporter.update(Progress(*state, finished, where, self.door.loading()))

    async def _tick(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(0.25)

    def __enter__(self) -> Meter:
        if self.reporter is not None:
            self._ticker = asyncio.create_task(self._tick())
        return self

    def __exit__(self, *exception: object) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self.report(finished=True)


def stopping_record(
    schedule: Schedule, model: int, session: Session, budget: Budget | None
) -> dict[str, Any] | None:
    """Return the part "stopping" of `run.json`; None for a model without a rule or a budget."""
    plan = session.plan
    if budget is None and not plan.follows_rules:
        return None
    done = [len(tally.indices) for tally in session.tallies]
    requested = session.door.counts.requested
    record = schedule.record(model, done, requested / sum(done) if sum(done) else 1.0)
    spending = {"budget": budget.as_dict()} if budget is not None else {}
    reached = budget.reached if budget is not None else ""
    return {**record, "budget_reached": reached, "full_run": plan.full_run, **spending}


def finish_run(session: Session, stopping: Mapping[str, Any] | None = None) -> Run:
    """Turn the scores into metrics and write the record.

    `stopping` is what rules and budget decided.
    """
    plan = session.plan
    meter = session.meter
    tallies = session.tallies
    seconds = time.monotonic() - session.began
    started = session.started
    together = session.work_of_all
    if together is not None:
        seconds += max(0.0, (started - together.started).total_seconds())
        started = together.started
    tasks = []
    for task, tally in zip(plan.tasks, tallies, strict=True):
        if task.found_metrics is not None:
            task = replace(task, metrics=tuple(task.found_metrics(tally.names())))
        task_metrics = with_valid_intervals(
            tally.result(task.name, task.version, task.metrics).as_dict(), stopping
        )
        tasks.append({**task_metrics, **task_record(task)})
    label = {"label": plan.spec.label} if plan.spec.label else {}
    facts = {"facts": dict(plan.spec.facts)} if plan.spec.facts else {}
    run_record = {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": plan.id,
        "identity": plan.identity,
        **({"shard": plan.shard} if plan.shard else {}),
        **({"prompt": plan.prompt} if plan.prompt else {}),
        **({"workers": list(together.workers)} if together else {}),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "model": {**plan.model.describe(), **label, **facts},
        "roles": {role: model.describe() for role, model in plan.roles.items()},
        **({"reply_names": names} if (names := session.door.reply_names()) else {}),
        "configuration": plan.configuration,
        "environment": environment(),
        "hardware": session.hardware.record(
            plan.model,
            session.door.speed(TARGET),
            label=str(plan.configuration.get("hardware", "")),
            samples=meter.done,
            seconds=seconds,
        ),
        "usage": {**session.usage(), "answers": meter.answers.as_dict()},
        "tasks": tasks,
    }
    tables = {
        task.name: tally.table()
        for task, tally in zip(plan.tasks, tallies, strict=True)
    }
    if groups := group_records(tasks, plan.configuration, tables.__getitem__):
        run_record["groups"] = noted_groups(groups, stopping)
    if stopping is not None:
        run_record["stopping"] = stopping
    session.writer.finish(run_record)
    if not plan.follows_rules:
        drop_plan(plan.folder)
    run = open_run(plan.folder)
    keep_scores(run, tables)
    remember_numbers(run)
    return run


def about_run(plan: PlannedRun, started: datetime) -> dict[str, Any]:
    """Return what a follower of a run must know about it.

    `expected` in it is the number of answers that the run will have if no rule stops it.
    """
    return {
        "id": plan.id,
        "label": plan.spec.label or plan.model.name,
        "model": plan.model.name,
        "roles": {role: model.name for role, model in plan.roles.items()},
        "started": started.isoformat(timespec="seconds"),
        "expected": plan.total,
        "tasks": [
            {
                "name": task.name,
                "version": task.version,
                "description": task.description,
                "slice_keys": list(task.slices),
                **rules_record(task.scorers, task.metrics),
            }
            for task in plan.tasks
        ],
    }


def task_record(task: Task) -> dict[str, Any]:
    """Return a task's definition for `run.json`, enough to score its records again."""
    return {
        "description": task.description,
        # Some data have more rows than the run uses, whatever the limit.
        "metadata": {
            **task.metadata,
            **(
                {}
                if (rows := getattr(task.samples, "n_rows", None)) is None
                else {"original": rows}
            ),
        },
        "definition": dict(task.definition),
        "content_hash": task.samples.content_hash,
        "draws": task.draws,
        "slice_keys": list(task.slices),
        **(
            {"score_as_empty": list(task.score_as_empty)} if task.score_as_empty else {}
        ),
        **({"no_answer": task.no_answer} if task.no_answer != "worst" else {}),
        **rules_record(task.scorers, task.metrics),
    }
