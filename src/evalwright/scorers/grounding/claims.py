"""Splits an answer into claims, each with what it cites.

A claim is a sentence with all its citations, as in ALCE. A citation after a full stop belongs to
the sentence before it, unless the line begins with one. A line that holds nothing but citations
("Sources: [1], [2]") belongs to every claim without citations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.core.sentences import sentences
from evalwright.scorers.grounding.citations import find_citations
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words, word_set

_FIRST_MARK = 0xE000
_MAX_CITATIONS = 6000
"""Most citations that are replaced by a private-use character while sentences are split."""
_MARK = "[\ue000-\uf8ff]"
_MARKS = re.compile(_MARK)
_AFTER_END = re.compile(
    rf"([.!?。！？…]+[\"'”’»)]*)([ \t]?)({_MARK}(?:[ \t,;]?{_MARK})*)(?=\s|$)"
)
_CITED_END = re.compile(rf"(?:{_MARK}[\s,;]?)+[.!?。！？…]*$")
_LEFT_OVER = re.compile(
    r"\s+(?=[.,;:!?])|\s?\((?:sources?|see|quellen?|fuentes?|fontes?|cf\.?)?\s?[:：]?\s*\)",
    re.IGNORECASE,
)
_MARK_AT_START = re.compile(rf"[ \t]*(?:[-*•–]|\d{{1,3}}[.)])?[ \t]*{_MARK}")
_OPENING = re.compile(
    r"[-–•*]\s{1,4}|[*_#\s]{0,6}(?:(?:final |short"
    r" )?answer|explanation|reason(?:ing)?|evidence|quote|support|justification|note|details?"
    r"|summary|antwort|begründung|respuesta|explicación|réponse|explication)[*_\s]{0,4}[:：][*_\s]{0,4}",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:sure|certainly|of course|great question|hello|hi|thank you|thanks|you're"
    r" welcome)(?: thing| there)?"
    r"|(?:let me|i'll|i will|i need to|i have|i've|i)"
    r" (?:check|checked|see|look|looked|think|read|find|search|searched)(?: \w+){0,6}"
    r"|(?:i )?hope (?:this|that|it) helps|(?:the )?(?:other|remaining)"
    r" (?:passages?|sources?)[^.!?\n\d]{0,60}"
    r"|(?:let me know if|feel free to|here(?: is|'s)"
    r" (?:the|your|my))[^.!?\n]{0,60}|based on the (?:passages?|sources?)(?: provided|"
    r" above| given)?",
    re.IGNORECASE,
)
_POINTING_WORDS = word_set(
    "and or but so also see source sources reference references citation citations"
    " passage passages according to as in from by per the",
    "a an of laut nach und et y selon según e o quelle quellen fuente fuentes fonte"
    " fontes fonti cited this that it is was can be found",
    "find i stated mentioned said given written answer information comes taken here"
    " told tells",
)
"""A sentence of only these words points to a source: "This is stated in passage 2"."""


@dataclass(slots=True)
class Claim:
    """A statement without its citations, the cited ids in order, and its number of words."""

    text: str
    cited: tuple[str, ...] = ()
    words: int = 0


def extract_claims(
    text: str, passages: Sequence[str] = ()
) -> tuple[list[Claim], tuple[str, ...]]:
    """Split a reply into claims.

    Returns:
        The claims, and the cited ids that belong to no claim (in a reply of citations only).
    """
    region = re.sub(
        r"[^\S\n]+", " ", _MARKS.sub(" ", answer_region(text, paragraphs=True))
    )
    cited = [
        citation.ids for citation in find_citations(region, passages)[:_MAX_CITATIONS]
    ]
    claims: list[Claim] = []
    loose: list[str] = []
    for line in _mark_citations(region, passages).splitlines():
        if not _MARK_AT_START.match(line):
            line = _AFTER_END.sub(r"\3\1", line)
        for sentence in sentences(line):
            ids = [
                name
                for mark in _MARKS.findall(sentence)
                for name in cited[ord(mark) - _FIRST_MARK]
            ]
            statement = _LEFT_OVER.sub(
                "", _MARKS.sub("", _CITED_END.sub("", sentence))
            ).strip(" \t,;")
            statement = (
                statement[opening.end() :]
                if (opening := _OPENING.match(statement))
                else statement
            )
            tokens = Words(plain(statement)).tokens
            if not all(token in _POINTING_WORDS for token in tokens):
                claims.append(
                    Claim(
                        re.sub(r" {2,}", " ", statement),
                        tuple(dict.fromkeys(ids)),
                        len(tokens),
                    )
                )
            elif claims and sentence.strip() != line.strip():
                claims[-1].cited = tuple(dict.fromkeys((*claims[-1].cited, *ids)))
            else:
                loose += ids
    for claim in claims:
        claim.cited = claim.cited or tuple(dict.fromkeys(loose))
    return claims, () if claims else tuple(dict.fromkeys(loose))


def _mark_citations(region: str, passages: Sequence[str]) -> str:
    """Replace each citation by one private-use character."""
    marked = ""
    position = 0
    for number, citation in enumerate(
        find_citations(region, passages)[:_MAX_CITATIONS]
    ):
        marked += region[position : citation.start] + chr(_FIRST_MARK + number)
        position = citation.end
    return marked + region[position:]


def is_courtesy(claim: Claim) -> bool:
    """Return whether a claim states nothing: a greeting, an announcement, a question."""
    text = claim.text.strip()
    if text.endswith(("?", "？")) or (
        text.endswith((":", "：")) and not any(map(str.isdigit, text))
    ):
        return True
    return _COURTESY.fullmatch(text.strip(" .!:,")) is not None
