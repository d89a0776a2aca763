"""Rolling log-likelihood in windows, against a server whose model sees one token back, so that
any windows must agree.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import Rejected
from evalwright.core.responses import Response
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.openai_echo import Echo, EchoedToken, score_rolling

_PIECE = re.compile(r"\s*\S{1,6}|\s+")


class Bigram:
    """Echoes tokens whose log-probability depends on the one before; takes at most `most`
    tokens.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.asked: list[str] = []

    def __call__(self, text: str) -> tuple[list[EchoedToken], Reply]:
        self.asked.append(text)
        found = list(_PIECE.finditer(text))
        if len(found) + 1 > self.most:
            raise Rejected("too long", status=400)
        tokens = []
        for index, match in enumerate(found):
            value = (
                -float(len(found[index - 1][0]) + 10 * len(match[0])) if index else None
            )
            tokens.append(EchoedToken(match.start(), match.end(), value, True))
        return tokens, Reply({"usage": {"prompt_tokens": len(found)}}, 0.5, None)


def rolled(
    text: str, server: Bigram, context_length: int | None, bos: str = ""
) -> Response:
    """The Response of the windows, each sent to the server."""
    windows = score_rolling(text, context_length, bos)
    try:
        wanted = next(windows)
        while True:
            try:
                got: Echo | Rejected = server(wanted)
            except Rejected as error:
                got = error
            wanted = windows.send(got)
    except StopIteration as done:
        response: Response = done.value
        return response


def whole(text: str) -> tuple[float, int]:
    """The definition: every token but the first, given the one before."""
    sizes = [len(piece) for piece in _PIECE.findall(text)]
    pairs = pairwise(sizes)
    return -float(sum(before + 10 * size for before, size in pairs)), max(
        0, len(sizes) - 1
    )


@pytest.mark.parametrize(
    ("text", "bos", "sent"),
    [("one two three", "", 1), ("", "", 0), (" one two", "<s>", 1)],
)
def test_short_texts_are_one_request_or_none(text: str, bos: str, sent: int) -> None:
    server = Bigram(100)
    found = rolled(text, server, None, bos)
    assert (found.log_likelihood, found.tokens_scored) == whole(bos + text)
    assert server.asked == [bos + text] * sent


def test_texts_that_are_refused() -> None:
    with pytest.raises(Rejected, match="context_length"):
        rolled("one two three four", Bigram(3), None)
    with pytest.raises(Rejected, match="too long"):  # and not for its length
        rolled("word " * 400, Bigram(0), 16)


@given(
    st.lists(st.text("abc defgh", min_size=1, max_size=9), min_size=1, max_size=60),
    st.integers(8, 40),
)
def test_windows_score_every_token_once(words: list[str], most: int) -> None:
    text = " ".join(words)
    server = Bigram(most)
    found = rolled(text, server, most)
    assert (found.log_likelihood, found.tokens_scored) == whole(text)
    again = Bigram(most)
    assert rolled(text, again, most) == found
    assert again.asked == server.asked
    if len(text) > 30 * most:
        assert found.latency == 0.5 * len(server.asked)
