"""Words of a text in any script, and their positions.

A word is a run of letters, marks and digits; a decimal, grouped or clock number ("8.5", "1,024",
"17:30") is one word, so `8` is not found in `8.5`. Scripts that are written without spaces give one
word per character (Han, Hiragana, Thai, Lao, Khmer, Burmese; with the marks that belong to it) or
per run (Katakana). Unicode categories decide which character is what.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

_CANONICAL = {
    "mt": "mount",
    "st": "saint",
    "ste": "sainte",
    "jr": "junior",
    "sr": "senior",
}
_SIMPLE = re.compile(
    r"[^\W_]+(?:(?<=[0-9])[.,:](?=[0-9])[^\W_]+|'(?=[^\W\d_])[^\W_]+)*(?:(?<=[A-Za-z])(?:\+\+?"
    r"|#)(?!\w))?"
)
_SHAPED = re.compile(
    r"c|k+|tm*|[a0][a0m]*(?:(?<=0)\.(?=0)[a0]+|'(?=a)[a0m]+)*(?:(?<=a)(?:\+\+?|#)(?![a0]))?"
)
_FIRST_MARK = "\u0300"
"""Below this code point there are no combining marks and no scripts without spaces."""


class Words:
    """The words of a plain text, as written (`cased`) and as compared (`tokens`).

    `tokens` are casefolded, without apostrophes and possessive 's, with a few abbreviations written
    out ("mt" becomes "mount"); `joined` has them separated by single spaces.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.cased = _split_words(text)
        tokens = " ".join(self.cased).casefold().split(" ") if self.cased else []
        if "'" in text:
            tokens = [
                _without_apostrophe(token) if "'" in token else token
                for token in tokens
            ]
        self.tokens = [_CANONICAL.get(token, token) for token in tokens]
        self.joined = f" {' '.join(self.tokens)} "

    @cached_property
    def folded(self) -> str:
        """`joined` without accents."""
        return fold(self.joined)

    @cached_property
    def folded_tokens(self) -> list[str]:
        """The tokens without accents; one that is nothing but marks is empty."""
        return self.folded[1:-1].split(" ") if self.tokens else []

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Return the position of each word in `text`."""
        return [match.span() for match in _match_words(self.text)]


def fold(text: str) -> str:
    """Casefold a text and remove the marks that people leave out.

    These are Latin, Greek and Cyrillic accents, Arabic and Hebrew points, hamza and nukta. Marks
    that carry meaning (vowel signs of Indic scripts, Thai vowels, kana voicing) stay.
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text).translate(_FOLDS)
    return unicodedata.normalize("NFC", decomposed)


_FOLDS: dict[int, str | None] = {
    **dict.fromkeys(range(0x300, 0x370)),
    **dict.fromkeys(
        [
            *range(0x5B0, 0x5BE),
            0x5BF,
            0x5C1,
            0x5C2,
            *range(0x64B, 0x656),
            0x670,
            0x640,
            0x93C,
        ]
    ),
    **{
        ord(char): replacement
        for char, replacement in zip("øłđðıħŧŋĸ", "olddihtnk", strict=True)
    },
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("þ"): "th",
    ord("ß"): "ss",
    ord("ə"): "a",
    ord("ى"): "ي",
}


def _without_apostrophe(token: str) -> str:
    return (token.removesuffix("'s") or token).replace("'", "")


def _split_words(text: str) -> list[str]:
    if text.isascii() or max(text) < _FIRST_MARK:
        return _SIMPLE.findall(text)
    return [text[match.start() : match.end()] for match in _match_words(text)]


def _match_words(text: str) -> list[re.Match[str]]:
    if text.isascii() or max(text) < _FIRST_MARK:
        return list(_SIMPLE.finditer(text))
    return list(_SHAPED.finditer(text.translate(_SHAPES)))


class _Shapes(dict[int, str]):
    """Maps each character to one letter for its kind, computed on first use.

    a: letter or mark, 0: digit, c: character of a script without spaces, k: Katakana, t: Thai and
    similar scripts, m: a mark of those, ': apostrophe, .: number separator, space: anything else.
    """

    def __missing__(self, code: int) -> str:
        shape = self[code] = _shape(chr(code))
        return shape


def _shape(char: str) -> str:
    category = unicodedata.category(char)
    if char == "'":
        return "'"
    if char in ".,:":
        return "."
    if char in "+#":
        return char
    if char.isdecimal():
        return "0"
    code = ord(char)
    if category[0] not in "LMN":
        return " "
    if 0x30A0 <= code <= 0x30FF or 0x31F0 <= code <= 0x31FF or 0xFF66 <= code <= 0xFF9F:
        return "k"
    if (
        0x3040 <= code <= 0x309F
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or code >= 0x20000
    ):
        return "c"
    if 0x0E00 <= code <= 0x0EFF or 0x1000 <= code <= 0x109F or 0x1780 <= code <= 0x17FF:
        return "m" if category[0] == "M" else "t"
    return "m" if category[0] == "M" else "a"


_SHAPES = _Shapes()


def word_list(text: str) -> list[str]:
    """Return the words of a text, in order."""
    return text.split()


def word_set(*texts: str) -> frozenset[str]:
    """Return the set of the words of some texts."""
    return frozenset(word for text in texts for word in text.split())
