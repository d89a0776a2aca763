"""What a reply says: its last claim, and its language."""

from __future__ import annotations

from evalwright.extend import language_share as share_of_language
from evalwright.extend import parse_reply


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
    return share_of_language(text, language).share
