"""Splits text in any script into sentences and words, by rules: no model, no language setting.

A sentence ends at a full stop, question or exclamation mark that is followed by space and
something that can begin a sentence; at the marks of scripts that put no space there (Han,
Devanagari, Burmese, ...); at an empty line; and before an item of a list. Abbreviations,
initials, decimal numbers and days of a month do not end one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_CLOSING = "\"'”’»)\\]】」』"
# Possessive, and only at the start of a run of marks: otherwise a text of nothing but full stops
# would take quadratic time.
_END = re.compile(
    rf"(?<![。！？｡])[。！？｡]++[{_CLOSING}]*+\s*+"
    rf"|(?<![।॥۔؟።។։])[।॥۔؟።។։]++[{_CLOSING}]*+(?:\s++|$)"
    rf"|(?<![.!?…])[.!?…]++[{_CLOSING}]*+\s++"
)
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•–—]\s|#{1,6}\s|\(?\d{1,3}[.)]\s))")
_LINES = re.compile(r"\n+")
_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "sr",
        "jr",
        "rev",
        "gen",
        "col",
        "lt",
        "sgt",
        "capt",
        "gov",
        "sen",
        "rep",
        "hon",
        "pres",
        "vs",
        "cf",
        "fig",
        "figs",
        "eq",
        "sec",
        "ch",
        "vol",
        "vols",
        "nos",
        "nr",
        "pp",
        "inc",
        "ltd",
        "co",
        "corp",
        "llc",
        "bros",
        "dept",
        "est",
        "approx",
        "ca",
        "al",
        "eds",
        "jan",
        "feb",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "bzw",
        "usw",
        "z.b",
        "d.h",
        "u.a",
        "vgl",
        "abb",
        "hr",
        "bd",
        "tel",
        "ggf",
        "evtl",
        "inkl",
        "e.g",
        "i.e",
        "a.m",
        "p.m",
        "u.s",
        "u.k",
        "u.n",
        "e.u",
        "d.c",
        "ph.d",
        "mme",
        "mlle",
        "sra",
        "srta",
        "dña",
        "ud",
        "uds",
        "pág",
        "núm",
        "avv",
        "sig",
        "sigg",
        "dott",
        "ing",
        "bijv",
        "dhr",
        "mevr",
        "т.е",
        "т.д",
        "г",
        "ул",
        "им",
    ]
)
_LOOK_BACK_CHARS = 80
_MAX_MARK_CHARS = 100
"""How far before a mark the text is examined, in characters."""
_DAY = re.compile(r"\d{1,2}")
_MONTH = re.compile(
    r"(?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|desember|marts|marraskuu)",
    re.IGNORECASE,
)
_MARK = re.compile(r"\s*(?:[-*•–—]|\(?\d{1,3}[.)]|#{1,6})\s+")

_SPACELESS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
)
_HAN_CHARS_PER_WORD = 2
_THAI_CHARS_PER_WORD = 4
"""Average characters per word: of Han and Kana; of Thai, Lao, Burmese and Khmer."""


def sentences(text: str) -> list[str]:
    """Split a text into its sentences, without surrounding white space."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str, lines: bool = False) -> list[Span]:
    """Find the `(start, end)` of every sentence, without white space around it.

    Args:
        text: any text.
        lines: whether every line break ends a sentence.
    """
    spans: list[Span] = []
    for offset, block in _blocks(text, _LINES if lines else _BREAK):
        start = 0
        for match in _END.finditer(block):
            if not _continues_sentence(block, start, match):
                spans.append((offset + start, offset + match.end()))
                start = match.end()
        spans.append((offset + start, offset + len(block)))
    return [
        span for span in (_stripped(text, *span) for span in spans) if span[0] < span[1]
    ]


def _stripped(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def word_count(text: str) -> int:
    """Count the words of a text, as separated by white space.

    In scripts without spaces, two characters of Han and Kana, or four of Thai and related scripts,
    count as a word.
    """
    if text.isascii():
        return len(text.split())
    return sum(map(_count_words, text.split()))


def _count_words(piece: str) -> int:
    characters: list[str] = _SPACELESS.findall(piece)
    if not characters:
        return 1
    han_count = sum(char >= "\u3040" for char in characters)
    thai_count = len(characters) - han_count
    count: int = (han_count + _HAN_CHARS_PER_WORD - 1) // _HAN_CHARS_PER_WORD + (
        thai_count + _THAI_CHARS_PER_WORD - 1
    ) // _THAI_CHARS_PER_WORD
    return max(1, count)


def _blocks(text: str, breaks: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Split a text into paragraphs and list items, each with its offset."""
    start = 0
    for match in breaks.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _continues_sentence(block: str, start: int, match: re.Match[str]) -> bool:
    """Tell whether a mark that looks like the end of a sentence is not one."""
    mark = match.group().strip()
    after = block[match.end() : match.end() + 1]
    if not after or mark[0] not in ".!?…":
        return False
    if after.islower():
        return True
    if mark[0] != "." or mark.startswith(".."):
        return False
    before = block[max(start, match.start() - _LOOK_BACK_CHARS) : match.start()]
    word = before[-1:].strip() and before.rsplit(maxsplit=1)[-1].lstrip("([\"'“‘«")
    if not word:
        return False
    if match.end() - start <= _MAX_MARK_CHARS and _MARK.fullmatch(
        block[start : match.end()]
    ):
        return True  # the number of an item
    if word.lower() in _ABBREVIATIONS:
        return True
    if (
        len(word) == 1
        and word.islower()
        and block[match.end() + 1 : match.end() + 2] == "."
    ):
        return True  # "z. B.", "d. h."
    if _DAY.fullmatch(word):
        return _MONTH.match(block, match.end()) is not None
    # "J. R. R. Tolkien", but not "vitamin C. The".
    return (
        len(word) == 1
        and word.isupper()
        and word != "I"
        and _begins_name(block, match.end(), before)
    )


def _begins_name(block: str, position: int, before: str) -> bool:
    """Tell whether initials belong to a name.

    They do if another initial follows, or if they are at the beginning or after a capitalised word.
    """
    following = block[position : position + 2]
    if len(following) == 2 and following[0].isupper() and following[1] == ".":
        return True
    earlier = before.rsplit(maxsplit=1)
    previous = (
        earlier[0].split()[-1] if len(earlier) == 2 and earlier[0].split() else ""
    )
    abbreviated = (
        len(previous) == 2 and previous[0].islower() and previous[1] == "."
    )  # "z. B."
    return not previous or previous[0].isupper() or abbreviated
