"""Decides which option of a question a reply chooses.

An option is named by its letter (`option_letters.py`) or in words that only that option has
(`option_texts.py`). What the reply claims (`reply.py`) decides, the last claim of several.
Without a claim each mention of an option has a weight: called right, opening the reply, a line
or bold words of its own, in the concluding sentence, in passing; the heaviest counts, the last
of several. A choice is unsure if another option has a claim nearly as good.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_uppercase
from typing import NamedTuple

from evalwright.scorers.answers.further_question import before_next_question
from evalwright.scorers.answers.option_letters import (
    CLAIMED,
    LONE,
    OPENS,
    OptionLetters,
    OptionMention,
    are_offered_together,
    write_plain_letters,
)
from evalwright.scorers.answers.option_texts import OptionTexts, read_option_texts
from evalwright.scorers.answers.reply import (
    ParsedReply,
    parse_reply,
    split_sentences,
    strip_questions,
)
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.folded import fold_text
from evalwright.scorers.text.marks import alternatives, option_numbers, ordinals
from evalwright.scorers.text.normalise import plain

NOT_EXTRACTED = -1
"""The option index of a reply from which no option can be read."""
NONE_OF_THEM = "none of the options, or all"
NO_SUCH_LETTER = "a letter that is no option"
SEVERAL = "more than one option"
NO_OPTION = "no option's letter or text as the answer"
EMPTY = "the answer is empty"
MAX_READ_CHARS = 4_000
MAX_TEXT_MENTIONS = 40
MAX_CLAUSE_CHARS = 200
MAX_LETTER_GAP = 5
"""Most characters between an option's letter and its text."""

_NONE = re.compile(alternatives("none"), re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[Bb]oth )?(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|、|&|和)?"
    r" ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)


class Choice(NamedTuple):
    """The option that a reply chooses, why, and what a reader might argue with.

    `option` is an index, or `NOT_EXTRACTED` if the reply chooses none; `claim` is the text that was
    read as the answer.
    """

    option: int
    why: str
    unsure: str = ""
    claim: str = ""


def extract_option(
    text: str, choices: tuple[str, ...], language: str = "en", question: str = ""
) -> Choice:
    """Read which option a reply chooses.

    Args:
        text: the reply.
        choices: the texts of the options.
        language: code of the question's language.
        question: the question, which may list the options.

    Returns:
        The choice; its option is `NOT_EXTRACTED` if the reply names none.
    """
    return _options_of(choices, language, question).choose(write_plain_letters(text))


@lru_cache(maxsize=256)
def _options_of(choices: tuple[str, ...], language: str, question: str) -> OptionReader:
    return OptionReader(choices, language, question)


class OptionReader:
    """Reads which of a sample's options a reply chooses."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.question = question
        self.count = len(choices)
        texts = read_option_texts(
            tuple(map(write_plain_letters, choices)), write_plain_letters(question)
        )
        self.letters = OptionLetters(texts, language, question)
        self.texts = OptionTexts(texts, language, question)
        plain_question = plain(question[-2000:])
        self.negated = self.letters.cues.denies(
            fold_text(plain_question).tokens, plain_question
        )

    def choose(self, text: str) -> Choice:
        """Choose the option that a reply names as its answer."""
        own_reply = self.letters.with_digits(self._strip_further_question(text))
        located = parse_reply(own_reply, self.question, self._names_option)
        stripped = located.text.strip(" .()\"'*。")
        if not any(map(str.isalnum, stripped)):
            return Choice(NOT_EXTRACTED, EMPTY)
        # "A" means option A, even if another option's text is "A".
        is_letter = (
            len(stripped) == 1
            and stripped.isascii()
            and 0 <= ord(stripped.upper()) - ord("A") < self.count
        )
        option = None if is_letter else self.texts.option_equal_to(located.text)
        if option is not None:
            return Choice(option, "the option's text", claim=located.as_written)
        if (outside := self._reason_for_no_option(stripped)) is not None:
            return Choice(NOT_EXTRACTED, outside, claim=located.as_written)
        chosen = (
            self._choose_claimed(located) if located.rule else None
        ) or self._choose_heaviest(located)
        if not chosen.unsure and self.texts.place_or_text(located.text):
            return chosen._replace(
                unsure="a number that is one option's place and another's text"
            )
        return chosen

    def _strip_further_question(self, text: str) -> str:
        """Return the reply up to a further question that it asks itself."""
        return before_next_question(
            strip_questions(text, self.question),
            self.question,
            self._has_chosen,
            self.count,
        )

    def _has_chosen(self, beginning: str) -> bool:
        """Return whether a reply has chosen an option by now, rather than listed several."""
        options = {
            mention.option for mention in self._find_mentions(plain(beginning))[0]
        }
        return len(options) == 1 or (
            len(options) > 1 and self._names_option(beginning.strip().split("\n")[0])
        )

    def _names_option(self, text: str) -> bool:
        """Return whether a text names an option."""
        return (
            bool(self.letters.find(text))
            or any(self.texts.find_named(text))
            or bool(_NONE.search(text))
        )

    def _reason_for_no_option(self, stripped: str) -> str | None:
        """Return why a short text chooses no single option; None if it may choose one."""
        letters = ascii_uppercase[: self.count]
        letter = (
            len(stripped) == 1
            and stripped.isascii()
            and stripped.isupper()
            and stripped not in letters
        )
        if _NONE.fullmatch(stripped):
            return NONE_OF_THEM
        if letter and not any(
            option[:1].upper() == stripped for option in self.texts.folded_options
        ):
            return NO_SUCH_LETTER
        if (
            _BOTH.fullmatch(stripped)
            and len(set(re.findall("[A-Z]", stripped)) & set(letters)) > 1
        ):
            return SEVERAL
        return None

    def _find_mentions(
        self, text: str
    ) -> tuple[list[OptionMention], list[OptionMention]]:
        """Find the options that a text names by letter or words.

        Returns:
            Mentions that are not denied, and those that are; both in order.
        """
        text = text[:MAX_READ_CHARS]
        free = self.letters.find(text)
        denied = self.letters.find(text, denied=True)
        spans_of_letters = [
            (mention.start, mention.end) for mention in (*free, *denied)
        ]
        spans: list[tuple[int, int, int]] = []
        for span in sorted(
            set(self.texts.find_named(text)), key=lambda span: (span[1], -span[2])
        )[:MAX_TEXT_MENTIONS]:
            inside = any(
                start <= span[1] < end
                for start, end in (
                    *spans_of_letters,
                    *(earlier[1:] for earlier in spans),
                )
            )
            if not inside:
                spans.append(span)
        edges = sorted([*spans_of_letters, *(span[1:] for span in spans)])
        for option, start, end in spans:
            last = max(
                (before_end for _, before_end in edges if before_end <= start),
                default=0,
            )
            following = min(
                (after for after, _ in edges if after >= end), default=len(text)
            )
            mention = OptionMention(option, start, end, LONE, letter=False)
            (
                denied
                if self.letters.is_denied(text, mention, last, following)
                else free
            ).append(mention)
        # "C) Earth is wrong" denies the letter together with the text after it.
        before = {
            (mention.option, mention.start) for mention in denied if not mention.letter
        }
        with_text = [
            mention
            for mention in free
            if mention.letter
            and any(
                (mention.option, mention.end + gap) in before
                for gap in range(1, MAX_LETTER_GAP)
            )
        ]
        free = [mention for mention in free if mention not in with_text]
        return sorted(free, key=lambda mention: mention.start), [*denied, *with_text]

    def _choose_claimed(self, located: ParsedReply) -> Choice | None:
        """Return the option that a claim names; None if it names none."""
        first_line = (split_sentences(located.text) or [located.text])[0]
        option = NOT_EXTRACTED
        unsure = ""
        for text in dict.fromkeys((first_line, located.text)):
            free, _denied = self._find_mentions(text)
            if free:
                option, unsure = self._choose_within_claim(text, free)
            if option != NOT_EXTRACTED:
                break
        if option == NOT_EXTRACTED and not unsure:
            return None
        changed = located.rule.startswith("a change of mind") or last_revision(
            located.before
        )
        beside = located.after if changed else f"{located.before}\n{located.after}"
        if any(
            mention.option != option
            for mention in self.letters.find(beside)
            if mention.form == CLAIMED
        ):
            unsure = unsure or "another option is named as the answer too"
        how = f"the option {located.rule}" if option != NOT_EXTRACTED else SEVERAL
        return Choice(option, how, unsure, located.as_written)

    def _choose_within_claim(
        self, text: str, free: Sequence[OptionMention]
    ) -> tuple[int, str]:
        """Choose the option among the mentions of a claim, and say what speaks against it."""
        letters = [mention for mention in free if mention.letter]
        named = {mention.option for mention in free if not mention.letter}
        if not letters:
            offered = self._find_offered_together(text, free)
            single = [mention for mention in free if mention.start not in offered]
            option = single[0].option if single else NOT_EXTRACTED
            return option, "" if len(named) == 1 else SEVERAL
        offered = self._find_offered_together(text, letters)
        single = [mention for mention in letters if mention.start not in offered]
        if not single:
            return (
                (named.pop(), SEVERAL) if len(named) == 1 else (NOT_EXTRACTED, SEVERAL)
            )
        strong = [mention for mention in single if mention.form >= CLAIMED] or single
        option = strong[0].option
        if offered or len({mention.option for mention in strong}) > 1:
            return option, SEVERAL
        if named and option not in named:
            return option, "the letter of one option and the text of another"
        return option, ""

    def _find_offered_together(
        self, text: str, letters: Sequence[OptionMention]
    ) -> set[int]:
        """Return the positions of mentions that are offered together ("A or B")."""
        return {
            mention.start
            for pair in pairwise(letters)
            if pair[0].option != pair[1].option
            and pair[0].letter is pair[1].letter
            and are_offered_together(text, *pair)
            and not (
                pair[1].form == CLAIMED
                and text[pair[0].end : pair[1].start].strip() == ","
            )
            for mention in pair
        }

    def _choose_heaviest(self, located: ParsedReply) -> Choice:
        """Choose the option with the heaviest mention, for a reply without a claim."""
        text = located.text
        free, denied = self._find_mentions(text)
        rejected = {mention.option for mention in denied}
        if self._answers_by_denial(free, rejected):
            return Choice(
                rejected.pop(), "the option of which something is not true", "a denial"
            )
        if not free:
            return self._choose_left_over(text, rejected)

        mentioned = {mention.option for mention in free}
        offered = self._find_offered_together(text, free)
        left = set(range(self.count)) - (rejected or mentioned)
        n_letters_beside = sum(map(str.isalpha, text)) - sum(
            mention.end - mention.start for mention in free
        )
        is_about_them = len(left) == 1 and n_letters_beside >= SENTENCE_LETTERS
        if len(offered) == len(free) and not is_about_them:
            return Choice(NOT_EXTRACTED, SEVERAL, SEVERAL)
        listing = self._find_listing(text, free)
        if len(listing) == len(free) and len(mentioned) == self.count:
            return Choice(NOT_EXTRACTED, NO_OPTION, "it goes through the options")

        second = _find_named_second(text, free)
        weights = self._weigh_mentions(located, free, listing)
        for index, mention in enumerate(free):
            if mention.start in second:
                weights[index] = BEHIND
            elif mention.start in offered:
                weights[index] = PASSING
        is_none_likely = max(weights) <= LAST and not second
        if is_none_likely and len(left) == 1 and self.count > 2:
            return Choice(
                left.pop(),
                "the only option that the answer does not mention",
                "no option is named as the answer",
            )
        return self._choose_by_weight(text, free, weights)

    def _answers_by_denial(
        self, free: Sequence[OptionMention], rejected: set[int]
    ) -> bool:
        """Return whether a reply answers "which is not so?" by denying one option."""
        letters = {mention.option for mention in free if mention.letter} - rejected
        is_claimed = any(mention.form == CLAIMED for mention in free)
        return (
            self.negated and len(rejected) == 1 and len(letters) != 1 and not is_claimed
        )

    def _choose_by_weight(
        self, text: str, free: Sequence[OptionMention], weights: Sequence[int]
    ) -> Choice:
        """Choose the heaviest mention, the last of several, and say what speaks against it."""
        top = max(weights)
        weighed = list(zip(free, weights, strict=True))
        heaviest = [mention for mention, weight in weighed if weight == top]
        # Of several answers the first counts, of several conclusions the last.
        chosen = heaviest[0] if top == ECHOING else heaviest[-1]
        option = chosen.option
        line = _line_of(text, chosen)
        beside = {
            mention.option
            for mention in free
            if not mention.letter and _line_of(text, mention) == line
        }
        if chosen.letter and top == ALONE and beside and option not in beside:
            return Choice(
                option, _HOW[top], "the letter of one option and the text of another"
            )

        least = min(top, SECOND)
        rivals = {mention.option for mention, weight in weighed if weight >= least}
        is_only_one = len({mention.option for mention in free}) == 1
        is_brief = len(text) <= BRIEF_CHARS or top >= LAST
        if rivals == {option} and (top >= STRONG or (is_only_one and is_brief)):
            unsure = ""
        elif is_only_one:
            unsure = "it is named, but not as the answer"
        else:
            unsure = "other options are named too"
        return Choice(option, _HOW[top], unsure)

    def _weigh_mentions(
        self, located: ParsedReply, free: Sequence[OptionMention], listing: set[int]
    ) -> list[int]:
        """Weigh how strongly each mention speaks for its option."""
        text = located.text
        sentence_spans = _place_sentences(text, split_sentences(text))
        bold = {
            option
            for words in located.bold
            if (option := self._single_option_in(words)) is not None
        }
        concluding = len(sentence_spans) > 1 and bool(located.conclusion)
        echoes = {
            mention.start: self.texts.count_echoed_words(_clause_of(text, mention))
            for mention in free
            if not mention.letter and not self.texts.values
        }
        echoes = dict.fromkeys((mention.start for mention in free), 0) | echoes
        most = max(echoes.values())
        weights = []
        for mention in free:
            line = _line_of(text, mention)
            if mention.letter and mention.form == CLAIMED:
                weight = CALLED_RIGHT
            elif mention.start in listing:
                weight = PASSING
            elif (
                self._stands_alone(line, mention)
                or (mention.letter and mention.form == OPENS)
                or (
                    not mention.letter
                    and sentence_spans
                    and self._opens_reply(text, mention, sentence_spans[0], free)
                )
            ):
                weight = ALONE
            elif bold == {mention.option}:
                weight = BOLD
            elif concluding and mention.start >= sentence_spans[-1][0]:
                weight = CONCLUDING
            elif echoes[mention.start] and echoes[mention.start] == most:
                weight = ECHOING
            elif len(sentence_spans) > 1 and mention.start >= sentence_spans[-1][0]:
                weight = LAST
            elif sentence_spans and mention.start < sentence_spans[0][1]:
                weight = FIRST
            else:
                weight = PASSING
            weights.append(weight)
        return weights

    def _stands_alone(self, line: str, mention: OptionMention) -> bool:
        """Return whether a line is only the letter or text of an option."""
        letters = "".join(filter(str.isalnum, line))
        return self.texts.option_equal_to(line) == mention.option or (
            mention.letter and len(letters) <= max(2, mention.end - mention.start)
        )

    def _opens_reply(
        self,
        text: str,
        mention: OptionMention,
        first: tuple[int, int],
        free: Sequence[OptionMention],
    ) -> bool:
        """Return whether a reply opens with an option's text, the only one in that sentence."""
        start, end = first
        others = any(
            near_mention.option != mention.option and near_mention.start < end
            for near_mention in free
        )
        return (
            not others
            and mention.start - start <= 2
            and 2 * (mention.end - mention.start) >= end - start - ENDING_CHARS
        )

    def _find_listing(self, text: str, free: Sequence[OptionMention]) -> set[int]:
        """Return the positions of mentions in a list of the options, each opening its line."""
        starts: dict[int, int] = {}
        for mention in free:
            line = _line_of(text, mention)
            begins = not any(
                map(
                    str.isalnum,
                    text[text.rfind("\n", 0, mention.start) + 1 : mention.start],
                )
            )
            if begins and not self._stands_alone(line, mention):
                starts.setdefault(mention.option, mention.start)
        if len(starts) < 2 or (0 not in starts and len(starts) < 3):
            return set()
        lines_of = {text.rfind("\n", 0, start) for start in starts.values()}
        return {
            mention.start
            for mention in free
            if text.rfind("\n", 0, mention.start) in lines_of
        }

    def _single_option_in(self, words: str) -> int | None:
        """Return the only option that some words name; None for none or several."""
        options = {mention.option for mention in self._find_mentions(words)[0]}
        return options.pop() if len(options) == 1 else None

    def _choose_left_over(self, text: str, ruled_out: set[int]) -> Choice:
        """Choose the only option that is not ruled out, or one named by its position."""
        left = set(range(self.count)) - ruled_out
        if ruled_out and len(left) == 1:
            return Choice(
                left.pop(),
                "the only option that it does not rule out",
                "no option is named as the answer",
            )
        places = {
            int(match.lastgroup[-1]) - 1
            for pattern in (ordinals(), option_numbers())
            for match in pattern.finditer(text[:MAX_READ_CHARS])
            if match.lastgroup and not self._is_place_denied(text, match.start())
        }
        if len(places) == 1 and max(places) < self.count:
            return Choice(
                places.pop(), "the option by its place", "an option's place in words"
            )
        return Choice(
            NOT_EXTRACTED, NO_OPTION, "options are only denied" if ruled_out else ""
        )

    def _is_place_denied(self, text: str, start: int) -> bool:
        """Return whether a position in words is denied: "not the third option"."""
        before = _CLAUSE.split(text[max(0, start - 30) : start])[-1]
        return self.letters.cues.denies(fold_text(before).tokens[-3:], before[-6:])


BEHIND, PASSING, FIRST, LAST, ECHOING, CONCLUDING, BOLD, ALONE, CALLED_RIGHT = range(
    -1, 8
)
"""The weights of a mention, in ascending order."""
SECOND = LAST
"""The least weight at which another option makes a choice unsure."""
STRONG = BOLD
"""The least weight at which a choice is certain although other options are named."""
BRIEF_CHARS = 120
"""A reply at most this long that names one option gives it as its answer."""
SENTENCE_LETTERS = 10
"""With at least this many letters beside the options, a list of them is a sentence about them.

Such a sentence does not choose several options at once.
"""
ENDING_CHARS = 8
"""Most characters of a sentence beside an option and a word such as "です"."""
_HOW = {
    CALLED_RIGHT: "the option that it calls right",
    ALONE: "the option with which it opens, or that stands alone",
    BOLD: "the option in bold",
    CONCLUDING: "the option in its conclusion",
    ECHOING: "the option in the words of the question",
    LAST: "the option in its last sentence",
    FIRST: "the option in its first sentence",
    BEHIND: "the option that it names last",
    PASSING: "the option that it names last",
}


_FOLLOWED = re.compile(
    r"(?<!\w)(?:followed (?:\w+ )?by|gefolgt vo[nm]|suivie?s?"
    r" (?:de|du|des|par|d['’])|seguid[oa]s? (?:de|del|por|pel[oa])|seguit[oaie]"
    r" d\w{1,4}|gevolgd door|diikuti (?:oleh|dengan)?|tiếp theo là|theo sau là)"
    r"|其次是|然后是|次いで|続いて|그 ?다음으로|그 ?다음은|뒤를 이어"
    r"(?!\w)",
    re.IGNORECASE,
)
"""Words after which the second and third of an order are named."""
_SENTENCE_BREAK = re.compile(r"[.!?](?:\s|$)|[;\n。！？]")


def _find_named_second(text: str, free: Sequence[OptionMention]) -> set[int]:
    """Return the positions of options that come second: "Mars (C), followed by Jupiter (D)"."""
    second: set[int] = set()
    for match in _FOLLOWED.finditer(text):
        ending = _SENTENCE_BREAK.search(text, match.end())
        until = ending.start() if ending else len(text)
        begins = max(
            (
                before.end()
                for before in _SENTENCE_BREAK.finditer(text, 0, match.start())
            ),
            default=0,
        )
        if any(begins <= mention.start < match.start() for mention in free):
            second |= {
                mention.start
                for mention in free
                if match.end() <= mention.start < until
            }
    return second


def _line_of(text: str, mention: OptionMention) -> str:
    start = text.rfind("\n", 0, mention.start) + 1
    end = text.find("\n", mention.end)
    return text[start : end if end >= 0 else len(text)]


_CLAUSE = re.compile(
    r"[.,;:!?。，、；：！？\n]|(?<=[\u0e00-\u0eff]) |"
    r" (?:but|mais|pero|aber|ma|mas|но|tetapi|nhưng) "
)


def _clause_of(text: str, mention: OptionMention) -> str:
    """Return the clause in which an option is named."""
    start = max(0, mention.start - MAX_CLAUSE_CHARS)
    before = _CLAUSE.split(text[start : mention.start])[-1]
    behind = _CLAUSE.split(
        text[mention.end : mention.end + MAX_CLAUSE_CHARS], maxsplit=1
    )[0]
    return f"{before}{text[mention.start : mention.end]}{behind}"


def _place_sentences(text: str, sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Find the spans of sentences in their text."""
    spans = []
    searched_to = 0
    for sentence in sentences:
        start = max(text.find(sentence[:40], searched_to), searched_to)
        spans.append((start, start + len(sentence)))
        searched_to = start + 1
    return spans
