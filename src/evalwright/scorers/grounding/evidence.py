"""Whether what a claim says can be found in some passages, by rules: its quotes, its numbers, its names, its words.

The rules cannot tell that a claim means what the passage means: "the red house burnt" and "the house did not burn" share their
words. They tell that a quote was never written, that a number or a name stands in no cited passage, or that the passage is
about something else. Meaning is for a judge (`grounding-judged`). Nothing in a claim or a passage is followed or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache

from evalwright.scorers.dates import Date, find_dates
from evalwright.scorers.forms import FUNCTION_WORDS
from evalwright.scorers.numbers.agree import TargetNumber, Tolerance, agrees
from evalwright.scorers.numbers.parse import Number, find_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set

LEAST_SHARE = 0.5
"""Of a claim's own words (not the question's), so many must stand in the passages."""

_QUOTE_SIGNS = dict.fromkeys(map(ord, "“”„‟«»″＂❝❞「」『』〝〞"), '"') | dict.fromkeys(
    map(ord, "‘’‚‛ʼ＇"), "'"
)
_QUOTES = re.compile(r"\"([^\"\n]{2,800})\"|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){3,400})'(?!\w)")
_ELLIPSIS = re.compile(r"\.\s?\.\s?\.|…|\[[^\]\n]{0,60}\]")
_CLOCK = re.compile(
    r"(?<![\d.,:])(?:(?P<h12>1[0-2]|0?\d)(?:[:.](?P<m12>[0-5]\d))?\s?(?P<half>[ap])\.?\s?m\b\.?|(?P<h>[01]?\d|2[0-4])[:](?P<m>[0-5]\d)(?![\d:]))",
    re.IGNORECASE,
)
_COMMON = FUNCTION_WORDS | word_set(
    "a an the be been being am do does did done has have had having will would can could may might must shall should about into "
    "over under than too very just only more most some any such not nor out up down off between through per via it's there's "
    "passage passages source sources text document documents context question says said states stated states mentions mentioned "
    "given information ai unfortunately sadly regrettably sorry however therefore thus hence der die das ein eine und ist war sind waren im am mit von zu den dem des le la les un une des du et est "
    "sont était dans au aux el los las una y es son fue en del por para con il lo gli i è sono nel della di da o os as um uma e "
    "foi no na do dos het een en is de van"
)
_STEM, _STEM_SHARE = 4, 0.6


class Source:
    """A passage, or any text that claims are compared with: its words, numbers, dates and clock times."""

    def __init__(self, text: str, language: str = "en") -> None:
        self.words = Words(plain(text))
        self.folded = fold(self.words.joined)
        self.tokens = frozenset(self.folded.split())
        self.stems = frozenset(token[:_STEM] for token in self.tokens if len(token) >= _STEM)
        self.dates = tuple(reading for date in find_dates(self.words) for reading in date.readings)
        # "6 May 1960" holds the year 1960 and no number 6.
        days = [(date.start, date.end) for date in find_dates(self.words, years=False)]
        years = {Decimal(date.year) for date in self.dates if date.year}
        self.numbers = tuple(
            TargetNumber(value, number.unit)
            for number in find_numbers(self.words, language, days)
            for value in number.values
        ) + tuple(TargetNumber(year, None) for year in years)
        self.clocks = frozenset(minutes for _, _, minutes in _clocks(self.words.text))

    def has_number(self, number: Number) -> bool:
        """Whether the number stands here, in any form and unit."""
        return any(agrees(number, one, Tolerance()) for one in self.numbers)

    def has_date(self, readings: Iterable[Date]) -> bool:
        """Whether a date here has all parts of one of the readings."""
        return any(mine.covers(reading) for reading in readings for mine in self.dates)

    def has_word(self, token: str) -> bool:
        """Whether the word stands here, endings aside."""
        if token in self.tokens:
            return True
        if len(token) < _STEM or token[:_STEM] not in self.stems:
            return False
        return any(_akin(token, mine) for mine in self.tokens)

    def has_run(self, parts: Sequence[str]) -> bool:
        """Whether the parts stand here word by word, one after another."""
        position = 0
        for part in parts:
            found = self.folded.find(part, position)
            if found < 0:
                return False
            position = found + len(part) - 1
        return True


@lru_cache(maxsize=4096)
def source(text: str, language: str = "en") -> Source:
    """The text prepared, once."""
    return Source(text, language)


def fault(
    claim: str,
    passages: Sequence[Source],
    question: Source,
    targets: Sequence[Source] = (),
    *,
    language: str = "en",
    words: bool = True,
) -> str:
    """What of a claim is not in the passages, in words; "" where nothing is missing.

    question: what it says needs no evidence. targets: accepted answers that the passages are known to give, maybe in other words; what
    they say needs none either, but a quote does. words: whether the claim's other words count too.
    """
    if (quote := _quote_fault(claim, passages, question)) is not None:
        return f"the quote '{_shown(quote)}' is not there"
    text = Words(plain(claim))
    known = (*passages, question, *targets)
    return (
        _number_fault(text, known, language)
        or _name_fault(text, known, language)
        or (_word_fault(text, passages, question, targets, language) if words else "")
    )


def quotes(claim: str) -> list[str]:
    """The stretches of a claim in quotation marks."""
    text = claim.translate(_QUOTE_SIGNS)
    return [
        found
        for match in _QUOTES.finditer(text)
        if (found := (match.group(1) or match.group(2) or "").strip())
    ]


def _quote_fault(claim: str, passages: Sequence[Source], question: Source) -> str | None:
    for quote in quotes(claim):
        parts = [fold(Words(plain(part)).joined) for part in _ELLIPSIS.split(quote)]
        parts = [part for part in parts if part.strip()]
        if parts and not any(one.has_run(parts) for one in (*passages, question)):
            return quote
    return None


def _number_fault(text: Words, known: Sequence[Source], language: str) -> str:
    clocks = _clocks(text.text)
    for start, end, minutes in clocks:
        if not any(minutes in one.clocks for one in known) and not _tokens_known(text, start, end, known):
            return f"the time '{text.text[start:end].strip()}' is not there"
    dates = find_dates(text, years=False)
    for date in dates:
        if not any(one.has_date(date.readings) for one in known) and not _tokens_known(
            text, date.start, date.end, known
        ):
            return f"the date '{text.text[date.start : date.end]}' is not there"
    skip = [(start, end) for start, end, _ in clocks] + [(date.start, date.end) for date in dates]
    numbers = find_numbers(text, language, skip)
    for number in numbers:
        written = text.text[number.start : number.end]
        if not any(map(str.isdigit, written)) and (number.ordinal or abs(number.value) <= 1):
            continue  # "one of them", "the first"
        if not any(one.has_number(number) for one in known) and not _is_code(text, number, known):
            return f"the number '{written}' is not there"
    # What has digits and is no number: codes, versions.
    taken = [*skip, *((number.start, max(number.end, number.unit_end)) for number in numbers)]
    for token, (start, end) in zip(text.tokens, text.spans, strict=True):
        if not any(map(str.isdigit, token)) or any(a < end and start < b for a, b in taken):
            continue
        if not any(fold(token) in one.tokens for one in known):
            return f"'{text.text[start:end]}' is not there"
    return ""


def _is_code(text: Words, number: Number, known: Sequence[Source]) -> bool:
    """Whether the number stands there as a part of a code, after the same word: "LB-27", "Card 118"."""
    at = next((i for i, (start, end) in enumerate(text.spans) if start <= number.start < end), 0)
    run = f" {fold(' '.join(text.tokens[max(0, at - 1) : at + 1]))} "
    return at > 0 and any(run in one.folded for one in known)


def _tokens_known(text: Words, start: int, end: int, known: Sequence[Source]) -> bool:
    inside = [token for token, (a, b) in zip(text.tokens, text.spans, strict=True) if a < end and b > start]
    return any(all(fold(token) in one.tokens for token in inside) for one in known)


def _name_fault(text: Words, known: Sequence[Source], language: str) -> str:
    if language == "de":
        return ""  # every noun has a capital there
    for place, (word, token) in enumerate(zip(text.cased, text.tokens, strict=True)):
        if not word[:1].isupper() or len(token) < 2 or token in _COMMON or any(map(str.isdigit, token)):
            continue
        if (
            place == 0
            and len(text.tokens) > 1
            and not text.cased[1][:1].isupper()
            and len(text.tokens) > _STEM
        ):
            continue  # the capital of a sentence
        if not any(one.has_word(fold(token)) for one in known):
            return f"the name '{word}' is not there"
    return ""


def _word_fault(
    text: Words, passages: Sequence[Source], question: Source, targets: Sequence[Source], language: str
) -> str:
    taken = _figures(text, language)
    own, found = [], 0
    for token, (start, end) in zip(text.tokens, text.spans, strict=True):
        token = fold(token)
        if token in _COMMON or question.has_word(token):
            continue
        if any(a < end and start < b for a, b in taken):
            found += 1  # a figure, which was looked up as what it is
        else:
            own.append(token)
    if not own and not found:
        # It says no more than the question: is the passage about that at all?
        asked = [token for token in question.tokens if token not in _COMMON]
        if not asked or _share(asked, passages) >= LEAST_SHARE:
            return ""
        return "the passage is about something else"
    total = len(own) + found
    if found + _share(own, (*passages, *targets)) * len(own) >= LEAST_SHARE * total:
        return ""
    missing = next(token for token in own if not any(one.has_word(token) for one in passages))
    return f"most of its words are not there ('{missing}')"


def _figures(text: Words, language: str) -> list[tuple[int, int]]:
    """The places of clock times, dates and numbers with their units."""
    places = [(start, end) for start, end, _ in _clocks(text.text)]
    places += [(date.start, date.end) for date in find_dates(text, years=False)]
    return places + [(one.start, max(one.end, one.unit_end)) for one in find_numbers(text, language, places)]


def _share(tokens: Sequence[str], sources: Sequence[Source]) -> float:
    """How many of the words stand in one of the sources; 0 of none."""
    found = sum(any(one.has_word(token) for one in sources) for token in tokens)
    return found / len(tokens) if tokens else 0.0


def _akin(one: str, other: str) -> bool:
    """Whether two words share so long a beginning that they are forms of one."""
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= _STEM and shared >= _STEM_SHARE * max(len(one), len(other))


def _clocks(text: str) -> list[tuple[int, int, int]]:
    """Clock times: start, end, minutes after midnight."""
    out = []
    for match in _CLOCK.finditer(text):
        if match.group("half"):
            hours = int(match.group("h12")) % 12 + (12 if match.group("half").lower() == "p" else 0)
            minutes = int(match.group("m12") or 0)
        else:
            hours, minutes = int(match.group("h")), int(match.group("m"))
        out.append((match.start(), match.end(), 60 * hours + minutes))
    return out


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
