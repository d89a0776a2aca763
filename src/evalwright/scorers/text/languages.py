"""The language of a sample as a short code: what decides tokenisers, articles and segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.core.samples import Sample

_SHORT = {
    "ara": "ar", "cmn": "zh", "cn": "zh", "deu": "de", "eng": "en", "fil": "tl", "fra": "fr", "hin": "hi", "ind": "id", "in": "id",
    "ita": "it", "jp": "ja", "jpn": "ja", "khm": "km", "kor": "ko", "kr": "ko", "lao": "lo", "msa": "ms", "mya": "my", "bur": "my",
    "nld": "nl", "por": "pt", "rus": "ru", "spa": "es", "tam": "ta", "tgl": "tl", "tha": "th", "vie": "vi", "yue": "zh", "zho": "zh",
}  # fmt: skip
"""Longer and older codes that data sets use, by the code that is used here."""


def language_of(sample: Sample, language: str | None) -> str:
    """A scorer's language: its option, else the sample's metadata `language`, else "" where nobody says it."""
    return short_code(language or str(sample.metadata.get("language") or ""))


def short_code(language: str) -> str:
    """ "zh" of "zho_Hans", "zh-CN" and "cmn"; "" of "". What is no known code stays as it is."""
    base = language.strip().lower().replace("_", "-").partition("-")[0]
    return _SHORT.get(base, base)


def check_language(language: object) -> None:
    """Raise ConfigurationError where the option `language` is no language code."""
    good = isinstance(language, str) and short_code(language).isalpha() and len(short_code(language)) <= 3
    if language is not None and not good:
        raise ConfigurationError(
            f"The option 'language' must be a language code such as th or zh-CN, not {language!r}."
        )
