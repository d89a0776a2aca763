"""What a wire format is: a request to a JSON body, a reply's JSON to a Response, as pure functions. No network here.

A format is one module with one `Wire` in it, `WIRE`. What differs between models and providers of one format (which
sampling fields are refused, what the limit is called, fields to add) comes in `Settings`, made from a row of data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from evalwright.core.errors import BadReply, EmptyReply, Rejected
from evalwright.core.requests import Embed, Generate, Message, Prompt
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.http_faults import PromptFiltered, bad_reply

if TYPE_CHECKING:
    from evalwright.models.remote.http import HttpClient, Reply

TokensField = Literal["max_tokens", "max_completion_tokens", "max_new_tokens"]

SAMPLING = ("max_tokens", "temperature", "top_p", "stop", "seed")
"""What a model may be told besides the prompt."""
REFUSABLE = (*SAMPLING, "prefill", "temperature+top_p")
"""What a model may refuse: to be told one of `SAMPLING`, an answer that is begun for it, or both of two at once."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same in every request to one model. An override that is not None wins over the request's value.

    where: the host, for messages. refuses: those of `REFUSABLE`; of `SAMPLING` they are not sent unless they are overrides.
    reasoning_fields: where a reply's message may hold reasoning. extra_body: merged into every body, winning over ours.
    stream: take the answer in pieces. key_source: for messages about a refused key. cost_field: where a reply names its cost in
    US dollars ("usage.cost"), "" where it does not. variables: what a row's variables say that its base URL does not use, for
    paths (an API version).
    """

    model: str
    where: str
    tokens_field: TokensField = "max_tokens"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    refuses: frozenset[str] = frozenset()
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    key_source: str = ""
    cost_field: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


class Gatherer(Protocol):
    """Puts the pieces of a streamed answer together."""

    def add(self, event: str, data: Any) -> bool:
        """Take one event (its name, "" where it has none, and its JSON). True once the answer is whole.

        Raises the RequestError that an event carries.
        """

    def result(self) -> Any:
        """The reply as it would have come in one piece; only once the answer is whole."""


@runtime_checkable
class OpenEnded(Gatherer, Protocol):
    """A Gatherer of a format that has no last event: `add` never says True, the stream just ends."""

    def ended(self) -> bool:
        """Whether the answer is whole now that the stream has ended."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One wire format.

    path: where to POST below the base URL. payload: the body. read: the Response; raises BadReply, EmptyReply or the
    error that a 200 carries. gather: makes a Gatherer; None where answers cannot be streamed. stream_path and
    stream_payload: where and how a streamed answer is asked for (default: the same path, `"stream": true`). decoding: how
    events stand in the stream. wait: for jobs that are answered later, from the first reply to the last. lacks: those of
    `SAMPLING` that the format has no field for. embed: asks once for a vector; with it, that is all the format is for. names_limit: whether `Settings.tokens_field` has a meaning in it. pasted: what
    people copy into a base URL although it is none of it, as a regular expression for the end of its path.
    """

    name: str
    path: Callable[[Settings], str]
    payload: Callable[[Generate, Settings], dict[str, Any]]
    read: Callable[[Reply, Generate, Settings], Response]
    gather: Callable[[Settings], Gatherer] | None = None
    stream_path: Callable[[Settings], str] | None = None
    stream_payload: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {**body, "stream": True}
    decoding: Literal["sse", "aws"] = "sse"
    wait: Callable[[HttpClient, Reply, Settings], Awaitable[Reply]] | None = None
    chat: bool = True
    lacks: frozenset[str] = frozenset()
    names_limit: bool = True
    pasted: str = ""
    embed: Callable[[HttpClient, Embed, Settings], Awaitable[Response]] | None = None


async def ask(wire: Wire, client: HttpClient, request: Generate, settings: Settings) -> Response:
    """Ask once, whole or streamed. A prompt that the provider's filter stops is an answer without text.

    Raises Rejected for a prefill that the model does not take.
    """
    started = time.perf_counter()
    try:
        return await _ask(wire, client, request, settings)
    except PromptFiltered as filtered:
        return Response(
            finish_reason="content_filter",
            latency=time.perf_counter() - started,
            rate_limits=filtered.rate_limits,
        )


async def _ask(wire: Wire, client: HttpClient, request: Generate, settings: Settings) -> Response:
    refuse_prefill(request, settings)
    body = wire.payload(request, settings)
    if settings.stream and wire.gather is not None:
        from evalwright.models.remote.http_stream import post_streamed

        path = (wire.stream_path or wire.path)(settings)
        gatherer = wire.gather(settings)
        reply = await post_streamed(client, path, wire.stream_payload(body), gatherer, wire.decoding)
    else:
        reply = await client.post(wire.path(settings), body)
    if wire.wait is not None:
        reply = await wire.wait(client, reply, settings)
    return wire.read(reply, request, settings)


@dataclass(frozen=True, slots=True)
class Sampling:
    """What is told to the model, overrides and refusals applied; None and () where nothing is."""

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: tuple[str, ...]
    seed: int | None


def sampling(request: Generate, settings: Settings) -> Sampling:
    """The sampling fields of a request. With a seed, draw n gets seed + n: one seed would draw the same answer each time.

    Raises Rejected for a temperature and a top_p together where the model takes only one of them and both matter.
    """

    def chosen(name: str, override: Any, asked: Any) -> Any:
        if override is not None:
            return override
        return None if name in settings.refuses else asked

    seed = chosen("seed", settings.seed, request.seed)
    temperature = chosen("temperature", settings.temperature, request.temperature)
    top_p = chosen("top_p", settings.top_p, request.top_p)
    if "temperature+top_p" in settings.refuses and temperature is not None and top_p is not None:
        temperature, top_p = _one_of_two(temperature, top_p, settings)
    return Sampling(
        max_tokens=chosen("max_tokens", settings.max_tokens, request.max_tokens),
        temperature=temperature,
        top_p=top_p,
        stop=() if "stop" in settings.refuses else request.stop,
        seed=None if seed is None else seed + request.draw,
    )


def _one_of_two(temperature: float, top_p: float, settings: Settings) -> tuple[float | None, float | None]:
    """The one that says the same as both together."""
    if top_p == 1 or temperature == 0:
        return temperature, None
    if temperature == 1:
        return None, top_p
    raise Rejected(
        f"'{settings.model}' takes a temperature or a top_p, not both ({temperature:g} and {top_p:g} were asked for): leave "
        f"one of them out with -M top_p=1 or -M temperature=1."
    )


def refuse_prefill(request: Generate, settings: Settings) -> None:
    """Raise Rejected where the prompt ends with the beginning of the answer, and the model does not go on from it."""
    prompt = request.prompt
    begun = not isinstance(prompt, str) and bool(prompt) and prompt[-1].role == "assistant"
    if not begun or "prefill" not in settings.refuses:
        return
    raise Rejected(
        f"'{settings.model}' does not go on from an answer that is begun for it (a prefill), at least not with these "
        f"arguments: ask with a prompt that ends with the user's turn."
    )


def turns(prompt: Prompt) -> tuple[Message, ...]:
    """The prompt as messages: text is one user message."""
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def system_and_turns(prompt: Prompt) -> tuple[str, tuple[Message, ...]]:
    """The system messages as one text, and the other messages, for formats that keep them apart."""
    messages = turns(prompt)
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return system, tuple(message for message in messages if message.role != "system")


def system_and_talk(request: Generate, settings: Settings) -> tuple[str, tuple[Message, ...]]:
    """As `system_and_turns`, for formats that need a turn. Raises Rejected for a prompt without one."""
    system, talk = system_and_turns(request.prompt)
    if not talk:
        raise Rejected(f"{settings.where} needs a user's turn; this prompt has only system messages.")
    return system, talk


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`body` with `extra` over it, mappings merged key by key, so that one nested field can be added."""
    out = dict(body)
    for name, value in extra.items():
        below = out.get(name)
        out[name] = (
            merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return out


def with_room_to_think(
    body: dict[str, Any], limit: tuple[str, ...], budget: tuple[str, ...], settings: Settings, *, above: bool
) -> dict[str, Any]:
    """`body` with a limit that leaves the answer its room where the limit counts the tokens of thinking too.

    limit, budget: where in the body they stand. A task's limit is for the answer, so the budget comes on top of it; a limit
    that the person set is sent as it is. above: the limit must be above the budget. Raises Rejected where it is not.
    """
    most, thinking = _at(body, limit), _at(body, budget)
    if type(most) is not int or type(thinking) is not int or thinking <= 0:
        return body
    if settings.max_tokens is None and _at(settings.extra_body, limit) is None:
        more: Any = most + thinking
        for step in reversed(limit):
            more = {step: more}
        return merged(body, more)
    if above and most <= thinking:
        raise Rejected(
            f"max_tokens ({most}) must be above the budget for thinking ({thinking}), which it includes."
        )
    return body


def _at(body: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        body = body.get(step) if isinstance(body, Mapping) else None
    return body


def finished(
    text: str, reasoning: str, finish_reason: str, usage: Usage, request: Generate, settings: Settings,
    *, reply: Reply, model: Any = "", excused: bool = False, may_be_empty: bool = False,
) -> Response:  # fmt: skip
    """The Response that all formats end with.

    finish_reason: "stop", "length", "content_filter", or the provider's word where it has another meaning. excused:
    there is a reason for an answer without content (a tool call). may_be_empty: an immediate end is an answer here where the
    server counts a token for it. Raises EmptyReply for an answer without content and without a reason.
    """
    if not text and not reasoning and not excused and finish_reason in ("stop", ""):
        # A model may end at once, or begin with a stop string; then it did produce a token. Otherwise nothing came.
        allowed = bool(request.stop) or may_be_empty
        if not (allowed and finish_reason and usage.output_tokens > 0):
            raise EmptyReply(f"{settings.where} sent an answer without content.")
    if "stop" in settings.refuses and request.stop:
        text = cut(text, request.stop)
    return Response(
        text=text,
        reasoning=reasoning,
        finish_reason=finish_reason,
        usage=usage,
        latency=reply.seconds,
        model=model if isinstance(model, str) else "",
        rate_limits=reply.rate_limits,
    )


def cut(text: str, stop: tuple[str, ...]) -> str:
    """`text` up to the first stop string, for models whose interface does not take any."""
    ends = [place for place in (text.find(sign) for sign in stop if sign) if place >= 0]
    return text[: min(ends)] if ends else text


def cut_here(text: str, finish_reason: str, stop: tuple[str, ...]) -> tuple[str, str]:
    """(text, finish reason) after those stop strings that the interface does not take are applied here."""
    short = cut(text, stop)
    return (text, finish_reason) if short == text else (short, "stop")


def count(value: Any) -> int:
    """A token count; what a server does not say is 0."""
    return value if isinstance(value, int) and value > 0 else 0


def not_documented(settings: Settings, expected: str, data: Any) -> BadReply:
    """The error for a reply that lacks what the interface documents."""
    shown = json.dumps(data, ensure_ascii=False)
    return bad_reply(settings.where, f"what the interface documents ({expected})", shown)
