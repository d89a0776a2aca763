"""Classifies an answer to a question on passages: right, wrong, or a right or wrong abstention.

An answer is judged without its citations, so that "passage 2 says 63" is not read as 2. If the
passages do not answer the question (`metadata["answerable"]` is false), saying so is right, and any
answer is wrong. If the rules cannot tell whether the answer is right, or whether one is given
beside "the passages do not say", the likelier class is chosen and marked unsure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.sentences import sentences
from evalwright.scorers.grounding.citations import remove_citations
from evalwright.scorers.grounding.claims import Claim, extract_claims
from evalwright.scorers.grounding.evidence import find_unknown_details, normalise_words
from evalwright.scorers.outcome import REFUSED, UNCLOSED, outcome_of
from evalwright.scorers.short_answer import short_answer
from evalwright.scorers.stress.phrases import first_of, lowered, phrases_for
from evalwright.scorers.text.declining import NO_INFORMATION, declines, declining_clause

ANSWERED_RIGHT = "answered-right"
ANSWERED_WRONG = "answered-wrong"
UNSUPPORTED = "unsupported"
ABSTAINED_RIGHTLY = "abstained-rightly"
ABSTAINED_WRONGLY = "abstained-wrongly"
INELIGIBLE = "ineligible"
OUTCOMES = (
    ANSWERED_RIGHT,
    UNSUPPORTED,
    ANSWERED_WRONG,
    ABSTAINED_RIGHTLY,
    ABSTAINED_WRONGLY,
    INELIGIBLE,
)
"""Every class.

"ineligible": empty, still reasoning, or a refusal to deal with the question. "unsupported": right,
but not shown to be.
"""
RIGHT = (ANSWERED_RIGHT, ABSTAINED_RIGHTLY)

MAX_PHRASE_WORDS = 6
"""A claim of at most this many words is a phrase, which means something only with its question."""
MAX_LAST_PHRASE_WORDS = 3
"""A last clause of at most this many words with a name or number is an answer: "Unknown, 63"."""
_LAST_CLAUSE = re.compile(r"[,;:，、]\s*")
_BULLET = re.compile(r"\s{0,8}[-–•*]\s{1,4}")
_FIRST_SENTENCE = re.compile(r"[^\n]*?[.!?。！？](?=\s|$)|[^\n]+")
_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|yet|nevertheless|still)\b", re.IGNORECASE
)
_NEGATION = re.compile(
    r"\b(?:no|not|none|nothing|nobody|never|neither|nor|without|cannot|un\w+|\w+n't|lacks?|missing)\b"
)
"""English words; every statement that there is no answer contains at least one of them."""


class AnswerClass(NamedTuple):
    """The class of an answer before its support is checked.

    Attributes:
        label: the class.
        why: how it was recognised.
        unsure: why a careful reader might disagree; "" if none would.
    """

    label: str
    why: str
    unsure: str = ""


def grounded_answer(sample: Sample, answer: Answer) -> Score:
    """Score 1 for a right answer and for a right abstention, else 0; citations are not required.

    The label is the class. Answers from passages and from memory are scored alike, so that both can
    be compared on the same questions. It reads the targets as `short-answer` does, and
    `metadata["answerable"]`. The score has one part, 1, under the name of the class.
    """
    ids = tuple(passage.id for passage in sample.passages)
    answer_class = classify_answer(sample, answer, extract_claims(answer.text, ids)[0])
    return Score(
        float(answer_class.label in RIGHT),
        answer_class.label,
        answer_class.why,
        {answer_class.label: 1.0},
        unsure=answer_class.unsure,
    )


def classify_answer(
    sample: Sample, answer: Answer, claims: Sequence[Claim]
) -> AnswerClass:
    """Classify an answer by its text, before its citations are looked at."""
    state = outcome_of(answer, least_words=1)
    if state.label == UNCLOSED or (state.label != REFUSED and not answer.text.strip()):
        return AnswerClass(INELIGIBLE, state.why)
    if not any(map(str.isalnum, answer.text)):
        return AnswerClass(INELIGIBLE, "no words")
    uncited = strip_citations(sample, answer)
    if not any(map(str.isalnum, uncited.text)):
        return AnswerClass(ANSWERED_WRONG, "it only cites")
    short_answer_score = (
        _score_short_answer(sample, uncited) if sample.targets else None
    )
    if is_answerable(sample):
        return _classify_answerable(
            uncited.text,
            short_answer_score,
            state.why if state.label == REFUSED else "",
        )
    return _classify_unanswerable(
        sample, uncited.text, claims, state.why if state.label == REFUSED else ""
    )


def _classify_answerable(
    text: str, short_answer_score: Score | None, refusal: str
) -> AnswerClass:
    """Classify the answer to a question that the passages answer."""
    declined = declines(text)
    first = _FIRST_SENTENCE.match(text)
    if declined is None and first is not None and not _CONTRAST.search(text):
        # "Not in the passages. 63 [3]": two contradicting answers count as no answer.
        declined_first = declines(first.group())
        if declined_first is not None and declined_first.kind == NO_INFORMATION:
            return AnswerClass(
                ABSTAINED_WRONGLY,
                f"says that there is no answer ({declined_first}) before it gives one",
            )
        if declining_clause(first.group()) is not None:
            why = "says that there is no answer, and more"
            return AnswerClass(ABSTAINED_WRONGLY, why, why)
    if isinstance(short_answer_score, Score) and short_answer_score.label == "correct":
        return AnswerClass(
            ANSWERED_RIGHT, short_answer_score.explanation, short_answer_score.unsure
        )
    if declined is not None and declined.kind == NO_INFORMATION:
        return AnswerClass(
            ABSTAINED_WRONGLY, f"gives no answer ({declined}), and there is one"
        )
    if declined is not None or refusal:
        return AnswerClass(INELIGIBLE, f"refuses: {refusal or declined}")
    if short_answer_score is not None and short_answer_score.unsure:
        return AnswerClass(
            ANSWERED_WRONG, short_answer_score.explanation, short_answer_score.unsure
        )
    if short_answer_score is not None and short_answer_score.label == "not_attempted":
        return AnswerClass(
            ABSTAINED_WRONGLY,
            f"{short_answer_score.explanation}, and there is an answer",
        )
    return AnswerClass(
        ANSWERED_WRONG,
        short_answer_score.explanation
        if short_answer_score is not None
        else "there is no target",
    )


def _classify_unanswerable(
    sample: Sample, text: str, claims: Sequence[Claim], refusal: str
) -> AnswerClass:
    """Classify the answer to a question that the passages do not answer."""
    declined = declines(text)
    if normalise_words(text) in {normalise_words(target) for target in sample.targets}:
        return AnswerClass(
            ABSTAINED_RIGHTLY, "says that there is no answer, in the expected words"
        )
    if declined is not None and declined.kind == NO_INFORMATION:
        return AnswerClass(
            ABSTAINED_RIGHTLY, f"says that there is no answer: {declined}"
        )
    if declined is not None or refusal:
        return AnswerClass(INELIGIBLE, f"refuses: {refusal or declined}")
    phrases = [
        claim
        for claim in claims
        if claim.words <= MAX_PHRASE_WORDS and not declining_clause(claim.text)
    ]
    if any(_has_name_or_number(claim.text) for claim in phrases):
        return AnswerClass(ANSWERED_WRONG, "gives an answer, and there is none")
    languages, _ = phrases_for(
        str(sample.metadata.get("language") or ""), sample.input, text
    )
    low = lowered(text)
    clause = declining_clause(text)
    unknown = first_of(languages, "unknown", low)
    negated = _NEGATION.search(text.casefold()) or first_of(languages, "negating", low)
    if clause is None and unknown is None and not negated:
        return AnswerClass(ANSWERED_WRONG, "gives an answer, and there is none")
    turned = (
        first_of(languages, "turning", low)
        or first_of(languages, "doubting", low)
        or _CONTRAST.search(text)
    )
    last = _LAST_CLAUSE.split(text.strip(" .!?。"))[-1]
    named = (
        clause is not None
        and len(last.split()) <= MAX_LAST_PHRASE_WORDS
        and _has_name_or_number(last)
    )
    source_texts = (sample.input, *(passage.text for passage in sample.passages))
    added = any(
        find_unknown_details(sentence, source_texts) for sentence in sentences(text)
    )
    if (clause is None and unknown is None) or turned or named or added:
        why = "says that there is no answer, and perhaps gives one"
        return AnswerClass(ANSWERED_WRONG, why, why)
    why = "says that there is no answer, and more"
    return AnswerClass(ABSTAINED_RIGHTLY, why, why)


def _has_name_or_number(phrase: str) -> bool:
    """Return whether a phrase has a number, or a capital that does not just begin the sentence."""
    phrase_words = phrase.split()
    return any(any(map(str.isdigit, word)) for word in phrase_words) or any(
        word[:1].isupper()
        for word in (phrase_words[1:] if len(phrase_words) > 2 else phrase_words)
    )


def is_right(sample: Sample, text: str) -> bool:
    """Return whether a text, taken alone, certainly gives a target."""
    score = _score_short_answer(sample, strip_citations(sample, Answer(text)))
    return isinstance(score, Score) and score.label == "correct"


def _score_short_answer(sample: Sample, uncited: Answer) -> Score:
    """Score the answer by `short-answer`, with and without a leading bullet, or minus sign."""
    score = short_answer(sample, uncited)
    bullet = _BULLET.match(uncited.text)
    if bullet is None or (isinstance(score, Score) and score.label == "correct"):
        return score
    return short_answer(sample, replace(uncited, text=uncited.text[bullet.end() :]))


def strip_citations(sample: Sample, answer: Answer) -> Answer:
    """Return the answer without its citations."""
    text = remove_citations(
        answer.text, tuple(passage.id for passage in sample.passages)
    )
    return replace(answer, text=text)


def is_answerable(sample: Sample) -> bool:
    """Return whether the passages answer the question.

    If the sample does not say, its target decides: "Not in the passages".
    """
    answerable = sample.metadata.get("answerable")
    if answerable is None:
        return not (sample.targets and declines(sample.target))
    return not (answerable is False or str(answerable).lower() == "false")
