"""What a program asked when it was started before: whether it repeats itself, and from where not.

A program that is started again is answered from the store as long as it asks the same. Its
requests are listed in the store, so that where it asks something else, its record can say so.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from evalwright.core.actions import ActionLog
from evalwright.core.responses import Response
from evalwright.strategies.sampling import TARGET

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """A request of a program that was answered.

    Attributes:
        digest: of its payload.
        dollars: the price of the reply; None where it is not known.
    """

    digest: str
    dollars: float | None

    @classmethod
    def of(cls, payload: bytes, response: Response) -> ListedRequest:
        """Return the entry of a request."""
        digest = blake2b(payload, digest_size=_DIGEST_BYTES).hexdigest()
        return cls(digest, response.cost)


class EarlierAttempts:
    """The requests of a trajectory, attempt by attempt.

    Args:
        actions: where they are kept; None if nothing is kept.
        trajectory: the trajectory's id.
    """

    def __init__(self, actions: ActionLog | None, trajectory: str) -> None:
        self.attempt = 0
        """The number of this attempt, from 0."""
        self.started_anew: list[dict[str, Any]] = []
        """For each attempt that went another way: after how many replies, why, and what it cost."""
        self._actions = actions
        self._trajectory = trajectory
        self._listed: list[ListedRequest] = []
        self._left: Counter[str] = Counter()
        """Digests of requests of the last attempt that were not asked again yet."""
        self._asked: list[ListedRequest] = []

    async def open(self) -> None:
        """Look up the last attempt."""
        self._listed = await self._read(0)
        while listed := await self._read(self.attempt + 1):
            self.attempt += 1
            self._listed = listed
        self._left = Counter(request.digest for request in self._listed)

    async def add(self, payload: bytes, response: Response) -> None:
        """Note a request that was answered; the note is durable when this returns.

        Args:
            payload: its canonical payload.
            response: the reply.
        """
        if self._actions is None:
            return
        request = ListedRequest.of(payload, response)
        self._asked.append(request)
        if self._left[request.digest]:
            self._left[request.digest] -= 1
            return
        if self._left.total():
            await self._go_another_way()
            return
        self._listed.append(request)
        await self._write(len(self._listed) - 1, request)

    async def _go_another_way(self) -> None:
        """Begin a new list: the program asked something else than before."""
        n_equal = len(self._asked) - 1
        lost = [request for request in self._listed if self._left[request.digest]]
        prices = [request.dollars for request in lost]
        known_prices = [price for price in prices if price is not None]
        self.started_anew.append(
            {
                "after_calls": n_equal,
                "why": (
                    f"the program was started again, and from its request {n_equal + 1} on it"
                    " asked something else than before; earlier replies that it did not ask for"
                    " again are not used"
                ),
                "dollars": sum(known_prices) if known_prices else None,
            }
        )
        self.attempt += 1
        self._left.clear()
        self._listed = list(self._asked)
        for index, request in enumerate(self._listed):
            await self._write(index, request)

    async def _read(self, attempt: int) -> list[ListedRequest]:
        listed: list[ListedRequest] = []
        if self._actions is None:
            return listed
        while (
            row := await self._actions.stored(self._key(attempt, len(listed)))
        ) is not None:
            digest, dollars = json.loads(row.text)
            listed.append(ListedRequest(digest, dollars))
        return listed

    async def _write(self, index: int, request: ListedRequest) -> None:
        assert self._actions is not None
        action = {
            "program": self._trajectory,
            "attempt": self.attempt,
            "index": index,
        }
        text = json.dumps([request.digest, request.dollars])
        await self._actions.store(
            self._key(self.attempt, index), action, Response(text=text)
        )

    def _key(self, attempt: int, index: int) -> bytes:
        assert self._actions is not None
        named = [
            "agent-command",
            self._actions.fingerprint(TARGET),
            self._trajectory,
            attempt,
            index,
        ]
        text = json.dumps(named, ensure_ascii=False)
        encoded = text.encode("utf-8", "surrogatepass")
        return blake2b(encoded, digest_size=_DIGEST_BYTES).digest()
