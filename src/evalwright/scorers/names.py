"""What a reply says of a name: surely a target, surely something else, or neither.

A target that a sentence gives, undenied and with no other name before or beside it, is correct. A short, committed answer in the
target's script that shares nothing with any target is incorrect. Everything else is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalwright.scorers.match import (
    ARTICLES,
    FUNCTION,
    HEADS,
    NAME_PARTICLES,
    Mention,
    Reading,
    Target,
    is_anothers,
    is_near,
    mentions,
    read,
    repaired,
    script_of,
)
from evalwright.scorers.text.cues import Cues, cues, last_revision
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

CASED = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")
_SPACELESS = ("CJK", "KANA", "THAI", "LAO", "KHMER", "MYANMAR")
_SMALL = FUNCTION | ARTICLES
_MAYBE = word_set("maybe possibly perhaps could vielleicht peut quiza forse talvez")
_WHO = word_set("who whom whose wer wen wem qui quien quienes chi quem кто ким хто kto")
_WRONG = word_set("wrong false incorrect mistaken falsch faux falso out")
_JOINS = _MAYBE | word_set("and und et y e i og och en ve dan và plus и with mit avec con")
_OF = word_set("of de des du von di del do da van s")
_PARTED = re.compile(r"[,;:()–—、，；：。]|\s-\s")
_COPULA = word_set("is was are were ist war est était es era fue è foi był była jest")
_MOST_SENTENCES, _MOST_WORDS, _MOST_UNKNOWN = 12, 60, 4
_NOTHING = "nothing that answers"
"""Why a sentence is undecided that offers no candidate at all."""


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self, targets: Sequence[Target], question: str, language: str, confusable: Sequence[str] = ()
    ) -> None:
        self.targets = targets
        self.cues: Cues = cues(language)
        self.nouns = language.split("-")[0] == "de"
        self.confusable = confusable
        asked = [token for token in read(plain(question[:2000])).tokens if token]
        self.person = not _WHO.isdisjoint(asked)
        self.asked = frozenset(token[:5] for token in asked)
        self.about = frozenset(token[:5] for token in asked if len(token) > 3 and token not in _SMALL)
        self.whole = frozenset(form for one in targets for form in (*one.forms, " ".join(one.tokens)))

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        text = said.text
        if self._is_target(text) and not said.after:
            return correct(f"'{_shown(text)}' is a target as written")
        change = None if said.marked else last_revision(text)
        if change is not None and (after := text[change[1] :].strip(" .,;:!?-")):
            text = after
            if declining_clause(text) is not None:
                return undecided("a change of mind, and no answer after it")
        verdict = self._sentences(text)
        if said.after and verdict.label != "undecided":
            denied = any(self.denied(*one) for one in self._found([said.after]))
            if denied or last_revision(said.after) is not None:
                return undecided(f"{verdict.why}, and something else after it")
        bold = verdict.label == "undecided" and len(said.bold) == 1 and self._is_target(said.bold[0])
        if bold and not any(self.denied(*one) for one in self._found([text])):
            return correct(f"'{said.bold[0]}' in bold is a target")
        return verdict

    # -- several sentences

    def _sentences(self, text: str) -> Verdict:
        parts = lines(text)
        if len(parts) > _MOST_SENTENCES:
            parts = [*parts[: _MOST_SENTENCES // 2], *parts[-_MOST_SENTENCES // 2 :]]
        verdicts = [self.sentence(part) for part in parts]
        if not parts:
            return undecided(_NOTHING)
        if len(parts) > 1 and all(self._is_bare(part.lstrip("0123456789.) ")) for part in parts):
            return undecided("a list")
        labels = [one.label for one in verdicts]
        last, before = labels[-1], labels[:-1]
        sure = last == "correct" or (last == "incorrect" and not {"correct", "incorrect"} & set(before))
        if before and sure and self._concludes(parts[-1]):
            return verdicts[-1]
        kept = [place for place, one in enumerate(verdicts) if one.why != _NOTHING]
        if not kept:
            return verdicts[0]
        first, later = verdicts[kept[0]], [verdicts[place] for place in kept[1:]]
        if first.label == "correct":
            denied = any(self.denied(*one) for one in self._found(parts[kept[0] + 1 :]))
            early = any(self._takes_up(part) for part in parts[: kept[0]])
            denied = denied or (early and not self._takes_up(parts[kept[0]]))
            return undecided(f"{first.why}, but perhaps not as the answer") if denied else first
        if first.label == "incorrect":
            if any(one.label == "correct" for one in later) or (
                later and not self._is_bare(parts[kept[0]]) and not self._takes_up(parts[kept[0]])
            ):
                return undecided(f"{first.why}; more is said later")
            return first
        given = [place for place in kept[1:] if labels[place] == "correct" and self._takes_up(parts[place])]
        return verdicts[given[-1]] if given and "incorrect" not in labels else first

    def _concludes(self, text: str) -> bool:
        tokens = read(text).tokens
        return not self.cues.sure.isdisjoint(tokens[:3]) or self._takes_up(text)

    def _takes_up(self, text: str) -> bool:
        """Whether a sentence speaks with at least half of the question's words."""
        return len({token[:5] for token in read(text).tokens} & self.about) * 2 >= max(len(self.about), 1)

    def _about(self, tokens: Sequence[str]) -> bool:
        return any(token[:5] in self.about for token in tokens)

    def _found(self, parts: Sequence[str]) -> list[tuple[Reading, Mention]]:
        readings = [read(part) for part in parts]
        return [(one, found) for one in readings for found in mentions(one, self.targets, self.confusable)]

    def _is_bare(self, text: str) -> bool:
        """Whether a text is nothing but a name."""
        reading = read(text)
        if len(reading.tokens) > 5 or "?" in text or ":" in text:
            return False
        if script_of(text) not in CASED:
            return len("".join(reading.cased)) <= (10 if script_of(text) in _SPACELESS else 30)
        words = zip(reading.cased, reading.tokens, strict=True)
        return all(word[:1].isupper() or token in NAME_PARTICLES | ARTICLES for word, token in words)

    def _is_target(self, text: str) -> bool:
        tokens = read(text).tokens
        while len(tokens) > 1 and tokens[0] in ARTICLES and " ".join(tokens) not in self.whole:
            tokens = tokens[1:]
        return " ".join(tokens) in self.whole or "".join(tokens) in self.whole

    # -- one sentence

    def sentence(self, text: str) -> Verdict:
        """What one sentence says."""
        if self._is_target(text) and "?" not in text:
            return correct(f"'{_shown(text)}' is a target")
        reading = read(text)
        if len(reading.tokens) > _MOST_WORDS and script_of(text) in CASED:
            return undecided("a long sentence")
        reading = repaired(reading, self.targets)
        found = mentions(reading, self.targets, self.confusable)
        if not found:
            return self._other(reading)
        if "?" in text or self.cues.offers([one for one in reading.tokens if one not in self.asked], text):
            return undecided("an alternative or a question")
        free = [
            one
            for one in found
            if one.sure and not self.denied(reading, one) and not self._aside(reading, one)
        ]
        if free:
            return self._given(reading, free[0], found)
        if not any(one.sure for one in found):
            other = (
                self.person
                and (self._is_bare(text) or self._takes_up(text))
                and all(is_anothers(reading, one, self.targets) for one in found)
            )
            return incorrect(f"'{_shown(text)}' is another name") if other else undecided("a target in part")
        if "than" in reading.tokens and self.cues.denies(reading.tokens, ""):
            return undecided("a comparison that is denied")
        others = self._names(reading, 0, len(reading.tokens), found)
        denied = all(self.denied(reading, one) for one in found if one.sure)
        if others and (denied or others[0] in reading.cased[: found[0].start]):
            return incorrect(f"'{others[0]}' is given, and not the target")
        if denied and len(reading.tokens) <= 6:
            return incorrect("the target is denied")
        return undecided("the target is denied or only mentioned")

    def _given(self, reading: Reading, one: Mention, found: Sequence[Mention]) -> Verdict:
        """A target stands in the sentence undenied: is it what the sentence offers?"""
        tokens = reading.tokens
        start = self.cues.turn_in(tokens[: one.start])
        before = tokens[start : one.start]
        if others := self._names(reading, start, one.start, found):
            return undecided(f"'{others[0]}' comes before the target")
        if self.cues.turn_in(tokens[one.end :]) and not start:
            return undecided("a 'but' after the target")
        clause = max((place for place in range(one.start + 1) if ";" in reading.gaps[place]), default=0)
        if clause and self._about(tokens[:clause]) and not self._about(tokens[clause:]):
            return undecided("the target is in a later clause")
        predicate = tokens[one.end : one.end + 12]
        if (
            one.start <= 1
            and self.about
            and predicate[:1]
            and predicate[0] in _COPULA
            and not self._about(predicate)
            and self._content(predicate)
        ):
            return undecided("the sentence about the target does not answer the question")
        unknown = self._content(before)
        if len(unknown) > _MOST_UNKNOWN:
            return undecided("the sentence says more than the question needs")
        related = before[-1:] and before[-1] in _OF and before[-2:-1] and before[-2] in unknown
        if related or tokens[one.end : one.end + 1] == ["s"] or reading.gaps[one.end][:1] in ("^", "=", "/"):
            return undecided("the target may only be mentioned beside the answer")
        if one.end < len(tokens):
            joined = tokens[one.end] in _JOINS
            if joined or re.fullmatch(r"[,、/; \d)]+", reading.gaps[one.end]):
                more = 2 if joined or tokens[one.end] in ARTICLES else 1
                if names := self._names(reading, one.end, one.end + more, found):
                    return undecided(f"'{names[0]}' is given beside the target")
        inside = re.search(r"[(（]", reading.gaps[one.start]) is not None
        if inside and one.start and script_of(reading.text) not in CASED:
            return undecided("the target is in brackets")
        return correct(
            f"'{' '.join(reading.cased[one.start : one.end])}' is given, and no other name before it"
        )

    def denied(self, reading: Reading, one: Mention) -> bool:
        """Whether a negation stands before a mention in its clause, or right after it."""
        first, last = one.start, one.end
        while first > max(0, one.start - 6) and not _PARTED.search(reading.gaps[first]):
            first -= 1
        while last < min(one.end + 3, len(reading.tokens)) and not _PARTED.search(reading.gaps[last]):
            last += 1
        before, after = reading.tokens[first : one.start], reading.tokens[one.end : last]
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        if not _WRONG.isdisjoint(reading.tokens[one.end : one.end + 5]):
            return True
        left, right = "".join(before)[-8:], "".join(reading.tokens[one.end : one.end + 8])
        return self.cues.denies([*before, *after], left) or self.cues.denies([], right)

    def _aside(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention only explains another name ("the rival of ...", "after ..."): such a word stands near before it."""
        start = max(self.cues.turn_in(reading.tokens[: one.start]), one.start - 4)
        near = reading.tokens[start : one.start]
        if "than" in near[-2:]:
            return True
        return any(token in self.cues.aside and token[:5] not in self.asked for token in near)

    def _content(self, tokens: Sequence[str]) -> list[str]:
        """The words that are neither small ones nor the question's."""
        return [token for token in tokens if token and token not in _SMALL and token[:5] not in self.asked]

    def _names(self, reading: Reading, start: int, end: int, found: Sequence[Mention] = ()) -> list[str]:
        """Capitalised words between two places that are neither the question's nor a target's, nor in a clause that denies."""
        left_out = HEADS | self.cues.negations | self.cues.aside | self.cues.turns | self.cues.sure
        out = []
        for place in range(start, min(end, len(reading.tokens))):
            word, token = reading.cased[place], reading.tokens[place]
            if not word[:1].isupper() or word.isdecimal() or len(token) < 2 or token in left_out:
                continue
            if any(one.start <= place < one.end for one in found) or not self._content([token]):
                continue
            beside = reading.cased[place + 1 : place + 2]
            if place == 0 and not (beside and (beside[0][:1].isupper() or reading.tokens[1] in FUNCTION)):
                continue
            closing = place and reading.tokens[place - 1] in self.cues.turns
            if self.nouns and not (beside and beside[0][:1].isupper()) and place and not closing:
                continue
            if not self.denied(reading, Mention(place, place + 1, True)):
                out.append(word)
        return out

    def _other(self, reading: Reading) -> Verdict:
        """No target in a sentence: is it surely another answer?"""
        tokens, text, script = reading.tokens, reading.text, script_of(reading.text)
        content = self._content(tokens)
        if not content:
            return undecided(_NOTHING)
        same = [target for target in self.targets if target.script == script]
        if not script or not same or "?" in text or self.cues.denies(tokens, text):
            return undecided("no target, and nothing that can be compared")
        if all(_differs_in_digits(tokens, target.tokens) for target in self.targets):
            return incorrect(f"'{_shown(text)}' has other digits than the target")
        if is_near(content, self.targets):
            return undecided("something like a target")
        proper = all(target.text[:1].isupper() for target in same) or script not in CASED
        if len(content) <= 4 and (self._is_bare(text) and proper):
            return incorrect(f"'{_shown(text)}' is none of the targets")
        if proper and script in CASED and (name := self._only_name(reading)):
            return incorrect(f"'{name}' is given, and no target")
        return undecided(_NOTHING)

    def _only_name(self, reading: Reading) -> str:
        """The name that is all that a sentence gives up to its first comma or the like; "" where it says more."""
        end = next(
            (place for place in range(1, len(reading.tokens)) if _PARTED.search(reading.gaps[place])),
            len(reading.tokens),
        )
        tokens = reading.tokens[:end]
        places = [
            place
            for place, token in enumerate(tokens)
            if token and token not in _SMALL and token[:5] not in self.asked
        ]
        if (
            not places
            or not self.cues.aside.isdisjoint(reading.tokens)
            or len(places) > 4
            or places[-1] - places[0] >= len(places) + 1
        ):
            return ""
        capital = all(reading.cased[place][:1].isupper() for place in places)
        answers = (
            self._takes_up(" ".join(tokens))
            or tokens[0] in FUNCTION
            or self._is_bare(" ".join(reading.cased[:end]))
        )
        return " ".join(reading.cased[places[0] : places[-1] + 1]) if capital and answers else ""


def _differs_in_digits(tokens: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a text is a target with another number in it: "World War I", "H2O2", "Carbon-12"."""
    one, other = ("".join(part for part in tokens if part not in ARTICLES) for tokens in (tokens, wanted))
    letters = re.sub(r"\d", "", one)
    return one != other and letters == re.sub(r"\d", "", other) and letters != one and letters != other


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
