"""The interface of a store's database, which SQLite and PostgreSQL implement, and common SQL."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from evalwright.core.errors import Failure, StoreError
from evalwright.engine.claims import LEASE_SECONDS, OPEN_OWNERS, Owner, is_running
from evalwright.engine.store_rows import Group, Row, checksum_of

T = TypeVar("T")

StoredRow = tuple[bytes, str, bytes, bytes, int | None]
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
"""The units that a budget limits; also columns of `allotments`."""

_WRITE_BILL = """INSERT INTO ledger VALUES (?,?,?,?,?,?,?,?,?,?)
    ON CONFLICT (command, model, outcome, estimated) DO UPDATE SET
    sendings = excluded.sendings, input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens, dollars = excluded.dollars, last = excluded.last
    WHERE excluded.sendings > ledger.sendings"""

_WRITE_NAME = "INSERT INTO models VALUES (?,?) ON CONFLICT (model) DO NOTHING"

_WRITE_EMPTY = "INSERT INTO empty VALUES (?,?,?)"

_PAGE_ROWS = 100
"""Rows read at a time; a request with images may have megabytes."""


class Database(ABC):
    """A connection that one thread at a time may use.

    Its methods raise the errors of the database's library; `error` translates them for people.
    """

    kind: ClassVar[str]
    order: ClassVar[tuple[str, Any]]
    """The column in whose order rows are read fastest, and a value below all of its values."""
    commits_at_once = False
    """Whether a commit takes no longer than handing it to another thread would."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.closing = threading.Event()
        """Set when the user wants to stop: from then on nothing waits for the database."""
        self._bills: dict[tuple[str, str, str, int], list[Any]] = {}
        self._unwritten_bills: dict[tuple[str, str, str, int], list[Any]] = {}
        """The sums in `_bills` that may not have been written yet."""

    @abstractmethod
    def read(self, keys: Sequence[bytes]) -> list[StoredRow]:
        """Return the rows with these keys."""

    @abstractmethod
    def apply(self, group: Group, owner: Owner) -> tuple[dict[bytes, str], set[bytes]]:
        """Commit a group of batches. It survives the end of this process.

        After `sync` it survives a loss of power, too.

        Returns:
            The outcome of each claim, and the polled keys that no living owner claims.
        """

    def try_apply(self, group: Group, owner: Owner) -> dict[bytes, str] | None:
        """Do as `apply`, for a group without polls, if no other process has to be waited for.

        Returns:
            The outcome of each claim; None if nothing was done.
        """
        return None

    def sync(self) -> None:
        """Wait until all that was applied survives a loss of power."""
        return

    def checkpoint(self, *, is_paused: bool = False) -> bool:
        """Do the upkeep that is due after so many changes.

        Args:
            is_paused: nothing is applied meanwhile, so this does what an earlier call has left.

        Returns:
            Whether some of it is left, for a moment in which nothing is applied.
        """
        return False

    @abstractmethod
    def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the owner that claims each of these keys, living or dead."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement with a `?` for each value and return its rows."""

    @abstractmethod
    def change(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row of values in one transaction; count the changed rows."""

    @abstractmethod
    def exclusively(self, step: Callable[[], T]) -> T:
        """Carry out a step of several statements, durably and atomically.

        No other process carries out such a step at the same time.
        """

    @abstractmethod
    def now(self) -> float:
        """Return the seconds since 1970 by the store's own clock."""

    @abstractmethod
    def rollback(self) -> None:
        """End a transaction that failed."""

    @abstractmethod
    def error(self, error: Exception) -> StoreError:
        """Translate an error of the database's library into a StoreError."""

    @abstractmethod
    def size(self) -> int:
        """Size in bytes."""

    @abstractmethod
    def shrink(self) -> None:
        """Release the space of deleted rows."""

    @abstractmethod
    def check(self) -> list[str]:
        """Return the defects that the database finds in its own structure, if it can check that."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def lease_from(self) -> float:
        """Return when leases began to count again.

        That is the start of the server: nobody could renew a lease while it was down.
        """
        return 0.0

    # -- owners and their claims

    def living(self, among: Sequence[str]) -> set[str]:
        """Return which of the named owners are alive."""
        alive = OPEN_OWNERS.intersection(among)
        others = set(among) - OPEN_OWNERS
        if not others:
            return alive
        now = self.now()
        since = self.lease_from()
        for owner_id, host, pid, start, expires in self.rows(
            "SELECT id, host, pid, started, expires FROM owners"
        ):
            if owner_id in others:
                runs = is_running(host, pid, start)
                if runs or (runs is None and max(expires, since + LEASE_SECONDS) > now):
                    alive.add(owner_id)
        return alive

    def register(self, owner: Owner) -> None:
        """Register the owner with a new lease; runs inside a transaction."""
        self.rows(
            "INSERT INTO owners (id, host, pid, started, expires) VALUES (?,?,?,?,?) "
            "ON CONFLICT (id) DO UPDATE SET expires=excluded.expires",
            (
                owner.id,
                owner.host,
                owner.pid,
                owner.started,
                self.now() + LEASE_SECONDS,
            ),
        )

    def sweep(self) -> None:
        """Remove dead owners and their claims; runs inside a transaction."""
        others = [id for (id,) in self.rows("SELECT id FROM owners ORDER BY id")]
        for dead in sorted(set(others) - self.living(others)):
            self.rows("DELETE FROM claims WHERE owner=?", (dead,))
            self.rows("DELETE FROM owners WHERE id=?", (dead,))

    def forget(self, owner: Owner) -> None:
        """Remove an owner that closes its store, and its claims."""
        self.change("DELETE FROM claims WHERE owner=?", [(owner.id,)])
        self.change("DELETE FROM owners WHERE id=?", [(owner.id,)])

    def freed(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys that no living owner claims any more.

        Their requests were answered, given up, or left behind by a dead process.
        """
        owner_by_key = self.holders(keys)
        alive = self.living(sorted(set(owner_by_key.values())))
        return {key for key in keys if owner_by_key.get(key) not in alive}

    # -- what an owner writes besides responses

    def add_bills(self, group: Group, owner: Owner) -> None:
        """Add a group's bills to the sums that this owner will write to the ledger.

        Only sums are written, so writing them twice changes nothing.
        """
        now = time.time()
        for model, outcome, estimated, *amounts in group.bills:
            key = (owner.id, model, outcome, int(estimated))
            sums = self._unwritten_bills[key] = self._bills.setdefault(
                key, [0, 0, 0, None, now, now]
            )
            sums[:3] = [old + new for old, new in zip(sums, amounts[:3], strict=False)]
            sums[3] = sums[3] if amounts[3] is None else amounts[3] + (sums[3] or 0.0)
            sums[5] = now
        group.billed()

    def unwritten_bills(self) -> list[dict[str, Any]]:
        """Return the rows of the ledger that may not have been written yet."""
        return [
            dict(zip(LEDGER, (*key, *sums), strict=True))
            for key, sums in self._unwritten_bills.items()
        ]

    def bills_written(self) -> None:
        """Note that the unwritten bills have been written, or saved elsewhere."""
        self._unwritten_bills.clear()

    def write_small(self, group: Group) -> None:
        """Write bills, remembered failures and model names, and delete damaged rows.

        Runs inside a transaction.
        """
        for key, sums in self._unwritten_bills.items():
            self.rows(_WRITE_BILL, (*key, *sums))
        for row in group.empty:
            self.rows(
                f"{_WRITE_EMPTY} ON CONFLICT (key) DO UPDATE SET failure = excluded.failure,"
                " checksum = excluded.checksum",
                row,
            )
        for pair in group.damaged:
            self.rows("DELETE FROM responses WHERE key=? AND response=?", pair)
        for name in sorted(group.names):
            self.rows(_WRITE_NAME, name)

    # -- budgets that several processes share

    def allot(
        self,
        budget: str,
        command: str,
        amounts: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Take a part of a budget for a command.

        Args:
            budget: the budget's name.
            command: the command that takes it.
            amounts: how much to take of each unit (`AMOUNTS`).
            limits: the limits of the whole budget.

        Returns:
            The part taken, no more than was left; and the total taken by all commands so far.
        """

        def take() -> tuple[dict[str, float], dict[str, float]]:
            sums = ", ".join(f"coalesce(sum({name}), 0)" for name in AMOUNTS)
            (row,) = self.rows(
                f"SELECT {sums} FROM allotments WHERE budget=?", (budget,)
            )
            allotted = {
                name: float(amount) for name, amount in zip(AMOUNTS, row, strict=True)
            }
            granted = {
                name: max(0.0, min(amounts[name], limit - allotted[name]))
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
                name: allotted[name] + granted.get(name, 0.0) for name in AMOUNTS
            }

        return self.exclusively(take)

    def settle_allotment(
        self, budget: str, command: str, spent: Mapping[str, float]
    ) -> None:
        """Reduce what a command has taken of a budget to what it spent."""
        changes = ", ".join(f"{name}=?" for name in AMOUNTS)
        self.change(
            f"UPDATE allotments SET {changes} WHERE budget=? AND command=?",
            [(*(spent[name] for name in AMOUNTS), budget, command)],
        )

    def takers(self, budget: str) -> list[str]:
        """Return the commands that have taken a part of a budget, dead ones too."""
        rows = self.rows(
            "SELECT command FROM allotments WHERE budget=? ORDER BY command", (budget,)
        )
        return [command for (command,) in rows]

    # -- reading the store as a whole

    def count(self) -> int:
        """Return the number of responses."""
        return int(self.rows("SELECT count(*) FROM responses")[0][0])

    def empty_keys(self) -> set[bytes]:
        """Return the requests that are remembered because every reply to them was empty."""
        return {key for (key,) in self.rows("SELECT key FROM empty")}

    def empty(self, key: bytes) -> Failure | None:
        """Return the remembered failure of a request to which every reply was empty."""
        rows = self.rows("SELECT failure, checksum FROM empty WHERE key=?", (key,))
        if not rows or rows[0][1] != checksum_of(key, rows[0][0]):
            return None
        return Failure(**json.loads(rows[0][0]))

    def ledger(self) -> list[dict[str, Any]]:
        """Return the rows of the ledger, oldest first."""
        names = ", ".join(LEDGER)
        rows = self.rows(
            f"SELECT {names} FROM ledger ORDER BY first, command, model, outcome,"
            " estimated"
        )
        return [dict(zip(LEDGER, row, strict=True)) for row in rows]

    def summary(self) -> list[tuple[str, str, int, int, float, float]]:
        """Return, by model: fingerprint, name, responses, bytes, oldest and newest response."""
        names = dict(self.names())
        rows = self.rows(
            "SELECT model, count(*), sum(length(request) + length(response)),"
            " min(created), max(created) FROM responses GROUP BY model"
        )
        return sorted(
            ((row[0], names.get(row[0], ""), *row[1:]) for row in rows),
            key=lambda row: row[1::-1],
        )

    def names(self) -> list[tuple[str, str]]:
        """Return names of models by fingerprint; databases of older versions may have none."""
        return self.rows("SELECT model, name FROM models ORDER BY model")

    def pages(self) -> Iterator[list[Row]]:
        """Yield all responses, page by page."""
        column, last = self.order
        while page := self.rows(
            f"SELECT {column}, key, model, request, response, created, checksum FROM"
            f" responses WHERE {column} > ? ORDER BY {column} LIMIT {_PAGE_ROWS}",
            (last,),
        ):
            last = page[-1][0]
            yield [tuple(row[1:]) for row in page]

    def empties(self) -> list[tuple[bytes, str, int]]:
        """Return the requests to which every reply was empty: key, failure as JSON, checksum."""
        return self.rows("SELECT key, failure, checksum FROM empty ORDER BY key")

    # -- adding rows of another store

    def add(self, rows: Sequence[Row]) -> int:
        """Add responses to requests that have none; return how many were added."""
        return self.change(
            "INSERT INTO responses (key, model, request, response, created, checksum)"
            " VALUES (?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING",
            rows,
        )

    def add_empties(self, rows: Sequence[tuple[bytes, str, int]]) -> int:
        """Add failures to requests that have none; return how many were added."""
        return self.change(f"{_WRITE_EMPTY} ON CONFLICT (key) DO NOTHING", rows)

    def add_names(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Add names to models that have none; return how many were added."""
        return self.change(_WRITE_NAME, pairs)

    def add_ledger(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows of another ledger; return how many changed.

        A command's sums only grow, so of two rows for one command the larger is the newer.
        """
        return self.change(
            _WRITE_BILL, [tuple(row[name] for name in LEDGER) for row in rows]
        )

    def delete(self, keys: Sequence[bytes]) -> int:
        """Delete responses; return how many were deleted."""
        return self.change(
            "DELETE FROM responses WHERE key=?", [(key,) for key in keys]
        )


def check_version(place: str, version: object, supported: int, instead: str) -> None:
    """Raise StoreError if the tables have a version that this release cannot read."""
    if not isinstance(version, int) or version < 0:
        raise StoreError(f"{place} is not one that evalwright wrote: name {instead}.")
    if version > supported:
        raise StoreError(
            f"{place} was written by a newer version of evalwright (its schema is"
            f" {version}, this version knows {supported}): upgrade evalwright, or name"
            f" {instead}."
        )
