"""Reads what one sentence of a reply does: it gives a target name, another answer, or none.

A sentence gives the target if it names it plainly: not denied, not only to explain another name
("Picasso's friend Dalí"), not as one of several alternatives, and without another answer in an
earlier clause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers.answers.name_likeness import (
    describe_likeness,
    is_loosely_like,
)
from evalwright.scorers.answers.name_targets import (
    NAME_HEADS,
    NAME_PARTICLES,
    Mention,
    NameTarget,
    align_with_targets,
    find_mentions,
    is_same_given_name,
    is_same_word,
    order_tone_marks,
    text_behind,
    tone_forms_of,
)
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.text.cues import (
    cue_words,
    cues_of,
    has_spaceless_cue,
    joined_patterns,
    label_alternatives,
    months,
)
from evalwright.scorers.text.folded import (
    ARTICLES,
    CASED_SCRIPTS,
    FUNCTION_WORDS,
    FoldedText,
    fold_text,
    script_of,
    simplify_characters,
    text_between,
    without_tag_question,
)
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import word_set

MIN_KIND_CHARS = 6
"""Least characters of a word for a kind of thing ("capital"); shorter ones ("which") only ask."""
MAX_BARE_WORDS = 6
MAX_ARTICLES = 8
BARE_CHARS = {"CJK": 10, "KANA": 12, "THAI": 18, "LAO": 18, "KHMER": 18, "MYANMAR": 18}
"""For scripts without spaces: most characters of a text that is only a name."""
ASIDE_REACH_WORDS = 4
DENIAL_REACH_WORDS = 6
CORRECTION_REACH_WORDS = 30

_WRONG = word_set("wrong false incorrect mistaken falsch faux falso")
_PERHAPS = word_set("could might may maybe possibly perhaps")
_OPENS = lazy_pattern(r"(?<!\b[^\W\d_])\.(?=\s|$)|[,;:()–—、，،؛；：。（!]|\s-\s|$")
_USED_TO_BE = lazy_pattern(
    r"\b(?:used to be|once was|was once|was"
    r" formerly|formerly|früher|ehemals|autrefois|jadis|antiguamente|un"
    r" tempo|antigamente"
    r"|раньше|когда-то|kiedyś|eskiden|dulu|từng|dati)\b|以前|曾|かつて|예전|이전에|한때",
    re.IGNORECASE,
)
_NAMELY = lazy_pattern(
    r"\b(?:i\.e|that is|namely|d\.h|nämlich|c'est-à-dire|es decir|то"
    r" есть|yaitu|yakni|tức)\b|即|つまり|즉"
)
_OTHER_NAME = lazy_pattern(
    r"\b(?:now|known|called|named|aka|a\.k\.a|alias|pen name|real"
    r" name|nicknamed?|n[ée]e|born|also|or|also spelled|short for|stands?"
    r" for|meaning|auch|genannt|dit|llamad[oa])\b",
    re.IGNORECASE,
)
_CONNECTIVE = lazy_pattern(
    "(?<=[가-힣]고)(?<![라다냐자]고)(?<!알고) |(?<=[가-힣]며) |(?<=지만) |(?<=는데)"
    " |(?<=ပြီး)|(?=ซึ่ง|แต่)|(?=ហើយ)|(?=ເຊິ່ງ)"
)
"""Where a clause ends in scripts that set no comma there."""
_ADVERB = lazy_pattern(r"\w+(?:ly|mente|ment)", re.IGNORECASE)
_ASIDE_BEHIND = lazy_pattern(simplify_characters(joined_patterns("aside_behind")))
_REJECTED_BEHIND = lazy_pattern(
    simplify_characters(joined_patterns("rejected_behind")), re.IGNORECASE
)
_CORRECTED_BEHIND = lazy_pattern(
    simplify_characters(joined_patterns("corrected_behind")), re.IGNORECASE
)
_MISTAKEN_BEFORE = lazy_pattern(
    rf"(?:{simplify_characters(joined_patterns('mistaken_before'))})$"
)
_DENIED_TWICE = lazy_pattern(
    simplify_characters(
        r"(?:오답|틀린|틀렸|잘못|과언|빼고|제외|말고)[^.?!]{0,12}(?:아니|아닙|없|않)|以外[^。"
        r"]{0,8}(?:ない|ありません|没有)|間違いありません"
        r"|\b(?:not|never|n't)\b[^.?!]{0,16}\b(?:wrong|false|incorrect)\b"
        r"|\bnicht[^.?!]{0,16}\bfalsch"
    ),
    re.IGNORECASE,
)
_PREFERRED = word_set("instead rather statt anstatt plutot")
"""Words after a name that prefer it to another: "Paris instead of Lyon"."""
NAMESAKES = tuple(label_alternatives("namesake").split("|"))


def _has_all_words(words: Sequence[str], target_words: Sequence[str]) -> bool:
    """Return whether a name has all words of a target: joined, as initials or with a slip."""
    ends = range(len(words) + 1)
    runs = {"".join(words[start:end]) for end in ends for start in range(end)}
    return all(
        word in runs
        or any(
            is_same_word(token, word) or word == token[:1] or token == word[:1]
            for token in words
        )
        for word in target_words
    )


class SentenceAnswer(Enum):
    """What a sentence gives as its answer."""

    GIVES = "gives the target"
    OTHER = "gives another answer"
    REFUSES = "names the target and does not give it"
    SILENT = "says nothing of it"


class ReadSentence(NamedTuple):
    """What a sentence answers, why, and what a careful reader might argue with.

    `is_direct` is set for a sentence that is only a name, and for one that repeats words of the
    question.
    """

    answer: SentenceAnswer
    why: str = ""
    doubt: str = ""
    is_direct: bool = False


SILENT = ReadSentence(SentenceAnswer.SILENT)


class SentenceReader:
    """Reads single sentences against the target names and the question of one sample."""

    def __init__(
        self,
        targets: Sequence[NameTarget],
        question: str,
        language: str,
        confusable: Sequence[str] = (),
        is_person: bool = False,
    ) -> None:
        self.targets = targets
        self.is_person = is_person
        self.confusable = (
            *confusable,
            *(name for name in NAMESAKES if name not in self._joined_targets()),
        )
        self.cues = cues_of(language)
        code = language.split("-")[0]
        self.tones = tone_forms_of(targets) if code == "vi" else {}
        self.capitalises_nouns = code == "de"
        self.is_english = code == "en"
        self.inflected = code in (
            "pl",
            "ru",
            "uk",
            "tr",
            "ta",
            "hi",
            "ar",
            "fi",
            "hu",
            "cs",
            "sk",
            "et",
        )
        self.is_latin = code == "tr"
        self.denies_behind = code in ("ko", "ja", "tr", "hi", "ta")
        question_tokens = [
            token for token in fold_text(plain(question[:2000])).tokens if token
        ]
        self.question_beginnings = frozenset(token[:5] for token in question_tokens)
        long = (
            token
            for token in question_tokens
            if len(token) > 3 or not (token.isalpha() and token.isascii())
        )
        long_words = list(long)
        own_words = [token for token in long_words if token not in FUNCTION_WORDS]
        # "What is the capital of the country?" has no long words except those for kinds of things.
        kinds = [token for token in long_words if len(token) >= MIN_KIND_CHARS]
        self.topic_beginnings = frozenset(token[:5] for token in own_words or kinds)
        self.forms = frozenset(
            form
            for target in targets
            for form in (*target.forms, " ".join(target.tokens))
        )
        self.longest_form = max(map(len, self.forms), default=0)
        self.is_common_noun = any(target.text[:1].islower() for target in targets)
        self.restarts = self.cues.turns | cue_words("sure", language)
        self.no_names = (
            NAME_HEADS
            | self.cues.negations
            | self.cues.aside
            | self.cues.turns
            | cue_words("sure")
            | set(months())
        )

    def describe_likeness(self, content: Sequence[str]) -> str:
        """Describe how words resemble a target; "" if they do not.

        Outside English any shared letters count, because we know less of the forms of words.
        """
        reason = describe_likeness(content, self.targets)
        if reason or self.is_english or not is_loosely_like(content, self.targets):
            return reason
        return (
            f"'{shortened(' '.join(content))}' shares words or letters with the target"
        )

    def read(self, text: str) -> ReadSentence:
        text = _CONNECTIVE.sub(", ", text)
        if self.is_target(text):
            return ReadSentence(
                SentenceAnswer.GIVES, f"'{shortened(text)}' is a target", is_direct=True
            )
        if "?" in without_tag_question(text):
            return SILENT
        folded = self.fold(text)
        named = self._find_mentions(folded)
        if not named:
            return self._read_without_target(folded)

        plainly = [
            mention for mention in named if not self._is_no_answer(folded, mention)
        ]
        quoted = f"'{shortened(text)}'"
        if not plainly:
            if all(self._is_denied(folded, mention) for mention in named):
                twice = (
                    "perhaps a denial of a denial"
                    if _DENIED_TWICE.search(folded.text)
                    else ""
                )
                return ReadSentence(
                    SentenceAnswer.REFUSES, f"{quoted} denies the target", twice
                )
            if all(self._is_other_person(folded, mention) for mention in named):
                return ReadSentence(
                    SentenceAnswer.REFUSES,
                    f"{quoted} gives another name",
                    is_direct=True,
                )
            reason = "names the target only in passing"
            return ReadSentence(
                SentenceAnswer.REFUSES, f"{quoted} {reason}", reason, is_direct=True
            )
        mention = plainly[0]
        if reason := self._reason_against(folded, mention, plainly):
            return ReadSentence(
                SentenceAnswer.REFUSES, f"{quoted}: {reason}", reason, is_direct=True
            )
        name = " ".join(folded.cased[mention.start : mention.end])
        firm = self._takes_up_question(folded.tokens) or self.is_bare_name(text)
        return ReadSentence(
            SentenceAnswer.GIVES,
            f"'{name}' is given",
            self._doubt_about(folded, mention),
            firm,
        )

    def _read_without_target(self, folded: FoldedText) -> ReadSentence:
        """Read a sentence that names no target: it gives another name, or nothing."""
        if _REJECTED_BEHIND.search(folded.text):
            return SILENT
        opening = self._opening_name(folded.text)
        if opening and not self.describe_likeness(
            self.content_words(fold_text(opening).tokens)
        ):
            return ReadSentence(
                SentenceAnswer.OTHER,
                f"'{shortened(opening)}' is none of the targets",
                is_direct=True,
            )
        if not self._takes_up_question(folded.tokens) or self.cues.denies(
            folded.tokens, folded.text
        ):
            return SILENT
        content = self.content_words(folded.tokens)
        if script_of(folded.text) in CASED_SCRIPTS and not self.is_common_noun:
            content = self._other_names(folded, 0, len(folded.tokens))
        if not content:
            return SILENT
        return ReadSentence(
            SentenceAnswer.OTHER,
            f"'{shortened(folded.text)}' gives something else",
            is_direct=True,
        )

    def _is_no_answer(self, folded: FoldedText, mention: Mention) -> bool:
        """Return whether a mention is denied, another person's name, or explains another name."""
        return (
            self._is_denied(folded, mention)
            or self._is_aside(folded, mention)
            or self._is_other_person(folded, mention)
        )

    def _reason_against(
        self, folded: FoldedText, mention: Mention, plainly: Sequence[Mention]
    ) -> str:
        """Return why a plain mention is not the sentence's answer; "" if it is."""
        tokens = folded.tokens
        size = len(folded.tokens)
        first, last = folded.clause(mention.start, mention.end)
        if self._is_alternative(folded, mention, plainly):
            return "the target is one of several"
        goes_on = bool(
            self._words_of_question(tokens[last:])
            or self._other_names(folded, last, size)
        )
        if goes_on and _USED_TO_BE.search(text_between(folded, first, last)):
            return "the target was the answer once"
        if self._has_earlier_answer(folded, mention, first):
            return "something else is given first"
        is_last = mention.start == max(
            mention_beside.start for mention_beside in plainly
        )
        if is_last and _CORRECTED_BEHIND.match(
            text_behind(folded, mention, CORRECTION_REACH_WORDS)
        ):
            return "another answer may be given behind it"
        return ""

    def _doubt_about(self, folded: FoldedText, mention: Mention) -> str:
        """Return what a careful reader might object to, though the target is given; "" if none."""
        first, last = folded.clause(mention.start, mention.end)
        if (
            first
            and last - first <= mention.end - mention.start
            and self._other_names(folded, 0, first)
        ):
            return "the target behind another name"
        if (
            first
            and self._takes_up_question(folded.tokens[:first])
            and not self._words_of_question(folded.tokens[first:last])
        ):
            return "another clause says more of the question"
        if not mention.is_exact and not self.is_person:
            return "the target in a longer name"
        return ""

    def _is_alternative(
        self, folded: FoldedText, mention: Mention, plainly: Sequence[Mention]
    ) -> bool:
        """Return whether the target is one of several alternatives: "Paris or Lyon"."""
        tokens = folded.tokens
        alternatives = self.cues.alternatives - self.question_beginnings
        for at, token in enumerate(tokens):
            if token not in alternatives:
                continue
            before = any(alternative.end == at for alternative in plainly)
            behind = any(
                at < alternative.start <= at + ASIDE_REACH_WORDS
                for alternative in plainly
            )
            if before != behind:
                return True
        text = text_between(folded, max(0, mention.start - 3), mention.end + 3)
        if has_spaceless_cue("alternative", text) and len(plainly) < 2:
            return True
        hedges = [at for at, token in enumerate(tokens) if token in _PERHAPS]
        return len(hedges) > 1 and bool(
            self._other_names(folded, mention.end, len(tokens))
        )

    def _has_earlier_answer(
        self, folded: FoldedText, mention: Mention, clause: int
    ) -> bool:
        """Return whether an earlier clause gives another answer.

        It does if it has the words of the question, or opens with a name alone.
        """
        tokens = folded.tokens
        restart = max(
            (at + 1 for at in range(mention.start) if tokens[at] in self.restarts),
            default=0,
        )
        if not clause or (restart > 0 and restart >= clause - 1):
            return False
        beside = text_between(folded, clause, mention.start)
        is_in_brackets = folded.gaps[clause].rstrip().endswith(("(", "（"))
        earlier_text = text_between(folded, restart, mention.start)
        if _NAMELY.search(beside) or _REJECTED_BEHIND.search(earlier_text):
            return False
        if _CORRECTED_BEHIND.search(earlier_text):
            return False  # "I thought it was Busan, but it turns out to be Seoul"
        if (
            is_in_brackets
            and _OTHER_NAME.search(beside)
            and not _USED_TO_BE.search(beside)
        ):
            return False  # "Bombay (now called Mumbai)"
        places = range(restart, clause)
        earlier = [tokens[at] for at in places]
        if script_of(folded.text) in CASED_SCRIPTS and not self.is_common_noun:
            others = [
                name for at in places for name in self._other_names(folded, at, at + 1)
            ]
        else:
            others = [
                token for token in self.content_words(earlier) if not token.isdecimal()
            ]
        is_cased = script_of(folded.text) in CASED_SCRIPTS
        says_more = is_in_brackets and bool(
            self.content_words(tokens[clause : mention.start])
        )
        answers = (
            says_more  # the clause only adds detail: "Sydney (the parliament sits in Canberra)"
            or self._takes_up_question(earlier)
            or (is_cased and self._words_of_question(earlier))
            or self._opening_name(folded.text)
        )
        if not others or not answers:
            return False
        last = folded.clause(mention.start, mention.end)[1]
        is_alone = last - clause <= mention.end - mention.start
        if not self.is_person and is_alone and folded.gaps[clause].strip() == ",":
            return False  # "Paris, France"
        if _USED_TO_BE.search(text_between(folded, restart, clause)):
            return False
        mine = self._words_of_question(tokens[clause:last])
        is_spaceless = script_of(folded.text) in BARE_CHARS
        return is_spaceless or not mine - self._words_of_question(earlier)

    def _is_denied(self, folded: FoldedText, mention: Mention) -> bool:
        """Return whether the mention is negated, before it in its clause or right after it."""
        tokens = folded.tokens
        first, last = folded.clause(mention.start, mention.end)
        before = tokens[max(first, mention.start - DENIAL_REACH_WORDS) : mention.start]
        if before[-2:] == ["anything", "but"] or not _WRONG.isdisjoint(
            tokens[mention.end : mention.end + 5]
        ):
            return True
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        behind_text = text_behind(folded, mention)
        before_text = text_between(
            folded, max(first, mention.start - DENIAL_REACH_WORDS), mention.start
        )
        if _REJECTED_BEHIND.match(behind_text) or _MISTAKEN_BEFORE.search(before_text):
            return True
        has_own_order = not folded.text.isascii() or self.is_latin
        before = [] if self.denies_behind and has_own_order else before
        near = tokens[mention.end : min(last, mention.end + 3)]
        preferred = next(
            (index for index, token in enumerate(near) if token in _PREFERRED),
            len(near),
        )
        near = near[:preferred]
        behind = "".join(tokens[mention.end : min(last, mention.end + 8)])
        return self.cues.denies(
            [*before, *near], "".join(before)[-8:]
        ) or self.cues.denies([], behind)

    def _is_aside(self, folded: FoldedText, mention: Mention) -> bool:
        """Return whether a mention only explains another name.

        Examples: "the rival of ...", "after ...", "세종의 아들 ...".
        """
        start = max(
            self.cues.turn_in(folded.tokens[: mention.start]),
            mention.start - ASIDE_REACH_WORDS,
        )
        near = folded.tokens[start : mention.start]
        if near[-2:] == ["other", "than"]:
            return False
        if "than" in near[-2:]:
            return True
        if any(
            token in self.cues.aside and token[:5] not in self.question_beginnings
            for token in near
        ):
            return True
        if _ASIDE_BEHIND.match(text_behind(folded, mention)):
            return True
        return self._is_possessor(folded, mention) and not self.cues.aside.isdisjoint(
            folded.tokens[mention.end + 1 : mention.end + 4]
        )

    def _is_possessor(self, folded: FoldedText, mention: Mention) -> bool:
        """Return whether an English possessive "'s" follows."""
        return folded.tokens[mention.end : mention.end + 1] == ["s"]

    def _is_other_person(self, folded: FoldedText, mention: Mention) -> bool:
        """Return whether the mention is another person with a target's surname."""
        named = folded.tokens[mention.start : mention.end]
        surnames = {
            target.surname: target for target in self.targets if target.given_names
        }
        if " ".join(named) in self.forms and " ".join(named) not in surnames:
            return folded.tokens[mention.end : mention.end + 1] in (
                ["junior"],
                ["senior"],
            )
        target = next(
            (surnames[name] for name in surnames if " ".join(named).endswith(name)),
            None,
        )
        if target is None:
            return False
        given_names = named[: -len(target.surname.split())]
        index = mention.start
        while (
            index > 0
            and folded.cased[index - 1][:1].isupper()
            and folded.gaps[index] in (" ", ". ", "-", ".")
        ):
            index -= 1
            given_names.insert(0, folded.tokens[index])
        given_names = [
            token
            for token in given_names
            if token not in NAME_HEADS and token[:5] not in self.question_beginnings
        ]
        given_names = [
            token for token in given_names if token not in NAME_PARTICLES
        ] or given_names
        fits = [
            theirs for theirs in surnames.values() if theirs.surname == target.surname
        ]
        if (
            not self.is_person
            and len(given_names) > 1
            and all(len(theirs.given_names) > 1 for theirs in fits)
        ):
            # "Hyper Text Transport Protocol": a phrase that differs in one word is another phrase.
            return not any(
                _has_all_words(given_names, theirs.given_names) for theirs in fits
            )
        return bool(given_names) and not any(
            is_same_given_name(given_names[-1], theirs.given_names[-1])
            or is_same_given_name(given_names[0], theirs.given_names[0])
            for theirs in fits
        )

    def is_target(self, text: str) -> bool:
        """Return whether a text is exactly a target."""
        text = without_tag_question(text)
        tokens = self.fold(text).tokens
        if "?" in text or len(tokens) > self.longest_form + MAX_ARTICLES:
            return False
        while (
            len(tokens) > 1
            and tokens[0] in ARTICLES
            and " ".join(tokens) not in self.forms
        ):
            tokens = tokens[1:]
        return " ".join(tokens) in self.forms or "".join(tokens) in self.forms

    def _joined_targets(self) -> set[str]:
        return {" ".join(target.tokens) for target in self.targets}

    def fold(self, text: str) -> FoldedText:
        folded = align_with_targets(fold_text(text), self.targets, self.inflected)
        if not self.tones:
            return folded
        tokens = [
            (
                token
                if word.isascii()
                or order_tone_marks(word)
                in self.tones.get(token, (order_tone_marks(word),))
                else order_tone_marks(word)
            )
            for word, token in zip(folded.cased, folded.tokens, strict=True)
        ]
        return folded._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")

    def _find_mentions(self, folded: FoldedText) -> list[Mention]:
        return find_mentions(
            folded, self.targets, self.confusable, self.question_beginnings
        )

    def _words_of_question(self, tokens: Sequence[str]) -> set[str]:
        return {token[:5] for token in tokens} & self.topic_beginnings

    def _takes_up_question(self, tokens: Sequence[str]) -> bool:
        """Return whether words include at least half of the question's words."""
        return len(self._words_of_question(tokens)) * 2 >= max(
            len(self.topic_beginnings), 1
        )

    def content_words(self, tokens: Sequence[str]) -> list[str]:
        """Return the words that are neither function words nor words of the question."""
        return [
            token
            for token in tokens
            if token
            and token not in FUNCTION_WORDS
            and token[:5] not in self.question_beginnings
        ]

    def _opening_name(self, text: str) -> str:
        """Return the name with which a sentence opens; "" if it opens otherwise."""
        end = _OPENS.search(text, 2)
        opening = text[: end.start()] if end else text
        tokens = fold_text(opening).tokens
        pieces = opening.split()
        small = FUNCTION_WORDS - ARTICLES
        skipped = next(
            (at for at, token in enumerate(tokens) if token not in small or at > 3), 0
        )
        name = (
            " ".join(pieces[skipped:])
            if skipped and len(pieces) == len(tokens)
            else opening.strip()
        )
        is_adverb = _ADVERB.fullmatch(name) is not None
        return (
            name
            if self.is_bare_name(name)
            and not is_adverb
            and not self.cues.denies(tokens, opening)
            else ""
        )

    def is_bare_name(self, text: str) -> bool:
        """Return whether a text is only a name, or a short noun if the targets are nouns."""
        folded = fold_text(text)
        if (
            not folded.tokens
            or len(folded.tokens) > MAX_BARE_WORDS
            or "?" in text
            or ":" in text
        ):
            return False
        content = self.content_words(folded.tokens)
        script = script_of(text)
        if script not in CASED_SCRIPTS:
            return 0 < len(content) <= BARE_CHARS.get(script, 4)
        is_noun = self.is_common_noun or (self.capitalises_nouns and len(content) == 1)
        if (
            is_noun
            and 0 < len(content) <= 2
            and set(folded.tokens) <= {*content, *ARTICLES}
        ):
            return True
        inner = NAME_PARTICLES | ARTICLES
        return not NAME_HEADS.issuperset(content) and all(
            word[:1].isupper() or token in inner
            for word, token in zip(folded.cased, folded.tokens, strict=True)
        )

    def _other_names(self, folded: FoldedText, start: int, end: int) -> list[str]:
        """List capitalised words that belong neither to the question nor to a target.

        Words in a clause that denies them are left out.
        """
        targets = [token for target in self.targets for token in target.tokens]
        names = []
        for index in range(start, min(end, len(folded.tokens))):
            word = folded.cased[index]
            token = folded.tokens[index]
            if (
                not word[:1].isupper()
                or len(token) < 2
                or token in self.no_names
                or token in targets
            ):
                continue
            if not self.content_words([token]):
                continue
            beside = (
                folded.cased[index + 1][:1] if index + 1 < len(folded.cased) else ""
            )
            if index == 0 and not (
                beside and (beside.isupper() or folded.tokens[1] in FUNCTION_WORDS)
            ):
                continue  # the first word of a sentence is capitalised anyway
            if self._is_denied(folded, Mention(index, index + 1, True)):
                continue
            names.append(word)
        return names
