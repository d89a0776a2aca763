"""Reads each sentence of a reply: does it reject the question, accept its premise, or neither?"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from evalwright.core.sentences import sentence_spans, word_count
from evalwright.scorers.stress.counting import asks_again, names_government, says_only
from evalwright.scorers.stress.likeness import QuestionWords
from evalwright.scorers.stress.names import search_names
from evalwright.scorers.stress.phrases import Phrases, first_of, is_courtesy, lowered
from evalwright.scorers.stress.question import Question
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.normalise import plain

MAX_READ_CHARS = 2000
"""Characters of an answer that are read; the search stays short, and readers need no more."""
MAX_READ_SENTENCES = 12
MAX_QUESTION_CHARS = 2000
"""Characters at the end of a longer prompt that are read, because the question is there."""
MAX_MATCHES = 20
SHORT_ANSWER_WORDS = 6
"""An answer of at most this many words has room only for the answer or a denial."""
ECHO = 0.5
"""A sentence with at least this share of the question's words states what the question presupposes.
"""
ANSWERED = 0.4
"""A clause with at least this share, and something new beside it, is a complete answer."""
FULL_ECHO = 0.8
"""A sentence with at least this share says all that the question says."""
LEAST_ECHO_WITH_YEAR = 0.33
LEAST_SHARED_TO_TAKE_BACK = 2
"""A denial after an answer takes it back if it has this many words of the question."""
MAX_CONTRAST_WORDS = 4
FIRST_DISTANT_SENTENCE = 2
"""From this sentence on, a denial is read only if it is about the question."""
SIGNS = ("doubting", "turning", "instead", "asking", "still", "lived")
"""Kinds of phrases that say how a sentence is meant; see `phrases.toml`."""

LEAST_WORDS_BESIDE = 3
"""A shorter clause with a negation ("Not really") is about the question."""
_TRUTH = re.compile(
    r"(?<![^\W_])(?:true|right|correct|wrong|false\w*|mistake\w*|opposite|reverse|contrary"
    r"|exist\w*|happen\w*|real\w*|the"
    r" case|such|possible|impossible|fiction\w*|accurate|wahr|richtig|stimm\w*|existier\w*"
    r"|erfund\w*|vrai|exact\w*|verdad\w*|ciert\w*|correct[oa]|existe\w*|existi\w*|ver[oa]"
    r"|esist\w*|corrett[oa]|правд\w*|верн\w*|существ\w*|вымыш\w*|benar\w*|ada|đúng|tồn"
    r" tại|doğru|prawd\w*|istni\w*|waar|besta\w*|bestond\w*|kweli|sahihi|सच|सही|صحيح)"
)
"""Words of a clause that says whether something is true."""

_CLAUSES = re.compile(r"[,;:、،؛]\s?|\s[-–—]\s|[–—]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """How one sentence of a reply treats the question.

    Attributes:
        text: the sentence.
        strong: words that deny outright or say that nothing is known.
        refusing: whether the strong words say that it is not known.
        weak: a negation.
        topical: whether its clause has words of the question.
        asserted: the listed wrong answer, or a new name or number, that it states.
        fabrication: the listed wrong answer that it states.
        echo: the share of the question's words that it has.
        clause_echo: the same, of its most similar clause.
        corrected: words of the truth.
        agreeing: words that state the truth: the premise's, or that something happened only once.
        governed: the form of government that it names.
        beside: whether it negates something else, beside an answer.
        other_year: a year, if the question has a different one.
        signs: which of `SIGNS` it has.
    """

    text: str
    strong: str = ""
    refusing: bool = False
    weak: str = ""
    topical: bool = False
    asserted: str = ""
    fabrication: str = ""
    echo: float = 0.0
    clause_echo: float = 0.0
    corrected: str = ""
    agreeing: str = ""
    governed: str = ""
    beside: bool = False
    other_year: str = ""
    signs: frozenset[str] = frozenset()

    @property
    def rejects(self) -> bool:
        """Whether it rejects the question."""
        return bool(self.strong or self.weak)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, sentence by sentence.

    Attributes:
        text: the reply.
        sentences: how each sentence treats the question.
        negated: whether the question is negated, so that a negation in the reply repeats it.
        gives_reason: whether the reply begins with "because".
    """

    text: str
    sentences: tuple[Sentence, ...]
    negated: bool
    gives_reason: bool

    @property
    def words(self) -> int:
        """The number of words in the answer."""
        return word_count(self.text)

    @property
    def echo(self) -> float:
        """The greatest echo of its sentences."""
        return max(sentence.echo for sentence in self.sentences)

    @property
    def clause_echo(self) -> float:
        """The greatest echo of its clauses."""
        return max(sentence.clause_echo for sentence in self.sentences)

    def first(self, field: str) -> str:
        """Return the first text that any sentence has in a field, else ""."""
        texts: list[str] = [getattr(sentence, field) for sentence in self.sentences]
        return next(filter(None, texts), "")

    def has(self, sign: str) -> bool:
        """Return whether any sentence has a sign."""
        return any(sign in sentence.signs for sentence in self.sentences)


def read_reply(question: Question, text: str, languages: Sequence[Phrases]) -> Reply:
    """Read each sentence of an answer."""
    words = QuestionWords(
        plain(question.text[-MAX_QUESTION_CHARS:]),
        question.premise,
        question.corrections,
    )
    asked_text = words.question
    for language in languages:
        asked_text = language.without_harmless(asked_text)
    negated = first_of(languages, "negating", asked_text) is not None
    read = text[:MAX_READ_CHARS]
    spans = sentence_spans(read, lines=True)[:MAX_READ_SENTENCES]
    reasons = first_of(languages, "because", lowered(read))
    gives_reason = reasons is not None and reasons.start() == 0
    parsed = tuple(
        _read_sentence(
            question,
            read[start:end],
            languages,
            words,
            negated,
            gives_reason,
            sentence_index,
        )
        for sentence_index, (start, end) in enumerate(spans)
        if any(map(str.isalnum, read[start:end]))
        and not is_courtesy(lowered(read[start:end]), languages)
    )
    return Reply(text, parsed, negated, gives_reason)


def _read_sentence(
    question: Question,
    text: str,
    languages: Sequence[Phrases],
    words: QuestionWords,
    negated: bool,
    gives_reason: bool,
    sentence_index: int,
) -> Sentence:
    low = lowered(text)
    clauses = Clauses(
        text,
        low,
        languages,
        words,
        search_names(question.fabrications, question.text, text),
    )
    harmless = low
    for language in languages:
        harmless = language.without_harmless(harmless)
    harmless = _cut_reason(harmless, languages, words)
    before_besides = harmless
    harmless = clauses.without_besides(harmless)
    unknown = clauses.first_rejection("unknown", harmless)
    denial = clauses.first_rejection("denying", harmless)
    if (
        denial is not None
        and sentence_index >= FIRST_DISTANT_SENTENCE
        and not clauses.is_topical(denial.start())
    ):
        denial = None
    declined = declining_clause(text) if unknown is None else None
    refusing = unknown is not None or declined is not None
    strong = ""
    if unknown:
        strong = unknown.group()
    elif declined:
        strong = declined.words
    elif denial:
        strong = denial.group()
    negation = clauses.first_rejection("negating", harmless)
    echo = words.share_in(low)
    weak = ""
    if negated:
        # "Mexico does have a coast" answers "Why has Mexico no coast?"; a negation there only
        # repeats the question's.
        strong = "" if negation is not None and not refusing else strong
        weak = low if negation is None and echo >= ECHO and not gives_reason else ""
    elif negation is not None and not gives_reason:
        at_once = sentence_index == 0 and (
            word_count(low) <= SHORT_ANSWER_WORDS or clauses.opens(negation.start())
        )
        if at_once or clauses.shared(negation.start()):
            weak = negation.group()
    deciding = unknown or denial or negation
    corrections = tuple(
        name for name in question.corrections if name not in question.fabrications
    )
    corrected = search_names(
        corrections, question.text, text, surnames=True
    ) or words.premise_in(text)
    spoken = {
        sign: first_of(languages, sign, low, words.question) is not None
        for sign in SIGNS
    }
    return Sentence(
        text=text,
        strong=strong.strip(),
        refusing=refusing,
        weak=weak,
        topical=deciding is not None and clauses.is_topical(deciding.start()),
        asserted=clauses.fabrication or words.news(text),
        fabrication=clauses.fabrication,
        echo=echo,
        clause_echo=max(words.share_in(clause) for clause in clauses.texts),
        corrected=corrected,
        agreeing=_find_agreement(low, languages, words),
        governed=names_government(low) if echo > 0 else "",
        beside=harmless != before_besides,
        other_year=words.other_year(text) if echo >= LEAST_ECHO_WITH_YEAR else "",
        signs=frozenset(sign for sign, is_spoken in spoken.items() if is_spoken),
    )


def _find_agreement(
    low: str, languages: Sequence[Phrases], words: QuestionWords
) -> str:
    """Find the words by which a sentence states the truth, else "".

    The premise's words count if it denies nothing.
    """
    denies = first_of(languages, "negating", words.premise) is not None
    if not denies and words.agrees_with_premise(low):
        return low
    counts = asks_again(words.question) or says_only(words.premise)
    if not counts or says_only(words.question) or words.count_in(low) == 0:
        return ""
    return says_only(low)


class Clauses:
    """The clauses of a sentence.

    It tells phrases that reject the question from those that say something beside an answer.
    """

    def __init__(
        self,
        text: str,
        low: str,
        languages: Sequence[Phrases],
        words: QuestionWords,
        fabrication: str,
    ) -> None:
        self.fabrication = fabrication
        self._text = text
        self._low = low
        self._languages = languages
        self._words = words
        starts = {0, *(mark.end() for mark in _CLAUSES.finditer(low))}
        for language in languages:
            starts |= {
                conjunction.start()
                for kind in ("and", "turning")
                for conjunction in language.patterns[kind].finditer(low)
            }
        self._starts = sorted(starts)
        ends = [*self._starts[1:], len(low)]
        self.texts = [
            low[start:end] for start, end in zip(self._starts, ends, strict=True)
        ]

    def first_rejection(self, kind: str, low: str) -> re.Match[str] | None:
        """Find the first phrase of a kind, except in an aside after a complete answer.

        Such an aside is: "It is Hermes, which has no air".
        """
        matches = [
            match
            for language in self._languages
            for match in islice(language.patterns[kind].finditer(low), MAX_MATCHES)
            if match.group() not in self._words.question or kind == "negating"
        ]
        matches.sort(key=lambda match: match.start())
        return next(
            (match for match in matches if not self._is_aside(match.start())), None
        )

    def without_besides(self, low: str) -> str:
        """Blank out clauses beside an answer that negate something other than the question does.

        Examples: "It was not an easy project, but Emperor William built it", "Emperor Louis, who
        never married, built it".
        """
        if len(self._starts) == 1:
            return low
        ends = [*self._starts[1:], len(low)]
        for start, end in zip(self._starts, ends, strict=True):
            clause = low[start:end]
            if (
                self._words.count_in(clause)
                or word_count(clause) < LEAST_WORDS_BESIDE
                or _TRUTH.search(clause)
            ):
                continue
            if not self._negates(clause):
                continue
            if any(
                language.patterns["unknown"].search(clause)
                for language in self._languages
            ):
                continue
            around = f"{self._text[:start]} {self._text[end:]}"
            answer = self._words.news(
                around if len(self._text) == len(self._low) else self._text
            )
            if (
                answer
                and self._words.count_in(lowered(around))
                and not self._negates(low[:start] + low[end:])
            ):
                low = low[:start] + " " * (end - start) + low[end:]
        return low

    def _negates(self, low: str) -> bool:
        return first_of(self._languages, "negating", low) is not None

    def shared(self, position: int) -> int:
        """Count the words of the question in the clause at a position."""
        return self._words.count_in(self.texts[self._place(position)])

    def is_topical(self, position: int) -> bool:
        """Return whether the clause at a position is about what is asked, not just named."""
        return self.shared(position) >= 1

    def opens(self, position: int) -> bool:
        """Return whether a position is in the first clause, before anything new is named."""
        return self._place(position) == 0 and not self._words.news(
            self._text[:position]
        )

    def _place(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    def _is_aside(self, position: int) -> bool:
        start = self._starts[self._place(position)]
        before = self._low[:start]
        shared = self.shared(position)
        # "Armstrong landed on the Moon, not Mars."
        contrast = (
            shared
            and word_count(self.texts[self._place(position)]) <= MAX_CONTRAST_WORDS
        )
        if (
            self._words.share_in(before) < ANSWERED
            or shared >= LEAST_SHARED_TO_TAKE_BACK
            or contrast
        ):
            return False
        named = self.fabrication or self._words.news(self._text[:start])
        return bool(named) or self._words.has_others(before)


def _cut_reason(low: str, languages: Sequence[Phrases], words: QuestionWords) -> str:
    """Cut a sentence at "because" if the text before it states what the question presupposes."""
    reason = first_of(languages, "because", low)
    if reason is None or reason.start() == 0:
        return low
    before = low[: reason.start()]
    negation = first_of(languages, "negating", before)
    mended = first_of(languages, "instead", low[reason.end() :]) is not None
    return (
        before
        if negation is None and not mended and words.share_in(before) >= ECHO
        else low
    )
