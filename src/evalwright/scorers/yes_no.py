"""Yes-or-no answers: an explicit yes or no, or a statement that affirms or denies what the question asks."""

from __future__ import annotations

from functools import lru_cache

from evalwright.scorers.abstention import abstains
from evalwright.scorers.polarity import ends_clause
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted

_YES = word_set("yes yeah yep yup true correct affirmative indeed はい 是 是的 对 對 네 예 맞습니다 ใช่ ஆம்")
_NO = word_set("no nope nah false incorrect untrue いいえ 不 不是 否 아니요 아니오 아뇨 ไม่ ไม่ใช่ இல்லை")
# Words that mean something else in English count only where the sample's language is theirs.
_BY_LANGUAGE = {
    "de": (word_set("ja"), word_set("nein")),
    "nl": (word_set("ja"), word_set("nee")),
    "fr": (word_set("oui vrai"), word_set("non faux")),
    "es": (word_set("sí si"), word_set("no")),
    "it": (word_set("sì si"), word_set("no")),
    "pt": (word_set("sim"), word_set("não")),
    "id": (word_set("ya iya benar"), word_set("tidak bukan salah")),
    "ms": (word_set("ya betul benar"), word_set("tidak bukan salah")),
    "vi": (word_set("có vâng đúng"), word_set("không sai")),
    "tl": (word_set("oo opo tama"), word_set("hindi mali")),
    "fil": (word_set("oo opo tama"), word_set("hindi mali")),
}
_NEGATIONS = word_set(
    "not never cannot isnt wasnt arent werent dont doesnt didnt cant wont no neither nor hardly hasnt havent couldnt"
)
_OPENINGS = word_set("answer is it the final so therefore thus hence would be that this statement well short")
_NO_FALSE_FRIENDS = word_set("one body doubt question matter longer wonder idea answer way information")
_COMMON = word_set(
    "is are was were do does did the a an of in on to for and or can could has have had at by with under that ever"
)


@lru_cache(maxsize=256)
def polarity_of(targets: tuple[str, ...], language: str = "en") -> str:
    """ "yes" or "no" where every target says so, "" for other targets."""
    said = {_polarity(Words(plain(target)).tokens, language) for target in targets}
    return said.pop() if len(said) == 1 else ""


def judge_yes_no(words: Words, target: str, question: str, language: str = "en") -> Verdict:
    """Whether the answer says `target` ("yes" or "no")."""
    if not words.text.isascii() and (abstention := abstains(words)):
        # In some scripts "I don't know" begins with the word for no.
        return not_attempted(f"gives no answer: {abstention}", abstention)
    if (abstention := abstains(words)) and " yes or no " in words.joined:
        return not_attempted(f"gives no answer: {abstention}", abstention)
    said, how = _explicit(words, language)
    if not said:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}", abstention)
        said, how = _stated(words, question)
    if said == "both":
        return incorrect(f"says both yes and no: {how}", how)
    if not said:
        return incorrect("neither yes nor no, and no statement about what is asked")
    return correct(f"{how} says '{said}'", how) if said == target else incorrect(f"{how} says '{said}'", how)


def _polarity(tokens: list[str], language: str) -> str:
    """What one word says (or one written with several characters, in scripts without spaces)."""
    joined = "".join(tokens) if len(tokens) == 1 or not tokens or not tokens[0].isascii() else ""
    yes, no = _BY_LANGUAGE.get(language[:3].rstrip("-_"), (frozenset(), frozenset()))
    if joined in _YES or joined in yes:
        return "yes"
    return "no" if joined in _NO or joined in no else ""


def _explicit(words: Words, language: str) -> tuple[str, str]:
    """A yes or no at the start, after words like "the answer is", or at the end of a clause; the first one counts.

    "yes and no" is both.
    """
    tokens = words.tokens
    start = 0
    while start < min(len(tokens), 6) and tokens[start] in _OPENINGS:
        start += 1
    for index in range(min(len(tokens), 40)):
        opening = index in (0, start)
        if not opening and not _ends_clause_after(words, index):
            continue
        said = _said_at(words, index, language, opening)
        if said:
            if tokens[index + 1 : index + 2] in (["and"], ["or"]):
                other = _polarity(tokens[index + 2 : index + 3], language)
                if other and other != said:
                    return "both", words.quote(index, index + 3)
            return said, words.quote(index, index + 1)
    return "", ""


def _ends_clause_after(words: Words, index: int) -> bool:
    """Whether punctuation or the end of the text follows a token."""
    return index + 1 == len(words.tokens) or ends_clause(words, index + 1)


def _said_at(words: Words, index: int, language: str, opening: bool) -> str:
    tokens = words.tokens
    token = tokens[index]
    if token == "not" and tokens[index + 1 : index + 2] in (["true"], ["correct"]):
        return "no"
    if opening and (said := _adverb(tokens[index : index + 3])):
        return said
    if not token.isascii():
        for size in (3, 2):
            if said := _polarity(tokens[index : index + size], language):
                return said
    said = _polarity([token], language)
    if not opening and token not in ("yes", "no"):
        return ""  # "true", "correct" and their kin answer only at the start
    following = tokens[index + 1] if index + 1 < len(tokens) else ""
    if token == "no" and following in _NO_FALSE_FRIENDS and words.gap(index + 1) == " ":
        return ""
    return said


_ADVERBS = word_set("absolutely certainly definitely surely")


def _adverb(tokens: list[str]) -> str:
    """ "Absolutely", "of course" are yes; "absolutely not", "not at all", "by no means" are no."""
    if tokens in (["not", "at", "all"], ["by", "no", "means"], ["of", "course", "not"]) or tokens[:2] == [
        "certainly",
        "not",
    ]:
        return "no"
    if tokens[:1] and tokens[0] in _ADVERBS:
        return "no" if tokens[1:2] in (["not"], ["never"], ["no"]) else "yes"
    return "yes" if tokens[:2] == ["of", "course"] else ""


def _stated(words: Words, question: str) -> tuple[str, str]:
    """A statement that repeats the question's words: denied is no, else yes."""
    asked = _content(question)
    tokens = words.tokens[:30]
    shared = sum(token[:4] in asked for token in dict.fromkeys(tokens))
    if not asked or shared < min(2, len(asked)) or shared < len(asked) * 0.4:
        return "", ""
    quoted = words.quote(0, len(tokens))
    return ("no", quoted) if not _NEGATIONS.isdisjoint(tokens) else ("yes", quoted)


@lru_cache(maxsize=2048)
def _content(question: str) -> frozenset[str]:
    """The first four letters of the question's content words."""
    tokens = Words(plain(question[:600])).tokens
    return frozenset(
        token[:4] for token in tokens if (len(token) > 2 or token.isdigit()) and token not in _COMMON
    )
