"""Whether a text asserts what it mentions: negation, answers taken back, and mere questions.

All rules look at words around an occurrence, inside its clause, never at the length of the answer.
"""

from __future__ import annotations

import re

from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

Occurrence = tuple[int, int]
"""A half-open range of tokens."""

_WINDOW = 6
"""How many words before a name a negation may stand: "I do not think that it is Paris"."""

_NEGATORS = word_set(
    "not never nor neither cannot without except excluding unlike isnt wasnt arent werent dont doesnt didnt wont cant couldnt "
    "shouldnt wouldnt hasnt havent hadnt aint mustnt"
)
_BREAKERS = word_set("but rather however though although because yet instead while whereas")
_ALL_BUT = word_set("anything anyone anywhere anybody everything everyone everywhere all")
_HARMLESS_AFTER = word_set("only just merely simply surprisingly least doubt question wonder fail hesitate")
_PAIRS = frozenset(
    {("rather", "than"), ("instead", "of"), ("other", "than"), ("opposed", "to"), ("no", "longer")}
)
_AUXILIARIES = word_set("is was are were has have had did does do can could would should will may might be")
_CONTRACTED = word_set("isnt wasnt arent werent doesnt didnt cannot cant hasnt hadnt wont wouldnt couldnt")
_FALSE = word_set("wrong incorrect false untrue")
_ABBREVIATED = word_set("mount saint dr mr mrs ms prof sir jr no vs gen col rev")
_BOUNDARY = re.compile(r"[,;:!?()\n—。、，]|\.(?:\s|$)|\s-\s")
SENTENCE_END = re.compile(r"[!?\n。]|\.(?:\s|$)")
_NEGATORS_BEFORE = (
    "不是",
    "并非",
    "並非",
    "不叫",
    "ไม่ใช่",
    "bukan ",
    "bukanlah ",
    "không phải là ",
    "không phải ",
)
_NEGATORS_AFTER = ("ではな", "じゃな", "가 아니", "이 아니", "는 아니", "은 아니", "아니", " அல்ல", " இல்லை")
_LANGUAGE_NEGATORS = {
    "de": word_set("nicht kein keine keinen nie"),
    "fr": word_set("pas jamais ni"),
    "es": word_set("no nunca ni tampoco"),
    "pt": word_set("não nunca nem"),
    "it": word_set("non mai né"),
    "id": word_set("bukan bukanlah tidak"),
    "ms": word_set("bukan bukanlah tidak"),
    "vi": word_set("không chẳng"),
    "tl": word_set("hindi"),
    "fil": word_set("hindi"),
}


def negated(words: Words, occurrence: Occurrence, language: str = "en") -> str:
    """The words that deny the occurrence before or after it, "" where nothing does."""
    return _denied_before(words, occurrence[0], language) or _denied_after(words, occurrence)


def denied_before(words: Words, occurrence: Occurrence, language: str = "en") -> bool:
    """Whether a negation stands before the occurrence in its clause: "not Paris", "rather than Paris"."""
    return bool(_denied_before(words, occurrence[0], language))


def _denied_before(words: Words, start: int, language: str) -> str:
    tokens = words.tokens
    others = _LANGUAGE_NEGATORS.get(language[:3].rstrip("-_"), frozenset())
    if start == 0:
        return ""
    for index in range(start - 1, max(-1, start - 1 - _WINDOW), -1):
        if ends_clause(words, index + 1):
            break
        token = tokens[index]
        if token == "but" and index and tokens[index - 1] in _ALL_BUT:
            return words.quote(index - 1, start)
        if token in _BREAKERS and not (
            token in ("rather", "instead") and (token, tokens[index + 1]) in _PAIRS and index + 1 < start
        ):
            break
        if (
            token == "than"
            and index
            and tokens[index - 1] == "other"
            and "none" in tokens[max(0, index - 2) : index]
        ):
            break
        following = tokens[index + 1]
        if (token in _NEGATORS or token in others) and following not in _HARMLESS_AFTER:
            if token == "without" and "doubt" in tokens[index + 1 : index + 3]:
                continue
            return words.quote(index, start)
        if index + 1 < start and (token, following) in _PAIRS:
            return words.quote(index, start)
        if token == "no" and index >= start - 2 and following not in _HARMLESS_AFTER:
            return words.quote(index, start)
    if not words.text.isascii():
        before = words.text[: words.spans[start][0]].casefold()[-20:]
        for negator in _NEGATORS_BEFORE:
            if before.endswith(negator):
                return f"'{negator.strip()}'"
    return ""


def _denied_after(words: Words, occurrence: Occurrence) -> str:
    tokens, end = words.tokens, occurrence[1]
    following = tokens[end : end + 3]
    if not following:
        return ""
    if not words.text.isascii():
        after = words.text[words.spans[end - 1][1] :][:12]
        for negator in _NEGATORS_AFTER:
            if after.startswith(negator) or after.lstrip().startswith("아니"):
                return f"'{negator.strip()}'"
    if ends_clause(words, end):
        return ""
    if following[0] in _CONTRACTED:
        return words.quote(end, end + 1)
    if len(following) > 1 and following[0] in _AUXILIARIES:
        if following[1] in ("not", "never") and following[-1] not in _HARMLESS_AFTER:
            return words.quote(end, end + 2)
        if following[1] in _FALSE:
            return words.quote(end, end + 2)
    return ""


def ends_clause(words: Words, index: int) -> bool:
    """Whether a clause ends between the tokens index - 1 and index."""
    gap = words.gap(index)
    if gap == " " or _BOUNDARY.search(gap) is None:
        return False
    before = words.tokens[index - 1]
    abbreviated = gap.startswith(". ") and (before in _ABBREVIATED or len(before) == 1)
    return not abbreviated


_TAKEN_BACK = re.compile(
    r"(?:^|[.!?…\n-]|, )\s*(?:no,? ?wait|wait|correction|scratch that|i meant?|i was wrong|my mistake|sorry|on second thoughts?"
    r"|actually,? (?:it'?s|it (?:is|was)|that'?s|the (?:correct|right) answer|no)|no,)[\s,:.!-]",
    re.IGNORECASE,
)


def taken_back(words: Words, occurrence: Occurrence) -> str:
    """The marker after the occurrence that withdraws it ("wait", "correction:", "no, ..."), "" where there is none."""
    rest = words.text[words.spans[occurrence[1] - 1][1] :][:400]
    found = _TAKEN_BACK.search(rest) if rest else None
    return f"'{found.group().strip(' .,-')}'" if found else ""


def in_question(words: Words, occurrence: Occurrence) -> bool:
    """Whether the occurrence stands in a sentence that ends with a question mark, and more text follows."""
    if "?" not in words.text:
        return False
    for index in range(occurrence[1], len(words.tokens) + 1):
        gap = words.gap(index)
        end = SENTENCE_END.search(gap)
        if end is not None:
            return end.group()[0] == "?" and index < len(words.tokens)
    return False
