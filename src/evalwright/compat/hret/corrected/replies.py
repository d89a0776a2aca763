"""What a reply says: its last claim, and its language."""

from __future__ import annotations

from evalwright.scorers.answers.reply import parse_reply
from evalwright.scorers.text.spoken import spoken


def final_answer(text: str) -> str:
    """The claim of a reply; the whole reply where it marks none."""
    claim = parse_reply(text)
    return claim.as_written if claim.marked else text


def language_share(text: object, language: str) -> float:
    """The share of a text's letters, without names, code and quotations; 0 for what is empty or is
    no text.
    """
    if not isinstance(text, str) or not text.strip():
        return 0.0
    return spoken(text, language).share
