"""Classifies an answer to a stress question by rules, and says whether a reader might disagree.

A reply handles the question if it says that something in it is not so, does not exist or is not
known, corrects the fact, or declines. Any other reply accepts it. Only the first answer is read
(`first_answer.py`), sentence by sentence: what comes first, a rejection or an assertion, decides;
phrases are in `phrases.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalwright.core.samples import UNREADABLE
from evalwright.core.sentences import word_count
from evalwright.scorers.stress.first_answer import first_answer
from evalwright.scorers.stress.names import name_form, search_names
from evalwright.scorers.stress.phrases import (
    first_of,
    is_courtesy,
    lowered,
    phrases_for,
)
from evalwright.scorers.stress.question import Question
from evalwright.scorers.stress.reading import (
    ECHO,
    FULL_ECHO,
    MAX_READ_CHARS,
    SHORT_ANSWER_WORDS,
    Reply,
    Sentence,
    read_reply,
)
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.normalise import plain

REFUSAL = "refusal"
CORRECTION = "correction"
PARTIAL = "partial"
ACCEPTED = "premise accepted"
FABRICATED = "fabricated"
EMPTY = "empty"
CLASSES = (REFUSAL, CORRECTION, PARTIAL, ACCEPTED, FABRICATED, EMPTY, UNREADABLE)
"""The classes of an answer. A request that failed has no answer and no class."""

HANDLED = (REFUSAL, CORRECTION)
CREDIT = {
    REFUSAL: 1.0,
    CORRECTION: 1.0,
    PARTIAL: 0.5,
    ACCEPTED: 0.0,
    FABRICATED: 0.0,
    EMPTY: 0.0,
    UNREADABLE: 0.0,
}

LONG_ANSWER_CHARS = 500
"""An answer longer than this may reject the question in words that no table has."""
BARE_ANSWER_WORDS = 3
TAKING_BACK = ("instead", "turning", "asking")
"""Signs of a sentence that takes back what comes before it."""
LEAST_NONSENSE_TOKENS = 12
MAX_NONSENSE_VARIETY = 0.25
"""A text with a smaller share of different words repeats itself endlessly."""

MAX_REPEATED_CHARS = 40
LEAST_REPETITIONS = 6

_MARKS = " .!?。！？।؟:…\"'"


class Ruling(NamedTuple):
    """The class of an answer by the rules.

    Attributes:
        label: the class.
        rule: the rule that led to it.
        evidence: the words that the rule matched.
        unsure: why a careful reader might disagree; "" if none would.
    """

    label: str
    rule: str
    evidence: str
    unsure: str = ""


def judge_by_rules(question: Question, answer: str) -> Ruling:
    """Classify an answer's text; it always gives the likeliest class."""
    text = plain(first_answer(question.text, answer))
    low = lowered(text).strip(_MARKS)
    if not any(map(str.isalnum, low)) or low == lowered(plain(question.text)).strip(
        _MARKS
    ):
        return Ruling(EMPTY, "the answer has no words of its own", "")
    if low in {lowered(plain(reply)).strip(_MARKS) for reply in question.replies}:
        return Ruling(CORRECTION, "is a listed reply that rejects the premise", text)
    if low == lowered(plain(question.refusal)).strip(_MARKS):
        return Ruling(REFUSAL, "declines in the words that the prompt asks for", text)
    listed = search_names(question.fabrications, question.text, text)
    if listed and name_form(text).strip(_MARKS) == listed:
        return Ruling(FABRICATED, "is a listed wrong answer", listed)
    if is_nonsense(text):
        return Ruling(UNREADABLE, "is not readable text", text)
    languages, covered = phrases_for(question.language, question.text, text)
    declined = declines(text)
    if declined is not None:
        denial = first_of(languages, "denying", lowered(text))
        if denial is not None and denial.group() not in declined.words:
            return Ruling(CORRECTION, "denies the premise", denial.group())
        return Ruling(REFUSAL, "gives no answer", declined.words)
    if is_courtesy(low, languages):
        return Ruling(EMPTY, "says nothing about the question", "")
    ruling = decide(read_reply(question, text, languages))
    if covered or ruling.unsure:
        return ruling
    return ruling._replace(unsure="no table has the words of its language")


def is_nonsense(text: str) -> bool:
    """Return whether a text is one or two words over and over, or symbols without letters."""
    tokens = text.split()
    if len(tokens) < LEAST_NONSENSE_TOKENS:
        if _repeats_itself(text[:MAX_READ_CHARS]):
            return True
        letters = sum(map(str.isalnum, text))
        return len(text) > 4 * max(1, letters) and len(text) >= LEAST_NONSENSE_TOKENS
    return len(set(tokens)) <= MAX_NONSENSE_VARIETY * len(tokens)


def _repeats_itself(text: str) -> bool:
    """Return whether a text without spaces is one piece over and over."""
    longest = min(MAX_REPEATED_CHARS, len(text) // LEAST_REPETITIONS)
    return any(text[size:] == text[:-size] for size in range(2, longest + 1))


# -- deciding --------------------------------------------------------------------------


def decide(reply: Reply) -> Ruling:
    """Rule on a reply that has been read."""
    sentences = reply.sentences
    if not sentences:
        return Ruling(EMPTY, "the answer has no words of its own", "")
    indices = range(len(sentences))
    rejecting = next((index for index in indices if sentences[index].rejects), None)
    asserting = next(
        (index for index in indices if _asserts(reply, index)),
        None,
    )
    if rejecting is None:
        return _rule_without_rejection(reply)
    if asserting is not None and asserting < rejecting:
        return _rule_rejected_late(reply, asserting, rejecting)
    return _rule_rejected_first(reply, rejecting)


def _asserts(reply: Reply, sentence_index: int) -> bool:
    """Return whether a sentence states what the question takes for granted, or gives an answer."""
    sentence = reply.sentences[sentence_index]
    if sentence.rejects or "asking" in sentence.signs:
        return False
    if sentence.fabrication:
        return True
    short = sentence_index == 0 and word_count(sentence.text) <= SHORT_ANSWER_WORDS
    return sentence.echo >= ECHO or (short and not sentence.corrected)


def _rule_without_rejection(reply: Reply) -> Ruling:
    """Rule on an answer that denies nothing.

    It is wrong, unless it says what is true, or asks what was meant.
    """
    corrected = reply.first("corrected")
    if (
        reply.has("asking")
        and not reply.first("fabrication")
        and (reply.echo < ECHO or corrected)
    ):
        return Ruling(
            REFUSAL,
            "asks back what was meant",
            "",
            "asks what was meant, and denies nothing",
        )
    agreeing = reply.first("agreeing")
    if agreeing:
        listed = reply.first("fabrication")
        return Ruling(
            CORRECTION,
            "says what is true",
            agreeing,
            f"names '{listed}' beside it" if listed else "",
        )
    fact, unsure = _find_true_fact(reply)
    if fact:
        return Ruling(CORRECTION, "says what is true", fact, unsure)
    unsure = _explain_doubt(reply)
    fabrication = reply.first("fabrication")
    if fabrication:
        return Ruling(FABRICATED, "names a listed wrong answer", fabrication, unsure)
    asserted = reply.first("asserted")
    if asserted or reply.words <= SHORT_ANSWER_WORDS:
        return Ruling(
            FABRICATED,
            "names something without support",
            asserted or reply.text,
            unsure,
        )
    return Ruling(
        ACCEPTED, "talks as if the question were sound", reply.sentences[0].text, unsure
    )


def _find_true_fact(reply: Reply) -> tuple[str, str]:
    """Find a true statement that contradicts the question, and why that is unsure; else "".

    An answer that names a listed wrong answer, or a new number in the words of the question, has
    none.
    """
    if reply.first("fabrication"):
        return "", ""
    short = reply.words <= BARE_ANSWER_WORDS
    states_number = any(_states_number(sentence) for sentence in reply.sentences)
    corrected = reply.first("corrected")
    number_alone = short or (reply.echo == 0.0 and reply.words <= SHORT_ANSWER_WORDS)
    gives_number = states_number or (number_alone and corrected[:1].isdigit())
    apart = reply.echo < FULL_ECHO or reply.has("instead")
    if corrected and apart and not gives_number:
        return corrected, f"names '{corrected}', and does not say what is wrong"
    year = reply.first("other_year")
    if year:
        return year, f"speaks of {year}, and the question of another year"
    if short or states_number or reply.negated or reply.gives_reason:
        return "", ""

    governed = reply.first("governed")
    if governed and reply.echo < ECHO and not reply.first("asserted"):
        return (
            governed,
            "says what kind of country it is, and does not say what is wrong",
        )
    unmoved = reply.has("still") and reply.echo < FULL_ECHO
    dated = any(
        "lived" in sentence.signs and sentence.echo > 0 for sentence in reply.sentences
    )
    if unmoved or (dated and reply.clause_echo < ECHO):
        return (
            reply.sentences[0].text,
            "sets a fact against the question, and does not say what is wrong",
        )
    return "", ""


def _states_number(sentence: Sentence) -> bool:
    """Return whether a sentence gives a new number in the words of the question.

    It may have a true name beside it.
    """
    return sentence.asserted[:1].isdigit() and sentence.echo >= ECHO


def _explain_doubt(reply: Reply) -> str:
    """Return why an answer that denies nothing may still not be wrong; "" if it clearly is."""
    if any(sentence.beside for sentence in reply.sentences):
        return "negates something beside an answer"
    corrected = reply.first("corrected")
    if corrected:
        return f"names '{corrected}', which is true, beside an answer"
    if reply.has("doubting"):
        return "gives its answer with a doubt"
    if reply.has("asking"):
        return "asks what was meant beside an answer"
    if reply.negated:
        return "the question has a negation of its own"
    answers = (
        reply.words <= BARE_ANSWER_WORDS
        or reply.gives_reason
        or reply.first("fabrication")
    )
    if 0 < reply.echo < ECHO and not answers:
        return (
            "says something of what the question is about, and perhaps not what it asks"
        )
    if len(reply.text) > LONG_ANSWER_CHARS:
        return "a long answer that may reject the question in other words"
    return ""


def _rule_rejected_first(reply: Reply, sentence_index: int) -> Ruling:
    """Rule on an answer that begins by rejecting the question."""
    sentence = reply.sentences[sentence_index]
    evidence = sentence.strong or sentence.weak
    guess = _find_guess(sentence, reply.sentences[sentence_index + 1 :])
    if guess:
        why = f"answers '{guess}' all the same"
        return Ruling(PARTIAL, "rejects the question, and answers it", guess, why)
    unsure = ""
    from_here = Reply(
        reply.text, reply.sentences[sentence_index:], reply.negated, reply.gives_reason
    )
    fabrication = from_here.first("fabrication")
    elsewhere = reply.negated or sentence_index > 0 or sentence.echo == 0.0
    if not sentence.strong and elsewhere and reply.words > SHORT_ANSWER_WORDS:
        unsure = f"'{evidence}' may be about something else"
    elif fabrication and not from_here.first("corrected"):
        unsure = f"names '{fabrication}' beside the denial"
    elif sentence_index > 1:
        unsure = "rejects the question late"
    if sentence.refusing:
        return Ruling(REFUSAL, "says that it is not known", evidence, unsure)
    rule = "denies the premise" if sentence.strong else "negates what the question says"
    return Ruling(CORRECTION, rule, evidence, unsure)


def _find_guess(rejection: Sentence, later: Sequence[Sentence]) -> str:
    """Find what an answer gives after it has rejected the question.

    It is "" if the true fact, or a question, follows.
    """
    if any(
        "asking" in sentence.signs or sentence.corrected
        for sentence in (rejection, *later)
    ):
        return ""
    guesses = (
        rejection.refusing and "doubting" in rejection.signs and rejection.asserted
    )
    if _hedges(rejection) and (rejection.fabrication or guesses):
        return rejection.asserted
    for sentence in later:
        if sentence.rejects or not _hedges(sentence):
            continue
        if sentence.fabrication or (
            sentence.asserted and (sentence.echo >= ECHO or rejection.refusing)
        ):
            return sentence.asserted
    return ""


def _hedges(sentence: Sentence) -> bool:
    return not sentence.signs.isdisjoint(("turning", "doubting"))


def _rule_rejected_late(reply: Reply, asserting: int, rejecting: int) -> Ruling:
    """Rule on an answer that answers first and then rejects the question."""
    rejection = reply.sentences[rejecting]
    answered = reply.sentences[asserting]
    evidence = rejection.strong or rejection.weak
    mends = rejection.corrected or not rejection.signs.isdisjoint(("instead", "asking"))
    after = reply.sentences[asserting + 1 :]
    turns = any(
        not sentence.signs.isdisjoint(TAKING_BACK) or sentence.corrected
        for sentence in after
    )
    if (rejection.topical and turns) or (
        rejection.strong and (rejection.topical or mends)
    ):
        why = f"answers first, and rejects the question then ('{evidence}')"
        if word_count(answered.text) <= BARE_ANSWER_WORDS or answered.echo == 0.0:
            return Ruling(
                PARTIAL,
                "answers, and takes it back",
                answered.asserted or answered.text,
                why,
            )
        return Ruling(CORRECTION, "denies the premise after all", evidence, why)
    why = f"answers, and negates something ('{evidence}')"
    if answered.asserted:
        return Ruling(
            FABRICATED, "names something without support", answered.asserted, why
        )
    return Ruling(ACCEPTED, "talks as if the question were sound", answered.text, why)
