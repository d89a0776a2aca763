"""Yes or no: an explicit yes or no, an echo of the question ("They cannot."), or its words again,
plainly or denied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from evalwright.scorers.answers.reply import Said, lines
from evalwright.scorers.answers.verdict import Verdict, correct, incorrect, unreadable
from evalwright.scorers.text.cues import cues, last_revision, opening, words
from evalwright.scorers.text.folded import FUNCTION, read
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold, word_list, word_set

MAX_SENTENCES = 12
_CLAUSE = re.compile(r"[,;:.!?(—–…。！、，،؛]|\s-\s|\n|$")
_OPENINGS = word_set(
    "well oh so the answer is it would be that in short therefore thus hence final i"
    " say think also donc hmm"
)
_NO_ANSWER = word_set(
    "one body doubt question matter longer wonder idea way information answer"
)
_BOTH = word_set("and or but und et y e ou oder o aber mais pero ma и или")
_ECHO = (
    FUNCTION - word_set("know perhaps maybe likely who what which if sure well")
) | word_set("at all really so öyle vậy das statement claim assertion sentence")
_UNSURE = word_set(
    "doubt if only unless myth maybe perhaps likely unlikely vielleicht peut quiza"
    " forse talvez"
)
_NOBODY = word_set(
    "nobody none nothing anything neither nor without except instead doubt rather no"
    " never"
)
_DESPITE = word_set("si doch")
"""Words that affirm against a question that denies."""
_WHETHER = re.compile(
    r"(?:\b(?:không|chưa)|หรือไม่|หรือเปล่า|ใช่หรือไม่|ບໍ່|หรือยัง|没有|沒有)(?=\s*[?？。"
    r"]*\s*$)|是不是|是否|有没有|能不能|会不会|对不对|可不可以"
    r"|true or false|benar atau salah|đúng hay sai|verdadero o falso|vrai ou"
    r" faux|(?:richtig|wahr) oder falsch|verdadeiro ou falso|对错|참인가"
    r" 거짓인가|(?:예|네)['\"’”]?\s?(?:/|,|또는|혹은|나)?\s?['\"‘“]?아니[요오]",
    re.IGNORECASE,
)
"""A negation that only makes a question of a sentence."""
_RATHER = re.compile("(아니라|아니고)")
"""Between what a Korean sentence denies and what it says instead."""
_PARTICLES = tuple(
    word_list(
        "の です ครับ ค่ะ คะ 요 입니다 이다 이에요 예요 습니다 니다 어요 아요 다 릅니다"
    )
)


@lru_cache(maxsize=256)
def polarity_of(targets: tuple[str, ...], language: str = "en") -> str:
    """ "yes" or "no" where a target says nothing else, "" for other targets."""
    said = {
        side
        for target in targets
        if (side := _explicit(plain(target), language, whole=True))
    }
    return (
        said.pop()
        if len(said) == 1 and all(len(read(plain(one)).tokens) <= 4 for one in targets)
        else ""
    )


def judge_yes_no(
    said: Said, target: str, question: str, language: str = "en"
) -> Verdict:
    """Whether the answer says `target` ("yes" or "no")."""
    text = said.text
    parts = lines(text)[:MAX_SENTENCES]
    if not parts:
        return unreadable("no yes or no")
    question = _WHETHER.sub(" ", question[:600])
    asked = read(plain(question)).tokens
    sides = [
        _explicit(part, language)
        or _echo(part, language)
        or _echo(_clause(part), language)
        for part in parts
    ]
    if sides[0] and "?" not in parts[0]:
        is_negative = cues(language).denies(asked, question)
        is_affirmed = sides[0] == "yes" and not _DESPITE.isdisjoint(
            read(parts[0]).tokens[:1]
        )
        if is_negative and not is_affirmed:
            return _against(target, sides[0], "a yes or no to a question that denies")
        known = {
            token
            for token in read(text).tokens
            if token not in ("si", "no") or language[:2] == "en"
        }
        opposite = (
            words("no", language) | words("false", language)
            if sides[0] == "yes"
            else words("yes", language)
        )
        is_contradicted = (
            bool(known & opposite)
            or bool(set(sides) - {"", sides[0]})
            or last_revision(text) is not None
        )
        return _against(target, sides[0], "both yes and no" if is_contradicted else "")

    restated = _restated_side(parts, asked, language)
    if restated:
        return _against(
            target, restated, "" if len(parts) == 1 else "no explicit yes or no"
        )
    known = set(read(text).tokens)
    if (
        len(known) <= 3
        and known & words("yes", language)
        and known & words("no", language)
    ):
        return incorrect("says yes and no", "both yes and no")
    later = [side for side in sides if side] or [_sign(text, language)]
    if later[-1]:
        return _against(target, later[-1], "a yes or no within the text")
    side = _taken_up_side(parts[0], asked, language)
    if side:
        return _against(target, side, "no explicit yes or no")
    is_another_word = text.isascii() and len(read(text).tokens) == 1 and len(text) > 2
    return unreadable(
        "no yes or no", "" if is_another_word else "no explicit yes or no"
    )


def _restated_side(parts: Sequence[str], asked: list[str], language: str) -> str:
    """What the first sentence says where it repeats the question; "" where it does not, or says
    both.
    """
    clauses = _CLAUSE.split(_RATHER.sub(r"\1,", parts[0]))[:3]
    sides = {_restated(clause, asked, language) for clause in clauses} - {""}
    return sides.pop() if len(sides) == 1 else ""


def _sign(text: str, language: str) -> str:
    """The last word for yes or no of a text, wherever it stands."""
    yes = words("yes", language) | words("true", language)
    no = words("no", language) | words("false", language)
    negations = cues(language).negations
    tokens = [token for token in read(text).tokens if token]
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        if tokens[place + 1 : place + 2] and tokens[place + 1] in _NO_ANSWER:
            continue
        if token in no - yes or opening("no", token) == token:
            return "no"
        if opening("yes", token) == token:
            return "yes"
        if token in yes - no and token not in FUNCTION:
            return (
                "no"
                if not negations.isdisjoint(tokens[max(0, place - 2) : place])
                else "yes"
            )
    return ""


def _taken_up_side(text: str, asked: list[str], language: str) -> str:
    """What a sentence with most of the question's words says: no where it denies, else yes."""
    about = {token[:5] for token in asked if token not in FUNCTION}
    tokens = [token for token in read(text).tokens if token]
    own_words = {
        token[:5]
        for token in tokens
        if token not in FUNCTION and not cues(language).denies([token], token)
    }
    is_about = len(about & own_words) * 2 >= max(len(about), 1) or (
        own_words and own_words <= about
    )
    if not is_about:
        return ""
    return "no" if cues(language).denies(tokens, text) else "yes"


def _against(target: str, side: str, doubt: str = "") -> Verdict:
    return (
        correct(f"says {side}", doubt)
        if side == target
        else incorrect(f"says {side}", doubt)
    )


def _clause(text: str) -> str:
    found = _CLAUSE.search(text, 1)
    return text[: found.start()] if found else text


def _explicit(text: str, language: str, whole: bool = False) -> str:
    """What a text says with a yes or a no at its start; whole: the text is nothing else."""
    bare = text.strip(" \"'(*")
    for side in ("no", "yes"):
        sign = opening(side, bare)
        later = bare[len(sign) :]
        if sign and (
            not later or not later[0].isalnum() or later.startswith(_PARTICLES)
        ):
            return side
    yes = words("yes", language)
    no = words("no", language)
    both = yes & no
    tokens = [token for token in read(text).tokens if token]
    start = 0
    while not whole and start < len(tokens) - 1 and tokens[start] in _OPENINGS:
        start += 1
    if not tokens or tokens[start] not in yes | no or tokens[start] in both - {"no"}:
        return _echo(text, language) if whole else ""
    side = "no" if tokens[start] in no else "yes"
    rest = tokens[start + 1 : start + 3]
    if rest[:1] and (rest[0] in _BOTH or rest[0] in _NO_ANSWER):
        return ""
    if not {"not", *yes, *no}.isdisjoint(rest[:1]):
        return side if rest[0] in (yes if side == "yes" else no) else ""
    clause = fold(_clause(text.strip()).casefold()).split()
    return (
        side
        if tokens[start] not in cues(language).negations | {"si", "la"}
        or len(clause) <= start + 1
        or len(tokens) < 3
        else ""
    )


def _echo(text: str, language: str) -> str:
    """What a clause says that has nothing but pronouns, verbs and words such as "true", "not",
    "definitely".
    """
    true = words("true", language)
    false = words("false", language)
    negations = cues(language).negations - false - _NOBODY
    tokens = [token for token in read(text).tokens if token]
    sides = words("yes", language) | words("no", language)
    known = (true | false | negations | _ECHO) - sides
    if (
        tokens[-1:]
        and tokens[-1] in sides
        and tokens[:-1]
        and ((_ECHO | true) - sides).issuperset(tokens[:-1])
    ):
        return "yes" if tokens[-1] in words("yes", language) else "no"
    if (
        not tokens
        or len(tokens) > 6
        or not known.issuperset(tokens)
        or not _UNSURE.isdisjoint(tokens)
    ):
        return ""
    said = any(token in true | false | negations for token in tokens)
    if not said and not (
        2 <= len(tokens) <= 4 and tokens[-1] not in ("i", "it", "that", "this", "well")
    ):
        return ""
    return (
        "no"
        if sum(token in false or token in negations for token in tokens) % 2
        else "yes"
    )


def _restated(text: str, asked: list[str], language: str) -> str:
    """A clause in the question's own words and order, plainly or denied: "91 is not a prime
    number".
    """
    tokens = [token for token in read(text).tokens if token]
    korean = re.search("[가-힣]", text) is not None
    size = 2 if korean else 5
    order = [
        token[:size] for token in asked if token not in FUNCTION and len(token) > 1
    ]
    negated = {token for token in tokens if cues(language).denies([token], token)}
    own = [
        token[:size]
        for token in tokens
        if token not in FUNCTION | negated and len(token) > 1
    ]
    shared = [token for token in own if token in order]
    if (
        not shared
        or len(shared) < len(own)
        or (len(own) > 1 and len(set(shared)) * 3 < 2 * len(set(order)))
    ):
        return ""
    places = [order.index(token) for token in dict.fromkeys(shared)]
    if (
        places != sorted(places)
        or not (text.isascii() or korean)
        or not _UNSURE.isdisjoint(tokens)
        or cues(language).offers(tokens, text)
    ):
        return ""
    return "no" if negated else "yes"
