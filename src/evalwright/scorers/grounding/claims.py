"""The claims of an answer, each with what it cites.

A claim is a sentence, or the part of one that ends with its own citation: "It opened in 1987 [1] and closes at noon [2]" makes two.
A citation after a full stop belongs to the sentence before it, unless the line begins with one. Citations that stand alone at
the end ("Sources: [1], [2]") belong to every claim that has none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalwright.core.sentences import sentences
from evalwright.scorers.grounding.citations import extended, find_citations
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

_BASE, _MOST = 0xE000, 6000
"""While sentences are cut, a citation is one character of the private use area."""
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_SPACES = re.compile(r"[^\S\n]+")
_MARKS = "[\ue000-\uf8ff]"
_AFTER_END = re.compile(rf"([.!?。！？…]+[\"'”’»)]*)([ \t]?)({_MARKS}(?:[ \t,;]?{_MARKS})*)(?=\s|$)")
_LABELLED = re.compile(rf"[ \t]*(?:[-*•–]|\d{{1,3}}[.)])?[ \t]*{_MARKS}")
_GROUP = re.compile(rf"{_MARKS}(?:\s?[,;]?\s?(?:and )?{_MARKS})*")
_SOURCES = re.compile(
    r"\s?[*#_]{0,4}\s?(?:sources?|references?|citations?|cited|passages?|quellen?|fuentes?|fontes?|fonti|出典|来源|資料)[*_]{0,4}\s?[:：]?[*_]{0,4}\s?",
    re.IGNORECASE,
)
_LEADS = word_set(
    "and or but so also see source sources reference references citation citations passage passages according to as in from by per "
    "the a an of laut nach und et y selon según e o"
)
_COURTESY = re.compile(
    r"\s*(?:(?:sure|certainly|of course|great question|hello|hi|thank you|thanks|you're welcome)(?: thing| there)?"
    r"|(?:let me|i'll|i will|i need to|i have|i've|i) (?:check|checked|see|look|looked|think|read|find|search|searched)(?: \w+){0,6}"
    r"|(?:i )?hope (?:this|that|it) helps|(?:the )?(?:other|remaining) (?:passages?|sources?)[^.!?\n\d]{0,60}|let me know if[^.!?\n]{0,60}|feel free to[^.!?\n]{0,60}"
    r"|here(?: is|'s) (?:the|your|my) (?:answer|response)|based on the (?:passages?|sources?)(?: provided| above| given)?)\s*[.!:,]?\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"[-–•*]\s{1,4}")
_LABEL = re.compile(
    r"[*_#\s]{0,6}(?:(?:final |short )?answer|explanation|reason(?:ing)?|evidence|quote|support|justification|note|details?|summary"
    r"|antwort|begründung|respuesta|explicación|réponse|explication)[*_\s]{0,4}[:：][*_\s]{0,4}",
    re.IGNORECASE,
)
_POINTING = _LEADS | word_set(
    "this that it is was can be found find i stated mentioned said given written answer information comes taken here told tells"
)
"""A sentence of these words alone says only where something stands: "This is stated in passage 2"."""
_ASIDE = re.compile(
    rf"\(\s?(?:sources?|see|quellen?|fuentes?|fontes?|cf\.?)?\s?[:：]?\s?({_MARKS}(?:[ ,;]{{0,2}}{_MARKS})*)\s?\)",
    re.IGNORECASE,
)
_FEWEST = 4
"""A tail of fewer words after a sentence's last citation belongs to the claim before it ("63 [3] clocks")."""


@dataclass(slots=True)
class Claim:
    """What is said, without citations, and the ids that it cites, in order."""

    text: str
    cited: tuple[str, ...] = ()
    words: int = field(default=0)


def claims_of(text: str, passages: Sequence[str] = ()) -> tuple[list[Claim], tuple[str, ...]]:
    """The claims of a reply, and the ids cited that belong to no claim at all (a reply of citations only)."""
    region = _SPACES.sub(" ", _PRIVATE.sub(" ", answer_region(text, paragraphs=True)))
    marked, cited = _with_marks(region, passages)
    claims: list[Claim] = []
    loose: list[str] = []
    for line in _ASIDE.sub(r"\1", marked).splitlines():
        if not _LABELLED.match(line):
            line = _AFTER_END.sub(r"\3\1", line)
        listed = _SOURCES.match(line)
        rest = _GROUP.sub("", line[listed.end() :] if listed else line)
        if _GROUP.search(line) and not any(map(str.isalnum, rest)) and (claims or listed):
            loose += _ids(line, cited)
            continue
        for sentence in sentences(line):
            _cut(sentence, cited, claims, loose)
    for claim in claims:
        if not claim.cited:
            claim.cited = tuple(dict.fromkeys(loose))
    return claims, () if claims else tuple(dict.fromkeys(loose))


def is_courtesy(claim: Claim) -> bool:
    """Whether it claims nothing: a greeting, an announcement, a question."""
    text = claim.text.strip()
    return (
        _COURTESY.fullmatch(text) is not None
        or text.endswith(("?", "？"))
        or (text.endswith((":", "：")) and not _digits(text))
    )


def _with_marks(region: str, passages: Sequence[str]) -> tuple[str, list[tuple[str, ...]]]:
    out: list[str] = []
    cited: list[tuple[str, ...]] = []
    position = 0
    for citation in find_citations(region, passages)[:_MOST]:
        start, end = extended(region, citation)
        out.append(region[position : max(position, start)])
        out.append(chr(_BASE + len(cited)))
        if end > citation.end:
            out.append(" ")
        cited.append(citation.ids)
        position = max(position, end)
    out.append(region[position:])
    return "".join(out), cited


def _ids(text: str, cited: Sequence[tuple[str, ...]]) -> list[str]:
    places = (ord(mark) - _BASE for mark in re.findall(_MARKS, text))
    return [name for place in places if place < len(cited) for name in cited[place]]


def _cut(sentence: str, cited: Sequence[tuple[str, ...]], claims: list[Claim], loose: list[str]) -> None:
    """Add the claims of one sentence; what only points belongs to the claim before it, or to what follows."""
    if not _says_something(_GROUP.sub(" ", sentence), _POINTING):
        ids = _ids(sentence, cited)
        if claims:
            claims[-1].cited = tuple(dict.fromkeys((*claims[-1].cited, *ids)))
        else:
            loose += ids
        return
    pending: list[str] = []
    own = len(claims)
    position = 0
    for group in _GROUP.finditer(sentence):
        text, position = sentence[position : group.start()], group.end()
        ids = _ids(group.group(), cited)
        if _says_something(text):
            claims.append(_claim(text, [*pending, *ids]))
            pending = []
        elif len(claims) > own:
            claims[-1].cited = tuple(dict.fromkeys((*claims[-1].cited, *ids)))
        else:
            pending += ids
    rest = sentence[position:]
    if _says_something(rest):
        tail = _claim(rest, pending)
        if len(claims) > own and not pending and tail.words < _FEWEST:
            claims[-1].text = f"{claims[-1].text} {tail.text}"
            claims[-1].words += tail.words
        else:
            claims.append(tail)


def _claim(text: str, ids: Sequence[str]) -> Claim:
    text = text.strip(" \t,;")
    for opening in (_BULLET, _LABEL):
        if (found := opening.match(text)) is not None:
            text = text[found.end() :]
    return Claim(text, tuple(dict.fromkeys(ids)), len(Words(plain(text)).tokens))


def _says_something(text: str, nothing: frozenset[str] = _LEADS) -> bool:
    return any(token not in nothing for token in Words(plain(text)).tokens)


def _digits(text: str) -> bool:
    return any(map(str.isdigit, text))
