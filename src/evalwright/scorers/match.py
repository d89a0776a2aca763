"""Names: does a reply give a target, or surely something else?

A target is found at word boundaries in any script, after one spelling of signs, case, accents, articles and punctuation. Then only
what a reader would not argue about is decided: a target that stands alone or is the only thing a sentence offers is correct; a
short, committed answer that shares nothing with any target is incorrect; everything else is undecided.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.text.countries import COUNTRIES
from evalwright.scorers.text.cues import Cues, cues, last_revision
from evalwright.scorers.text.declining import declining_clause
from evalwright.scorers.text.locate import Said, lines
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_ARTICLES = frozenset(
    [
        "the",
        "a",
        "an",
        "der",
        "die",
        "das",
        "den",
        "dem",
        "ein",
        "eine",
        "le",
        "la",
        "les",
        "l",
        "un",
        "une",
        "el",
        "los",
        "las",
        "lo",
        "il",
        "gli",
        "i",
        "o",
        "os",
        "as",
        "um",
        "uma",
        "het",
        "de",
        "een",
        "ang",
        "al",
    ]
)
_HEADS = frozenset(
    [
        "mount",
        "mt",
        "lake",
        "river",
        "ocean",
        "sea",
        "desert",
        "island",
        "islands",
        "mountains",
        "strait",
        "gulf",
        "falls",
        "planet",
        "sir",
        "dame",
        "lady",
        "lord",
        "dr",
        "doctor",
        "prof",
        "professor",
        "mr",
        "mrs",
        "ms",
        "president",
        "king",
        "queen",
        "pope",
        "saint",
        "pres",
        "emperor",
        "prince",
        "princess",
        "chancellor",
        "senator",
        "general",
        "captain",
        "colonel",
        "madame",
        "ir",
    ]
)
_PLACES = frozenset(["mount", "lake", "river", "planet", "hurricane", "comet"])
_TAILS = frozenset(["ocean", "sea", "river", "desert", "lake", "island", "islands", "mountains"])
_FUNCTION = frozenset(
    [
        "it",
        "is",
        "was",
        "are",
        "were",
        "be",
        "been",
        "that",
        "this",
        "these",
        "those",
        "he",
        "she",
        "they",
        "his",
        "her",
        "its",
        "their",
        "i",
        "we",
        "you",
        "there",
        "here",
        "who",
        "which",
        "what",
        "in",
        "on",
        "at",
        "by",
        "of",
        "to",
        "for",
        "from",
        "with",
        "as",
        "and",
        "so",
        "then",
        "would",
        "think",
        "believe",
        "guess",
        "suppose",
        "say",
        "d",
        "ll",
        "s",
        "m",
        "re",
        "ve",
        "my",
        "your",
        "our",
        "has",
        "have",
        "had",
        "does",
        "did",
        "do",
        "know",
        "sure",
        "well",
        "yes",
        "ok",
        "okay",
        "certainly",
        "indeed",
        "course",
        "fact",
        "called",
        "answer",
        "capital",
        "name",
        "city",
        "country",
        "town",
        "person",
        "correct",
        "right",
        "question",
        "looking",
        "one",
        "known",
        "also",
        "just",
        "simply",
        "probably",
        "likely",
        "maybe",
        "perhaps",
        "es",
        "ist",
        "war",
        "das",
        "dies",
        "er",
        "sie",
        "wurde",
        "von",
        "im",
        "am",
        "zu",
        "auf",
        "c",
        "est",
        "etait",
        "ce",
        "il",
        "elle",
        "par",
        "dans",
        "du",
        "des",
        "es",
        "fue",
        "era",
        "son",
        "por",
        "en",
        "se",
        "llama",
        "e",
        "foi",
        "era",
        "ele",
        "ela",
        "pelo",
        "pela",
        "no",
        "na",
        "di",
        "da",
        "del",
        "della",
        "fu",
        "era",
        "nel",
        "dit",
        "is",
        "het",
        "werd",
        "door",
        "van",
        "это",
        "был",
        "была",
        "by",
        "to",
        "jest",
        "byl",
        "jest",
        "adalah",
        "ialah",
        "itu",
        "yang",
        "oleh",
        "la",
        "do",
        "ni",
        "ya",
    ]
)
_PREFACE = re.compile(
    r"^(?:(?:if|unless) i(?:'m| am|’m) (?:not )?(?:mistaken|wrong|correct|right)|if i (?:recall|remember)(?: correctly| right)?|to (?:my|the best of my) knowledge),?\s+",
    re.IGNORECASE,
)
_PARTICLE = re.compile(
    r"(?:이라고|라고|입니다|이에요|예요|이었습니다|였습니다|이다|이며|이고|이지만|에서|에게|으로|까지|부터|이|가|은|는|을|를|의|에|로|와|과|도|만|랑|야|다)$"
)
_NOT_WORD = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
_MOST_PHRASE, _MOST_WORDS = 6, 45
"""Words of what may be a bare answer, and of a sentence that is still read."""
_MOST_MENTIONS = 30
"""A reply that names the target more often is not read further."""
_LEAST_NEAR = 4
_MAYBE = frozenset(
    ["maybe", "possibly", "perhaps", "could", "or", "even", "vielleicht", "peut", "quiza", "forse", "talvez"]
)
_JOINS = frozenset(["and", "und", "et", "y", "e", "i", "og", "och", "en", "ve", "dan", "và", "plus", "as"])
_CASED = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")
_ALIASING = frozenset(
    [
        "called",
        "known",
        "named",
        "renamed",
        "formerly",
        "today",
        "now",
        "alias",
        "aka",
        "nee",
        "called",
        "nowadays",
        "heute",
        "hiess",
        "genannt",
        "appele",
        "llamado",
        "chiamato",
    ]
)
Parts = str


class Reading(NamedTuple):
    """A stretch of text as it is matched: its words as written, folded, and the folded words between spaces."""

    text: str
    cased: list[str]
    tokens: list[str]
    joined: str


def read(text: str) -> Reading:
    """A plain text as it is matched; apostrophes divide words, "isn't" is "is not"."""
    text = _NOT_WORD.sub(" not", _PREFACE.sub("", text)).replace("'", " ").replace("’", " ")
    words = Words(text)
    tokens = [
        _numeral(token, word, place)
        for place, (token, word) in enumerate(zip(words.folded_tokens, words.cased, strict=True))
    ]
    tokens = [_PARTICLE.sub("", token) or token if "가" <= token[-1:] <= "힣" else token for token in tokens]
    return Reading(text, words.cased, tokens, f" {' '.join(tokens)} ")


def repaired(reading: Reading, targets: Sequence[Target]) -> Reading:
    """The reading with words that misspell a word of a target as that word: a letter doubled, left out inside, or two swapped."""
    wanted = {token for target in targets for token in target.tokens if len(token) >= 6}
    tokens = [next((word for word in wanted if _slip(token, word)), token) for token in reading.tokens]
    return (
        reading._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")
        if tokens != reading.tokens
        else reading
    )


def _slip(token: str, word: str) -> bool:
    if abs(len(token) - len(word)) > 1 or len(token) < 6 or token == word or token[0] != word[0]:
        return False
    place = next(
        (i for i, (a, b) in enumerate(zip(token, word, strict=False)) if a != b), min(len(token), len(word))
    )
    if len(token) == len(word):
        return (
            token[place + 2 :] == word[place + 2 :]
            and token[place : place + 2] == word[place : place + 2][::-1]
        )
    longer, shorter = (token, word) if len(token) > len(word) else (word, token)
    doubled = longer[place] == longer[place - 1]
    return longer[:place] + longer[place + 1 :] == shorter and (
        doubled or (1 < place < len(longer) - 1 and (longer is word or len(word) >= 8))
    )


_NUMERALS = {
    word: str(value)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th 13th 14th 15th 16th 17th 18th 19th 20th 21st",
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi",
    )
    for value, word in enumerate(words.split(), 1)
}


def _numeral(token: str, word: str, place: int) -> str:
    """A small number in words, as an ordinal or in Roman numerals as digits; Roman ones only in capitals and not first."""
    if token not in _NUMERALS or (set(token) <= set("ivx") and (not word.isupper() or not place)):
        return token
    return _NUMERALS[token]


@dataclass(frozen=True)
class Target:
    """One accepted form. tokens: folded; alone: forms that are enough as a whole answer; given: first names of a person."""

    text: str
    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    given: tuple[str, ...]
    surname: str
    script: str


@lru_cache(maxsize=2048)
def targets_of(targets: tuple[str, ...], parts: Parts = "full") -> tuple[Target, ...]:
    """The targets prepared for matching."""
    return tuple(_target(target, parts) for target in targets)


def _target(text: str, parts: Parts) -> Target:
    reading = read(plain(text))
    tokens = tuple(reading.tokens)
    core = tokens[1:] if len(tokens) > 1 and tokens[0] in _ARTICLES else tokens
    forms = [" ".join(core), "".join(core)]
    german = fold(text.casefold().translate(_GERMAN)).split()
    if any(char in text for char in "äöüÄÖÜøØåÅ"):
        forms.append(" ".join(german))
    if len(core) == 2 and (core[0] in _PLACES or core[1] in _TAILS):
        forms.append(core[1] if core[0] in _PLACES else core[0])
    words = [word for word in reading.cased if word]
    is_name = len(core) > 1 and all(
        word[:1].isupper() or word.casefold() in _NAME_PARTICLES for word in words
    )
    given: tuple[str, ...] = ()
    surname = ""
    if is_name and not any(map(str.isdigit, text)) and not {"of", "the", "and"} & set(core):
        first = next(
            (place for place, token in enumerate(core) if place and token in _NAME_PARTICLES), len(core) - 1
        )
        given, surname = core[:first], " ".join(core[first:])
        forms.append(f"{surname} {' '.join(given)}")
        forms += [surname] if parts in ("surname", "any") else []
        forms += [given[0]] if parts in ("given", "any") else []
    return Target(
        text, tokens, tuple(dict.fromkeys(form for form in forms if form)), given, surname, script_of(text)
    )


_GERMAN = {ord(char): other for char, other in zip("äöüøå", ("ae", "oe", "ue", "oe", "aa"), strict=True)}
_NAME_PARTICLES = frozenset(
    [
        "l",
        "d",
        "van",
        "von",
        "der",
        "den",
        "de",
        "da",
        "di",
        "del",
        "della",
        "la",
        "le",
        "du",
        "dos",
        "das",
        "ten",
        "ter",
        "bin",
        "ibn",
        "al",
        "el",
        "af",
        "av",
        "zu",
    ]
)


def script_of(text: str) -> str:
    """The script of most letters, as the first word of their Unicode names; "" without letters. Kana beside Han counts as Han."""
    counts: dict[str, int] = {}
    for char in text[:400]:
        if char.isalpha():
            name = "LATIN" if char.isascii() else unicodedata.name(char, "").partition(" ")[0]
            name = "KANA" if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name
            counts[name] = counts.get(name, 0) + 1
    if "CJK" in counts and len(counts) <= 2:
        return "CJK"
    return max(counts, key=lambda name: counts[name]) if counts else ""


class Mention(NamedTuple):
    """Where a target stands in a reading: token places; sure: it is the target and not a part of another name."""

    start: int
    end: int
    sure: bool


def mentions(reading: Reading, targets: Sequence[Target], confusable: Sequence[str] = ()) -> list[Mention]:
    """Where targets stand, in order; of several at one place the longest."""
    found: dict[int, Mention] = {}
    taken = [span for name in confusable for span in _spans(reading, " ".join(read(plain(name)).tokens))]
    for target in targets:
        for form in target.forms:
            for start, end in _spans(reading, form):
                if any(first <= start and end <= last for first, last in taken):
                    continue
                start, sure = _with_given_names(reading, start, end, target)
                best = found.get(end)
                if best is None or (sure, best.start) > (best.sure, start):
                    found[end] = Mention(start, end, sure)
        if target.surname:
            for start, end in _spans(reading, target.surname):
                first, sure = _with_given_names(reading, start, end, target)
                if end not in found and first < start:
                    found[end] = Mention(first, end, sure)
    kept = [
        one
        for one in found.values()
        if not any(o.start <= one.start and one.end < o.end for o in found.values())
    ]
    return sorted(kept)


def _spans(reading: Reading, form: str) -> list[tuple[int, int]]:
    """Token places of a form, also where it is written together or apart."""
    out = []
    position = reading.joined.find(f" {form} ") if form else -1
    while position >= 0 and len(out) < _MOST_MENTIONS:
        start = reading.joined.count(" ", 0, position)
        out.append((start, start + form.count(" ") + 1))
        position = reading.joined.find(f" {form} ", position + 1)
    if len(form) >= 5 and " " not in form:
        tokens = reading.tokens
        for start, token in enumerate(tokens):
            if not token or not form.startswith(token) or token == form:
                continue
            whole, end = token, start + 1
            while end < len(tokens) and len(whole) < len(form):
                whole, end = whole + tokens[end], end + 1
            if whole == form:
                out.append((start, end))
    return out


def _with_given_names(reading: Reading, start: int, end: int, target: Target) -> tuple[int, bool]:
    """Where a name begins with the given names before it, and whether they may be the target's.

    "Theo van Gogh" is not Vincent van Gogh; "V. van Gogh" and "Sir Alexander Fleming" are whom they seem.
    """
    whole = " ".join(reading.tokens[start:end])
    full = whole == " ".join(target.tokens) or (
        len(target.tokens) > 1 and " " in whole and whole != target.surname
    )
    first = start
    while (
        first > 0
        and not (full and reading.tokens[first - 1] in _NAME_PARTICLES)
        and _is_name_word(reading, first - 1)
        and _touch(reading, first - 1)
    ):
        first -= 1
    own = [
        token for token in reading.tokens[first:start] if token not in _HEADS and token not in _NAME_PARTICLES
    ]
    after = end < len(reading.tokens) and _is_name_word(reading, end) and _touch(reading, end - 1)
    if not own:
        return start, not after
    if full or not target.given or whole not in (target.surname, *target.forms):
        return start, not after and first == start
    middles, more = target.given[1:], own[1:]
    fits = _initial(own[0], target.given[0]) and all(
        any(_initial(one, middle) for one in more) for middle in middles if more
    )
    return first, fits and not after and (not middles or len(more) <= len(middles))


def _initial(one: str, other: str) -> bool:
    """Whether two given names may be the same: equal, or one is the other's first letters."""
    return (
        other.startswith(one)
        or one.startswith(other)
        or (len(one) > 1 and other.startswith(one[0]) and len(one) <= 2)
    )


def _alike(one: str, other: str) -> bool:
    """Whether two given names may be spellings of one: the same first letter, or letters that transliterations exchange."""
    return one[:1] == other[:1] or any(
        {one[:1], other[:1]} <= set(group) for group in ("ijy", "ckqx", "vw", "fp", "sz", "gh", "eyi")
    )


def _is_name_word(reading: Reading, place: int) -> bool:
    word, token = reading.cased[place], reading.tokens[place]
    if place == 0 and len(token) > 1 and (token in _FUNCTION or token in _ARTICLES):
        return False
    return word[:1].isupper() or (
        token in _NAME_PARTICLES and place > 0 and reading.cased[place - 1][:1].isupper()
    )


def _touch(reading: Reading, place: int) -> bool:
    """Whether only a space, a full stop or a hyphen stands between a token and the next."""
    pattern = re.escape(reading.cased[place]) + r"\.?[ -]?" + re.escape(reading.cased[place + 1])
    return re.search(pattern, reading.text) is not None


# -- what of a reply is certain -----------------------------------------------------------------------------------------


class Names:
    """The targets of one sample, and what its question says, against which replies are judged."""

    def __init__(
        self, targets: Sequence[Target], question: str, language: str, confusable: Sequence[str] = ()
    ) -> None:
        self.targets = targets
        self.cues: Cues = cues(language)
        self.confusable = confusable
        self.asked = frozenset(token[:5] for token in read(plain(question[:2000])).tokens)
        self.whole = frozenset(
            form for target in targets for form in (*target.forms, " ".join(target.tokens))
        )

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        if said.marked:
            verdict = self._phrase(said.text)
            return self._unless_revised(verdict, said.after)
        return self._running(said)

    def _running(self, said: Said) -> Verdict:
        parts = lines(said.text)
        if not parts:
            return undecided("no words that could be a name")
        if self._is_target(said.text):
            return correct(f"'{_shown(said.text)}' is a target as written")
        change = last_revision(said.text)
        if change is not None and said.text[change[1] :].strip(" .,;:!?-"):
            return self._after_change(said.text[: change[0]], said.text[change[1] :].strip(" .,;:!?-"))
        while len(parts) > 1 and self._says_nothing(parts[0]):
            parts = parts[1:]
        if len(parts) > 1 and (
            all(self._is_bare_name(part.lstrip("0123456789.) ")) for part in parts) or "?" in parts[0]
        ):
            return undecided("a list or a question")
        opening = self._phrase(parts[0])
        if len(parts) == 1:
            return self._bold(said, opening)
        later = [
            (reading, one)
            for part in parts[1:]
            for reading in (read(part),)
            for one in mentions(reading, self.targets)
        ]
        open_mentions = [one for reading, one in later if not self.denied(reading, one)]
        concluded = self._concludes(said.text, parts)
        if opening.label == "correct":
            if len(open_mentions) < len(later) or (concluded is not None and concluded.label == "incorrect"):
                return undecided(f"{opening.why}, and something else later")
            return opening
        if opening.label == "incorrect" and self._is_bare_name(parts[0]):
            aliased = any(not _ALIASING.isdisjoint(reading.tokens) for reading, _ in later)
            explicit = not self.cues.sure.isdisjoint(read(parts[-1]).tokens[:3]) and open_mentions
            return undecided(f"{opening.why}; a target comes later") if aliased or explicit else opening
        if concluded is not None and concluded.label != "undecided":
            return concluded
        if opening.label == "incorrect" and not open_mentions and len(parts) < 3:
            return opening
        return self._bold(
            said, opening if opening.label == "undecided" else undecided(f"{opening.why}; more is said later")
        )

    def _says_nothing(self, text: str) -> bool:
        """Whether a sentence is a courtesy or only small words ("Great question!", "No.")."""
        tokens = read(text).tokens
        if mentions(read(text), self.targets) or len(tokens) > 5:
            return False
        return text.rstrip().endswith(("!", "！")) or all(
            token in _FUNCTION or token in _ARTICLES or token in self.cues.negations for token in tokens
        )

    def _is_bare_name(self, text: str) -> bool:
        """Whether a sentence is nothing but a name."""
        reading = read(text)
        if (
            len(reading.tokens) > 5
            or "?" in text
            or ":" in text
            or any(len(token) < 3 for token in reading.tokens[-1:] if token.isascii())
        ):
            return False
        if not reading.tokens or script_of(text) in _CASED:
            return all(
                word[:1].isupper() or token in _NAME_PARTICLES | _ARTICLES
                for word, token in zip(reading.cased, reading.tokens, strict=True)
            )
        return len("".join(reading.cased)) <= 8

    def _bold(self, said: Said, verdict: Verdict) -> Verdict:
        """One thing in bold that is the target decides what else would not be decided."""
        if verdict.label == "undecided" and len(said.bold) == 1 and self._is_target(said.bold[0]):
            reading = read(said.text)
            found = mentions(reading, self.targets, self.confusable)
            if found and not any(self.denied(reading, one) for one in found):
                return correct(f"'{said.bold[0]}' in bold is a target")
        return verdict

    def _after_change(self, before: str, after: str) -> Verdict:
        parts = lines(after)
        if declining_clause(after) is not None:
            return undecided("a change of mind, and no answer after it")
        last = self._phrase(parts[0]) if parts else undecided("nothing after a change of mind")
        if last.label == "correct" or (last.label == "incorrect" and len(parts) == 1):
            return last._replace(why=f"after a change of mind: {last.why}")
        return undecided("a change of mind")

    def _concludes(self, text: str, parts: Sequence[str]) -> Verdict | None:
        """The last sentence where it says that it concludes, or is a paragraph of its own."""
        reading = read(parts[-1])
        own = text.rstrip().rpartition("\n\n")[2].strip()
        opens = reading.tokens[:2] and not self.cues.sure.isdisjoint(reading.tokens[:3])
        if not opens and not (own and own == parts[-1] and self._is_about(reading)):
            return None
        turn = parts[-1].rpartition(":")[2] if ":" in parts[-1] else parts[-1]
        return self._phrase(turn if turn.strip() else parts[-1])

    def _is_about(self, reading: Reading) -> bool:
        """Whether a sentence is about what is asked: it shares content with the question."""
        return (
            sum(
                token[:5] in self.asked
                for token in reading.tokens
                if token not in _FUNCTION and len(token) > 3
            )
            > 0
        )

    def _unless_revised(self, verdict: Verdict, after: str) -> Verdict:
        if verdict.label != "undecided" and after:
            reading = read(after)
            if last_revision(after) is not None or any(
                self.denied(reading, one) for one in mentions(reading, self.targets)
            ):
                return undecided(f"{verdict.why}, and something else after it")
        return verdict

    def _is_target(self, text: str) -> bool:
        reading = read(text)
        tokens = reading.tokens
        while len(tokens) > 1 and tokens[0] in _ARTICLES and " ".join(tokens) not in self.whole:
            tokens = tokens[1:]
        whole = " ".join(tokens)
        plural = (
            len(tokens) == 1
            and any(whole == f"{form}s" for form in self.whole if form.islower())
            and reading.cased[-1].islower()
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
            if all(one.start == 0 or one.end - one.start > 1 for one in found) and self._conflicting(
                reading, found
            ):
                return incorrect(f"'{_shown(text)}' is another name")
            return undecided("a part of a target, or a target in a longer name")
        if all(self.denied(reading, one) for one in found):
            tail = reading.tokens[found[-1].end :]
            others = self._candidates(reading, 0, len(reading.tokens), found)
            if "?" in text or self.cues.offers(reading.tokens, text) or self._doubly(reading):
                return undecided("the target is denied, or offered beside others")
            if others and len(tail) < _MOST_WORDS:
                return incorrect(f"the target is denied, and '{others[0]}' is given")
            most = 8 if script_of(text) in _CASED else 24
            return (
                incorrect("the target is denied")
                if len(reading.tokens) <= most and not self.cues.turn_in(reading.tokens)
                else undecided("the target is denied")
            )
        return self._given(reading, found)

    def _given(self, reading: Reading, found: Sequence[Mention]) -> Verdict:
        """A target stands in the sentence undenied: is it the only thing that it offers?"""
        turn = self.cues.turn_in(reading.tokens)
        sure = [one for one in found if one.sure and not self.denied(reading, one)]
        if turn and all(one.start >= turn for one in found):
            rest = reading.tokens[turn : found[0].start]
            if (
                len(rest) <= 8
                and not self._candidates(reading, turn, found[0].start, found)
                and not self._troubled(reading, turn, sure[0])
            ):
                return correct(f"'{_named(reading, sure[0])}' after a contrast")
            return undecided("a contrast before the target")
        one = sure[0]
        if len(sure) < len(found):
            return undecided("the target is both given and denied, or only in part")
        start = self._clause_start(reading, one)
        if start is None:
            return undecided("the target stands in a later clause")
        others = self._candidates(reading, start, one.start, found)
        if others:
            return undecided(f"'{others[0]}' stands before the target")
        if self._troubled(reading, start, one):
            return undecided("the target may stand beside the answer")
        if other := self._beside(reading, sure[-1], found):
            return undecided(f"'{other}' stands beside the target")
        return correct(f"'{_named(reading, one)}' is the only name given")

    def _troubled(self, reading: Reading, start: int, one: Mention) -> bool:
        """Whether the clause holds words that make the mention less than an answer."""
        tokens = reading.tokens
        before, after = tokens[start : one.start], tokens[one.end : one.end + 4]
        text = reading.text
        if "than" in before[-2:] or {"anything", "everything", "all"} & set(reading.tokens[: one.start]):
            return True
        if (
            reading.text[:1].isupper()
            and _named(reading, one).islower()
            and any(map(str.isupper, "".join(target.text for target in self.targets)))
            and len(tokens) < 4
        ):
            return True
        if self._gap(reading, one.end)[:1] in ("^", "=", "*"):
            return True
        if (
            "?" in text
            or "？" in text
            or "±" in text
            or ("/" in text and not any("/" in target.text for target in self.targets))
        ):
            return True
        aside = self.cues.aside
        followed = any(place in range(one.end, one.end + 8) for place in self._also(reading, one))
        asked = [
            token
            for token in (*before, *(() if followed else after))
            if token in aside and token[:5] not in self.asked
        ]
        if asked or after[:1] == ["s"] or (before and not self._leads_in(before)):
            return True
        if (
            self.cues.denies(before, " ".join(before))
            or self.cues.offers(tokens, text)
            or self.cues.denies(after[:3], "")
        ):
            return True
        return not text.isascii() and (self.cues.turns_in(text) or self.cues.denies([], text))

    def _beside(self, reading: Reading, one: Mention, found: Sequence[Mention]) -> str:
        """Another name that a list, an "and" or a "but" puts beside the target."""
        others = [
            word
            for word in self._candidates(reading, one.end, len(reading.tokens), found)
            if word.casefold() not in COUNTRIES
        ]
        tokens = reading.tokens[one.end :]
        if not tokens:
            return ""
        if others and self.cues.turn_in(tokens):
            return others[0]
        if re.search(r"\n\s*\d{0,2}[.);-]?\s*\S", reading.text) or ("?" in self._gap(reading, one.end)):
            return " ".join(tokens[:3])
        gap = self._gap(reading, one.end)
        listed = ("," in gap or ";" in gap or "、" in gap or "/" in gap) and (
            reading.cased[one.end][:1].isupper() or tokens[0] in _MAYBE
        )
        joined = tokens[0] in _JOINS or (len(tokens) <= 8 and listed)
        asserted = (
            not {"is", "was", "are", "which", "who", "in", "by"}.isdisjoint(tokens[:2])
            and tokens[0] not in _JOINS
        )
        if joined and others and not asserted:
            return others[0]
        if joined and not others and len(tokens) <= 4 and script_of(reading.text) not in _CASED:
            return reading.cased[one.end]
        predicate = [token for token in tokens[:6] if not token.isdigit()]
        subject = one.start == 0 and tokens[0] in ("is", "was", "are", "were")
        if subject and not any(
            token[:5] in self.asked
            for token in predicate[1:]
            if len(token) > 2 and token not in _FUNCTION | _ARTICLES
        ):
            return " ".join(tokens[:3])
        return ""

    def _also(self, reading: Reading, one: Mention) -> list[int]:
        """Where targets stand after a mention of one: "wolfram, better known as tungsten"."""
        return [
            other.start for other in mentions(reading, self.targets) if other.start >= one.end and other.sure
        ]

    def _leads_in(self, before: Sequence[str]) -> bool:
        """Whether what stands before a target only leads to it: words of the question, small words, few others."""
        unknown = [
            token
            for token in before
            if token not in _FUNCTION
            and token not in _ARTICLES
            and token[:5] not in self.asked
            and len(token) > 2
        ]
        joins = {
            "and",
            "und",
            "et",
            "y",
            "e",
            "i",
            "и",
            "en",
            "ve",
            "dan",
            "with",
            "mit",
            "avec",
            "con",
        } & set(before)
        if joins and unknown:
            return False
        related = before[-1] in ("of", "for", "from") and len(before) > 1 and before[-2] in unknown
        return len(unknown) <= 4 and not related

    def _clause_start(self, reading: Reading, one: Mention) -> int | None:
        """Where the clause of a mention begins; None where an earlier clause may already have answered."""
        position, end = 0, 0
        for place, word in enumerate(reading.cased[: one.start + 1]):
            found = reading.text.find(word, position)
            gap = reading.text[position:found] if place else ""
            position = found + len(word)
            if re.search(r"[,;:()–—，、；：。]|\s-\s", gap):
                lead = reading.tokens[end:place]
                named = any(
                    word[:1].isupper() or len(word) > 3
                    for word, token in zip(reading.cased[end:place], lead, strict=True)
                    if token not in _FUNCTION | self.cues.negations and token[:5] not in self.asked
                )
                if self.cues.denies(lead, "".join(lead)) and named and not self.cues.offers(lead, ""):
                    end = place
                    continue
                if not all(
                    token in _FUNCTION or token in _ARTICLES or token[:5] in self.asked or not token
                    for token in lead
                ):
                    return None
                end = place
        return end

    def denied(self, reading: Reading, one: Mention) -> bool:
        """Whether a negation stands right before or right after a mention."""
        first = max(
            [
                0,
                one.start - 3,
                *(
                    place
                    for place in range(max(1, one.start - 3), one.start + 1)
                    if self._parted(reading, place)
                ),
            ]
        )
        before = reading.tokens[first : one.start]
        before = before[self.cues.turn_in(before) :]
        last = next(
            (
                place
                for place in range(one.end, min(one.end + 3, len(reading.tokens)))
                if self._parted(reading, place)
            ),
            one.end + 3,
        )
        after = reading.tokens[one.end : last]
        if before[-2:] == ["other", "than"]:
            return False
        if self.cues.denies(before, "") or self.cues.denies(after[:2], ""):
            return True
        left, right = " ".join(before).replace(" ", ""), "".join(after)
        return not reading.text.isascii() and (
            self.cues.denies([], left[-4:]) or self.cues.denies([], right[:6])
        )

    def _doubly(self, reading: Reading) -> bool:
        """Whether a sentence denies twice ("it cannot be anything but", "not uncommon")."""
        count = sum(token in self.cues.negations for token in reading.tokens)
        return (count > 1 and not {"ne", "n"} & set(reading.tokens)) or any(
            token.startswith(("un", "any")) for token in reading.tokens
        )

    def _parted(self, reading: Reading, place: int) -> bool:
        """Whether a comma or the like stands before a token."""
        return place > 0 and re.search(r"[,;:()–—]|\s-\s", self._gap(reading, place)) is not None

    def _gap(self, reading: Reading, place: int) -> str:
        """What stands between a token and the one before; what follows the last for the place after it."""
        position = 0
        for word in reading.cased[:place]:
            position = reading.text.find(word, position) + len(word)
        end = (
            reading.text.find(reading.cased[place], position)
            if place < len(reading.cased)
            else len(reading.text)
        )
        return reading.text[position:end]

    def _candidates(self, reading: Reading, start: int, end: int, found: Sequence[Mention]) -> list[str]:
        """Names between two places that are neither the question's nor a target's."""
        out = []
        for place in range(start, end):
            word, token = reading.cased[place], reading.tokens[place]
            inside = any(one.start <= place < one.end for one in found)
            if (
                inside
                or token in _FUNCTION
                or token in _ARTICLES
                or token in _HEADS
                or token[:5] in self.asked
                or len(token) < 2
                or token in self.cues.negations | self.cues.aside
            ):
                continue
            opens = place == 0 and end - start > 1 and not reading.cased[1][:1].isupper()
            if word[:1].isupper() and not opens and not word.isdecimal():
                out.append(word)
        return out

    def _names_alone(self, reading: Reading) -> list[str]:
        """Names in a sentence that are not the beginning of a longer description ("a Belgian detective")."""
        out = []
        for place, word in enumerate(reading.cased):
            if word not in self._candidates(reading, 0, len(reading.tokens), ()):
                continue
            following = reading.tokens[place + 1 : place + 2]
            plain_after = (
                following and reading.cased[place + 1][:1].islower() and following[0] not in _FUNCTION
            )
            subject = all(one[:1].isupper() for one in reading.cased[: place + 1])
            if subject or not (plain_after and _touch(reading, place)):
                out.append(word)
        return out

    def _conflicting(self, reading: Reading, found: Sequence[Mention]) -> bool:
        """Whether every mention is another person's name: a surname with given names that cannot be the target's."""
        for one in found:
            own = [token for token in reading.tokens[one.start : one.end] if token not in _HEADS]
            fits = [
                target for target in self.targets if target.given and " ".join(own).endswith(target.surname)
            ]
            if not fits or any(_alike(own[0], given) for target in fits for given in target.given):
                return False
            if self.cues.denies(reading.tokens, reading.text) or self.cues.turn_in(reading.tokens):
                return False
        return True

    def _other(self, reading: Reading) -> Verdict:
        """No target in a sentence: is it surely another answer?"""
        tokens = reading.tokens
        script = script_of(reading.text)
        if not script or all(target.script != script for target in self.targets):
            return undecided("another script than the targets'")
        if self._other_person(reading):
            return incorrect(f"'{_shown(reading.text)}' is another name")
        if self._other_numeral(reading):
            return incorrect(f"'{_shown(reading.text)}' has another number")
        if self._near(reading):
            return undecided("something like a target")
        if "?" in reading.text or not _ALIASING.isdisjoint(tokens):
            return undecided("no target")
        unasked = [
            token
            for token in tokens
            if token[:5] not in self.asked and token not in _FUNCTION and token not in _ARTICLES
        ]
        if not unasked:
            return undecided("nothing that answers")
        if self.cues.denies(tokens, reading.text) and not self.cues.turn_in(tokens):
            return undecided("no target, and a denial")
        if len(tokens) <= _MOST_PHRASE or (script == "CJK" and len(tokens) <= 2 * _MOST_PHRASE):
            return incorrect(f"'{_shown(reading.text)}' is none of the targets")
        others = self._names_alone(reading)
        if others and len(tokens) <= 20 and (self._is_about(reading) or tokens[0] in _FUNCTION):
            return incorrect(f"'{others[0]}' is given, and no target")
        return undecided("no target in a sentence")

    def _other_person(self, reading: Reading) -> bool:
        """Whether a bare name of several words has another surname, or other given names, than every target."""
        own = [
            token
            for token in reading.tokens
            if token not in _HEADS and token not in _NAME_PARTICLES and token not in _ARTICLES
        ]
        persons = [target for target in self.targets if target.given]
        if (
            not persons
            or len(own) < 2
            or not self._is_bare_name(reading.text)
            or any(map(str.isdigit, reading.text))
        ):
            return False
        surname = own[-1]
        words = {token for target in self.targets for token in target.tokens}
        far = not any(_resembles(surname, word) for word in words) and not any(
            _resembles(own[0], target.surname) for target in persons
        )
        unlike = all(
            not _alike(own[0], name) and not _resembles(own[0], name)
            for target in persons
            for name in target.given
        )
        return far or (
            unlike
            and not any(
                _resembles(token, name) for token in own[:-1] for target in persons for name in target.given
            )
        )

    def _other_numeral(self, reading: Reading) -> bool:
        """Whether a bare answer is a target with another number in it ("Carbon-12" for "Carbon-14")."""
        given = [token for token in reading.tokens if token not in _ARTICLES]
        if (
            len(given) == 1
            and _is_code(given[0])
            and all(
                len(target.tokens) > 1 or _is_code(target.tokens[0])
                for target in self.targets
                if target.tokens
            )
        ):
            return any(len(target.tokens) == 1 for target in self.targets)
        for target in self.targets:
            wanted = [token for token in target.tokens if token not in _ARTICLES]
            if len(given) != len(wanted) or not any(token.isdigit() for token in wanted):
                return False
            same = [
                one == other or (one.isdigit() and other.isdigit())
                for one, other in zip(given, wanted, strict=True)
            ]
            if not all(same) or given == wanted:
                return False
        return True

    def _near(self, reading: Reading) -> bool:
        """Whether a word is like a word of a target: misspelt, inflected, transliterated, a part of it, an abbreviation."""
        wanted = {
            token
            for target in self.targets
            for token in target.tokens
            if len(token) >= _LEAST_NEAR or not token.isascii()
        }
        own = {
            token
            for token in reading.tokens
            if token and token not in _FUNCTION and token[:5] not in self.asked
        }
        if any(any(map(str.isdigit, target.text)) for target in self.targets):
            return True
        if own & ({token for target in self.targets for token in target.tokens} - _ARTICLES - _FUNCTION):
            return True
        for token in own:
            for word in wanted:
                if len(token) >= 3 and (word.startswith(token) or token.startswith(word)):
                    return True
                if _LEAST_NEAR <= len(token) <= 40 and (
                    token[:4] == word[:4] or SequenceMatcher(None, token, word).ratio() >= 0.7
                ):
                    return True
        initials = {
            "".join(token[0] for token in target.tokens if token)
            for target in self.targets
            if len(target.tokens) > 1
        }
        compact = "".join(reading.tokens)
        return compact in initials or any(
            len(target.tokens) == 1
            and target.text.isupper()
            and len(target.text) <= 5
            and len(reading.tokens) > 1
            for target in self.targets
        )


def _is_code(token: str) -> bool:
    """Whether a word is letters with digits in it, such as a formula."""
    return any(map(str.isdigit, token)) and any(map(str.isalpha, token))


def _resembles(one: str, other: str) -> bool:
    """Whether one word may be a spelling, an ending or a short form of another."""
    if one == other or (min(len(one), len(other)) >= 3 and (one.startswith(other) or other.startswith(one))):
        return True
    return (
        len(one) >= _LEAST_NEAR
        and len(one) <= 40
        and (one[:4] == other[:4] or SequenceMatcher(None, one, other).ratio() >= 0.6)
    )


def _named(reading: Reading, one: Mention) -> str:
    return " ".join(reading.cased[one.start : one.end])


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
