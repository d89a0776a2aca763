"""The engine behind `ask`: join an equal request, look up, claim, send, store, then answer.

The path of one request is in `Engine.ask` and `Engine._obtain`, in that order, and runs in the
caller's own coroutine. Each model has one object that sends: a `Batcher` for a local model, a
`RemoteSender` for a remote one.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Self

from evalwright.core.ask import Ask
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
from evalwright.engine.actions import OpenClaims, Report, StoredActions
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
from evalwright.engine.speed import Speed
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, row_of, storable_text
from evalwright.models.model_interface import LocalModel, Model, RemoteModel

_log = logging.getLogger("evalwright.engine")
_LOCAL_SAMPLES = 4096
_SAMPLES_PER_REPLICA = 512
_MAX_LOCAL_SAMPLES = 16384
_SAMPLES_AT_THE_STORE = 32
_STOP_MARGIN_SHARE = 0.1
_LAST_MOMENT_SECONDS = 0.2
_CLOSE_SECONDS = 5.0
_ENOUGH_MISSES = 64
"""After so many requests in a row that were not in the store, the claim alone looks there."""
_REMEMBERED = "(of an earlier run, and paid; --resend-empty sends it again)"


class Sender:
    """A model and the object that sends requests to it."""

    __slots__ = (
        "abilities",
        "asked_in",
        "batcher",
        "fingerprint",
        "key",
        "misses",
        "model",
        "named",
        "remote",
        "speed",
    )

    def __init__(
        self,
        model: Model,
        batcher: Batcher | None,
        remote: RemoteSender | None,
        asked_in: str = "",
    ) -> None:
        self.model = model
        self.named = False
        """Whether the model's name has been written to the store."""
        self.misses = 0
        """How many requests in a row were not in the store."""
        self.batcher = batcher
        self.remote = remote
        self.speed = batcher.speed if batcher is not None else Speed()
        self.abilities = model.abilities
        self.fingerprint = storable_text(model.fingerprint)
        self.asked_in = asked_in
        self.key = KeyMaker(model.fingerprint, asked_in).key

    def within(self, trajectory: str) -> Sender:
        """Return this sender for the requests of one trajectory, which share no answers."""
        sender = copy.copy(self)
        sender.key = KeyMaker(self.model.fingerprint, self.asked_in, trajectory).key
        return sender

    def is_foreign(self, stored: Response) -> bool:
        """Return whether a stored response came from another model under this one's name."""
        return self.remote is not None and self.remote.names.is_foreign(stored)


class Engine:
    """Sends requests to models through one store. Use as `async with Engine(store) as engine`.

    Args:
        store: the store.
        max_resident: number of heavy local models that may be loaded at a time.
        resend_empty: whether to send requests again that were paid for before and got no answer
            (empty, stopped by a filter, not finished in time).
        asked_in: the round in which the models are asked: answers of other rounds are not used.
        on_event: called with a sentence for people during the run.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_resident: int = 1,
        resend_empty: bool = False,
        asked_in: str = "",
        on_event: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._asked_in = asked_in
        self._resend_empty = resend_empty
        self._resent_keys: set[bytes] = set()
        """Keys of stored replies that a filter had stopped and that were sent again, once each."""
        self._slots = ModelSlots(max_resident)
        self._on_event = on_event or _ignore
        self._senders: dict[int, Sender] = {}
        self._in_flight: dict[bytes, list[asyncio.Future[tuple[Response, bool]]]] = {}
        self._actions = OpenClaims()
        self._outbox: Outbox | None = None
        self._turns: LoopTurns | None = None
        self._reported_owners: set[str] = set()
        self._damaged = False
        self._stopped: Failure | None = None
        self._idle: asyncio.Future[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def door(
        self,
        roles: Mapping[str, Model],
        *,
        trajectory: str = "",
        counts: Counts | None = None,
    ) -> RoleClient:
        """Return a client that sends requests to the models of these roles.

        Must be called where the event loop runs.

        Args:
            roles: the models by role.
            trajectory: id of the trajectory whose requests these are, which share no answers with
                others; "" for none.
            counts: counts its requests; by default it has its own counts.
        """
        senders = {role: self._sender(model) for role, model in roles.items()}
        if trajectory:
            senders = {
                role: sender.within(trajectory) for role, sender in senders.items()
            }
        return RoleClient(self, senders, Counts() if counts is None else counts)

    def actions_of(
        self, senders: Mapping[str, Sender], report: Report | None
    ) -> StoredActions:
        """Return the log of the actions of a client with these senders.

        Args:
            senders: its models by role.
            report: takes what trajectories do now; None where nobody watches.
        """
        fingerprints = {
            role: (sender.fingerprint, sender.asked_in)
            for role, sender in senders.items()
        }
        return StoredActions(self._store, fingerprints, self._actions, report)

    def loop_turns(self) -> LoopTurns:
        """Return what keeps the event loop responsive for all users of this engine.

        Must be called where the event loop runs.
        """
        if self._turns is None:
            self._turns = LoopTurns(asyncio.get_running_loop())
        return self._turns

    def concurrency(self, model: Model) -> int:
        """Return how many samples to keep in flight so that the model never waits for work."""
        if isinstance(model, RemoteModel):
            # Those that wait for the store, a few hundredths of a second each time, count too.
            most = model.pacing.max_concurrency
            return 2 * most + min(2 * most, _SAMPLES_AT_THE_STORE)
        # With fewer, many replicas of a model get small groups, and wait for each other at the end
        # of every batch.
        return min(
            max(_LOCAL_SAMPLES, _SAMPLES_PER_REPLICA * len(model.replicas)),
            _MAX_LOCAL_SAMPLES,
        )

    async def load(self, model: Model) -> None:
        """Load a local model before the first request to it, unless the engine is stopped.

        Raises:
            RequestFailed: it cannot be loaded, or the run ends meanwhile.
        """
        batcher = self._sender(model).batcher
        if batcher is not None and self._stopped is None:
            await batcher.load()

    async def stop(self, grace: float = 5.0) -> None:
        """Stop sending requests.

        Requests in flight may finish and are stored within `grace` seconds; all others fail as
        "cancelled". A local model that is stuck is left behind: its thread is a daemon.
        """
        self._stopped = failure = cancelled()
        for sender in self._senders.values():
            if sender.batcher is not None:
                sender.batcher.drop_waiting(failure)
            if sender.remote is not None:
                sender.remote.drop_waiting(failure)
        if self._outbox is not None:
            self._outbox.drop_foreign(lambda: RequestFailed(failure))
        await self._until_idle(grace * (1 - _STOP_MARGIN_SHARE))
        for sender in self._senders.values():
            if sender.batcher is not None:
                sender.batcher.drop_running(failure)
            if sender.remote is not None:
                sender.remote.drop_running()
        await self._until_idle(max(grace * _STOP_MARGIN_SHARE, _LAST_MOMENT_SECONDS))

    async def close(self) -> None:
        """End all threads, unload all models and close all connections.

        The store stays open; it belongs to whoever opened it.
        """
        if self._closed:
            return
        self._closed = True
        if self._in_flight:
            await self.stop(grace=0.0)
        patience = _CLOSE_SECONDS if self._stopped is None else _LAST_MOMENT_SECONDS
        self._stopped = self._stopped or cancelled()
        batchers = [
            sender.batcher
            for sender in self._senders.values()
            if sender.batcher is not None
        ]
        await asyncio.gather(*(batcher.close(patience) for batcher in batchers))
        for sender in self._senders.values():
            if sender.remote is not None:
                with suppress(
                    Exception
                ):  # the answers are stored, so a connection that fails to close loses nothing
                    await sender.remote.close()

    def _sender(self, model: Model) -> Sender:
        existing = self._senders.get(id(model))
        if existing is not None:
            return existing
        loop = asyncio.get_running_loop()
        if self._outbox is None:
            self._outbox = self._store.outbox()
            self._store.say = lambda sentence: _tell_from_thread(
                loop, self._on_event, sentence
            )
            for notice in self._store.notices:
                self._on_event(notice)
        if isinstance(model, LocalModel):
            sender = Sender(
                model, Batcher(model, loop, self._slots), None, self._asked_in
            )
        elif isinstance(model, RemoteModel):
            sender = Sender(
                model,
                None,
                RemoteSender(model, loop, self._on_event),
                self._asked_in,
            )
        else:
            raise ConfigurationError(
                f"The model '{model.name}' ({type(model).__name__}) must derive from"
                " RemoteModel or LocalModel."
            )
        self._senders[id(model)] = sender
        return sender

    async def ask(
        self,
        sender: Sender,
        request: Request,
        counts: Counts,
        reservation: Reservation | None = None,
        payload: bytes | None = None,
    ) -> Response:
        """Answer a request for a client.

        Args:
            sender: the model and what sends to it.
            request: the request.
            counts: the client's counts.
            reservation: pays for what is sent, where there is a budget; a request that it refuses
                is not counted.
            payload: the request's canonical payload, if the client has it.

        Raises:
            RequestFailed: the request failed.
            StoreError: the store failed.
        """
        counts.requested += 1
        try:
            if request.ability not in sender.abilities:
                raise RequestFailed(_ability_failure(sender.model, request.ability))
            if (why := sender.model.refuses(request)) is not None:
                raise RequestFailed(Failure("request rejected", "configuration", why))
            if payload is None:
                payload = canonical(request.payload())
            key = sender.key(payload)
            while (waiters := self._in_flight.get(key)) is not None:
                future: asyncio.Future[tuple[Response, bool]] = (
                    asyncio.get_running_loop().create_future()
                )
                waiters.append(future)
                # The client that had sent it was cancelled, so it is sent from here.
                with suppress(_Abandoned):
                    response, was_stored = await future
                    counts.stored += was_stored
                    counts.joined += not was_stored
                    return response
            self._in_flight[key] = []
            try:
                looks = not self._may_skip_look(sender, reservation)
                stored = await self._stored(key, counts) if looks else None
                is_replaced = False
                if stored is not None:
                    sender.misses = 0
                    is_replaced = self._is_replaced(sender, key, stored)
                if stored is not None and not is_replaced:
                    counts.stored += 1
                    response, was_stored = stored, True
                elif self._stopped is not None:
                    raise RequestFailed(self._stopped)
                else:
                    sender.misses += 1
                    if looks and reservation is not None:
                        reservation.refuse_if_spent()
                    response, was_stored = await self._obtain(
                        sender,
                        request,
                        key,
                        payload,
                        counts,
                        reservation,
                        has_looked=looks,
                        replaces=is_replaced,
                    )
            except BaseException as error:
                self._end(key, error)
                raise
            self._end(key, (response, was_stored))
            if was_stored:
                await self.loop_turns().take()
            return response
        except RequestFailed as failed:
            failure = failed.failure
            if failure.kind == SPENT:
                counts.requested -= 1
                raise
            _log.info("%s: %s: %s", sender.model.name, failure.kind, failure.message)
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

    def _may_skip_look(self, sender: Sender, reservation: Reservation | None) -> bool:
        """Return whether the claim may be the first to look for a stored response.

        A claim looks too, together with those of other requests. It takes longer where the response
        is there, and a request that may not be sent makes none.
        """
        return (
            sender.misses >= _ENOUGH_MISSES
            and self._stopped is None
            and self._store.broken is None
            and (reservation is None or not reservation.is_spent)
        )

    def _is_replaced(self, sender: Sender, key: bytes, stored: Response) -> bool:
        """Return whether a request is sent although its response is stored.

        That is so if another model gave the response, or a filter stopped it.
        """
        if sender.is_foreign(stored):
            return True
        if (
            self._resend_empty
            and stored.finish_reason == CONTENT_FILTER
            and key not in self._resent_keys
        ):
            self._resent_keys.add(key)
            return True
        return False

    async def _obtain(
        self,
        sender: Sender,
        request: Request,
        key: bytes,
        payload: bytes,
        counts: Counts,
        reservation: Reservation | None,
        *,
        has_looked: bool,
        replaces: bool,
    ) -> tuple[Response, bool]:
        """Send the request, or wait for another process that is sending it.

        `has_looked` says that the response was not in the store, or is replaced; `replaces`, that
        it will replace a stored one. Returns also whether it was in the store before.
        """
        outbox = self._outbox
        assert outbox is not None
        claim = _granted_claim() if replaces else outbox.claim(key)
        elsewhere = False
        try:
            while (outcome := await claim) != MINE:
                if outcome == STORED:
                    stored = await self._stored(key, counts)
                    if stored is not None and not (has_looked or elsewhere):
                        sender.misses = 0
                        if self._is_replaced(sender, key, stored):
                            claim = _granted_claim()
                            continue
                        counts.stored += 1
                        return stored, True
                    if stored is not None:
                        counts.joined += elsewhere
                        counts.stored += not elsewhere
                        return stored, False
                    # The stored row was damaged, and has been removed by now.
                    claim = outbox.claim(key)
                    continue
                if self._stopped is not None:
                    raise RequestFailed(self._stopped)
                elsewhere = True
                self._report_wait(outcome)
                claim = outbox.claim_after(key)
            if self._stopped is not None:
                raise RequestFailed(self._stopped)
            if self._store.broken is not None:
                raise StoreError(str(self._store.broken))
            if not self._resend_empty:
                await self._refuse_remembered(sender, key, lately=elsewhere)
            account = Account(
                sender.model, request, len(payload), counts, outbox.bill, reservation
            )
            try:
                if sender.remote is None:
                    assert sender.batcher is not None
                    response = await self._batched(sender.batcher, account)
                else:
                    began = sender.speed.begin()
                    try:
                        response = await sender.remote.send(account)
                    finally:
                        sender.speed.end()
                    sender.speed.add(response, began)
            except RequestFailed as error:
                error.failure = account.failed(error.failure)
                self._remember(sender, key, error.failure)
                raise
        except BaseException:
            outbox.give_up(key, claim)
            raise
        response = response.without_secrets()
        if not sender.named:
            sender.named = True
            outbox.names[sender.fingerprint] = storable_text(mask(sender.model.name))
        await outbox.put(row_of(key, sender.fingerprint, payload, response))
        counts.asked += 1
        return response, False

    def _remember(self, sender: Sender, key: bytes, failure: Failure) -> None:
        """Remember a failure that was the model's own and was paid for, so as not to pay again.

        A prompt that was too long cost nothing, and fits once the server has a longer context.
        """
        if failure.kind == StillWriting.kind:
            self._store.remember_empty(_key_at_time_limit(key, sender.model), failure)
        elif is_models_own(failure) and failure.kind != PromptTooLong.kind:
            self._store.remember_empty(key, failure)

    async def _refuse_remembered(
        self, sender: Sender, key: bytes, *, lately: bool
    ) -> None:
        """Raise RequestFailed for a request that was paid for before and got no answer.

        One that ran into the time limit is sent again if the limit is longer than before.
        """
        if not (lately or self._store.remembers_failures):
            return
        for memory_key in (key, _key_at_time_limit(key, sender.model)):
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
        """Return the stored response. A damaged one is counted, and reported once."""
        (response,) = await self._store.get_many((key,))
        if response is None and key in self._store.damaged:
            self._store.damaged.discard(key)
            counts.damaged += 1
            if not self._damaged:
                self._damaged = True
                self._on_event(
                    "A stored response is damaged (its checksum does not hold); it is"
                    " requested again."
                )
        return response

    def _report_wait(self, owner: str) -> None:
        if owner not in self._reported_owners:
            self._reported_owners.add(owner)
            self._on_event(
                "Waiting for responses to requests sent by another run (process"
                f" {process_of(owner)})."
            )

    def _end(self, key: bytes, outcome: tuple[Response, bool] | BaseException) -> None:
        """End a request: pass its outcome to those that wait for an equal one.

        `stored` says whether the outcome was stored.
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


class RoleClient(Ask):
    """Sends requests to the models of some roles; `counts` counts exactly these requests."""

    __slots__ = ("_actions", "_engine", "_names", "_reservation", "_senders", "counts")

    def __init__(
        self,
        engine: Engine,
        senders: Mapping[str, Sender],
        counts: Counts,
        reservation: Reservation | None = None,
        names: dict[str, Counter[tuple[str, str]]] | None = None,
        actions: StoredActions | None = None,
    ) -> None:
        self._actions = actions
        self.counts = counts
        self._names = {} if names is None else names
        """By role: number of responses by replica and by the model name in the response."""
        self._engine = engine
        self._senders = senders
        self._reservation = reservation

    async def __call__(
        self, role: str, request: Request, payload: bytes | None = None
    ) -> Response:
        """Return the response of the model in a role.

        Args:
            role: the role.
            request: what to send.
            payload: its canonical payload, if the caller has it.

        Raises:
            RequestFailed: the request failed.
            StoreError: the store failed, which must end the run.
        """
        sender = self._sender(role)
        response = await self._engine.ask(
            sender, request, self.counts, self._reservation, payload
        )
        if sender.remote is not None:
            names = self._names.get(role)
            if names is None:
                names = self._names[role] = Counter()
            names[response.replica, response.model] += 1
        return response

    @property
    def actions(self) -> StoredActions:
        """The log of what tools do in the trajectories of its models."""
        if self._actions is None:
            self._actions = self._engine.actions_of(self._senders, None)
        return self._actions

    def watch(self, report: Report) -> None:
        """Have what trajectories do reported from now on."""
        self._actions = self._engine.actions_of(self._senders, report)

    def abilities(self, role: str) -> frozenset[Ability]:
        """Return the abilities of the model in a role.

        Raises:
            ConfigurationError: no model has the role.
        """
        return self._sender(role).abilities

    def carries(self, role: str) -> frozenset[str]:
        """Return the optional request fields that the model in a role supports."""
        return self._sender(role).model.carries

    def refuses(self, role: str, request: Request) -> str | None:
        """Return why the model in a role cannot take a request as it is; None if it can."""
        return self._sender(role).model.refuses(request)

    def speed(self, role: str) -> Speed:
        """Return how fast the model in a role has answered, whoever sent the requests."""
        return self._sender(role).speed

    def loading(self) -> tuple[str, float] | None:
        """Return the model that is being loaded now, and for how many seconds; None if none is."""
        for sender in self._senders.values():
            if (since := sender.speed.loading_since) is not None:
                return sender.model.name, time.monotonic() - since
        return None

    def reply_names(self) -> dict[str, list[dict[str, object]]]:
        """Return, by role, the model names in a remote model's responses, with counts.

        The record of a run shows them.
        """
        rows: dict[str, list[dict[str, object]]] = {}
        for role, sender in self._senders.items():
            if sender.remote is None:
                continue
            guard = sender.remote.names
            names = name_rows(self._names.get(role, {}), guard.refused, guard.rules)
            if names:
                rows[role] = names
        return rows

    def model(self, role: str) -> Model:
        """Return the model in a role, for whoever serves it to other programs."""
        return self._sender(role).model

    def within(self, trajectory: str) -> RoleClient:
        """Return this client for the requests of one trajectory, which share no answers."""
        client = copy.copy(self)
        client._senders = {
            role: sender.within(trajectory) for role, sender in self._senders.items()
        }
        return client

    def paid_by(self, reservation: Reservation) -> RoleClient:
        """Return this client with a reservation that pays for what is sent."""
        return RoleClient(
            self._engine,
            self._senders,
            self.counts,
            reservation,
            self._names,
            self._actions,
        )

    def _sender(self, role: str) -> Sender:
        sender = self._senders.get(role)
        if sender is None:
            likely = closest(role, self._senders)
            hint = f" Did you mean '{likely[0]}'?" if likely else ""
            roles = ", ".join(self._senders)
            raise ConfigurationError(
                f"No model is given for the role '{role}'.{hint} Roles of this run:"
                f" {roles}."
            )
        return sender


def _granted_claim() -> asyncio.Future[str]:
    """Return a claim that is granted at once: a stored row is never claimed."""
    claim: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    claim.set_result(MINE)
    return claim


class _Abandoned(Exception):
    """Tells those waiting for an equal request that its sender was cancelled."""


def _tell_from_thread(
    loop: asyncio.AbstractEventLoop, on_event: Callable[[str], None], sentence: str
) -> None:
    """Call `on_event` in the event loop, from any thread."""
    with suppress(RuntimeError):  # the loop has closed
        loop.call_soon_threadsafe(on_event, sentence)


def _key_at_time_limit(key: bytes, model: Model) -> bytes:
    """Return the key that remembers a reply that was not finished within the model's time limit."""
    seconds = model.pacing.timeout if isinstance(model, RemoteModel) else 0.0
    return blake2b(
        b"still writing %r" % seconds, key=key[:64], digest_size=len(key)
    ).digest()


def _ability_failure(model: Model, ability: str) -> Failure:
    able = ", ".join(sorted(model.abilities)) or "nothing"
    return Failure(
        "ability missing",
        "model",
        f"The model {model.name} cannot do '{ability}'; it can do: {able}.",
    )


def _ignore(event: str) -> None:
    pass
