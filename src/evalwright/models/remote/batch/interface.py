"""The interface to a provider's batches: submit requests, check progress, fetch answers by id."""

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
    """One request of a batch.

    `id` is ours, unique in the batch; `body` is as it would be sent alone.
    """

    id: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LostSubmission:
    """A submission without a reply.

    Attributes:
        mark: our name for it.
        since: when it was sent (Unix seconds).
        total: number of its items.
        known: batches that are certainly others.
    """

    mark: str
    since: float
    total: int
    known: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is.

    Attributes:
        ended: whether nothing more will come.
        done: number of requests that are done, 0 if unknown.
        total: number of all requests, 0 if unknown.
        status: the provider's word.
        error: why there are no answers at all.
    """

    ended: bool
    done: int = 0
    total: int = 0
    status: str = ""
    error: RequestError | None = None


Answer = tuple[str, Any | RequestError]
"""An item's id, and the reply as it would have come alone, or an error.

The id of an unreadable line is ""; the other lines still count.
"""

CLOCK_TOLERANCE_SECONDS = 600.0
"""Most seconds by which the provider's clock and ours may differ."""


class BatchApi(ABC):
    """One provider's batch interface.

    `path` is where a single request would be sent, below the base URL; `most_items` and
    `most_bytes` are the limits of a batch. All methods raise the RequestErrors of the HTTP client,
    and BadReply for undocumented replies.
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
        """Submit the items under our own mark; return the provider's name of the batch."""

    @abstractmethod
    async def find(self, submission: LostSubmission) -> str | None:
        """Find the batch that a lost submission created, if any."""

    @abstractmethod
    async def state(self, batch: str) -> BatchState:
        """Return how far the batch is."""

    @abstractmethod
    def answers(self, batch: str, order: Sequence[str]) -> AsyncIterator[Answer]:
        """Yield the answer of each item, in any order; missing items have none.

        `order` is the ids as they were submitted.
        """

    async def get(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object at a path."""
        data = (await self.client.send(Call(path, method="GET"))).data
        if not isinstance(data, Mapping):
            raise bad_reply(self.where, "a JSON object", json.dumps(data))
        return data

    async def rows(self, path: str) -> AsyncIterator[Any]:
        """Yield the JSON values in a file of lines, None for a damaged line."""
        async for line in self.client.lines(path):
            if line.strip():
                try:
                    yield from_json(line)
                except ValueError:
                    yield None

    def item(self, row: Any) -> str:
        """Return the id of the item that a line answers, "" if it does not say."""
        item_id = row.get("custom_id") if isinstance(row, Mapping) else None
        return item_id if isinstance(item_id, str) else ""

    def text(self, data: Any, name: str) -> str:
        """Return the text of a required field."""
        value = data.get(name) if isinstance(data, Mapping) else None
        if not isinstance(value, str) or not value:
            raise bad_reply(self.where, f"as documented ('{name}')", json.dumps(data))
        return value
