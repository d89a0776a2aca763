"""Finds citations in running text and the passages that they name.

Recognised are brackets ([1], [p1, p2], [1-3], 【1】, [^1], [1](link)), parentheses ((p1), (passage
2), and (2) at the end of a clause), superscripts after a word or a punctuation mark, and mentions
in words ("according to passage 2", "Quelle 3"). In brackets, in superscripts and after "passage" or
"source", a number that no passage has is a citation too: of a passage that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.text.normalise import answer_region

_MAX_RANGE = 20
_KINDS = (
    "passages?|sources?|quellen?|fuentes?|pasajes?|fontes?|fonti|passagg[io]|passagens?"
    "|trechos?|abschnitte?s?|absatz|absätze"
)
_LOOSE_KINDS = (
    "documents?|docs?|texts?|excerpts?|dokumente?|textes?|extraits?|documentos?"
    "|ref(?:erence)?s?"
)
_HAN_KINDS = "段落|文章|資料|资料|来源|來源|出典|지문|문단"
# Words that only lead to a citation belong to it: "According to [1], ...", "Passage 2 says ...".
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
    """The ids cited at one position of a text, from `start` to `end`."""

    ids: tuple[str, ...]
    start: int
    end: int


class PassageIds:
    """Resolves the names in a citation to the ids of passages."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = {name.casefold(): name for name in ids}
        numbers: dict[str, list[str]] = {}
        for name in ids:
            tail = re.search(r"\d{1,6}$", name)
            if tail is not None:
                numbers.setdefault(tail.group().lstrip("0") or "0", []).append(name)
        self._by_number = {
            number: names[0] for number, names in numbers.items() if len(names) == 1
        }
        self.mention = _mention_pattern(tuple(ids))

    def read(self, group: str) -> tuple[str, ...]:
        """Read the ids inside a bracket; () if it holds anything else."""
        single_id = self.find(group)
        if single_id is not None:
            return (single_id,)

        cited: list[str] = []
        for piece in _SEPARATOR.split(group):
            name = piece.strip().strip("\"'")
            passage_id = self.find(name)
            if passage_id is not None:
                cited.append(passage_id)
                continue

            span = _RANGE.fullmatch(_PREFIX.sub("", name))
            if span is None:
                if name:
                    return ()
                continue
            first = int(span.group(1))
            last = int(span.group(2))
            if not first <= last <= first + _MAX_RANGE:
                return ()
            cited += [
                self.find(str(number)) or str(number)
                for number in range(first, last + 1)
            ]
        return tuple(dict.fromkeys(cited))

    def find(self, text: str) -> str | None:
        """Find the passage that a name means.

        A number of up to three digits is a name even if no passage has it.
        """
        name = text.strip()
        number = _PREFIX.sub("", name).removeprefix("^").strip()
        passage_id = self.ids.get(name.casefold()) or self.ids.get(number.casefold())
        if passage_id is not None:
            return passage_id

        if not number.isdecimal() or len(number) > 3:
            return None
        lettered = name[:1] in "pP" and name[1:].strip() == number
        unknown_id = name if lettered else number
        return self._by_number.get(number.lstrip("0") or "0", unknown_id)


def find_citations(text: str, passages: Sequence[str] = ()) -> list[Citation]:
    """Find every citation in a text, in order.

    `passages` are the ids of the passages.
    """
    passage_ids = _index_passages(tuple(passages))
    citations = [
        Citation(passage_ids.read(match["ids"]), *match.span())
        for match in _BRACKETS.finditer(text)
    ]
    citations += [
        Citation(_read_parentheses(text, match, passage_ids), *match.span())
        for match in _PARENTHESES.finditer(text)
    ]
    for match in _SUPERSCRIPT.finditer(text):
        raw = match.group(1) or match.group(2) or match.group(3)
        citations.append(
            Citation(passage_ids.read(raw.translate(_DIGITS)), *match.span())
        )
    for match in passage_ids.mention.finditer(text):
        names = [
            passage_ids.find(name) for name in re.findall(r"[^\s,&]+", match["ids"])
        ]
        ids = tuple(dict.fromkeys(name for name in names if name is not None))
        citations.append(Citation(ids, *match.span()))
    separate: list[Citation] = []
    for citation in sorted(
        citations, key=lambda citation: (citation.start, -citation.end)
    ):
        if citation.ids and (not separate or citation.start >= separate[-1].end):
            separate.append(citation)
    return separate


def cited_ids(text: str, passages: Sequence[str] = ()) -> list[str]:
    """List the ids that a text cites, in order and without repeats."""
    return list(
        dict.fromkeys(
            name for citation in find_citations(text, passages) for name in citation.ids
        )
    )


def remove_citations(text: str, passages: Sequence[str] = ()) -> str:
    """Remove the citations from a text."""
    stripped = ""
    position = 0
    for citation in find_citations(text, passages):
        stripped = f"{stripped}{text[position : citation.start]}".rstrip(" ")
        position = citation.end
        stripped += "" if _CLAUSE_END.match(text, position) else " "
    return re.sub(r"[ \t]{2,}", " ", stripped + text[position:]).strip()


def _read_parentheses(
    text: str, match: re.Match[str], passage_ids: PassageIds
) -> tuple[str, ...]:
    inside = match["ids"]
    ids = passage_ids.read(inside)
    if not ids or not set(ids) <= set(passage_ids.ids.values()):
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
def _index_passages(ids: tuple[str, ...]) -> PassageIds:
    return PassageIds(ids)


def _mention_pattern(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Match "passage 2", "passages 1 and 3", "document p1": a word for a passage, then ids."""
    names = (
        "|".join(re.escape(name) for name in sorted(ids, key=len, reverse=True) if name)
        or r"(?!)"
    )
    end = r"(?![\w-])(?![.,:]\d)"
    cited_id = rf"(?:{names}|\d{{1,3}}){end}"
    further_ids = (
        rf"(?:\s?(?:,|&|\band\b|\bund\b|\bet\b|\by\b)\s?(?:and )?{cited_id}){{0,9}}"
    )
    number = r"\s(?:no\. ?|nr\. ?|number )?#?"
    mention = (
        rf"\b(?:{_KINDS}){number}(?={cited_id})"
        rf"|\b(?:{_LOOSE_KINDS}){number}(?=(?:{names}){end})"
        rf"|(?:{_HAN_KINDS})\s?(?={cited_id})"
    )
    return re.compile(
        rf"(?P<lead>{_LEAD})?(?:{mention})(?P<ids>{cited_id}{further_ids})(?:{_SAYS}|(?(lead),?))?",
        re.IGNORECASE,
    )


# -- the scorer ------------------------------------------------------------------------


def citation(sample: Sample, answer: Answer) -> Score:
    """Score the F1 of the cited passage ids against `metadata["citations"]`.

    Parts: "precision" and "recall". Labels: "correct" (1), "partial", "incorrect" (0). Ids are read
    as `grounding` reads them: [1], [1, 3], [1-3], (p1), "according to passage 2". An id that no
    passage has counts against precision and is named in the explanation. If the passages do not
    answer the question (`metadata["answerable"]` is false, or `metadata["citations"]` is empty),
    the score is 1 if nothing is cited, else 0.

    Raises:
        ScoringError: the sample does not say what should be cited.
    """
    gold = _required_citations(sample)
    passages = [passage.id for passage in sample.passages]
    # Citations may come after a blank line ("Sources: [1]"), at which a short answer has ended.
    cited = cited_ids(answer_region(answer.text, paragraphs=True), passages)
    unknown = [name for name in cited if name not in passages] if passages else []
    note = f"; no passage has the id {', '.join(unknown)}" if unknown else ""
    cited_names = ", ".join(cited) or "nothing"
    if not gold:
        right = not cited
        score = 1.0 if right else 0.0
        why = f"the passages do not answer, and {cited_names} is cited{note}"
        return Score(
            score,
            "correct" if right else "incorrect",
            why,
            {"precision": score, "recall": score},
        )
    hits = len(gold.intersection(cited))
    precision = hits / len(cited) if cited else 0.0
    recall = hits / len(gold)
    score = 2 * precision * recall / (precision + recall) if hits else 0.0
    label = "partial" if score else "incorrect"
    if score == 1.0:
        label = "correct"
    why = f"cites {cited_names}; should cite {', '.join(sorted(gold))}{note}"
    return Score(score, label, why, {"precision": precision, "recall": recall})


def _required_citations(sample: Sample) -> set[str]:
    metadata = sample.metadata
    if metadata.get("answerable") is False:
        return set()
    required = metadata.get("citations")
    if required is None:
        raise ScoringError(
            f"The sample '{sample.id}' does not say in metadata 'citations' which"
            " passages are right."
        )
    if isinstance(required, str):
        required = [name.strip() for name in required.split(",") if name.strip()]
    return {str(name) for name in required}
