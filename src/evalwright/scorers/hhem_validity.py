"""Decides what the engine of the HHEM leaderboard counts as a summary: `validity: hhem`.

A text is a summary if it is none of the engine's own sentences and has more than five words. The
engine knows one sentence of refusal, the one that its prompt asks for; it counts every other
refusal as a summary, which its judge scores.
"""

from __future__ import annotations

MIN_WORDS = 6
"""Least words of a summary."""

REFUSAL = "I am unable to summarize this passage."
"""The sentence that the engine's prompt asks for if there is nothing to summarise."""
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
"""Texts that the engine writes in place of a summary, and the refusal; compared as whole texts."""


def is_summary(text: str) -> bool:
    """Return whether the engine counts a text as a summary."""
    return text.strip() not in OWN_SENTENCES and len(text.split()) >= MIN_WORDS
