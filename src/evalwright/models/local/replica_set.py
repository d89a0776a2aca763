"""One local model as several workers: requests are dealt out in groups, and what a dead worker had
goes to another.

A worker holds one loaded copy of the model: a process on this machine (`processes.py`), an actor of
a cluster. Groups have requests whose prompts begin alike, the longest go first, and each goes to
the worker that is free next.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.models.base import LocalModel
from evalwright.models.local.tokens import Reader
from evalwright.models.replicas import Replica

_log = logging.getLogger("evalwright.models")

_ROUNDS = 4
"""Groups that each worker gets of a batch, about: fewer share more, more end together."""
_LARGEST = 512
_PARTS = (4, 64)
"""Into so many a group is split of which a worker died, once (it may be chance) and again."""
FATAL = len(_PARTS) + 1
"""So many workers a request may take with it before it has failed."""
_IN_A_ROW = 5
"""So often a worker may die without an answer in between before it is given up."""


class WorkerDied(Exception):
    """The worker is gone, and with it what it was computing. The message says how."""


class Worker(Protocol):
    """One copy of a model. `start` and `answer` are called by one thread at a time, `stop` by any."""

    name: str

    def start(self) -> None:
        """Load the model; after a `WorkerDied` once more, anew.

        Raises ModelError where it cannot be loaded.
        """

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """As `LocalModel.answer_batch`; an error of the model is the failure of its requests.

        Raises WorkerDied.
        """

    def stop(self) -> None:
        """End it and free what it holds. A running `answer` ends with WorkerDied."""


@dataclass(slots=True)
class Group:
    """Requests that go to one worker together: their places in the batch. deaths: workers that died
    of it.
    """

    places: list[int]
    deaths: int = 0


@dataclass(slots=True, eq=False)
class _Slot:
    """A worker and how it stands. deaths: in a row, without an answer in between.

    Whoever uses the worker holds the lock.
    """

    worker: Worker
    replica: Replica
    alive: bool = False
    deaths: int = 0
    reason: BaseException | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ReplicaSet(LocalModel):
    """A local model that its workers answer for; to everybody else it is the model.

    Answers are the model's own.

    Raises what a worker's `start` raises; where all have died too often, ModelError.
    """

    def __init__(self, model: LocalModel, workers: Sequence[Worker]) -> None:
        self.name = model.name
        self.abilities = model.abilities
        self.fingerprint = model.fingerprint
        self.price = model.price
        self.carries = model.carries
        self.naming = model.naming
        self.heavy = model.heavy
        self.replicas = [Replica(worker.name) for worker in workers]
        self._model = model
        self._slots = [
            _Slot(worker, replica)
            for worker, replica in zip(workers, self.replicas, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """The model, and how each worker did."""
        return {
            **self._model.describe(),
            "replicas": [one.as_dict() for one in self.replicas],
        }

    def check(self) -> None:
        self._model.check()

    def try_out(self) -> dict[str, Any]:
        return self._model.try_out()

    def refuses(self, request: Request) -> str | None:
        return self._model.refuses(request)

    def reader(self) -> Reader | None:
        return self._model.reader()

    def load(self) -> None:
        """Start all workers at once.

        One that dies while others start is started again when there is work.
        """
        started: SimpleQueue[tuple[int, Exception | None]] = SimpleQueue()

        def start(place: int, worker: Worker) -> None:
            try:
                worker.start()
                started.put((place, None))
            except Exception as raised:
                started.put((place, raised))

        for each in enumerate(slot.worker for slot in self._slots):
            # Daemons: a run that is interrupted meanwhile ends, however long loading takes.
            threading.Thread(target=start, args=each, daemon=True).start()
        found = dict(started.get() for _ in self._slots)
        errors = [found[place] for place in range(len(found))]
        worst = next(
            (error for error in errors if not isinstance(error, WorkerDied | None)),
            errors[0],
        )
        if worst is not None and (
            None not in errors or not isinstance(worst, WorkerDied)
        ):
            self.unload()
            raise ModelError(str(worst)) if isinstance(worst, WorkerDied) else worst
        for slot, error in zip(self._slots, errors, strict=True):
            slot.alive = error is None
            slot.deaths = int(error is not None)
            slot.reason = error

    def unload(self) -> None:
        """Stop all workers."""
        for slot in self._slots:
            slot.alive = False
            with suppress(Exception):  # one that does not stop must not keep the others
                slot.worker.stop()
            # A thread of an ended batch may just have started it again.
            with slot.lock, suppress(Exception):
                slot.worker.stop()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield every answer as it comes from its worker."""
        dealing = _Dealing(requests, groups_of(requests, len(self._slots)), self.name)
        for slot in self._slots:
            threading.Thread(target=dealing.work, args=(slot,), daemon=True).start()
        left = len(requests)
        workers = len(self._slots)
        try:
            while left:
                found = dealing.found.get()
                if isinstance(found, _Slot):
                    workers -= 1
                    if not workers:
                        raise ModelError(
                            f"all its workers died; the last: {found.reason}"
                        )
                else:
                    left -= 1
                    yield found
        finally:
            dealing.end()


class _Dealing:
    """One batch while its groups are dealt out: a queue of groups that the workers' threads take
    from.

    found: answers with their places, and each worker that is given up.
    """

    def __init__(
        self, requests: Sequence[Request], groups: Sequence[Group], name: str
    ) -> None:
        self.found: SimpleQueue[tuple[int, Response | Failure] | _Slot] = SimpleQueue()
        self._requests = requests
        self._groups = deque(groups)
        self._name = name
        self._under_way = 0
        self._ended = False
        self._changed = threading.Condition()

    def end(self) -> None:
        """The batch has ended: no thread takes another group."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def work(self, slot: _Slot) -> None:
        """A thread of one worker: take groups until there are none, not even one that another may
        give back.
        """
        with slot.lock:
            while slot.alive or self._revived(slot):
                if (group := self._take()) is None:
                    return
                places = list(group.places)
                slot.replica.begin(len(places))
                try:
                    for index, answer in slot.worker.answer(
                        [self._requests[place] for place in places]
                    ):
                        group.places.remove(places[index])
                        slot.replica.end(failed=isinstance(answer, Failure))
                        slot.deaths = 0
                        self.found.put((places[index], answer))
                        if self._ended and group.places:
                            break
                    if group.places:
                        raise WorkerDied(
                            "it ended its group without an answer to every request"
                        )
                    self._give_back()
                except Exception as error:
                    slot.replica.end(len(group.places), failed=True)
                    slot.alive = False
                    slot.deaths = slot.deaths + 1
                    slot.reason = error
                    self._give_back(*self._parts(group, error))

    def _revived(self, slot: _Slot) -> bool:
        """Whether a dead worker was started again; it is told of where it is given up."""
        name = f"{self._name}: the worker {slot.worker.name} died"
        while not self._ended:
            if slot.deaths >= _IN_A_ROW:
                _log.warning(
                    "%s %d times in a row and is given up: %s",
                    name,
                    slot.deaths,
                    slot.reason,
                )
                self.found.put(slot)
                return False
            if slot.reason is not None:
                _log.warning("%s (%s); it is started again.", name, slot.reason)
            try:
                slot.worker.stop()
                slot.worker.start()
                slot.alive = True
                return True
            except Exception as error:
                slot.deaths = slot.deaths + 1
                slot.reason = error
        return False

    def _parts(self, group: Group, error: Exception) -> list[Group]:
        """What a dead worker left, in small parts, so that one deadly request takes few others with
        it; or their failure.
        """
        deaths = group.deaths + 1
        places = group.places
        if deaths >= FATAL:
            failure = ModelError(
                f"The model {self._name} failed: {deaths} workers died of this request,"
                f" or of one beside it: {error}"
            ).as_failure(attempts=deaths)
            for place in places:
                self.found.put((place, failure))
            return []
        size = -(-len(places) // _PARTS[group.deaths])
        return [
            Group(places[start : start + size], deaths)
            for start in range(0, len(places), size or 1)
        ]

    def _take(self) -> Group | None:
        with self._changed:
            while not self._groups and self._under_way and not self._ended:
                self._changed.wait()
            if self._ended or not self._groups:
                return None
            self._under_way += 1
            return self._groups.popleft()

    def _give_back(self, *groups: Group) -> None:
        with self._changed:
            self._under_way -= 1
            self._groups.extendleft(groups)
            self._changed.notify_all()


def groups_of(requests: Sequence[Request], workers: int) -> list[Group]:
    """The requests in groups: prompts that begin alike together, one context's continuations never
    apart, the longest first.
    """
    texts = [_text_of(request) for request in requests]
    # Kinds apart: answers are written in steps that cost about the same for one row as for many.
    order = sorted(
        range(len(requests)), key=lambda place: (requests[place].ability, texts[place])
    )
    size = (
        len(order)
        if workers == 1
        else max(1, min(_LARGEST, -(-len(order) // max(1, workers * _ROUNDS))))
    )
    groups: list[Group] = []
    for place in order:
        last = groups[-1].places if groups else []
        full = len(last) >= size and (
            texts[last[-1]] != texts[place] or len(last) >= 2 * size
        )
        if not last or full:
            groups.append(Group([place]))
        else:
            last.append(place)

    def length(group: Group) -> int:
        return sum(len(texts[place]) for place in group.places)

    return sorted(groups, key=length, reverse=True)


def _text_of(request: Request) -> str:
    """What a request begins with: its prompt, context or text."""
    for name in ("prompt", "context", "text", "premise"):
        if (found := getattr(request, name, None)) is not None:
            return (
                found
                if isinstance(found, str)
                else "\0".join(turn.text for turn in found)
            )
    return ""
