"""Splits languages written without spaces into words: Burmese, Chinese, Japanese, Khmer, Lao, Thai.

Japanese is split by MeCab with its dictionary IPADIC, as in sacrebleu, the others by the word
breaks of ICU (dictionaries of the Unicode project). Words are those of the dictionaries and differ
from a grammarian's; tests/scorers/text/test_segmentation.py states how often. Versions of ICU may
differ, so scores state the version.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import MissingExtra

UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "zh"})
"""Languages whose words are found by a dictionary."""

_COMPILED = "apt install libicu-dev pkg-config g++ (or brew install icu4c pkg-config)"

_BREAK = r"\s\u3000-\u3002\uff0c\uff0e\uff01\uff1f"
_ENDLESS = re.compile(rf"[^{_BREAK}]{{2000}}")
_PIECE = re.compile(rf"(?s).{{1,12000}}(?:(?<=[{_BREAK}])|\Z)")


def require(language: str, feature: str) -> None:
    """Raise MissingExtra if words of this language need a library that is not installed."""
    if language == "ja" and (find_spec("MeCab") is None or find_spec("ipadic") is None):
        raise MissingExtra(
            f"{feature} for the language 'ja'", "translation-ja", "mecab-python3"
        )
    if language in UNSPACED - {"ja"} and find_spec("icu") is None:
        raise MissingExtra(
            f"{feature} for the language '{language}'",
            "segmentation",
            "PyICU",
            first=_COMPILED,
        )


def segment(text: str, language: str) -> list[str]:
    """Split a text in one of the `UNSPACED` languages into words, without spaces and punctuation.

    Raises:
        MissingExtra: its library is not installed.
    """
    require(language, "Segmentation")
    if language == "ja":
        # MeCab reads line by line, and no empty lines.
        lines = [
            line
            for piece in pieces_for_mecab(text)
            for line in piece.split("\n")
            if line.strip()
        ]
        words = [
            word for line in lines for word in _japanese_tagger().parse(line).split()
        ]
        return [word for word in words if any(map(str.isalnum, word))]
    import icu

    breaks = _break_iterator(language)
    # ICU counts positions in UTF-16.
    units = text.encode("utf-16-le", "replace")
    breaks.setText(icu.UnicodeString(units.decode("utf-16-le")))
    segments = []
    start = 0
    for end in breaks:
        if breaks.getRuleStatus() > 0:  # the status of spaces and punctuation is 0
            segments.append(units[2 * start : 2 * end].decode("utf-16-le"))
        start = end
    return segments


def pieces_for_mecab(text: str) -> list[str]:
    """Split a text into pieces that MeCab accepts; most texts stay in one piece.

    MeCab refuses lines above 64 kB, and takes quadratic time for a run without an end. Lone
    surrogates, which it refuses too, become "?", and a run longer than any sentence is broken by a
    space.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _PIECE.findall(_ENDLESS.sub(r"\g<0> ", text))


def library(language: str) -> str:
    """Return the library that decides where words end, such as "ICU 72.1"."""
    if language == "ja":
        return "MeCab and IPADIC"
    import icu

    return f"ICU {icu.ICU_VERSION}"


@lru_cache(maxsize=1)
def _japanese_tagger() -> Any:
    import ipadic
    import MeCab

    return MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")


@lru_cache(maxsize=8)
def _break_iterator(language: str) -> Any:
    import icu

    return icu.BreakIterator.createWordInstance(icu.Locale(language))
