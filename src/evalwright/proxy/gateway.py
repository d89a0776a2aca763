"""What happens to one request: who sends it, what it asks, its draw, the answer, its delivery.

`Gateway.handle` is the whole path, in that order. The answer is safe in the store before a byte of
it is sent; a stream is the whole answer as events.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from aiohttp import web

from evalwright.bounded import from_json
from evalwright.core.errors import RequestFailed, StoreError
from evalwright.core.outcomes import response_of_fault
from evalwright.core.requests import Generate, Request, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models.model_interface import Model, RemoteModel
from evalwright.proxy.chat_format import ChatFormat
from evalwright.proxy.completions_format import CompletionsFormat
from evalwright.proxy.faults import Fault, fault_of, invalid, is_an_answer
from evalwright.proxy.inbound import Answered, Format, Inbound, encode
from evalwright.proxy.messages_format import MessagesFormat, read_count
from evalwright.proxy.responses_format import ResponsesFormat
from evalwright.proxy.server import (
    Connection,
    Door,
    bearer_of,
    check_head,
    reply_of,
)
from evalwright.proxy.sessions import (
    Draw,
    Identified,
    Sessions,
    Trajectory,
    check_id,
)
from evalwright.proxy.tokens import Access, Tokens
from evalwright.proxy.upstream import Upstream

_log = logging.getLogger("evalwright.proxy")

KEEP_ALIVE_SECONDS = 10.0
"""How long a stream waits before it begins, with comments or pings, ahead of the answer.

Until then an error has a status of its own, on which clients decide what to do.
"""
RETRY_WAIT_SECONDS = 0.05
"""How long a client's own retry waits for the end of its earlier connection to be seen."""
_JSON = "application/json"
_EVENTS = "text/event-stream; charset=utf-8"
FORMATS: Mapping[str, Format] = {
    "/chat/completions": ChatFormat(),
    "/completions": CompletionsFormat(),
    "/responses": ResponsesFormat(),
    "/messages": MessagesFormat(),
}
_OPENAI = FORMATS["/chat/completions"]
_ANTHROPIC = FORMATS["/messages"]
_COUNT_TOKENS = "/messages/count_tokens"
Drawn = tuple[Request, bytes, Draw]
"""A request with its canonical payload, and its draw."""


class Gateway:
    """Answers requests. Belongs to one event loop.

    Args:
        upstream: the models, and who asks them.
        tokens: who may send.
        trajectory: the trajectory of requests that name none; "" if they belong to none.
        door_limits: bounds of what connections hold in memory, as `Door` takes them.
    """

    def __init__(
        self,
        upstream: Upstream,
        tokens: Tokens,
        *,
        trajectory: str = "",
        door_limits: Mapping[str, int] | None = None,
    ) -> None:
        self.sessions = Sessions()
        self.in_flight = 0
        self.refused = 0
        """Requests that were answered with an error before a model was asked."""
        self.last_fault: Fault | None = None
        """The last such error."""
        self.hosts: frozenset[str] = frozenset()
        self.door = Door(self.handle, **(door_limits or {}))
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with the error of the store, after which nothing can be answered."""
        self._upstream = upstream
        self._tokens = tokens
        self._trajectory = trajectory
        self._warned_unnamed = False

    async def handle(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.StreamResponse:
        """Answer a request, whatever it is."""
        path = request.raw_path.partition("?")[0]
        form = _ANTHROPIC if _is_anthropic(request, path) else _OPENAI
        try:
            check_head(request, self.hosts)
            access = self._tokens.find(bearer_of(request))
            id, end = _split_path(path)
            id = id or self._trajectory
            access.check(id)
            if request.method == "GET" and (
                end == "/models" or end.startswith("/models/")
            ):
                return self._models(form, access, end)
            if request.method != "POST":
                raise Fault(405, "invalid", f"{request.method[:20]} is not used here.")
            trajectory = self.sessions.trajectory(id)
            if end == "/restart":
                return self._restart(trajectory)
            form = FORMATS.get(end, form)
            if end != _COUNT_TOKENS and end not in FORMATS:
                raise Fault(404, "not found", _no_such_path(), code="no_such_path")
            body = _parse(await self.door.read_body(request, connection))
            if end == _COUNT_TOKENS:
                return await self._count_tokens(body, access)
            return await self._answer(
                request, connection, form, form.read(body), trajectory, access
            )
        except Fault as fault:
            self.refused += 1
            self.last_fault = fault
            return error_reply(form, fault)
        except Exception as error:
            _log.warning(
                "A request failed by a defect: %s", type(error).__name__, exc_info=True
            )
            defect = f"This is a defect of the proxy ({type(error).__name__})."
            return error_reply(form, Fault(500, "server", defect, code="defect"))

    # -- one request to a model

    async def _answer(
        self,
        request: web.BaseRequest,
        connection: Connection,
        form: Format,
        inbound: Inbound,
        trajectory: Trajectory,
        access: Access,
    ) -> web.StreamResponse:
        """Ask the model, and deliver the answer."""
        model = self._upstream.find(inbound.model, access)
        check_carried(inbound, model)
        self._upstream.count_bytes(request.content_length or 0)
        draws = await self._draws(request, inbound, model, trajectory)
        delivery = Delivery(request, connection, form, draws)
        self.in_flight += 1
        try:
            if inbound.stream:
                delivery.keep_alive()
            responses = await self._ask(inbound, model, trajectory, draws, access)
            answered = Answered(
                inbound,
                responses,
                _reply_id(trajectory, model, draws),
                int(time.time()),
            )
            return await delivery.send(answered)
        except Fault as fault:
            return await delivery.fail(fault)
        finally:
            self.in_flight -= 1
            delivery.close()

    async def _draws(
        self,
        request: web.BaseRequest,
        inbound: Inbound,
        model: Model,
        trajectory: Trajectory,
    ) -> list[list[Drawn]]:
        """Return each request as often as it is drawn, with its draws."""
        identified = [Identified(model.name, each) for each in inbound.requests]
        if any(trajectory.is_open(each.digest) for each in identified):
            # Perhaps a retry: let the event loop see the end of the connection before it.
            is_retry = request.headers.get("x-stainless-retry-count", "0") != "0"
            for _ in range(5):
                await asyncio.sleep(RETRY_WAIT_SECONDS / 5 if is_retry else 0)
        if trajectory is self.sessions.unnamed and not self._warned_unnamed:
            self._warn_unnamed(identified)
        drawn: list[list[Drawn]] = []
        try:
            for each in identified:
                drawn.append([])
                n_draws = inbound.draws if isinstance(each.request, Generate) else 1
                for _ in range(n_draws):
                    draw = trajectory.take(each.digest, is_greedy=each.is_greedy)
                    drawn[-1].append((*each.drawn(draw), draw))
        except Fault:
            for _, _, draw in itertools.chain.from_iterable(drawn):
                draw.give_back()
            raise
        return drawn

    def _warn_unnamed(self, identified: Sequence[Identified]) -> None:
        if all(each.is_greedy for each in identified):
            return
        self._warned_unnamed = True
        _log.warning(
            "Requests without a trajectory's id at a temperature above 0 are new draws,"
            " and are not replayed when the program starts again: put an id into the base"
            " URL (/t/ID/v1) to resume it without paying twice."
        )

    async def _ask(
        self,
        inbound: Inbound,
        model: Model,
        trajectory: Trajectory,
        drawn: Sequence[Sequence[Drawn]],
        access: Access,
    ) -> list[list[Response]]:
        """Ask for all draws at once; the first failure is that of the whole request."""
        if len(drawn) == 1 and len(drawn[0]) == 1:
            return [[await self._ask_one(model, trajectory, drawn[0][0], access)]]
        flat = [
            self._ask_one(model, trajectory, each, access)
            for draws in drawn
            for each in draws
        ]
        outcomes = await asyncio.gather(*flat, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        waiting = iter(outcomes)
        return [[next(waiting) for _ in draws] for draws in drawn]  # type: ignore[misc]

    async def _ask_one(
        self,
        model: Model,
        trajectory: Trajectory,
        drawn: Drawn,
        access: Access,
    ) -> Response:
        request, payload, draw = drawn
        is_shared = draw.is_shared or not isinstance(request, Generate)
        id = "" if is_shared else trajectory.id
        try:
            return await self._upstream.ask(model, id, request, payload, access)
        except RequestFailed as failed:
            if is_an_answer(failed.failure) and isinstance(request, Generate):
                return response_of_fault(failed.failure)
            raise fault_of(failed.failure) from None
        except StoreError as error:
            if not self.broken.done():
                self.broken.set_exception(error)
            raise Fault(
                500, "server", f"The store failed, and the proxy ends: {error}"
            ) from None

    # -- everything else

    def _models(self, form: Format, access: Access, end: str) -> web.Response:
        names = self._upstream.allowed(access)
        rows: list[dict[str, Any]]
        wanted = end.removeprefix("/models").removeprefix("/")
        if wanted:
            names = [self._upstream.find(wanted, access).name]
        if form is _ANTHROPIC:
            rows = [
                {
                    "type": "model",
                    "id": name,
                    "display_name": name,
                    "created_at": "1970-01-01T00:00:00Z",
                }
                for name in names
            ]
            listed = {
                "data": rows,
                "has_more": False,
                "first_id": names[0] if names else None,
                "last_id": names[-1] if names else None,
            }
        else:
            rows = [
                {"id": name, "object": "model", "created": 0, "owned_by": "evalwright"}
                for name in names
            ]
            listed = {"object": "list", "data": rows}
        return json_reply(rows[0] if wanted else listed)

    def _restart(self, trajectory: Trajectory) -> web.Response:
        if trajectory is self.sessions.unnamed:
            raise invalid("Name the trajectory: POST /t/ID/restart.")
        trajectory.restart()
        return json_reply({"trajectory": trajectory.id, "counts_from": 1})

    async def _count_tokens(self, body: Any, access: Access) -> web.Response:
        """Count the tokens of a prompt with the model's own tokenizer."""
        try:
            inbound = read_count(body)
            model = self._upstream.find(inbound.model, access)
            check_carried(inbound, model)
            request = inbound.requests[0]
            assert isinstance(request, Generate)
            reader = await asyncio.to_thread(model.reader)
            if reader is None or request.tools:
                raise invalid(
                    f"The tokens of a prompt to '{model.name}' cannot be counted here: only"
                    " its server knows its tokenizer"
                    + (" and how it writes tools." if request.tools else ".")
                )
            text, rules = await asyncio.to_thread(reader.render, request.prompt)
            tokens = await asyncio.to_thread(
                reader.encoder.encode, text, rules.add_special_tokens
            )
        except Fault as fault:
            self.refused += 1
            return error_reply(_ANTHROPIC, fault)
        return json_reply({"input_tokens": len(tokens)})


class Delivery:
    """The delivery of one answer to one connection.

    Its draws are given back as soon as the connection ends, or the answer turns out an error.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        connection: Connection,
        form: Format,
        drawn: Sequence[Sequence[Drawn]],
    ) -> None:
        self._request = request
        self._connection = connection
        self._form = form
        self._draws = [draw for draws in drawn for _, _, draw in draws]
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._stream: web.StreamResponse | None = None
        if connection.is_alive:
            connection.on_lost.append(self._give_back)
        else:
            self._give_back()

    def keep_alive(self) -> None:
        """Begin the stream ahead of the answer, if that takes long."""
        self._timer = asyncio.get_running_loop().call_later(
            KEEP_ALIVE_SECONDS, self._begin_pinging
        )

    def _begin_pinging(self) -> None:
        self._pinging = asyncio.ensure_future(self._ping())

    async def _ping(self) -> None:
        stream = _event_stream()
        connection = self._connection
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            await stream.prepare(self._request)
            self._stream = stream
            while True:
                connection.waits_since = loop.time()
                await stream.write(self._form.ping)
                connection.waits_since = None
                await asyncio.sleep(KEEP_ALIVE_SECONDS)

    async def _end_pinging(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()
            with suppress(asyncio.CancelledError):
                await self._pinging

    async def send(self, answered: Answered) -> web.StreamResponse:
        """Send the answer; its draws are delivered if the client was there to take it."""
        await self._end_pinging()
        content = b""
        if self._stream is not None:
            reply = self._stream
            content = self._form.events(answered)
        elif answered.inbound.stream:
            reply = reply_of(self._request, self._form.events(answered), _EVENTS)
        else:
            body = encode(self._form.write(answered)).encode()
            reply = reply_of(self._request, body, _JSON)
        if await self._write(reply, content):
            for draw in self._draws:
                draw.delivered()
        return reply

    async def fail(self, fault: Fault) -> web.StreamResponse:
        """Send an error; the draws are free for the client's next attempt."""
        await self._end_pinging()
        self._give_back()
        if self._stream is None:
            return error_reply(self._form, fault)
        await self._write(self._stream, self._form.error_event(fault))
        return self._stream

    async def _write(self, reply: web.StreamResponse, content: bytes) -> bool:
        """Write a reply to its end; return whether the client was there to take it."""
        connection = self._connection
        connection.waits_since = asyncio.get_running_loop().time()
        try:
            await reply.prepare(self._request)
            await reply.write_eof(content)
        except OSError:
            connection.force_close()
            return False
        finally:
            connection.waits_since = None
        return connection.is_alive

    def _give_back(self) -> None:
        for draw in self._draws:
            draw.give_back()

    def close(self) -> None:
        """End the delivery: what was not delivered is given back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()
        with suppress(ValueError):
            self._connection.on_lost.remove(self._give_back)
        self._give_back()


def check_carried(inbound: Inbound, model: Model) -> None:
    """Refuse what a model cannot be asked in this form.

    Raises:
        Fault: the model takes no messages, or no plain text, or not a field.
    """
    if inbound.needs_chat and "chat" not in model.abilities:
        raise invalid(
            f"'{model.name}' takes no chat messages: it completes text, at /v1/completions."
        )
    if not inbound.needs_chat and _wraps_text(inbound, model):
        raise invalid(
            f"'{model.name}' takes chat messages, and would answer a text instead of"
            " completing it: use /v1/chat/completions."
        )
    if inbound.extras and "generation_arguments" not in model.carries:
        field = inbound.extras[0]
        raise invalid(
            f"The field '{field}' cannot be carried to '{model.name}', and could change the"
            " answer. Leave it out.",
            field,
        )
    if not model.echoes and _scores_text(inbound):
        raise invalid(
            f"'{model.name}' gives no log-probabilities of a prompt: 'echo' with 'logprobs'"
            " needs a server with completions that echo them (-M interface=completions -M"
            " echo=true).",
            "echo",
        )


def _scores_text(inbound: Inbound) -> bool:
    return any(isinstance(each, RollingLogLikelihood) for each in inbound.requests)


def _wraps_text(inbound: Inbound, model: Model) -> bool:
    """Return whether a plain text would reach the model as a user's message."""
    generates = any(isinstance(each, Generate) for each in inbound.requests)
    return generates and isinstance(model, RemoteModel) and "chat" in model.abilities


def _reply_id(
    trajectory: Trajectory, model: Model, drawn: Sequence[Sequence[Drawn]]
) -> str:
    """Return a name for a reply, the same whenever the same draws are replayed."""
    state = blake2b(f"{trajectory.id}\n{model.name}".encode(), digest_size=12)
    for draws in drawn:
        for _, _, draw in draws:
            state.update(draw.digest + draw.index.to_bytes(8, "big"))
    return state.hexdigest()


def _is_anthropic(request: web.BaseRequest, path: str) -> bool:
    return "anthropic-version" in request.headers or path.endswith(
        ("/messages", _COUNT_TOKENS)
    )


def _split_path(path: str) -> tuple[str, str]:
    """Return the trajectory's id, "" for none, and the path below /v1.

    Raises:
        Fault: it is neither.
    """
    id = ""
    if path.startswith("/t/"):
        id, slash, path = path[3:].partition("/")
        path = slash + path
        check_id(id)
        if path == "/restart":
            return id, path
    if not path.startswith("/v1/"):
        raise Fault(404, "not found", _no_such_path(), code="no_such_path")
    return id, path[3:]


def _no_such_path() -> str:
    ends = ", ".join(f"POST /v1{end}" for end in FORMATS)
    return (
        f"Nothing is served at this path. There are {ends}, GET /v1/models, POST"
        " /v1/messages/count_tokens, each also below /t/TRAJECTORY, and POST"
        " /t/TRAJECTORY/restart."
    )


def _parse(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError as error:
        raise invalid(f"The body is not valid JSON: {str(error)[:200]}.") from None


def json_reply(content: Any, status: int = 200) -> web.Response:
    """Return a reply of JSON."""
    body = encode(content).encode()
    headers = {
        "Content-Type": _JSON,
        "Cache-Control": "no-store",
        "Server": "evalwright",
    }
    return web.Response(body=body, status=status, headers=headers)


def error_reply(form: Format, fault: Fault) -> web.Response:
    """Return the reply for a fault, in the caller's format."""
    is_overload = fault.status == 529 and form is not _ANTHROPIC
    reply = json_reply(form.error(fault), 503 if is_overload else fault.status)
    reply.headers.update(fault.headers())
    if fault.closes:
        reply.force_close()
    return reply


def _event_stream() -> web.StreamResponse:
    stream = web.StreamResponse(
        headers={
            "Content-Type": _EVENTS,
            "Cache-Control": "no-store",
            "Server": "evalwright",
        }
    )
    stream.enable_chunked_encoding()
    return stream
