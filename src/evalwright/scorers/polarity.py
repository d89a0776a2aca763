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
_HARMLESS_AFTER = word_set(
    "only just merely simply surprisingly least doubt question wonder fail hesitate mistaken wrong"
)
_PAIRS = frozenset(
    {("rather", "than"), ("instead", "of"), ("other", "than"), ("opposed", "to"), ("no", "longer")}
)
_AUXILIARIES = word_set("is was are were has have had did does do can could would should will may might be")
_FORMS_OF_BE = word_set("is was are were isnt wasnt arent werent")
_DENIED_OF_BE = word_set("the it correct right true that one what who where which my an answer")
_CONTRACTED = word_set("isnt wasnt arent werent doesnt didnt cannot cant hasnt hadnt wont wouldnt couldnt")
_FALSE = word_set("wrong incorrect false untrue")
_CALLED_WRONG = word_set("wrong incorrect false untrue out ruled mistake right correct")
_WRONG_AFTER = re.compile(
    r"[\"']?\s+(?:is|was|would be|seems|are|would)\s+(?:a |the |an )?(?:\w+ly )?(?:wrong|incorrect|false|untrue|not (?:right|correct)"
    r"|out of the question|ruled out|a mistake)\b",
    re.IGNORECASE,
)
_TRIGGERS = _NEGATORS | {first for first, _ in _PAIRS} | {"no", "but"}
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
    "не ",
    "ليس ",
    "ليست ",
)
_NEGATORS_AFTER = (
    "ではな",
    "じゃな",
    "ではありませ",
    "じゃありませ",
    " नहीं",
    "가 아니",
    "이 아니",
    "는 아니",
    "은 아니",
    "아니",
    " அல்ல",
    " இல்லை",
)
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
    if start == 0:
        return ""
    others = _LANGUAGE_NEGATORS.get(language[:3].rstrip("-_"), frozenset())
    before = tokens[max(0, start - 1 - _WINDOW) : start]
    # Most answers have none of these words, and looking for them is much faster than walking back through the clause.
    if not (_TRIGGERS.isdisjoint(before) and others.isdisjoint(before)):
        for index in range(start - 1, max(-1, start - 1 - _WINDOW), -1):
            if ends_clause(words, index + 1):
                break
            verdict = _denies_at(tokens, index, start, others)
            if verdict == "breaks":
                break
            if verdict == "denies" and not _asks_back(words, index):
                return words.quote(index, start)
    if not words.text.isascii():
        text = words.text[: words.spans[start][0]].casefold()[-20:]
        for negator in _NEGATORS_BEFORE:
            if text.endswith(negator):
                return f"'{negator.strip()}'"
    return ""


def _asks_back(words: Words, index: int) -> bool:
    """Whether a contraction opens a question that expects a yes: "Isn't it Paris?"."""
    tokens = words.tokens
    if tokens[index] not in _CONTRACTED or tokens[index + 1 : index + 2] not in (["it"], ["that"], ["this"]):
        return False
    if index and SENTENCE_END.search(words.gap(index)) is None:
        return False
    return words.text[words.spans[index][0] :].rstrip().endswith("?")


def _denies_at(tokens: list[str], index: int, start: int, others: frozenset[str]) -> str:
    """What the word at `index` does to a name that starts later in its clause: "denies", "breaks" (ends the scope), ""."""
    token, following = tokens[index], tokens[index + 1]
    earlier = tokens[index - 1] if index else ""
    if token == "but" and earlier in _ALL_BUT:
        # "It cannot be anything but Paris" denies twice.
        return "breaks" if not _NEGATORS.isdisjoint(tokens[max(0, index - 6) : index]) else "denies"
    inside = index + 1 < start
    if inside and (token, following) in _PAIRS:
        none_other = token == "other" and earlier in ("none", "no")
        return "breaks" if none_other else "denies"
    if token in _BREAKERS:
        return "breaks"
    if following in _HARMLESS_AFTER or (token == "without" and "doubt" in tokens[index + 1 : index + 3]):
        return ""
    if token in _NEGATORS or token in others:
        return "denies"
    return "denies" if token == "no" and index >= start - 2 else ""


def _denied_after(words: Words, occurrence: Occurrence) -> str:
    tokens, end = words.tokens, occurrence[1]
    if end >= len(tokens):
        return ""
    if not words.text.isascii():
        after = words.text[words.spans[end - 1][1] :][:12]
        for negator in _NEGATORS_AFTER:
            if after.startswith(negator) or after.lstrip().startswith(("아니", "아닙", "아닌")):
                return f"'{negator.strip()}'"
    first = tokens[end]
    if not _CALLED_WRONG.isdisjoint(tokens[end : end + 7]):
        called = _WRONG_AFTER.match(words.text[words.spans[end - 1][1] :][:80])
        if called is not None:
            return f"'{called.group().strip()}'"
    if (first not in _CONTRACTED and first not in _AUXILIARIES) or ends_clause(words, end):
        return ""
    if first in _CONTRACTED:
        return words.quote(end, end + 1) if _is_denial(words, end, end + 1) else ""
    second = tokens[end + 1] if end + 1 < len(tokens) else ""
    if second in _FALSE or (second in ("not", "never") and _is_denial(words, end, end + 2)):
        return words.quote(end, end + 2)
    return ""


def _is_denial(words: Words, verb: int, rest: int) -> bool:
    """Whether "X is not" goes on to deny X ("is not the capital", "is not."), and not to describe it ("is not large")."""
    if rest >= len(words.tokens) or ends_clause(words, rest):
        return True
    following = words.tokens[rest]
    if following in _HARMLESS_AFTER:
        return False
    return words.tokens[verb] not in _FORMS_OF_BE or following in _DENIED_OF_BE


def ends_clause(words: Words, index: int) -> bool:
    """Whether a clause ends between the tokens index - 1 and index."""
    gap = words.gap(index)
    if gap == " " or _BOUNDARY.search(gap) is None:
        return False
    before = words.tokens[index - 1]
    abbreviated = gap.startswith(". ") and (before in _ABBREVIATED or len(before) == 1)
    return not abbreviated


_TAKEN_BACK = re.compile(
    r"(?:^|[.!?…\n;-]|, )\s*(?:no,? ?wait|wait|correction|scratch that|strike that|i meant?|or rather|let me correct|oops|(?:my )?apologies|edit:|i take (?:that|it) back"
    r"|that(?:'?s| is| was) (?:wrong|incorrect|not (?:right|correct))|i was wrong|my mistake|sorry|on second thoughts?"
    r"|actually,? (?:it'?s|it (?:is|was)|that'?s|the (?:correct|right) answer|no)|no,)[\s,:.!-]",
    re.IGNORECASE,
)


_TAKING_BACK = word_set(
    "oops apologies edit take incorrect right strike wait correction correct scratch mean meant wrong mistake sorry thought thoughts actually rather no"
)


def taken_back(words: Words, occurrence: Occurrence) -> str:
    """The marker after the occurrence that withdraws it ("wait", "correction:", "no, ..."), "" where there is none."""
    if _TAKING_BACK.isdisjoint(words.tokens[occurrence[1] :]):
        return ""
    rest = words.text[words.spans[occurrence[1] - 1][1] :][:400]
    found = _TAKEN_BACK.search(rest) if rest else None
    return f"'{found.group().strip(' .,-')}'" if found else ""


def withdraws(text: str) -> bool:
    """Whether a text takes something back anywhere ("no, wait")."""
    return _TAKEN_BACK.search(text) is not None


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
