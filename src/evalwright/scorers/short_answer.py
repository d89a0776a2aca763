"""The scorer `short-answer`: does the reply give the target, or an alias, as its answer?

It uses rules only, no model: it always gives the likeliest reading, and says why a careful reader
might argue with it. `scorers/answers/__init__.py` shows the path of an answer to its score;
docs/reference/short-answer.md explains the rules on one page.
"""

from __future__ import annotations

import re
import unicodedata

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.formula_reader import FormulaReader
from evalwright.scorers.answers.phrase_reader import PhraseReader, judge_declining
from evalwright.scorers.answers.readers import AnswerReader, choose_reader
from evalwright.scorers.answers.reply import ParsedReply, parse_reply
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    not_attempted,
    unreadable,
)
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.folded import fold_text
from evalwright.scorers.text.normalise import plain

MIN_REPEATED_CHARS = 13
"""Least length of a question that is searched in the reply; a shorter one may be chance."""
MAX_SHOWN_CHARS = 60
_PLACEHOLDERS = frozenset(
    ("null", "nan", "nil", "tbd", "tba", "to be determined", "to be announced")
)
_INTRODUCING = frozenset(
    ("i", "was", "am", "asked", "the", "question", "is", "you", "your", "q")
)


def short_answer(sample: Sample, answer: Answer) -> Score:
    """Score 1.0 if the answer gives a target, else 0.0.

    Labels: "correct", "incorrect", "not_attempted", "unreadable". The score is unsure if a careful
    reader might argue with it. It reads `sample.targets` (the canonical form and its aliases) and
    the metadata `answer_type` ("name", "number", "date", "yes_no", "none"; inferred from the
    targets if missing), `unit`, `tolerance`, `language`, `parts` (which part of a person's name is
    enough: "full", "surname", "given", "any") and `confusable` (names of others that contain a
    target). If a target itself says that there is no answer ("No answer", "not stated"), the
    targets are phrases, and finding one is enough.

    Raises:
        ScoringError: the metadata has values that do not exist.
    """
    reader = choose_reader(sample)
    symbols = [
        target for target in sample.targets if target.strip() and not _has_words(target)
    ]
    if any(_is_symbol(answer.text, symbol) for symbol in symbols):
        return correct("a target as written").outcome()

    reply = parse_reply(answer.text, sample.input, is_short=True)
    if symbols and reply.text and not _has_words(reply.text):
        return incorrect("other signs than the target").outcome()

    score = _judge_reply(reply, sample, reader).outcome()
    possible_evidence = sample.targets if score.value == 1 else ()
    return with_evidence(score, answer.text, reply.as_written, possible_evidence)


def _judge_reply(reply: ParsedReply, sample: Sample, reader: AnswerReader) -> Verdict:
    """Handle replies without an answer, then let the reader judge."""
    if reply.is_empty_field:
        return not_attempted(f"{reply.rule} is empty")
    if not _has_words(reply.text) and any(
        unicodedata.category(char) == "So" for char in reply.text
    ):
        return unreadable("signs only", "signs may stand for an answer")
    is_placeholder = reply.text.casefold().strip(" .") in _PLACEHOLDERS
    if is_placeholder or not _has_words(reply.text):
        return not_attempted("the answer is empty")

    text = _without_question(reply.text, plain(sample.input))
    if not text:
        return not_attempted("the answer only repeats the question")
    reply = _with_option_text(reply._replace(text=text))
    written = _normalise_spaces(reply.text)
    if not reply.after and any(
        written == _normalise_spaces(plain(target)) for target in sample.targets
    ):
        return correct(f"'{written[:MAX_SHOWN_CHARS]}' is a target as written")
    return _judge_unless_declined(reply, reader)


def _judge_unless_declined(reply: ParsedReply, reader: AnswerReader) -> Verdict:
    """Return the reader's verdict; if the reply declines and gives no target, that it declines."""
    if isinstance(reader, PhraseReader):
        return reader.judge(reply)
    declined = judge_declining(reply)
    if declined is None:
        return reader.judge(reply)
    if isinstance(reader, FormulaReader):
        return declined

    verdict = reader.judge(reply)
    if verdict.label == "correct" and not verdict.unsure:
        return verdict._replace(unsure=f"{declined.why}, beside an answer")
    return declined


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_symbol(text: str, symbol: str) -> bool:
    """Return whether a reply is a target of symbols only ("+"), or contains it as a word."""
    return symbol in text.split() or symbol == text.strip(" .`'\"*")


def _without_question(text: str, question: str) -> str:
    """Remove a question that the reply repeats; "" if only an introduction remains."""
    question = question.strip()
    if len(question) < MIN_REPEATED_CHARS:
        return text
    start = text.casefold().find(question.casefold())
    if start < 0:
        return text
    around = f"{text[:start]} {text[start + len(question) :]}".strip(" .:\n\"'")
    is_introduction = _INTRODUCING.issuperset(fold_text(around).tokens)
    return "" if is_introduction else around


def _with_option_text(reply: ParsedReply) -> ParsedReply:
    """Replace the letter of an option that the model made up by the option's text.

    Example: "a. Toba b. Poso. Answer: a" answers with Toba.
    """
    letter = reply.text.strip(" .()").casefold()
    if not reply.marked or len(letter) != 1 or not reply.before:
        return reply
    option = re.search(
        rf"(?:^|\s){re.escape(letter)}[.)] *(.+?)(?=\s+[a-e][.)]|\n|$)",
        reply.before,
        re.IGNORECASE,
    )
    return reply._replace(text=option[1], before="") if option else reply


def _normalise_spaces(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .")
