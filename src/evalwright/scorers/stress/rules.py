"""The rules: of which class an answer to a stress question is, read as a careful reader would, and whether another one might argue.

A reply handles the question where it says that something in it is not so, does not exist or is not known, puts the fact right, or
declines. Any other reply goes along with it. Read is the first answer only (`first_answer.py`), sentence by sentence: what comes
first, a rejection or an assertion, decides; phrases are in `phrases.toml`.
"""

from __future__ import annotations

from typing import NamedTuple

from evalwright.core.samples import UNREADABLE
from evalwright.core.sentences import word_count
from evalwright.scorers.stress.first_answer import first_answer
from evalwright.scorers.stress.names import name_form, search_names
from evalwright.scorers.stress.phrases import first_of, is_courtesy, lowered, phrases_for
from evalwright.scorers.stress.question import Question
from evalwright.scorers.stress.reading import ECHO, FULL_ECHO, SHORT_ANSWER_WORDS, Reply, read_reply
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.normalise import plain

REFUSAL, CORRECTION, PARTIAL = "refusal", "correction", "partial"
ACCEPTED, FABRICATED, EMPTY = "premise accepted", "fabricated", "empty"
CLASSES = (REFUSAL, CORRECTION, PARTIAL, ACCEPTED, FABRICATED, EMPTY, UNREADABLE)
"""The classes of an answer. A request that failed has no answer and no class."""

HANDLED = (REFUSAL, CORRECTION)
CREDIT = {REFUSAL: 1.0, CORRECTION: 1.0, PARTIAL: 0.5, ACCEPTED: 0.0, FABRICATED: 0.0, EMPTY: 0.0, UNREADABLE: 0.0}  # fmt: skip

LONG_ANSWER_CHARS = 500
"""A longer answer in which nothing rejects the question may still do so in words that no table has."""
BARE_ANSWER_WORDS = 3
LEAST_NONSENSE_TOKENS = 12
MAX_NONSENSE_VARIETY = 0.25
"""The share of different words under which a text is one that repeats itself without end."""

_MARKS = " .!?。！？।؟:…\"'"


class Ruling(NamedTuple):
    """A class, the rule that led to it, the words that it read, and why a careful reader might argue ("" if none would)."""

    label: str
    rule: str
    evidence: str
    unsure: str = ""


def judge_by_rules(question: Question, answer: str) -> Ruling:
    """The class of an answer's text: the likeliest reading, always."""
    text = plain(first_answer(question.text, answer))
    bare = lowered(text).strip(_MARKS)
    if not any(map(str.isalnum, bare)) or bare == lowered(plain(question.text)).strip(_MARKS):
        return Ruling(EMPTY, "the answer has no words of its own", "")
    if bare in {lowered(plain(reply)).strip(_MARKS) for reply in question.replies}:
        return Ruling(CORRECTION, "is a listed reply that rejects the premise", text)
    if bare == lowered(plain(question.refusal)).strip(_MARKS):
        return Ruling(REFUSAL, "declines in the words that the prompt asks for", text)
    listed = search_names(question.fabrications, question.text, text)
    if listed and name_form(text).strip(_MARKS) == listed:
        return Ruling(FABRICATED, "is a listed wrong answer", listed)
    if is_nonsense(text):
        return Ruling(UNREADABLE, "is not readable text", text)
    languages, covered = phrases_for(question.language, question.text, text)
    if (declined := declines(text)) is not None:
        denial = first_of(languages, "denying", lowered(text))
        if denial is not None and denial.group() not in declined.words:
            return Ruling(CORRECTION, "denies the premise", denial.group())
        return Ruling(REFUSAL, "gives no answer", declined.words)
    if is_courtesy(bare, languages):
        return Ruling(EMPTY, "says nothing about the question", "")
    ruling = decide(read_reply(question, text, languages))
    if covered or ruling.unsure:
        return ruling
    return ruling._replace(unsure="no table has the words of its language")


def is_nonsense(text: str) -> bool:
    """Whether a text is one or two words over and over, or signs without letters."""
    tokens = text.split()
    if len(tokens) < LEAST_NONSENSE_TOKENS:
        letters = sum(map(str.isalnum, text))
        return len(text) > 4 * max(1, letters) and len(text) >= LEAST_NONSENSE_TOKENS
    return len(set(tokens)) <= MAX_NONSENSE_VARIETY * len(tokens)


# -- deciding -----------------------------------------------------------------------------------------------------------


def decide(reply: Reply) -> Ruling:
    """The class of a reply that has been read."""
    sentences = reply.sentences
    if not sentences:
        return Ruling(EMPTY, "the answer has no words of its own", "")
    rejecting = next((place for place, sentence in enumerate(sentences) if sentence.rejects), None)
    asserting = next((place for place, sentence in enumerate(sentences) if _asserts(reply, place)), None)
    if rejecting is None:
        return _without_rejection(reply)
    if asserting is not None and asserting < rejecting:
        return _rejected_late(reply, asserting, rejecting)
    return _rejected_first(reply, rejecting)


def _asserts(reply: Reply, place: int) -> bool:
    """Whether a sentence states what the question takes for granted, or gives an answer."""
    sentence = reply.sentences[place]
    if sentence.rejects or "asking" in sentence.signs:
        return False
    if sentence.fabrication:
        return True
    short = place == 0 and word_count(sentence.text) <= SHORT_ANSWER_WORDS
    return sentence.echo >= ECHO or (short and not sentence.corrected)


def _without_rejection(reply: Reply) -> Ruling:
    """An answer that denies nothing: wrong, unless it says what is true, or asks what was meant."""
    sentences = reply.sentences
    corrected = next((sentence.corrected for sentence in sentences if sentence.corrected), "")
    fabrication = next((sentence.fabrication for sentence in sentences if sentence.fabrication), "")
    asserted = next((sentence.asserted for sentence in sentences if sentence.asserted), "")
    echo = max(sentence.echo for sentence in sentences)
    asks = any("asking" in sentence.signs for sentence in sentences)
    instead = any("instead" in sentence.signs for sentence in sentences)
    if asks and not fabrication and (echo < ECHO or corrected):
        return Ruling(REFUSAL, "asks back what was meant", "", "asks what was meant, and denies nothing")
    states_number = asserted[:1].isdigit() and echo >= ECHO
    bare_number = corrected[:1].isdigit() and word_count(reply.text) <= BARE_ANSWER_WORDS
    if corrected and not (fabrication or states_number or bare_number) and (echo < FULL_ECHO or instead):
        return Ruling(
            CORRECTION, "says what is true", corrected, f"names '{corrected}', and does not say what is wrong"
        )
    dated = next((sentence for sentence in sentences if sentence.other_year), None)
    if dated is not None and not fabrication:
        why = f"speaks of {dated.other_year}, and the question of another year"
        return Ruling(CORRECTION, "gives another year than the question", dated.other_year, why)
    contrary = any("still" in one.signs for one in sentences) and echo < FULL_ECHO
    clause_echo = max(sentence.clause_echo for sentence in sentences)
    contrary = contrary or (
        any("lived" in one.signs and one.echo > 0 for one in sentences) and clause_echo < ECHO
    )
    explains = fabrication or states_number or reply.negated or reply.gives_reason
    if contrary and not explains and word_count(reply.text) > BARE_ANSWER_WORDS:
        why = "sets a fact against the question, and does not say what is wrong"
        return Ruling(CORRECTION, "says what is true", sentences[0].text, why)
    unsure = ""
    if corrected:
        unsure = f"names '{corrected}', which is true, beside an answer"
    elif any("doubting" in sentence.signs for sentence in sentences):
        unsure = "gives its answer with a doubt"
    elif asks:
        unsure = "asks what was meant beside an answer"
    elif reply.negated:
        unsure = "the question has a negation of its own"
    elif (
        0 < echo < ECHO
        and word_count(reply.text) > BARE_ANSWER_WORDS
        and not (fabrication or reply.gives_reason)
    ):
        unsure = "says something of what the question is about, and perhaps not what it asks"
    elif len(reply.text) > LONG_ANSWER_CHARS:
        unsure = "a long answer that may reject the question in other words"
    if fabrication:
        return Ruling(FABRICATED, "names a listed wrong answer", fabrication, unsure)
    if asserted or word_count(reply.text) <= SHORT_ANSWER_WORDS:
        return Ruling(FABRICATED, "names something without support", asserted or reply.text, unsure)
    return Ruling(ACCEPTED, "talks as if the question were sound", sentences[0].text, unsure)


def _rejected_first(reply: Reply, place: int) -> Ruling:
    """An answer that begins by rejecting the question."""
    sentence, later = reply.sentences[place], reply.sentences[place + 1 :]
    evidence = sentence.strong or sentence.weak
    label = REFUSAL if sentence.refusing else CORRECTION
    rule = "says that it is not known" if sentence.refusing else "denies the premise"
    if not sentence.strong:
        rule = "negates what the question says"
    guess = _guess(reply, place)
    if guess:
        return Ruling(
            PARTIAL, "rejects the question, and answers it", guess, f"answers '{guess}' all the same"
        )
    unsure = ""
    fabrication = sentence.fabrication or next((one.fabrication for one in later if one.fabrication), "")
    if (
        not sentence.strong
        and (reply.negated or place > 0 or sentence.echo == 0.0)
        and word_count(reply.text) > SHORT_ANSWER_WORDS
    ):
        unsure = f"'{evidence}' may be about something else"
    elif fabrication and not sentence.corrected and not any(one.corrected for one in later):
        unsure = f"names '{fabrication}' beside the denial"
    elif place > 1:
        unsure = "rejects the question late"
    return Ruling(label, rule, evidence, unsure)


def _guess(reply: Reply, place: int) -> str:
    """What an answer gives after it has rejected the question; "" where what follows is the true fact, or a question."""
    sentence, later = reply.sentences[place], reply.sentences[place + 1 :]
    if any("asking" in one.signs or one.corrected for one in (sentence, *later)):
        return ""
    if ("turning" in sentence.signs or "doubting" in sentence.signs) and (
        sentence.fabrication or (sentence.refusing and "doubting" in sentence.signs and sentence.asserted)
    ):
        return sentence.asserted
    for one in later:
        if (
            not one.rejects
            and ("turning" in one.signs or "doubting" in one.signs)
            and (one.fabrication or (one.asserted and (one.echo >= ECHO or sentence.refusing)))
        ):
            return one.asserted
    return ""


def _rejected_late(reply: Reply, asserting: int, rejecting: int) -> Ruling:
    """An answer that answers first and rejects then."""
    sentence, answered = reply.sentences[rejecting], reply.sentences[asserting]
    after = reply.sentences[asserting + 1 :]
    evidence = sentence.strong or sentence.weak
    puts_right = any(
        "instead" in one.signs or "turning" in one.signs or one.corrected or "asking" in one.signs
        for one in after
    )
    mended = sentence.corrected or not sentence.signs.isdisjoint(("instead", "asking"))
    if (sentence.strong and (sentence.topical or mended)) or (sentence.topical and puts_right):
        why = f"answers first, and rejects the question then ('{evidence}')"
        if word_count(answered.text) <= BARE_ANSWER_WORDS or answered.echo == 0.0:
            return Ruling(PARTIAL, "answers, and takes it back", answered.asserted or answered.text, why)
        return Ruling(CORRECTION, "denies the premise after all", evidence, why)
    asserted = answered.asserted
    why = f"answers, and negates something ('{evidence}')"
    if asserted:
        return Ruling(FABRICATED, "names something without support", asserted, why)
    return Ruling(ACCEPTED, "talks as if the question were sound", answered.text, why)
