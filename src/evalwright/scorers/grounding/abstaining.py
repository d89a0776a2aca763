"""Whether an answer says that the passages do not hold what was asked, in several languages."""

from __future__ import annotations

import re

from evalwright.scorers.abstention import abstains
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words

_PASSAGES = r"(?:passages?|sources?|texts?|documents?|context|excerpts?|information|material)"
_DECLINES = re.compile(
    rf" (?:not (?:\w+ ){{0,5}}(?:in|from|by|within) (?:(?:any|either|both|one|of|the|these|those|this|given|provided|above) ){{0,4}}{_PASSAGES}"
    rf"|{_PASSAGES} (?:(?:above|provided|given|here|\d{{1,3}}) ){{0,2}}(?:(?:do|does|did) not|dont|doesnt|didnt) (?:\w+ ){{0,2}}?"
    r"(?:say|state|mention|contain|give|specify|tell|include|provide|answer|indicate|name|reveal|have|report|cover|disclose|list|identify|address)"
    rf"|(?:none|neither) of (?:the |these |those )?(?:\w+ )?{_PASSAGES}"
    rf"|no {_PASSAGES} (?:\w+ ){{0,2}}?(?:says?|states?|mentions?|contains?|gives?|answers?|tells?|is given|is provided)"
    r"|(?:there is|there s|theres|contain|contains|give|gives|provide|provides) no (?:\w+ )?(?:information|mention|answer|indication|details?|data)"
    r"|(?:is|are|was|were) not (?:in|among) (?:any of )?(?:the|these|those) (?:\w+ )?(?:passages?|sources?|texts?)"
    r"|(?:isnt|arent|wasnt|werent) (?:stated|mentioned|given|specified|provided|said|known|clear|indicated|named|reported|included|disclosed)"
    r"|(?:gives?|contains?|states?|mentions?|includes?|offers?|provides?|names?) no (?:figures?|numbers?|dates?|names?|prices?|amounts?|times?|years?|weights?|values?|costs?|reasons?|persons?)"
    r"|nicht in (?:den|diesen) (?:passagen|texten|abschnitten|quellen|dokumenten)|no está en los (?:pasajes|textos)|pas dans les (?:passages|textes)"
    r"|non (?:è )?nei (?:passaggi|testi)|não está n[oa]s (?:trechos|passagens|textos)"
    r"|(?:is|are|was|were) not (?:stated|mentioned|given|specified|provided|said|known|clear|indicated|named|reported|included|disclosed)"
    r"|(?:cannot|can not|cant|could not) be (?:determined|answered|found|known|established|inferred)"
    r"|(?:cannot|can not|cant|could not|couldnt|am unable to|m unable to|was unable to) (?:\w+ ){0,2}?(?:find|determine|answer|tell|say|identify|locate|infer)"
    r"|not (?:stated|mentioned|given|specified|answerable|indicated)"
    r"|(?:steht|stehen) (?:\w+ )?nicht (?:\w+ )?(?:in|im)|geht (?:\w+ ){0,4}nicht hervor|(?:wird|werden|ist|sind) (?:\w+ ){0,2}nicht (?:genannt|erwähnt|angegeben)|nicht (?:erwähnt|angegeben|genannt)"
    r"|no (?:se )?(?:lo )?(?:menciona|mencionan|dice|dicen|indica|indican|especifica|especifican|figura|aparece|consta)"
    r"|ne (?:le )?(?:dit|disent|mentionne|mentionnent|précise|précisent|indique|indiquent|contient|contiennent|permet|permettent) (?:pas|rien)|n est pas (?:mentionné|précisé|indiqué|donné)|nest pas (?:mentionné|précisé|indiqué|donné)"
    r"|não (?:é |está |foi )?(?:menciona|mencionam|mencionado|diz|dizem|informa|informado|consta|indica|especifica)"
    r"|non (?:è |viene )?(?:menzionato|menzionata|indicato|indicata|specificato|dicono|dice|riportato)"
    r"|niet (?:vermeld|genoemd|gegeven)|tidak (?:disebutkan|dinyatakan|ada dalam)|не (?:указан\w*|упомина\w*|говорится|сказано)"
    r"|belirtilmemiş\w*|belirtilmiyor|yer almıyor|لم يذكر|غير مذكور\w*) "
)
_ANYWHERE = (
    "没有提到", "沒有提到", "未提及", "没有说明", "没有提供", "无法确定", "無法確定", "记载中没有", "記載されていません", "書かれていません",
    "記載がありません", "記述はありません", "記述がありません", "言及されていません", "わかりません", "언급되지", "언급되어 있지", "나와 있지 않", "알 수 없",
    "उल्लेख नहीं", "ไม่ได้ระบุ", "ไม่ได้กล่าว",
)  # fmt: skip
_GUESS = re.compile(
    r" (?:maybe|perhaps|possibly|probably|likely|presumably|(?:my|best|a) guess|i (?:would )?guess|i think|i believe|i would say"
    r"|vermutlich|wahrscheinlich|probablement|probablemente|provavelmente|probabilmente) "
)
_NO_WISH = re.compile(
    r"\b(?:i am sorry|i'?m sorry|i apologi[sz]e|as an ai(?: language)?(?: model| assistant)?"
    r"|unable to (?:help|assist|comply|fulfil\w*|continue|discuss|engage|provide that|do that)"
    r"|(?:can not|cannot|can'?t|will not|won'?t) (?:help|assist|comply|continue|discuss|engage|provide that|do that))\b",
    re.IGNORECASE,
)
"""Words of courtesy and of refusing to deal with a question, which say nothing of the passages."""


def guesses(text: str) -> bool:
    """Whether a text says that it guesses."""
    return _GUESS.search(_words(text).joined) is not None


def declines(text: str) -> str:
    """The words by which a text says that it gives no answer, "" where it gives one or guesses."""
    words = _words(text)
    if not words.tokens or _GUESS.search(words.joined) is not None:
        return ""
    if (found := _DECLINES.search(words.joined)) is not None:
        return f"'{found.group().strip()}'"
    if not words.text.isascii():
        for phrase in _ANYWHERE:
            if phrase in words.text:
                return f"'{phrase}'"
    return abstains(Words(_NO_WISH.sub(" ", words.text)))


def beside(text: str) -> tuple[int, str]:
    """Where in a text the words stand that give no answer (counted in words), and what it says beside them."""
    words = _words(text)
    found = _DECLINES.search(words.joined)
    if found is None:
        return 0, ""
    start = words.index(found.start())
    return start, " ".join((*words.cased[:start], *words.cased[start + len(found.group().split()) :]))


def _words(text: str) -> Words:
    return Words(plain(answer_region(text, paragraphs=True))[:1200])
