"""Log-likelihoods from echoed log-probabilities: whatever unit and habit the server has, the
same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import BadReply, Rejected
from evalwright.core.requests import LogLikelihood, Message
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.openai_echo import (
    NoEcho,
    score_pair,
    split_pair,
)
from evalwright.models.remote.wire.format import Settings

SETTINGS = Settings("m", "host")


def echoed(
    tokens: Sequence[str],
    values: Sequence[Any],
    offsets: Sequence[int] | None = None,
    tops: Sequence[Any] | None = None,
    echo: str | None = None,
) -> Reply:
    """A completions reply that echoes these tokens."""
    logprobs = {
        "tokens": list(tokens),
        "token_logprobs": list(values),
        "text_offset": offsets,
        "top_logprobs": tops,
    }
    shown = "".join(tokens) if echo is None else echo
    choice = {"text": shown, "logprobs": logprobs, "finish_reason": "length"}
    return Reply(
        {"model": "m", "choices": [choice], "usage": {"prompt_tokens": len(tokens)}},
        0.1,
        None,
    )


def pair(reply: Reply, context: str, continuation: str) -> Any:
    text, boundary = split_pair(LogLikelihood(context, continuation), SETTINGS)
    return score_pair(reply, text, boundary, SETTINGS)


def test_trailing_whitespace_belongs_to_the_continuation() -> None:
    assert split_pair(LogLikelihood("The answer is \n", "Paris"), SETTINGS) == (
        "The answer is \nParis",
        13,
    )
    assert split_pair(LogLikelihood("", " Paris"), SETTINGS) == (" Paris", 0)
    assert split_pair(LogLikelihood(" \n", "Paris"), SETTINGS) == (" \nParis", 0)
    with pytest.raises(Rejected, match="takes text, not chat messages"):
        split_pair(LogLikelihood((Message("user", "x"),), " y"), SETTINGS)


def test_greedy_is_told_from_the_best_of_each_place() -> None:
    def reply(second: dict[str, float] | None) -> Reply:
        tops = [None, {" x": -0.25}, second, {"?": -0.1}]
        return echoed(["a", " x", "y", "?"], [None, -0.25, -0.5, -0.1], tops=tops)

    assert pair(reply({"y": -0.5}), "a", " xy").is_greedy is True
    assert pair(reply({"y": -0.5, "z": -0.4}), "a", " xy").is_greedy is False
    assert pair(reply(None), "a", " xy").is_greedy is None


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (None, NoEcho),
        ({}, NoEcho),
        ({"tokens": ["a", " b"], "token_logprobs": None}, NoEcho),
        ({"content": [{"token": "a", "logprob": -1.0}]}, NoEcho),
        ({"tokens": ["x"], "token_logprobs": [-1.0]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, None]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, "-1"]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, True]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, math.nan]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, -math.inf]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, 0.5]}, BadReply),
        ({"tokens": ["a", " b"], "token_logprobs": [None, -1e308]}, BadReply),
        ({"tokens": ["x", "y"], "token_logprobs": [None, -1.0]}, BadReply),
        (
            {
                "tokens": ["?", "?"],
                "token_logprobs": [None, -1.0],
                "text_offset": [3, 0],
            },
            BadReply,
        ),
        (
            {
                "tokens": ["?", "?"],
                "token_logprobs": [None, -1.0],
                "text_offset": [0, 900],
            },
            BadReply,
        ),
        (
            {
                "tokens": ["?", "?"],
                "token_logprobs": [None, -1.0],
                "text_offset": ["0", "1"],
            },
            BadReply,
        ),
        ({"tokens": [], "token_logprobs": []}, BadReply),
        # Tokens that end before the text does.
        (
            {
                "tokens": ["a", " "],
                "token_logprobs": [None, -1.0],
                "text_offset": [0, 1],
            },
            BadReply,
        ),
        (
            {
                "tokens": ["<s>", "a", " "],
                "token_logprobs": [None, -1.0, -1.0],
                "text_offset": [0, 0, 1],
            },
            BadReply,
        ),
    ],
)
def test_a_reply_without_what_is_needed(block: Any, error: type[BadReply]) -> None:
    choice = {"text": "a b", "logprobs": block, "finish_reason": "stop"}
    reply = Reply({"choices": [choice]}, 0.0, None)
    with pytest.raises(BadReply) as caught:
        pair(reply, "a", " b")
    assert type(caught.value) is error
    assert caught.value.retryable is (error is BadReply)


def test_habits_of_servers() -> None:
    """Echo ignored, a leading space lost, a BOS without text, no probability of the first token,
    or one.
    """
    for generated, offset in (("!", 0), (" Washington", 0), ("!", 3)):
        with pytest.raises(NoEcho, match="ignores 'echo'"):
            pair(echoed([generated], [-1.0], [offset]), "a", " b")
    assert (
        pair(
            echoed(["Par", "is", " in"], [None, -0.5, -1.0], [0, 4, 6]), " Par", "is"
        ).log_likelihood
        == -0.5
    )
    assert (
        pair(
            echoed(["", " Par", "is"], [None, -3.0, -0.5]), "", " Paris"
        ).log_likelihood
        == -3.5
    )
    assert (
        pair(echoed([" Par", "is"], [-3.0, -0.5]), "", " Paris").log_likelihood == -3.5
    )
    with pytest.raises(Rejected, match="bos="):
        pair(echoed([" Par", "is"], [None, -0.5]), "", " Paris")


UNITS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "bytes": lambda text: len(text.encode()),
    "utf16": lambda text: len(text.encode("utf-16-le")) // 2,
}
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


@given(st.lists(WORDS, min_size=2, max_size=12), st.data())
def test_the_sum_is_right_in_every_unit_and_habit(
    pieces: list[str], data: st.DataObject
) -> None:
    """Against the definition: the sum over tokens that end after the boundary."""
    text = "".join(pieces)
    values = [
        None,
        *data.draw(
            st.lists(
                st.floats(-50, -0.001),
                min_size=len(pieces) - 1,
                max_size=len(pieces) - 1,
            )
        ),
    ]
    ends = [len("".join(pieces[: index + 1])) for index in range(len(pieces))]
    boundary = (
        data.draw(st.integers(ends[0], len(text) - 1))
        if ends[0] < len(text)
        else ends[0]
    )
    context = text[:boundary]
    continuation = text[boundary:]
    true_boundary = len(context.rstrip())
    scored = [
        value for value, end in zip(values, ends, strict=True) if end > true_boundary
    ]

    unit = data.draw(st.sampled_from([*UNITS, "token texts", "after a BOS"]))
    shown = list(pieces)
    given_values = list(values)
    starts = [0, *ends[:-1]]
    if unit in UNITS:
        offsets = [UNITS[unit](text[:start]) for start in [*starts, len(text)]]
        shown = ["\ufffd"] * len(pieces)
    elif unit == "after a BOS":
        shown = ["<s>", *shown]
        given_values = [None, -7.0, *values[1:]]
        scored = [-7.0 if value is None else value for value in scored]
        offsets = [0] * (len(shown) + 1)
    else:
        offsets = [0] * (len(shown) + 1)
    reply = echoed([*shown, "?"], [*given_values, -1.0], offsets, echo=text + "?")
    if None in scored:
        with pytest.raises(Rejected):
            pair(reply, context, continuation)
        return
    found = pair(reply, context, continuation)
    assert (found.usage.input_tokens, found.latency, found.text) == (
        len(shown) + 1,
        0.1,
        "",
    )
    assert found.log_likelihood == pytest.approx(
        math.fsum(value for value in scored if value is not None)
    )
    assert found.tokens_scored == len(scored)
