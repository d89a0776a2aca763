"""What a provider's batch interface is to us: hand over many requests, look how far they are, fetch the answers by id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evalwright.core.errors import RequestError
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.wire.format import Settings


@dataclass(frozen=True, slots=True)
class Item:
    """One request of a batch. id: ours, unique in the batch. body: as it would be sent alone."""

    id: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is. ended: nothing more will come. done, total: requests, 0 where it is not said. error: why there are no
    answers at all, where that is so."""

    ended: bool
    done: int = 0
    total: int = 0
    status: str = ""
    error: RequestError | None = None


Answer = tuple[str, Any | RequestError]
"""An item's id, and the reply as it would have come alone, or what failed."""


class BatchApi(Protocol):
    """most_items, most_bytes: what one batch may hold."""

    most_items: int
    most_bytes: int

    async def submit(self, client: HttpClient, items: Sequence[Item], mark: str, settings: Settings) -> str:
        """Hand over the items under our own mark; the provider's name of the batch. Raises RequestError."""

    async def find(
        self,
        client: HttpClient,
        mark: str,
        since: float,
        total: int,
        known: Collection[str],
        settings: Settings,
    ) -> str | None:
        """The batch that was made under this mark, if it was: for a submission of which no reply came.

        since: when it was sent (Unix seconds). total: its items. known: batches that are certainly others.
        """

    async def state(self, client: HttpClient, batch: str, settings: Settings) -> State:
        """How far it is."""

    def answers(
        self, client: HttpClient, batch: str, items: Sequence[str], settings: Settings
    ) -> AsyncIterator[Answer]:
        """What came of each item, in any order; an item that is not there has none. items: the ids in their order."""
