"""Reasoning is set apart in every known form, and nothing else is touched."""

from __future__ import annotations

import pytest

from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response

CASES = [
    ("Paris", "", "Paris", "", False),
    ("<think>hm, France</think>Paris", "", "Paris", "hm, France", False),
    ("<think>\na\n</think>\n\nParis\n", "", "Paris", "a", False),
    ("<Thinking>a</Thinking> Paris", "", "Paris", "a", False),
    (
        "the prompt had opened it</think>Paris",
        "",
        "Paris",
        "the prompt had opened it",
        False,
    ),
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
def test_separated(
    text: str, field: str, answer: str, reasoning: str, unclosed: bool
) -> None:
    found = separate_reasoning(Response(text=text, reasoning=field))
    assert (found.answer, found.reasoning, found.unclosed) == (
        answer,
        reasoning,
        unclosed,
    )


@pytest.mark.parametrize(
    ("text", "unclosed"),
    [
        ("<think>" * 200_000, True),
        (f"<|channel|>{'a' * 400_000}", True),
        ("<think></thought>" * 50_000, False),
    ],
)
def test_a_model_that_repeats_a_tag_takes_linear_time(
    text: str, unclosed: bool
) -> None:
    """In the square of the time these take hours."""
    found = separate_reasoning(Response(text=text))
    assert (found.answer, found.unclosed) == ("", unclosed)


def test_tags_are_closed_by_their_own_kind() -> None:
    found = separate_reasoning(
        Response(text="<Think>a<thought>b</think>c<reasoning>d</thought></REASONING>e")
    )
    assert (found.answer, found.reasoning) == ("ce", "a<thought>b\n\nd</thought>")
