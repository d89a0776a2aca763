"""What a reply says of a name: surely a target, surely something else, or neither.

The sentence that commits decides: the one with which the reply opens, where it opens with a bare name; a concluding one; else those that
take up the question, where they agree. A target that it gives, undenied and with no other name before or beside it, is correct; a name
in the target's script that shares nothing with any target is incorrect. Everything else is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evalwright.scorers.match import (
    ARTICLES,
    CASED,
    FUNCTION,
    HEADS,
    PARTICLES,
    Mention,
    Reading,
    Target,
    aligned,
    another_given,
    is_near,
    mentions,
    read,
    script_of,
    targets_of,
    without_tag,
)
from evalwright.scorers.text.cues import cues, last_revision, months, words
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted, undecided

_SPACELESS = ("CJK", "KANA", "THAI", "LAO", "KHMER", "MYANMAR")
_MAYBE = word_set("maybe possibly perhaps could vielleicht peut quiza forse talvez")
_WRONG = word_set("wrong false incorrect mistaken falsch faux falso out")
_JOINS = _MAYBE | word_set("and und et y e i og och en ve dan và plus и with mit avec con та и oraz")
_OF = word_set("of de des du von di del do da van s")
_PARTED = re.compile(r"[,;:()–—、，،؛；：。]|\s-\s")
_AND = re.compile(r"\s*(?:[,;/&、，\n]|\s(?:and|und|et|y|e|en|и|та|i|ve|dan|và|na|و|और|vs\.?)\s)\s*(?:-\s)?")
_OPENS = re.compile(r"(?<!\b[^\W\d_])\.(?=\s|$)|[,;:()–—、，،؛；：。（!]|\s-\s|$")
_COPULA = word_set("is was are were ist war est était es era fue è foi był była jest")
_DEMONYM = re.compile(
    r"[a-z]{3,}(?:ian|ish|ese|ean|ch|can|gian)$|(?:greek|swiss|scots|welsh|german|roman|norman|thai|arab)$"
)
_RENAMED = word_set(
    "called known renamed named nicknamed aka alias formerly previously originally now today genannt bekannt heute ehemals connu appele",
    "aujourd llamado llamada conocido conocida hoy detto chiamato oggi chamado conhecido hoje genaamd bekend ныне известный сегодня",
)
_FORMER = word_set("until till before formerly previously bis jusqu hasta fino ate tot до")
_HEDGES = _MAYBE | word_set("might could may alternatively also")
_SUPPOSED = word_set("might could may would")
_RESTATES = word_set("it he she they in actually really that es sie er c ce il elle è e lui lei ele ela")
_MOST_SENTENCES, _MOST_WORDS, _MOST_UNKNOWN = 12, 60, 6
_NOTHING = "nothing that answers"
"""Why a sentence is undecided that offers no candidate at all."""


class _Sentence(NamedTuple):
    """What one sentence says. bare: it opens with a name that stands alone. about: it takes up the question. named: it names a target. shared: how many words of the question it has. hedged: it has a word such as perhaps."""

    verdict: Verdict
    bare: bool
    about: bool
    named: bool
    shared: int
    hedged: bool


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self, targets: Sequence[Target], question: str, language: str, confusable: Sequence[str] = ()
    ) -> None:
        self.targets = targets
        self.cues = cues(language)
        self.nouns = language.split("-")[0] == "de"
        self.confusable = confusable
        asked = [token for token in read(plain(question[:2000])).tokens if token]
        self.asked = frozenset(token[:5] for token in asked)
        self.about = frozenset(
            token[:5]
            for token in asked
            if token not in FUNCTION and (len(token) > 3 or not token.isalpha() or not token.isascii())
        )
        self.whole = frozenset(form for one in targets for form in (*one.forms, " ".join(one.tokens)))
        self.common = any(target.text[:1].islower() for target in targets)
        self.inflected = language.split("-")[0] in ("pl", "ru", "uk", "tr", "ta", "hi", "ar")
        self.postfix = language.split("-")[0] in ("ko", "ja", "tr", "hi", "ta")
        self.former = not (_FORMER | _RENAMED).isdisjoint(asked)
        self.restarts = self.cues.turns | words("sure", language)

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        if self.is_target(said.text) and not said.after and not said.before:
            return correct(f"'{_shown(said.text)}' is a target as written")
        verdict = self._items(said.text) or self._sentences(said)
        if said.marked and verdict.label != "undecided":
            denied = any(self.denied(*one) for one in self._found([said.after]))
            if denied or last_revision(said.after) is not None or declining_clause(said.after) is not None:
                return undecided(f"{verdict.why}, and something else after it")
            opening = lines(said.before)[:1] if "after '" in said.rule else []
            if (
                opening
                and self._is_bare(opening[0])
                and self.sentence(opening[0]).verdict.label not in (verdict.label, "undecided")
            ):
                return undecided(f"{verdict.why}, and something else at the beginning")
        if verdict.label == "undecided" and len(said.bold) == 1:
            return self._in_bold(said, verdict)
        return verdict

    def _items(self, text: str) -> Verdict | None:
        """A target of several things ("red, green and blue") against a list of things; None where it is no such target or reply."""
        for target in self.targets:
            wanted = [" ".join(read(one).tokens) for one in _AND.split(plain(target.text)) if one.strip()]
            given = [" ".join(self._read(one).tokens) for one in _AND.split(text.strip(" .")) if one.strip()]
            if len(wanted) < 2 or len(given) < 2 or max(len(one.split()) for one in (*wanted, *given)) > 4:
                continue
            given = [one.removeprefix("the ").removeprefix("and ") for one in given]
            if sorted(given) == sorted(one.removeprefix("the ") for one in wanted):
                return correct("all the things of a target")
            others = [one for one in given if one not in wanted]
            near = any(is_near(one.split(), targets_of(tuple(wanted))) for one in others)
            if (
                len(given) == len(wanted)
                and 0 < len(others) < len(given)
                and not near
                and self._is_bare(given[0])
            ):
                return incorrect(f"'{others[0]}' is none of the things")
        return None

    def _in_bold(self, said: Said, verdict: Verdict) -> Verdict:
        """The only words in bold, where they are a target that nothing denies."""
        if self.is_target(said.bold[0]) and not any(self.denied(*one) for one in self._found([said.text])):
            return correct(f"'{said.bold[0]}' in bold is a target")
        return verdict

    # -- several sentences

    def _sentences(self, said: Said) -> Verdict:
        parts = lines(said.text)
        if len(parts) > _MOST_SENTENCES:
            parts = [*parts[: _MOST_SENTENCES // 2], *parts[-_MOST_SENTENCES // 2 :]]
        found = [self.sentence(part) for part in parts]
        if not found:
            return undecided(_NOTHING)
        items = [part.lstrip("0123456789.) ") for part in parts]
        if len(parts) > 1 and all(map(self._is_bare, items)) and any(map(self.is_target, items)):
            return undecided("a list")
        said_ones = [one for one in found if one.verdict.why != _NOTHING]
        if not said_ones:
            declined = declining_clause(said.text)
            return not_attempted(f"gives no answer: {declined}") if declined else found[0].verdict
        first, last = said_ones[0], found[-1]
        sure = [one for one in said_ones if one.verdict.label != "undecided"]
        most = max((one.shared for one in sure), default=0)
        about = [one for one in sure if one.about or 0 < one.shared == most]
        labels = {one.verdict.label for one in about or sure}
        if last in sure and (said.last or (len(parts) > 2 and last.about and not first.bare)):
            clash = first.bare and first in sure and first.verdict.label != last.verdict.label
            return undecided("a beginning and an end that differ") if clash else last.verdict
        if first in sure and first.bare:
            return self._opened(first, said_ones[1:], parts[found.index(first) + 1 :])
        if not sure or len(labels) > 1 or (first not in sure and first.named):
            return first.verdict if first not in sure else undecided("sentences that differ")
        chosen = (about or sure)[0]
        if any(one.named and one.about for one in said_ones[: said_ones.index(chosen)]) or (
            first.about and first not in sure
        ):
            return undecided(f"{chosen.verdict.why}; not surely the answer")
        if chosen.verdict.label == "incorrect" and (
            any(one.named and one.about and one is not chosen for one in said_ones)
            or not (about or first is chosen)
        ):
            return undecided(f"{chosen.verdict.why}; more is said")
        if chosen.verdict.label == "correct" and any(
            self.denied(*one) for one in self._found(parts[found.index(chosen) + 1 :])
        ):
            return undecided(f"{chosen.verdict.why}, and denied later")
        return chosen.verdict

    def _opened(self, first: _Sentence, others: Sequence[_Sentence], rest: Sequence[str]) -> Verdict:
        """The reply opens with a bare name: what is said later may only explain it."""
        if first.verdict.label == "correct" and any(self.denied(*one) for one in self._found(rest)):
            return undecided(f"{first.verdict.why}, and denied later")
        hedged = any(
            one.hedged and one.verdict.label != "correct" and one.verdict.why != _NOTHING for one in others
        )
        if first.verdict.label == "correct" and hedged:
            return undecided(f"{first.verdict.why}, and perhaps something else")
        if first.verdict.label == "incorrect" and any(
            one.verdict.label == "correct" and one.about for one in others
        ):
            return undecided(f"{first.verdict.why}; a target later")
        return first.verdict

    def _takes_up(self, tokens: Sequence[str]) -> bool:
        """Whether words hold at least half of the question's."""
        return len({token[:5] for token in tokens} & self.about) * 2 >= max(len(self.about), 1)

    def _found(self, parts: Sequence[str]) -> list[tuple[Reading, Mention]]:
        readings = [self._read(part) for part in parts if part]
        return [(one, found) for one in readings for found in self._mentions(one)]

    def _read(self, text: str) -> Reading:
        return aligned(read(text), self.targets, self.inflected)

    def _mentions(self, reading: Reading) -> list[Mention]:
        return mentions(reading, self.targets, self.confusable, self.asked)

    def _is_bare(self, text: str) -> bool:
        """Whether a text is nothing but a name, or a short noun where the targets are such."""
        reading = read(text)
        if not reading.tokens or len(reading.tokens) > 6 or "?" in text or ":" in text:
            return False
        content = self._content(reading.tokens)
        script = script_of(text)
        if script not in CASED:
            return 0 < len(content) <= {"CJK": 10, "KANA": 12}.get(script, 18 if script in _SPACELESS else 4)
        plain_noun = 0 < len(content) <= 2 and set(reading.tokens) <= {*content, *ARTICLES}
        if plain_noun and (self.common or (self.nouns and len(content) == 1)):
            return True
        named = zip(reading.cased, reading.tokens, strict=True)
        return not HEADS.issuperset(content) and all(
            word[:1].isupper() or token in PARTICLES | ARTICLES for word, token in named
        )

    def is_target(self, text: str) -> bool:
        """Whether a text is a target and nothing else."""
        text = without_tag(text)
        if "?" in text:
            return False
        tokens = self._read(text).tokens
        while len(tokens) > 1 and tokens[0] in ARTICLES and " ".join(tokens) not in self.whole:
            tokens = tokens[1:]
        return " ".join(tokens) in self.whole or "".join(tokens) in self.whole

    # -- one sentence

    def sentence(self, text: str) -> _Sentence:
        """What one sentence says."""
        opening = self._opening(text)
        if self.is_target(text):
            return _Sentence(
                correct(f"'{_shown(text)}' is a target"), True, True, True, len(self.about), False
            )
        reading = self._read(text)
        found = self._mentions(reading)
        verdict = self._sentence(text, reading, found, opening)
        bare = bool(opening) or self._is_bare(text)
        shared = len({token[:5] for token in reading.tokens} & self.about)
        return _Sentence(
            verdict,
            bare,
            self._takes_up(reading.tokens),
            bool(found),
            shared,
            not _HEDGES.isdisjoint(reading.tokens),
        )

    def _opening(self, text: str) -> str:
        """The bare name with which a sentence opens, up to its first mark; "" where it opens otherwise."""
        end = _OPENS.search(text, 2)
        opening = text[: end.start()] if end else text
        tokens = read(opening).tokens
        skipped = next(
            (at for at, token in enumerate(tokens) if token not in FUNCTION - ARTICLES or at > 3), 0
        )
        pieces = opening.split()
        name = " ".join(pieces[skipped:]) if skipped and len(pieces) == len(tokens) else opening
        return name if self._is_bare(name) and not self.cues.denies(tokens, opening) else ""

    def _sentence(self, text: str, reading: Reading, found: list[Mention], opening: str) -> Verdict:
        if len(reading.tokens) > _MOST_WORDS and script_of(text) in CASED:
            return undecided("a long sentence" if found else _NOTHING)
        if not found:
            return self._other(reading, opening)
        offered = [token for token in reading.tokens if token not in self.asked]
        if "?" in without_tag(text) or self.cues.offers(offered, text):
            return undecided("an alternative or a question")
        free = [
            one
            for one in found
            if one.sure and not self.denied(reading, one) and not self._aside(reading, one)
        ]
        if free:
            return self._given(reading, free[0], found, opening)
        if not any(one.sure for one in found):
            other = all(self._anothers(reading, one) for one in found) and (
                opening or self._takes_up(reading.tokens)
            )
            return incorrect(f"'{_shown(text)}' is another name") if other else undecided("a target in part")
        if (
            "than" in reading.tokens
            and "other" not in reading.tokens
            and self.cues.denies(reading.tokens, "")
        ):
            return undecided("a comparison that is denied")
        others = self._names(reading, 0, len(reading.tokens), found)
        denied = all(self.denied(reading, one) for one in found if one.sure)
        if opening and self._is_other(opening):
            renamed = not _RENAMED.isdisjoint(reading.tokens)
            return (
                undecided("another name of it")
                if renamed
                else incorrect(f"'{opening}' is given, and not the target")
            )
        if others and not _RENAMED.isdisjoint(reading.tokens):
            return undecided("another name of it")
        if others and (denied or others[0] in reading.cased[: found[0].start]):
            return incorrect(f"'{others[0]}' is given, and not the target")
        if denied and len(reading.tokens) <= 6:
            return incorrect("the target is denied")
        return undecided("the target is denied or only mentioned")

    def _given(self, reading: Reading, one: Mention, found: Sequence[Mention], opening: str) -> Verdict:
        """A target stands in the sentence undenied: is it what the sentence offers?"""
        tokens = reading.tokens
        start = max(
            (place + 1 for place, token in enumerate(tokens[: one.start]) if token in self.restarts),
            default=0,
        )
        before = tokens[start : one.start]
        others = self._names(reading, start, one.start, found)
        opened = (
            opening
            if opening and not start and len(read(opening).tokens) <= one.start and self._is_other(opening)
            else ""
        )
        if (others or opened) and not self._own_clause(reading, one):
            first = next(
                at for at in range(one.start + 1) if _PARTED.search(reading.gaps[at]) or at == one.start
            )
            last = max(at for at in range(one.start + 1) if _PARTED.search(reading.gaps[at]) or at == 0)
            relation = (
                before[-1:]
                and (before[-1] in _OF or self.inflected)
                and self._content(tokens[max(last, one.start - 3) : one.start])
            )
            apart = last and _RENAMED.isdisjoint(tokens) and not self._about(tokens[last:])
            if apart and ((opened and relation) or (not opened and self._takes_up(tokens[:first]))):
                return incorrect(f"'{opened or others[0]}' is given, and the target explains it")
            return undecided(f"'{opened or others[0]}' stands before the target")
        turn = 0 if start else self.cues.turn_in(tokens[one.end :])
        if turn and not _RESTATES.isdisjoint(tokens[one.end + turn : one.end + turn + 2]):
            instead = self._names(reading, one.end + turn, len(tokens), found)
            return (
                incorrect(f"'{instead[-1]}' instead")
                if instead and tokens[one.end + turn] == "it"
                else undecided("a 'but' after the target")
            )
        if (
            not reading.gaps[one.end].strip()
            and not _FORMER.isdisjoint(tokens[one.end : one.end + 2])
            and not self.former
        ):
            return undecided("what was so once")
        clause = max(
            (place for place in range(one.start + 1) if re.search(r"[;；]", reading.gaps[place])), default=0
        )
        if clause and self._about(tokens[:clause]) and not self._about(tokens[clause:]):
            return undecided("the target stands in a later clause")
        predicate = tokens[one.end : one.end + 12]
        if (
            one.start <= 1
            and self.about
            and predicate[:1]
            and predicate[0] in _COPULA
            and not self._about(predicate)
            and self._content(predicate)
        ):
            return undecided("what is said of the target is not what is asked")
        unknown = self._content(before)
        if len(unknown) > (_MOST_UNKNOWN if script_of(reading.text) not in _SPACELESS else 12):
            return undecided("the sentence says more than is asked")
        joint = max((place for place, token in enumerate(before) if token in _JOINS), default=0)
        if joint and self._content(before[:joint]) and not self._about(before[joint:]):
            return undecided("the target stands in a second part")
        related = before[-1:] and before[-1] in _OF and before[-2:-1] and before[-2] in unknown
        if related or tokens[one.end : one.end + 1] == ["s"] or reading.gaps[one.end][:1] in ("^", "=", "/"):
            return undecided("the target may stand beside the answer")
        if self._listed(reading, one, found):
            return undecided("the target stands in a list")
        if one.end < len(tokens):
            joined = tokens[one.end] in _JOINS
            ended = one.end + 1 == len(tokens) or _PARTED.search(reading.gaps[one.end + 1])
            if joined or re.fullmatch(r"[、/ \d)]+" if not ended else r"[、/; \d)]+", reading.gaps[one.end]):
                more = 2 if joined or tokens[one.end] in ARTICLES else 1
                if names := self._names(reading, one.end, one.end + more, found):
                    return undecided(f"'{names[0]}' stands beside the target")
        if (
            one.start
            and re.search(r"[(（]", reading.gaps[one.start])
            and script_of(reading.text) not in CASED
        ):
            return undecided("the target stands in brackets")
        return correct(
            f"'{' '.join(reading.cased[one.start : one.end])}' is given, and no other name before it"
        )

    def _own_clause(self, reading: Reading, one: Mention) -> bool:
        """Whether the clause of a mention holds no other name, and a word of the question that no clause before it has."""
        start = max((at for at in range(one.start + 1) if _PARTED.search(reading.gaps[at])), default=0)
        end = next(
            (at for at in range(one.end, len(reading.tokens)) if _PARTED.search(reading.gaps[at])),
            len(reading.tokens),
        )
        if not start or self._names(reading, start, one.start) or self._names(reading, one.end, end):
            return False
        clause = {token[:5] for token in reading.tokens[start:end]} & self.about
        return bool(clause - {token[:5] for token in reading.tokens[:start]})

    def _listed(self, reading: Reading, one: Mention, found: Sequence[Mention]) -> bool:
        """Whether two more names stand after the target, apart by commas; or one after a surname, as a place has it."""
        place, names = one.end, 0
        while place < len(reading.tokens) and names < 2:
            if (
                place > one.end
                and re.fullmatch(r" ?", reading.gaps[place])
                and reading.tokens[place] not in _JOINS
            ):
                place += 1
                continue
            if not re.fullmatch(r"\s*[,;、，]\s*\(?\d?\)?\s*|\s*\d?\)?\s*", reading.gaps[place]):
                break
            at = place + (reading.tokens[place] in _JOINS)
            at += at < len(reading.tokens) and reading.tokens[at] in ARTICLES
            if not self._names(reading, at, at + 1, found):
                break
            names, place = names + 1, at + 1
        surname = any(
            target.surname == " ".join(reading.tokens[one.start : one.end]) for target in self.targets
        )
        return names == 2 or (names == 1 and surname and "," in reading.gaps[one.end])

    def denied(self, reading: Reading, one: Mention) -> bool:
        """Whether a negation stands before a mention in its clause, or right after it."""
        first, last = one.start, one.end
        while first > max(0, one.start - 6) and not _PARTED.search(reading.gaps[first]):
            first -= 1
        while last < min(one.end + 3, len(reading.tokens)) and not _PARTED.search(reading.gaps[last]):
            last += 1
        before, after = reading.tokens[first : one.start], reading.tokens[one.end : last]
        if before[-2:] == ["anything", "but"]:
            return True
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        if not _WRONG.isdisjoint(reading.tokens[one.end : one.end + 5]):
            return True
        end = next(
            (at for at in range(one.end, len(reading.tokens)) if _PARTED.search(reading.gaps[at])),
            one.end + 8,
        )
        before = [] if self.postfix else before
        left, right = "".join(before)[-8:], "".join(reading.tokens[one.end : min(end, one.end + 8)])
        return self.cues.denies([*before, *after], left) or self.cues.denies([], right)

    def _aside(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention only explains another name ("the rival of ...", "after ..."): such a word stands near before it."""
        start = max(self.cues.turn_in(reading.tokens[: one.start]), one.start - 4)
        near = reading.tokens[start : one.start]
        if near[-2:] == ["other", "than"]:
            return False
        return "than" in near[-2:] or any(
            token in self.cues.aside and token[:5] not in self.asked for token in near
        )

    def _anothers(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention is another person's name: a surname with given names that cannot be the target's."""
        own = [token for token in reading.tokens[one.start : one.end] if token not in HEADS]
        fits = [target for target in self.targets if target.given and " ".join(own).endswith(target.surname)]
        names = own[: -len(fits[0].surname.split())] if fits else []
        return bool(names) and all(
            another_given(one, given) for target in fits for given in target.given for one in names
        )

    def _about(self, tokens: Sequence[str]) -> bool:
        return any(token[:5] in self.about for token in tokens)

    def _content(self, tokens: Sequence[str]) -> list[str]:
        """The words that are neither small ones nor the question's."""
        left_out = FUNCTION | {"republic", "kingdom", "federative"}
        return [token for token in tokens if token and token not in left_out and token[:5] not in self.asked]

    def _is_other(self, text: str) -> bool:
        """Whether a bare name is surely none of the targets."""
        reading = self._read(text)
        found = self._mentions(reading)
        if found:
            return all(not one.sure and self._anothers(reading, one) for one in found)
        return not is_near(self._content(reading.tokens), self.targets)

    def _names(self, reading: Reading, start: int, end: int, found: Sequence[Mention] = ()) -> list[str]:
        """Capitalised words between two places that are neither the question's nor a target's, nor in a clause that denies."""
        left_out = (
            HEADS | self.cues.negations | self.cues.aside | self.cues.turns | words("sure") | months().keys()
        )
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
            if reading.gaps[place][-1:] == '"' and place != 0:
                continue
            closing = place and reading.tokens[place - 1] in self.cues.turns
            if self.nouns and not (beside and beside[0][:1].isupper()) and place and not closing:
                continue
            if _DEMONYM.fullmatch(token) and beside and beside[0][:1].islower():
                continue
            if not self.denied(reading, Mention(place, place + 1, True)):
                out.append(word)
        return out

    def _other(self, reading: Reading, opening: str) -> Verdict:
        """No target in a sentence: is it surely another answer?"""
        tokens, text, script = reading.tokens, reading.text, script_of(reading.text)
        content = self._content(tokens)
        if not content:
            return undecided(_NOTHING)
        same = [target for target in self.targets if target.script == script]
        if not script or not same or "?" in text or (self.cues.denies(tokens, text) and not opening):
            return undecided(
                "no target, and nothing that can be compared" if script and not same else _NOTHING
            )
        if all(_differs_in_digits(tokens, target.tokens) for target in self.targets):
            return incorrect(f"'{_shown(text)}' has other digits than the target")
        if not _RENAMED.isdisjoint(tokens):
            return undecided("perhaps another name of it")
        explained = opening and self._is_other(opening) and not self.cues.aside.isdisjoint(tokens)
        if is_near(content, self.targets) and not explained:
            return undecided("something like a target")
        if opening or (len(content) <= 4 and self._is_bare(text)):
            return incorrect(f"'{_shown(opening or text)}' is none of the targets")
        if script not in CASED:
            short = len(content) <= (8 if script in _SPACELESS else 3)
            return (
                incorrect(f"'{_shown(text)}' gives no target")
                if short and self._takes_up(tokens)
                else undecided(_NOTHING)
            )
        if (
            self.common
            and len(content) <= 2
            and self._takes_up(tokens)
            and self.cues.aside.isdisjoint(tokens)
        ):
            return incorrect(f"'{_shown(text)}' gives no target")
        if not self.common and (name := self._only_name(reading)):
            return incorrect(f"'{name}' is given, and no target")
        return undecided(_NOTHING)

    def _only_name(self, reading: Reading) -> str:
        """The name that is all that a sentence gives up to its first comma or the like; "" where it says more."""
        marks = (place for place in range(1, len(reading.tokens)) if _PARTED.search(reading.gaps[place]))
        end = next(marks, len(reading.tokens))
        tokens = reading.tokens[:end]
        places = [place for place, token in enumerate(tokens) if self._content([token])]
        if not places or not (self.cues.aside | _SUPPOSED).isdisjoint(reading.tokens):
            return ""
        run = [place for place in places if reading.cased[place][:1].isupper()]
        spread = run and (len(run) > 4 or run[-1] - run[0] >= len(run) + 1)
        more = len(places) - len(run)
        answers = self._takes_up(tokens) or (
            not more and (tokens[0] in FUNCTION or (run[:1] == [0] and self._about(tokens)))
        )
        subject = bool(run) and run[0] == 0 and self._takes_up(tokens) and more <= 1
        if (
            not run
            or spread
            or not answers
            or (more and not subject and not (more == 1 and self._takes_up(tokens)))
        ):
            return ""
        return " ".join(reading.cased[run[0] : run[-1] + 1])


def _differs_in_digits(tokens: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a text is a target with another number in it: "World War I", "H2O2", "Carbon-12"."""
    one, other = ("".join(part for part in given if part not in ARTICLES) for given in (tokens, wanted))
    letters = re.sub(r"\d", "", one)
    return one != other and letters == re.sub(r"\d", "", other) and letters != one and letters != other


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
