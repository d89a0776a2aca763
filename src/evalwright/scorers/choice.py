"""Multiple choice: is the chosen option a right one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in
one of its common forms, or an option's text. A reply that may mean several options, or none, is undecided.
"""

from __future__ import annotations

import re
from string import ascii_uppercase

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.scorers.match import Reading, Target, mentions, read, targets_of
from evalwright.scorers.names import Names
from evalwright.scorers.text.cues import labels
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.locate import Said, lines, said

NOT_EXTRACTED = -1
"""The part "predicted" of an answer from which no single option could be read."""

_ALIKE = str.maketrans({"А": "A", "С": "C", "Е": "E"} | dict(zip("①②③④⑤⑥ⓐⓑⓒⓓⓔ", "ABCDEFABCDE", strict=True)))
"""Letters that look like options', and numbers in circles."""
_NUMBER = re.compile(
    r"^(?:option |number |no\. |第)?([1-9])(?:번|番|項|项)?(?:입니다|です|이다)?$|(?<![\w.])([1-9])번|^([1-9])번",
    re.IGNORECASE,
)
_OPTION = (
    "option|choice|correct one|letter|statement|alternative|opción|opzione|letra|lettera|lettre|alternativa|optie|buchstabe|вариант|варіант|opcja|"
    "odpowiedź|şık|seçenek|الخيار|विकल्प|pilihan|phương án|ข้อ|选项|选|選|보기|chaguo"
)
_CUE = re.compile(
    rf"(?<![^\W_])(?i:(?:{_OPTION}|{labels('mark')})(?:nya)?|I (?:would )?(?:choose|pick|select|say|go with)|go(?:ing)? (?:with|for)|must be|should be|it is|it's)"
    r"(?i:\s?(?:is|are|:|：|=|would be|should be|must be|ist|est|es|è|é|—|-|은|는|は|是|คือ|adalah|là|الصحيحة|هي|correcta|correct|đúng|doğru|la|los|the|die|letra|lettre|letter|option|choice|lettera|वाला)){0,5}"
    r"[\s:：—\"'(=>]{0,6}([A-Z]|[a-z](?=\)))(?=[\s).,:;!\"'。，、<]|[는은이가입ので]|$)(?!\s(?:[a-z]+\s){0,1}(?:false|wrong|incorrect|not))"
)
_OPENING = re.compile(
    r"[\s(\"']{0,3}(?:(?:option|choice|la|the|la réponse) )?([A-Za-z])(?:[\"']?\s?[).:\]、：]|\s?,\s(?=not\s|because\s)|[\"']?\s*(?:$|\n)|\s+-\s|[のでが项項]|입니다|번)"
)
_NONE = re.compile(r"none of (?:the above|these|them|the options)|(?:no|neither) option", re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_LISTED = re.compile(r"(?m)^[\s(*]{0,4}([A-Z])\s?[).:]")
_BEHIND = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}\s?\(\s?(?:[^\W\d_]{3,12} )?([A-Z])\s?\)")
_LONE = re.compile(r"(?<![\w'’])([B-HJ-Z])(?![\w'’])|\(([A-Z])\)")
_TWO = re.compile(
    r"(?:\b(?:not|nor|neither|either|or|and|oder|ou|o|y|e|und|et)|n't|[,/&和])\s*\(?[A-Z]\b|\b[A-Z]\)?\s*(?:or|and|/|&|和|,|oder|ou|und|et)\s*\(?[A-Z]\b"
)
_NONE_OF_THEM, _SEVERAL = "an option that does not exist", "more than one option"
_MEASURES = ("none", "characters", "bytes", "tokens")


def choice(sample: Sample, answer: Answer, *, normalise: str = "none") -> Score | Undecided:
    """1.0 where the chosen option is in `sample.gold`, else 0.0; labels "correct", "incorrect", "not_attempted".

    normalise: by what each option's log-likelihood is divided before the highest is chosen: "none" keeps the strategy's
    choice; "characters" (Unicode code points of the option), "bytes" (its UTF-8 bytes), "tokens" (as the model counted
    them). Ties go to the first. parts: "predicted" and, where exactly one option is right, "gold" (indices; -1 for an answer that
    chooses none). Undecided where no single option can be read from a text. Raises ScoringError without the log-likelihoods that
    are asked for.
    """
    if normalise not in _MEASURES:
        raise ConfigurationError(
            f"The option 'normalise' of the scorer 'choice' is one of {', '.join(_MEASURES)}, not '{normalise}'."
        )
    if not sample.choices or not sample.gold:
        raise ScoringError(f"The sample '{sample.id}' has no options with a right one among them.")
    if normalise != "none":
        predicted, how = _by_length(sample, answer, normalise), f"log-likelihood per {normalise[:-1]}"
    elif answer.choice is not None:
        predicted, how = answer.choice, "the strategy's choice"
    else:
        language = str(sample.metadata.get("language") or "en")
        predicted, how = extract(answer.text, sample.choices, language, sample.input)
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    if predicted == NOT_EXTRACTED:
        if how in (_NONE_OF_THEM, _SEVERAL):
            return Score(0.0, "incorrect", how, parts)
        if not answer.text.strip() or declines(answer.text):
            return Score(0.0, "not_attempted", how, parts)
        return Undecided(how)
    right = predicted in sample.gold
    return Score(
        float(right), "correct" if right else "incorrect", f"option {_letter(predicted)}: {how}", parts
    )


def extract(text: str, choices: tuple[str, ...], language: str = "en", question: str = "") -> tuple[int, str]:
    """The index of the one option that a text surely chooses and by which rule; NOT_EXTRACTED and why where there is none."""
    found = said(text, question)
    region = found.text.translate(_ALIKE)
    options, letters = targets_of(choices), ascii_uppercase[: len(choices)]
    bare = region.strip(" .()\"'*")
    if not any(map(str.isalnum, bare)):
        return NOT_EXTRACTED, "the answer is empty"
    names = [Names([option], question, language) for option in options]
    whole = [index for index, one in enumerate(names) if one.is_target(found.text)]
    if len(whole) == 1:
        return whole[0], "the option's text"
    if not any(option.text.casefold() == bare.casefold() for option in options):
        letter = len(bare) == 1 and bare.isascii() and bare.isupper() and bare not in letters
        if (letter and not any(option.text[:1].upper() == bare for option in options)) or _NONE.fullmatch(
            bare
        ):
            return NOT_EXTRACTED, _NONE_OF_THEM
        if _BOTH.fullmatch(bare) and len(set(re.findall("[A-Z]", bare)) & set(letters)) > 1:
            return NOT_EXTRACTED, _SEVERAL
    listed = len(set(_LISTED.findall(region))) > 1 and not found.marked
    last = (found.last or lines(region)[-1]).translate(_ALIKE)
    last = "" if _LISTED.match(last) or not (found.last or listed) else last
    for part, how in ((last, "the conclusion"), ("" if listed else region, "the reply")):
        index = _by_letter(part, letters, options, found.marked)
        if index is not None:
            return (
                index,
                f"the letter in {how}" if index >= 0 else "letters that differ, or another option's text",
            )
    if listed:
        return NOT_EXTRACTED, "it lists several options"
    return _by_name(found, region, letters, options, names)


def _by_letter(text: str, letters: str, options: tuple[Target, ...], marked: bool) -> int | None:
    """The option whose letter or number a text gives; NOT_EXTRACTED where letters differ, None where there is no letter."""
    opening = _OPENING.match(text)
    if (
        opening is not None
        and opening[1].upper() in letters
        and ("," in opening.group() or not _TWO.search(text[: opening.end() + 6]))
    ):
        index = letters.index(opening[1].upper())
        rest = read(text[opening.end() :].split("\n", 1)[0])
        others = [one for place, one in enumerate(options) if place != index and mentions(rest, [one])]
        clash = others and not mentions(rest, [options[index]]) and len(rest.tokens) <= 8
        return NOT_EXTRACTED if clash else index
    cued = list(
        dict.fromkeys(letters.index(one.upper()) for one in _CUE.findall(text) if one.upper() in letters)
    )
    if cued:
        end = lines(text)[-1:] or [""]
        last = [letters.index(one.upper()) for one in _CUE.findall(end[0]) if one.upper() in letters]
        sure = cued if len(cued) == 1 else list(dict.fromkeys(last))
        return sure[0] if len(sure) == 1 and not _TWO.search(end[0]) else NOT_EXTRACTED
    number = _NUMBER.search(text.strip(" .()*"))
    if number is not None and not any(map(str.isdigit, "".join(one.text for one in options))):
        place = int(next(filter(None, number.groups())))
        named = marked or any(sign in number.group() for sign in "번番")
        return place - 1 if place <= len(letters) and named else None
    return None


def _by_name(
    found: Said, region: str, letters: str, options: tuple[Target, ...], names: list[Names]
) -> tuple[int, str]:
    """The option whose text a reply gives as its answer."""
    verdicts = [one.judge(found) for one in names]
    given = [index for index, verdict in enumerate(verdicts) if verdict.label == "correct"]
    given = [
        one
        for one in given
        if not any(one != two and mentions(read(options[two].text), [options[one]]) for two in given)
    ]
    if len(given) == 1 and not found.marked and _beside(given[0], read(region), names):
        parts = [names[given[0]].sentence(part) for part in lines(region)]
        given = (
            given if any(one.verdict.label == "correct" and (one.bare or one.about) for one in parts) else []
        )
    behind = {letters.index(letter) for letter in _BEHIND.findall(region) if letter in letters}
    lone = {letters.index(one or two) for one, two in _LONE.findall(region) if (one or two) in letters}
    if len(given) == 1 and (not lone or given[0] in lone or behind == set(given)):
        return given[0], "the option's text in the answer"
    whole = read(region).tokens
    denied = names[0].cues.denies(whole, region)
    if len(whole) <= 8 and not denied and not given:
        own = [{token for token in option.tokens if len(token) > 3} for option in options]
        sharing = [
            index
            for index, tokens in enumerate(own)
            if any(sum(token in other for other in own) == 1 for token in tokens & set(whole))
        ]
        if len(sharing) == 1 and not lone and "?" not in region and verdicts[sharing[0]].label == "undecided":
            return sharing[0], "a word that only one option has"
        if len(lone) == 1 and not sharing and not _TWO.search(region):
            return lone.pop(), "the only letter that stands alone"
    return NOT_EXTRACTED, "no single option's letter or text in the answer"


def _beside(chosen: int, reading: Reading, names: list[Names]) -> bool:
    """Whether another option's text stands in a reply, undenied and not inside the chosen one's."""
    own = mentions(reading, names[chosen].targets)
    return any(
        not one.denied(reading, found)
        and not any(two.start <= found.start and found.end <= two.end for two in own)
        for index, one in enumerate(names)
        for found in (mentions(reading, one.targets) if index != chosen else ())
    )


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < 26 else str(index)


def _by_length(sample: Sample, answer: Answer, measure: str) -> int:
    values = answer.log_likelihoods
    if len(values) != len(sample.choices):
        raise ScoringError(
            f"To normalise by {measure}, every option needs a log-likelihood; use a strategy that chooses by likelihood."
        )
    if measure == "characters":
        lengths = [len(option) for option in sample.choices]
    elif measure == "bytes":
        lengths = [len(option.encode("utf-8", "surrogatepass")) for option in sample.choices]
    else:
        counted = [response.tokens_scored for response in answer.responses]
        if len(counted) != len(values) or None in counted:
            raise ScoringError(
                "To normalise by tokens, the model must say how many tokens it scored; this one does not."
            )
        lengths = [count or 0 for count in counted]
    if not all(lengths):
        raise ScoringError(
            f"An option of the sample '{sample.id}' has no {measure}, so nothing can be divided by them."
        )
    return max(range(len(values)), key=lambda index: values[index] / lengths[index])
