"""Whether an answer gives what it mentions, where no plain negation says so.

A right name may stand in a wrong statement: as what another thing is compared with ("Saturn is larger than Jupiter"), as a
relative ("the son of George Washington"), as a neighbour ("near Paris"), as what was so formerly, or as what others believe.
Each rule keeps silent where the question itself is about that relation ("Whom did Adams succeed?").
"""

from __future__ import annotations

import re

from evalwright.scorers.polarity import SENTENCE_END, Occurrence
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

_ARTICLES = r"(?:(?:the|a|an|even|either|both|our|king|queen|president|mount|mt\.?|lake|city of)\s+)*$"
_THAN = re.compile(rf"\bthan\s+{_ARTICLES}", re.IGNORECASE)
_NONE_THAN = re.compile(
    r"\b(?:no|nothing|none|never|nobody|not|neither|nor|other|rather|any|cannot|few|hardly)\b|n't\b",
    re.IGNORECASE,
)
_AS_DID = re.compile(r"\b(?:before|after|than|like|as|when|while)\s+(?:the\s+)?$", re.IGNORECASE)
_DID = re.compile(r"\s+(?:did|does|do|was|were|is|has|had)\s*(?:[.,;!?]|$)", re.IGNORECASE)
_NEAR = re.compile(
    r"\b(?:near|nearby|outside|(?:suburbs?|outskirts|district|vicinity|(?:north|south|east|west)(?:east|west)?|neighbou?rhood)\s+of"
    rf"|close to|next to|not far from)\s+{_ARTICLES}",
    re.IGNORECASE,
)
_AFTER_OTHERS = re.compile(
    rf"\b(?:followed by|succeeded by|replaced by|ahead of|second only to"
    rf"|(?:second|third|next|runner-up)(?:[ -](?:place|one|\w+est))?\s+(?:is|was|being|would be|comes?))\s+{_ARTICLES}",
    re.IGNORECASE,
)
_OTHERS_DID = re.compile(
    r"(?:\b[A-Z]\w+|\b(?:who|which|he|she|it|they))\s+(?:(?i:succeeded|followed|replaced|preceded|defeated|beat|overthrew|outlived))"
    r"\s+(?:the\s+|King\s+|Queen\s+|President\s+|Emperor\s+)*$"
)
_FROM = re.compile(
    r"\b(?:moved|went|came|relocated|transferred|travelled|traveled|switched)\s+(?:\w+\s+){0,3}from\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_KIN = word_set(
    "son daughter father mother brother sister wife husband widow grandson granddaughter grandfather grandmother nephew niece uncle "
    "competitor subsidiary supplier aunt cousin successor predecessor pupil student assistant rival opponent deputy vice"
)
_KIN_OF = re.compile(
    rf"(?:(?:it|he|she|this|that)\s+(?:is|was)\s+)?(?:(?:the|a|an)\s+)?(?:\w+\s+)?(?:{'|'.join(sorted(_KIN))})\s+of\s+{_ARTICLES}",
    re.IGNORECASE,
)
_OTHERS_SAY = re.compile(
    r"\b(?:some|many|people|others|most|you|one|everyone|often|commonly|popularly|widely|sometimes|frequently|tempting|first|initially)\b[^.!?;]{0,40}"
    r"\b(?:say|says|said|think|thinks|thought|believe|believes|believed|assumed?|claims?|claimed|considered?|guess|expect|imagine"
    r"|cited?|attributed|credited|mistaken|answer|instinct)\b[^.!?;]{0,30}$",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"[^.!?\n]{0,60}?[,;.]?\s*\b(?:but|however|in fact|actually|in reality|in truth|yet)\b(?! (?:also|it is also|it's also|not (?:only|all)|I\b|some|others|a few|many|there|opinions|this|it remains|it is (?:disputed|debated)))",
    re.IGNORECASE,
)
_FORMERLY = re.compile(
    r"\b(?:formerly|previously|originally|once|used to be|was long|was once)\s+(?:called\s+|known as\s+|in\s+|the\s+|at\s+)*$",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\s+(?:until|till|up to|before)\b", re.IGNORECASE)
_WAS = re.compile(r"\b(?:was|were|had been)\s+(?:\w+\s+)?$", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:now|today|currently|nowadays|at present|these days|since then|is it)\b", re.IGNORECASE
)
_IF = re.compile(
    r"\bif\s+(?:it|that|this|the (?:answer|\w+))\s+(?:were|was|had been)\s+(?:the\s+)?$", re.IGNORECASE
)
_DISBELIEF = re.compile(
    r"\b(?:misconception|myth|fallacy|mistakenly|wrongly|erroneously|falsely|incorrectly|unlikely"
    r"|(?<!no )(?<!without )(?<!without a )(?<!any )(?<!a )(?<!little )(?<!beyond )(?<!reasonable )doubt(?:s|ed|ful)?"
    r"|(?:wrong|false|untrue|incorrect|mistake|mistaken) to|(?:wrong|false|untrue|incorrect) that)\b[^,;:.!?]{0,40}$"
    r"|\bnot, [^,.;!?]{2,40},\s*$"
    r"|\b(?:nobody|no one|few|don't|never) (?:people )?(?:would |could |can )?(?:say|says|think|thinks|claims?|believes?|call|calls)\b[^,;:.!?]{0,30}$",
    re.IGNORECASE,
)
_TRIGGERS = word_set(
    "than before after like as when while near nearby outside suburb suburbs outskirts district vicinity north south east west "
    "northeast northwest southeast southwest neighbourhood neighborhood close next far followed succeeded replaced ahead second "
    "preceded defeated beat overthrew outlived from some many people others most you one everyone often commonly popularly widely "
    "not nobody no few first initially sometimes frequently tempting third next runner formerly previously originally once used was were if misconception myth fallacy mistakenly wrongly "
    "erroneously falsely incorrectly unlikely doubt doubts doubted doubtful wrong false untrue incorrect mistake mistaken"
) | _KIN  # fmt: skip
_FARTHEST, _MOST_BEFORE = 60, 300
"""How many words and characters before a name are looked at."""
_ABOUT = {
    "near": re.compile(
        r"\b(?:where|near|close|closest|located|location|next|outside|around|place|airport|serves?|nearest|held|happen\w*|occur\w*|born)\b",
        re.IGNORECASE,
    ),
    "order": re.compile(
        r"\b(?:follow|succe|replac|preced|predecess|defeat|beat|overthr|outliv|after|before|next|second|third|runner|against|whom|lose|lost|behind|oppon|rival|prior|earlier|later|previous|versus|play|fac(?:e|ing))",
        re.IGNORECASE,
    ),
    "kin": re.compile(
        rf"\b(?:{'|'.join(sorted(_KIN))}|marr|spouse|child|parent|relat|whose|family|born to|sibling)",
        re.IGNORECASE,
    ),
    "from": re.compile(r"\b(?:from|left|leave|depart|origin|before|previous)", re.IGNORECASE),
    "former": re.compile(
        r"\b(?:former|previous|old|origin|used to|until|before|once|ancient|histor|was|were|did|had)",
        re.IGNORECASE,
    ),
}


def unasserted(words: Words, occurrence: Occurrence, question: str = "", names: bool = True) -> str:
    """Why what stands at the occurrence is not given as the answer ("only compared with"), "" where nothing says so.

    names: whether it is a name; comparisons, relatives and neighbours are looked for only then.
    """
    tokens, (first, end) = words.tokens, occurrence
    kin_after = names and end < len(tokens) and tokens[end] in _KIN and words.cased[end - 1].endswith("'s")
    if not kin_after and _TRIGGERS.isdisjoint(tokens[max(0, first - _FARTHEST) : first]):
        return ""
    place = words.spans[first][0]
    before = words.text[max(0, place - _MOST_BEFORE) : place]
    after = words.text[words.spans[end - 1][1] :][:200]
    starts = [found.end() for found in SENTENCE_END.finditer(before)]
    sentence = before[starts[-1] :] if starts else before
    if _DISBELIEF.search(sentence) is not None or _IF.search(sentence) is not None:
        return "not claimed, but doubted or supposed"
    if _OTHERS_SAY.search(sentence) is not None and _TURN.match(after) is not None:
        return "said by others and then corrected"
    former = _FORMERLY.search(sentence) is not None or (
        _WAS.search(sentence) is not None and _UNTIL.match(after) is not None
    )
    if former and _NOW.search(after) is not None and not _asks("former", question):
        return "what was so formerly"
    return _in_relation(words, occurrence, sentence, after, question, kin_after) if names else ""


def _in_relation(
    words: Words, occurrence: Occurrence, sentence: str, after: str, question: str, kin_after: bool
) -> str:
    if _THAN.search(sentence) is not None and _NONE_THAN.search(sentence) is None:
        return "only what something is compared with"
    if _AS_DID.search(sentence) is not None and _DID.match(after) is not None:
        return "only what something is compared with"
    if _NEAR.search(sentence) is not None and not _asks("near", question):
        return "only what the answer is near"
    ordered = _AFTER_OTHERS.search(sentence) is not None or _OTHERS_DID.search(sentence) is not None
    if ordered and not _asks("order", question):
        return "only what comes before or after the answer"
    if (
        _FROM.search(sentence) is not None
        and after.lstrip().startswith("to ")
        and not _asks("from", question)
    ):
        return "only where something left"
    place = words.spans[occurrence[0]][0]
    opening = words.text[:place].lstrip() if place < _MOST_BEFORE else ""
    kin = kin_after or _KIN_OF.fullmatch(opening) is not None
    return "only a relation of the answer" if kin and not _asks("kin", question) else ""


def _asks(relation: str, question: str) -> bool:
    return _ABOUT[relation].search(question[:1000]) is not None
