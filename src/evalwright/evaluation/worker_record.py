"""What all workers of a run sent and paid, for its record.

Each worker keeps a note of its counts, which it writes with every slice. What a killed worker sent
after its last note is in the store's ledger, which has every sending. The ledger knows no runs: it
is used where the models of a run answer for no other run of the same command.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from evalwright.engine.counts import Counts
from evalwright.engine.slices import WorkerNotes
from evalwright.evaluation.planning import PlannedRun
from evalwright.evaluation.recording import WorkOfAll
from evalwright.evaluation.worker_deaths import OpenWork

TOKEN_KINDS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
COUNTED = ("asked", "sent", "retries")
ESTIMATES = ("sendings", "tokens", "dollars")


@dataclass(slots=True)
class WorkerTally:
    """What this worker has done for one run, as its note says.

    Attributes:
        started: when it joined.
        round: the number of the round that it joined.
        slices: slices that it has finished.
        answers: answers in these.
        seconds: time spent on the run so far.
        open: what it has begun.
        has_left: whether it has ended in good order.
    """

    started: datetime
    round: int
    slices: int = 0
    answers: int = 0
    seconds: float = 0.0
    open: OpenWork = field(default_factory=OpenWork)
    has_left: bool = False

    def as_note(self, worker: str, counts: Sequence[Counts]) -> dict[str, Any]:
        """Return the note. counts: of all clients with which the worker sent requests."""
        return {
            "worker": worker,
            "host": platform.node(),
            "pid": os.getpid(),
            "started": self.started.isoformat(timespec="seconds"),
            "round": self.round,
            "slices": self.slices,
            "answers": self.answers,
            "seconds": round(self.seconds, 3),
            "usage": _sum_usage([client.as_dict() for client in counts]),
            "open": self.open.as_note(),
            "left": self.has_left,
        }


@dataclass(slots=True)
class LedgerSums:
    """What the ledger has of one worker's sendings to some models."""

    sendings: int = 0
    answered: int = 0
    tokens: dict[str, int] = field(
        default_factory=lambda: {"input_tokens": 0, "output_tokens": 0}
    )
    dollars: float | None = None
    estimated: dict[str, float] = field(
        default_factory=lambda: {"sendings": 0, "tokens": 0, "dollars": 0.0}
    )

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of the ledger."""
        self.sendings += row["sendings"]
        if row["outcome"] == "answered":
            self.answered += row["sendings"]
        for kind in self.tokens:
            self.tokens[kind] += row[kind]
        if row["dollars"] is not None:
            self.dollars = (self.dollars or 0.0) + row["dollars"]
        if row["estimated"]:
            self.estimated["sendings"] += row["sendings"]
            self.estimated["tokens"] += row["input_tokens"] + row["output_tokens"]
            self.estimated["dollars"] += row["dollars"] or 0.0


def models_apart(run: PlannedRun, runs: Iterable[PlannedRun]) -> frozenset[str]:
    """Return the names of a run's models; none if one of them answers for another run too."""
    names = _model_names(run)
    shared = any(names & _model_names(other) for other in runs if other.id != run.id)
    return frozenset() if shared else names


def _model_names(run: PlannedRun) -> frozenset[str]:
    return frozenset(model.name for model in (run.model, *run.roles.values()))


async def work_of_all(
    notes: WorkerNotes, round_number: int, models: frozenset[str], counts: Counts
) -> WorkOfAll:
    """Sum up what all workers of a run did, those of earlier rounds too.

    Args:
        notes: the notes about the run.
        round_number: the round that ends now; the run began with it.
        models: names of the models whose rows of the ledger belong to the run; none if these cannot
            be told from those of another run.
        counts: of the client whose session writes the run.
    """
    workers = await notes.workers()
    keys = [notes.key("worker", worker) for worker in workers]
    stored = [note if _is_tally(note) else None for note in await notes.read(keys)]
    sums = await _ledger_sums(notes, workers, models)
    rows = []
    usages = []
    for worker, note in zip(workers, stored, strict=True):
        usage = dict((note or {}).get("usage") or _sum_usage([]))
        if worker in sums:
            usage = _with_ledger(usage, sums[worker])
        usages.append(usage)
        row = _worker_row(worker, note or {}, usage)
        if row["slices"] or row["requests"]:
            rows.append(row)
    usage = _sum_usage(usages)
    failed = counts.failed + counts.joined
    stored_count = max(0, counts.requested - usage["asked"] - failed)
    started = [
        note["started"]
        for note in stored
        if note is not None and note.get("round") == round_number
    ]
    return WorkOfAll(
        started=min(map(datetime.fromisoformat, started), default=datetime.now(UTC)),
        usage={**usage, "stored": stored_count},
        workers=rows,
    )


def _is_tally(note: Mapping[str, Any] | None) -> bool:
    """Return whether a note is what `WorkerTally` writes, and not damaged."""
    if note is None:
        return False
    try:
        _sum_usage([note["usage"]])
        _worker_row("", note, note["usage"])
        return datetime.fromisoformat(note["started"]).tzinfo is not None
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


async def _ledger_sums(
    notes: WorkerNotes, workers: Sequence[str], models: frozenset[str]
) -> dict[str, LedgerSums]:
    """Return what the ledger has of these workers' sendings, by worker."""
    sums: dict[str, LedgerSums] = {}
    if not models:
        return sums
    of_run = set(workers)
    for row in await notes.ledger():
        if row["command"] in of_run and row["model"] in models:
            sums.setdefault(row["command"], LedgerSums()).add(row)
    return sums


def _with_ledger(usage: Mapping[str, Any], sums: LedgerSums) -> dict[str, Any]:
    """Return a worker's usage with what it sent after its last note."""
    unnoted = max(0, sums.sendings - usage["sent"] - usage["retries"])
    return {
        **usage,
        "asked": max(usage["asked"], sums.answered) if unnoted else usage["asked"],
        "sent": usage["sent"] + unnoted,
        "usage": {**usage["usage"], **sums.tokens},
        "cost": sums.dollars,
        "estimated": dict(sums.estimated),
    }


def _worker_row(
    worker: str, note: Mapping[str, Any], usage: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a worker's row in the record."""
    process, _, host = worker.rpartition("-")[0].partition("@")
    return {
        "host": str(note.get("host") or host),
        "pid": int(note.get("pid") or (process if process.isdecimal() else 0)),
        **({"started": note["started"]} if note.get("started") else {}),
        "slices": int(note.get("slices", 0)),
        "answers": int(note.get("answers", 0)),
        "requests": usage["sent"] + usage["retries"],
        "input_tokens": usage["usage"].get("input_tokens", 0),
        "output_tokens": usage["usage"].get("output_tokens", 0),
        "cost": None if usage["cost"] is None else round(usage["cost"], 12),
        "seconds": float(note.get("seconds", 0.0)),
    }


def _sum_usage(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum the counts of what was sent, in the form of `Counts.as_dict`."""
    costs = [usage["cost"] for usage in usages if usage["cost"] is not None]
    tokens = {
        kind: sum(usage["usage"].get(kind, 0) for usage in usages)
        for kind in TOKEN_KINDS
    }
    return {
        **{name: sum(usage[name] for usage in usages) for name in COUNTED},
        "usage": {kind: count for kind, count in tokens.items() if count},
        "cost": round(sum(costs), 12) if costs else None,
        "estimated": {
            kind: sum(usage["estimated"][kind] for usage in usages)
            for kind in ESTIMATES
        },
    }
