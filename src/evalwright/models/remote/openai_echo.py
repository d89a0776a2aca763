"""Log-likelihoods through the completions API: send a text, have it echoed, sum log-probabilities.

Only the server knows the tokens, so the continuation's tokens are found by their positions in the
text. A token that straddles the boundary belongs to the continuation: context and continuation are
encoded as one text, as lm-eval does. Positions are found in two ways, and the first that works is
used: the joined token texts begin with the text sent (after tokens that the server put before it,
such as BOS); or the reply's `text_offset`, in characters, else in UTF-8 bytes, else in UTF-16
units, whichever ends where the text ends.

A text that is longer than the context is scored in windows, cut by characters at a size that is
learnt from the server's own token counts (or its refusal). Each begins with the last token scored
before, so that its first new token has a context, and the last token of every window but the last
is scored again in the next, because the cut may have split it. All of this depends only on the text
and the server, so repeating it gives the same windows.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from evalwright.core.errors import BadReply, Rejected
from evalwright.core.outcomes import LENGTH
from evalwright.core.requests import LogLikelihood, RollingLogLikelihood
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.exchange import Call, Reply, largest_reply
from evalwright.models.remote.wire.format import Settings, not_documented
from evalwright.models.remote.wire.openai_text import first_choice, read_usage, text_of
from evalwright.models.remote.wire.options import NoLogProbs, completion_tokens

_CHARACTERS_PER_TOKEN = 4
_FILL = 0.9
"""The share of the context that a window aims at, because tokens are not spread evenly over a text.
"""
_MOST_PREFIX_TOKENS = 2
"""Most tokens that a server puts before the text by itself (BOS, and a language or start mark)."""


@dataclass(frozen=True, slots=True)
class EchoedToken:
    """A token of the text sent: characters [start, end), log-probability, whether it was greedy.

    The log-probability is None if the server gives none; `is_greedy` says whether it was the most
    probable token, None if that is unknown.
    """

    start: int
    end: int
    log_probability: float | None
    is_greedy: bool | None


class NoEcho(BadReply):
    """The server does not echo log-probabilities; retrying does not help."""

    retryable = False


Echo = tuple[list[EchoedToken], Reply]
"""The tokens of a text, and the reply that has them."""


def echo_call(text: str, settings: Settings, alternatives: int = 1) -> Call:
    """Build the call that has `text` echoed, with so many alternatives to each token.

    One token is generated and dropped, because many servers take 0 for "no limit".
    """
    body = {
        "model": settings.model,
        "prompt": text,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": max(1, alternatives),
        "echo": True,
    }
    # At most one echoed token for each character, and one generated.
    return Call(
        "/completions",
        {**body, **settings.extra_body},
        largest=largest_reply((len(text) + 1) * max(1, alternatives)),
    )


def split_pair(request: LogLikelihood, settings: Settings) -> tuple[str, int]:
    """Return the full text, and the index at which the continuation begins.

    The context's trailing white space goes to the continuation.
    """
    context = text_of(request.context, settings)
    return context + request.continuation, len(context.rstrip())


def score_pair(reply: Reply, text: str, boundary: int, settings: Settings) -> Response:
    """Return the log-likelihood of `text[boundary:]` given `text[:boundary]`.

    Raises:
        NoEcho: the reply has no log-probabilities.
        Rejected: the very first token would have to be scored, for which the server gives nothing.
        BadReply: the reply contradicts itself.
    """
    scored = [
        token for token in read_echo(reply, text, settings) if token.end > boundary
    ]
    if not scored:
        raise not_documented(settings, "tokens for the continuation", reply.data)
    if any(token.log_probability is None for token in scored):
        raise Rejected(
            f"{settings.where} gives no log-probability for the first token of a text,"
            " and the context is empty. Pass the model's start token as text, for"
            " example -M 'bos=<s>', or give the task a context."
        )
    return sum_echoes(scored, [reply])


def sum_echoes(tokens: Iterable[EchoedToken], replies: Sequence[Reply]) -> Response:
    """Make one Response for the scored tokens, with the usage and time of all `replies`."""
    scored = [token for token in tokens if token.log_probability is not None]
    greedy = [token.is_greedy for token in scored]
    model = replies[-1].data.get("model")
    return Response(
        finish_reason="stop",
        log_likelihood=math.fsum(token.log_probability or 0.0 for token in scored),
        is_greedy=None if None in greedy else all(greedy),
        tokens_scored=len(scored),
        usage=sum((read_usage(reply.data.get("usage")) for reply in replies), Usage()),
        latency=sum(reply.seconds for reply in replies),
        model=model if isinstance(model, str) else "",
        rate_limits=replies[-1].rate_limits,
    )


def read_tokens_of_text(
    reply: Reply, request: RollingLogLikelihood, settings: Settings
) -> Response:
    """Return the tokens of a text as the server sent them, and the one generated after it.

    The response ends by its length if there is such a token, which is its text. A first token
    without a log-probability has 0, and is not among the tokens scored.

    Raises:
        NoEcho: the reply has no log-probabilities.
        BadReply: the reply contradicts itself.
    """
    text = request.text
    scored = sum_echoes(read_echo(reply, text, settings), [reply])
    block = first_choice(reply.data, settings)["logprobs"]
    places = _locate_tokens(block, len(block["token_logprobs"]), text) or []
    count = places[-1][0] + 1 if places else 0
    try:
        tokens = completion_tokens(_without_unknown_first(reply.data))
    except NoLogProbs:
        raise not_documented(settings, "tokens in choices[0].logprobs", block) from None
    following = tokens[count : count + 1]
    returned_tokens = [
        replace(token, alternatives=token.alternatives[: request.top_logprobs])
        for token in tokens[: count + 1]
    ]
    n_unknown = int(bool(returned_tokens) and block["token_logprobs"][0] is None)
    return replace(
        scored,
        text="".join(token.text for token in following),
        finish_reason=LENGTH if following else "stop",
        tokens=tuple(returned_tokens),
        tokens_scored=count - n_unknown,
    )


def _without_unknown_first(data: Any) -> Any:
    """Return a reply in which a first token without a log-probability has 0."""
    choice = data["choices"][0]
    values = choice["logprobs"]["token_logprobs"]
    if not values or values[0] is not None:
        return data
    logprobs = {**choice["logprobs"], "token_logprobs": [0.0, *values[1:]]}
    return {**data, "choices": [{**choice, "logprobs": logprobs}]}


def read_echo(reply: Reply, text: str, settings: Settings) -> list[EchoedToken]:
    """Return the tokens of `text`, without those that the server put before or generated after it.

    Only the first may lack a log-probability.

    Raises:
        NoEcho: the reply has no log-probabilities.
        BadReply: the reply contradicts itself.
    """
    payload = reply.data
    choice = first_choice(payload, settings)
    block = choice.get("logprobs")
    if not isinstance(block, Mapping) or not isinstance(
        block.get("token_logprobs"), list
    ):
        raise NoEcho(
            f"{settings.where} does not echo log-probabilities for '{settings.model}':"
            " its reply has no choices[0].logprobs.token_logprobs. Tasks that compare"
            " likelihoods need a server that has them."
        )
    values = block["token_logprobs"]
    if not _is_echo(choice.get("text"), text, len(values)):
        raise NoEcho(
            f"{settings.where} ignores 'echo': its reply holds only what it generated."
        )
    places = _locate_tokens(block, len(values), text)
    if places is None:
        raise not_documented(
            settings, "tokens or text_offset that match the prompt", block
        )
    tops = block.get("top_logprobs")
    tokens: list[EchoedToken] = []
    for index, (start, end) in places:
        log_prob = values[index]
        if log_prob is None and not tokens:
            tokens.append(EchoedToken(start, end, None, None))
            continue
        # Rounding may lift the log-probability of a certain token a little above 0; a value far
        # above is not one.
        if (
            not isinstance(log_prob, int | float)
            or isinstance(log_prob, bool)
            or not -1e30 < log_prob <= 1e-3
        ):
            raise not_documented(
                settings, f"a log-probability as token_logprobs[{index}]", payload
            )
        tokens.append(
            EchoedToken(
                start, end, float(log_prob), _is_greedy(tops, index, float(log_prob))
            )
        )
    return tokens


def _is_echo(echoed: Any, text: str, count: int) -> bool:
    """Return whether a reply's text is the prompt and more.

    Servers that decode token by token may lose a leading space.
    """
    if not isinstance(echoed, str):
        return False
    return echoed.startswith(text) or (count > 1 and len(echoed) >= len(text) - 1)


def _is_greedy(tops: Any, index: int, log_prob: float) -> bool | None:
    """Return whether no other token was more probable.

    Values are compared, because token texts may be ambiguous.
    """
    if (
        not isinstance(tops, list)
        or index >= len(tops)
        or not isinstance(tops[index], Mapping)
    ):
        return None
    others = [
        alternative
        for alternative in tops[index].values()
        if isinstance(alternative, int | float)
    ]
    return log_prob >= max(others) if others else None


Places = list[tuple[int, tuple[int, int]]]
"""For each token of the text: its index in the reply's lists, and its (start, end) in characters.
"""


def _locate_tokens(block: Mapping[str, Any], count: int, text: str) -> Places | None:
    tokens = block.get("tokens")
    offsets = block.get("text_offset")
    if (
        isinstance(tokens, list)
        and len(tokens) == count
        and all(isinstance(token, str) for token in tokens)
    ):
        by_tokens = _by_token_texts(tokens, text) or _by_token_bytes(tokens, text)
        if by_tokens is not None or _stops_short(tokens, text):
            return by_tokens
    if (
        isinstance(offsets, list)
        and len(offsets) == count
        and all(type(offset) is int for offset in offsets)
    ):
        return _by_offsets(offsets, text)
    return None


def _stops_short(tokens: Sequence[str], text: str) -> bool:
    """Return whether the tokens, except a start token, end before the text does.

    Their sum would be that of a part of the text.
    """
    wholes = ("".join(tokens), "".join(tokens[1:]))
    return any(
        joined and len(joined) < len(text) and text.startswith(joined)
        for joined in wholes
    )


def _by_token_texts(tokens: Sequence[str], text: str) -> Places | None:
    joined = "".join(tokens)
    before = 0
    for skipped, token in enumerate(tokens[: _MOST_PREFIX_TOKENS + 1]):  # noqa: B007
        if joined.startswith(text, before):
            break
        before += len(token)
    else:
        return None
    places: Places = []
    start = 0
    for index in range(skipped, len(tokens)):
        if start >= len(text):
            break
        end = start + len(tokens[index])
        places.append((index, (start, min(end, len(text)))))
        start = end
    return places


def _by_token_bytes(tokens: Sequence[str], text: str) -> Places | None:
    """Locate tokens by bytes.

    Some servers write part of a character with one letter for each byte (SGLang, whose offsets are
    all -1).
    """
    encoded = text.encode("utf-8", "surrogatepass")
    owners = [
        index for index, sign in enumerate(text) for _ in range(_utf8_width(sign))
    ]
    for skipped in range(min(_MOST_PREFIX_TOKENS + 1, len(tokens))):
        places: Places = []
        start = 0
        for index in range(skipped, len(tokens)):
            width = _width_at(tokens[index], encoded, start)
            if not width:
                break
            end = min(start + width, len(encoded))
            places.append((index, (owners[start], owners[end - 1] + 1)))
            start = end
        if start == len(encoded):
            return places
    return None


def _width_at(token: str, encoded: bytes, start: int) -> int:
    """Return the bytes of `encoded` from `start` on for which a token stands.

    The last token may go beyond the end. 0: the token is not what stands there.
    """
    remaining = encoded[start:]
    for coding in ("utf-8", "latin-1"):
        raw = token.encode(coding, "ignore")
        if (
            raw
            and remaining
            and (remaining.startswith(raw) or raw.startswith(remaining))
        ):
            return len(raw)
    return 0


def _by_offsets(offsets: Sequence[int], text: str) -> Places | None:
    if any(later < earlier for earlier, later in pairwise(offsets)):
        return None
    to_characters = _character_map(offsets, text)
    if to_characters is None:
        return None
    # Offsets beyond the text belong to generated tokens.
    characters = (to_characters.get(offset, len(text)) for offset in offsets)
    starts = list(takewhile(lambda start: start < len(text), characters))
    places: Places = []
    end = following = len(text)
    for index in range(len(starts) - 1, -1, -1):
        if starts[index] < following:
            end = following
            following = starts[index]
        places.append((index, (starts[index], end)))
    return places[::-1] or None


def _character_map(offsets: Sequence[int], text: str) -> dict[int, int] | None:
    """Map the server's offsets to characters, in the unit in which the offsets fit the text."""
    for width in (lambda sign: 1, _utf8_width, _utf16_width):
        table = {}
        offset = 0
        for index, sign in enumerate(text):
            for inner in range(width(sign)):
                table[offset + inner] = index
            offset += width(sign)
        table[offset] = len(text)
        if offsets[-1] == offset or (
            offsets[-1] < offset == len(text) and offsets[0] == 0
        ):
            return table
    return None


def _utf8_width(sign: str) -> int:
    return len(sign.encode("utf-8", "surrogatepass"))


def _utf16_width(sign: str) -> int:
    return 2 if ord(sign) > 0xFFFF else 1


def score_rolling(
    text: str, context_length: int | None, bos: str = ""
) -> Generator[str, Echo | Rejected, Response]:
    """Compute the log-likelihood of `text`, as a generator.

    It yields each text to be echoed, and is sent the text's tokens or the server's refusal.

    Args:
        text: the text.
        context_length: the server's limit for text and generated token; None sends the text whole.
        bos: sent before the text and not scored.
    """
    if not text:
        return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
    if (
        context_length is None
        or len((bos + text).encode("utf-8", "replace")) + 1 <= context_length
    ):
        got = yield bos + text
        if isinstance(got, Rejected):
            raise Rejected(
                f"{got} If the text is too long, pass -M context_length=N to have it"
                " scored in windows.",
                status=got.status,
            )
        tokens, reply = got
        return sum_echoes((token for token in tokens if token.end > len(bos)), [reply])
    return (yield from _in_windows(bos + text, len(bos), context_length))


def _in_windows(
    text: str, position: int, context_length: int
) -> Generator[str, Echo | Rejected, Response]:
    """Score a text in windows from `position` on.

    Everything before `position` has been scored, or is the BOS.
    """
    scored: list[EchoedToken] = []
    replies: list[Reply] = []
    start = 0
    span = _CHARACTERS_PER_TOKEN * context_length
    while position < len(text):
        end = min(len(text), start + span)
        got = yield text[start:end]
        if isinstance(got, Rejected):
            # Too many tokens for the server, unless it refuses even as many characters as it allows
            # tokens.
            if end - start <= context_length // 2:
                raise got
            span = (end - start) // 2
            continue
        tokens, reply = got
        replies.append(reply)
        complete = tokens if end == len(text) else tokens[:-1]
        new = [token for token in complete if start + token.end > position]
        if not new:
            raise BadReply("The server's tokens do not cover the text that was sent.")
        scored.extend(new)
        position = start + new[-1].end
        span = max(2, int(_FILL * context_length * (end - start) / len(tokens)))
        start += new[-1].start
    return sum_echoes(scored, replies)
