"""Citations in running text: where they stand and which passages they name.

Read are brackets ([1], [p1, p2], [1-3], 【1】, [^1], [1](link)), parentheses ((p1), (passage 2), and (2) where it ends a clause),
superscripts after a word or a mark, and mentions in words ("according to passage 2", "Quelle 3"). A number that no passage has is
still a citation in brackets and superscripts, and where it follows "passage" or "source": of a passage that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_MOST_RANGE = 20
_BRACKETS = re.compile(r"\^?[\[【]\s?\^?([^\[\]【】\n]{1,200})[\]】](?:\([^()\s]{1,300}\))?")
_PARENTHESES = re.compile(r"\(([^()\n]{1,80})\)")
_SUPERSCRIPT = re.compile(
    r"(?:(?<=[^\W\d_]{3})|(?<=[.!?,;:\"”»)\]]))"
    r"(?:([⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}(?:[⁻˒,، ][⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}){0,9})|\^(\d{1,3})(?![\d.]))"
    r"|<sup>\s?\[?(\d{1,3}(?:\s?,\s?\d{1,3}){0,9})\]?\s?</sup>"
)
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒، ", "0123456789,,,,")
_KINDS = "passages?|sources?|quellen?|fuentes?|pasajes?|fontes?|fonti|passagg[io]|passagens?|trechos?|abschnitte?s?|absatz|absätze"
_LOOSE_KINDS = "documents?|docs?|texts?|excerpts?|dokumente?|textes?|extraits?|documentos?|ref(?:erence)?s?"
_HAN_KINDS = "段落|文章|資料|资料|来源|來源|出典|지문|문단"
_PREFIX = re.compile(
    rf"^(?:(?:see|cf\.?|from|in|per|according to|siehe|laut)\s+)?(?:the\s+)?(?:{_KINDS}|{_LOOSE_KINDS}|{_HAN_KINDS}|p)?\.?\s*#?\s*:?\s*",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d{1,3})\s?[-–]\s?(\d{1,3})")
_LETTERED = re.compile(r"p\s?\d{1,3}", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,;，、]|\band\b|&")
_BEFORE = re.compile(
    r"(?:\b(?:according to|as (?:stated|said|shown|given) in|based on|as per|per|see|from|in|laut|nach|gemäß|siehe|selon|d'après|según|"
    r"segundo|secondo|volgens)(?: the)?|根据|根據|据)\s*$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\s*(?:,|:)?\s*(?:\b(?:says|states|reports|mentions|notes|say|state)\b(?: that\b)?,?)?")
_CLAUSE_END = re.compile(r"\s*(?:[.,;:!?]|$|\n)")


class Citation(NamedTuple):
    """The ids that are cited at one place of a text, from start to end. in_words: it is a part of the sentence."""

    ids: tuple[str, ...]
    start: int
    end: int
    in_words: bool = False


class Known:
    """The passages' ids, and how a name in a citation becomes one of them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)
        self._folded = {name.casefold(): name for name in ids}
        numbers: dict[str, list[str]] = {}
        for name in ids:
            if (tail := re.search(r"\d{1,6}$", name)) is not None:
                numbers.setdefault(tail.group().lstrip("0") or "0", []).append(name)
        self._by_number = {number: names[0] for number, names in numbers.items() if len(names) == 1}
        self.mention = _mention(tuple(ids))

    def read(self, group: str) -> tuple[str, ...]:
        """The ids in the inside of a bracket; none where it holds anything else."""
        if (whole := self.one(group)) is not None:
            return (whole,)
        out: list[str] = []
        for part in _SEPARATOR.split(group):
            name = part.strip().strip("\"'")
            if not name:
                continue
            if (found := self.one(name)) is not None:
                out.append(found)
            elif (span := _RANGE.fullmatch(_PREFIX.sub("", name))) is not None:
                first, last = int(span.group(1)), int(span.group(2))
                if not first <= last <= first + _MOST_RANGE:
                    return ()
                out += [self.one(str(number)) or str(number) for number in range(first, last + 1)]
            else:
                return ()
        return tuple(dict.fromkeys(out))

    def one(self, text: str) -> str | None:
        """The passage that a name means; a number of up to three digits is a name even where no passage has it."""
        name = text.strip()
        if name in self.ids:
            return name
        if (found := self._folded.get(name.casefold())) is not None:
            return found
        bare = _PREFIX.sub("", name).removeprefix("^").strip()
        if bare in self.ids:
            return bare
        if (found := self._folded.get(bare.casefold())) is not None:
            return found
        if bare.isdecimal() and len(bare) <= 3:
            return self._by_number.get(bare.lstrip("0") or "0", name if _LETTERED.fullmatch(name) else bare)
        return None


def find_citations(text: str, passages: Sequence[str] = ()) -> list[Citation]:
    """Every citation of a text, in order. passages: the ids that there are."""
    known = _known(tuple(passages))
    found = [
        Citation(ids, match.start(), match.end())
        for match in _BRACKETS.finditer(text)
        if (ids := known.read(match.group(1)))
    ]
    found += [
        Citation(ids, match.start(), match.end())
        for match in _PARENTHESES.finditer(text)
        if (ids := _in_parentheses(text, match, known))
    ]
    for match in _SUPERSCRIPT.finditer(text):
        raw = match.group(1) or match.group(2) or match.group(3)
        if ids := known.read(raw.translate(_DIGITS)):
            found.append(Citation(ids, match.start(), match.end()))
    for match in known.mention.finditer(text):
        ids = tuple(
            known.one(name) or name
            for name in re.findall(r"[^\s,&]+", match.group("ids"))
            if _is_id(name, known)
        )
        if ids:
            found.append(Citation(tuple(dict.fromkeys(ids)), match.start(), match.end(), in_words=True))
    kept: list[Citation] = []
    for one in sorted(found, key=lambda citation: (citation.start, -citation.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def cited_ids(text: str, passages: Sequence[str] = ()) -> list[str]:
    """The ids that a text cites, in order, each once."""
    return list(dict.fromkeys(name for found in find_citations(text, passages) for name in found.ids))


def extended(text: str, citation: Citation) -> tuple[int, int]:
    """A citation's place with the words that only lead to it: "According to [1], ...", "Passage 2 says that ..."."""
    start, end = citation.start, citation.end
    if (lead := _BEFORE.search(text[max(0, start - 24) : start])) is not None:
        start = max(0, start - 24) + lead.start()
        if (tail := _AFTER.match(text, end)) is not None:
            end = tail.end()
    elif citation.in_words and (tail := _AFTER.match(text, end)) is not None and tail.group().strip(" ,:"):
        end = tail.end()
    return start, end


def without_citations(text: str, passages: Sequence[str] = ()) -> str:
    """The text with its citations taken out."""
    out, position = [], 0
    for citation in find_citations(text, passages):
        start, end = extended(text, citation)
        out.append(text[position : max(position, start)].rstrip(" "))
        position = max(position, end)
        if not _CLAUSE_END.match(text, position):
            out.append(" ")
    out.append(text[position:].lstrip(" ") if out and out[-1].endswith(" ") else text[position:])
    return re.sub(r"[ \t]{2,}", " ", "".join(out)).strip()


def _in_parentheses(text: str, match: re.Match[str], known: Known) -> tuple[str, ...]:
    inside = match.group(1)
    ids = known.read(inside)
    if not ids or not set(ids) <= known.ids:
        # "(passage 9)" is a citation even if there is no such passage; "(9)" and "(1988)" are none.
        return ids if ids and re.match(rf"\s*(?:see )?(?:{_KINDS})\b", inside, re.IGNORECASE) else ()
    if any(char.isalpha() for char in inside):
        return ids
    before = text[: match.start()].rstrip(" ")[-1:]
    return ids if before and before != "\n" and _CLAUSE_END.match(text, match.end()) else ()


def _is_id(name: str, known: Known) -> bool:
    return name.isdecimal() or known.one(name) in known.ids


@lru_cache(maxsize=512)
def _known(ids: tuple[str, ...]) -> Known:
    return Known(ids)


def _mention(ids: tuple[str, ...]) -> re.Pattern[str]:
    """ "passage 2", "passages 1 and 3", "document p1": a word for a passage, and ids after it."""
    names = "|".join(re.escape(name) for name in sorted(ids, key=len, reverse=True) if name) or r"(?!)"
    end = r"(?![\w-])(?![.,:]\d)"
    some = rf"(?:{names}|\d{{1,3}}){end}"
    more = rf"(?:\s?(?:,|&|\band\b|\bund\b|\bet\b|\by\b)\s?(?:and )?{some}){{0,9}}"
    sure = rf"\b(?:{_KINDS})\s(?:no\. ?|nr\. ?|number )?#?(?={some})"
    loose = rf"\b(?:{_LOOSE_KINDS})\s(?:no\. ?|nr\. ?|number )?#?(?=(?:{names}){end})"
    han = rf"(?:{_HAN_KINDS})\s?(?={some})"
    return re.compile(rf"(?:{sure}|{loose}|{han})(?P<ids>{some}{more})", re.IGNORECASE)
