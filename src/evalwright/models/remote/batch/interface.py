"""What a provider's batch interface is to us: submit many requests, look how far they are, fetch
the answers by id.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evalwright.bounded import from_json
from evalwright.core.errors import RequestError
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.wire.format import Settings


@dataclass(frozen=True, slots=True)
class Item:
    """One request of a batch. id: ours, unique in the batch. body: as it would be sent alone."""

    id: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lost:
    """A submission of which no reply came. mark: our name for it. since: when it was sent (Unix
    seconds). total: its items. known: batches that are certainly others.
    """

    mark: str
    since: float
    total: int
    known: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is. ended: nothing more will come. done, total: requests, 0 where it is not
    said. error: why there are no answers at all, where that is so.
    """

    ended: bool
    done: int = 0
    total: int = 0
    status: str = ""
    error: RequestError | None = None


Answer = tuple[str, Any | RequestError]
"""An item's id, and the reply as it would have come alone, or what failed.

"" is the id of a line that cannot be read: the others count all the same.
"""

CLOCKS_DIFFER = 600.0
"""Seconds by which the provider's clock and ours may differ."""


class BatchApi(ABC):
    """path: where a request would go alone, below the base URL. most_items, most_bytes: what one
    batch may hold.

    All methods raise the RequestErrors of the HTTP client, and BadReply for what the interface does
    not document.
    """

    most_items: ClassVar[int]
    most_bytes: ClassVar[int]

    def __init__(self, client: HttpClient, settings: Settings, path: str) -> None:
        self.client = client
        self.settings = settings
        self.path = path
        self.where = settings.where

    @abstractmethod
    async def submit(self, items: Sequence[Item], mark: str) -> str:
        """Submit the items under our own mark; the provider's name of the batch."""

    @abstractmethod
    async def find(self, lost: Lost) -> str | None:
        """The batch that a lost submission made, if it made one."""

    @abstractmethod
    async def state(self, batch: str) -> State:
        """How far it is."""

    @abstractmethod
    def answers(self, batch: str, order: Sequence[str]) -> AsyncIterator[Answer]:
        """What came of each item, in any order; an item that is not there has none. order: the ids
        as they were submitted.
        """

    async def get(self, path: str) -> Mapping[str, Any]:
        """The JSON object at a path."""
        data = (await self.client.send(Call(path, method="GET"))).data
        if not isinstance(data, Mapping):
            raise bad_reply(self.where, "a JSON object", json.dumps(data))
        return data

    async def rows(self, path: str) -> AsyncIterator[Any]:
        """The JSON values of a file of lines, None for a line that is damaged."""
        async for line in self.client.lines(path):
            if line.strip():
                try:
                    yield from_json(line)
                except ValueError:
                    yield None

    def item(self, row: Any) -> str:
        """Whose answer a line is, "" where it does not say."""
        found = row.get("custom_id") if isinstance(row, Mapping) else None
        return found if isinstance(found, str) else ""

    def text(self, data: Any, name: str) -> str:
        """The text of a field that must be there."""
        value = data.get(name) if isinstance(data, Mapping) else None
        if not isinstance(value, str) or not value:
            raise bad_reply(self.where, f"as documented ('{name}')", json.dumps(data))
        return value
