"""A remote model behind several endpoints that answer alike: URLs, keys, regions. To everybody but the engine's sender it is the model.

Which endpoint a request goes to, and what becomes of one that fails, is decided where requests are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.models.base import Forwarding, RemoteModel, fingerprint_of
from evalwright.models.replicas import Replica


class ReplicaPool(Forwarding):
    """model: as it is without its replicas, by whose fingerprint the pool is known. endpoints: (name, model) of each.

    differ: the endpoints may answer differently; what one said is then never taken for what the model or another pool says.
    """

    def __init__(
        self, model: RemoteModel, endpoints: Sequence[tuple[str, RemoteModel]], *, differ: bool = False
    ) -> None:
        super().__init__(model)
        self.resumes = model.resumes
        most = sum(member.pacing.max_concurrency for _, member in endpoints)
        self.pacing = replace(model.pacing, max_concurrency=most)
        self.replicas = [Replica(name) for name, _ in endpoints]
        self._endpoints = [member for _, member in endpoints]
        parts = sorted(member.fingerprint for member in self._endpoints)
        self.differ = differ
        if differ:
            self.fingerprint = fingerprint_of({"replicas": parts})

    def members(self) -> list[tuple[RemoteModel, Replica]]:
        """Each endpoint with its record."""
        return list(zip(self._endpoints, self.replicas, strict=True))

    def describe(self) -> dict[str, Any]:
        """The model, and each endpoint with how it did."""
        said = super().describe()
        mine: list[dict[str, Any]] = []
        for member, replica in self.members():
            its = member.describe()
            differing = {
                name: its[name] for name in ("base_url", "key", "model") if its.get(name) != said.get(name)
            }
            mine.append({**replica.as_dict(), **differing})
        return {**said, "fingerprint": self.fingerprint, "replicas": mine}

    def check(self) -> None:
        """As every endpoint."""
        for member in self._endpoints:
            member.check()

    def listen(self, tell: Callable[[str], None]) -> None:
        """As every endpoint."""
        for member in self._endpoints:
            member.listen(tell)

    async def answer(self, request: Request) -> Response:
        """As the first endpoint: the engine asks each by itself."""
        return await self._endpoints[0].answer(request)

    async def close(self) -> None:
        """Release the connections of all."""
        for member in (self._model, *self._endpoints):
            await member.close()
