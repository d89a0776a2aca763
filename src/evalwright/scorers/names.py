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
    differs_in_digits,
    is_near,
    mentions,
    read,
    script_of,
    without_tag,
)
from evalwright.scorers.text.cues import cues, last_revision, months, words
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted, shortened, undecided

_SPACELESS = {"CJK": 10, "KANA": 12, "THAI": 18, "LAO": 18, "KHMER": 18, "MYANMAR": 18}
"""Scripts without spaces, and how many characters a bare name has at most."""
_MAYBE = word_set("maybe possibly perhaps could vielleicht peut quiza forse talvez")
_SUPPOSED = word_set("might could may would")
_ASKING = word_set("what which where when whose that this with from have does been were there their")
_INDEFINITE = word_set("a an ein eine un une uma um")
_UNTIL = word_set("until till bis hasta jusqu fino ate tot до sampai")
_WRONG = word_set("wrong false incorrect mistaken falsch faux falso out")
_JOINS = _MAYBE | word_set("and und et y e i og och en ve dan và plus и with mit avec con та oraz")
_RENAMED = word_set(
    "called known renamed named nicknamed aka alias formerly previously originally now today genannt bekannt heute ehemals connu appele",
    "aujourd llamado llamada conocido conocida hoy detto chiamato oggi chamado conhecido hoje genaamd bekend ныне известный сегодня",
)
_AND = re.compile(r"\s*(?:[,;/&、，\n]|\s(?:and|und|et|y|e|en|и|та|i|ve|dan|và|na|و|और|vs\.?)\s)\s*(?:-\s)?")
_OPENS = re.compile(r"(?<!\b[^\W\d_])\.(?=\s|$)|[,;:()–—、，،؛；：。（!]|\s-\s|$")
_MOST_SENTENCES, _MOST_WORDS, _MOST_ARTICLES, _PHRASE = 12, 60, 8, 4
_WITH, _THOUGH = re.compile("(?:[와과]|이나|거나)$"), re.compile("지만$")
"""How a Korean word ends that another is joined to, and a clause that the next one opposes."""
_NOTHING = "no answer recognised"
"""Why a sentence is undecided that offers no candidate at all."""


class _Sentence(NamedTuple):
    """What one sentence says. bare: it opens with a name that stands alone. shared: how many words of the question it has.

    about: those are half of them at least. named: it names a target that is neither denied nor an aside.
    """

    verdict: Verdict
    bare: bool
    shared: int
    about: bool
    named: bool

    @property
    def sure(self) -> bool:
        """Whether it is decided."""
        return not self.verdict.unsure


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self, targets: Sequence[Target], question: str, language: str, confusable: Sequence[str] = ()
    ) -> None:
        self.targets, self.confusable = targets, confusable
        self.cues = cues(language)
        code = language.split("-")[0]
        self.nouns = code == "de"
        self.inflected = code in ("pl", "ru", "uk", "tr", "ta", "hi", "ar")
        self.postfix = code in ("ko", "ja", "tr", "hi", "ta")
        asked = [token for token in read(plain(question[:2000])).tokens if token]
        self.asked = frozenset(token[:5] for token in asked)
        long = (one for one in asked if len(one) > 3 or not (one.isalpha() and one.isascii()))
        self.about = frozenset(token[:5] for token in long if token not in FUNCTION)
        self.whole = frozenset(form for one in targets for form in (*one.forms, " ".join(one.tokens)))
        self.longest = max(map(len, self.whole), default=0)
        self.common = any(target.text[:1].islower() for target in targets)
        self.restarts = self.cues.turns | words("sure", language)
        self.no_names = (
            HEADS | self.cues.negations | self.cues.aside | self.cues.turns | words("sure") | set(months())
        )

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        if self.is_target(said.text) and not said.after and not said.before:
            return correct(f"'{shortened(said.text)}' is a target as written")
        verdict = self._items(said.text) or self._sentences(said)
        reading = self._read(said.text)
        denied = not self._mentions(reading) and self.cues.denies(reading.tokens, said.text)
        if verdict.label == "incorrect" and denied:
            return undecided("something is denied, and no target is named")
        if said.marked and not verdict.unsure:
            if self._denied_in([said.after]) or last_revision(said.after) or declining_clause(said.after):
                return undecided(f"{verdict.why}, and something else after it")
            opening = (
                self.sentence(lines(said.before)[0])
                if "after '" in said.rule and lines(said.before)
                else None
            )
            if (
                opening is not None
                and opening.bare
                and not opening.verdict.unsure
                and opening.verdict.label != verdict.label
            ):
                return undecided(f"{verdict.why}, and something else at the beginning")
        bold = said.bold[0] if verdict.unsure and len(said.bold) == 1 else ""
        if bold and self.is_target(bold) and not self._denied_in([said.text]):
            return correct(f"'{bold}' in bold is a target")
        return verdict

    def _items(self, text: str) -> Verdict | None:
        """A target of several things ("red, green and blue") against a list of things; None where it is no such target or reply."""
        for target in self.targets if len(text) <= 300 else ():
            wanted, given = (
                [
                    " ".join(self._read(one).tokens).removeprefix("the ").removeprefix("and ")
                    for one in _AND.split(whole)
                ]
                for whole in (plain(target.text), text.strip(" ."))
            )
            if min(len(wanted), len(given)) < 2 or max(len(one.split()) for one in (*wanted, *given)) > 4:
                continue
            if sorted(given) == sorted(wanted):
                return correct("all the things of a target")
        return None

    # -- several sentences

    def _sentences(self, said: Said) -> Verdict:
        parts = lines(said.text)
        if len(parts) > _MOST_SENTENCES:
            parts = [*parts[: _MOST_SENTENCES // 2], *parts[-_MOST_SENTENCES // 2 :]]
        found = [self.sentence(part) for part in parts]
        kept = [one for one in found if one.verdict.why != _NOTHING]
        if not kept:
            declined = declining_clause(said.text)
            return not_attempted(f"gives no answer: {declined}") if declined else undecided(_NOTHING)
        first, last = kept[0], found[-1]
        if last.sure and said.last:
            clash = first.bare and first.sure and first.verdict.label != last.verdict.label
            return undecided("a beginning and an end that differ") if clash else last.verdict
        chosen = first
        if not (first.sure and first.bare):
            sure = [one for one in kept if one.sure]
            most = max((one.shared for one in sure), default=0)
            about = [one for one in sure if one.about or 0 < one.shared == most]
            if not first.sure and (first.named or first.about or not sure):
                return first.verdict
            if len({one.verdict.label for one in about or sure}) > 1 or not (about or first.sure):
                return undecided("sentences that differ")
            chosen = (about or sure)[0]
        others = [one for one in kept if one is not chosen]
        if chosen.verdict.label == "correct":
            unsure = self._denied_in(parts[found.index(chosen) + 1 :]) or (
                chosen is not found[0] and self._names(read(parts[0]), 0, 99) != []
            )
        else:
            unsure = any(one.named for one in others)
        return undecided(f"{chosen.verdict.why}, and perhaps something else") if unsure else chosen.verdict

    def _denied_in(self, parts: Sequence[str]) -> bool:
        """Whether a target is denied somewhere."""
        readings = [self._read(part) for part in parts if part]
        return any(self.denied(one, found) for one in readings for found in self._mentions(one))

    def _read(self, text: str) -> Reading:
        return aligned(read(text), self.targets, self.inflected)

    def _mentions(self, reading: Reading) -> list[Mention]:
        return mentions(reading, self.targets, self.confusable, self.asked)

    def _shared(self, tokens: Sequence[str]) -> set[str]:
        return {token[:5] for token in tokens} & self.about

    def _takes_up(self, tokens: Sequence[str]) -> bool:
        """Whether words hold at least half of the question's."""
        return len(self._shared(tokens)) * 2 >= max(len(self.about), 1)

    def _content(self, tokens: Sequence[str]) -> list[str]:
        """The words that are neither small ones nor the question's."""
        return [one for one in tokens if one and one not in FUNCTION and one[:5] not in self.asked]

    def _is_bare(self, text: str) -> bool:
        """Whether a text is nothing but a name, or a short noun where the targets are such."""
        reading = read(text)
        if not reading.tokens or len(reading.tokens) > 6 or "?" in text or ":" in text:
            return False
        content, script = self._content(reading.tokens), script_of(text)
        if script not in CASED:
            return 0 < len(content) <= _SPACELESS.get(script, 4)
        noun = 0 < len(content) <= 2 and (self.common or (self.nouns and len(content) == 1))
        if noun and set(reading.tokens) <= {*content, *ARTICLES}:
            return True
        named = zip(reading.cased, reading.tokens, strict=True)
        inner = PARTICLES | ARTICLES
        return not HEADS.issuperset(content) and all(
            word[:1].isupper() or token in inner for word, token in named
        )

    def is_target(self, text: str) -> bool:
        """Whether a text is a target and nothing else."""
        text = without_tag(text)
        tokens = self._read(text).tokens
        if "?" in text or len(tokens) > self.longest + _MOST_ARTICLES:
            return False
        while len(tokens) > 1 and tokens[0] in ARTICLES and " ".join(tokens) not in self.whole:
            tokens = tokens[1:]
        return " ".join(tokens) in self.whole or "".join(tokens) in self.whole

    # -- one sentence

    def sentence(self, text: str) -> _Sentence:
        """What one sentence says."""
        if self.is_target(text):
            return _Sentence(correct(f"'{shortened(text)}' is a target"), True, len(self.about), True, True)
        opening, reading = self._opening(text), self._read(text)
        tokens, found = reading.tokens, self._mentions(reading)
        verdict = self._sentence(reading, found, opening)
        bare = bool(opening) or self._is_bare(text)
        named = any(not self.denied(reading, one) and not self._aside(reading, one) for one in found)
        return _Sentence(verdict, bare, len(self._shared(tokens)), self._takes_up(tokens), named)

    def _opening(self, text: str) -> str:
        """The bare name with which a sentence opens, up to its first mark; "" where it opens otherwise."""
        end = _OPENS.search(text, 2)
        opening = text[: end.start()] if end else text
        tokens, pieces = read(opening).tokens, opening.split()
        small = FUNCTION - ARTICLES
        skipped = next((at for at, token in enumerate(tokens) if token not in small or at > 3), 0)
        name = " ".join(pieces[skipped:]) if skipped and len(pieces) == len(tokens) else opening.strip()
        return name if self._is_bare(name) and not self.cues.denies(tokens, opening) else ""

    def _sentence(self, reading: Reading, found: list[Mention], opening: str) -> Verdict:
        text, tokens = reading.text, reading.tokens
        if len(tokens) > _MOST_WORDS and script_of(text) in CASED:
            return undecided("a long sentence" if found else _NOTHING)
        if not found:
            return self._other(reading, opening)
        if "?" in without_tag(text) or self.cues.offers(
            [one for one in tokens if one not in self.asked], text
        ):
            return undecided("an alternative or a question")
        sure = [one for one in found if one.sure]
        free = [one for one in sure if not self.denied(reading, one) and not self._aside(reading, one)]
        if free:
            return self._given(reading, free[0], found, opening)
        if not sure:
            other = (opening or self._takes_up(tokens)) and all(self._anothers(reading, one) for one in found)
            return (
                incorrect(f"'{shortened(text)}' is another name") if other else undecided("a target in part")
            )
        if "than" in tokens and "other" not in tokens and self.cues.denies(tokens, ""):
            return undecided("a comparison that is denied")
        denied = all(self.denied(reading, one) for one in sure)
        others = (
            [opening] if opening and self._is_other(opening) else self._names(reading, 0, len(tokens), found)
        )
        if others and not _RENAMED.isdisjoint(tokens):
            return undecided("perhaps another name of it")
        apart = not denied and 0 < found[0].start == reading.clause(found[0].start, found[0].end)[0]
        before = not apart and others and others[0] in reading.cased[: found[0].start]
        if others and (denied or others[0] == opening or before):
            return incorrect(f"'{others[0]}' is given, and not the target")
        if denied and len(tokens) <= 6:
            return incorrect("the target is denied")
        return undecided("the target is denied or only mentioned")

    def _given(self, reading: Reading, one: Mention, found: Sequence[Mention], opening: str) -> Verdict:
        """A target stands in the sentence undenied: is it what the sentence offers?"""
        tokens = reading.tokens
        start = max(
            (at + 1 for at, token in enumerate(tokens[: one.start]) if token in self.restarts), default=0
        )
        after = tokens[one.end :]
        others = self._names(reading, start, one.start, found)
        if opening and not start and len(read(opening).tokens) <= one.start and self._is_other(opening):
            others = [opening]
        if others and not self._own_clause(reading, one):
            return undecided(f"'{others[0]}' comes before the target")
        words = (reading.cased[one.start - 1] if one.start else "", reading.cased[one.end - 1])
        if any(
            _WITH.search(word) and not word.endswith(token)
            for word, token in zip(words, (tokens[one.start - 1], tokens[one.end - 1]), strict=True)
        ):
            return undecided("another thing is joined to the target")
        joint = after[:1] and (after[0] in _JOINS or reading.gaps[one.end].strip() in ("/", "、"))
        if joint and self._names(reading, one.end, one.end + 3, found):
            return undecided("another thing is joined to the target")
        cased = script_of(reading.text) in CASED
        if one.start and re.search(r"[(（]", reading.gaps[one.start]) and not cased:
            return undecided("the target is in brackets")
        if cased and (why := self._of_another(reading, one)):
            return undecided(why)
        return correct(
            f"'{' '.join(reading.cased[one.start : one.end])}' is given, and no other name before it"
        )

    def _of_another(self, reading: Reading, one: Mention) -> str:
        """Why a mention with no other name before it may still not be the answer; "" where it is."""
        tokens, end = reading.tokens, len(reading.tokens)
        if tokens[one.end : one.end + 1] == ["s"] and self._content(tokens[one.end + 1 : one.end + 2]):
            return "something of the target's"
        once = next((at for at in range(one.end, end) if tokens[at] in _UNTIL), end)
        if self._names(reading, once, end):
            return "the target was the answer once"
        wrong = next((at for at in range(one.end, end) if tokens[at] in _WRONG and tokens[at] != "out"), end)
        if wrong < end and not self._names(reading, one.end, wrong):
            return "something is said to be wrong"
        first, last = reading.clause(one.start, one.end)
        rest = [*tokens[first : one.start], *tokens[one.end : last]]
        spoken = HEADS | self.restarts
        content = [token for token in self._content(rest) if token not in spoken and token != "s"]
        ends = ((one.start - 1, one.start), (one.end, one.end))
        beside = any(
            tokens[at] in content and re.fullmatch("[ -]", reading.gaps[gap])
            for at, gap in ends if first <= at < last and not (at == 0 and tokens[0].isdecimal())
        )  # fmt: skip
        if beside and end <= _PHRASE and ARTICLES.issuperset(token for token in rest if token not in content):
            return "the target in a longer name"
        more = {token[:5] for token in tokens[last:] if len(token) > 3} - {
            token[:5] for token in tokens[first:last]
        }
        if content and more & self.asked - _ASKING and self._names(reading, one.end, end):
            return "another clause says more of the question"
        before, mine = tokens[:first], self._shared(tokens[first:last])
        if content and not mine and self._shared(before) and self._content(before):
            return "the target in a later clause"
        noun = reading.cased[one.end - 1][:1].islower()
        aside = noun and self._content(before) and self._takes_up(before) and mine <= self._shared(before)
        return (
            "the target in a later clause" if aside and self.restarts.isdisjoint(tokens[: one.start]) else ""
        )

    def _own_clause(self, reading: Reading, one: Mention) -> bool:
        """Whether the clause of a mention holds no other name, and a word of the question that no clause before it has."""
        start, end = reading.clause(one.start, one.end)
        if not start or self._names(reading, start, one.start) or self._names(reading, one.end, end):
            return False
        return bool(self._shared(reading.tokens[start:end]) - self._shared(reading.tokens[:start]))

    def denied(self, reading: Reading, one: Mention) -> bool:
        """Whether a negation stands before a mention in its clause, or right after it."""
        tokens = reading.tokens
        first, last = reading.clause(one.start, one.end)
        before = tokens[max(first, one.start - 6) : one.start]
        if before[-2:] == ["anything", "but"] or not _WRONG.isdisjoint(tokens[one.end : one.end + 5]):
            return True
        before = before[self.cues.turn_in(before) :]
        if before[-2:] == ["other", "than"]:
            return False
        before = [] if self.postfix else before
        near, after = (
            tokens[one.end : min(last, one.end + 3)],
            "".join(tokens[one.end : min(last, one.end + 8)]),
        )
        return self.cues.denies([*before, *near], "".join(before)[-8:]) or self.cues.denies([], after)

    def _aside(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention only explains another name ("the rival of ...", "after ..."): such a word stands near before it."""
        end = reading.clause(one.start, one.end)[1]
        if end < len(reading.tokens) and _THOUGH.search(reading.cased[end - 1]):
            return True
        start = max(self.cues.turn_in(reading.tokens[: one.start]), one.start - 4)
        near = reading.tokens[start : one.start]
        if near[-2:] == ["other", "than"]:
            return False
        return "than" in near[-2:] or any(
            one in self.cues.aside and one[:5] not in self.asked for one in near
        )

    def _anothers(self, reading: Reading, one: Mention) -> bool:
        """Whether a mention is another person's name: a surname with given names that cannot be the target's."""
        own = [token for token in reading.tokens[one.start : one.end] if token not in HEADS]
        fits = [target for target in self.targets if target.given and " ".join(own).endswith(target.surname)]
        own = own[: -len(fits[0].surname.split())] if fits else []
        return bool(own) and all(another_given(a, b) for target in fits for b in target.given for a in own)

    def _is_other(self, text: str) -> bool:
        """Whether a bare name is surely none of the targets."""
        reading = self._read(text)
        found = self._mentions(reading)
        if found:
            return all(not one.sure and self._anothers(reading, one) for one in found)
        return not is_near(self._content(reading.tokens), self.targets)

    def _names(self, reading: Reading, start: int, end: int, found: Sequence[Mention] = ()) -> list[str]:
        """Capitalised words between two places that are neither the question's nor a target's, nor in a clause that denies."""
        out = []
        for place in range(start, min(end, len(reading.tokens))):
            word, token = reading.cased[place], reading.tokens[place]
            beside = reading.cased[place + 1][:1] if place + 1 < len(reading.cased) else ""
            if (
                not word[:1].isupper()
                or len(token) < 2
                or token in self.no_names
                or not self._content([token])
            ):
                continue
            if place == 0 and not (beside and (beside.isupper() or reading.tokens[1] in FUNCTION)):
                continue
            if any(one.start <= place < one.end for one in found) or self.denied(
                reading, Mention(place, place + 1, True)
            ):
                continue
            out.append(word)
        return out

    def _other(self, reading: Reading, opening: str) -> Verdict:
        """No target in a sentence: is it surely another answer?"""
        tokens, text, script = reading.tokens, reading.text, script_of(reading.text)
        content = self._content(tokens)
        if script and content and all(target.script != script for target in self.targets):
            return undecided("no target, and nothing that can be compared")
        if not script or not content or "?" in text or (self.cues.denies(tokens, text) and not opening):
            return undecided(_NOTHING)
        if all(differs_in_digits(tokens, target.tokens) for target in self.targets):
            return incorrect(f"'{shortened(text)}' has other digits than the target")
        if not _RENAMED.isdisjoint(tokens):
            return undecided("perhaps another name of it")
        explained = opening and self._is_other(opening) and not self.cues.aside.isdisjoint(tokens)
        if is_near(content, self.targets) and not explained:
            return undecided("something like a target")
        if opening or (len(content) <= 4 and self._is_bare(text)):
            return self._bare_other(opening or text)
        short = len(content) <= (8 if script in _SPACELESS else 2 if script in CASED else 3)
        if (
            (self.common or script not in CASED)
            and short
            and self._takes_up(tokens)
            and self.cues.aside.isdisjoint(tokens)
        ):
            return incorrect(f"'{shortened(text)}' gives no target")
        if not self.common and script in CASED and (name := self._only_name(reading)):
            return incorrect(f"'{name}' is given, and no target")
        return undecided(_NOTHING)

    def _bare_other(self, name: str) -> Verdict:
        """A bare name that is none of the targets; one that may be a symbol, an abbreviation or a nickname of a target is open."""
        tokens, letters = read(name).tokens, "".join(name.split())
        symbol = re.fullmatch(r"[A-Z][a-z]?|[A-Z]{2,5}", letters) and not all(
            len(one.text) <= 3 or one.text.isupper() for one in self.targets
        )
        if symbol or (len(tokens) > 2 and tokens[0] == "the" and letters[3:4].isupper()):
            return undecided(f"'{shortened(name)}' may be short for a target or another name of it")
        return incorrect(f"'{shortened(name)}' is none of the targets")

    def _only_name(self, reading: Reading) -> str:
        """The name that is all that a sentence gives up to its first comma or the like; "" where it says more."""
        tokens = reading.tokens[: reading.clause(0, 1)[1]]
        places = [at for at, token in enumerate(tokens) if self._content([token])]
        run = [at for at in places if reading.cased[at][:1].isupper()]
        more, about = len(places) - len(run), self._takes_up(tokens)
        if not run or len(run) > 4 or run[-1] - run[0] > len(run) or more > 1:
            return ""
        if not (self.cues.aside | _SUPPOSED).isdisjoint(reading.tokens):
            return ""
        owner = reading.tokens[run[-1] + 1 : run[-1] + 2] == ["s"]
        if owner or (run[0] and tokens[run[0] - 1] in _INDEFINITE):
            return ""  # "Freddie Mercury's band", "a Soviet cosmonaut"
        alone = not more and (tokens[0] in FUNCTION or (run[0] == 0 and bool(self._shared(tokens))))
        return " ".join(reading.cased[run[0] : run[-1] + 1]) if about or alone else ""
