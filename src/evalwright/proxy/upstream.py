"""Who answers the requests that the gateway has read: the models of a proxy, behind an engine.

The gateway knows this interface alone. Another that fits it is `sample_upstream`, the model under
test of one sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalwright.core.errors import RequestFailed
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.budget import SPENT, Budget
from evalwright.engine.counts import Counts
from evalwright.engine.engine import Engine, RoleClient
from evalwright.models.model_interface import Model
from evalwright.proxy.faults import Fault, not_served
from evalwright.proxy.spending import Growth, NothingNew, reservation_of
from evalwright.proxy.tokens import Access

_ROLE = "target"


class Upstream(Protocol):
    """The models that a gateway serves."""

    def find(self, name: str, access: Access) -> Model:
        """Return the model that a client names.

        Raises:
            Fault: there is none, or the token does not allow it.
        """
        ...

    def allowed(self, access: Access) -> list[str]:
        """Return the names of the models that a token allows."""
        ...

    def count_bytes(self, size: int) -> None:
        """Count the body of a request, before its model is asked."""
        ...

    async def ask(
        self,
        model: Model,
        trajectory: str,
        request: Request,
        payload: bytes,
        access: Access,
    ) -> Response:
        """Ask a model.

        Args:
            model: the model.
            trajectory: the trajectory whose answer it is; "" for one that all share.
            request: the request.
            payload: its canonical payload.
            access: what the client's token allows.

        Raises:
            RequestFailed: the request failed for good.
            StoreError: the store failed.
            Fault: it is not asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """The models that the proxy serves.

    Attributes:
        by_name: every name that a client may use, with the model.
        names: the full names, sorted.
    """

    by_name: Mapping[str, Model]
    names: tuple[str, ...]

    @classmethod
    def of(cls, models: Sequence[Model]) -> Served:
        """Return the models under their names, and under the shorter ones that are clear."""
        by_name: dict[str, Model] = {model.name: model for model in models}
        short: dict[str, list[Model]] = {}
        for model in models:
            _, _, name = model.name.partition("/")
            for alias in {name, name.rpartition("#")[2]} - {""}:
                short.setdefault(alias, []).append(model)
        for alias, named in short.items():
            if len(named) == 1:
                by_name.setdefault(alias, named[0])
        return cls(by_name, tuple(sorted({model.name for model in models})))

    def find(self, name: str, access: Access) -> Model:
        """Return the model that a client names.

        Raises:
            Fault: there is none, or the token does not allow it.
        """
        model = self.by_name.get(name)
        if model is not None and access.models is None:
            return model
        allowed = self.allowed(access)
        if model is not None and model.name in allowed:
            return model
        if model is not None:
            raise Fault(
                403,
                "permission",
                f"The token '{access.name}' does not allow the model '{name}'; it allows:"
                f" {', '.join(allowed)}.",
                code="model_not_allowed",
            )
        raise not_served(name, self.by_name, allowed)

    def allowed(self, access: Access) -> list[str]:
        """Return the full names of the models that a token allows."""
        if access.models is None:
            return list(self.names)
        allowed = {
            self.by_name[name].name for name in access.models if name in self.by_name
        }
        return [name for name in self.names if name in allowed]


class EngineUpstream:
    """The models of a proxy.

    Args:
        engine: sends to the models.
        models: the models.
        budgets: what all requests together may spend.
        growth: how far the store may grow.
    """

    def __init__(
        self,
        engine: Engine,
        models: Sequence[Model],
        *,
        budgets: Sequence[Budget] = (),
        growth: Growth | None = None,
    ) -> None:
        served = Served.of(models)
        self.find = served.find
        self.allowed = served.allowed
        self.counts = Counts()
        self.over_budget = 0
        """Requests that were not sent, because a budget was spent."""
        self.growth = growth
        self._engine = engine
        self._budgets = tuple(budgets)
        self._clients: dict[tuple[str, str], RoleClient] = {}

    def count_bytes(self, size: int) -> None:
        """Count the body of a request as growth of the store."""
        if self.growth is not None:
            self.growth.add(size)

    async def ask(
        self,
        model: Model,
        trajectory: str,
        request: Request,
        payload: bytes,
        access: Access,
    ) -> Response:
        """Ask a model, within the budgets of the proxy and of the token."""
        client = self._client(model, trajectory)
        is_over = self.growth is not None and self.growth.is_over
        own = () if access.budget is None else (access.budget,)
        reservation = reservation_of((*self._budgets, *own))
        if is_over and self.growth is not None:
            reservation = NothingNew(self.growth)
        if reservation is not None:
            client = client.paid_by(reservation)
        try:
            return await client(_ROLE, request, payload)
        except RequestFailed as failed:
            if failed.failure.kind == SPENT:
                self.over_budget += 1
            raise
        finally:
            if reservation is not None:
                reservation.close()

    def _client(self, model: Model, trajectory: str) -> RoleClient:
        """Return what asks a model within a trajectory, "" for what all share."""
        client = self._clients.get((model.name, trajectory))
        if client is None:
            client = self._engine.door(
                {_ROLE: model}, trajectory=trajectory, counts=self.counts
            )
            self._clients[model.name, trajectory] = client
        return client
