"""Multiple choice: is the chosen option a right one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in
one of its common forms, or an option's text. A reply that may mean several options, or none, is undecided.
"""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_uppercase

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.scorers.match import Target, mentions, read, targets_of
from evalwright.scorers.names import Names
from evalwright.scorers.text.cues import cues, last_revision
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.locate import Said, lines, said

NOT_EXTRACTED = -1
"""The part "predicted" of an answer from which no single option could be read."""

_ALIKE = str.maketrans("АСЕ", "ACE")
"""Cyrillic letters that look like options'."""
_WORDS = (
    "answer|option|choice|correct one|letter|statement|alternative|antwort|option|réponse|respuesta|opción|risposta|opzione|resposta|letra|alternativa|antwoord|optie|"
    "ответ|вариант|відповідь|варіант|odpowiedź|opcja|cevap|şık|seçenek|الإجابة|الجواب|الخيار|उत्तर|विकल्प|jawaban|jawapan|pilihan|đáp án|câu trả lời|phương án|"
    "คำตอบ|ข้อ|答案|选项|选|選|答え|正解|정답|답|sagot|jibu|chaguo"
)
_CUE = re.compile(
    rf"(?<![^\W_])(?i:(?:{_WORDS})(?:nya)?|I (?:would )?(?:choose|pick|select|say|go with)|go(?:ing)? (?:with|for)|must be|should be|it is|it's)"
    r"(?i:\s?(?:is|are|:|：|=|would be|should be|must be|ist|est|es|è|é|—|-|은|는|は|是|คือ|adalah|là|الصحيحة|هي|correcta|correct|đúng|doğru|la|los|the|die|letra|lettre|letter|option|choice|lettera|option|letra|वाला)){0,5}"
    r"[\s:：—\"'(]{0,4}([A-Z]|[a-z](?=\)))(?=[\s).,:;!\"'。，、]|[는은이가입の]|$)(?!\s(?:[a-z]+\s){0,1}(?:false|wrong|incorrect|not))"
)
_OPENING = re.compile(
    r"[\s(\"']{0,3}(?:(?:option|choice|la|the|la réponse) )?([A-Za-z])(?:[\"']?\s?[).:\]]|,\s(?=not\s)|[\"']?\s*(?:$|\n)|\s+-\s|の)"
)
_NONE = re.compile(r"none of (?:the above|these|them|the options)|(?:no|neither) option", re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_LISTED = re.compile(r"(?m)^[\s(*]{0,4}([A-Z])\s?[).:]")
_AFTER = re.compile(r"[^\W\d_]{2,}\s?\(\s?(?:[^\W\d_]{3,12} )?([A-Z])\s?\)")
_LONE = re.compile(r"(?<![\w'’])([B-HJ-Z])(?![\w'’])|\(([A-Z])\)")
_NUMBERED = re.compile(r"(?:^|정답은 |답은 )([1-9])번")
_NEGATED = re.compile(
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
        predicted, how = extract(answer.text, sample.choices, str(sample.metadata.get("language") or "en"))
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


def extract(text: str, choices: tuple[str, ...], language: str = "en") -> tuple[int, str]:
    """The index of the one option that a text surely chooses and by which rule; NOT_EXTRACTED and why where there is none."""
    found = said(text)
    options = _prepared(choices)
    letters = ascii_uppercase[: len(choices)]
    region = found.text.translate(_ALIKE)
    parts = lines(region)
    if not parts:
        return NOT_EXTRACTED, "the answer is empty"
    whole = read(region)
    for index, option in enumerate(options):
        if whole.joined.strip() in option.forms or whole.tokens == list(option.tokens):
            return index, "the option's exact text"
    bare = region.strip(" .()\"'*")
    if (
        len(bare) == 1
        and bare.isascii()
        and bare.isupper()
        and bare not in letters
        and not any(option.text[:1].upper() == bare for option in options)
    ):
        return NOT_EXTRACTED, _NONE_OF_THEM
    if _NONE.fullmatch(bare) and not any(_NONE.search(option.text) for option in options):
        return NOT_EXTRACTED, _NONE_OF_THEM
    if _BOTH.fullmatch(bare) and len(set(re.findall("[A-Z]", bare)) & set(letters)) > 1:
        return NOT_EXTRACTED, _SEVERAL
    if (change := last_revision(region)) is not None:
        index, how = extract(region[change[1] :].strip(" .,:;!-"), choices, language)
        return index, f"after a change of mind: {how}"
    if len(set(_LISTED.findall(region))) > 1 and not found.marked:
        concluded = _cued(parts[-1], letters)
        return (
            (concluded[0], "the letter in the last line")
            if len(concluded) == 1
            else (NOT_EXTRACTED, "it lists several options")
        )
    opening = _opening(region, letters, options)
    if opening is not None:
        return (
            (opening, "the letter that it opens with")
            if opening >= 0
            else (NOT_EXTRACTED, "a letter with another option's text")
        )
    return _in_text(found, region, parts, letters, options, language)


def _in_text(
    found: Said, region: str, parts: list[str], letters: str, options: tuple[Target, ...], language: str
) -> tuple[int, str]:
    cued = _cued(region, letters)
    last = _cued(parts[-1], letters)
    if len(cued) == 1 and not _many_letters(parts[-1]):
        return cued[0], "the letter after 'answer' or the like"
    if cued:
        return (
            (last[0], "the letter in the last sentence")
            if len(last) == 1 and len(parts) > 1
            else (NOT_EXTRACTED, "several letters")
        )
    if (numbered := _NUMBERED.search(region)) is not None and int(numbered[1]) <= len(letters):
        return int(numbered[1]) - 1, "the number of the option"
    named = _named(parts, options, language)
    behind = {letters.index(letter) for letter in _AFTER.findall(region) if letter in letters}
    lone = {letters.index(one or other) for one, other in _LONE.findall(region) if (one or other) in letters}
    if len(named) == 1 and (not lone or lone == set(named) or behind == set(named)):
        return named[0], "the option's text in the answer"
    denied = cues(language).denies(read(region).tokens, region)
    if len(whole := read(region).tokens) <= 6 and not named and not denied and not lone:
        sharing = [
            index
            for index, option in enumerate(options)
            if any(
                len(token) > 3
                and token in option.tokens
                and sum(token in other.tokens for other in options) == 1
                for token in whole
            )
            and (not option.given or not mentions(read(region), [option]))
        ]
        if len(sharing) == 1:
            return sharing[0], "a word that only one option has"
    if named or denied or _many_letters(region) or len(lone) != 1 or len(read(region).tokens) > 8:
        return NOT_EXTRACTED, "no single option's letter or text in the answer"
    return lone.pop(), "the only letter on its own"


def _opening(region: str, letters: str, options: tuple[Target, ...]) -> int | None:
    """The letter that a text begins with, if no other option's text follows it."""
    match = _OPENING.match(region)
    if match is None or match[1].upper() not in letters:
        return None
    index = letters.index(match[1].upper())
    rest = read(region[match.end() :].split("\n", 1)[0])
    own = mentions(rest, [options[index]])
    others = [other for place, other in enumerate(options) if place != index and mentions(rest, [other])]
    if others and not own and len(rest.tokens) <= 8:
        return NOT_EXTRACTED
    if "," not in match.group() and _many_letters(region[: match.end() + 6]):
        return None
    return index


def _cued(text: str, letters: str) -> list[int]:
    """The options whose letters stand after "answer" or the like, each once."""
    found = (letter.upper() for letter in _CUE.findall(text))
    return list(dict.fromkeys(letters.index(letter) for letter in found if letter in letters))


def _many_letters(text: str) -> bool:
    return _NEGATED.search(text) is not None


def _named(parts: list[str], options: tuple[Target, ...], language: str) -> list[int]:
    """Options whose text stands in the answer, where nothing in it denies, turns or offers several."""
    out: dict[int, None] = {}
    names = Names(options, "", language)
    for part in parts:
        reading = read(part)
        spans = [
            (one.start, one.end, index)
            for index, option in enumerate(options)
            for one in mentions(reading, [option])
            if (one.sure or not option.given) and not names.denied(reading, one)
        ]
        kept = [
            (start, end, index)
            for start, end, index in spans
            if not any(s <= start and end <= e and e - s > end - start for s, e, _ in spans)
        ]
        if kept and (names.cues.offers(reading.tokens, part) or "?" in part):
            return [NOT_EXTRACTED, NOT_EXTRACTED]
        out.update(dict.fromkeys(index for _, _, index in kept))
    return list(out)


@lru_cache(maxsize=2048)
def _prepared(choices: tuple[str, ...]) -> tuple[Target, ...]:
    return targets_of(choices)


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
