"""Sentences and words of a text in any script, by rules alone: no model, no language named, the
same on every machine.

A sentence ends at a full stop, question or exclamation mark that is followed by space and something
that can begin a sentence, at the marks of scripts that put no space there (Han, Devanagari,
Burmese, ...), at an empty line, and before an item of a list. Abbreviations, initials, decimal
numbers and days of a month do not end one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_CLOSING = "\"'”’»)\\]】」』"
# Possessive, and only from where a run of marks begins: a text of nothing but full stops must not
# take for ever.
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
_LOOK_BACK = 80
_LONGEST_MARK = 100
"""Characters before a mark that are looked at."""
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
_BRIEF = 2
_LONG = 4
"""Characters a word: of Han and Kana; of Thai, Lao, Burmese and Khmer."""


def sentences(text: str) -> list[str]:
    """The sentences in their order, without outer white space; put together they are the text, but
    for white space.
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str, lines: bool = False) -> list[Span]:
    """`(start, end)` of every sentence, without white space around it. lines: every line break ends
    a sentence.
    """
    out: list[Span] = []
    for offset, block in _blocks(text, _LINES if lines else _BREAK):
        start = 0
        for match in _END.finditer(block):
            if not _goes_on(block, start, match):
                out.append((offset + start, offset + match.end()))
                start = match.end()
        out.append((offset + start, offset + len(block)))
    return [
        span for span in (_stripped(text, *span) for span in out) if span[0] < span[1]
    ]


def _stripped(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def word_count(text: str) -> int:
    """Words between white space; where a script has none, two characters of Han and Kana or four of
    Thai and its kin are a word.
    """
    if text.isascii():
        return len(text.split())
    return sum(map(_words_in, text.split()))


def _words_in(piece: str) -> int:
    found: list[str] = _SPACELESS.findall(piece)
    if not found:
        return 1
    brief = sum(char >= "\u3040" for char in found)
    long = len(found) - brief
    count: int = (brief + _BRIEF - 1) // _BRIEF + (long + _LONG - 1) // _LONG
    return max(1, count)


def _blocks(text: str, breaks: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Paragraphs and items of lists, each with its place."""
    start = 0
    for match in breaks.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _goes_on(block: str, start: int, match: re.Match[str]) -> bool:
    """Whether a mark that looks like an end is none."""
    mark = match.group().strip()
    after = block[match.end() : match.end() + 1]
    if not after or mark[0] not in ".!?…":
        return False
    if after.islower():
        return True
    if mark[0] != "." or mark.startswith(".."):
        return False
    before = block[max(start, match.start() - _LOOK_BACK) : match.start()]
    word = before[-1:].strip() and before.rsplit(maxsplit=1)[-1].lstrip("([\"'“‘«")
    if not word:
        return False
    if match.end() - start <= _LONGEST_MARK and _MARK.fullmatch(
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


def _begins_name(block: str, place: int, before: str) -> bool:
    """Whether initials go on: another initial follows, or one stands at the beginning or after a
    name's usual company.
    """
    following = block[place : place + 2]
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
