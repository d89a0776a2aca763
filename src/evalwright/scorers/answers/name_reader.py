"""What a reply says of a name: the target, something else, or nothing.

The first sentence that answers decides, unless a concluding one or a change of mind follows. A
sentence answers with the target where it names it plainly: not denied, not only to explain another
name ("Picasso's friend Dalí"), not as one of several alternatives, and with no other answer in an
earlier clause. Without such a sentence the reply is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from evalwright.scorers.answers.name_likeness import (
    differs_in_digits,
    is_loosely_near,
    likeness,
)
from evalwright.scorers.answers.name_targets import (
    HEADS,
    PARTICLES,
    Mention,
    Target,
    aligned,
    mentions,
    same_given,
    same_word,
    text_behind,
    toned,
    tones_of,
)
from evalwright.scorers.answers.reply import Said, lines
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    shortened,
    unreadable,
)
from evalwright.scorers.text.cues import (
    anywhere,
    cues,
    labels,
    last_revision,
    months,
    pattern,
    words,
)
from evalwright.scorers.text.folded import (
    ARTICLES,
    CASED,
    FUNCTION,
    Reading,
    read,
    script_of,
    simplified,
    text_between,
    without_tag,
)
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import word_set

MIN_KIND_CHARS = 6
"""Of a word for a kind of thing, such as "capital"; shorter ones ("which", "where") only ask."""
MAX_SENTENCES = 12
MAX_BARE_WORDS = 6
MAX_ARTICLES = 8
MAX_LIKE_WORDS = 4
"""Words of a reply up to which it may be a target in another spelling or form."""
BARE_CHARS = {"CJK": 10, "KANA": 12, "THAI": 18, "LAO": 18, "KHMER": 18, "MYANMAR": 18}
"""Scripts without spaces, and how many characters a bare name has at most."""
ASIDE_REACH_WORDS = 4
DENIAL_REACH_WORDS = 6
CORRECTION_REACH_WORDS = 30

_KOREAN_COUNT = re.compile(r"\d+[가-힣]")
_WRONG = word_set("wrong false incorrect mistaken falsch faux falso")
_PERHAPS = word_set("could might may maybe possibly perhaps")
_ITEMS = re.compile(
    r"\s*(?:[,;/&、，"
    r"\n]|\s(?:and|und|et|y|e|en|и|та|i|ve|dan|và|na|و|और|vs\.?)\s)\s*(?:-\s)?"
)
_LISTED = re.compile(
    r"[,;/、，\n]|(?:^|\s)(?:\(?[A-Ea-e\d][.)])\s|\s(?:and|und|et|y|and/or)\s"
)
_MARKED = re.compile(r"(?:^|\s)\(?[A-Ea-e\d][.)]\s")
_OPENS = re.compile(r"(?<!\b[^\W\d_])\.(?=\s|$)|[,;:()–—、，،؛；：。（!]|\s-\s|$")
_USED_TO_BE = re.compile(
    r"\b(?:used to be|once was|was once|was"
    r" formerly|formerly|früher|ehemals|autrefois|jadis|antiguamente|un"
    r" tempo|antigamente"
    r"|раньше|когда-то|kiedyś|eskiden|dulu|từng|dati)\b|以前|曾|かつて|예전|이전에|한때",
    re.IGNORECASE,
)
_NAMELY = re.compile(
    r"\b(?:i\.e|that is|namely|d\.h|nämlich|c'est-à-dire|es decir|то"
    r" есть|yaitu|yakni|tức)\b|即|つまり|즉"
)
_OTHER_NAME = re.compile(
    r"\b(?:now|known|called|named|aka|a\.k\.a|alias|pen name|real"
    r" name|nicknamed?|n[ée]e|born|also|or|also spelled|short for|stands?"
    r" for|meaning|auch|genannt|dit|llamad[oa])\b",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    "(?<=[가-힣]고)(?<![라다냐자]고)(?<!알고) |(?<=[가-힣]며) |(?<=지만) |(?<=는데)"
    " |(?<=ပြီး)|(?=ซึ่ง|แต่)|(?=ហើយ)|(?=ເຊິ່ງ)"
)
"""Where a clause ends in scripts that set no comma there."""
_ADVERB = re.compile(r"\w+(?:ly|mente|ment)", re.IGNORECASE)
_DEPENDS = re.compile(
    r"\b(?:it depends|that depends|das kommt darauf an|cela dépend|depende|это"
    r" зависит)\b|^取决于",
    re.IGNORECASE,
)
_ASIDE_BEHIND = re.compile(simplified(pattern("aside_behind")))
_REJECTED_BEHIND = re.compile(simplified(pattern("rejected_behind")), re.IGNORECASE)
_CORRECTED_BEHIND = re.compile(simplified(pattern("corrected_behind")), re.IGNORECASE)
_MISTAKEN_BEFORE = re.compile(rf"(?:{simplified(pattern('mistaken_before'))})$")
_DENIED_TWICE = re.compile(
    simplified(
        r"(?:오답|틀린|틀렸|잘못|과언|빼고|제외|말고)[^.?!]{0,12}(?:아니|아닙|없|않)|以外[^。"
        r"]{0,8}(?:ない|ありません|没有)|間違いありません"
        r"|\b(?:not|never|n't)\b[^.?!]{0,16}\b(?:wrong|false|incorrect)\b|\bnicht[^.?!]{0,16}\bfalsch"
    ),
    re.IGNORECASE,
)
_PREFERRED = word_set("instead rather statt anstatt plutot")
"""Words behind a name that set it before another: "Paris instead of Lyon"."""
NAMESAKES = tuple(labels("namesake").split("|"))


def _has_all_words(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether words hold all that are wanted, written together or apart, as an initial or with a
    slip.
    """
    ends = range(len(given) + 1)
    runs = {"".join(given[start:end]) for end in ends for start in range(end)}
    return all(
        word in runs
        or any(
            same_word(token, word) or word == token[:1] or token == word[:1]
            for token in given
        )
        for word in wanted
    )


class Kind(Enum):
    """What a sentence does with the question."""

    GIVES = "gives the target"
    OTHER = "gives another answer"
    REFUSES = "names the target and does not give it"
    SILENT = "says nothing of it"


class Sentence(NamedTuple):
    """What a sentence says, why, and what a careful reader might argue with. firm: it is a bare
    name or takes up the question.
    """

    kind: Kind
    why: str = ""
    doubt: str = ""
    firm: bool = False


SILENT = Sentence(Kind.SILENT)


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self,
        targets: Sequence[Target],
        question: str,
        language: str,
        confusable: Sequence[str] = (),
        is_person: bool = False,
    ) -> None:
        self.targets = targets
        self.is_person = is_person
        self.confusable = (
            *confusable,
            *(name for name in NAMESAKES if name not in self._plain_targets()),
        )
        self.cues = cues(language)
        code = language.split("-")[0]
        self.tones = tones_of(targets) if code == "vi" else {}
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
        asked = [token for token in read(plain(question[:2000])).tokens if token]
        self.asked = frozenset(token[:5] for token in asked)
        long = (
            token
            for token in asked
            if len(token) > 3 or not (token.isalpha() and token.isascii())
        )
        long_words = list(long)
        own_words = [token for token in long_words if token not in FUNCTION]
        # "What is the capital of the country?" has no words of its own but those for kinds of
        # things.
        kinds = [token for token in long_words if len(token) >= MIN_KIND_CHARS]
        self.about = frozenset(token[:5] for token in own_words or kinds)
        self.forms = frozenset(
            form
            for target in targets
            for form in (*target.forms, " ".join(target.tokens))
        )
        self.longest_form = max(map(len, self.forms), default=0)
        self.is_common_noun = any(target.text[:1].islower() for target in targets)
        self.restarts = self.cues.turns | words("sure", language)
        self.no_names = (
            HEADS
            | self.cues.negations
            | self.cues.aside
            | self.cues.turns
            | words("sure")
            | set(months())
        )

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        if self.is_target(said.text) and not said.after and not said.before:
            return correct(f"'{shortened(said.text)}' is a target as written")
        if self._lists_all(said.text):
            return correct("all the things of a target")
        if self._lists_candidates(said.text):
            return incorrect(
                f"'{shortened(said.text)}' lists several",
                "the target is one of several",
            )
        verdict = self._judge_sentences(said)
        if verdict.label == "correct" and _DEPENDS.match(said.text):
            return incorrect(f"{verdict.why}, and it depends", "it depends")
        if verdict.label == "correct" and said.marked and not verdict.unsure:
            later = said.after
            if last_revision(later) or any(
                self._sentence(part).kind is Kind.REFUSES for part in lines(later)[:3]
            ):
                return verdict._replace(
                    unsure=f"{verdict.why}, and something else after it"
                )
        return verdict

    def _likeness(self, content: Sequence[str]) -> str:
        """What makes words like a target; in other languages than English any shared letters do, as
        less is known of their forms.
        """
        reason = likeness(content, self.targets)
        if reason or self.is_english or not is_loosely_near(content, self.targets):
            return reason
        return (
            f"'{shortened(' '.join(content))}' shares words or letters with the target"
        )

    def _lists_all(self, text: str) -> bool:
        """Whether a target of several things ("red, green and blue") is given, in any order."""
        if len(text) > 300:
            return False
        named = self._things(text.strip(" ."))
        for target in self.targets:
            wanted = self._things(plain(target.text))
            if min(len(wanted), len(named)) > 1 and sorted(named) == sorted(wanted):
                return True
        return False

    def _lists_candidates(self, text: str) -> bool:
        """Whether a text is nothing but a list of bare names, one of them a target: "Paris; Lyon",
        "1. Paris 2. Lyon".
        """
        if len(text) > 300:
            return False
        if _MARKED.search(text, 1) and not _MARKED.match(text):
            return False  # "Lincoln", and the other options of a list that a model goes on with
        parts = [
            part.strip(" .")
            for part in _LISTED.split(text)
            if any(map(str.isalpha, part))
        ]
        if len(parts) < 2 or not all(self._is_bare(part) for part in parts):
            return False
        targets = sum(self.is_target(part) for part in parts)
        is_pair = len(parts) == 2 and ("," in text or self.is_person)
        return 0 < targets < len(parts) and not is_pair

    def _things(self, text: str) -> list[str]:
        parts = (" ".join(self._read(part).tokens) for part in _ITEMS.split(text))
        return [part.removeprefix("the ").removeprefix("and ") for part in parts]

    # -- several sentences

    def _judge_sentences(self, said: Said) -> Verdict:
        parts = lines(said.text)
        if len(parts) > MAX_SENTENCES:
            parts = [*parts[: MAX_SENTENCES // 2], *parts[-MAX_SENTENCES // 2 :]]
        sentences = [self._sentence(part) for part in parts]
        giving = next(
            (sentence for sentence in sentences if sentence.kind is Kind.GIVES), None
        )
        if giving is None:
            return self._without_target(said, sentences)

        first = next(
            sentence for sentence in sentences if sentence.kind is not Kind.SILENT
        )
        last = sentences[-1]
        if said.last and last.kind is not Kind.SILENT:
            differs = first.kind is not last.kind
            doubt = (
                "a beginning and an end that differ"
                if differs and first.firm
                else last.doubt
            )
            if last.kind is Kind.GIVES:
                return correct(last.why, doubt)
            return incorrect(last.why, doubt or "the target is given before")
        if first is giving:
            later = sentences[sentences.index(first) + 1 :]
            denied = any(sentence.kind is Kind.REFUSES for sentence in later)
            return correct(
                first.why,
                first.doubt or ("the target is denied later" if denied else ""),
            )
        if first.firm:
            is_open = first.kind is Kind.REFUSES
            return incorrect(
                first.why, "the target is given in a later sentence" if is_open else ""
            )
        return correct(
            giving.why, giving.doubt or f"{giving.why}, after something else"
        )

    def _without_target(self, said: Said, sentences: Sequence[Sentence]) -> Verdict:
        """No sentence gives the target: wrong, unless what stands there may be a target in other
        words.
        """
        named = next(
            (sentence for sentence in sentences if sentence.kind is Kind.REFUSES), None
        )
        if named is not None:
            return incorrect(named.why, named.doubt)
        reading = self._read(said.text[:2000])
        content = self._content(reading.tokens)
        script = script_of(said.text)
        shown = f"'{shortened(said.text)}'"
        if not content:
            return unreadable(f"{shown} names nothing")
        if script and all(target.script != script for target in self.targets):
            return incorrect(
                f"{shown} has no target", "the targets are in another script"
            )
        if self.is_person and any(
            content == [target.tokens[-1]] for target in self.targets
        ):
            return correct(f"{shown} is a part of the target", "a part of a name")
        if any(token in content for token in self._with_counter_twice()):
            return correct(f"{shown} is a target", "its counter is written twice")
        if all(
            differs_in_digits(reading.tokens, target.tokens) for target in self.targets
        ):
            return incorrect(f"{shown} has other digits than the target")
        doubt = self._likeness(content) if len(content) <= MAX_LIKE_WORDS else ""
        return incorrect(f"{shown} has no target", doubt)

    def _with_counter_twice(self) -> list[str]:
        """Korean targets of a number and a counter, as a sentence that adds the counter again has
        them: "32개개" for "32개".
        """
        joined = ["".join(target.tokens) for target in self.targets]
        return [f"{text}{text[-1]}" for text in joined if _KOREAN_COUNT.fullmatch(text)]

    # -- one sentence

    def _sentence(self, text: str) -> Sentence:
        text = _CONNECTIVE.sub(", ", text)
        if self.is_target(text):
            return Sentence(Kind.GIVES, f"'{shortened(text)}' is a target", firm=True)
        if "?" in without_tag(text):
            return SILENT
        reading = self._read(text)
        named = self._mentions(reading)
        if not named:
            return self._other_answer(reading)

        plainly = [mention for mention in named if not self._explains(reading, mention)]
        shown = f"'{shortened(text)}'"
        if not plainly:
            if all(self.denied(reading, mention) for mention in named):
                twice = (
                    "perhaps a denial of a denial"
                    if _DENIED_TWICE.search(reading.text)
                    else ""
                )
                return Sentence(Kind.REFUSES, f"{shown} denies the target", twice)
            if all(self._is_anothers(reading, mention) for mention in named):
                return Sentence(Kind.REFUSES, f"{shown} gives another name", firm=True)
            reason = "names the target only in passing"
            return Sentence(Kind.REFUSES, f"{shown} {reason}", reason, firm=True)
        mention = plainly[0]
        if reason := self._against(reading, mention, plainly):
            return Sentence(Kind.REFUSES, f"{shown}: {reason}", reason, firm=True)
        name = " ".join(reading.cased[mention.start : mention.end])
        firm = self._takes_up(reading.tokens) or self._is_bare(text)
        return Sentence(
            Kind.GIVES, f"'{name}' is given", self._doubt(reading, mention), firm
        )

    def _other_answer(self, reading: Reading) -> Sentence:
        """What a sentence without a target answers: a bare name, or a name in words of the
        question.
        """
        if _REJECTED_BEHIND.search(reading.text):
            return SILENT
        opening = self._opening(reading.text)
        if opening and not self._likeness(self._content(read(opening).tokens)):
            return Sentence(
                Kind.OTHER, f"'{shortened(opening)}' is none of the targets", firm=True
            )
        if not self._takes_up(reading.tokens) or self.cues.denies(
            reading.tokens, reading.text
        ):
            return SILENT
        content = self._content(reading.tokens)
        if script_of(reading.text) in CASED and not self.is_common_noun:
            content = self._names(reading, 0, len(reading.tokens))
        if not content:
            return SILENT
        return Sentence(
            Kind.OTHER, f"'{shortened(reading.text)}' gives something else", firm=True
        )

    def _explains(self, reading: Reading, mention: Mention) -> bool:
        """Whether a mention is no answer of its own: denied, another person's name, or in words
        about another name.
        """
        return (
            self.denied(reading, mention)
            or self._aside(reading, mention)
            or self._is_anothers(reading, mention)
        )

    def _against(
        self, reading: Reading, mention: Mention, plainly: Sequence[Mention]
    ) -> str:
        """Why a plain mention is not the sentence's answer; "" where it is."""
        tokens = reading.tokens
        size = len(reading.tokens)
        first, last = reading.clause(mention.start, mention.end)
        if self._is_alternative(reading, mention, plainly):
            return "the target is one of several"
        goes_on = bool(self._shared(tokens[last:]) or self._names(reading, last, size))
        if goes_on and _USED_TO_BE.search(text_between(reading, first, last)):
            return "the target was the answer once"
        if self._earlier_answer(reading, mention, first):
            return "something else is given first"
        is_last = mention.start == max(other.start for other in plainly)
        if is_last and _CORRECTED_BEHIND.match(
            text_behind(reading, mention, CORRECTION_REACH_WORDS)
        ):
            return "another answer may be given behind it"
        return ""

    def _doubt(self, reading: Reading, mention: Mention) -> str:
        """What a careful reader might argue with where the target is given."""
        first, last = reading.clause(mention.start, mention.end)
        if (
            first
            and last - first <= mention.end - mention.start
            and self._names(reading, 0, first)
        ):
            return "the target behind another name"
        if (
            first
            and self._takes_up(reading.tokens[:first])
            and not self._shared(reading.tokens[first:last])
        ):
            return "another clause says more of the question"
        if not mention.sure and not self.is_person:
            return "the target in a longer name"
        return ""

    def _is_alternative(
        self, reading: Reading, mention: Mention, plainly: Sequence[Mention]
    ) -> bool:
        """Whether the target is offered beside something else: "Paris or Lyon", "may be Paris,
        could be Lyon".
        """
        tokens = reading.tokens
        alternatives = self.cues.alternatives - self.asked
        for at, token in enumerate(tokens):
            if token not in alternatives:
                continue
            before = any(other.end == at for other in plainly)
            behind = any(
                at < other.start <= at + ASIDE_REACH_WORDS for other in plainly
            )
            if before != behind:
                return True
        text = text_between(reading, max(0, mention.start - 3), mention.end + 3)
        if anywhere("alternative", text) and len(plainly) < 2:
            return True
        hedges = [at for at, token in enumerate(tokens) if token in _PERHAPS]
        return len(hedges) > 1 and bool(self._names(reading, mention.end, len(tokens)))

    def _earlier_answer(self, reading: Reading, mention: Mention, clause: int) -> bool:
        """Whether a clause before the target's gives another answer: it takes up the question, or
        opens with a bare name.
        """
        tokens = reading.tokens
        restart = max(
            (at + 1 for at in range(mention.start) if tokens[at] in self.restarts),
            default=0,
        )
        if not clause or (restart > 0 and restart >= clause - 1):
            return False
        beside = text_between(reading, clause, mention.start)
        is_in_brackets = reading.gaps[clause].rstrip().endswith(("(", "（"))
        earlier_text = text_between(reading, restart, mention.start)
        if _NAMELY.search(beside) or _REJECTED_BEHIND.search(earlier_text):
            return False
        if _CORRECTED_BEHIND.search(earlier_text):
            return False  # "부산이라고 생각했는데 알고 보니 서울"
        if (
            is_in_brackets
            and _OTHER_NAME.search(beside)
            and not _USED_TO_BE.search(beside)
        ):
            return False  # "Bombay (now called Mumbai)"
        places = range(restart, clause)
        earlier = [tokens[at] for at in places]
        if script_of(reading.text) in CASED and not self.is_common_noun:
            others = [
                name for at in places for name in self._names(reading, at, at + 1)
            ]
        else:
            others = [
                token for token in self._content(earlier) if not token.isdecimal()
            ]
        is_cased = script_of(reading.text) in CASED
        says_more = is_in_brackets and bool(
            self._content(tokens[clause : mention.start])
        )
        answers = (
            says_more  # "Sydney (the parliament sits in Canberra)"
            or self._takes_up(earlier)
            or (is_cased and self._shared(earlier))
            or self._opening(reading.text)
        )
        if not others or not answers:
            return False
        last = reading.clause(mention.start, mention.end)[1]
        is_alone = last - clause <= mention.end - mention.start
        if not self.is_person and is_alone and reading.gaps[clause].strip() == ",":
            return False  # "Paris, France"
        if _USED_TO_BE.search(text_between(reading, restart, clause)):
            return False
        mine = self._shared(tokens[clause:last])
        is_spaceless = script_of(reading.text) in BARE_CHARS
        return is_spaceless or not mine - self._shared(earlier)

    def denied(self, reading: Reading, mention: Mention) -> bool:
        """Whether a negation stands before a mention in its clause, or right after it."""
        tokens = reading.tokens
        first, last = reading.clause(mention.start, mention.end)
        before = tokens[max(first, mention.start - DENIAL_REACH_WORDS) : mention.start]
        if before[-2:] == ["anything", "but"] or not _WRONG.isdisjoint(
            tokens[mention.end : mention.end + 5]
        ):
            return True
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        behind_text = text_behind(reading, mention)
        before_text = text_between(
            reading, max(first, mention.start - DENIAL_REACH_WORDS), mention.start
        )
        if _REJECTED_BEHIND.match(behind_text) or _MISTAKEN_BEFORE.search(before_text):
            return True
        has_own_order = not reading.text.isascii() or self.is_latin
        before = [] if self.denies_behind and has_own_order else before
        near = tokens[mention.end : min(last, mention.end + 3)]
        preferred = next(
            (place for place, token in enumerate(near) if token in _PREFERRED),
            len(near),
        )
        near = near[:preferred]
        behind = "".join(tokens[mention.end : min(last, mention.end + 8)])
        return self.cues.denies(
            [*before, *near], "".join(before)[-8:]
        ) or self.cues.denies([], behind)

    def _aside(self, reading: Reading, mention: Mention) -> bool:
        """Whether a mention only explains another name: "the rival of ...", "after ...", "세종의 아들
        ...".
        """
        start = max(
            self.cues.turn_in(reading.tokens[: mention.start]),
            mention.start - ASIDE_REACH_WORDS,
        )
        near = reading.tokens[start : mention.start]
        if near[-2:] == ["other", "than"]:
            return False
        if "than" in near[-2:]:
            return True
        if any(
            token in self.cues.aside and token[:5] not in self.asked for token in near
        ):
            return True
        if _ASIDE_BEHIND.match(text_behind(reading, mention)):
            return True
        return self.is_possessor(reading, mention) and not self.cues.aside.isdisjoint(
            reading.tokens[mention.end + 1 : mention.end + 4]
        )

    def is_possessor(self, reading: Reading, mention: Mention) -> bool:
        """Whether an English possessive ending follows."""
        return reading.tokens[mention.end : mention.end + 1] == ["s"]

    def _is_anothers(self, reading: Reading, mention: Mention) -> bool:
        """Whether a mention is another person's name: the surname of a target, with given names
        that are not the target's.
        """
        named = reading.tokens[mention.start : mention.end]
        surnames = {target.surname: target for target in self.targets if target.given}
        if " ".join(named) in self.forms and " ".join(named) not in surnames:
            return reading.tokens[mention.end : mention.end + 1] in (
                ["junior"],
                ["senior"],
            )
        target = next(
            (surnames[name] for name in surnames if " ".join(named).endswith(name)),
            None,
        )
        if target is None:
            return False
        given = named[: -len(target.surname.split())]
        place = mention.start
        while (
            place > 0
            and reading.cased[place - 1][:1].isupper()
            and reading.gaps[place] in (" ", ". ", "-", ".")
        ):
            place -= 1
            given.insert(0, reading.tokens[place])
        given = [
            token
            for token in given
            if token not in HEADS and token[:5] not in self.asked
        ]
        given = [token for token in given if token not in PARTICLES] or given
        fits = [
            theirs for theirs in surnames.values() if theirs.surname == target.surname
        ]
        if (
            not self.is_person
            and len(given) > 1
            and all(len(theirs.given) > 1 for theirs in fits)
        ):
            # "Hyper Text Transport Protocol": a phrase with another word is another phrase
            return not any(_has_all_words(given, theirs.given) for theirs in fits)
        return bool(given) and not any(
            same_given(given[-1], theirs.given[-1])
            or same_given(given[0], theirs.given[0])
            for theirs in fits
        )

    # -- words

    def is_target(self, text: str) -> bool:
        """Whether a text is a target and nothing else."""
        text = without_tag(text)
        tokens = self._read(text).tokens
        if "?" in text or len(tokens) > self.longest_form + MAX_ARTICLES:
            return False
        while (
            len(tokens) > 1
            and tokens[0] in ARTICLES
            and " ".join(tokens) not in self.forms
        ):
            tokens = tokens[1:]
        return " ".join(tokens) in self.forms or "".join(tokens) in self.forms

    def _plain_targets(self) -> set[str]:
        return {" ".join(target.tokens) for target in self.targets}

    def _read(self, text: str) -> Reading:
        reading = aligned(read(text), self.targets, self.inflected)
        if not self.tones:
            return reading
        tokens = [
            (
                token
                if word.isascii()
                or toned(word) in self.tones.get(token, (toned(word),))
                else toned(word)
            )
            for word, token in zip(reading.cased, reading.tokens, strict=True)
        ]
        return reading._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")

    def _mentions(self, reading: Reading) -> list[Mention]:
        return mentions(reading, self.targets, self.confusable, self.asked)

    def _shared(self, tokens: Sequence[str]) -> set[str]:
        return {token[:5] for token in tokens} & self.about

    def _takes_up(self, tokens: Sequence[str]) -> bool:
        """Whether words hold at least half of the question's."""
        return len(self._shared(tokens)) * 2 >= max(len(self.about), 1)

    def _content(self, tokens: Sequence[str]) -> list[str]:
        """The words that are neither small ones nor the question's."""
        return [
            token
            for token in tokens
            if token and token not in FUNCTION and token[:5] not in self.asked
        ]

    def _opening(self, text: str) -> str:
        """The bare name with which a sentence opens, up to its first mark; "" where it opens
        otherwise.
        """
        end = _OPENS.search(text, 2)
        opening = text[: end.start()] if end else text
        tokens = read(opening).tokens
        pieces = opening.split()
        small = FUNCTION - ARTICLES
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
            if self._is_bare(name)
            and not is_adverb
            and not self.cues.denies(tokens, opening)
            else ""
        )

    def _is_bare(self, text: str) -> bool:
        """Whether a text is nothing but a name, or a short noun where the targets are such."""
        reading = read(text)
        if (
            not reading.tokens
            or len(reading.tokens) > MAX_BARE_WORDS
            or "?" in text
            or ":" in text
        ):
            return False
        content = self._content(reading.tokens)
        script = script_of(text)
        if script not in CASED:
            return 0 < len(content) <= BARE_CHARS.get(script, 4)
        is_noun = self.is_common_noun or (self.capitalises_nouns and len(content) == 1)
        if (
            is_noun
            and 0 < len(content) <= 2
            and set(reading.tokens) <= {*content, *ARTICLES}
        ):
            return True
        inner = PARTICLES | ARTICLES
        return not HEADS.issuperset(content) and all(
            word[:1].isupper() or token in inner
            for word, token in zip(reading.cased, reading.tokens, strict=True)
        )

    def _names(self, reading: Reading, start: int, end: int) -> list[str]:
        """Capitalised words between two places that are neither the question's nor a target's, nor
        in a clause that denies.
        """
        targets = [token for target in self.targets for token in target.tokens]
        names = []
        for place in range(start, min(end, len(reading.tokens))):
            word = reading.cased[place]
            token = reading.tokens[place]
            if (
                not word[:1].isupper()
                or len(token) < 2
                or token in self.no_names
                or token in targets
            ):
                continue
            if not self._content([token]):
                continue
            beside = (
                reading.cased[place + 1][:1] if place + 1 < len(reading.cased) else ""
            )
            if place == 0 and not (
                beside and (beside.isupper() or reading.tokens[1] in FUNCTION)
            ):
                continue  # a sentence begins with a capital
            if self.denied(reading, Mention(place, place + 1, True)):
                continue
            names.append(word)
        return names
