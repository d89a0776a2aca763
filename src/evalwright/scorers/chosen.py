"""Which option of a question a reply chooses: by its letter (`options.py`) or in words that only that option has (`option_texts.py`).

What the reply claims (`text/locate.py`) decides, the last claim of several. Without one each mention of an option has a weight: called right,
opening the reply, a line or bold words of its own, in the concluding sentence, in passing; the heaviest counts, of several the last. A choice is
unsure where another option has a claim nearly as good.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_uppercase
from typing import NamedTuple

from evalwright.scorers.match import read
from evalwright.scorers.option_texts import Texts
from evalwright.scorers.options import CLAIMED, LONE, OPENS, Item, Options, joined, spelled
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.locate import Said, lines, own_part, said
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.run_on import before_next_question

NOT_EXTRACTED = -1
"""The place of the option where none can be read."""
NONE_OF_THEM = "an option that does not exist"
SEVERAL = "more than one option"
NO_OPTION = "no option's letter or text as the answer"
EMPTY = "the answer is empty"
SHORT_REPLY_CHARS = 60
MAX_READ_CHARS = 4_000
MAX_TEXT_MENTIONS = 40

_NONE = re.compile(alternatives("none"), re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[Bb]oth )?(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|、|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_LISTED = re.compile(r"(?m)^[\s(*_-]{0,4}[^\W\d_][).:、]|^[\s(*_-]{0,4}[A-Z]$")
"""A line that begins with a letter of an option."""


class Choice(NamedTuple):
    """The option that a reply chooses, or NOT_EXTRACTED; by which rule, why a reader might argue, and the words that were read as the answer."""

    option: int
    why: str
    unsure: str = ""
    claim: str = ""


def extract(text: str, choices: tuple[str, ...], language: str = "en", question: str = "") -> Choice:
    """The option that a reply chooses, as far as can be read; NOT_EXTRACTED where it names none."""
    return _reader(choices, language, question).choice(spelled(text))


@lru_cache(maxsize=256)
def _reader(choices: tuple[str, ...], language: str, question: str) -> _Reader:
    return _Reader(choices, language, question)


class _Reader:
    """The options of one sample, against which replies are read."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.question = question
        self.count = len(choices)
        self.letters = Options(choices, language, question)
        self.texts = Texts(choices, language, question)
        self.negated = self.letters.cues.denies(read(plain(question[-2000:])).tokens, "")

    def choice(self, text: str) -> Choice:
        """The option that a reply chooses, and how it was found."""
        located = said(self._own_reply(text), self.question, self._holds)
        bare = located.text.strip(" .()\"'*。")
        if not any(map(str.isalnum, bare)):
            return Choice(NOT_EXTRACTED, EMPTY)
        if (whole := self.texts.whole(located.text)) is not None:
            return Choice(whole, "the option's text", claim=located.raw)
        if (outside := self._outside(bare)) is not None:
            return Choice(NOT_EXTRACTED, outside, claim=located.raw)
        chosen = self._claimed(located) if located.rule else None
        return chosen or self._weighed(located)

    def _own_reply(self, text: str) -> str:
        """The reply without a further question that it goes on to ask."""
        return before_next_question(own_part(text, self.question), self.question, self._answered, self.count)

    def _answered(self, beginning: str) -> bool:
        """Whether the beginning of a reply has chosen an option, rather than listed them."""
        options = {item.option for item in self._mentions(plain(beginning))[0]}
        return len(options) == 1 or (len(options) > 1 and self._holds(beginning.strip().split("\n")[0]))

    def _holds(self, text: str) -> bool:
        """Whether a text names an option."""
        return bool(self.letters.items(text)) or any(self.texts.named(text)) or bool(_NONE.search(text))

    def _outside(self, bare: str) -> str | None:
        """Why a short text surely chooses no single option; None where it may."""
        letters = ascii_uppercase[: self.count]
        letter = len(bare) == 1 and bare.isascii() and bare.isupper() and bare not in letters
        if _NONE.fullmatch(bare) or (
            letter and not any(option[:1].upper() == bare for option in self.texts.whole_of)
        ):
            return NONE_OF_THEM
        if _BOTH.fullmatch(bare) and len(set(re.findall("[A-Z]", bare)) & set(letters)) > 1:
            return SEVERAL
        return None

    def _mentions(self, text: str) -> tuple[list[Item], list[Item]]:
        """The options that a text names by letter or words: undenied and denied, in order."""
        text = text[:MAX_READ_CHARS]
        free = self.letters.items(text)
        denied = self.letters.items(text, denied=True)
        spans = sorted(set(self.texts.named(text)), key=lambda span: span[1:])[:MAX_TEXT_MENTIONS]
        taken = [(item.start, item.end) for item in (*free, *denied)]
        spans = [span for span in spans if not any(start <= span[1] < end for start, end in taken)]
        edges = sorted([*taken, *(span[1:] for span in spans)])
        for option, start, end in spans:
            last = max((before_end for _, before_end in edges if before_end <= start), default=0)
            following = min((after for after, _ in edges if after >= end), default=len(text))
            item = Item(option, start, end, LONE, letter=False)
            (denied if self.letters.denied(text, item, last, following) else free).append(item)
        return sorted(free, key=lambda item: item.start), denied

    def _claimed(self, located: Said) -> Choice | None:
        """The option that a claim names; None where it names none."""
        first_line = (lines(located.text) or [located.text])[0]
        for part in dict.fromkeys((first_line, located.text)):
            free, _denied = self._mentions(part)
            if free:
                break
        else:
            return None
        option, unsure = self._of_claim(part, free)
        changed = located.rule.startswith("a change of mind") or last_revision(located.before)
        beside = located.after if changed else f"{located.before}\n{located.after}"
        if any(item.option != option for item in self.letters.items(beside) if item.how == CLAIMED):
            unsure = unsure or "another option is named as the answer too"
        return Choice(option, f"the option {located.rule}", unsure, located.raw)

    def _of_claim(self, text: str, free: Sequence[Item]) -> tuple[int, str]:
        """The option of a claim's mentions, and what speaks against it."""
        letters = [item for item in free if item.letter]
        named = {item.option for item in free if not item.letter}
        if not letters:
            return free[0].option, "" if len(named) == 1 else SEVERAL
        strong = [item for item in letters if item.how >= CLAIMED] or letters
        option = strong[0].option
        offered = any(joined(text, *pair) and pair[0].option != pair[1].option for pair in pairwise(letters))
        if offered or len({item.option for item in strong}) > 1:
            return option, SEVERAL
        if named and option not in named:
            return option, "the letter of one option and the text of another"
        return option, ""

    def _weighed(self, located: Said) -> Choice:
        """The option that a reply without a claim of it names with the most weight."""
        text = located.text
        free, denied = self._mentions(text)
        if self.negated and not any(item.letter for item in free):
            rejected = {item.option for item in denied if not item.letter}
            if len(rejected) == 1:
                return Choice(rejected.pop(), "the option of which it is not true", "a denial")
        if not free:
            return self._left_over({item.option for item in denied})
        weights = self._weights(located, free)
        top = max(weights)
        heaviest = [item for item, weight in zip(free, weights, strict=True) if weight == top]
        option = heaviest[-1].option
        rivals = {item.option for item, weight in zip(free, weights, strict=True) if weight >= min(top, 2)}
        unsure = "" if rivals == {option} and (top >= 3 or len({item.option for item in free}) == 1) else "other options are named too"
        return Choice(option, _HOW[top], unsure)

    def _weights(self, located: Said, free: Sequence[Item]) -> list[int]:
        text = located.text
        parts = lines(text)
        spans = []
        place = 0
        for part in parts:
            start = text.find(part[:40], place)
            start = place if start < 0 else start
            spans.append((start, start + len(part)))
            place = start + 1
        listing = len(_LISTED.findall(text)) > 1
        last_start = spans[-1][0] if spans else 0
        bold = {option for words in located.bold if (option := self._alone(words)) is not None}
        weights = []
        for item in free:
            line_start = text.rfind("\n", 0, item.start) + 1
            line_end = text.find("\n", item.end)
            line = text[line_start : line_end if line_end >= 0 else len(text)]
            if item.letter and item.how == CLAIMED:
                weight = 5
            elif item.letter and item.how == OPENS and not listing:
                weight = 4
            elif not listing and self.texts.whole(line) == item.option:
                weight = 4
            elif len(bold) == 1 and item.option in bold and not listing:
                weight = 3
            elif len(parts) > 1 and item.start >= last_start and not (listing and _LISTED.match(line)):
                weight = 2
            elif spans and item.start < spans[0][1]:
                weight = 1
            else:
                weight = 0
            weights.append(weight)
        return weights

    def _alone(self, words: str) -> int | None:
        """The single option that bold words name."""
        options = {item.option for item in self._mentions(words)[0]}
        return options.pop() if len(options) == 1 else None

    def _left_over(self, out: set[int]) -> Choice:
        """The option that is left where all others are ruled out."""
        left = set(range(self.count)) - out
        if out and len(left) == 1:
            return Choice(left.pop(), "the only option that it does not rule out", "no option is named as the answer")
        return Choice(NOT_EXTRACTED, NO_OPTION, "options are only denied" if out else "")


_HOW = {
    5: "the option that it calls right",
    4: "the option with which it opens, or that stands alone",
    3: "the option in bold",
    2: "the option in its conclusion",
    1: "the option in its first sentence",
    0: "the option that it names last",
}
