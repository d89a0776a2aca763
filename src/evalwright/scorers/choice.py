"""Multiple choice: is the chosen option a right one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in one of its
forms (`options.py`), or an option's text, where the reply says its answer (`text/locate.py`). A reply that may mean several options, or
none, is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from string import ascii_uppercase

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.scorers.match import Reading, mentions, read, targets_of
from evalwright.scorers.names import Names
from evalwright.scorers.options import CLAIMED, LONE, OPENS, Item, Options, joined, spelled
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.locate import MOST_CHARACTERS, Said, lines, said
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import plain

NOT_EXTRACTED = -1
"""The part "predicted" of an answer from which no single option could be read."""

_NONE = re.compile(alternatives("none"), re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[Bb]oth )?(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|、|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_LISTED = re.compile(r"(?m)^[\s(*-]{0,4}([A-Z1-9])\s?[).:、]")
_STRUCK, _TICKED = re.compile("~~"), re.compile("[✓✔✅☑✗✘❌✖]")
_AMONG = "its letter or text among other words"
_NONE_OF_THEM, _SEVERAL = "an option that does not exist", "more than one option"
_MEASURES = ("none", "characters", "bytes", "tokens")


def choice(sample: Sample, answer: Answer, *, normalise: str = "none") -> Score | Undecided:
    """1.0 where the chosen option is in `sample.gold`, else 0.0; labels "correct", "incorrect", "not_attempted".

    normalise: by what each option's log-likelihood is divided before the highest is chosen: "none" keeps the strategy's
    choice; "characters" (Unicode code points of the option), "bytes" (its UTF-8 bytes), "tokens" (as the model counted
    them). Ties go to the first. parts: "predicted" and, where exactly one option is right, "gold" (indices; -1 for an answer that
    chooses none). Undecided where no single option can be read from a text. Raises ScoringError without the log-likelihoods that
    are asked for.
    """
    if normalise not in _MEASURES:
        raise ConfigurationError(
            f"The option 'normalise' of the scorer 'choice' is one of {', '.join(_MEASURES)}, not '{normalise}'."
        )
    if not sample.choices or not sample.gold:
        raise ScoringError(f"The sample '{sample.id}' has no options with a right one among them.")
    if normalise != "none":
        predicted, how = _by_length(sample, answer, normalise), f"log-likelihood per {normalise[:-1]}"
    elif answer.choice is not None:
        predicted, how = answer.choice, "the strategy's choice"
    else:
        language = language_of(sample) or "en"
        reader = _Reader(sample.choices, language, sample.input)
        predicted, how, rest = reader.choice(spelled(answer.text))
        if predicted not in (NOT_EXTRACTED, *sample.gold) and (
            how == _AMONG or any(reader.hints(rest, one) for one in sample.gold)
        ):
            return Undecided(f"option {_letter(predicted)}: {how}, which is not certain")
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    if predicted == NOT_EXTRACTED:
        if how in (_NONE_OF_THEM, _SEVERAL):
            return Score(0.0, "incorrect", how, parts)
        if not answer.text.strip() or declines(answer.text):
            return Score(0.0, "not_attempted", how, parts)
        return Undecided(how)
    right = predicted in sample.gold
    return Score(
        float(right), "correct" if right else "incorrect", f"option {_letter(predicted)}: {how}", parts
    )


def extract(text: str, choices: tuple[str, ...], language: str = "en", question: str = "") -> tuple[int, str]:
    """The index of the one option that a text surely chooses and by which rule; NOT_EXTRACTED and why where there is none."""
    return _Reader(choices, language, question).choice(spelled(text))[:2]


class _Reader:
    """The options of one sample, against which replies are read."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.question, self.letters = question, Options(choices, language, question)
        self.options = targets_of(choices)
        self.names = [Names([option], question, language) for option in self.options]

    def choice(self, text: str) -> tuple[int, str, str]:
        """The option that a reply chooses, how it was found, and what else it says, which may be against it."""
        found = said(text, self.question, self._holds)
        if found.rule == "after 'A:'" and self._whole(found.text) is not None:
            return NOT_EXTRACTED, "'A:' may be the answer or the first option", ""
        bare, rest = found.text.strip(" .()\"'*。"), found.after
        if not any(map(str.isalnum, bare)):
            return NOT_EXTRACTED, "the answer is empty", ""
        if (whole := self._whole(found.text)) is not None:
            index, how = whole, "the option's text"
        elif (odd := self._outside(bare)) is not None:
            return NOT_EXTRACTED, odd, ""
        elif (letter := self._by_letter(found)) is not None:
            certain = found.marked or letter.how >= CLAIMED or len(found.text) <= 30
            index, how = letter.option, f"the letter {found.rule or 'in the reply'}" if certain else _AMONG
            rest = f"{found.text[letter.end :]}\n{rest}"
        else:
            (index, how), rest = self._by_name(found), text
        if index == NOT_EXTRACTED:
            return index, "no single option's letter or text as the answer", ""
        if doubt := self._doubt(text, found, index):
            return NOT_EXTRACTED, doubt, ""
        return index, how, rest

    def hints(self, text: str, option: int) -> bool:
        """Whether a text has an option's letter or a word that only this option has."""
        words = read(plain(text[:MOST_CHARACTERS])).tokens
        return bool(self._own(words, option)) or option in {one.option for one in self.letters.items(text)}

    def _own(self, words: Sequence[str], option: int) -> bool:
        """Whether words have one that only this option has."""
        others = {token for at, one in enumerate(self.options) if at != option for token in one.tokens}
        own = {
            token
            for token in self.options[option].tokens
            if token not in others and (len(token) > 2 or token.isdigit())
        }
        return any(
            word.startswith(token) or (len(word) > 3 and token.startswith(word))
            for word in words
            for token in own
        )

    def _doubt(self, text: str, found: Said, chosen: int) -> str:
        """Why a choice is not certain; "" where it is."""
        if _STRUCK.search(text) or (not found.marked and _TICKED.search(text)):
            return "options are struck out or ticked"
        changed = found.rule.startswith("a change of mind") or last_revision(found.before)
        earlier = [] if changed else [one for one in self.letters.items(found.before) if one.how == CLAIMED]
        later = [
            one
            for one in self.letters.items(found.after)
            if one.how == CLAIMED or not self._own(self._around(found.after, one), one.option)
        ]
        if {one.option for one in earlier + later} - {chosen}:
            return "another option is named as the answer too"
        return ""

    def _holds(self, text: str) -> bool:
        """Whether a text names an option by its letter or its words."""
        return (
            bool(self.letters.items(text))
            or any(mentions(read(text), [one]) for one in self.options)
            or bool(_NONE.search(text))
        )

    def _whole(self, text: str) -> int | None:
        """The option that a text is, and nothing else."""
        found = [index for index, one in enumerate(self.names) if one.is_target(text)]
        return found[0] if len(found) == 1 else None

    def _outside(self, bare: str) -> str | None:
        """Why a short text surely chooses no single option; None where it may."""
        letters = ascii_uppercase[: len(self.options)]
        if any(option.text.casefold() == bare.casefold() for option in self.options):
            return None
        letter = len(bare) == 1 and bare.isascii() and bare.isupper() and bare not in letters
        if _NONE.fullmatch(bare) or (
            letter and not any(option.text[:1].upper() == bare for option in self.options)
        ):
            return _NONE_OF_THEM
        if _BOTH.fullmatch(bare) and len(set(re.findall("[A-Z]", bare)) & set(letters)) > 1:
            return _SEVERAL
        return None

    def _by_letter(self, found: Said) -> Item | None:
        """The letter that a reply gives; an item of no option where letters differ, None where there is none."""
        text = found.text
        items = self.letters.items(text)
        named = [one for one in items if one.how > LONE]
        if not named and (
            len(text) > 60 or not items or not (found.marked or text[items[0].start].isascii())
        ):
            return None
        claimed = [one for one in items if one.how >= CLAIMED]
        if not claimed and (found.marked or len(text) <= 60 or not text[items[-1].end :].strip(" .。)")):
            claimed = named or items
        one = claimed[0] if claimed else items[0]
        paired = any(one in pair and joined(text, *pair) for pair in pairwise(items))
        several = len({each.option for each in (claimed if one.how == CLAIMED else items)}) > 1
        words = self._around(text, one)
        others = any(self._own(words, at) for at in range(len(self.options)) if at != one.option)
        clash = (
            "?" in text[one.end : one.end + 3]
            or self.letters.cues.offers(read(text[one.end : one.end + 12]).tokens[:1], "")
            or (others and not self._own(words, one.option))
        )
        behind = text[one.end :].lstrip(" .):,")
        opens = one.how == OPENS and len(text) > 60 and behind[:1] not in ("\n", "")
        if opens and not behind.casefold().startswith(self.letters.texts[one.option]):
            clash = True
        if not claimed or paired or several or clash:
            return one._replace(option=NOT_EXTRACTED)
        return one

    def _around(self, text: str, one: Item) -> list[str]:
        """The words of the sentence in which a letter stands."""
        head, tail = lines(text[: one.start]), lines(text[one.end :].lstrip(" ).:]、"))
        before = head[-1] if head and not text[: one.start].rstrip(" (*").endswith((".", "\n")) else ""
        return read(f"{before} {tail[0] if tail else ''}").tokens

    def _by_name(self, found: Said) -> tuple[int, str]:
        """The option whose text a reply gives as its answer, and no other's."""
        given = [index for index, one in enumerate(self.names) if one.judge(found).label == "correct"]
        given = [
            one
            for one in given
            if not any(
                one != two and mentions(read(self.options[two].text), [self.options[one]]) for two in given
            )
        ]
        letters = {one.option for one in self.letters.items(found.text)}
        if len(given) != 1 or letters - set(given):
            return NOT_EXTRACTED, ""
        parts = [self.names[given[0]].sentence(part) for part in lines(found.text)]
        bare = found.marked or any(one.verdict.label == "correct" and one.bare for one in parts)
        if not bare and (self.letters.numeric or self._beside(given[0], read(found.text))):
            return NOT_EXTRACTED, ""
        return given[0], "the option's text" if bare else _AMONG

    def _beside(self, chosen: int, reading: Reading) -> bool:
        """Whether another option's text stands in a reply, undenied and not inside the chosen one's."""
        own = mentions(reading, self.names[chosen].targets)
        return any(
            not one.denied(reading, found)
            and not any(two.start <= found.start and found.end <= two.end for two in own)
            for index, one in enumerate(self.names)
            for found in (mentions(reading, one.targets) if index != chosen else ())
        )


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < 26 else str(index)


def _by_length(sample: Sample, answer: Answer, measure: str) -> int:
    values = answer.log_likelihoods
    if len(values) != len(sample.choices):
        raise ScoringError(
            f"To normalise by {measure}, every option needs a log-likelihood; use a strategy that chooses by likelihood."
        )
    if measure == "characters":
        lengths = [len(option) for option in sample.choices]
    elif measure == "bytes":
        lengths = [len(option.encode("utf-8", "surrogatepass")) for option in sample.choices]
    else:
        counted = [response.tokens_scored for response in answer.responses[-len(values) :]]
        if len(counted) != len(values) or None in counted:
            raise ScoringError(
                "To normalise by tokens, the model must say how many tokens it scored; this one does not."
            )
        lengths = [count or 0 for count in counted]
    if not all(lengths):
        raise ScoringError(
            f"An option of the sample '{sample.id}' has no {measure}, so nothing can be divided by them."
        )
    return max(range(len(values)), key=lambda index: values[index] / lengths[index])
