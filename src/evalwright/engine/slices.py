"""Slices of a run in the store: which are done, and which worker evaluates which.

A slice is claimed like a request (`claims.py`), so that a slice of a dead worker is free at once or
after its lease, and it is done once its note is stored. Notes are rows of the store like those of
actions (`actions.py`): whoever prunes a model's responses prunes the notes about them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from evalwright.core.errors import StoreError
from evalwright.core.responses import Response
from evalwright.engine.key import KEY_BYTES, canonical
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, row_of, storable_text

NOTE = "note of workers"
"""The kind of a stored request that is a note, under the key "kind"."""

VERSION = 1
"""Raised when the meaning of a note changes, so that workers of two versions do not mix."""


class WorkerNotes:
    """What the workers of one run tell each other through the store.

    Args:
        store: the store.
        fingerprint: of the model under test.
        name: names the run, the same in all its workers.
    """

    def __init__(self, store: Store, fingerprint: str, name: Sequence[str]) -> None:
        self._store = store
        self._fingerprint = storable_text(fingerprint)
        self._name = list(name)

    @property
    def worker(self) -> str:
        """The id of this worker, under which it claims and its sendings are in the ledger."""
        return self._store.command

    @property
    def poll_seconds(self) -> float:
        """Seconds between two looks at what other workers do."""
        return self._store.poll_seconds

    def within(self, *parts: str) -> WorkerNotes:
        """Return the notes about a part of the run, such as one round."""
        return WorkerNotes(self._store, self._fingerprint, [*self._name, *parts])

    def key(self, *parts: object) -> bytes:
        """Return the key of the note about something."""
        text = canonical({"note": VERSION, "of": [*self._name, *map(str, parts)]})
        return blake2b(text, digest_size=KEY_BYTES).digest()

    async def read(self, keys: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """Return the stored notes with these keys, None where there is none."""
        return [
            None if stored is None else _content_of(stored)
            for stored in await self._store.get_many(keys)
        ]

    async def write(self, key: bytes, content: Mapping[str, Any]) -> None:
        """Store a note, in place of an earlier one, and end the claim of its key.

        It is durable when this returns.

        Raises:
            StoreError: it cannot be stored.
        """
        if self._store.broken is not None:
            raise StoreError(str(self._store.broken))
        payload = canonical({"kind": NOTE, "of": self._name})
        text = json.dumps(content, ensure_ascii=False)
        row = row_of(key, self._fingerprint, payload, Response(text).without_secrets())
        await self._store.outbox().put(row)

    async def claim(self, key: bytes) -> str:
        """Claim a key: MINE, STORED if there is a note, or the id of the worker that has it."""
        outbox = self._store.outbox()
        claim = outbox.claim(key)
        try:
            return await claim
        except BaseException:
            outbox.give_up(key, claim)
            raise

    async def claim_in_turn(self, key: bytes) -> str:
        """Claim a key once nobody else has it: MINE, or STORED if there is a note by then."""
        outbox = self._store.outbox()
        claim = outbox.claim(key)
        try:
            while (outcome := await claim) not in (MINE, STORED):
                claim = outbox.claim_after(key)
        except BaseException:
            outbox.give_up(key, claim)
            raise
        return outcome

    def release(self, key: bytes) -> None:
        """End a claim without a note."""
        self._store.outbox().release(key)

    @asynccontextmanager
    async def alone(self, *parts: object) -> AsyncIterator[None]:
        """Let one worker at a time into the block. There must be no note about these parts."""
        key = self.key(*parts)
        await self.claim_in_turn(key)
        try:
            yield
        finally:
            self.release(key)

    async def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the living worker that claims each of these keys."""
        owner_by_key: dict[bytes, str] = await self._store.look("holders", keys)
        living = await self.living(sorted(set(owner_by_key.values())))
        return {key: owner for key, owner in owner_by_key.items() if owner in living}

    async def living(self, workers: Sequence[str]) -> set[str]:
        """Return which of these workers are alive."""
        if not workers:
            return set()
        alive: set[str] = await self._store.look("living", workers)
        return alive

    async def register(self) -> None:
        """Add this worker to those of the run.

        The list is that of the takers of a budget without limits.
        """
        await self._store.allot(self.key("workers").hex(), {}, {})

    async def workers(self) -> list[str]:
        """Return all workers of the run so far, dead ones too."""
        takers: list[str] = await self._store.look("takers", self.key("workers").hex())
        return takers

    async def ledger(self) -> list[dict[str, Any]]:
        """Return the rows of the store's ledger."""
        rows: list[dict[str, Any]] = await self._store.look("ledger")
        return rows


@dataclass(frozen=True, slots=True)
class SliceCounts:
    """How far all workers of a run are together.

    Attributes:
        total: number of slices.
        done: slices that are evaluated.
        elsewhere: slices that other living workers have now.
        workers: other workers that have a slice now.
    """

    total: int
    done: int
    elsewhere: int
    workers: int


class SharedSlices:
    """The slices of one round of a run, of which this worker claims some.

    Workers begin at different slices, and one that meets another goes on in the middle of the
    longest series of free slices, so that they seldom meet.

    Args:
        notes: the notes about the round.
        total: number of slices.
        in_order: whether to take them from the first one on, so that what a budget pays for is the
            beginning.
        kind: what is done with the slices; those of each kind are claimed and done separately.
        announce: notes that this worker begins a slice. It is called while the slice is claimed,
            perhaps in vain, and awaited before `claim` returns.
    """

    def __init__(
        self,
        notes: WorkerNotes,
        total: int,
        *,
        in_order: bool = False,
        kind: str = "slice",
        announce: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self.notes = notes
        self._announce = announce
        self._keys = [notes.key(kind, number) for number in range(total)]
        self._numbers = {key: number for number, key in enumerate(self._keys)}
        self._done: set[int] = set()
        self._mine: set[int] = set()
        self._elsewhere: dict[int, str] = {}
        self._in_order = in_order
        self._next = 0 if in_order or not total else _start(notes.worker, total)

    @property
    def counts(self) -> SliceCounts:
        """How far all workers are, as of the last look."""
        return SliceCounts(
            len(self._keys),
            len(self._done),
            len(self._elsewhere),
            len(set(self._elsewhere.values())),
        )

    @property
    def mine(self) -> frozenset[int]:
        """The slices that this worker has claimed and not finished."""
        return frozenset(self._mine)

    @property
    def all_done(self) -> bool:
        """Whether all slices are done, as of the last look."""
        return len(self._done) == len(self._keys)

    @property
    def some_free(self) -> bool:
        """Whether a slice is free, as of the last look."""
        return self._next_free() is not None

    async def look(self) -> None:
        """Look at what all workers have done and claimed."""
        open_numbers = [
            number
            for number in range(len(self._keys))
            if number not in self._done and number not in self._mine
        ]
        open_keys = [self._keys[number] for number in open_numbers]
        if not open_keys:
            self._elsewhere = {}
            return
        # Claims first: a slice that ends in between is seen as done, never as free.
        holders = await self.notes.holders(open_keys)
        notes = await self.notes.read(open_keys)
        self._done.update(
            number
            for number, note in zip(open_numbers, notes, strict=True)
            if note is not None
        )
        self._elsewhere = {
            self._numbers[key]: owner
            for key, owner in holders.items()
            if self._numbers[key] not in self._done and owner != self.notes.worker
        }

    async def claim(self) -> int | None:
        """Claim a free slice and return its number, None if none is free."""
        is_fresh = False
        while True:
            number = self._next_free()
            if number is None:
                if is_fresh:
                    return None
                await self.look()
                is_fresh = True
                continue
            outcome = await self._claim_key(number)
            if outcome == MINE:
                self._mine.add(number)
                self._next = number + 1
                return number
            if outcome == STORED:
                self._done.add(number)
            await self.look()
            is_fresh = True
            if outcome != STORED:
                self._elsewhere.setdefault(number, outcome)
            self._next = 0 if self._in_order else self._middle_of_longest_series()

    async def _claim_key(self, number: int) -> str:
        if self._announce is None:
            return await self.notes.claim(self._keys[number])
        # Both are in one transaction, so that the announcement costs no time.
        outcome, _ = await asyncio.gather(
            self.notes.claim(self._keys[number]), self._announce(number)
        )
        return outcome

    async def contents(self) -> list[dict[str, Any]]:
        """Return what is noted about the slices that are done."""
        return [note for note in await self.notes.read(self._keys) if note is not None]

    async def finish(self, number: int, content: Mapping[str, Any]) -> None:
        """Store that a claimed slice is done."""
        await self.notes.write(self._keys[number], content)
        self._mine.discard(number)
        self._done.add(number)

    def _is_free(self, number: int) -> bool:
        return not (
            number in self._done or number in self._mine or number in self._elsewhere
        )

    def _next_free(self) -> int | None:
        total = len(self._keys)
        for step in range(total):
            number = (self._next + step) % total
            if self._is_free(number):
                return number
        return None

    def _middle_of_longest_series(self) -> int:
        longest = begin = 0
        middle = self._next
        for number in range(len(self._keys) + 1):
            if number < len(self._keys) and self._is_free(number):
                continue
            if number - begin > longest:
                longest = number - begin
                middle = begin + longest // 2
            begin = number + 1
        return middle


def _start(worker: str, total: int) -> int:
    """Return the slice at which a worker begins."""
    digest = blake2b(worker.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % total


def _content_of(stored: Response) -> dict[str, Any]:
    try:
        content = json.loads(stored.text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
