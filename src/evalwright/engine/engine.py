"""The engine behind the one door: join an equal request, look up, claim, send, store, and only then
answer.

Everything that one request goes through is in `Engine.ask` and `Engine._obtain`, in that order. It
runs in the caller's own coroutine. What sends (a `Batcher` for a local model, a `RemoteSender` for
a remote one) is made once per model.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Self

from evalwright.core.asking import Ask
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    Failure,
    PromptTooLong,
    RequestFailed,
    StillWriting,
    StoreError,
    closest,
)
from evalwright.core.outcomes import CONTENT_FILTER, is_models_own
from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response
from evalwright.core.secrets import mask
from evalwright.engine.batching import Batcher
from evalwright.engine.budget import SPENT, Reservation
from evalwright.engine.claims import process_of
from evalwright.engine.counts import Counts as Counts
from evalwright.engine.key import KeyMaker, canonical
from evalwright.engine.ledger import Account
from evalwright.engine.loop_turns import LoopTurns
from evalwright.engine.model_slots import ModelSlots
from evalwright.engine.name_guard import name_rows
from evalwright.engine.outbox import Outbox
from evalwright.engine.remote import RemoteSender, cancelled
from evalwright.engine.rows import MINE, STORED, plain, row_of
from evalwright.engine.speed import Speed
from evalwright.engine.store import Store
from evalwright.models.base import LocalModel, Model, RemoteModel

_log = logging.getLogger("evalwright.engine")
_LOCAL_CONCURRENCY = 4096
_OF_EACH_REPLICA = 512
_MOST_LOCAL = 16384
_STOP_MARGIN = 0.1
_LAST_MOMENT = 0.2
_PATIENCE = 5.0
_REMEMBERED = "(of an earlier run, and paid; --resend-empty sends it again)"


class Lane:
    """A model and what sends requests to it."""

    __slots__ = (
        "abilities",
        "batcher",
        "fingerprint",
        "key",
        "model",
        "named",
        "remote",
        "speed",
    )

    def __init__(
        self, model: Model, batcher: Batcher | None, remote: RemoteSender | None
    ) -> None:
        self.model = model
        self.named = False
        """Whether the store was told what the model is called."""
        self.batcher = batcher
        self.remote = remote
        self.speed = batcher.speed if batcher is not None else Speed()
        self.abilities = model.abilities
        self.fingerprint = plain(model.fingerprint)
        self.key = KeyMaker(model.fingerprint).key

    def is_foreign(self, stored: Response) -> bool:
        """Whether a stored response was given by another model under this one's name."""
        return self.remote is not None and self.remote.names.is_foreign(stored)


class Engine:
    """Asks models through one store. Use as `async with Engine(store) as engine`.

    max_resident: how many heavy local models may be loaded at a time. resend_empty: also send
    requests that were paid before and got no answer (empty, stopped by a filter, not ended in
    time). on_event: told, in a sentence each, of what a person should know while the run goes on.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_resident: int = 1,
        resend_empty: bool = False,
        on_event: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._again = resend_empty
        self._sent_again: set[bytes] = set()
        """Keys of stored replies that a filter had stopped, and that were asked for again: each
        once.
        """
        self._slots = ModelSlots(max_resident)
        self._on_event = on_event or _ignore
        self._lanes: dict[int, Lane] = {}
        self._in_flight: dict[bytes, list[asyncio.Future[tuple[Response, bool]]]] = {}
        self._outbox: Outbox | None = None
        self._turns: LoopTurns | None = None
        self._told: set[str] = set()
        self._damaged = False
        self._stopped: Failure | None = None
        self._idle: asyncio.Future[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def door(self, roles: Mapping[str, Model]) -> Door:
        """An `ask` for these roles, with counts of its own.

        Must be called where the event loop runs.
        """
        return Door(
            self, {role: self._lane(model) for role, model in roles.items()}, Counts()
        )

    def loop_turns(self) -> LoopTurns:
        """What keeps the event loop free for all who use this engine.

        Must be called where the event loop runs.
        """
        if self._turns is None:
            self._turns = LoopTurns(asyncio.get_running_loop())
        return self._turns

    def concurrency(self, model: Model) -> int:
        """How many samples to keep in flight so that this model never waits for work."""
        if isinstance(model, RemoteModel):
            return max(2, 2 * model.pacing.max_concurrency)
        # With fewer, many replicas get small groups, and wait for each other at the end of every
        # batch.
        return min(
            max(_LOCAL_CONCURRENCY, _OF_EACH_REPLICA * len(model.replicas)), _MOST_LOCAL
        )

    async def stop(self, grace: float = 5.0) -> None:
        """Send nothing more.

        What is being answered may finish, and is stored, within `grace` seconds.

        The rest fails as "cancelled". A local model that is stuck is left behind: its thread is a
        daemon.
        """
        self._stopped = failure = cancelled()
        for lane in self._lanes.values():
            if lane.batcher is not None:
                lane.batcher.drop_waiting(failure)
            if lane.remote is not None:
                lane.remote.drop_waiting(failure)
        if self._outbox is not None:
            self._outbox.drop_foreign(lambda: RequestFailed(failure))
        await self._until_idle(grace * (1 - _STOP_MARGIN))
        for lane in self._lanes.values():
            if lane.batcher is not None:
                lane.batcher.drop_running(failure)
            if lane.remote is not None:
                lane.remote.drop_running()
        await self._until_idle(max(grace * _STOP_MARGIN, _LAST_MOMENT))

    async def close(self) -> None:
        """End everything: threads, models, connections.

        The store stays open; it belongs to who opened it.
        """
        if self._closed:
            return
        self._closed = True
        if self._in_flight:
            await self.stop(grace=0.0)
        patience = _PATIENCE if self._stopped is None else _LAST_MOMENT
        self._stopped = self._stopped or cancelled()
        batchers = [
            lane.batcher for lane in self._lanes.values() if lane.batcher is not None
        ]
        await asyncio.gather(*(batcher.close(patience) for batcher in batchers))
        for lane in self._lanes.values():
            if lane.remote is not None:
                with suppress(
                    Exception
                ):  # the answers are stored; a connection that does not close changes nothing
                    await lane.remote.close()

    def _lane(self, model: Model) -> Lane:
        found = self._lanes.get(id(model))
        if found is not None:
            return found
        loop = asyncio.get_running_loop()
        if self._outbox is None:
            self._outbox = self._store.outbox()
            self._store.say = lambda sentence: _tell(loop, self._on_event, sentence)
            for notice in self._store.notices:
                self._on_event(notice)
        if isinstance(model, LocalModel):
            lane = Lane(model, Batcher(model, loop, self._slots), None)
        elif isinstance(model, RemoteModel):
            lane = Lane(model, None, RemoteSender(model, loop, self._on_event))
        else:
            raise ConfigurationError(
                f"The model '{model.name}' ({type(model).__name__}) must derive from"
                " RemoteModel or LocalModel."
            )
        self._lanes[id(model)] = lane
        return lane

    async def ask(
        self,
        lane: Lane,
        request: Request,
        counts: Counts,
        reservation: Reservation | None = None,
    ) -> Response:
        """What a door calls.

        Raises RequestFailed where the request failed, StoreError where the store did.

        reservation: pays for what is sent, where there is a budget; a request that it refuses is
        not counted.
        """
        counts.requested += 1
        try:
            if request.ability not in lane.abilities:
                raise RequestFailed(_unable(lane.model, request.ability))
            if (why := lane.model.refuses(request)) is not None:
                raise RequestFailed(Failure("request rejected", "configuration", why))
            payload = canonical(request.payload())
            key = lane.key(payload)
            while (same := self._in_flight.get(key)) is not None:
                future: asyncio.Future[tuple[Response, bool]] = (
                    asyncio.get_running_loop().create_future()
                )
                same.append(future)
                # whoever had sent it was cancelled: it is sent from here
                with suppress(_Abandoned):
                    response, was_stored = await future
                    counts.stored += was_stored
                    counts.joined += not was_stored
                    return response
            self._in_flight[key] = []
            try:
                stored = await self._stored(key, counts)
                is_replaced = stored is not None and self._is_replaced(
                    lane, key, stored
                )
                if is_replaced:
                    stored = None
                if stored is not None:
                    counts.stored += 1
                    response = stored
                elif self._stopped is not None:
                    raise RequestFailed(self._stopped)
                else:
                    if reservation is not None:
                        reservation.refuse_if_spent()
                    response = await self._obtain(
                        lane,
                        request,
                        key,
                        payload,
                        counts,
                        reservation,
                        replaces=is_replaced,
                    )
            except BaseException as error:
                self._end(key, error)
                raise
            self._end(key, (response, stored is not None))
            if stored is not None:
                await self.loop_turns().take()
            return response
        except RequestFailed as failed:
            failure = failed.failure
            if failure.kind == SPENT:
                counts.requested -= 1
                raise
            _log.info("%s: %s: %s", lane.model.name, failure.kind, failure.message)
            if not is_models_own(failure):
                counts.add_failure(failure.kind)
            elif failure.message.endswith(_REMEMBERED):
                counts.stored += 1
            else:
                counts.asked += 1
            raise
        except StoreError:
            counts.add_failure("store")
            raise
        except asyncio.CancelledError:
            counts.add_failure("cancelled")
            raise

    def _is_replaced(self, lane: Lane, key: bytes, stored: Response) -> bool:
        """Whether a request is sent although its response is stored: another model gave it, or a
        filter stopped it.
        """
        if lane.is_foreign(stored):
            return True
        if (
            self._again
            and stored.finish_reason == CONTENT_FILTER
            and key not in self._sent_again
        ):
            self._sent_again.add(key)
            return True
        return False

    async def _obtain(
        self,
        lane: Lane,
        request: Request,
        key: bytes,
        payload: bytes,
        counts: Counts,
        reservation: Reservation | None,
        *,
        replaces: bool = False,
    ) -> Response:
        """Send the request, or wait for who does. replaces: this response takes the place of the
        stored one.
        """
        outbox = self._outbox
        assert outbox is not None
        claim = _granted() if replaces else outbox.claim(key)
        elsewhere = False
        try:
            while (outcome := await claim) != MINE:
                if outcome == STORED:
                    stored = await self._stored(key, counts)
                    if stored is not None:
                        counts.joined += elsewhere
                        counts.stored += not elsewhere
                        return stored
                    claim = outbox.claim(key)  # it was damaged, and is removed by now
                    continue
                if self._stopped is not None:
                    raise RequestFailed(self._stopped)
                elsewhere = True
                self._tell_of(outcome)
                claim = outbox.claim_after(key)
            if self._stopped is not None:
                raise RequestFailed(self._stopped)
            if self._store.broken is not None:
                raise StoreError(str(self._store.broken))
            if not self._again:
                await self._refuse_remembered(lane, key, lately=elsewhere)
            account = Account(
                lane.model, request, len(payload), counts, outbox.bill, reservation
            )
            try:
                if lane.remote is None:
                    assert lane.batcher is not None
                    response = await self._batched(lane.batcher, account)
                else:
                    began = lane.speed.begin()
                    try:
                        response = await lane.remote.send(account)
                    finally:
                        lane.speed.end()
                    lane.speed.add(response, began)
            except RequestFailed as error:
                error.failure = account.failed(error.failure)
                self._remember(lane, key, error.failure)
                raise
        except BaseException:
            outbox.give_up(key, claim)
            raise
        response = response.without_secrets()
        if not lane.named:
            lane.named = True
            outbox.names[lane.fingerprint] = plain(mask(lane.model.name))
        await outbox.put(row_of(key, lane.fingerprint, payload, response))
        counts.asked += 1
        return response

    def _remember(self, lane: Lane, key: bytes, failure: Failure) -> None:
        """Keep a failure that is what the model did, and was paid: the same request would only be
        paid again.

        A prompt that was too long cost nothing, and fits once the server has a longer context.
        """
        if failure.kind == StillWriting.kind:
            self._store.remember_empty(_key_at_time_limit(key, lane.model), failure)
        elif is_models_own(failure) and failure.kind != PromptTooLong.kind:
            self._store.remember_empty(key, failure)

    async def _refuse_remembered(self, lane: Lane, key: bytes, *, lately: bool) -> None:
        """Raise RequestFailed for a request that was paid before, and to which the model said
        nothing or did not come to an end.

        With more time than before, the latter is sent again.
        """
        for memory_key in (key, _key_at_time_limit(key, lane.model)):
            failure = await self._store.empty(memory_key, lately=lately)
            if failure is not None:
                raise RequestFailed(
                    replace(failure, message=f"{failure.message} {_REMEMBERED}")
                )

    async def _batched(self, batcher: Batcher, account: Account) -> Response:
        await account.reserve()
        account.counts.sent += 1
        try:
            response = await batcher.submit(account.request)
        except BaseException as error:
            account.settle(error)
            raise
        account.settle(response)
        return response

    async def _stored(self, key: bytes, counts: Counts) -> Response | None:
        """The stored response. One that is damaged is counted and told of, once."""
        (found,) = await self._store.get_many((key,))
        if found is None and key in self._store.damaged:
            self._store.damaged.discard(key)
            counts.damaged += 1
            if not self._damaged:
                self._damaged = True
                self._on_event(
                    "A stored response is damaged (its checksum does not hold); it is"
                    " requested again."
                )
        return found

    def _tell_of(self, owner: str) -> None:
        if owner not in self._told:
            self._told.add(owner)
            self._on_event(
                "Waiting for responses to requests sent by another run (process"
                f" {process_of(owner)})."
            )

    def _end(self, key: bytes, outcome: tuple[Response, bool] | BaseException) -> None:
        """A request has ended: those who wait for the same are told, with whether the response was
        stored before.
        """
        for future in self._in_flight.pop(key):
            if future.done():
                continue
            if isinstance(outcome, tuple):
                future.set_result(outcome)
            elif isinstance(outcome, RequestFailed):
                future.set_exception(RequestFailed(outcome.failure))
            elif isinstance(outcome, EvalwrightError):
                future.set_exception(StoreError(str(outcome)))
            else:
                future.set_exception(_Abandoned())
        if self._idle is not None and not self._in_flight and not self._idle.done():
            self._idle.set_result(None)

    async def _until_idle(self, seconds: float) -> None:
        if self._in_flight:
            self._idle = asyncio.get_running_loop().create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle


class Door(Ask):
    """Sends requests to the models of some roles.

    `counts` are of exactly what went through this door.
    """

    __slots__ = ("_engine", "_lanes", "_names", "_reservation", "counts")

    def __init__(
        self,
        engine: Engine,
        lanes: Mapping[str, Lane],
        counts: Counts,
        reservation: Reservation | None = None,
        names: dict[str, Counter[tuple[str, str]]] | None = None,
    ) -> None:
        self.counts = counts
        self._names = {} if names is None else names
        """By role: responses by replica and by the name that they give."""
        self._engine = engine
        self._lanes = lanes
        self._reservation = reservation

    async def __call__(self, role: str, request: Request) -> Response:
        """The answer of the model that plays this role.

        Raises RequestFailed, or StoreError, which must end the run.
        """
        lane = self._lane(role)
        response = await self._engine.ask(lane, request, self.counts, self._reservation)
        if lane.remote is not None:
            names = self._names.get(role)
            if names is None:
                names = self._names[role] = Counter()
            names[response.replica, response.model] += 1
        return response

    def abilities(self, role: str) -> frozenset[Ability]:
        """What the model that plays this role can do.

        Raises ConfigurationError where no model plays it.
        """
        return self._lane(role).abilities

    def carries(self, role: str) -> frozenset[str]:
        """Which further options the requests to this model may use."""
        return self._lane(role).model.carries

    def refuses(self, role: str, request: Request) -> str | None:
        """Why this model does not take a request as it is, None where it does."""
        return self._lane(role).model.refuses(request)

    def speed(self, role: str) -> Speed:
        """How fast the model that plays this role has answered, whoever sent the requests."""
        return self._lane(role).speed

    def loading(self) -> tuple[str, float] | None:
        """The model of these roles that is being loaded now, with the seconds that this has taken;
        None where none is.
        """
        for lane in self._lanes.values():
            if (since := lane.speed.loading_since) is not None:
                return lane.model.name, time.monotonic() - since
        return None

    def reply_names(self) -> dict[str, list[dict[str, object]]]:
        """For the record, by role: which names the responses of a remote model gave, and how many
        each.
        """
        rows: dict[str, list[dict[str, object]]] = {}
        for role, lane in self._lanes.items():
            if lane.remote is None:
                continue
            guard = lane.remote.names
            names = name_rows(self._names.get(role, {}), guard.refused, guard.rules)
            if names:
                rows[role] = names
        return rows

    def paid_by(self, reservation: Reservation) -> Ask:
        """This door, with a reservation that pays for what is sent."""
        return Door(self._engine, self._lanes, self.counts, reservation, self._names)

    def _lane(self, role: str) -> Lane:
        lane = self._lanes.get(role)
        if lane is None:
            likely = closest(role, self._lanes)
            hint = f" Did you mean '{likely[0]}'?" if likely else ""
            known = ", ".join(self._lanes)
            raise ConfigurationError(
                f"No model is given for the role '{role}'.{hint} Roles of this run:"
                f" {known}."
            )
        return lane


def _granted() -> asyncio.Future[str]:
    """A claim that nobody else can have: a stored row is not claimed."""
    claim: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    claim.set_result(MINE)
    return claim


class _Abandoned(Exception):
    """To those who wait for an equal request: whoever had sent it was cancelled."""


def _tell(
    loop: asyncio.AbstractEventLoop, on_event: Callable[[str], None], sentence: str
) -> None:
    """From any thread."""
    with suppress(RuntimeError):  # the loop has closed
        loop.call_soon_threadsafe(on_event, sentence)


def _key_at_time_limit(key: bytes, model: Model) -> bytes:
    """The key under which it is remembered that an answer was not ended within the model's time
    limit.
    """
    seconds = model.pacing.timeout if isinstance(model, RemoteModel) else 0.0
    return blake2b(
        b"still writing %r" % seconds, key=key[:64], digest_size=len(key)
    ).digest()


def _unable(model: Model, ability: str) -> Failure:
    able = ", ".join(sorted(model.abilities)) or "nothing"
    return Failure(
        "ability missing",
        "model",
        f"The model {model.name} cannot do '{ability}'; it can do: {able}.",
    )


def _ignore(event: str) -> None:
    pass
