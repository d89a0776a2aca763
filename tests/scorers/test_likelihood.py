"""Scores read off log-probabilities."""

from __future__ import annotations

import math
import re

import pytest

from evalwright.core.errors import ScoringError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.likelihood import likelihood, perplexity

SAMPLE = Sample("s")


@pytest.mark.parametrize("greedy", [True, False])
def test_greedy_continuations_are_right(greedy: bool) -> None:
    answer = Answer(
        "né",
        log_likelihoods=(-1.5,),
        responses=(Response(log_likelihood=-1.5, is_greedy=greedy, tokens_scored=2),),
    )
    found = likelihood(SAMPLE, answer)
    assert (found.value, found.label) == (
        float(greedy),
        "correct" if greedy else "incorrect",
    )
    assert found.parts == {
        "log_likelihood": -1.5,
        "characters": 2.0,
        "bytes": 3.0,
        "tokens": 2.0,
    }


def test_a_reply_that_does_not_say_whether_it_is_greedy_fails() -> None:
    with pytest.raises(ScoringError, match="most probable"):
        likelihood(
            SAMPLE,
            Answer(
                "a", log_likelihoods=(-1.0,), responses=(Response(log_likelihood=-1.0),)
            ),
        )
    with pytest.raises(ScoringError, match="no response"):
        likelihood(SAMPLE, Answer("a"))


def test_perplexity_parts_are_counted_as_published() -> None:
    text = " two  words\nand é "
    answer = Answer(
        text,
        log_likelihoods=(-12.0,),
        responses=(Response(log_likelihood=-12.0, tokens_scored=6),),
    )
    found = perplexity(SAMPLE, answer)
    assert found.value == -2.0
    assert found.parts["words"] == len(re.split(r"\s+", text)) == 6
    assert found.parts["bytes"] == len(text.encode())
    assert math.exp(
        -found.parts["log_likelihood"] / found.parts["tokens"]
    ) == pytest.approx(math.e**2)


def test_a_text_without_tokens_has_no_perplexity() -> None:
    for count in (None, 0):
        with pytest.raises(ScoringError, match="no token"):
            perplexity(
                SAMPLE,
                Answer(
                    "",
                    log_likelihoods=(0.0,),
                    responses=(Response(log_likelihood=0.0, tokens_scored=count),),
                ),
            )


def test_without_a_count_of_tokens_a_text_is_scored_per_byte() -> None:
    found = perplexity(
        Sample("s"), Answer("abcd", responses=(Response(log_likelihood=-8.0),))
    )
    assert found.value == -2.0
    assert found.parts == {"log_likelihood": -8.0, "words": 1.0, "bytes": 4.0}
    assert "does not say how many tokens" in found.explanation
