"""Rolling log-likelihood through echo: a long text in windows, with no tokenizer on this side.

Without a known context length the text is sent whole. With one, windows are cut by characters at a size that the server's
own token counts (or its refusal) teach. Each window begins with the last token scored before, so that its first new token
has a context, and the last token of every window but the last is scored again in the next, because the cut may have split
it. All of this depends on the text and the server alone, so asking again gives the same windows.
"""

from __future__ import annotations

from collections.abc import Generator

from evalwright.core.errors import BadReply, Rejected
from evalwright.core.responses import Response
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.openai_echo import Echo, EchoedToken, summed

_CHARACTERS_PER_TOKEN = 4
_FILL = 0.9
"""Share of the context that a window aims at, as the tokens of a text are not spread evenly."""


def rolling(
    text: str, context_length: int | None, bos: str = ""
) -> Generator[str, Echo | Rejected, Response]:
    """The log-likelihood of `text`: yields each text to be echoed, and is sent its tokens or the server's refusal.

    context_length: tokens that the server takes with the one it generates; None sends the text whole. bos: sent before the
    text and not scored.
    """
    if not text:
        return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
    if context_length is None or len((bos + text).encode("utf-8", "replace")) + 1 <= context_length:
        got = yield bos + text
        if isinstance(got, Rejected):
            raise Rejected(
                f"{got} If the text is too long, pass -M context_length=N to have it scored in windows.",
                status=got.status,
            )
        tokens, reply = got
        return summed((token for token in tokens if token.end > len(bos)), [reply])
    return (yield from _in_windows(bos + text, len(bos), context_length))


def _in_windows(text: str, position: int, context_length: int) -> Generator[str, Echo | Rejected, Response]:
    """`position`: everything before it has been scored, or is the BOS."""
    scored: list[EchoedToken] = []
    replies: list[Reply] = []
    start, span = 0, _CHARACTERS_PER_TOKEN * context_length
    while position < len(text):
        end = min(len(text), start + span)
        got = yield text[start:end]
        if isinstance(got, Rejected):
            # Too many tokens for the server, unless even as many characters as tokens are refused.
            if end - start <= context_length // 2:
                raise got
            span = (end - start) // 2
            continue
        tokens, reply = got
        replies.append(reply)
        whole = tokens if end == len(text) else tokens[:-1]
        new = [token for token in whole if start + token.end > position]
        if not new:
            raise BadReply("The server's tokens do not cover the text that was sent.")
        scored.extend(new)
        position = start + new[-1].end
        span = max(2, int(_FILL * context_length * (end - start) / len(tokens)))
        start += new[-1].start
    return summed(scored, replies)
