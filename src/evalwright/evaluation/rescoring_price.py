"""What scoring runs again with other judges costs, before a request is sent.

The scorers are called as they will be, but requests are looked up instead of sent: in the store, by
the new judge; else in the record, where the judge of that time replied to the same question. So the
number of requests is that of the real thing wherever the same scorer asked before, and its replies
say how long verdicts are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.plain import Plain
from evalwright.core.private import home_folder
from evalwright.core.requests import Ability, Generate, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Exchange, SampleRecord
from evalwright.engine.key import KeyMaker, canonical
from evalwright.engine.ledger import BYTES_PER_TOKEN, UNLIMITED_ANSWER_TOKENS
from evalwright.engine.opening import existing_store
from evalwright.engine.store import Store
from evalwright.evaluation.budgets import price_models
from evalwright.evaluation.rescoring import RecordScorer, Rescoring
from evalwright.evaluation.running import run_blocking
from evalwright.models.model_interface import LocalModel, Model

VERDICT_TOKENS = 150
"""Tokens of a verdict where no earlier one is recorded: a guess."""


@dataclass(frozen=True, slots=True)
class RescoringPrice(Plain):
    """What scoring one run again takes.

    Attributes:
        run: the run's id.
        models: the models that score, by role.
        requests: requests that will be sent, each once however many runs need it.
        stored: requests whose replies are in the store, or are paid for by a run before this one.
        input_tokens: tokens that the models read, about.
        output_tokens: tokens that they write, about.
        dollars: what that costs; None if a price is not known.
        most_dollars: the most that it can cost, every reply as long as it may be; None likewise.
        n_measured: requests whose tokens an earlier judge's reply says.
        done: whether the new run is there already.
    """

    run: str
    models: Mapping[str, str]
    requests: int
    stored: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    most_dollars: float | None
    n_measured: int
    done: bool = False


def price_rescorings(
    rescorings: Sequence[Rescoring],
    *,
    home: str | None = None,
    price: Sequence[str] = (),
) -> list[RescoringPrice]:
    """Say what scoring runs again takes; no request is sent and nothing is written.

    Args:
        rescorings: the runs, as `prepare_rescoring` returns them.
        home: folder of the store.
        price: prices of the models, as `price` of a suite.

    Raises:
        UsageError: a price cannot be used.
        RunError: the records cannot be read.
    """
    priced = [
        (spec, rescoring.models[role])
        for rescoring in rescorings
        for role, spec in rescoring.specs.items()
    ]
    if price:
        price_models(price, priced, has_budget=False)
    store = existing_store(home_folder(home))
    counted_keys: set[bytes] = set()
    try:
        return [_price_run(rescoring, store, counted_keys) for rescoring in rescorings]
    finally:
        if store is not None:
            store.close()


def _price_run(
    rescoring: Rescoring, store: Store | None, counted_keys: set[bytes]
) -> RescoringPrice:
    names = {role: model.name for role, model in rescoring.models.items()}
    run_id = rescoring.new.old.id
    if rescoring.is_done:
        return RescoringPrice(run_id, names, 0, 0, 0, 0, 0.0, 0.0, 0, done=True)
    lookup = _Lookup(rescoring.models, store, counted_keys)
    run_blocking(lambda: _look_up_all(rescoring, lookup))
    spending = lookup.spending
    return RescoringPrice(
        run=run_id,
        models=names,
        requests=spending.requests,
        stored=spending.stored,
        input_tokens=spending.input_tokens,
        output_tokens=spending.output_tokens,
        dollars=spending.dollars,
        most_dollars=spending.most_dollars,
        n_measured=spending.n_measured,
    )


async def _look_up_all(rescoring: Rescoring, lookup: _Lookup) -> None:
    scorer = RecordScorer(rescoring)
    for record in rescoring.new.old.samples():
        lookup.read_record(record)
        await scorer.score(record, lookup)


@dataclass(slots=True)
class _Spending:
    requests: int = 0
    stored: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    most_dollars: float | None = 0.0
    n_measured: int = 0

    def add(self, usage: Usage, most_usage: Usage, model: Model) -> None:
        self.requests += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        if isinstance(model, LocalModel) and model.price is None:
            return
        price = model.price
        cost = None if price is None else price.cost(usage)
        most = None if price is None else price.cost(most_usage)
        self.dollars = _sum(self.dollars, cost)
        self.most_dollars = _sum(self.most_dollars, most)


def _sum(total: float | None, amount: float | None) -> float | None:
    return None if total is None or amount is None else total + amount


@dataclass(slots=True)
class _Lookup(Ask):
    """The `ask` of scorers whose requests are counted instead of sent."""

    models: Mapping[str, Model]
    store: Store | None
    counted_keys: set[bytes]
    spending: _Spending = field(default_factory=_Spending)
    _key_makers: dict[str, KeyMaker] = field(default_factory=dict)
    _replies: dict[str, Response] = field(default_factory=dict)

    def read_record(self, record: SampleRecord) -> None:
        """Take the replies of the judges of that time from a record."""
        self._replies = {
            _request_text(exchange): exchange.response
            for exchanges in record.exchanges.values()
            for exchange in exchanges
            if exchange.response is not None
        }

    def abilities(self, role: str) -> frozenset[Ability]:
        """Return the abilities of the model in a role."""
        return self.models[role].abilities

    def carries(self, role: str) -> frozenset[str]:
        """Return the optional request fields that the model in a role supports."""
        return self.models[role].carries

    def refuses(self, role: str, request: Request) -> str | None:
        """Return why the model in a role cannot take a request; None if it can."""
        return self.models[role].refuses(request)

    async def __call__(self, role: str, request: Request) -> Response:
        """Count a request; return a reply that is known, so that the scorer goes on.

        Raises:
            RequestFailed: no reply to it is known.
        """
        model = self.models[role]
        payload = canonical(request.payload())
        key = self._key_maker(role).key(payload)
        recorded = self._replies.get(_request_text(Exchange(role, request.payload())))
        stored = (await self.store.get_many([key]))[0] if self.store else None
        if stored is not None or key in self.counted_keys:
            self.spending.stored += 1
        else:
            self.counted_keys.add(key)
            self._count(model, request, payload, recorded)
        reply = stored or recorded
        if reply is None:
            raise RequestFailed(
                Failure("not sent", "configuration", "No request is sent for a price.")
            )
        return reply

    def _count(
        self,
        model: Model,
        request: Request,
        payload: bytes,
        recorded: Response | None,
    ) -> None:
        most_written = (
            UNLIMITED_ANSWER_TOKENS
            if (limit := _most_tokens(model, request)) is None
            else limit
        )
        read = len(payload) // BYTES_PER_TOKEN + 1
        written = min(VERDICT_TOKENS, most_written)
        most = Usage(read, most_written)
        if recorded is not None and recorded.usage.input_tokens:
            self.spending.n_measured += 1
            read = recorded.usage.input_tokens
            written = recorded.usage.output_tokens
            most = Usage(max(read, most.input_tokens), max(written, most_written))
        self.spending.add(Usage(read, written), most, model)

    def _key_maker(self, role: str) -> KeyMaker:
        if role not in self._key_makers:
            self._key_makers[role] = KeyMaker(self.models[role].fingerprint)
        return self._key_makers[role]


def _most_tokens(model: Model, request: Request) -> int | None:
    if not isinstance(request, Generate):
        return 0
    limit = getattr(model, "most_tokens", None)
    if limit is None:
        return request.max_tokens
    most: int | None = limit(request)
    return most


def _request_text(exchange: Exchange) -> str:
    """Return a request as a record has it, so that equal ones are found."""
    request = Exchange(exchange.role, exchange.request).as_dict()["request"]
    return json.dumps(request, sort_keys=True, default=str)
