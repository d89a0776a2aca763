"""The language penalty of one text, under HRET's name."""

from __future__ import annotations

from evalwright.compat.hret import published, settings
from evalwright.scorers.text.language import identify, speaks


def language_penalizer(text: object, target_lang: str = "ko") -> float:
    """1 where a text is in the language, else 0; 0 for what has no letters or is no text.

    Published: langdetect's guess, with a fixed seed. Corrected: whether the text may be in the language at all.
    """
    if settings.scoring() == "published":
        return published.detected(text, target_lang)
    return float(isinstance(text, str) and bool(identify(text)[0]) and speaks(text, target_lang))
