"""Citations in running text: where they stand and which passages they name.

Read are brackets ([1], [p1, p2], [1-3], 【1】, [^1], [1](link)), parentheses ((p1), (passage 2), and
(2) where it ends a clause), superscripts after a word or a mark, and mentions in words ("according
to passage 2", "Quelle 3"). A number that no passage has is still a citation in brackets and
superscripts, and where it follows "passage" or "source": of a passage that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.text.normalise import answer_region

_MOST_RANGE = 20
_KINDS = "passages?|sources?|quellen?|fuentes?|pasajes?|fontes?|fonti|passagg[io]|passagens?|trechos?|abschnitte?s?|absatz|absätze"
_LOOSE_KINDS = "documents?|docs?|texts?|excerpts?|dokumente?|textes?|extraits?|documentos?|ref(?:erence)?s?"
_HAN_KINDS = "段落|文章|資料|资料|来源|來源|出典|지문|문단"
# Words that only lead to a citation belong to it: "According to [1], ...", "Passage 2 says that
# ...".
_LEAD = (
    r"(?:(?:\b(?:according to|as (?:stated|said|shown|given) in|based on|as"
    r" per|per|see|from|in|laut|nach|gemäß|siehe|selon|d'après|según|"
    r"segundo|secondo|volgens)(?: the)?|根据|根據|据)\s?)"
)
_SAYS = r"\s?[,:]?\s?\b(?:says?|states?|reports|mentions?|notes)\b(?: that\b)?,?"
_BRACKETS = re.compile(
    rf"(?P<lead>{_LEAD})?\^?[\[【]\s?\^?(?P<ids>[^\[\]【】\n]{{1,200}})[\]】](?:\([^()\s]{{1,300}}\))?(?(lead),?)",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"\((?P<ids>[^()\n]{1,80})\)")
_SUPERSCRIPT = re.compile(
    r"(?:(?<=[^\W\d_]{3})|(?<=[.!?,;:\"”»)\]]))"
    r"(?:(?P<ids>[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}(?:[⁻˒,،"
    r" ][⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}){0,9})|\^(\d{1,3})(?![\d.])"
    r"|<sup>\s?\[?(\d{1,3}(?:\s?,\s?\d{1,3}){0,9})\]?\s?</sup>)"
)
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒، ", "0123456789,,,,")
_PREFIX = re.compile(
    r"^(?:(?:see|cf\.?|from|in|per|according"
    rf" to|siehe|laut)\s+)?(?:the\s+)?(?:{_KINDS}|{_LOOSE_KINDS}|{_HAN_KINDS}|p)?\.?\s*#?\s*:?\s*",
    re.IGNORECASE,
)
_PASSAGE = re.compile(rf"\s*(?:see )?(?:{_KINDS})\b", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,3})\s?[-–]\s?(\d{1,3})")
_SEPARATOR = re.compile(r"[,;，、]|\band\b|&")
_CLAUSE_END = re.compile(r"\s*(?:[.,;:!?]|$|\n)")


class Citation(NamedTuple):
    """The ids that are cited at one place of a text, from start to end."""

    ids: tuple[str, ...]
    start: int
    end: int


class Known:
    """The passages' ids, and how a name in a citation becomes one of them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = {name.casefold(): name for name in ids}
        numbers: dict[str, list[str]] = {}
        for name in ids:
            if (tail := re.search(r"\d{1,6}$", name)) is not None:
                numbers.setdefault(tail.group().lstrip("0") or "0", []).append(name)
        self._by_number = {
            number: names[0] for number, names in numbers.items() if len(names) == 1
        }
        self.mention = _mention(tuple(ids))

    def read(self, group: str) -> tuple[str, ...]:
        """The ids in the inside of a bracket; none where it holds anything else."""
        if (whole := self.one(group)) is not None:
            return (whole,)
        out: list[str] = []
        for part in _SEPARATOR.split(group):
            name = part.strip().strip("\"'")
            if (found := self.one(name)) is not None:
                out.append(found)
            elif (span := _RANGE.fullmatch(_PREFIX.sub("", name))) is not None:
                first = int(span.group(1))
                last = int(span.group(2))
                if not first <= last <= first + _MOST_RANGE:
                    return ()
                out += [
                    self.one(str(number)) or str(number)
                    for number in range(first, last + 1)
                ]
            elif name:
                return ()
        return tuple(dict.fromkeys(out))

    def one(self, text: str) -> str | None:
        """The passage that a name means; a number of up to three digits is a name even where no
        passage has it.
        """
        name = text.strip()
        bare = _PREFIX.sub("", name).removeprefix("^").strip()
        if (
            found := self.ids.get(name.casefold()) or self.ids.get(bare.casefold())
        ) is not None:
            return found
        if bare.isdecimal() and len(bare) <= 3:
            lettered = name[:1] in "pP" and name[1:].strip() == bare
            return self._by_number.get(
                bare.lstrip("0") or "0", name if lettered else bare
            )
        return None


def find_citations(text: str, passages: Sequence[str] = ()) -> list[Citation]:
    """Every citation of a text, in order. passages: the ids that there are."""
    known = _known(tuple(passages))
    found = [
        Citation(known.read(match["ids"]), *match.span())
        for match in _BRACKETS.finditer(text)
    ]
    found += [
        Citation(_in_parentheses(text, match, known), *match.span())
        for match in _PARENTHESES.finditer(text)
    ]
    for match in _SUPERSCRIPT.finditer(text):
        raw = match.group(1) or match.group(2) or match.group(3)
        found.append(Citation(known.read(raw.translate(_DIGITS)), *match.span()))
    for match in known.mention.finditer(text):
        names = [known.one(name) for name in re.findall(r"[^\s,&]+", match["ids"])]
        ids = tuple(dict.fromkeys(name for name in names if name is not None))
        found.append(Citation(ids, *match.span()))
    kept: list[Citation] = []
    for one in sorted(found, key=lambda citation: (citation.start, -citation.end)):
        if one.ids and (not kept or one.start >= kept[-1].end):
            kept.append(one)
    return kept


def cited_ids(text: str, passages: Sequence[str] = ()) -> list[str]:
    """The ids that a text cites, in order, each once."""
    return list(
        dict.fromkeys(
            name for found in find_citations(text, passages) for name in found.ids
        )
    )


def without_citations(text: str, passages: Sequence[str] = ()) -> str:
    """The text with its citations taken out."""
    out = ""
    position = 0
    for citation in find_citations(text, passages):
        out = f"{out}{text[position : citation.start]}".rstrip(" ")
        position = citation.end
        out += "" if _CLAUSE_END.match(text, position) else " "
    return re.sub(r"[ \t]{2,}", " ", out + text[position:]).strip()


def _in_parentheses(text: str, match: re.Match[str], known: Known) -> tuple[str, ...]:
    inside = match["ids"]
    ids = known.read(inside)
    if not ids or not set(ids) <= set(known.ids.values()):
        # "(passage 9)" is a citation even if there is no such passage; "(9)" and "(1988)" are none.
        return ids if _PASSAGE.match(inside) else ()
    before = text[: match.start()].rstrip(" ")[-1:]
    ends = (
        bool(before)
        and before != "\n"
        and _CLAUSE_END.match(text, match.end()) is not None
    )
    return ids if ends or any(char.isalpha() for char in inside) else ()


@lru_cache(maxsize=512)
def _known(ids: tuple[str, ...]) -> Known:
    return Known(ids)


def _mention(ids: tuple[str, ...]) -> re.Pattern[str]:
    """ "passage 2", "passages 1 and 3", "document p1": a word for a passage, and ids after it."""
    names = (
        "|".join(re.escape(name) for name in sorted(ids, key=len, reverse=True) if name)
        or r"(?!)"
    )
    end = r"(?![\w-])(?![.,:]\d)"
    some = rf"(?:{names}|\d{{1,3}}){end}"
    more = rf"(?:\s?(?:,|&|\band\b|\bund\b|\bet\b|\by\b)\s?(?:and )?{some}){{0,9}}"
    number = r"\s(?:no\. ?|nr\. ?|number )?#?"
    kind = rf"\b(?:{_KINDS}){number}(?={some})|\b(?:{_LOOSE_KINDS}){number}(?=(?:{names}){end})|(?:{_HAN_KINDS})\s?(?={some})"
    return re.compile(
        rf"(?P<lead>{_LEAD})?(?:{kind})(?P<ids>{some}{more})(?:{_SAYS}|(?(lead),?))?",
        re.IGNORECASE,
    )


# -- the scorer ------------------------------------------------------------------------


def citation(sample: Sample, answer: Answer) -> Score:
    """F1 of the cited passage ids against `metadata["citations"]`; parts "precision" and "recall".

    Ids are read as `grounding` reads them: [1], [1, 3], [1-3], (p1), "according to passage 2". An
    id that no passage has counts against precision and is named. Where the passages do not answer
    (`metadata["answerable"]` is false, or no citation is given as right), the score is 1 if nothing
    is cited, else 0. Labels "correct" (1), "partial", "incorrect" (0). Raises ScoringError where
    the sample does not say what should be cited.
    """
    gold = _gold(sample)
    passages = [passage.id for passage in sample.passages]
    # Citations may stand after a blank line ("Sources: [1]"), where a short answer has ended.
    cited = cited_ids(answer_region(answer.text, paragraphs=True), passages)
    unknown = [found for found in cited if found not in passages] if passages else []
    note = f"; no passage has the id {', '.join(unknown)}" if unknown else ""
    shown = ", ".join(cited) or "nothing"
    if not gold:
        right = not cited
        value = 1.0 if right else 0.0
        why = f"the passages do not answer, and {shown} is cited{note}"
        return Score(
            value,
            "correct" if right else "incorrect",
            why,
            {"precision": value, "recall": value},
        )
    hits = len(gold.intersection(cited))
    precision = hits / len(cited) if cited else 0.0
    recall = hits / len(gold)
    value = 2 * precision * recall / (precision + recall) if hits else 0.0
    label = "correct" if value == 1.0 else "partial" if value else "incorrect"
    why = f"cites {shown}; should cite {', '.join(sorted(gold))}{note}"
    return Score(value, label, why, {"precision": precision, "recall": recall})


def _gold(sample: Sample) -> set[str]:
    metadata = sample.metadata
    if metadata.get("answerable") is False:
        return set()
    given = metadata.get("citations")
    if given is None:
        raise ScoringError(
            f"The sample '{sample.id}' does not say in metadata 'citations' which"
            " passages are right."
        )
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    return {str(one) for one in given}
