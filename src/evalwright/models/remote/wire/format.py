"""Wire formats: pure functions that turn a request into a JSON body and a reply into a Response.

Each format is a module with one `Wire`, named `WIRE`. What differs between the models and providers
of a format (refused sampling fields, the name of the token limit, extra fields) is in `Settings`,
which is made from a provider's row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from evalwright.core.errors import (
    NO_TOKEN_LOG_PROBS,
    BadReply,
    EmptyReply,
    Overloaded,
    Rejected,
    RequestError,
)
from evalwright.core.outcomes import (
    CONTENT_FILTER,
    LENGTH,
    REFUSAL,
    TOOL_CALL,
    TOOL_CALLS,
)
from evalwright.core.requests import Ability, Embed, Generate, Message, Prompt
from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.models.model_interface import answers_tokens, stop_at, stop_in
from evalwright.models.remote.exchange import (
    Call,
    Gatherer,
    Polling,
    Reply,
    largest_reply,
)
from evalwright.models.remote.http_faults import bad_reply, clean, error_within
from evalwright.models.remote.wire.options import NoLogProbs, Options, fields_of

TokensField = Literal[
    "max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"
]

SAMPLING = ("max_tokens", "temperature", "top_p", "stop", "seed")
"""The sampling fields that may accompany a prompt."""
REFUSABLE = (*SAMPLING, "prefill", "temperature+top_p")
"""What a model may refuse: one of `SAMPLING`, a prefill, or two fields together."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of all requests to one model.

    An override that is not None takes precedence over the request.

    Attributes:
        where: the host, for messages.
        base_url: the URL below which paths begin, for formats whose replies contain addresses.
        refuses: fields of `REFUSABLE` that the model refuses; those of `SAMPLING` are sent only as
            overrides.
        reasoning_fields: fields of a reply's message that may hold reasoning.
        extra_body: merged into every body, with priority over our fields.
        most_stops: the number of stop strings to send; None for all.
        stream: whether to request streamed answers.
        key_source: where the key comes from, for messages about a refused key.
        cost_field: the field with a reply's cost in US dollars ("usage.cost"), or "".
        system_field: the field of the system prompt in a body without messages; "" to put it first
            in the prompt.
        variables: variables of the row that its base URL does not use, for paths.
        returns: what is sent back with an assistant's turn that calls tools, see `Provider`.
        raw_arguments: whether malformed arguments of such a turn are sent as the model wrote them.
        reasons: whether the model is known to reason.
    """

    model: str
    where: str
    tokens_field: TokensField = "max_tokens"
    system_field: str = "system_prompt"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    refuses: frozenset[str] = frozenset()
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    most_stops: int | None = None
    stream: bool = False
    key_source: str = ""
    cost_field: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    base_url: str = ""
    returns: tuple[str, ...] = ()
    raw_arguments: bool = False
    reasons: bool = False


MAPPINGS = (dict, Mapping)
"""For `isinstance`: a plain dict is recognised before the slower abstract class is asked."""
_MOST_TOKENS = 1 << 40
_MOST_DOLLARS = 1e6
"""Most dollars that one reply may report.

More is not a plausible cost, and would not fit into the ledger.
"""
_LENGTH_LIMIT_FIELDS = frozenset(
    [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "maxTokens",
        "max_new_tokens",
    ]
)
"""Fields of a body that limit the length of a reply.

A new format's own field belongs here, or the size of its replies has no bound.
"""


_NO_USAGE = Usage()


class ReplyContent(NamedTuple):
    """The content of a reply, in any format.

    Attributes:
        finish: "stop", "length", "content_filter", or the provider's word for another reason.
        model: the model that the reply names.
        excused: whether an answer without content is valid, for a known reason.
        may_be_empty: whether an immediate end is a valid answer if the server counts a token for
            it.
        values: the vector of an embedding.
        calls_tool: whether the reply calls a tool.
        tool_calls: those calls, for requests that offer tools.
        provider_content: as in `Response`.
        stopped_at: as in `Response`, if the server reports it.
    """

    text: str
    reasoning: str = ""
    finish: str = ""
    usage: Usage = _NO_USAGE
    model: Any = ""
    excused: bool = False
    may_be_empty: bool = False
    values: tuple[float, ...] = ()
    calls_tool: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    provider_content: str = ""
    stopped_at: str | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire format: pure functions, and the capabilities of the format.

    Attributes:
        path: where to POST, below the base URL.
        payload: makes the body of a request for one of `abilities`.
        parse: parses a reply's JSON; raises BadReply, EmptyReply or the error in a 200 reply.
        usage: reads the token usage, even of a reply that is no answer.
        gather: makes a Gatherer; None if answers cannot be streamed.
        stream_path: the path of streamed answers, if it differs.
        stream_payload: makes the body that requests a stream.
        decoding: the framing of streamed events.
        polling: how to follow jobs that are answered later.
        lacks: fields of `SAMPLING` that the format does not have.
        names_limit: whether `Settings.tokens_field` is used.
        model_in_path: whether `path` contains the model's name.
        end: a pattern for the end of a full URL, which users often copy into the base URL.
        options: further options of a request that the format has, see `wire.options`.
        extensions: the options that only rows with them in `takes` have.
        images: media types of supported images.
        tokens: reads the log-probabilities of an answer's tokens.
        most_alternatives: the largest number of alternatives for each token.
        names_tool: whether a request can demand the call of one tool by its name.
    """

    name: str
    path: Callable[[Settings], str]
    payload: Callable[[Any, Settings], dict[str, Any]]
    parse: Callable[[Any, Any, Settings], ReplyContent]
    usage: Callable[[Any], Usage]
    abilities: frozenset[Ability] = frozenset(("generate", "chat"))
    gather: Callable[[Settings], Gatherer] | None = None
    stream_path: Callable[[Settings], str] | None = None
    stream_payload: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {
        **body,
        "stream": True,
    }
    decoding: Literal["sse", "aws"] = "sse"
    polling: Polling | None = None
    lacks: frozenset[str] = frozenset()
    names_limit: bool = True
    model_in_path: bool = False
    end: str = ""
    options: Options = field(default_factory=dict)
    extensions: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    tokens: Callable[[Any], list[TokenLogProb]] | None = None
    most_alternatives: int = 20
    names_tool: bool = True

    def build(
        self, request: Generate | Embed, settings: Settings, *, unstreamed: bool = False
    ) -> Call:
        """Build the call to send; `unstreamed` overrides the settings' `stream`.

        Raises:
            Rejected: the model or the format does not support the request.
        """
        if isinstance(request, Generate):
            refuse_prefill(request, settings)
        body = self.payload(request, settings)
        for fields in (
            fields_of(request, self.options) if isinstance(request, Generate) else ()
        ):
            body = merge_bodies(
                fields, body
            )  # what the user adds to the body takes precedence
        most = largest_reply(limit_within(body) if isinstance(request, Generate) else 0)
        if unstreamed or not settings.stream or self.gather is None:
            return Call(self.path(settings), body, largest=most)
        path = (self.stream_path or self.path)(settings)
        return Call(
            path,
            self.stream_payload(body),
            gatherer=self.gather(settings),
            decoding=self.decoding,
            largest=most,
        )

    def read(
        self, reply: Reply, request: Generate | Embed, settings: Settings
    ) -> Response:
        """Return the Response in a reply.

        It raises the errors of `parse`, and EmptyReply for an answer without content or reason.
        """
        try:
            return self._read(reply, request, settings)
        except RequestError as error:
            self.settle(error, reply.data, settings)
            raise

    def settle(self, error: RequestError, data: Any, settings: Settings) -> None:
        """Record in an error the usage and cost that its reply reports."""
        used = self.usage(data)
        if used.input_tokens or used.output_tokens:
            error.usage = used
            error.cost = _reported_cost(data, settings)

    def _read(
        self, reply: Reply, request: Generate | Embed, settings: Settings
    ) -> Response:
        content = self.parse(reply.data, request, settings)
        text = content.text
        calls = content.tool_calls if offers_tools(request) else ()
        if content.finish not in ("stop", LENGTH):
            _refuse_broken_off(content, settings, has_answer=bool(text or calls))
        stop = request.stop if isinstance(request, Generate) else ()
        empty = (
            not (text or content.reasoning or content.excused)
            and content.finish not in _NO_TEXT
        )
        # A model may end at once, or begin with a stop string; then it did produce a token.
        # Otherwise there is no answer.
        ended = (
            (stop or content.may_be_empty)
            and content.finish == "stop"
            and content.usage.output_tokens > 0
        )
        if empty and not ended:
            why = (
                f" (it ended with {clean(content.finish, 40)})"
                if content.finish not in ("stop", "")
                else ""
            )
            raise EmptyReply(f"{settings.where} sent an answer without content{why}.")
        finish = content.finish
        if calls:
            finish = LENGTH if finish == LENGTH else TOOL_CALLS
        elif content.calls_tool and not text and finish not in _NO_TEXT:
            finish = TOOL_CALL  # some formats end such a reply like any other
        stopped_at = None
        # not all stop strings are sent, and some servers (transformers serve) leave them in the
        # text
        if stop:
            text, at_stop = apply_local_stops(text, finish, stop)
            finish = at_stop if finish == LENGTH else finish
            stopped_at = stop_in(content.text, stop) or content.stopped_at
        model = content.model if isinstance(content.model, str) else ""
        return Response(
            text=text,
            tokens=self._tokens(reply.data, request, text, settings),
            reasoning=content.reasoning,
            finish_reason=finish,
            stopped_at=stopped_at,
            values=content.values,
            usage=content.usage,
            latency=reply.seconds,
            cost=_reported_cost(reply.data, settings),
            model=model,
            also_named=tuple(name for name in reply.names if name != model),
            rate_limits=reply.rate_limits,
            tool_calls=calls,
            provider_content=content.provider_content if calls else "",
        )

    def _tokens(
        self, data: Any, request: Generate | Embed, text: str, settings: Settings
    ) -> tuple[TokenLogProb, ...]:
        """Return the answer's tokens, if requested.

        Raises:
            Rejected: the reply has none for its text.
        """
        if (
            not isinstance(request, Generate)
            or request.top_logprobs is None
            or self.tokens is None
            or not text
        ):
            return ()
        try:
            if tokens := answers_tokens(self.tokens(data), text):
                return tokens
            raise NoLogProbs
        except NoLogProbs:
            raise Rejected(
                f"{settings.where} {NO_TOKEN_LOG_PROBS} although top_logprobs asks for"
                f" them: '{settings.model}' does not give them. Leave top_logprobs out,"
                " or use another model.",
                taken=True,
            ) from None


def _refuse_broken_off(
    content: ReplyContent, settings: Settings, *, has_answer: bool
) -> None:
    """Raise Overloaded for an answer that neither the model nor a limit ended."""
    reason = content.finish.lower().partition(" ")[0]
    if reason in _BROKEN_OFF or (has_answer and reason in _UNFINISHED):
        why = (
            f"{settings.where} broke the answer off: it ended with"
            f" {clean(content.finish, 40)}."
        )
        raise Overloaded(why, taken=True)


def offers_tools(request: Generate | Embed) -> bool:
    """Return whether a request has tools that the reply may call."""
    return isinstance(request, Generate) and bool(request.tools)


def _reported_cost(data: Any, settings: Settings) -> float | None:
    """Return the cost in US dollars that a reply reports."""
    if not settings.cost_field:
        return None
    named: Any = get_nested(data, *settings.cost_field.split("."))
    is_valid = (
        isinstance(named, int | float)
        and not isinstance(named, bool)
        and 0 <= named < _MOST_DOLLARS
    )
    return float(named) if is_valid else None


class Sampling(NamedTuple):
    """The sampling fields to send, after overrides and refusals; None or () for those left out."""

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: tuple[str, ...]
    seed: int | None


def sampling(request: Generate, settings: Settings) -> Sampling:
    """Return the sampling fields of a request.

    With a seed, draw n gets seed + n, because one seed would repeat the same answer.

    Raises:
        Rejected: temperature and top_p both matter and the model accepts only one of them.
    """

    refuses = settings.refuses
    max_tokens = settings.max_tokens
    if max_tokens is None and "max_tokens" not in refuses:
        max_tokens = request.max_tokens
    temperature = settings.temperature
    if temperature is None and "temperature" not in refuses:
        temperature = request.temperature
    top_p = settings.top_p
    if top_p is None and "top_p" not in refuses:
        top_p = request.top_p
    seed = settings.seed
    if seed is None and "seed" not in refuses:
        seed = request.seed
    if "temperature+top_p" in refuses and temperature is not None and top_p is not None:
        temperature, top_p = _resolve_exclusive(temperature, top_p, settings)
    return Sampling(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        stop=() if "stop" in refuses else request.stop[: settings.most_stops],
        seed=None if seed is None else seed + request.draw,
    )


def _resolve_exclusive(
    temperature: float, top_p: float, settings: Settings
) -> tuple[float | None, float | None]:
    """Choose the one of both fields that has the effect of both.

    Raises:
        Rejected: both matter.
    """
    if top_p == 1 or temperature == 0:
        return temperature, None
    if temperature == 1:
        return None, top_p
    raise Rejected(
        f"'{settings.model}' takes a temperature or a top_p, not both ({temperature:g}"
        f" and {top_p:g} were set): leave one of them out with -M top_p=1 or -M"
        " temperature=1."
    )


def refuse_prefill(request: Generate, settings: Settings) -> None:
    """Raise Rejected if the prompt ends with a prefill, which the model does not continue."""
    if "prefill" not in settings.refuses or not begins_the_answer(request):
        return
    raise Rejected(
        f"'{settings.model}' does not continue the beginning of an answer (a prefill),"
        " at least with these arguments: use a prompt that ends with the user's turn."
    )


def begins_the_answer(request: Generate) -> bool:
    """Return whether the prompt ends with a prefill, the beginning of the answer."""
    prompt = request.prompt
    return (
        not isinstance(prompt, str) and bool(prompt) and prompt[-1].role == "assistant"
    )


def turns(prompt: Prompt) -> tuple[Message, ...]:
    """Return the prompt as messages; a text becomes one user message."""
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def system_and_turns(prompt: Prompt) -> tuple[str, tuple[Message, ...]]:
    """Return the system messages as one text, and the other messages."""
    messages = turns(prompt)
    system = "\n\n".join(
        message.text for message in messages if message.role == "system"
    )
    return system, tuple(message for message in messages if message.role != "system")


def system_and_talk(
    request: Generate, settings: Settings
) -> tuple[str, tuple[Message, ...]]:
    """Split a prompt like `system_and_turns`.

    Raises:
        Rejected: the prompt has no turn.
    """
    system, talk = system_and_turns(request.prompt)
    if not talk:
        raise Rejected(
            f"{settings.where} needs a user's turn; this prompt has only system"
            " messages."
        )
    return system, talk


def merge_bodies(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `body` updated by `extra`, with nested mappings merged key by key."""
    combined = dict(body)
    for name, value in extra.items():
        below = combined.get(name)
        combined[name] = (
            merge_bodies(below, value)
            if isinstance(below, MAPPINGS) and isinstance(value, MAPPINGS)
            else value
        )
    return combined


def with_room_to_think(
    body: dict[str, Any],
    limit: tuple[str, ...],
    budget: tuple[str, ...],
    settings: Settings,
    *,
    above: bool,
) -> dict[str, Any]:
    """Return a copy of `body` whose token limit leaves room for thinking as well as the answer.

    The task's limit is for the answer, so the budget is added to it; an override by the user is
    sent unchanged.

    Args:
        body: the body.
        limit, budget: the places of both in the body.
        settings: the model's settings.
        above: whether the limit must be greater than the budget.

    Raises:
        Rejected: the limit must be greater and is not.
    """
    most = get_nested(body, *limit)
    thinking = get_nested(body, *budget)
    if type(most) is not int or type(thinking) is not int or thinking <= 0:
        return body
    if settings.max_tokens is None and get_nested(settings.extra_body, *limit) is None:
        extension: Any = most + thinking
        for step in reversed(limit):
            extension = {step: extension}
        return merge_bodies(body, extension)
    if above and most <= thinking:
        raise Rejected(
            f"max_tokens ({most}) must be above the budget for thinking ({thinking}),"
            " which it includes."
        )
    return body


_MOST_NAMES = 100
"""Most names that are kept of one stream; the second different one is refused."""


class Gathering:
    """Base of the gatherers; only an event ends an answer, unless a format overrides `ended`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.has_text = False
        self.names: dict[str, None] = {}

    def note_name(self, name: Any) -> None:
        """Keep the model's name in a chunk, to notice a stream that names two models."""
        if isinstance(name, str) and name and len(self.names) < _MOST_NAMES:
            self.names[name] = None

    def ended(self) -> bool:
        """Return whether the answer is complete without a final event."""
        return False


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy without the fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def get_nested(data: Any, *place: str) -> Any:
    """Return the value at a path of keys in nested mappings, or None."""
    for step in place:
        data = data.get(step) if isinstance(data, MAPPINGS) else None
    return data


_PLAIN_TYPES = frozenset((str, int, float, bool, list, type(None)))
"""Types of most fields of a body, which are no mappings: to ask that takes longer."""


def limit_within(body: Any) -> int | None:
    """Return the token limit in a body of any format, or None."""
    for name, value in body.items():
        if name in _LENGTH_LIMIT_FIELDS and type(value) is int:
            return value
        if type(value) in _PLAIN_TYPES or not isinstance(value, Mapping):
            continue
        if (limit := limit_within(value)) is not None:
            return limit
    return None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, else an empty one."""
    return value if isinstance(value, MAPPINGS) else {}


def require_object(
    data: Any, settings: Settings, expected: str = "a JSON object"
) -> Mapping[str, Any]:
    """Return `data`, if it is a JSON object.

    Raises:
        BadReply: it is anything else.
    """
    if not isinstance(data, MAPPINGS):
        raise not_documented(settings, expected, data)
    return data


def require_success(
    data: Any, settings: Settings, expected: str = "a JSON object"
) -> Mapping[str, Any]:
    """Return `data` like `require_object`; also raise the error in an `error` field."""
    fault = error_within(
        settings.where,
        require_object(data, settings, expected),
        key_source=settings.key_source,
    )
    if fault is not None:
        raise fault
    checked: Mapping[str, Any] = data
    return checked


_NO_TEXT = frozenset(
    (
        LENGTH,
        CONTENT_FILTER,
        REFUSAL,
        "tool_use",
        "tool_calls",
        "function_call",
        "TOOL_CALL",
        TOOL_CALL,
    )
)
"""Finish reasons that explain why a reply has no content."""
_BROKEN_OFF = frozenset(
    (
        "error",
        "abort",
        "aborted",
        "canceled",
        "cancelled",
        "network_error",
        "insufficient_system_resource",
    )
)
"""Finish reasons (in lower case) of answers that the provider aborted; their content is not used.
"""
_UNFINISHED = frozenset(
    (
        "other",
        "malformed_response",
        "missing_thought_signature",
        "malformed_model_output",
        "pause_turn",
        "incomplete",
        "user_cancel",
    )
)
"""Finish reasons of answers that neither the model nor a limit ended.

Text, or a call, in such a reply is a part of an answer; without any it is an empty reply. The first
line is Google's, the second Amazon's, Anthropic's, OpenAI's and Cohere's.
"""
_FINISHES = {
    word: meaning
    for meaning, words in {
        TOOL_CALL: (
            "malformed_function_call unexpected_tool_call too_many_tool_calls"
            " malformed_tool_use"
        ),
        "stop": "stop end_turn stop_sequence complete eos_token",
        LENGTH: (
            "length max_tokens max_output_tokens max_length model_length"
            " model_context_window_exceeded error_limit"
        ),
        CONTENT_FILTER: (
            "content_filter content-filter content_filtered safety recitation blocklist"
            " prohibited_content spii sensitive language model_armor image_safety"
            " image_prohibited_content image_recitation guardrail_intervened"
            " error_toxic"
        ),
    }.items()
    for word in words.split()
}
"""Our finish reasons by those of all formats, in lower case.

Gateways use the words of one format in another.
"""


def finish_of(reason: Any) -> str:
    """Return our name for a finish reason, else the provider's, or ""."""
    if not isinstance(reason, str):
        return ""
    # Google's gateway for OpenAI's API says which filter: "content_filter: PROHIBITED_CONTENT".
    return _FINISHES.get(reason.lower().partition(":")[0], reason)


def apply_local_stops(
    text: str, finish_reason: str, stop: tuple[str, ...]
) -> tuple[str, str]:
    """Apply the stop strings that were not sent; return text and finish reason."""
    short = stop_at(text, stop)
    return (text, finish_reason) if short == text else (short, "stop")


def stopped_at(
    choice: Mapping[str, Any], names: Iterable[str], stop: Collection[str]
) -> str | None:
    """Return the stop string that ended a reply; "" if none did, None if it is unknown.

    `names` are the fields to look in. A number there is a token's id.
    """
    for name in names:
        if name in choice:
            reason = choice[name]
            if reason is None or isinstance(reason, int):
                return ""
            return reason if reason in stop else None
    return None


def count(value: Any) -> int:
    """Read a token count; 0 if it is missing or implausible."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 < value < _MOST_TOKENS else 0


def usage_of(
    data: Any, read: str, written: str, reasoning: str = "", cached: str = ""
) -> Usage:
    """Read the token usage; each count is the sum of the numbers at the dotted places named."""

    def total(places: str) -> int:
        return sum(
            count(get_nested(data, *place.split("."))) for place in places.split()
        )

    return Usage(total(read), total(written), total(reasoning), total(cached))


def not_documented(settings: Settings, expected: str, data: Any) -> BadReply:
    """Make the error for a reply that lacks documented content."""
    text = json.dumps(data, ensure_ascii=False)
    return bad_reply(settings.where, f"as documented ({expected})", text)
