"""Rounds of a run that workers make together: who joins which, and how one ended.

A run's first round ends when it is written. If answers are missing then, or `replace` is set, a
worker that starts later begins another round, which sends only what is missing.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.text import printable
from evalwright.engine.claims import process_of
from evalwright.engine.slices import WorkerNotes
from evalwright.engine.store import Store
from evalwright.evaluation.budgets import parse_budget
from evalwright.evaluation.changed_settings import describe_changes
from evalwright.evaluation.planning import PlannedRun
from evalwright.runs.accepted_failures import has_acceptable_failures
from evalwright.runs.bucket_runs import open_bucket_run
from evalwright.runs.buckets import is_bucket_address
from evalwright.runs.reader import Run, open_run

MAX_WORKERS_NAMED = 3

SETTINGS_OF_ALL = ("budget", "price", "accept_failures", "give_up", "tree", "push")
"""Settings that the run has, whichever worker writes it, beside those of its identity."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a round of a run ended.

    Attributes:
        run_id: the run's name.
        identity: the run's identity.
        worker: the worker that wrote the run, as in "123 on node-7".
        host: where the run's folder is.
        folder: the run's folder, on that host; or its address in a bucket.
        is_complete: whether nothing is missing that the same command could still get.
        own_folder: the run's folder here, if this worker wrote it.
        bucket: the run's address in the bucket of --push; "" without --push. No other bucket is
            opened, whatever a note says.
    """

    run_id: str
    identity: str
    worker: str
    host: str
    folder: str
    is_complete: bool
    own_folder: str = ""
    bucket: str = ""

    def open(self) -> Run | None:
        """Open the run; None if its folder cannot be seen from here."""
        folder = self.own_folder or self.folder
        in_bucket = is_bucket_address(folder)
        if in_bucket and folder != self.bucket:
            return None
        try:
            run = open_bucket_run(folder) if in_bucket else open_run(Path(folder))
        except UsageError:
            return None
        return run if run.data.get("identity") == self.identity else None

    @property
    def sentence(self) -> str:
        """Which worker wrote the run, and where."""
        folder = "".join(char if char.isprintable() else "?" for char in self.folder)
        missing = "" if self.is_complete else " It lacks answers."
        elsewhere = (
            ""
            if self.host == platform.node() or is_bucket_address(self.folder)
            else (
                " To have it here, run the same command without --worker: all answers are in"
                " the store."
            )
        )
        return (
            f"The run '{self.run_id}' was written by the worker {self.worker}:"
            f" {folder}.{missing}{elsewhere}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for the note in the store."""
        return {
            "worker": self.worker,
            "host": self.host,
            "folder": self.folder,
            "is_complete": self.is_complete,
        }


@dataclass(frozen=True, slots=True)
class JoinedRound:
    """The round of a run that this worker has joined.

    Attributes:
        run_notes: the notes about the run in all its rounds.
        notes: the notes about the round.
        score_notes: the notes about scores, which last until the run is replaced.
        number: of the round, from 0.
        end_key: the key of the note that says how the round ended.
        others: the other living workers of the round.
    """

    run_notes: WorkerNotes
    notes: WorkerNotes
    score_notes: WorkerNotes
    number: int
    end_key: bytes
    others: frozenset[str]


async def join_round(
    run: PlannedRun, store: Store, *, replaces: bool
) -> JoinedRound | RunEnd:
    """Join the open round of a run, or begin one.

    Args:
        run: the planned run.
        store: the store that all workers share.
        replaces: whether a complete run is written again.

    Returns:
        The round; or how the last one ended, if nothing is left to do.

    Raises:
        ConfigurationError: living workers evaluate another run under this name, or this run with
            another version or other settings that hold for all workers.
    """
    named_notes = WorkerNotes(store, run.model.fingerprint, [run.id])
    async with named_notes.alone("joining"):
        await _check_others(run, named_notes)
        run_notes = named_notes.within(run.identity)
        number, last_end = await _open_round(run, run_notes)
        notes = run_notes.within(f"round {number}")
        workers = await notes.workers()
        is_begun = bool(workers) or replaces
        if last_end is not None and not is_begun and _needs_no_more(last_end):
            return last_end
        score_notes = await _score_notes(
            run_notes, number, begins_anew=replaces and not workers
        )
        await run_notes.register()
        await notes.register()
        await named_notes.write(named_notes.key("run"), _describe_run(run, number))
        living = await notes.living(workers)
    return JoinedRound(
        run_notes=run_notes,
        notes=notes,
        score_notes=score_notes,
        number=number,
        end_key=run_notes.key("end", number),
        others=frozenset(living - {notes.worker}),
    )


async def _score_notes(
    run_notes: WorkerNotes, number: int, *, begins_anew: bool
) -> WorkerNotes:
    """Return the notes about the scores of a run.

    A run that is replaced is scored again, as without workers: programs may have failed for what
    this machine lacked, or because it was busy.
    """
    key = run_notes.key("scores")
    if begins_anew:
        await run_notes.write(key, {"since": number})
        since = number
    else:
        (note,) = await run_notes.read([key])
        since = (note or {}).get("since", 0)
    return run_notes.within(f"scores since {since}")


def _needs_no_more(end: RunEnd) -> bool:
    """Return whether a run is complete, and its folder has not been deleted from this host."""
    is_elsewhere = end.host != platform.node()
    return end.is_complete and (is_elsewhere or end.open() is not None)


async def _open_round(
    run: PlannedRun, run_notes: WorkerNotes
) -> tuple[int, RunEnd | None]:
    """Return the number of the first round that has not ended, and how the one before ended."""
    number = 0
    last_end = None
    while True:
        (note,) = await run_notes.read([run_notes.key("end", number)])
        if note is None:
            return number, last_end
        last_end = read_end(run, note)
        number += 1


def read_end(run: PlannedRun, note: Mapping[str, Any]) -> RunEnd:
    """Read the note about the end of a round."""
    return RunEnd(
        run_id=run.id,
        identity=run.identity,
        worker=printable(str(note.get("worker", ""))),
        host=printable(str(note.get("host", ""))),
        folder=str(note.get("folder", "")),
        is_complete=note.get("is_complete") is True,
        bucket=_bucket_address(run),
    )


def end_of(run: PlannedRun, written: Run, worker: str) -> RunEnd:
    """Return how a round ended in which this worker wrote the run."""
    bucket = _bucket_address(run)
    return RunEnd(
        run_id=str(written.data["id"]),
        identity=str(written.data["identity"]),
        worker=process_of(worker),
        host=platform.node(),
        folder=bucket or str(written.folder.absolute()),
        is_complete=_is_complete(written),
        own_folder=str(written.folder),
        bucket=bucket,
    )


def _bucket_address(run: PlannedRun) -> str:
    return "" if run.push is None else str(run.push.child(run.id))


def _is_complete(run: Run) -> bool:
    """Return whether no answer or score is missing, or the budget has left one out."""
    stopping = run.data.get("stopping") or {}
    if stopping.get("budget_reached") and not stopping.get("settled"):
        return False
    judge_failed = any(task.n_judge_failed for task in run.tasks)
    if judge_failed and not any(task.n_judged for task in run.tasks):
        return False
    if not any(task.n_missing or any(task.failures.values()) for task in run.tasks):
        return True
    return has_acceptable_failures(run)


async def _check_others(run: PlannedRun, named_notes: WorkerNotes) -> None:
    """Raise ConfigurationError if living workers make something else under the run's name."""
    (note,) = await named_notes.read([named_notes.key("run")])
    if note is None:
        return
    identity = str(note.get("identity", ""))
    version = str(note.get("evalwright", ""))
    is_same = identity == run.identity and version == __version__
    changed_settings = list(_describe_settings(note, run)) if is_same else []
    if is_same and not changed_settings:
        return
    number = note.get("round", 0)
    other_notes = named_notes.within(identity)
    (end,) = await other_notes.read([other_notes.key("end", number)])
    if end is not None:
        return
    round_notes = other_notes.within(f"round {number}")
    living = await round_notes.living(await round_notes.workers())
    if not living:
        return
    workers = _name_workers(living)
    if is_same:
        raise ConfigurationError(
            f"Workers are at the run '{run.id}' with other settings ({workers}). What differs:"
            f" {'; '.join(changed_settings)}. These hold for all workers of a run: start this one"
            " with theirs. To change them, stop all workers and start them again: what is stored"
            " is not sent again."
        )
    if identity == run.identity:
        raise ConfigurationError(
            f"Workers of another version are at the run '{run.id}': theirs is"
            f" {printable(version)}, this one is {__version__} ({workers}). Scores could differ:"
            " use one version for all workers."
        )
    changes = describe_changes(
        note.get("record") or {},
        model=run.model,
        roles=run.roles,
        tasks=run.tasks,
        configuration=run.configuration,
    )
    differences = "; ".join(changes) or "model, judge, task, data, seed or limit"
    raise ConfigurationError(
        f"Workers are at another run of the name '{run.id}' in this store ({workers}). What"
        f" differs: {differences}. Give all workers the same command and the same files, or choose"
        " another --name."
    )


def _describe_settings(note: Mapping[str, Any], run: PlannedRun) -> Iterator[str]:
    """Say which settings that hold for all workers differ, such as "price: none, now 1/2".

    They are no part of the run's identity, because no answer depends on them.
    """
    recorded = note.get("record") or {}
    before = recorded.get("configuration") or {}
    now = {**run.configuration, "push": _push_address(run)}
    before = {**before, "push": note.get("push", now["push"])}
    for name in SETTINGS_OF_ALL:
        normalise = _limits_of if name == "budget" else _as_json
        if normalise(before.get(name)) != normalise(now.get(name)):
            option_name = name.replace("_", "-")
            change = f"{_as_phrase(before.get(name))}, now {_as_phrase(now.get(name))}"
            yield printable(f"{option_name}: {change}")


def _limits_of(budget: Any) -> dict[str, float]:
    """Return the limits of a budget, which can be written in several ways."""
    return parse_budget(list(budget or ())).as_dict()


def _as_json(setting: Any) -> str:
    # Notes have lists where a configuration has tuples.
    return json.dumps(setting or None, sort_keys=True)


def _as_phrase(setting: Any) -> str:
    if not setting:
        return "none"
    if isinstance(setting, str):
        return setting
    if isinstance(setting, list | tuple):
        return ", ".join(map(str, setting))
    return _as_json(setting)


def _push_address(run: PlannedRun) -> str:
    return "" if run.push is None else str(run.push)


def _name_workers(workers: set[str]) -> str:
    names = [process_of(worker) for worker in sorted(workers)]
    if len(names) > MAX_WORKERS_NAMED:
        names = [*names[:MAX_WORKERS_NAMED], f"{len(names) - MAX_WORKERS_NAMED} more"]
    return ", ".join(names)


def _describe_run(run: PlannedRun, number: int) -> dict[str, Any]:
    """Return the note that says which run is made under its name, and what it consists of."""
    return {
        "identity": run.identity,
        "round": number,
        "evalwright": __version__,
        "push": _push_address(run),
        "record": {
            "model": run.model.describe(),
            "roles": {role: model.describe() for role, model in run.roles.items()},
            "tasks": [
                {
                    "name": task.name,
                    "content_hash": task.samples.content_hash,
                    "definition": dict(task.definition),
                }
                for task in run.tasks
            ],
            "configuration": dict(run.configuration),
        },
    }
