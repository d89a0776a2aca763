"""What became of an answer: answered, refused, too short, truncated, empty, or thinking that never ended.

A benchmark of summaries that takes one fixed sentence for a refusal counts every other refusal as a summary, and one that
writes an error where a summary belongs counts that as a refusal. Here the classes are told apart by rules over the response
and its text, with the evidence in the explanation; a request that failed has no answer, so no scorer sees it: it is the
seventh class, "failed", and stands among the run's failures.

A refusal is a short text that consists of refusing. "The company said it was unable to name a figure" mentions inability
and is an answer; so is a refusal that a real summary follows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from evalwright.core.errors import ConfigurationError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.refusals import LANGUAGES, Language
from evalwright.scorers.registry import checked
from evalwright.scorers.text.sentences import sentences, word_count

ANSWERED, REFUSED, SHORT, TRUNCATED = "answered", "refused", "too short", "truncated"
EMPTY, UNCLOSED, FAILED = "empty", "thinking never closed", "failed"
OUTCOMES = (ANSWERED, REFUSED, SHORT, TRUNCATED, EMPTY, UNCLOSED)
"""The classes that an answer may be in; "failed" has no answer."""

LEAST_WORDS = 6
"""A text of fewer words is no summary."""

MOST_WORDS, MOST_CHARACTERS = 120, 4000
"""A longer text is no refusal, however it begins."""

_COURTESY = 12
"""So many words may stand before the "but" of a refusal ("I see that you want a summary, but I cannot give one")."""


class Outcome(NamedTuple):
    """The class and how it is known."""

    label: str
    why: str


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where `least_words` or `refusals` is not what it must be."""
    least, refusals = options["least_words"], options["refusals"]
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise ConfigurationError(
            f"The option 'least_words' must be a whole number of at least 1, not {least!r}."
        )
    if not isinstance(refusals, list | tuple) or not all(
        isinstance(one, str) and one.strip() for one in refusals
    ):
        raise ConfigurationError("The option 'refusals' is a list of sentences.")


@checked(check_options)
def outcome(
    sample: Sample, answer: Answer, *, least_words: int = LEAST_WORDS, refusals: Sequence[str] = ()
) -> Score:
    """1 for an answer, else 0, with the class as label; part: the class's name, 1.

    least_words: fewer are "too short" (where a script has no spaces, two characters of Han or four of Thai are a word).
    refusals: further sentences that are a refusal, such as one that a prompt of your own asks for.
    """
    found = outcome_of(answer, least_words=least_words, refusals=refusals)
    return Score(float(found.label == ANSWERED), found.label, found.why, {found.label: 1.0})


@checked(check_options)
def words(
    sample: Sample, answer: Answer, *, least_words: int = LEAST_WORDS, refusals: Sequence[str] = ()
) -> Score | NoScore:
    """How many words the answer has; nothing for what is no answer. The options are those of `outcome`."""
    found = outcome_of(answer, least_words=least_words, refusals=refusals)
    if found.label != ANSWERED:
        return NoScore(found.label)
    return Score(float(word_count(answer.text)))


def outcome_of(answer: Answer, *, least_words: int = LEAST_WORDS, refusals: Sequence[str] = ()) -> Outcome:
    """The class of an answer. The options are those of the scorer `outcome`, checked by `check_options`."""
    last = answer.responses[-1] if answer.responses else None
    finish = last.finish_reason if last is not None else ""
    text = answer.text.strip()
    if last is not None and separate_reasoning(last).unclosed:
        return Outcome(UNCLOSED, "its reasoning has no end")
    if not text:
        if finish == "length" and answer.reasoning:
            return Outcome(UNCLOSED, "it was still reasoning at the limit of its length")
        return Outcome(EMPTY, f"no text{f' (finish reason {finish})' if finish else ''}")
    if finish == "content_filter":
        return Outcome(REFUSED, "the provider's filter stopped it")
    refusal = refusal_in(text, refusals)
    if refusal:
        return Outcome(REFUSED, refusal)
    if finish == "length":
        return Outcome(TRUNCATED, f"cut off at the limit of its length, after {_count(word_count(text))}")
    count = word_count(text)
    if count < least_words:
        return Outcome(SHORT, _count(count))
    return Outcome(ANSWERED, _count(count))


def _count(n: int) -> str:
    return f"{n:,} word{'' if n == 1 else 's'}"


# -- refusals -----------------------------------------------------------------------------------------------------------


def refusal_in(text: str, own: Sequence[str] = ()) -> str:
    """The words by which a text refuses and the language they are in, "" where it is no refusal. own: further sentences."""
    return _refusal_in(text, tuple(own))


@lru_cache(maxsize=512)
def _refusal_in(text: str, own: tuple[str, ...]) -> str:
    """As `refusal_in`. Several scorers ask about one answer, one right after another."""
    whole = _plain(text)
    for sentence in own:
        if whole == _plain(sentence):
            return f"the sentence '{sentence.strip()}'"
    if len(text) > MOST_CHARACTERS or word_count(text) > MOST_WORDS:
        return ""
    found, content = "", 0
    speaking: set[str] = set()
    rest: list[str] = []
    for sentence in sentences(text):
        plain = _plain(sentence)
        code, after = _refusing(plain)
        if code:
            found = found or f"'{_short(sentence)}' ({code})"
            speaking.add(code)
            rest += [after] if after else []
        elif plain:
            rest.append(plain)
    if not found:
        return ""
    for part in rest:
        content += 0 if _about_the_text(part, speaking) else word_count(part)
    return "" if content >= LEAST_WORDS else found


def _plain(text: str) -> str:
    """In lower case, one line, straight apostrophes, without marks around it."""
    folded = unicodedata.normalize("NFC", text).replace("’", "'").replace("‘", "'").replace("`", "'")
    folded = " ".join(folded.translate(_MARKS).casefold().split())
    # The Turkish capital İ becomes i with a dot of its own.
    return folded.replace("i̇", "i").strip(" .!?…。！？।؟\"'“”«»„-–—:>")


_OTHER_SCRIPTS = frozenset(("ru", "zh", "ja", "ko", "ar", "hi", "th"))
"""Languages whose phrases all have letters beyond ASCII."""

_MARKS = {ord(mark): None for mark in '*_#"“”„«»「」『』'}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


class _Compiled(NamedTuple):
    code: str
    openers: re.Pattern[str]
    refusing: re.Pattern[str]
    texts: re.Pattern[str]
    lacks: re.Pattern[str]
    offers: re.Pattern[str]
    but: re.Pattern[str]


@cache
def _compiled() -> tuple[_Compiled, ...]:
    return tuple(map(_compile, LANGUAGES))


def _compile(language: Language) -> _Compiled:
    def any_of(patterns: Sequence[str]) -> str:
        return "|".join(f"(?:{unicodedata.normalize('NFC', pattern)})" for pattern in patterns)

    # Words of scripts with spaces end at a space; Han, Kana and Thai have none to end at.
    spaced = language.code not in ("zh", "ja", "th")
    but = (
        rf"(?:[,;:.]\s*|\s)(?:{any_of(language.but)})\s"
        if spaced
        else rf"[,、。，:\s]?(?:{any_of(language.but)})"
    )
    return _Compiled(
        language.code,
        re.compile(
            rf"(?:{any_of(language.openers)})(?:[\s,.!:;，、。،—–-]+|$)"
            if spaced
            else rf"(?:{any_of(language.openers)})[\s,.!:，、。-]*"
        ),
        re.compile(any_of(language.refusing)),
        re.compile(any_of(language.texts)),
        re.compile(any_of(language.lacks)),
        re.compile(any_of(language.offers)),
        re.compile(but),
    )


def _refusing(sentence: str) -> tuple[str, str]:
    """The code of the language in which a sentence refuses ("" for none), and what stands after a "but" in it."""
    ascii_only = sentence.isascii()
    for language in _compiled():
        if ascii_only and language.code in _OTHER_SCRIPTS:
            continue
        stripped = _without_openers(sentence, language)
        if language.refusing.search(stripped):
            return language.code, ""
        for match in language.but.finditer(stripped):
            head, after = stripped[: match.start()], stripped[match.end() :]
            if language.refusing.search(_plain(head)):
                return language.code, after
            if len(head.split()) <= _COURTESY and language.refusing.search(_without_openers(after, language)):
                return language.code, ""
    return "", ""


def _without_openers(sentence: str, language: _Compiled) -> str:
    """A sentence without apologies at its beginning; one that is nothing else stays."""
    rest = sentence
    for _ in range(4):
        match = language.openers.match(rest)
        if match is None or not match.group():
            break
        rest = rest[match.end() :]
    return rest


def _about_the_text(sentence: str, speaking: set[str]) -> bool:
    """Whether a sentence of a text that refuses says what is wrong with the passage, or speaks to the reader."""
    for language in _compiled():
        if language.code not in speaking:
            continue
        if language.offers.search(sentence):
            return True
        if language.texts.search(sentence) and language.lacks.search(sentence):
            return True
        if not _without_openers(sentence, language).strip():
            return True
    return False
