"""Whether a text asserts what it mentions: negation, answers taken back, several candidates, and giving no answer.

All rules look at words around an occurrence, inside its clause, never at the length of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalwright.scorers.text.tokens import Words

Occurrence = tuple[int, int]
"""A half-open range of tokens."""

_WINDOW = 6
"""How many words before a name a negation may stand: "I do not think that it is Paris"."""

_NEGATORS = frozenset(
    "not never nor neither cannot without except excluding unlike isnt wasnt arent werent dont doesnt didnt wont cant couldnt "
    "shouldnt wouldnt hasnt havent hadnt aint mustnt".split()
)
_BREAKERS = frozenset("but rather however though although because yet instead while whereas".split())
_HARMLESS_AFTER = frozenset("only just merely simply surprisingly least doubt question wonder fail hesitate".split())
_PAIRS = frozenset({("rather", "than"), ("instead", "of"), ("other", "than"), ("opposed", "to"), ("no", "longer")})
_AUXILIARIES = frozenset("is was are were has have had did does do can could would should will may might be".split())
_CONTRACTED = frozenset("isnt wasnt arent werent doesnt didnt cannot cant hasnt hadnt wont wouldnt couldnt".split())
_FALSE = frozenset("wrong incorrect false untrue".split())
_ABBREVIATED = frozenset("mount saint dr mr mrs ms prof sir jr no vs gen col rev".split())
_BOUNDARY = re.compile(r"[,;:!?()\n—。、，]|\.(?:\s|$)|\s-\s")
_SENTENCE_END = re.compile(r"[!?\n。]|\.(?:\s|$)")
_NEGATORS_BEFORE = ("不是", "并非", "並非", "不叫", "ไม่ใช่", "bukan ", "bukanlah ", "không phải là ", "không phải ")
_NEGATORS_AFTER = ("ではな", "じゃな", "가 아니", "이 아니", "는 아니", "은 아니", "아니", " அல்ல", " இல்லை")
_LANGUAGE_NEGATORS = {
    "de": frozenset("nicht kein keine keinen nie".split()),
    "fr": frozenset("pas jamais ni".split()),
    "es": frozenset("no nunca ni tampoco".split()),
    "pt": frozenset("não nunca nem".split()),
    "it": frozenset("non mai né".split()),
    "id": frozenset("bukan bukanlah tidak".split()),
    "ms": frozenset("bukan bukanlah tidak".split()),
    "vi": frozenset("không chẳng".split()),
    "tl": frozenset("hindi".split()),
    "fil": frozenset("hindi".split()),
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
        if _is_boundary(words, index + 1):
            break
        token = tokens[index]
        if token in _BREAKERS and not (
            token in ("rather", "instead") and (token, tokens[index + 1]) in _PAIRS and index + 1 < start
        ):
            break
        if token == "than" and index and tokens[index - 1] == "other" and "none" in tokens[max(0, index - 2) : index]:
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
            if after.startswith(negator):
                return f"'{negator.strip()}'"
    if _is_boundary(words, end):
        return ""
    if following[0] in _CONTRACTED:
        return words.quote(end, end + 1)
    if len(following) > 1 and following[0] in _AUXILIARIES:
        if following[1] in ("not", "never") and following[-1] not in _HARMLESS_AFTER:
            return words.quote(end, end + 2)
        if following[1] in _FALSE:
            return words.quote(end, end + 2)
    return ""


def _is_boundary(words: Words, index: int) -> bool:
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
        end = _SENTENCE_END.search(gap)
        if end is not None:
            return end.group()[0] == "?" and index < len(words.tokens)
    return False


_NOT_ALTERNATIVES = frozenset("so more less thereabouts later earlier even also simply just".split())
_SYNONYM_CUES = frozenset("known called aka ie formerly meaning officially named synonym".split())
_ITEM = re.compile(r",|;|/|\n|\band\b|\bor\b|&", re.IGNORECASE)
_VERBS = frozenset("is was are were be has have had did does do the a an in on of who which that also by for as with to".split())
_COUNTRIES = frozenset(
    "argentina australia austria bangladesh belgium bolivia brazil britain bulgaria canada chile china colombia croatia cuba "
    "czechia denmark ecuador egypt england estonia ethiopia europe finland france germany ghana greece hungary iceland india "
    "indonesia iran iraq ireland israel italy japan kazakhstan kenya korea latvia lithuania malaysia mexico morocco nepal "
    "netherlands nigeria norway pakistan peru philippines poland portugal romania russia scotland serbia singapore slovakia "
    "slovenia spain sweden switzerland syria taiwan tanzania thailand turkey uganda uk ukraine uruguay us usa venezuela vietnam "
    "wales zambia zimbabwe africa asia america scotland kingdom states".split()
)


def among_alternatives(words: Words, occurrence: Occurrence, is_target: Callable[[int, int], bool]) -> str:
    """The other candidate that is offered beside the occurrence ("Paris or Lyon"), "" where there is none.

    is_target: whether the tokens from start to end contain a target, so that "tungsten or wolfram" is no choice.
    """
    tokens = words.tokens
    start, end = occurrence
    if "or" in tokens:
        left, right = _sentence(words, start, end)
        if (found := _after_or(words, end, right, is_target)) or (found := _before_or(words, start, left, is_target)):
            return found
    if "/" in words.text:
        if end < len(tokens) and words.gap(end).strip() == "/" and not is_target(start, min(end + 3, len(tokens))):
            return words.quote(start, end + 1)
        if start and words.gap(start).strip() == "/" and not is_target(max(0, start - 3), end):
            return words.quote(start - 1, end)
    return _lone_list(words, is_target)


def _sentence(words: Words, start: int, end: int) -> tuple[int, int]:
    """The tokens of the sentence around a range, at most 40 on either side."""
    left = start
    while left > 0 and start - left < 40 and _SENTENCE_END.search(words.gap(left)) is None:
        left -= 1
    right = end
    while right < len(words.tokens) and right - end < 40 and _SENTENCE_END.search(words.gap(right)) is None:
        right += 1
    return left, right


def _after_or(words: Words, end: int, right: int, is_target: Callable[[int, int], bool]) -> str:
    """A candidate after the occurrence: "X or Y", or "X, Y or Z" with short items."""
    tokens = words.tokens
    index, item, listed = end, 0, False
    while index < right:
        if tokens[index] == "or":
            if index > end and not listed:
                return ""
            if index + 1 >= right or tokens[index + 1] in _NOT_ALTERNATIVES:
                return ""
            return "" if is_target(index + 1, min(index + 7, right)) else words.quote(end - 1, min(index + 4, right))
        if "," in words.gap(index):
            listed, item = True, 0
        item += 1
        if item > 3 or tokens[index] in _SYNONYM_CUES or (index == end and not listed):
            return ""
        index += 1
    return ""


def _before_or(words: Words, start: int, left: int, is_target: Callable[[int, int], bool]) -> str:
    """A candidate before the occurrence: "Y or X", "Y or maybe the X"."""
    tokens = words.tokens
    for index in range(start - 1, max(left, start - 4), -1):
        if tokens[index] == "or":
            other = max(left, index - 4)
            return "" if is_target(other, index) else words.quote(other, start)
        if tokens[index] not in ("the", "a", "an", "maybe", "perhaps", "possibly", "even"):
            return ""
    return ""


def _lone_list(words: Words, is_target: Callable[[int, int], bool]) -> str:
    """The whole answer where it is nothing but a list of short items, some of which are no target."""
    text = words.text.strip().rstrip(".!")
    if len(text) > 300 or _ITEM.search(text) is None or not _VERBS.isdisjoint(words.tokens[:1]):
        return ""
    items, first = [], 0
    for part in _ITEM.split(text):
        count = len(Words(part).tokens)
        if count > 4 or (count and items and words.tokens[first] in _VERBS):
            return ""
        if count:
            items.append((first, first + count))
        # A joining "and" or "or" is a token of its own between two parts.
        first += count
        while first < len(words.tokens) and words.tokens[first] in ("and", "or"):
            first += 1
    joined = any(token == "and" for token in words.tokens)
    if len(items) < (2 if joined else 3) or not _VERBS.isdisjoint(words.tokens):
        return ""
    others = [item for item in items if not is_target(*item) and not words.tokens[item[0]].isdigit()]
    apposition = not joined and "\n" not in text and words.tokens[items[-1][1] - 1] in _COUNTRIES and len(items) == 3
    if not others or (apposition and is_target(*items[0])) or is_target(items[0][0], items[-1][1]) is None:
        return ""
    if "\n" in text and is_target(*items[0]) and len(items) < 3:
        return ""
    return f"the list {words.quote(0, len(words.tokens))}"


_ABSTAINS = re.compile(
    r" (?:(?:i|we) (?:do not|dont|did not|didnt|cannot|cant|could not|couldnt|am unable|m unable|are unable)"
    r" (?:\w+ ){0,2}?(?:know|recall|remember|have|answer|say|tell|determine|find|verify|confirm|provide|identify|recognise|recognize)"
    r"|no answer|no idea|no information|not known|is unknown|unknown to me|not sure|not certain|unsure|not aware|im unable|unable to"
    r"|(?:cannot|can not|cant|could not) be (?:determined|answered|known|verified|found|established)"
    r"|not enough information|insufficient information|as an ai|im sorry|i apologise|i apologize|unanswerable|not answerable"
    r"|(?:is|are|was) not (?:stated|mentioned|given|provided|specified)|(?:does|do) not (?:say|state|mention|specify)"
    r"|no se|je ne sais pas|ich weiß (?:es )?nicht|não sei|tidak tahu|không biết|hindi ko alam|di ko alam) "
)
_ABSTAINS_ANYWHERE = ("不知道", "不清楚", "不确定", "分かりません", "わかりません", "知りません", "모르", "알 수 없", "ไม่ทราบ", "ไม่รู้", "தெரியாது", "தெரியவில்லை")
_ABSTAINS_WHOLE = frozenset(
    "unknown|n a|na|no answer|none given|not available|not known|unsure|not sure|no idea|idk|dunno|pass|tbd|undefined|null".split("|")
)


def abstains(words: Words) -> str:
    """The words by which the text gives no answer, "" where it gives one."""
    whole = words.joined.strip()
    if not whole:
        return "no words"
    if whole in _ABSTAINS_WHOLE:
        return words.quote(0, len(words.tokens))
    found = _ABSTAINS.search(words.joined[:600])
    if found is not None:
        start = words.index(found.start())
        return words.quote(start, start + len(found.group().split()))
    if not words.text.isascii():
        for phrase in _ABSTAINS_ANYWHERE:
            if phrase in words.text:
                return f"'{phrase}'"
    return ""


_REFUSES_FIRST = re.compile(r" (?:know|answer|determined|unknown|idea|information|unable|verify|confirm|tahu|sais|se|biết) ")
_STILL = re.compile(
    r" (?:but|maybe|perhaps|possibly|probably|guess|think|believe|however|although|would say|likely|could be|might be) "
)


def abstains_before(words: Words, occurrence: Occurrence) -> str:
    """The words of an abstention before the occurrence that no "but" or "I think" turns into a guess."""
    start = occurrence[0]
    if not start:
        return ""
    before = f" {' '.join(words.tokens[:start])} "
    found = _ABSTAINS.search(before)
    if found is None or _REFUSES_FIRST.search(f"{found.group()} ") is None:
        return ""
    return "" if _STILL.search(before) is not None else found.group().strip()
