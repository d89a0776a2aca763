"""What refusing, denying, hedging and answering sound like, as a table by language. The rules that read it are in `rules.py`.

Patterns are regular expressions over a clause in lower case, with straight apostrophes taken out ("don't" is "dont"). They
match anywhere in it; in scripts with spaces, at the beginnings of words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from evalwright.scorers.text.wordlists import word_set


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language.

    refusing: the speaker does not know or will not say. denying: something does not exist, never happened or cannot be.
    negating: a negation of whatever the clause is about; harmless: what looks like one and is none. contrast: begins a
    clause that turns. doubting: a guess. courtesy: addressed to the reader, without content. speaking: about the speaker
    and its knowledge, or advice to the reader. announcing: an answer follows. verbal: the clause has a predicate. naming:
    frames before a thing that is named; named: the same where the frame stands after it, with the thing in group 1.
    counting: the question asks for a number, a year or a day. common: words that name nothing. ending: conjunctions at
    which a clause ends, with the conjunction itself belonging to it.
    """

    code: str
    refusing: tuple[str, ...]
    denying: tuple[str, ...]
    negating: tuple[str, ...]
    contrast: tuple[str, ...]
    doubting: tuple[str, ...]
    courtesy: tuple[str, ...]
    speaking: tuple[str, ...]
    announcing: tuple[str, ...]
    verbal: tuple[str, ...]
    naming: tuple[str, ...]
    counting: tuple[str, ...]
    harmless: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()
    agreeing: tuple[str, ...] = ()
    common: frozenset[str] = frozenset()
    spaced: bool = True


class Compiled:
    """The patterns of a language, ready to search with."""

    def __init__(self, phrases: Phrases) -> None:
        self.code = phrases.code
        self.common = phrases.common
        edge = r"(?<![^\W_])" if phrases.spaced else ""
        for name in (
            "refusing",
            "denying",
            "negating",
            "doubting",
            "courtesy",
            "speaking",
            "announcing",
            "agreeing",
        ):
            setattr(self, name, _any(getattr(phrases, name), edge))
        self.verbal, self.counting = _any(phrases.verbal, ""), _any(phrases.counting, edge)
        self.harmless, self.naming = _any(phrases.harmless, edge), _any(phrases.naming, edge)
        self.named = _any(phrases.named, "")
        self.contrast = _any(phrases.contrast, edge)
        self.ending = _any(phrases.ending, "")

    refusing: re.Pattern[str]
    denying: re.Pattern[str]
    negating: re.Pattern[str]
    doubting: re.Pattern[str]
    courtesy: re.Pattern[str]
    speaking: re.Pattern[str]
    announcing: re.Pattern[str]
    agreeing: re.Pattern[str]


def _any(patterns: tuple[str, ...], edge: str) -> re.Pattern[str]:
    # Answers are read in this form too; it spells the Thai vowel am with two signs.
    whole = unicodedata.normalize("NFKC", "|".join(patterns))
    return re.compile(f"{edge}(?:{whole})" if patterns else r"(?!)")


@cache
def compiled(code: str) -> Compiled:
    """The patterns of a language that the table has."""
    return Compiled(_table()[code])


@cache
def _table() -> dict[str, Phrases]:
    from evalwright.scorers.stress.phrases_latin import LATIN
    from evalwright.scorers.stress.phrases_others import OTHERS

    return {one.code: one for one in (ENGLISH, *LATIN, *OTHERS)}


def known_languages() -> tuple[str, ...]:
    """The languages of the table, by ISO 639 code."""
    return tuple(_table())


_SCRIPTS = (
    ("ko", "\uac00", "\ud7a3"),
    ("th", "\u0e00", "\u0e7f"),
    ("ta", "\u0b80", "\u0bff"),
    ("zh", "\u4e00", "\u9fff"),
)
_ALSO = {"tl": "fil", "in": "id", "cmn": "zh", "kor": "ko", "ind": "id", "vie": "vi", "tha": "th", "tam": "ta", "msa": "ms", "zsm": "ms", "eng": "en"}  # fmt: skip
_NEAR = {"id": ("id", "ms"), "ms": ("ms", "id")}


@cache
def languages_of(declared: str, scripts: frozenset[str]) -> tuple[Compiled, ...]:
    """Whose patterns to read an answer with: those of its scripts, of the declared language, and English.

    Without a declared language, Latin letters are read with every table that is written in them.
    """
    code = declared.casefold().replace("_", "-").split("-")[0]
    code = _ALSO.get(code, code)
    table = _table()
    found = [one for one in _NEAR.get(code, (code,)) if one in table]
    found += [one for one in ("ko", "th", "ta", "zh") if one in scripts]
    if not code and not scripts:
        found += ["id", "ms", "vi", "fil"]
    return tuple(compiled(one) for one in dict.fromkeys(["en", *found]))


def scripts_of(text: str) -> frozenset[str]:
    """The languages of the table whose own script a text has."""
    if text.isascii():
        return frozenset()
    return frozenset(code for code, low, high in _SCRIPTS if any(low <= char <= high for char in text))


_NOT = r"(?:not|never|cannot|cant|couldnt|dont|doesnt|didnt|isnt|arent|wasnt|werent|hasnt|havent|hadnt|wont|wouldnt|nt)"
_KIND = (
    r"(?:\w+ ){0,3}?(?:person|people|place|country|city|king|queen|ruler|element|prize|award|event|thing|record|entity|film|movie|book|novel|"
    r"song|album|game|sport|law|theorem|effect|theory|compound|island|mountain|river|lake|species|language|company|university|mission|"
    r"spacecraft|probe|planet|moon|team|war|battle|treaty|year|date|day|version|term|concept|character|work|study|reaction|dish|cheese|word|"
    r"winner|crew|peak|summit|museum|building|bridge|station|programme|program|disease|drug|process|method|currency|festival|dynasty|empire)s?\b"
)

ENGLISH = Phrases(
    "en",
    refusing=(
        r"(?:i|we)(?: \w+ly)? (?:do not|dont|did not|didnt|cannot|cant|can not|could not|couldnt|am unable to|m unable to|are unable to|am not able to|m not able to)"
        r" (?:\w+ ){0,2}?(?:know|recall|remember|answer|say|tell|determine|find|verify|confirm|provide|identify|recogni[sz]e|give|help|locate|name|offer|share|comment|speculate|predict|see)\b",
        r"(?:i|we)(?: \w+ly)? (?:do not|dont|did not|didnt) (?:\w+ )?have (?:\w+ ){0,3}?(?:information|knowledge|access|data|details?|records?|answer|idea|clue)",
        r"(?:i|we) have no (?:\w+ ){0,2}?(?:information|knowledge|access|data|details?|records?|answer|idea|clue|way of knowing)",
        r"(?:i am|im|we are|were) (?:not|un)(?: )?(?:\w+ )?(?:sure|certain|aware|familiar|able)\b", r"(?:i am|im) unsure", r"(?:i am|im) unaware",
        r"(?:i|we) (?:must|have to|would|will|need to)? ?(?:respectfully )?(?:decline|refuse)\b", r"(?:i am|im) (?:sorry|afraid)",
        r"no answer", r"no idea", r"no (?:\w+ ){0,2}?information (?:is |was )?(?:available|known|found|on|about)", r"unanswerable", r"not answerable",
        r"n/a\b", r"^(?:unknown|unsure|pass|not known|not sure|not available|none given|not applicable)\W*$",
        r"(?:is|are|was|remains?|currently|yet|be) (?:still |currently |yet |as yet )?(?:unknown|not known|unclear|unknowable|undetermined|not (?:yet )?(?:been )?(?:determined|decided|announced|established|documented|recorded))",
        r"(?:cannot|can not|cant|could not|couldnt|will not) (?:ever |yet |currently )?be (?:\w+ly )?(?:determined|answered|known|verified|found|established|confirmed|predicted|identified|counted|measured)",
        r"(?:not|never) (?:yet |currently )?(?:been )?(?:known|knowable|recorded|documented|predictable)\b",
        r"(?:nobody|no one|noone|no-one|none of us|no human)(?: \w+)? (?:knows|can know|could know|can say|can tell|can predict|has ever (?:counted|recorded|measured)|recorded|counted|wrote)",
        r"(?:there is|theres) no way (?:to|of|for)", r"(?:it is|its) (?:not possible|impossible) to (?:know|say|tell|determine|answer|predict|count|verify|be certain)",
        r"(?:^|it is |its |that is |thats )not (?:\w+ )?(?:in|part of) the (?:passages?|texts?|context|documents?|sources?)\b", r"(?:we|i|one) can only (?:speculate|guess|imagine)", r"(?:isnt|is not|not) (?:one|something|anything) (?:that )?i (?:recogni[sz]e|know)", r"not enough information", r"insufficient (?:information|data)", r"(?:unable|not able) to (?:\w+ ){0,2}?(?:find|answer|verify|confirm|provide|determine|identify|locate|give)",
        r"could you (?:please )?(?:clarify|provide more|give me more|tell me more)", r"(?:please|can you) (?:clarify|provide more)",
    ),
    denying=(
        rf"(?:does|do|did|has|have|had|could|can|would|will)(?: )?{_NOT} (?:\w+ ){{0,3}}?(?:exist|existed|happen|happened|occur|occurred|take place|taken place)(?! (?:elsewhere|outside|anywhere|again|in nature))",
        r"(?:never|not) (?:\w+ ){0,2}?(?:exist|existed|happened|occurred|took place|taken place)\b(?! (?:elsewhere|again|outside))", r"non-?existent\b", r"no longer exist",
        r"(?:there|here) (?:is|are|was|were|has been|have been|exists?|existed|has (?:never|not)(?: \w+)? been|have (?:never|not)(?: \w+)? been|had been) ?(?:\w+ly )?(?:no|not|never|none|nt)\b(?! (?:doubt|question|shortage|way))",
        r"theres no(?:t|ne)?\b(?! (?:doubt|question|shortage|way))", r"there (?:isnt|arent|wasnt|werent|hasnt|havent|never|has never|have never|had never|cannot|cant|could)\b(?! (?:\w+ ){0,1}doubt)",
        r"no such\b", r"not (?:actually |really )?(?:a |an )?(?:real|actual|genuine|recogni[sz]ed|known|valid|existing|true)\b(?! (?:until|for))",
        r"not aware of (?:any|a|an)\b", r"(?:no|not any) (?:\w+ )?(?:record|evidence|mention|trace|indication|documentation)s? (?:of|that|for|exists?)",
        rf"no (?:known|recorded|documented|official|real|recogni[sz]ed) {_KIND}", rf"^no {_KIND} (?:has|have|had|was|were|is|are|ever|called|named|by|of|with|exists?|won|lived|ruled|reigned|in|on|did|does|with)",

        r"fictional\b", r"fictitious", r"made[- ]up", r"imaginary", r"invented (?:name|term|word|thing|place|person|entity)", r"hypothetical(?:ly)? (?:element|place|person|entity|event)", r"mythical", r"a hoax", r"an urban legend",
        r"false (?:premise|assumption|statement|claim|information)", r"(?:premise|assumption|question|claim|statement|date|information)(?: \w+){0,4}? (?:is|are|seems|appears|contains|rests|assumes|relies)(?: \w+){0,5}? (?:false|incorrect|wrong|mistaken|flawed|inaccurate|untrue|invalid|error|mistake|misconception|misunderstanding)",
        r"(?:is|was|thats|its|be|seems|are) (?:\w+ )?(?:impossible|not possible|not the case|untrue|incorrect|a myth|a mistake|a misconception|a misunderstanding|nonsensical|anachronis\w+)(?! to (?:overstate|exaggerate|forget|ignore|overlook))",
        r"(?:impossible|not possible) for\b", r"contrary to", r"common misconception", r"(?:trick|loaded) question", r"(?:could|can|would)(?: )?(?:not|never|nt) (?:possibly )?have\b", r"(?:couldnt|wouldnt|cant|cannot) (?:possibly )?have\b",
        r"(?:seems?|appears?|must|there may|there might|might|may) (?:to )?(?:be|have been) (?:a |an |some )?(?:mistake|error|confusion|mix-?up|misunderstanding|misconception|typo)", r"you (?:may|might|seem to|must|are|re) (?:be |have )?(?:\w+ )?(?:thinking of|confus|mistaken|mixing)",
        r"(?:was|is|has been|were|got) (?:cancell?ed|abolished before|scrapped)(?! (?:in|after) \d{4} after)", r"^no,", r"(?:had|has|have|were|was|are|is|did) (?:already |long |been )*(?:dead|died|extinct)\b", r"did(?: not|nt) live to\b",
        r"died (?:in|before|long|centuries|decades)\b", r"(?:was|were) (?:not )?born (?:in|after|only)\b",
    ),
    negating=(rf"{_NOT}\b", r"(?:nobody|no one|noone|no-one|none of them)\b(?! (?:but|except|other than))", r"neither\b", r"nor\b", r"none\b", r"nothing\b", r"no\b(?! (?:doubt|question|later|more|wonder|longer than|less|fewer|matter|idea))", r"without\b(?! (?:doubt|question))", r"lacks?\b", r"nowhere\b", r"zero\b", r"(?:rather than|instead of)\b", r"\w+less\b(?<!regardless)(?<!nonetheless)(?<!nevertheless)(?<!unless)(?<!less)"),
    harmless=(
        r"not (?:only|just|merely|simply|surprisingly|long|far|least|to mention)\b", r"(?:no|without) (?:a )?(?:doubt|question)", r"not without\b", r"never mind", r"dont worry", r"(?:nobody|no one|none|nothing) (?:but|except|other than)\b", r"not yet\b(?= \w+ as)",
        r"(?:wasnt|was not|didnt|did not|not)(?: \w+){0,6}? until\b",
    ),
    contrast=(r"but\b", r"however\b", r"although\b", r"though\b", r"nevertheless\b", r"nonetheless\b", r"yet\b(?=,)", r"still,", r"that said\b", r"even so\b", r"anyway\b", r"despite\b", r"actually,"),
    doubting=(r"maybe\b", r"perhaps\b", r"possibly\b", r"might (?:be|have)\b", r"may (?:be|have)\b(?! (?:confus|mis))", r"could be\b", r"(?:my|best|a|an educated) guess\b", r"i(?:d| would| will|ll)? guess\b", r"if i (?:had|have) to guess"),
    courtesy=(
        r"^(?:sure|of course|certainly|absolutely|thank you|thanks|hello|hi|great|good|interesting|excellent)\b(?:[ ,!]*(?:for|there|that is|thats|a|an|great|good|interesting|excellent|question|asking|your|the|such|you|i can help|with that|is|what|here is|heres|my|reply|answer|gladly|thanks|thank))*[\W]*$",
        r"i hope (?:this|that)", r"(?:let me know|feel free|happy to help|glad to help|please ask|if you have (?:any|more|other)|is there anything|have a (?:nice|good|great) day|hope (?:this|that) helps|you are welcome|youre welcome)",
        r"^(?:here is|heres) (?:my|the|your)(?: \w+){0,2} (?:reply|answer|response)\W*$", r"^let me (?:think|see|answer|help)(?: \w+){0,4}\W*$", r"^(?:this|that) is (?:a|an) (?:\w+ )?(?:good|great|interesting|fine|excellent|thoughtful) (?:\w+ )?question", r"^i appreciate\b", r"^i have considered your question", r"^(?:regards|best wishes|answer|reply|the answer is)\W*$",
    ),
    speaking=(r"my (?:knowledge|training|data|information|cutoff|records)\b", r"as an ai\b", r"language model\b", r"i (?:suggest|recommend|advise)\b", r"you (?:can|could|may|might|should) (?:\w+ )?(?:check|look|find|visit|consult|try|want|search|ask)", r"please (?:check|consult|provide|visit|see|refer|verify|let|specify)", r"if you (?:have|can|could|meant|mean|want|need|are|would|provide|give|were)", r"did you mean\b", r"(?:i can|id be|i would be|im) (?:happy|glad|help|here)", r"consult\b", r"i was last (?:updated|trained)", r"only go(?:es)? (?:up )?to"),
    announcing=(r"(?:the|my|so the|so my)(?: \w+){0,2} (?:answer|guess|reply|estimate)(?: \w+){0,3}? (?:is|was|would be)\b", r"answer:", r"if i had to", r"(?:it|that|he|she|they) (?:was|is|were|would be|did (?:so|it)|won|happened)\b(?! (?:not|never|only|a |an |the |because|due|part|just|awarded|said|called|possible|true|fiction|invented|created|made|set))"),
    verbal=(r"\b(?:is|are|was|were|be|been|am|has|have|had|do|does|did|can|could|will|would|may|might|must|should|isnt|wasnt|im|its|thats|became|won|wrote|said|took|made|led|gave|sent|found|began|held|built|sang|ran|lies|live|lives|means|says|known|stands|comes|came|went|got|set|let|think|believe|know|hope|sits|opens|died|dies)\b", r"\b[a-z]{3,}(?:ed|ized)\b"),
    naming=(r"called\b", r"named\b", r"known as\b", r"titled\b", r"(?:is|was|are|were|being|became)\b(?! (?:a|an|one|the (?:first|same|most)|very|not|also|still|no|in|on|at|by|of|made|born|sent|used|known|found|held|that|to|so|said|being|been|\w+ed|set|true|real|quite|widely)\b)", r"made (?:from|of|with)\b", r"(?:from|by|of)\b(?= \w+\W*$)"),
    counting=(r"(?:in )?(?:which|what) (?:year|month|day|date|century|decade|season|time)", r"^when\b", r"how (?:many|much|old|long|tall|high|far|deep|often|large|heavy|fast)", r"on (?:which|what) (?:day|date)", r"what (?:is|was) the (?:\w+ ){0,3}?(?:number|date|year|population|height|length|length|score|temperature|age|price|weight|distance|depth)", r"what (?:percentage|number|score)"),
    agreeing=(r"^(?:yes|yeah|true|correct|right|indeed|that is (?:right|correct|true)|thats (?:right|correct|true))\W*$",),
    common=word_set(
        "the a an of in on at to for by with from and or nor if it its he she they his her their this that these those there here is are was were be been am "
        "has have had do does did can could will would may might must should not no yes so as than then which who whom whose what when where why how i we you "
        "my our your me us one ones some any all both each very most more such into onto over under about after before during between only just also too "
        "because since while until new first last scientists researchers people experts historians everyone many several various century year years day days "
        "correct answer question name capital country city well known famous great important large small good popular beautiful according based therefore thus hence "
        "in the additionally furthermore moreover overall finally question example sentence note however although sadly unfortunately indeed"
    ),
)  # fmt: skip
