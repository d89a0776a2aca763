"""What a reply says of a name: surely a target, surely something else, or neither.

A target that stands alone, or is the only thing that a sentence offers, is correct; a short, committed answer that shares nothing with
any target is incorrect; everything else is undecided.
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
    alike,
    is_near,
    is_other_numeral,
    is_other_person,
    mentions,
    read,
    repaired,
    script_of,
    touch,
)
from evalwright.scorers.text.countries import COUNTRIES
from evalwright.scorers.text.cues import Cues, cues, last_revision
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_SMALL = FUNCTION | ARTICLES
_MAYBE = word_set("maybe possibly perhaps could or even vielleicht peut quiza forse talvez")
_JOINS = word_set("and und et y e i og och en ve dan và plus as")
_WITH = _JOINS | word_set("и with mit avec con") - {"as"}
_CASED = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")
_ALIASING = word_set(
    "called known named renamed formerly today now alias aka nee nowadays heute hiess genannt appele llamado chiamato"
)
_PARTED = re.compile(r"[,;:()–—、]|\s-\s")
_MOST_UNKNOWN = 1
"""Words beside a target, neither small ones nor the question's, with which a sentence is still nothing but an answer."""
_MOST_PHRASE, _MOST_WORDS = 6, 45
"""Words of what may be a bare answer, and of a sentence that is still read."""


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self, targets: Sequence[Target], question: str, language: str, confusable: Sequence[str] = ()
    ) -> None:
        self.targets = targets
        self.cues: Cues = cues(language)
        self.confusable = confusable
        self.asked = frozenset(token[:5] for token in read(plain(question[:2000])).tokens)
        self.whole = frozenset(form for one in targets for form in (*one.forms, " ".join(one.tokens)))

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        if not said.marked:
            return self._running(said)
        verdict = self._phrase(said.text)
        if verdict.label == "undecided" or not said.after:
            return verdict
        if last_revision(said.after) is not None or any(
            self.denied(*one) for one in self._found([said.after])
        ):
            return undecided(f"{verdict.why}, and something else after it")
        return verdict

    # -- several sentences

    def _running(self, said: Said) -> Verdict:
        parts = lines(said.text)
        if not parts or self._is_target(said.text):
            return (
                correct(f"'{_shown(said.text)}' is a target as written") if parts else undecided("no words")
            )
        change = last_revision(said.text)
        if change is not None and (after := said.text[change[1] :].strip(" .,;:!?-")):
            return self._after_change(after)
        while len(parts) > 1 and self._says_nothing(parts[0]):
            parts = parts[1:]
        opening = self._phrase(parts[0])
        if len(parts) == 1:
            return self._bold(said, opening)
        if "?" in parts[0] or all(self._is_bare_name(part.lstrip("0123456789.) ")) for part in parts):
            return undecided("a list or a question")
        later = self._found(parts[1:])
        given = [one for one in later if not self.denied(*one)]
        concluded = self._concludes(said.text, parts)
        if opening.label == "correct":
            other = len(given) < len(later) or concluded.label == "incorrect"
            return undecided(f"{opening.why}, and something else later") if other else opening
        if opening.label == "incorrect" and self._is_bare_name(parts[0]):
            return undecided(f"{opening.why}; a target comes later") if given else opening
        if concluded.label != "undecided":
            return concluded
        if opening.label == "incorrect" and (given or len(parts) > 2):
            opening = undecided(f"{opening.why}; more is said later")
        return self._bold(said, opening)

    def _found(self, parts: Sequence[str]) -> list[tuple[Reading, Mention]]:
        """The mentions of targets in some sentences."""
        readings = [read(part) for part in parts]
        return [(one, found) for one in readings for found in mentions(one, self.targets, self.confusable)]

    def _says_nothing(self, text: str) -> bool:
        """Whether a sentence is a courtesy or only small words ("Great question!", "No.")."""
        reading = read(text)
        if len(reading.tokens) > 5 or mentions(reading, self.targets):
            return False
        return text.rstrip().endswith(("!", "！")) or set(reading.tokens) <= _SMALL | self.cues.negations

    def _is_bare_name(self, text: str) -> bool:
        """Whether a sentence is nothing but a name."""
        reading = read(text)
        short = any(len(token) < 3 and token.isascii() for token in reading.tokens[-1:])
        if short or len(reading.tokens) > 5 or "?" in text or ":" in text:
            return False
        if reading.tokens and script_of(text) not in _CASED:
            return len("".join(reading.cased)) <= 8
        words = zip(reading.cased, reading.tokens, strict=True)
        return all(word[:1].isupper() or token in NAME_PARTICLES | ARTICLES for word, token in words)

    def _bold(self, said: Said, verdict: Verdict) -> Verdict:
        """One thing in bold that is the target decides what else would not be decided."""
        if verdict.label == "undecided" and len(said.bold) == 1 and self._is_target(said.bold[0]):
            found = self._found([said.text])
            if found and not any(self.denied(*one) for one in found):
                return correct(f"'{said.bold[0]}' in bold is a target")
        return verdict

    def _after_change(self, after: str) -> Verdict:
        parts = lines(after)
        if not parts or declining_clause(after) is not None:
            return undecided("a change of mind, and no answer after it")
        last = self._phrase(parts[0])
        if last.label == "correct" or (last.label == "incorrect" and len(parts) == 1):
            return last._replace(why=f"after a change of mind: {last.why}")
        return undecided("a change of mind")

    def _concludes(self, text: str, parts: Sequence[str]) -> Verdict:
        """The last sentence where it says that it concludes, or is a paragraph of its own that is about the question."""
        tokens = read(parts[-1]).tokens
        explicit = not self.cues.sure.isdisjoint(tokens[:3])
        about = any(token[:5] in self.asked for token in tokens if token not in FUNCTION and len(token) > 3)
        if not explicit and not (about and text.rstrip().rpartition("\n\n")[2].strip() == parts[-1]):
            return undecided("no conclusion")
        return self._phrase(parts[-1].rpartition(":")[2].strip() or parts[-1])

    def _is_target(self, text: str) -> bool:
        reading = read(text)
        tokens = reading.tokens
        while len(tokens) > 1 and tokens[0] in ARTICLES and " ".join(tokens) not in self.whole:
            tokens = tokens[1:]
        whole = " ".join(tokens)
        plural = (
            len(tokens) == 1
            and whole.endswith("s")
            and reading.cased[-1].islower()
            and whole[:-1] in self.whole
        )
        return whole in self.whole or "".join(tokens) in self.whole or plural

    # -- one sentence

    def _phrase(self, text: str) -> Verdict:
        """One sentence, or what stands after a mark."""
        if self._is_target(text):
            return correct(f"'{_shown(text)}' is a target")
        reading = read(text)
        if len(reading.tokens) > _MOST_WORDS:
            return undecided("a long sentence")
        reading = repaired(reading, self.targets)
        found = mentions(reading, self.targets, self.confusable)
        if not found:
            return self._other(reading)
        if not any(one.sure for one in found):
            other = all(self._is_anothers(reading, one) for one in found)
            return incorrect(f"'{_shown(text)}' is another name") if other else undecided("a target in part")
        if all(self.denied(reading, one) for one in found):
            return self._all_denied(reading, found)
        return self._given(reading, found)

    def _all_denied(self, reading: Reading, found: Sequence[Mention]) -> Verdict:
        tokens, text = reading.tokens, reading.text
        count = sum(token in self.cues.negations for token in tokens)
        doubly = (count > 1 and "ne" not in tokens) or any(
            token.startswith(("un", "any")) for token in tokens
        )
        if "?" in text or self.cues.offers(tokens, text) or doubly:
            return undecided("the target is denied, or offered beside others")
        if others := self._names(reading, 0, len(tokens), found):
            return incorrect(f"the target is denied, and '{others[0]}' is given")
        short = len(tokens) <= (8 if script_of(text) in _CASED else 24) and not self.cues.turn_in(tokens)
        return incorrect("the target is denied") if short else undecided("the target is denied")

    def _given(self, reading: Reading, found: Sequence[Mention]) -> Verdict:
        """A target stands in the sentence undenied: is it the only thing that it offers?"""
        sure = [one for one in found if one.sure and not self.denied(reading, one)]
        one = sure[0]
        start: int | None = self.cues.turn_in(reading.tokens)
        after_turn = bool(start) and all(other.start >= (start or 0) for other in found)
        if not after_turn:
            if len(sure) < len(found):
                return undecided("the target is both given and denied, or only in part")
            start = self._clause_start(reading, one)
        if start is None or one.start - start > (8 if after_turn else _MOST_WORDS):
            return undecided("the target stands in a later clause")
        if others := self._names(reading, start, one.start, found):
            return undecided(f"'{others[0]}' stands before the target")
        if self._troubled(reading, start, one):
            return undecided("the target may stand beside the answer")
        rest = [*reading.tokens[start : one.start], *reading.tokens[one.end :]]
        if len([token for token in self._content(rest) if len(token) > 2]) > _MOST_UNKNOWN:
            return undecided("the sentence says more than is asked")
        if not after_turn and (other := self._beside(reading, sure[-1], found)):
            return undecided(f"'{other}' stands beside the target")
        return correct(f"'{' '.join(reading.cased[one.start : one.end])}' is the only name given")

    def _troubled(self, reading: Reading, start: int, one: Mention) -> bool:
        """Whether the clause holds words that make the mention less than an answer."""
        tokens, text = reading.tokens, reading.text
        before, after = tokens[start : one.start], tokens[one.end : one.end + 4]
        if "than" in before[-2:] or not {"anything", "everything", "all"}.isdisjoint(tokens[: one.start]):
            return True
        named = " ".join(reading.cased[one.start : one.end])
        lowered = text[:1].isupper() and named.islower() and len(tokens) < 4
        targets = "".join(target.text for target in self.targets)
        if reading.gaps[one.end][:1] in ("^", "=", "*") or (lowered and not targets.islower()):
            return True
        if re.search("[?？±]", text) or ("/" in text and "/" not in targets):
            return True
        again = any(
            one.end <= other.start < one.end + 8 for other in mentions(reading, self.targets) if other.sure
        )
        near = (*before, *(() if again else after))
        if after[:1] == ["s"] or any(
            token in self.cues.aside and token[:5] not in self.asked for token in near
        ):
            return True
        if (before and not self._leads_in(before)) or self.cues.offers(tokens, text):
            return True
        if self.cues.denies(before, " ".join(before)) or self.cues.denies(after[:3], ""):
            return True
        return not text.isascii() and (self.cues.turns_in(text) or self.cues.denies([], text))

    def _beside(self, reading: Reading, one: Mention, found: Sequence[Mention]) -> str:
        """Another name that a list, an "and" or a "but" puts beside the target, or a predicate that is not the question's."""
        tokens, gap = reading.tokens[one.end :], reading.gaps[one.end]
        if not tokens:
            return ""
        names = self._names(reading, one.end, len(reading.tokens), found)
        others = [word for word in names if word.casefold() not in COUNTRIES]
        if "\n" in reading.text.strip() or "?" in gap or self.cues.turn_in(tokens):
            return tokens[0]
        listed = re.search(r"[,;、/]", gap) and (reading.cased[one.end][:1].isupper() or tokens[0] in _MAYBE)
        joined = tokens[0] in _JOINS or (len(tokens) <= 8 and listed)
        asserted = not {"is", "was", "are", "which", "who", "in", "by"}.isdisjoint(tokens[:2])
        if joined and others and (not asserted or tokens[0] in _JOINS):
            return others[0]
        if joined and not others and len(tokens) <= 4 and script_of(reading.text) not in _CASED:
            return tokens[0]
        subject = one.start == 0 and tokens[0] in ("is", "was", "are", "were")
        known = any(
            token[:5] in self.asked for token in tokens[1:6] if len(token) > 2 and token not in _SMALL
        )
        return " ".join(tokens[:3]) if subject and not known else ""

    def _leads_in(self, before: Sequence[str]) -> bool:
        """Whether what stands before a target only leads to it: words of the question, small words, few others."""
        unknown = [token for token in self._content(before) if len(token) > 2]
        related = before[-1] in ("of", "for", "from") and len(before) > 1 and before[-2] in unknown
        return len(unknown) <= 2 and not related and not (unknown and not _WITH.isdisjoint(before))

    def _clause_start(self, reading: Reading, one: Mention) -> int | None:
        """Where the clause of a mention begins; None where an earlier clause may already have answered."""
        start = 0
        for place in range(1, one.start + 1):
            if not _PARTED.search(reading.gaps[place]) and not re.search("[，；：。]", reading.gaps[place]):
                continue
            lead = reading.tokens[start:place]
            content = set(self._content(lead)) - self.cues.negations
            words = zip(reading.cased[start:place], lead, strict=True)
            named = any(word[:1].isupper() or len(word) > 3 for word, token in words if token in content)
            denied = named and self.cues.denies(lead, "".join(lead)) and not self.cues.offers(lead, "")
            if self._content(lead) and not denied:
                return None
            start = place
        return start

    def denied(self, reading: Reading, one: Mention) -> bool:
        """Whether a negation stands right before or right after a mention, in its clause."""
        first, last = one.start, one.end
        while first > max(0, one.start - 3) and not _PARTED.search(reading.gaps[first]):
            first -= 1
        while last < min(one.end + 3, len(reading.tokens)) and not _PARTED.search(reading.gaps[last]):
            last += 1
        before, after = reading.tokens[first : one.start], reading.tokens[one.end : last]
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        left, right = "".join(before)[-4:], "".join(after)[:6]
        return (
            self.cues.denies([*before, *after[:2]], "")
            or self.cues.denies([], left)
            or self.cues.denies([], right)
        )

    def _content(self, tokens: Sequence[str]) -> list[str]:
        """The words that are neither small ones nor the question's."""
        return [token for token in tokens if token and token not in _SMALL and token[:5] not in self.asked]

    def _names(self, reading: Reading, start: int, end: int, found: Sequence[Mention] = ()) -> list[str]:
        """Capitalised words between two places that are neither the question's nor a target's."""
        left_out = HEADS | self.cues.negations | self.cues.aside
        out = []
        for place in range(start, end):
            word, token = reading.cased[place], reading.tokens[place]
            opens = place == 0 and end - start > 1 and not reading.cased[1][:1].isupper()
            inside = any(one.start <= place < one.end for one in found)
            if not word[:1].isupper() or word.isdecimal() or opens or inside or len(token) < 2:
                continue
            if token not in left_out and self._content([token]):
                out.append(word)
        return out

    def _stands_alone(self, reading: Reading, word: str) -> bool:
        """Whether a name is a subject or a complement, not the beginning of a description ("a Belgian detective")."""
        place = reading.cased.index(word)
        if all(one[:1].isupper() for one in reading.cased[: place + 1]) or place + 1 == len(reading.cased):
            return True
        after = reading.cased[place + 1]
        return not (
            after[:1].islower() and reading.tokens[place + 1] not in FUNCTION and touch(reading, place)
        )

    def _is_anothers(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention is another person's name: a surname with given names that cannot be the target's."""
        own = [token for token in reading.tokens[one.start : one.end] if token not in HEADS]
        fits = [target for target in self.targets if target.given and " ".join(own).endswith(target.surname)]
        alone = one.start == 0 or one.end - one.start > 1
        unlike = fits and not any(alike(own[0], given) for target in fits for given in target.given)
        return bool(alone and unlike) and not (
            self.cues.denies(reading.tokens, reading.text) or self.cues.turn_in(reading.tokens)
        )

    def _other(self, reading: Reading) -> Verdict:
        """No target in a sentence: is it surely another answer?"""
        tokens, text, script = reading.tokens, reading.text, script_of(reading.text)
        if not script or all(target.script != script for target in self.targets):
            return undecided("another script than the targets'")
        if self._is_bare_name(text) and is_other_person(tokens, self.targets):
            return incorrect(f"'{_shown(text)}' is another name")
        if is_other_numeral(tokens, self.targets):
            return incorrect(f"'{_shown(text)}' has another number")
        content = self._content(tokens)
        if is_near(tokens, content, self.targets):
            return undecided("something like a target")
        if not content or "?" in text or not _ALIASING.isdisjoint(tokens):
            return undecided("nothing that surely answers")
        if self.cues.denies(tokens, text) and not self.cues.turn_in(tokens):
            return undecided("no target, and a denial")
        common = all(not any(map(str.isupper, target.text)) for target in self.targets)
        phrase = 3 if common else 12 if script == "CJK" else 4
        if len(tokens) <= phrase and (common or script not in _CASED or self._is_bare_name(text)):
            return incorrect(f"'{_shown(text)}' is none of the targets")
        others = [word for word in self._names(reading, 0, len(tokens)) if self._stands_alone(reading, word)]
        about = len([token for token in tokens if len(token) > 3]) > len(
            [token for token in content if len(token) > 3]
        )
        if others and len(tokens) <= 20 and (about or tokens[0] in FUNCTION):
            return incorrect(f"'{others[0]}' is given, and no target")
        return undecided("no target in a sentence")


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
