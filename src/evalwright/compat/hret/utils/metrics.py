"""The language penalty of one text, under HRET's name."""

from __future__ import annotations

from evalwright.compat.hret.rules import current


def language_penalizer(text: object, target_lang: str = "ko") -> float:
    """How much of a text is in the language, from 0 to 1; 0 for what is empty or is no text.

    Published: 1 where langdetect says so, with a fixed seed. Corrected: the share of its letters,
    without names, code and quotations.
    """
    return current().language_share(text, target_lang)
