"""Stands for a task whose data cannot be fetched, in a run with others: its only sample fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy


class AllRows:
    """The only sample (`core.tasks.SampleSource`); its metadata has the reason as `no data`."""

    content_hash = "no data"

    def __init__(self, reason: str) -> None:
        self.metadata: Mapping[str, Any] = {"no data": reason}

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int, /) -> Sample:
        if index not in (0, -1):
            raise IndexError(index)
        return Sample("all rows")

    def __iter__(self) -> Iterator[Sample]:
        yield self[0]


class Unreachable:
    """A strategy that fails without a request.

    It needs and uses the models of the strategy that it replaces.
    """

    def __init__(self, strategy: Strategy, reason: str) -> None:
        self.needs: frozenset[Ability] = strategy.needs
        self.roles: Mapping[str, frozenset[Ability]] = getattr(strategy, "roles", {})
        self._failure = Failure("no data", "dataset", reason)

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Raise RequestFailed."""
        raise RequestFailed(self._failure)
