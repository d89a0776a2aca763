"""Reasoning is set apart in every known form, and nothing else is touched."""

from __future__ import annotations

import time

import pytest

from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response

CASES = [
    ("Paris", "", "Paris", "", False),
    ("<think>hm, France</think>Paris", "", "Paris", "hm, France", False),
    ("<think>\na\n</think>\n\nParis\n", "", "Paris", "a", False),
    ("<Thinking>a</Thinking> Paris", "", "Paris", "a", False),
    ("the prompt had opened it</think>Paris", "", "Paris", "the prompt had opened it", False),
    ("<think>never closed, Paris", "", "", "never closed, Paris", True),
    ("Lyon <think>no wait", "", "Lyon", "no wait", True),
    ("<think>a</think>x<think>b</think>Paris", "", "xParis", "a\n\nb", False),
    ("Paris", "from a field", "Paris", "from a field", False),
    ("<think></think>Paris", "", "Paris", "", False),
    ("1 < 2 and 3 > 2", "", "1 < 2 and 3 > 2", "", False),
    ("<thinker>Rodin</thinker>", "", "<thinker>Rodin</thinker>", "", False),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>",
        "",
        "Paris",
        "hm",
        False,
    ),
    ("<|channel|>analysis<|message|>still thinking", "", "", "still thinking", True),
]


@pytest.mark.parametrize(("text", "field", "answer", "reasoning", "unclosed"), CASES)
def test_separated(text: str, field: str, answer: str, reasoning: str, unclosed: bool) -> None:
    found = separate_reasoning(Response(text=text, reasoning=field))
    assert (found.answer, found.reasoning, found.unclosed) == (answer, reasoning, unclosed)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100_000,
        "<|channel|>" + "a" * 1_000_000,
        "<think></thinking>" * 50_000,
        "</think>" * 100_000,
    ],
)
def test_no_reply_takes_more_than_the_time_of_its_length(text: str) -> None:
    begun = time.process_time()
    separate_reasoning(Response(text=text))
    assert time.process_time() - begun < 30
