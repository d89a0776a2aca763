"""Which option of a question a reply chooses: by its letter (`options.py`) or by words that only that option has.

The options are a closed set, so a word that one of them alone has names it. What a reply claims (`text/locate.py`) decides, the last claim of
several; without one the single option that it names, its opening, its conclusion, or the one that is left where it rules out all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from string import ascii_uppercase

from evalwright.scorers.match import FUNCTION, read
from evalwright.scorers.number import find_numbers
from evalwright.scorers.options import CLAIMED, LONE, OPENS, Item, Options, joined, spelled
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.locate import Said, lines, said
from evalwright.scorers.text.marks import SPACELESS, alternatives
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold

NOT_EXTRACTED = -1
"""The place of the option where no single one can be read."""
NONE_OF_THEM, SEVERAL = "an option that does not exist", "more than one option"
WEAK = "the only option among other words"
NO_SINGLE = "no single option's letter or text as the answer"
_TEXT = "the option's text"
_NONE = re.compile(alternatives("none"), re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[Bb]oth )?(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|、|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_MARKED = re.compile("~~|[✓✔✅☑✗✘❌✖]")
_LISTED = re.compile(r"(?m)^[\s(*_-]{0,4}[^\W\d_][).:、]|^[\s(*_-]{0,4}[A-Z]$")
"""A line that begins with a letter of an option."""
_WORD = re.compile(rf"(?:(?![{SPACELESS}])[^\W_])+|[{SPACELESS}]+")
_SHORT, _MOST_CHARACTERS, _MOST_MENTIONS, _MOST_PIECES, _LONGEST_WORD = 60, 4000, 40, 1000, 400


def extract(text: str, choices: tuple[str, ...], language: str = "en", question: str = "") -> tuple[int, str]:
    """The index of the one option that a text surely chooses and by which rule; NOT_EXTRACTED and why where there is none."""
    return _Reader(choices, language, question).choice(spelled(text))


class Texts:
    """The words of the options: which each has alone, and the numbers where each is one."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.language = language
        self.whole_of = [_folded(one) for one in choices]
        pieces = [_pieces(one) for one in self.whole_of]
        asked = _pieces(_stem(_folded(plain(question)), self.whole_of))
        self._holders: dict[str, set[int]] = {}
        for place, mine in enumerate(pieces):
            for piece in mine:
                self._holders.setdefault(piece, set()).add(place)
        self._joined = [piece for piece in self._holders if _within_words(piece)]
        self.own = [
            {
                piece
                for piece in mine
                if not any(one in piece for one in asked) and not self._elsewhere(piece, place)
            }
            for place, mine in enumerate(pieces)
        ]
        numbers = [find_numbers(plain(one), language) for one in choices]
        for place, one in enumerate(choices):
            if any(map(str.isdigit, one)) and not any(
                any(map(str.isdigit, piece)) for piece in self.own[place]
            ):
                self.own[place] = set()
        values = [one[0].value if len(one) == 1 else None for one in numbers]
        self.values = values if None not in values and len(set(values)) == len(values) else []

    def _elsewhere(self, piece: str, place: int) -> bool:
        """Whether another option than that at a place has a word, or one that is the same with an ending."""
        if len(self._holders[piece]) > 1:
            return True
        if not _within_words(piece):
            return False
        if len(self._joined) > _MOST_PIECES:
            return True
        near = (
            one for one in self._joined if (one in piece or piece in one) and self._holders[one] != {place}
        )
        return any(_same(one, piece) or _same(piece, one) for one in near)

    def whole(self, text: str) -> int | None:
        """The option that a text is, and nothing else."""
        bare = _folded(text)
        found = [place for place, one in enumerate(self.whole_of) if one and one == bare]
        return found[0] if len(found) == 1 else None

    def named(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The options whose words stand in a text, with their places."""
        text = text[:_MOST_CHARACTERS]
        folded = fold(text.casefold())
        if len(folded) != len(text):
            folded = text.casefold() if len(text.casefold()) == len(text) else text
        if self.values:
            for number in find_numbers(text, self.language):
                if number.value in self.values:
                    yield self.values.index(number.value), number.start, number.end
            return
        for place in sorted(range(len(self.own)), key=lambda one: -len(self.whole_of[one])):
            whole = re.escape(self.whole_of[place])
            if whole and (match := re.search(rf"(?<!\w){whole}(?!\w)", folded)) is not None:
                yield place, *match.span()
                folded = folded[: match.start()] + " " * len(match.group()) + folded[match.end() :]
        for word in _WORD.finditer(folded):
            for place, own in enumerate(self.own):
                if any(_same(word.group(), one) for one in own):
                    yield place, *word.span()


def _stem(question: str, options: list[str]) -> str:
    """A question without the options that it lists at its end."""
    for option in sorted(options, key=len, reverse=True):
        before, found, after = f" {question} ".rpartition(f" {option} ")
        if not found:
            return question
        question = f"{before} {after}"
    return question


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(fold(plain(text).casefold())))


def _pieces(text: str) -> set[str]:
    """The words of a folded text, and in scripts without spaces all runs of half a word's length."""
    out = set()
    for word in text.split():
        if re.match(f"[{SPACELESS}]", word):
            if len(word) > _LONGEST_WORD:
                continue
            size = min(len(word), max(2 if word > "\u2fff" else 4, -(-len(word) // 2)))
            out |= {word[at : at + size] for at in range(len(word) - size + 1)}
        elif word not in FUNCTION and (len(word) > 2 or word.isdigit() or not word.isascii()):
            out.add(word)
    return out


def _within_words(own: str) -> bool:
    """Whether a word of an option can be part of a longer one: in scripts without spaces, and in Korean before endings."""
    return "가" <= own[0] <= "힣" or re.match(f"[{SPACELESS}]", own) is not None


def _same(word: str, own: str) -> bool:
    """Whether a word of a reply is an option's, with an ending or without."""
    if re.match(f"[{SPACELESS}]", own):
        return own in word
    return word.startswith(own) if "가" <= own[0] <= "힣" else word == own


class _Reader:
    """The options of one sample, against which replies are read."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.question, self.count = question, len(choices)
        self.letters, self.texts = Options(choices, language, question), Texts(choices, language, question)
        self._asked = read(plain(question[:2000])).tokens

    def choice(self, text: str) -> tuple[int, str]:
        """The option that a reply chooses, and how it was found."""
        found = said(text, self.question, self._holds)
        bare = found.text.strip(" .()\"'*。")
        if not any(map(str.isalnum, bare)):
            return NOT_EXTRACTED, "the answer is empty"
        if (whole := self.texts.whole(found.text)) is not None:
            return whole, _TEXT
        if (odd := self._outside(bare)) is not None:
            return NOT_EXTRACTED, odd
        if "~~" in text or (not found.marked and _MARKED.search(text)):
            return NOT_EXTRACTED, "options are struck out or ticked"
        return self._claimed(found) if found.rule else self._free(found)

    def _holds(self, text: str) -> bool:
        """Whether a text names an option."""
        return bool(self.letters.items(text)) or any(self.texts.named(text)) or bool(_NONE.search(text))

    def _outside(self, bare: str) -> str | None:
        """Why a short text surely chooses no single option; None where it may."""
        letters = ascii_uppercase[: self.count]
        letter = len(bare) == 1 and bare.isascii() and bare.isupper() and bare not in letters
        if _NONE.fullmatch(bare) or (
            letter and not any(one[:1].upper() == bare for one in self.texts.whole_of)
        ):
            return NONE_OF_THEM
        if _BOTH.fullmatch(bare) and len(set(re.findall("[A-Z]", bare)) & set(letters)) > 1:
            return SEVERAL
        return None

    def _mentions(self, text: str) -> tuple[list[Item], list[Item]]:
        """The options that a text names by letter or words: undenied and denied, in order."""
        text = text[:_MOST_CHARACTERS]
        free = self.letters.items(text)
        denied = self.letters.items(text, denied=True)
        spans = sorted(set(self.texts.named(text)), key=lambda one: one[1:])[:_MOST_MENTIONS]
        taken = [(one.start, one.end) for one in (*free, *denied)]
        spans = [one for one in spans if not any(a <= one[1] < b for a, b in taken)]
        for at, (place, start, end) in enumerate(spans):
            last = max((b for _, b in [*((s, e) for _, s, e in spans[:at]), *taken] if b <= start), default=0)
            following = min(
                (a for a, _ in [*((s, e) for _, s, e in spans[at + 1 :]), *taken] if a >= end),
                default=len(text),
            )
            item = Item(place, start, end, LONE, letter=False)
            (denied if self.letters.denied(text, item, last, following) else free).append(item)
        return sorted(free, key=lambda one: one.start), denied

    def _claimed(self, found: Said) -> tuple[int, str]:
        """The option that a claim names, where nothing beside it claims another."""
        for part in dict.fromkeys(((lines(found.text) or [found.text])[0], found.text)):
            free, _denied = self._mentions(part)
            index = self._one(part, free, claimed=True)
            if index != NOT_EXTRACTED:
                break
            if free:
                return NOT_EXTRACTED, NO_SINGLE
        if index == NOT_EXTRACTED:
            return NOT_EXTRACTED, NO_SINGLE
        changed = found.rule.startswith("a change of mind") or last_revision(found.before)
        beside = f"{found.after}" if changed else f"{found.before}\n{found.after}"
        items = self.letters.items(found.text)
        offered = any(
            joined(found.text, *pair) and pair[0].option != pair[1].option for pair in pairwise(items)
        )
        if offered or any(one.option != index for one in self.letters.items(beside) if one.how == CLAIMED):
            return NOT_EXTRACTED, "another option is named as the answer too"
        return index, f"the option {found.rule}"

    def _one(self, text: str, free: list[Item], *, claimed: bool = False) -> int:
        """The single option that a stretch of text gives, by a letter or in words that agree with each other."""
        letters = [one for one in free if one.letter and (one.how > LONE or claimed or len(text) <= _SHORT)]
        strong = [one for one in letters if one.how >= CLAIMED] or letters if claimed else letters
        given, named = {one.option for one in strong}, {one.option for one in free if not one.letter}
        if any(joined(text, *pair) for pair in pairwise(one for one in free if one.letter)):
            return NOT_EXTRACTED
        if len(given) == 1:
            return (
                given.pop() if not named or (given & named if claimed else given == named) else NOT_EXTRACTED
            )
        lone = {one.option for one in free if one.letter}
        return named.pop() if len(named) == 1 and not given and lone <= named else NOT_EXTRACTED

    def _free(self, found: Said) -> tuple[int, str]:
        """The option that a reply without a claim names."""
        text, parts = found.text, lines(found.text)
        free, denied = self._mentions(text)
        named, out = {one.option for one in free}, {one.option for one in denied}
        if "?" in text or (
            self.letters.cues.offers(read(text).tokens, text) and len(named | out) < self.count - 1
        ):
            return NOT_EXTRACTED, "an alternative or a question"
        if out and not any(one.letter for one in free) and self.letters.cues.denies(self._asked, ""):
            return (
                NOT_EXTRACTED,
                "options are denied, and the question asks for one of which something is not true",
            )
        index = self._one(text, free)
        if index != NOT_EXTRACTED and index not in out:
            alone = (
                len(text) <= _SHORT
                and len(parts) == 1
                and any(one.how != LONE or not one.letter for one in free)
            )
            return index, "the only option that it names" if alone else WEAK
        if len(parts) > 1 and len(_LISTED.findall(text)) < 2:
            for part, how in (
                (found.last, "the option in its conclusion"),
                (parts[0], "the option with which it opens"),
            ):
                some, _ = self._mentions(part)
                index = self._one(part, some)
                if index == NOT_EXTRACTED or (
                    how[-1] == "s" and not (some[0].how == OPENS or self.texts.whole(part) is not None)
                ):
                    continue
                rest = [one for one in self._mentions(text.replace(part, ""))[0] if one.how >= CLAIMED]
                if not any(one.option != index for one in rest):
                    return index, how
        once = len(free) + len(denied) == len(named | out)
        if (
            self.count > 3
            and once
            and len(named | out) == self.count - 1
            and not any(one.how >= CLAIMED for one in free)
            and not self.texts.values
        ):
            return (set(range(self.count)) - named - out).pop(), WEAK
        return NOT_EXTRACTED, NO_SINGLE
