"""Yes or no: an answer that opens with, or is, an explicit yes or no. A statement that only implies one is undecided."""

from __future__ import annotations

from functools import lru_cache

from evalwright.scorers.match import Reading, read
from evalwright.scorers.text.cues import cues, last_revision
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_list, word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_YES = """
en: yes yeah yep yup true correct affirmative indeed absolutely certainly definitely surely right
de: ja jawohl richtig stimmt doch natürlich selbstverständlich wahr
fr: oui si vrai exact certainement
es: sí si cierto verdadero correcto claro
it: sì si vero certo esatto
pt: sim verdadeiro certo correto
nl: ja jazeker klopt waar
ru: да верно правда конечно
uk: так вірно правда
pl: tak prawda oczywiście
tr: evet doğru
id: ya iya benar betul
ms: ya betul benar
vi: có vâng đúng phải
tl: oo opo tama
sw: ndiyo ndio kweli
ar: نعم أجل بلى صحيح
hi: हाँ हां जी सही
el: ναι
"""
_NO = """
en: no nope nah false incorrect untrue never wrong
de: nein falsch
fr: non faux
es: no falso
it: no falso
pt: não nao falso
nl: nee neen
ru: нет неверно ложь
uk: ні неправда
pl: nie nieprawda
tr: hayır yanlış değil
id: tidak bukan salah
ms: tidak bukan salah
vi: không sai
tl: hindi mali
sw: hapana la
ar: لا كلا خطأ
hi: नहीं नही गलत
el: όχι οχι
"""
_CASELESS_YES = word_list("是的 对 對 はい そうです 예 네 맞습니다 그렇습니다 ใช่ ஆம் ஆமாம் 是")
_CASELESS_NO = word_list("不是 不对 不 否 いいえ 違います 아니요 아니오 아닙니다 아뇨 ไม่ใช่ ไม่ இல்லை 没有")
_OPENINGS = word_set("well oh so the answer is it would be that in short therefore thus hence final")
_NO_ANSWER = word_set("one body doubt question matter longer wonder idea way information answer")


@lru_cache(maxsize=64)
def _words(language: str) -> tuple[frozenset[str], frozenset[str]]:
    sides = []
    for table in (_YES, _NO):
        rows = dict(line.split(":", 1) for line in table.strip().splitlines())
        sides.append(frozenset(read(rows["en"] + rows.get(language.split("-")[0], "")).tokens))
    return sides[0] - sides[1], sides[1] - sides[0] | {"no"}


@lru_cache(maxsize=256)
def polarity_of(targets: tuple[str, ...], language: str = "en") -> str:
    """ "yes" or "no" where a target says nothing else, "" for other targets."""
    said = {side for target in targets if (side := _side(plain(target), language, whole=True))}
    return said.pop() if len(said) == 1 and all(len(read(plain(one)).tokens) <= 4 for one in targets) else ""


def judge_yes_no(said: Said, target: str, question: str, language: str = "en") -> Verdict:
    """Whether the answer says `target` ("yes" or "no")."""
    text = said.text
    change = None if said.marked else last_revision(text[6:])
    if change is not None and (later := _side(text[6 + change[1] :].strip(" .,:;!-"), language)):
        return correct("after a change of mind") if later == target else incorrect("after a change of mind")
    parts = lines(text)
    side = _side(parts[0], language) if parts else ""
    if not side and len(parts) > 1:
        side = _side(parts[-1], language)
    asked = read(plain(question[:600])).tokens
    if side and cues(language).denies(asked, question):
        return undecided("a yes or no to a question that denies")
    if not side and len(parts) == 1 and not said.marked:
        side = _stated(parts[0], asked, language)
    if not side:
        return undecided("no explicit yes or no")
    if any(_side(part, language) not in ("", side) for part in parts[1:]):
        return undecided("both yes and no")
    shown = f"'{' '.join(parts[0].split())[:60]}' says {side}"
    return correct(shown) if side == target else incorrect(shown)


_SMALL = word_set(
    "is are was were do does did the a an of in on to for and can could has have had at by with it they he she that this there",
    "be been as from its their so yes will would",
)


def _stated(text: str, asked: list[str], language: str) -> str:
    """A short statement that repeats what is asked, plainly or denied: "It is not a prime number", "They cannot"."""
    tokens = read(text).tokens
    denied = cues(language).denies(tokens, text)
    content = {token[:5] for token in asked if token not in _SMALL and len(token) > 1}
    own = [
        token
        for token in tokens
        if token not in _SMALL and token not in cues(language).negations and len(token) > 1
    ]
    plain_words = (
        len(tokens) <= 12
        and not cues(language).turn_in(tokens)
        and not cues(language).offers(tokens, text)
        and "?" not in text
    )
    if (
        not plain_words
        or language != "en"
        or any(word in tokens for word in ("doubt", "if", "than", "only", "unless", "myth"))
    ):
        return ""
    if (
        not own
        and 2 <= len(tokens) <= 4
        and tokens[0] in ("it", "they", "he", "she", "this", "that", "there")
    ):
        return "no" if denied else "yes" if tokens[0] in ("it", "they", "he", "she") else ""
    shared = {token[:5] for token in own} & content
    if (len(shared) * 3 < 2 * len(content) and not (len(own) == 1 and shared)) or any(
        token[:5] not in content for token in own
    ):
        return ""
    return "no" if denied else "yes"


def _side(text: str, language: str, whole: bool = False) -> str:
    """What a text says at its start."""
    yes, no = _words(language)
    reading = read(text)
    tokens = [token for token in reading.tokens if token]
    if not tokens:
        return ""
    bare = reading.text.strip(" \"'(*")
    for words, side in ((_CASELESS_NO, "no"), (_CASELESS_YES, "yes")):
        for word in words:
            if bare.startswith(word) and (
                len(bare) == len(word)
                or not bare[len(word)].isalnum()
                or bare[len(word) :].startswith(("の", "です"))
            ):
                return side
    start = 0
    while start < len(tokens) - 1 and tokens[start] in _OPENINGS:
        start += 1
    first, rest = tokens[start], tokens[start + 1 : start + 3]
    if start and whole:
        return ""
    if first in ("of",) and rest[:1] == ["course"]:
        return "no" if rest[1:] == ["not"] else "yes"
    if first == "not" and rest and rest[0] in ("true", "correct", "at", "really"):
        return "no"
    if first in yes:
        if (rest[:1] and rest[0] in ("and", "und", "et", "y", "e", "or", "oder", "but", "aber")) or set(
            rest
        ) & (no | {"not"}):
            return "no" if rest[:1] and rest[0] in ("not", "no") else ""
        follows = _follows(reading, first)
        return "yes" if follows or first in ("yes", "yeah", "yep") else ""
    if first in no:
        if rest[:1] and (rest[0] in _NO_ANSWER or rest[0] in ("and", "or") or set(rest) & yes):
            return ""
        return (
            "no"
            if _follows(reading, first) or (first in ("no", "nope") and len(tokens) < 3) or first == "nein"
            else ""
        )
    return ""


def _follows(reading: Reading, first: str) -> bool:
    """Whether a mark or the end of the text follows the first word."""
    text, word = reading.text, reading.cased[reading.tokens.index(first)]
    end = text.find(word) + len(word)
    return end >= len(text.rstrip()) or text[end] in ",.!;:。！、，،؛…)\n-–—"
