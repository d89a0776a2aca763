r"""Finds where a reply marks its answer: its claims.

A claim is a field of JSON, a tag, `\boxed{}`, `[[B]]`, what follows `####`, "Answer:" or "the
answer is" in the languages of `marks.toml`, or a last line in bold. `reply.py` decides which of
them counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers.text.cues import cue_words, has_spaceless_cue
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import placed_box
from evalwright.scorers.text.tokens import fold

FIELD_NAMES = rf"{alternatives('field')}|{alternatives('label')}"

_TAG = lazy_pattern(
    rf"<({FIELD_NAMES})>\s*([^<]{{1,4000}})(?:<|$)|\[\[([^\[\]\n]{{1,80}})\]\]",
    re.IGNORECASE,
)

_PAIR = lazy_pattern(
    rf"[\"'](?:{FIELD_NAMES})[\"']\s*[:：]\s*(?:\"([^\"\n]{{1,400}})\"|'([^'\n]{{1,400}})'|"
    rf"([^\s,}}\]\"']{{1,80}}))",
    re.IGNORECASE,
)

_HASHES = lazy_pattern(r"(?m)^[^\S\n]*####[ \t]*(?=\S)")

_TOKEN = r"(?=[\s*(\[\"'（]{0,5}(?:[A-J](?![^\W_]|['’])|[(（][^\W_][)）]|\d{1,2}번))"
"""What may follow a mark with no word between: a letter, something in brackets, a numbered option.
"""

_END = r"[*_\"”'’)」』】\]]{0,4}"

_WORD = r"[^\s:：,.;()*=|]{1,20}"

_COLON = r"\s?[:：៖]|\s?(?:->|=>|→|⇒|=)"

_IS = (
    rf"[ \t](?:{alternatives('is', True)})(?:"
    r" that)?(?=[\s:：*(\[\"'“«$\\])\s?[:：]?|(?:은|는)(?=[\s:：*(\[\"'‘“$\\])\s?[:：]?|\s[—–-]"
    r"(?=\s)"
)


def _mark_pattern(table: str) -> str:
    """Build the pattern of an answer mark in a script with spaces.

    A mark is a noun such as "answer", up to four words, and what links it to the answer.
    """
    return (
        rf"(?:{alternatives(table, True)})(?:(?:{alternatives('suffix')})(?![^\W_]))?{_END}"
        r"(?:(?P<mid>(?:"
        rf" (?![A-J](?![^\W_])){_WORD}){{0,4}}?){_END}(?P<link>{_COLON}|{_IS}|["
        rf" \t]{{0,4}}\n)|(?<=\S)(?=[ \t(\[（]){_TOKEN}|(?<=[\u0900-\u0dff])(?= \d))"
    )


ANSWER_MARKS = (
    lazy_pattern(r"(?<![^\W_])" + _mark_pattern("label"), re.IGNORECASE),
    lazy_pattern(
        r"(?:(?:(?<=[\n.!?;:।。！？,，،*])|^)[\s#*>_|-]{0,8}(?:[^\s:：,.;()]{1,20}["
        r" \t]){0,2}?"
        r"|(?<![\w\"“'«])(?:final|correct|right|my|our|the|la|le|el|il|die|das|het)\s"
        r"(?:[^\s:：,.;()]{1,20}["
        r" \t]){0,2}?)" + _mark_pattern("weak"),
        re.IGNORECASE,
    ),
    lazy_pattern(
        rf"(?:{alternatives('label', False)}|{alternatives('weak', False)}){_END}(?:(?P<mid>"
        rf"(?![A-J](?![^\W_]))[^\s:：៖,.;()。"
        rf"，、*=\n]{{0,14}}?\s?){_END}"
        rf"(?P<link>{_COLON}|[】」]|\s?(?:{alternatives('is', False)})\s?[:：]?|["
        rf" \t]{{0,4}}\n)|{_TOKEN})"
    ),
)

_OPENS_LINE = lazy_pattern(r"[\s#*>_|【「(-]{0,8}$")

ANSWER_INITIAL = lazy_pattern(
    r"(?:^|(?<=\n))[ \t]{0,4}A[:：](?!.*\n[ \t]{0,4}B[:：.)])"
)
"""An "A:" that introduces an answer and is not the first of several options."""

_SKIPPED = " \t\r\n:：*_=>→"

_JUDGED = lazy_pattern(
    rf"[\"'“(*]{{0,3}}(?!(?:true|false)(?![^\W_]))(?:(?:{alternatives('right')}"
    rf"|{'|'.join(sorted(cue_words('false')))}|based|clear|obvious|follows|supported)(?![^\W_]))",
    re.IGNORECASE,
)
"""How a sentence about an answer continues if it does not state it: "the answer is correct"."""

_DENIED = cue_words("false") | cue_words("negation") - {
    "a",
    "la",
    "na",
    "ne",
    "n",
    "o",
    "si",
    "sio",
}

BOLD_TEXT = lazy_pattern(r"(?<!\*)\*\*([^*\n]{1,120})\*\*(?!\*)")


class Claim(NamedTuple):
    """A place where a reply marks its answer, and the rule that found it.

    `mark_start` is where the mark begins; `start` and `end` delimit the answer that it sets apart.
    """

    mark_start: int
    start: int
    end: int
    rule: str


def find_claims(text: str) -> Iterator[Claim]:
    """Find all claims of a reply, in no particular order."""
    for tag in _TAG.finditer(text):
        group = 2 if tag[2] else 3
        yield Claim(
            tag.start(), *tag.span(group), f"in <{tag[1]}>" if tag[1] else "in [[ ]]"
        )
    for pair in _PAIR.finditer(text):
        group = next(group for group in (1, 2, 3) if pair[group])
        yield Claim(pair.start(), *pair.span(group), "a field")
    if (box := placed_box(text)) is not None:
        start = text.index("{", box[0]) + 1
        yield Claim(box[0], start, start + len(box[1]), "in \\boxed{}")
    for pattern in (*ANSWER_MARKS, _HASHES, ANSWER_INITIAL):
        for mark in pattern.finditer(text):
            if (claim := _claim_behind_mark(text, mark)) is not None:
                yield claim
    last = text.rstrip().rpartition("\n")[2].strip()
    if (
        "\n" in text.strip()
        and (bold := BOLD_TEXT.fullmatch(last.rstrip(" .。"))) is not None
    ):
        start = text.rindex(bold[1])
        yield Claim(start, start, start + len(bold[1]), "the last line, in bold")


def _claim_behind_mark(text: str, mark: re.Match[str]) -> Claim | None:
    """Return the claim that a mark introduces: the rest of its line, or the next line."""
    groups = mark.groupdict()
    line = text.rfind("\n", 0, mark.start()) + 1
    before = text[max(line, mark.start() - 24) : mark.start()]
    if "\n" in (groups.get("link") or "") and not _OPENS_LINE.fullmatch(
        text[line : mark.start()]
    ):
        return None
    clause = (
        re.split(r"[.,;:!?]", before)[-1].split()[-2:]
        + (groups.get("mid") or "").split()
    )
    if not _DENIED.isdisjoint(
        fold(" ".join(clause).casefold()).split()
    ) or has_spaceless_cue("negation", groups.get("mid") or ""):
        return None
    start = (
        mark.end() + len(text[mark.end() :]) - len(text[mark.end() :].lstrip(_SKIPPED))
    )
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    colon = not groups or (groups.get("link") or "").strip()[-1:] in (
        *":：៖】」=>→⇒",
        "",
    )
    if not colon and _JUDGED.match(text, start):
        return None
    return Claim(
        mark.start(), start, end, f"after '{mark.group().strip(' *#_>|').strip()}'"
    )
