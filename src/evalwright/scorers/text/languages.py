"""The language of a sample as a short code.

It decides how numbers and words are read, and which tokeniser, articles and segmentation apply.
"""

from __future__ import annotations

import re

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Sample

_SHORT = {
    "ara": "ar",
    "bur": "my",
    "cmn": "zh",
    "cn": "zh",
    "deu": "de",
    "eng": "en",
    "fil": "tl",
    "fra": "fr",
    "hin": "hi",
    "in": "id",
    "ind": "id",
    "ita": "it",
    "jav": "jv",
    "jp": "ja",
    "jpn": "ja",
    "jw": "jv",
    "khm": "km",
    "kor": "ko",
    "kr": "ko",
    "lao": "lo",
    "msa": "ms",
    "mya": "my",
    "nb": "no",
    "nld": "nl",
    "nn": "no",
    "por": "pt",
    "rus": "ru",
    "spa": "es",
    "sun": "su",
    "swa": "sw",
    "swh": "sw",
    "tam": "ta",
    "tgl": "tl",
    "tha": "th",
    "tur": "tr",
    "vie": "vi",
    "wuu": "zh",
    "yue": "zh",
    "zho": "zh",
    "zsm": "ms",
}
"""Longer and older codes that datasets use, with the codes that are used here."""

_ARTICLES = {
    "ar": r"\bال(?=\w{2})",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "fr": r"\b(?:l['’]|(?:un|une|le|la|les|des)\b)",
    "it": r"\b(?:(?:l|un)['’]|(?:un|uno|una|il|lo|la|i|gli|le)\b)",
    "nl": r"\b(?:de|het|een)\b",
    "pt": r"\b(?:o|a|os|as|um|uma|uns|umas)\b",
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
}
"""Articles in lower case, as regular expressions by language.

English is as published with SQuAD; ar, de, es and vi are as with MLQA (Lewis et al. 2020), except
that the Arabic article is removed only at the beginning of words, not inside them; the others
follow the same idea.
"""
_PATTERNS = {
    language: re.compile(pattern, re.IGNORECASE)
    for language, pattern in _ARTICLES.items()
}


def without_articles(text: str, language: str) -> str:
    """Replace the articles of a text by spaces; "" means English."""
    pattern = _PATTERNS.get(language or "en")
    return text if pattern is None else pattern.sub(" ", text)


def language_of(sample: Sample, language: str | None = None) -> str:
    """Return the language of a sample: the scorer's option, else its `language`, else ""."""
    return short_code(language or str(sample.metadata.get("language") or ""))


def short_code(language: str) -> str:
    """Shorten a language code: "zho_Hans", "zh-CN" and "cmn" become "zh"; unknown codes stay."""
    base = language.strip().lower().replace("_", "-").partition("-")[0]
    return _SHORT.get(base, base)


def check_language(language: object) -> None:
    """Raise ConfigurationError if the option `language` is not a language code."""
    good = (
        isinstance(language, str)
        and short_code(language).isalpha()
        and len(short_code(language)) <= 3
    )
    if language is not None and not good:
        raise ConfigurationError(
            "The option 'language' must be a language code such as th or zh-CN, not"
            f" {language!r}."
        )
