"""One local model as several workers, among which requests are divided in groups.

A worker holds one loaded copy of the model: a process on this machine (`processes.py`), or an actor
of a cluster. A group has requests whose prompts begin alike; the longest groups go first, each to
the worker that is free next. If a worker dies, its group goes to another.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.models.local.request_groups import Group, group_requests
from evalwright.models.local.tokens import Reader
from evalwright.models.model_interface import LocalModel
from evalwright.models.replicas import Replica

_log = logging.getLogger("evalwright.models")

_SPLIT_AFTER_DEATHS = (4, 64)
"""Number of parts into which a group is split after one death (perhaps by chance), and after two.
"""
FATAL_DEATHS = len(_SPLIT_AFTER_DEATHS) + 1
"""Deaths of workers on a request after which the request fails."""
_MAX_DEATHS_IN_A_ROW = 5
"""Deaths of a worker without an answer in between after which it is given up."""


class WorkerDied(Exception):
    """The worker is gone, and with it what it was computing. The message says how."""


class Worker(Protocol):
    """A copy of a model. One thread at a time calls `start` and `answer`, any calls `stop`."""

    name: str

    def start(self) -> None:
        """Load the model; called again after a `WorkerDied`.

        Raises:
            ModelError: it cannot be loaded.
        """

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Answer like `LocalModel.answer_batch`; an error of the model fails its requests.

        Raises:
            WorkerDied: the worker died.
        """

    def stop(self) -> None:
        """End the worker and free its resources. A running `answer` ends with WorkerDied."""


@dataclass(slots=True, eq=False)
class _Slot:
    """A worker and its state.

    `deaths` counts consecutive deaths, without an answer in between. Whoever uses the worker holds
    the lock.
    """

    worker: Worker
    replica: Replica
    alive: bool = False
    deaths: int = 0
    reason: BaseException | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ReplicaSet(LocalModel):
    """A local model whose answers come from its workers; to all other code it is the model.

    It raises what a worker's `start` raises, and ModelError if all workers have died too often.

    Args:
        model: the model, which is not loaded here.
        workers: its copies.
        placed: where they are, in a few words.
        check: raises a `UsageError` if they cannot be used; called after the model's own check.
    """

    def __init__(
        self,
        model: LocalModel,
        workers: Sequence[Worker],
        *,
        placed: str = "",
        check: Callable[[], None] | None = None,
    ) -> None:
        self.remark = f"{model.name}: {placed}." if placed else ""
        self._placed = placed
        self._check_workers = check
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
        """Describe the model, with the record of each worker."""
        placed = {"replica_devices": self._placed} if self._placed else {}
        return {
            **self._model.describe(),
            **placed,
            "replicas": [replica.as_dict() for replica in self.replicas],
        }

    def check(self) -> None:
        self._model.check()
        if self._check_workers is not None:
            self._check_workers()

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

        def start(index: int, worker: Worker) -> None:
            try:
                worker.start()
                started.put((index, None))
            except Exception as raised:
                started.put((index, raised))

        for numbered_worker in enumerate(slot.worker for slot in self._slots):
            # Daemon threads: a run that is interrupted meanwhile ends, however long loading takes.
            threading.Thread(target=start, args=numbered_worker, daemon=True).start()
        error_by_index = dict(started.get() for _ in self._slots)
        errors = [error_by_index[index] for index in range(len(error_by_index))]
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
            # One that does not stop must not keep the others from stopping.
            with suppress(Exception):
                slot.worker.stop()
            # A thread of an ended batch may just have started it again.
            with slot.lock, suppress(Exception):
                slot.worker.stop()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield every answer as it comes from its worker."""
        dealing = _Distribution(
            requests, group_requests(requests, len(self._slots)), self.name
        )
        for slot in self._slots:
            threading.Thread(target=dealing.work, args=(slot,), daemon=True).start()
        left = len(requests)
        workers = len(self._slots)
        try:
            while left:
                event = dealing.found.get()
                if isinstance(event, _Slot):
                    workers -= 1
                    if not workers:
                        raise ModelError(
                            f"all its workers died; the last: {event.reason}"
                        )
                else:
                    left -= 1
                    yield event
        finally:
            dealing.end()


class _Distribution:
    """One batch while its groups are handed out: a queue of groups for the workers' threads.

    `found` receives answers with their indices, and each worker that is given up.
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
        """End the batch: no thread takes another group."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def work(self, slot: _Slot) -> None:
        """Take groups until there are none left, in the thread of one worker.

        It waits while another worker may still return one.
        """
        with slot.lock:
            while slot.alive or self._revived(slot):
                if (group := self._take()) is None:
                    return
                places = list(group.places)
                slot.replica.begin(len(places))
                try:
                    for index, answer in slot.worker.answer(
                        [self._requests[index] for index in places]
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
        """Start a dead worker again and return whether that worked; report one that is given up."""
        name = f"{self._name}: the worker {slot.worker.name} died"
        while not self._ended:
            if slot.deaths >= _MAX_DEATHS_IN_A_ROW:
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
        """Return what a dead worker left, in small parts, or as failures.

        Small parts let one deadly request take only few others with it.
        """
        deaths = group.deaths + 1
        places = group.places
        if deaths >= FATAL_DEATHS:
            failure = ModelError(
                f"The model {self._name} failed: {deaths} workers died of this request,"
                f" or of one beside it: {error}"
            ).as_failure(attempts=deaths)
            for index in places:
                self.found.put((index, failure))
            return []
        size = -(-len(places) // _SPLIT_AFTER_DEATHS[group.deaths])
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
