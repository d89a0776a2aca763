"""What the engine of the HHEM leaderboard takes for a summary: `validity: hhem`.

A text is a summary if it is none of the engine's own sentences and has more than five words. The
engine knows one sentence of refusal, the one that its prompt asks for; every other refusal is a
summary there, and its judge scores it.
"""

from __future__ import annotations

MIN_WORDS = 6
"""A summary of fewer words is none."""

REFUSAL = "I am unable to summarize this passage."
"""The sentence that the engine's prompt asks for where there is nothing to summarise."""
UNCLOSED_THINKING = "FOUND <think> WITH NO CLOSING </think>"
EMPTY_SUMMARY = "EMPTY SUMMARY GIVEN BY MODEL"
REQUEST_FAILED = "MODEL FAILED TO RETURN ANY OUTPUT"
THREAD_FAILED = "THREAD ERROR"
NOT_TEXT = "DID NOT RECIEIVE A STRING TYPE FROM OUTPUT"
NOT_ASSIGNED = (
    "THIS SUMMARY IS EMPTY, THIS IS THE DEFAULT VALUE A SUMMARY VARIABLE GETS. "
    "A REAL SUMMARY WAS NOT ASSIGNED TO THIS VARIABLE."
)
OWN_SENTENCES = frozenset(
    (
        REFUSAL,
        UNCLOSED_THINKING,
        EMPTY_SUMMARY,
        REQUEST_FAILED,
        THREAD_FAILED,
        NOT_TEXT,
        NOT_ASSIGNED,
    )
)
"""What the engine writes where a summary belongs, and the refusal; it compares whole texts, letter
by letter.
"""


def is_summary(text: str) -> bool:
    """Whether the engine counts a text as a summary."""
    return text.strip() not in OWN_SENTENCES and len(text.split()) >= MIN_WORDS
