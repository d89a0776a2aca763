"""Multiple choice: is the chosen option a right one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in one of its
forms (`options.py`), or an option's text, where the reply says its answer (`text/locate.py`). A reply that may mean several options, or
none, is undecided.
"""

from __future__ import annotations

import re
from itertools import pairwise
from string import ascii_uppercase

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.scorers.match import Reading, mentions, read, targets_of
from evalwright.scorers.names import Names
from evalwright.scorers.options import CLAIMED, LONE, OPENS, Item, Options, joined, spelled
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.locate import Said, lines, said
from evalwright.scorers.text.marks import alternatives

NOT_EXTRACTED = -1
"""The part "predicted" of an answer from which no single option could be read."""

_NONE = re.compile(alternatives("none"), re.IGNORECASE)
_BOTH = re.compile(
    r"(?:[Bb]oth )?(?:[A-Z](?:,? ?(?:and|und|et|y|e|,|、|&|和)? ?|$)){2,10}(?:都对|both)?(?: are (?:both )?correct)?"
)
_LISTED = re.compile(r"(?m)^[\s(*-]{0,4}([A-Z1-9])\s?[).:、]")
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
        language = str(sample.metadata.get("language") or "en")
        predicted, how = extract(answer.text, sample.choices, language, sample.input)
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
    return _Reader(choices, language, question).choice(spelled(text))


class _Reader:
    """The options of one sample, against which replies are read."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.question, self.letters = question, Options(choices, language, question)
        self.options = targets_of(choices)
        self.names = [Names([option], question, language) for option in self.options]

    def choice(self, text: str) -> tuple[int, str]:
        """The option that a reply chooses, and how it was found."""
        found = said(text, self.question, self._holds)
        if found.rule == "after 'A:'" and self._whole(found.text) is not None:
            return NOT_EXTRACTED, "'A:' may be the answer or the first option"
        region = found.text
        bare = region.strip(" .()\"'*。")
        if not any(map(str.isalnum, bare)):
            return NOT_EXTRACTED, "the answer is empty"
        if (whole := self._whole(region)) is not None:
            return whole, "the option's text"
        if (odd := self._outside(bare)) is not None:
            return NOT_EXTRACTED, odd
        listed = len(set(_LISTED.findall(region))) > 1 and not found.marked
        parts = lines(region)
        if found.marked:
            tries = [(region, f"the letter {found.rule}")]
        else:
            last = found.last or ("" if _LISTED.match(parts[-1]) else parts[-1])
            claims = any(one.how == CLAIMED for one in self.letters.items(region))
            reply = ("" if listed and not claims else region, "the letter in the reply")
            tries = [(last, "the letter in the conclusion"), reply]
            tries = tries[::-1] if claims and not found.last else tries
        for part, how in tries:
            if (index := self._by_letter(part)) is not None:
                if (
                    index >= 0
                    and found.marked
                    and {one.option for one in self.letters.items(found.after) if one.how == CLAIMED}
                    - {index}
                ):
                    return NOT_EXTRACTED, "another option is called right after the answer"
                return (
                    (index, how) if index >= 0 else (index, "letters that differ, or another option's text")
                )
        if listed:
            return NOT_EXTRACTED, "it lists several options"
        return self._by_name(found, region)

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

    def _by_letter(self, text: str) -> int | None:
        """The option whose letter a text gives; NOT_EXTRACTED where letters differ, None where there is none."""
        items = self.letters.items(text)
        named = [one for one in items if one.how > LONE]
        if not named:
            return None
        if len({one.option for one in items}) == 1:
            asked = "?" in text[named[0].end : named[0].end + 3]
            return NOT_EXTRACTED if asked or self._clashes(text, named[0]) else named[0].option
        pairs = [
            (one, two) for one, two in pairwise(items) if one.option != two.option and joined(text, one, two)
        ]
        claimed = {
            one.option for one in items if one.how == CLAIMED and all(one not in pair for pair in pairs)
        }
        opens = (
            items[0].how == OPENS
            and all(items[0] not in pair for pair in pairs)
            and last_revision(text) is None
        )
        found = claimed | {items[0].option} if opens else claimed
        if len(claimed) == 1 or opens:
            unclear = len(found) > 1 or (opens and self._clashes(text, items[0]))
            return NOT_EXTRACTED if unclear else found.pop()
        end = self.letters.items(lines(text)[-1]) if len(lines(text)) > 1 and not pairs else []
        last = {one.option for one in end if one.how > LONE}
        return last.pop() if len(last) == 1 and not claimed else NOT_EXTRACTED

    def _clashes(self, text: str, one: Item) -> bool:
        """Whether another option's text follows a letter directly, and not its own."""
        following = next((item.start for item in self.letters.items(text) if item.start > one.end), len(text))
        rest = read(next(iter(lines(text[one.end : following].lstrip(" ).:]、"))), ""))
        own = mentions(rest, [self.options[one.option]])
        return (
            len(rest.tokens) <= 8
            and not own
            and any(
                mentions(rest, [option]) for place, option in enumerate(self.options) if place != one.option
            )
        )

    def _by_name(self, found: Said, region: str) -> tuple[int, str]:
        """The option whose text a reply gives as its answer."""
        verdicts = [one.judge(found) for one in self.names]
        given = [index for index, verdict in enumerate(verdicts) if verdict.label == "correct"]
        given = [
            one
            for one in given
            if not any(
                one != two and mentions(read(self.options[two].text), [self.options[one]]) for two in given
            )
        ]
        if len(given) == 1 and not found.marked and self._beside(given[0], read(region)):
            parts = [self.names[given[0]].sentence(part) for part in lines(region)]
            given = (
                given
                if any(one.verdict.label == "correct" and (one.bare or one.about) for one in parts)
                else []
            )
        letters = {one.option for one in self.letters.items(region)}
        if len(given) == 1 and (not letters or given[0] in letters):
            return given[0], "the option's text in the answer"
        whole = read(region).tokens
        own = [{token for token in option.tokens if len(token) > 3} for option in self.options]
        sharing = [
            index
            for index, tokens in enumerate(own)
            if any(sum(token in other for other in own) == 1 for token in tokens & set(whole))
        ]
        if not given and len(region) <= 60 and len(letters) == 1 and not sharing and "?" not in region:
            return letters.pop(), "the only letter that stands alone"
        if len(whole) <= 8 and not given:
            denied = self.names[0].cues.denies(whole, region) or "?" in region
            if len(sharing) == 1 and not letters and not denied and verdicts[sharing[0]].label == "undecided":
                return sharing[0], "a word that only one option has"
        return NOT_EXTRACTED, "no single option's letter or text in the answer"

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
