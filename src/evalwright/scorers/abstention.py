"""Whether an answer gives none: "I don't know", "cannot be determined", "N/A", and the like in several languages."""

from __future__ import annotations

import re

from evalwright.scorers.polarity import Occurrence
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

_ABSTAINS = re.compile(
    r" (?:(?:i|we) (?:really |just |still |simply |honestly )?(?:do not|dont|did not|didnt|cannot|cant|could not|couldnt|am unable|m unable|are unable)"
    r" (?:\w+ ){0,2}?(?:know|recall|remember|have|answer|say|tell|determine|find|verify|confirm|provide|identify|recognise|recognize|compute|calculate|solve|help|access)"
    r"|no answer|no idea|no information|not known|is unknown|unknown to me|not sure|not certain|unsure|not aware|im unable|unable to"
    r"|(?:cannot|can not|cant|could not) be (?:determined|answered|known|verified|found|established)"
    r"|not enough (?:information|data|context|evidence)|(?:is|are) not (?:\\w+ )?available|(?:is|remains) a mystery|(?:have|need) to look (?:it|that|this) up"
    r"|(?:impossible|hard|difficult) to (?:say|know|tell|determine)|insufficient information|as an ai|im sorry|i apologise|i apologize|unanswerable|not answerable"
    r"|to be (?:determined|announced|confirmed|decided)|no clue|(?:is|remains|was) (?:unclear|uncertain|undetermined|unspecified)"
    r"|(?:id )?rather not (?:answer|say|tell)|(?:prefer|choose|decline|refuse) (?:not )?to (?:answer|say|respond|comment)"
    r"|(?:will not|wont|i must decline to) (?:answer|say|tell|respond)|(?:nobody|no one|noone) (?:\w+ )?knows"
    r"|none of the (?:sources?|documents?|passages?|texts?) (?:mentions?|states?|says?|gives?|names?)|do not have (?:\w+ )?access"
    r"|(?:cannot|cant|can not) (?:\w+ )?(?:answer|say|tell)"
    r"|(?:is|are|was) not (?:stated|mentioned|given|provided|specified)|(?:does|do) not (?:say|state|mention|specify)"
    r"|no (?:lo )?s[eé]|se desconoce|no se sabe|je (?:ne )?sais pas|(?:est )?inconnue?|on ne sait pas|ist (?:nicht bekannt|unbekannt)|keine ahnung|non (?:lo )?so|non si sa|(?:è )?sconosciut[oa]|desconhecid[oa]|não (?:se )?sabe|tidak diketahui|belum diketahui|không rõ|chưa rõ|hindi alam|ich wei(?:ss|ß) (?:es )?nicht|não sei|tidak tahu|không biết|hindi ko alam|di ko alam) "
)
_ABSTAINS_ANYWHERE = (
    "不知道",
    "不清楚",
    "不确定",
    "分かりません",
    "わかりません",
    "知りません",
    "모르",
    "알 수 없",
    "ไม่ทราบ",
    "ไม่รู้",
    "தெரியாது",
    "தெரியவில்லை",
    "未知",
    "無法確定",
    "无法确定",
    "不明",
    "알려지지 않",
    "पता नहीं",
    "ज्ञात नहीं",
    "नहीं जानत",
    "नहीं पता",
    "неизвестно",
    "не знаю",
    "لا أعرف",
    "لا اعرف",
    "غير معروف",
    "ไม่แน่ใจ",
)
_ABSTAINS_WHOLE = frozenset(
    (
        "unknown", "n a", "na", "no answer", "none given", "not available", "not known", "unsure", "not sure", "no idea", "idk",
        "dunno", "pass", "tbd", "tba", "tbc", "maybe", "perhaps", "possibly", "it depends", "null", "nan", "to be determined", "to be announced", "unclear", "undetermined", "no comment", "unbekannt",
        "inconnu", "inconnue", "desconocido", "desconhecido", "sconosciuto", "keine ahnung", "beats me", "who knows",
    )
)  # fmt: skip


_CHARGE = re.compile(r"[+^-]")
_GUESS = re.compile(
    r" (?:maybe|perhaps|possibly|probably|likely|(?:my|best|a) guess|i (?:would )?guess|i would say) "
)


_STILL_GIVEN = re.compile(
    r" (?:but|however|though|still) (?:i|my) (?:think|believe|suppose|guess|would|recall)|i (?:think|believe|suppose) (?:that )?(?:it|this|he|she|they) "
)
"""What turns an abstention before it into an answer."""


def abstains(words: Words) -> str:
    """The words by which the text gives no answer, "" where it gives one."""
    whole = words.joined.strip()
    if not whole:
        return "no words"
    if whole in _ABSTAINS_WHOLE and not (whole == "na" and _CHARGE.search(words.text)):
        return words.quote(0, len(words.tokens))
    found = _ABSTAINS.search(words.joined[:600])
    given = found is not None and _STILL_GIVEN.search(words.joined, found.end() - 1) is not None
    if found is not None and not given and _GUESS.search(words.joined) is None:
        start = words.index(found.start())
        return words.quote(start, start + len(found.group().split()))
    if not words.text.isascii():
        for phrase in _ABSTAINS_ANYWHERE:
            if (start := words.text.casefold().find(phrase)) >= 0:
                return words.quote_between(start, start + len(phrase))
    return ""


_REFUSING = word_set(
    "impossible hard difficult know answer determined unknown idea information unable verify confirm tahu sais se biết"
)
_STILL = re.compile(
    r" (?:but|maybe|perhaps|possibly|probably|guess|think|believe|however|although|would say|likely|could be|might be) "
)


def abstains_before(words: Words, occurrence: Occurrence) -> str:
    """The words of an abstention before the occurrence that no "but" or "I think" turns into a guess."""
    start = occurrence[0]
    if _REFUSING.isdisjoint(words.tokens[:start]):
        return ""
    before = f" {' '.join(words.tokens[:start])} "
    found = _ABSTAINS.search(before)
    if found is None or _REFUSING.isdisjoint(found.group().split()):
        return ""
    if _STILL.search(before) is not None:
        return ""
    first = words.index(found.start())
    return words.quote(first, first + len(found.group().split()))
