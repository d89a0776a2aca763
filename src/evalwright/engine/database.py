"""A database as the place of a store: what the two kinds do in their own ways, and the SQL that
they share.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from evalwright.core.errors import Failure, StoreError
from evalwright.engine.claims import LEASE, OPEN, Owner, is_running
from evalwright.engine.rows import Group, Row, checksum_of

T = TypeVar("T")

Found = tuple[bytes, str, bytes, bytes, int | None]
"""key, model, request, response, checksum."""

LEDGER = (
    "command",
    "model",
    "outcome",
    "estimated",
    "sendings",
    "input_tokens",
    "output_tokens",
    "dollars",
    "first",
    "last",
)

AMOUNTS = ("requests", "tokens", "dollars")
"""What a budget limits, as columns of `allotments`."""

_BILL = """INSERT INTO ledger VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (command, model, outcome, estimated) DO UPDATE SET
    sendings = excluded.sendings, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    dollars = excluded.dollars, last = excluded.last WHERE excluded.sendings > ledger.sendings"""

_NAME = "INSERT INTO models VALUES (?,?) ON CONFLICT (model) DO NOTHING"

_EMPTY = "INSERT INTO empty VALUES (?,?,?)"

_PAGE = 100
"""Rows: a request with images may have megabytes."""


class Database(ABC):
    """A connection that one thread at a time may use.

    Its methods raise what the database's library raises; `error` says it plainly.
    """

    kind: ClassVar[str]
    order: ClassVar[tuple[str, Any]]
    """The column in whose order rows are read fastest, and a value before its first."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.closing = threading.Event()
        """Set when its user wants to end: nothing is waited for any more."""
        self._bills: dict[tuple[str, str, str, int], list[Any]] = {}
        self._owed: dict[tuple[str, str, str, int], list[Any]] = {}
        """Those of them of which it is not known that they were written."""

    @abstractmethod
    def read(self, keys: Sequence[bytes]) -> list[Found]:
        """The rows of these keys that there are."""

    @abstractmethod
    def apply(self, group: Group, owner: Owner) -> tuple[dict[bytes, str], set[bytes]]:
        """Carry out a group of batches, durably: what became of each claim, and the polled keys
        that no living owner claims.
        """

    @abstractmethod
    def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Who claims these keys, living or dead."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a statement with `?` for each value finds."""

    @abstractmethod
    def change(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        """Carry out a statement for each of these, in one transaction; how many rows it changed."""

    @abstractmethod
    def exclusively(self, step: Callable[[], T]) -> T:
        """Carry out a step of several statements durably and as one: no other process is in the
        middle of such a step meanwhile.
        """

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970 by the store's own clock."""

    @abstractmethod
    def rollback(self) -> None:
        """End a transaction that failed."""

    @abstractmethod
    def error(self, error: Exception) -> StoreError:
        """What an error of the database's library means to a person."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that it takes."""

    @abstractmethod
    def shrink(self) -> None:
        """Give back the space of what was deleted."""

    @abstractmethod
    def check(self) -> list[str]:
        """What the database itself finds wrong in its own structure, where it can tell."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def lease_from(self) -> float:
        """When leases began to count again: the start of a server, since nobody could renew one
        before.
        """
        return 0.0

    # -- owners and their claims

    def living(self, among: Sequence[str]) -> set[str]:
        """Those of these owners that live."""
        alive = OPEN.intersection(among)
        others = set(among) - OPEN
        if not others:
            return alive
        now = self.now()
        since = self.lease_from()
        for one, host, pid, start, expires in self.rows(
            "SELECT id, host, pid, started, expires FROM owners"
        ):
            if one in others:
                runs = is_running(host, pid, start)
                if runs or (runs is None and max(expires, since + LEASE) > now):
                    alive.add(one)
        return alive

    def register(self, owner: Owner) -> None:
        """Write the owner down with a new lease; in a transaction."""
        self.rows(
            "INSERT INTO owners (id, host, pid, started, expires) VALUES (?,?,?,?,?) "
            "ON CONFLICT (id) DO UPDATE SET expires=excluded.expires",
            (owner.id, owner.host, owner.pid, owner.started, self.now() + LEASE),
        )

    def sweep(self) -> None:
        """Remove dead owners and what they claimed; in a transaction."""
        others = [id for (id,) in self.rows("SELECT id FROM owners ORDER BY id")]
        for dead in sorted(set(others) - self.living(others)):
            self.rows("DELETE FROM claims WHERE owner=?", (dead,))
            self.rows("DELETE FROM owners WHERE id=?", (dead,))

    def forget(self, owner: Owner) -> None:
        """Remove an owner that ends, and its claims."""
        self.change("DELETE FROM claims WHERE owner=?", [(owner.id,)])
        self.change("DELETE FROM owners WHERE id=?", [(owner.id,)])

    def freed(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those keys that no living owner claims any more: answered, given up, or left by a dead
        process.
        """
        held = self.holders(keys)
        alive = self.living(sorted(set(held.values())))
        return {key for key in keys if held.get(key) not in alive}

    # -- what an owner writes besides

    def owe(self, group: Group, owner: Owner) -> None:
        """Add a group's bills to this owner's sums.

        What is written is the sums: written twice, they are the same.
        """
        now = time.time()
        for model, outcome, estimated, *more in group.bills:
            key = (owner.id, model, outcome, int(estimated))
            sums = self._owed[key] = self._bills.setdefault(
                key, [0, 0, 0, None, now, now]
            )
            sums[:3] = [old + new for old, new in zip(sums, more[:3], strict=False)]
            sums[3] = sums[3] if more[3] is None else more[3] + (sums[3] or 0.0)
            sums[5] = now
        group.billed()

    def owed(self) -> list[dict[str, Any]]:
        """The rows of the ledger of which it is not known that they were written."""
        return [
            dict(zip(LEDGER, (*key, *sums), strict=True))
            for key, sums in self._owed.items()
        ]

    def settled(self) -> None:
        """They are written, or kept elsewhere."""
        self._owed.clear()

    def write_small(self, group: Group) -> None:
        """Bills, remembered failures, removals of damaged rows and names of models; in a
        transaction.
        """
        for key, sums in self._owed.items():
            self.rows(_BILL, (*key, *sums))
        for row in group.empty:
            self.rows(
                f"{_EMPTY} ON CONFLICT (key) DO UPDATE SET failure = excluded.failure,"
                " checksum = excluded.checksum",
                row,
            )
        for pair in group.damaged:
            self.rows("DELETE FROM responses WHERE key=? AND response=?", pair)
        for name in sorted(group.names):
            self.rows(_NAME, name)

    # -- what several processes may spend together

    def allot(
        self,
        budget: str,
        command: str,
        wanted: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Take a part of a budget for a command.

        Args:
            budget: its name.
            command: who takes it.
            wanted: how much, by what is limited (`AMOUNTS`).
            limits: of the whole budget.

        Returns:
            What was taken, no more than what was left; and what all commands have taken by now.
        """

        def take() -> tuple[dict[str, float], dict[str, float]]:
            sums = ", ".join(f"coalesce(sum({name}), 0)" for name in AMOUNTS)
            (row,) = self.rows(
                f"SELECT {sums} FROM allotments WHERE budget=?", (budget,)
            )
            taken = {
                name: float(amount) for name, amount in zip(AMOUNTS, row, strict=True)
            }
            granted = {
                name: max(0.0, min(wanted[name], limit - taken[name]))
                for name, limit in limits.items()
            }
            self.rows(
                "INSERT INTO allotments VALUES (?,?,?,?,?) ON CONFLICT (budget,"
                " command) DO UPDATE SET "
                + ", ".join(
                    f"{name} = allotments.{name} + excluded.{name}" for name in AMOUNTS
                ),
                (budget, command, *(granted.get(name, 0.0) for name in AMOUNTS)),
            )
            return granted, {
                name: taken[name] + granted.get(name, 0.0) for name in AMOUNTS
            }

        return self.exclusively(take)

    def settle_allotment(
        self, budget: str, command: str, spent: Mapping[str, float]
    ) -> None:
        """What a command has taken of a budget was what it spent: the rest is free again."""
        changes = ", ".join(f"{name}=?" for name in AMOUNTS)
        self.change(
            f"UPDATE allotments SET {changes} WHERE budget=? AND command=?",
            [(*(spent[name] for name in AMOUNTS), budget, command)],
        )

    # -- what is kept

    def count(self) -> int:
        """How many responses there are."""
        return int(self.rows("SELECT count(*) FROM responses")[0][0])

    def empty_keys(self) -> set[bytes]:
        """The requests that are remembered because every reply to them was empty."""
        return {key for (key,) in self.rows("SELECT key FROM empty")}

    def empty(self, key: bytes) -> Failure | None:
        """The failure that is remembered of such a request."""
        found = self.rows("SELECT failure, checksum FROM empty WHERE key=?", (key,))
        if not found or found[0][1] != checksum_of(key, found[0][0]):
            return None
        return Failure(**json.loads(found[0][0]))

    def ledger(self) -> list[dict[str, Any]]:
        """The ledger's rows in the order of their beginning."""
        names = ", ".join(LEDGER)
        rows = self.rows(
            f"SELECT {names} FROM ledger ORDER BY first, command, model, outcome,"
            " estimated"
        )
        return [dict(zip(LEDGER, row, strict=True)) for row in rows]

    def summary(self) -> list[tuple[str, str, int, int, float, float]]:
        """By model: fingerprint, name, responses, bytes of requests and responses, the oldest's and
        the newest's time.
        """
        names = dict(self.names())
        found = self.rows(
            "SELECT model, count(*), sum(length(request) + length(response)),"
            " min(created), max(created) FROM responses GROUP BY model"
        )
        return sorted(
            ((row[0], names.get(row[0], ""), *row[1:]) for row in found),
            key=lambda row: row[1::-1],
        )

    def names(self) -> list[tuple[str, str]]:
        """What models were called, by their fingerprint; none for those of older versions."""
        return self.rows("SELECT model, name FROM models ORDER BY model")

    def pages(self) -> Iterator[list[Row]]:
        """All responses, page by page."""
        column, last = self.order
        while page := self.rows(
            f"SELECT {column}, key, model, request, response, created, checksum FROM"
            f" responses WHERE {column} > ? ORDER BY {column} LIMIT {_PAGE}",
            (last,),
        ):
            last = page[-1][0]
            yield [tuple(row[1:]) for row in page]

    def empties(self) -> list[tuple[bytes, str, int]]:
        """Requests to which every reply was empty: key, failure as JSON, checksum."""
        return self.rows("SELECT key, failure, checksum FROM empty ORDER BY key")

    # -- what is brought from elsewhere

    def add(self, rows: Sequence[Row]) -> int:
        """Add responses to requests that have none; how many."""
        return self.change(
            "INSERT INTO responses (key, model, request, response, created, checksum)"
            " VALUES (?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING",
            rows,
        )

    def add_empties(self, rows: Sequence[tuple[bytes, str, int]]) -> int:
        """Add failures of requests that have none."""
        return self.change(f"{_EMPTY} ON CONFLICT (key) DO NOTHING", rows)

    def add_names(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Add names of models that have none."""
        return self.change(_NAME, pairs)

    def add_ledger(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows of another ledger.

        What one command wrote only grows, so of two states the larger counts.
        """
        return self.change(_BILL, [tuple(row[name] for name in LEDGER) for row in rows])

    def delete(self, keys: Sequence[bytes]) -> int:
        """Delete responses; how many there were."""
        return self.change(
            "DELETE FROM responses WHERE key=?", [(key,) for key in keys]
        )


def check_version(place: str, found: object, known: int, instead: str) -> None:
    """Raises StoreError where tables have a version that this version of evalwright does not know."""
    if not isinstance(found, int) or found < 0:
        raise StoreError(f"{place} is not one that evalwright wrote: name {instead}.")
    if found > known:
        raise StoreError(
            f"{place} was written by a newer version of evalwright (its schema is"
            f" {found}, this version knows {known}): upgrade evalwright, or name"
            f" {instead}."
        )
