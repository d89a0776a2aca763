"""Reads yes or no from a reply.

The reply says so explicitly, echoes the question ("They cannot."), or restates it, plainly or
denied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from evalwright.scorers.answers.reply import ParsedReply, split_sentences
from evalwright.scorers.answers.verdict import Verdict, correct, incorrect, unreadable
from evalwright.scorers.text.cues import cue_words, cues_of, find_opening, last_revision
from evalwright.scorers.text.folded import FUNCTION_WORDS, fold_text
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
    FUNCTION_WORDS - word_set("know perhaps maybe likely who what which if sure well")
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
"""Words that affirm in reply to a question with a negation."""
_WHETHER = re.compile(
    r"(?:\b(?:không|chưa)|หรือไม่|หรือเปล่า|ใช่หรือไม่|ບໍ່|หรือยัง|没有|沒有)(?=\s*[?？。"
    r"]*\s*$)|是不是|是否|有没有|能不能|会不会|对不对|可不可以"
    r"|true or false|benar atau salah|đúng hay sai|verdadero o falso|vrai ou"
    r" faux|(?:richtig|wahr) oder falsch|verdadeiro ou falso|对错|참인가"
    r" 거짓인가|(?:예|네)['\"’”]?\s?(?:/|,|또는|혹은|나)?\s?['\"‘“]?아니[요오]",
    re.IGNORECASE,
)
"""A negation that only turns a sentence into a question."""
_RATHER = re.compile("(아니라|아니고)")
"""Stands between what a Korean sentence denies and what it says instead."""
_PARTICLES = tuple(
    word_list(
        "の です ครับ ค่ะ คะ 요 입니다 이다 이에요 예요 습니다 니다 어요 아요 다 릅니다"
    )
)


@lru_cache(maxsize=256)
def read_target_side(targets: tuple[str, ...], language: str = "en") -> str:
    """Return "yes" or "no" if all targets say so; "" otherwise."""
    sides = {
        side
        for target in targets
        if (side := _explicit_side(plain(target), language, is_whole=True))
    }
    return (
        sides.pop()
        if len(sides) == 1
        and all(len(fold_text(plain(target)).tokens) <= 4 for target in targets)
        else ""
    )


@dataclass(frozen=True)
class YesNoReader:
    """Judges replies to a question whose answer is yes or no."""

    target: str
    question: str
    language: str = "en"

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, says what the target says."""
        text = reply.text
        sentences = split_sentences(text)[:MAX_SENTENCES]
        if not sentences:
            return unreadable("no yes or no")
        question = _WHETHER.sub(" ", self.question[:600])
        question_tokens = fold_text(plain(question)).tokens
        sides = [
            _explicit_side(sentence, self.language)
            or _echoed_side(sentence, self.language)
            or _echoed_side(_first_clause(sentence), self.language)
            for sentence in sentences
        ]
        if sides[0] and "?" not in sentences[0]:
            is_negative = cues_of(self.language).denies(question_tokens, question)
            is_affirmed = sides[0] == "yes" and not _DESPITE.isdisjoint(
                fold_text(sentences[0]).tokens[:1]
            )
            if is_negative and not is_affirmed:
                return _compare_side(
                    self.target, sides[0], "a yes or no to a question that denies"
                )
            tokens = {
                token
                for token in fold_text(text).tokens
                if token not in ("si", "no") or self.language[:2] == "en"
            }
            opposite = (
                cue_words("no", self.language) | cue_words("false", self.language)
                if sides[0] == "yes"
                else cue_words("yes", self.language)
            )
            is_contradicted = (
                bool(tokens & opposite)
                or bool(set(sides) - {"", sides[0]})
                or last_revision(text) is not None
            )
            return _compare_side(
                self.target, sides[0], "both yes and no" if is_contradicted else ""
            )

        restated = _restated_side(sentences, question_tokens, self.language)
        if restated:
            return _compare_side(
                self.target,
                restated,
                "" if len(sentences) == 1 else "no explicit yes or no",
            )
        tokens = set(fold_text(text).tokens)
        if (
            len(tokens) <= 3
            and tokens & cue_words("yes", self.language)
            and tokens & cue_words("no", self.language)
        ):
            return incorrect("says yes and no", "both yes and no")
        later = [side for side in sides if side] or [_last_side(text, self.language)]
        if later[-1]:
            return _compare_side(self.target, later[-1], "a yes or no within the text")
        side = _taken_up_side(sentences[0], question_tokens, self.language)
        if side:
            return _compare_side(self.target, side, "no explicit yes or no")
        is_another_word = (
            text.isascii() and len(fold_text(text).tokens) == 1 and len(text) > 2
        )
        return unreadable(
            "no yes or no", "" if is_another_word else "no explicit yes or no"
        )


def _restated_side(
    sentences: Sequence[str], question_tokens: list[str], language: str
) -> str:
    """Return the side that a first sentence takes by repeating the question; "" if it does not."""
    clauses = _CLAUSE.split(_RATHER.sub(r"\1,", sentences[0]))[:3]
    sides = {
        _side_of_restated_clause(clause, question_tokens, language)
        for clause in clauses
    } - {""}
    return sides.pop() if len(sides) == 1 else ""


def _last_side(text: str, language: str) -> str:
    """Return the last word for yes or no anywhere in a text."""
    yes = cue_words("yes", language) | cue_words("true", language)
    no = cue_words("no", language) | cue_words("false", language)
    negations = cues_of(language).negations
    tokens = [token for token in fold_text(text).tokens if token]
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if tokens[index + 1 : index + 2] and tokens[index + 1] in _NO_ANSWER:
            continue
        if token in no - yes or find_opening("no", token) == token:
            return "no"
        if find_opening("yes", token) == token:
            return "yes"
        if token in yes - no and token not in FUNCTION_WORDS:
            return (
                "no"
                if not negations.isdisjoint(tokens[max(0, index - 2) : index])
                else "yes"
            )
    return ""


def _taken_up_side(text: str, question_tokens: list[str], language: str) -> str:
    """Return the side of the sentence closest to the question: no if it denies, else yes."""
    about = {token[:5] for token in question_tokens if token not in FUNCTION_WORDS}
    tokens = [token for token in fold_text(text).tokens if token]
    own_words = {
        token[:5]
        for token in tokens
        if token not in FUNCTION_WORDS and not cues_of(language).denies([token], token)
    }
    is_about = len(about & own_words) * 2 >= max(len(about), 1) or (
        own_words and own_words <= about
    )
    if not is_about:
        return ""
    return "no" if cues_of(language).denies(tokens, text) else "yes"


def _compare_side(target: str, side: str, doubt: str = "") -> Verdict:
    return (
        correct(f"says {side}", doubt)
        if side == target
        else incorrect(f"says {side}", doubt)
    )


def _first_clause(text: str) -> str:
    clause_end = _CLAUSE.search(text, 1)
    return text[: clause_end.start()] if clause_end else text


def _explicit_side(text: str, language: str, is_whole: bool = False) -> str:
    """Return the side of a text that opens with yes or no; "" otherwise.

    `is_whole` requires that the text is nothing else.
    """
    stripped = text.strip(" \"'(*")
    for side in ("no", "yes"):
        sign = find_opening(side, stripped)
        later = stripped[len(sign) :]
        if sign and (
            not later or not later[0].isalnum() or later.startswith(_PARTICLES)
        ):
            return side
    yes = cue_words("yes", language)
    no = cue_words("no", language)
    ambiguous = yes & no
    tokens = [token for token in fold_text(text).tokens if token]
    start = 0
    while not is_whole and start < len(tokens) - 1 and tokens[start] in _OPENINGS:
        start += 1
    if (
        not tokens
        or tokens[start] not in yes | no
        or tokens[start] in ambiguous - {"no"}
    ):
        return _echoed_side(text, language) if is_whole else ""
    side = "no" if tokens[start] in no else "yes"
    following = tokens[start + 1 : start + 3]
    if following[:1] and (following[0] in _BOTH or following[0] in _NO_ANSWER):
        return ""
    if not {"not", *yes, *no}.isdisjoint(following[:1]):
        return side if following[0] in (yes if side == "yes" else no) else ""
    clause = fold(_first_clause(text.strip()).casefold()).split()
    return (
        side
        if tokens[start] not in cues_of(language).negations | {"si", "la"}
        or len(clause) <= start + 1
        or len(tokens) < 3
        else ""
    )


def _echoed_side(text: str, language: str) -> str:
    """Return the side of a clause made up only of pronouns, verbs and words such as "true"."""
    true = cue_words("true", language)
    false = cue_words("false", language)
    negations = cues_of(language).negations - false - _NOBODY
    tokens = [token for token in fold_text(text).tokens if token]
    sides = cue_words("yes", language) | cue_words("no", language)
    echo_words = (true | false | negations | _ECHO) - sides
    if (
        tokens[-1:]
        and tokens[-1] in sides
        and tokens[:-1]
        and ((_ECHO | true) - sides).issuperset(tokens[:-1])
    ):
        return "yes" if tokens[-1] in cue_words("yes", language) else "no"
    if (
        not tokens
        or len(tokens) > 6
        or not echo_words.issuperset(tokens)
        or not _UNSURE.isdisjoint(tokens)
    ):
        return ""
    has_side = any(token in true | false | negations for token in tokens)
    if not has_side and not (
        2 <= len(tokens) <= 4 and tokens[-1] not in ("i", "it", "that", "this", "well")
    ):
        return ""
    return (
        "no"
        if sum(token in false or token in negations for token in tokens) % 2
        else "yes"
    )


def _side_of_restated_clause(
    text: str, question_tokens: list[str], language: str
) -> str:
    """Return the side of a clause in the question's words and order: "91 is not a prime number"."""
    tokens = [token for token in fold_text(text).tokens if token]
    korean = re.search("[가-힣]", text) is not None
    size = 2 if korean else 5
    order = [
        token[:size]
        for token in question_tokens
        if token not in FUNCTION_WORDS and len(token) > 1
    ]
    negated = {token for token in tokens if cues_of(language).denies([token], token)}
    own_stems = [
        token[:size]
        for token in tokens
        if token not in FUNCTION_WORDS | negated and len(token) > 1
    ]
    shared = [token for token in own_stems if token in order]
    if (
        not shared
        or len(shared) < len(own_stems)
        or (len(own_stems) > 1 and len(set(shared)) * 3 < 2 * len(set(order)))
    ):
        return ""
    places = [order.index(token) for token in dict.fromkeys(shared)]
    if (
        places != sorted(places)
        or not (text.isascii() or korean)
        or not _UNSURE.isdisjoint(tokens)
        or cues_of(language).offers(tokens, text)
    ):
        return ""
    return "no" if negated else "yes"
