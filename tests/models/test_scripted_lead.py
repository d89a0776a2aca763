"""The lead baseline: the first sentences of the text that stands in the prompt, and nothing
else.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Message
from evalwright.models.registry import open_model
from evalwright.models.scripted import lead

TEXT = 'The mill opened in 1904. It burnt down twice. "Never again," said Dr. Ode. Today it is a school.'


@pytest.mark.parametrize(
    ("prompt", "sentences", "expected"),
    [
        (
            f"Summarise this.\n\n<passage>\n{TEXT}\n</passage>\n\nBe brief.",
            1,
            "The mill opened in 1904.",
        ),
        (
            f"Summarise the text below, please.\n\n{TEXT}",
            2,
            "The mill opened in 1904. It burnt down twice.",
        ),
        (
            (Message("system", "Be brief."), Message("user", TEXT)),
            1,
            "The mill opened in 1904.",
        ),
        (
            f"Article:\n{TEXT}\n\nIt has a bell.\n\nTask: be brief.\nSummary:",
            1,
            "The mill opened in 1904.",
        ),
        ("Article:\nNone.\n\nTask: Say something long about it, please.", 1, "None."),
        ("<text>水车。学校。</text>", 1, "水车。"),
        ("", 3, ""),
    ],
)
def test_the_first_sentences(
    prompt: str | tuple[Message, ...], sentences: int, expected: str
) -> None:
    assert lead(prompt, sentences) == expected


@given(
    st.lists(
        st.sampled_from(["It rained.", "Who knows?", "Three came!"]),
        min_size=1,
        max_size=9,
    )
)
def test_whatever_it_says_stands_in_the_text(parts: list[str]) -> None:
    text = " ".join(parts)
    assert lead(text, 3) == " ".join(parts[:3])


def test_a_number_of_sentences_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="above 0"):
        open_model("scripted/lead", {"sentences": 0})
