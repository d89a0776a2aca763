"""Where sentences begin and end, in any script, by punctuation and line breaks alone.

It is a rule, not a model: a full stop after a common abbreviation, an initial or a number inside a number ends nothing.
"""

from __future__ import annotations

import re

Span = tuple[int, int]

ABBREVIATIONS = frozenset(
    [
        "adm",
        "al",
        "apr",
        "approx",
        "aug",
        "ave",
        "bros",
        "capt",
        "cf",
        "co",
        "col",
        "corp",
        "dec",
        "dept",
        "dr",
        "ed",
        "eds",
        "eg",
        "etc",
        "est",
        "ex",
        "feb",
        "fig",
        "figs",
        "fr",
        "gen",
        "gov",
        "hon",
        "ie",
        "inc",
        "jan",
        "jr",
        "jul",
        "jun",
        "lt",
        "ltd",
        "maj",
        "mar",
        "messrs",
        "mr",
        "mrs",
        "ms",
        "mt",
        "no",
        "nos",
        "nov",
        "oct",
        "op",
        "pp",
        "prof",
        "pt",
        "rep",
        "rev",
        "sen",
        "sep",
        "sept",
        "sgt",
        "sq",
        "sr",
        "st",
        "ste",
        "vol",
        "vols",
        "vs",
    ]
)
"""English abbreviations, without their full stop, after which a sentence mostly goes on."""

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？｡।॥။።؟۔]+[\"'”’»」』）)\]]*|\n+")
_LOOKED_BACK = 40
"""Characters before and after a full stop that are read: a text of abbreviations alone must not take quadratic time."""
_WORD_BEFORE = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)\.$")


def sentence_spans(text: str) -> list[Span]:
    """`(start, end)` of every sentence, without white space around it; the sentences of a text without any are none."""
    spans: list[Span] = []
    start = 0
    for found in _END.finditer(text):
        if found.group()[0] == "." and _goes_on(text, start, found):
            continue
        _add(spans, text, start, found.end())
        start = found.end()
    _add(spans, text, start, len(text))
    return spans


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _goes_on(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation or an initial, and the sentence goes on after it."""
    if len(found.group()) > 1:
        return False
    before = _WORD_BEFORE.search(text, max(start, found.start() - _LOOKED_BACK), found.start() + 1)
    if before is None:
        return False
    word = before.group(1)
    rest = text[found.end() : found.end() + _LOOKED_BACK].lstrip(" \t")[:1]
    if word.lower().replace(".", "") in ABBREVIATIONS and not word.isupper():
        # "No. 5" goes on, "he said no." does not.
        return rest.isdigit() if word.lower() in ("no", "nos") else True
    initial = len(word) == 1 and word.isupper() and word.isascii()
    return (initial or "." in word) and (rest.islower() or (initial and rest.isupper()))


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))
