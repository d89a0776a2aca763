"""Texts made to a length in tokens: sentences hidden in a long text, and long lists in which a few
words are the most common.

A tokenizer says how long a text is. Which one that is, the user states: a folder or hub repository,
or one token for each code point. The arithmetic is that of OneRuler (Kim et al. 2025) in SEA-HELM,
draw by draw, so that instances of a seed are the same; corrected, where it differs, every needle
stands in the text, whatever stands there already.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError, MissingExtra, TaskError
from evalwright.core.private import check_ordinary
from evalwright.scorers.listed import NO_TEXT
from evalwright.tasks.yaml_files import shown_path

CODE_POINTS = "code-points"
"""The tokenizer that takes each code point for a token."""

GREATEST = 2**31 - 1
"""The greatest number that is hidden."""
MOST = 400_000_000
"""Tokens of all instances of a task together, and bytes of the files that they are made of."""
_TOLERANCE = 100
"""By how many tokens a list of words may miss its length before it is made again, as published at
most twice.
"""

_LONGEST_TOKEN = 32
"""Characters that a token has at most, on average: more of a book is not read for a length."""

_DRAWS = 64
"""Numbers of which the mean length is taken, but as published."""

# What may follow the mark that ends a sentence.
_CLOSING = re.escape("'\\\"”’』」｣》⟩)]}）］｝»*_")
_MARKS = {"zh": "｡。！？", "my": "။.!?"}

Make = Callable[[int], dict[str, Any]]
"""From a seed to an instance."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How long texts are. hub: a tokenizer of transformers; without it, each code point is a
    token.
    """

    hub: Any = None

    def lengths(
        self, texts: Sequence[str], *, with_special_tokens: bool = False
    ) -> list[int]:
        """In tokens. whole: with those that the tokenizer puts around every text."""
        if self.hub is None:
            return [len(text) for text in texts]
        return [
            len(ids)
            for ids in self.hub(list(texts), add_special_tokens=with_special_tokens)[
                "input_ids"
            ]
        ]

    def identity(self) -> str:
        """Another text where texts would be split otherwise."""
        if (backend := getattr(self.hub, "backend_tokenizer", None)) is not None:
            return str(backend.to_str())
        return (
            CODE_POINTS
            if self.hub is None
            else repr(sorted(self.hub.get_vocab().items()))
        )

    def beginning(self, text: str, tokens: int) -> str:
        """A text's first tokens, as text; it is repeated where it has too few.

        "" of a text without tokens.
        """
        if there := self.lengths([text])[0]:
            text *= 1 if there >= tokens else tokens // there + 1
        if self.hub is None:
            return text[:tokens]
        return str(
            self.hub.decode(
                self.hub(text, add_special_tokens=False)["input_ids"][:tokens]
            )
        )


@lru_cache(maxsize=2)
def tokenizer_of(name: str) -> Tokenizer:
    """name: `code-points`, or `<folder or hub repository>[@revision]`, of which no code is run.

    Raises ConfigurationError, MissingExtra.
    """
    if name == CODE_POINTS:
        return Tokenizer()
    if find_spec("transformers") is None:
        raise MissingExtra(f"The tokenizer '{name}'", "hf", "transformers")
    from evalwright.models.local.hf.loading import load_tokenizer
    from evalwright.models.local.hf.source import find_source

    where, _, revision = name.partition("@")
    return Tokenizer(
        load_tokenizer(
            find_source(where, revision or None, needs="tokenizer_config.json")
        )
    )


def text_of(files: Iterable[Path], subject: str) -> str:
    """The text of files, an empty line between them. what: what is made of them, for errors.

    Raises DatasetError.
    """
    texts = list[str]()
    size = 0
    for path in files:
        try:
            size += path.stat().st_size
            if size > MOST:
                raise DatasetError(
                    f"The files up to '{shown_path(path)}', of which {subject} is made, have"
                    f" more than {MOST:,} bytes."
                )
            texts.append(check_ordinary(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(
                f"'{shown_path(path)}', of which {subject} is made, cannot be read: {error}."
            ) from error
    return "\n\n".join(texts)


def haystacks(
    subject: str,
    books: str,
    words: Sequence[str],
    filled: Callable[[str, str], str],
    *,
    measure: Tokenizer,
    size: int,
    seed: int,
    language: str,
    keys: int,
    asked_for: int,
    one_word: bool,
    published: bool = False,
) -> Make:
    """What hides `keys` sentences `filled(word, number)` in the beginning of books, each before one
    of its sentences, drawn by the seed.

    subject: the task, for errors. size: in tokens, of text and needles. seed: of the task, which
    draws the needle that is measured. asked_for: how many of the numbers are asked for: those of
    one word (`one_word`), which may be none, or of as many words. An instance has the `text`, the
    words that are `asked`, the `numbers` that are right, and at which shares of the text these
    stand (`depths`, not where published). Raises TaskError for too few words, or no room for a
    sentence.
    """
    if len(words) <= keys:
        raise TaskError(
            f"{subject} has too few words, {len(words):,}, to hide {keys:,} needles."
        )
    needle = filled(random.Random(seed).choice(words), "123456789")
    tokens = size - keys * measure.lengths([needle])[0]
    if tokens < 1:
        raise TaskError(
            f"{subject} is too small: beside its {keys:,} needles is no room for a text."
        )
    text = measure.beginning(
        re.sub(r"[ \t]+", " ", books[: _LONGEST_TOKEN * size]), tokens
    )
    sentences = list(sentences_of(text, language))
    starts = list[int]()
    end = 0
    if not sentences:
        raise TaskError(f"{subject} has no text with a sentence to hide needles.")
    for sentence in sentences:
        starts.append(text.index(sentence, end))
        end = starts[-1] + len(sentence)

    def instance(seed: int) -> dict[str, Any]:
        rng = random.Random(seed)
        left = list(words)
        haystack = text
        numbers = list[str]()
        asked_words = list[str]()
        hidden = list[tuple[int, str]]()

        def drawn() -> str:
            word = rng.choice(left)
            left.remove(word)
            return word

        if one_word:
            asked_words.append(drawn())
        for needle_index in range(keys):
            number = str(rng.randint(0, GREATEST))
            word = asked_words[0] if one_word and needle_index < asked_for else drawn()
            before = rng.choice(range(len(sentences)))
            if published:
                # A sentence that an earlier needle has torn is not found, and that needle is then
                # nowhere.
                sentence = sentences[before]
                haystack = haystack.replace(
                    sentence, filled(word, number) + sentence, 1
                )
            hidden.append((starts[before], filled(word, number)))
            if needle_index < asked_for:
                numbers.append(number)
                asked_words += [] if one_word else [word]
        if not published:
            pieces = list[str]()
            end = 0
            for start, sentence in sorted(hidden):
                pieces += [text[end:start], sentence]
                end = start
            haystack = "".join([*pieces, text[end:]])
        depths = [round(start / len(text), 3) for start, _ in hidden[:asked_for]]
        return {
            "text": haystack,
            "asked": asked_words,
            "numbers": numbers,
            "depths": depths,
        }

    return instance


def made_up(frames: Sequence[str], words: Sequence[str], size: int, seed: int) -> str:
    """A text of sentences made of frames with `{a}` and `{b}` for words, in paragraphs of eight.
    size: in characters, at least.
    """
    rng = random.Random(seed)
    sentences = list[str]()
    length = 0
    while length < size:
        first_word, second_word = rng.sample(words, 2)
        sentence = (
            rng.choice(frames).replace("{a}", first_word).replace("{b}", second_word)
        )
        gap = (
            "\n\n"
            if len(sentences) % 8 == 7
            else ""
            if sentence.endswith("。")
            else " "
        )
        sentences.append(sentence + gap)
        length += len(sentences[-1])
    return "".join(sentences)


def sentences_of(text: str, language: str) -> Iterator[str]:
    """The sentences of a text.

    A mark ends one where white space follows, but for a single one after a digit.

    The published list of abbreviations is looked for in front of the mark, where none of them can
    stand, so none counts.
    """
    end = re.compile(
        rf"([{re.escape(_MARKS.get(language, '.!?'))}]++)[{_CLOSING}]*+(\s*+)"
    )
    for paragraph in re.split(r"[\r\n|]", text):
        begin = 0
        sentences = []
        for match in end.finditer(paragraph):
            if match[2] and (
                len(match[1]) > 1
                or not paragraph[max(0, match.start() - 1)].isdecimal()
            ):
                sentences.append(paragraph[begin : match.start(2)])
                begin = match.end()
        yield from (
            sentence.strip()
            for sentence in [*sentences, paragraph[begin:]]
            if sentence.strip(NO_TEXT)
        )


def word_lists(
    subject: str,
    words: Sequence[str],
    *,
    common: int,
    often: int,
    seldom: int,
    size: int,
    measure: Tokenizer,
    published: bool = False,
) -> Make:
    """What lists words by number, of which `common` stand `often` times and the others `seldom`
    times at most, shuffled by the seed.

    subject: the task, for errors. size: of the list, in tokens. published: a list that these words
    do not fill is an error; else it is shorter, and the length is met to 100 tokens or one percent.
    An instance has the `text`, the `common` words and its `tokens`; it raises TaskError where words
    are too few, or the size too small for the common ones.
    """
    draws, tolerance = (
        (1, _TOLERANCE) if published else (_DRAWS, max(_TOLERANCE, size // 100))
    )
    spaced = [f" {word}" for word in words]
    lengths = dict(zip(spaced, measure.lengths(spaced), strict=True))
    mean = sum(lengths.values()) / len(spaced)

    def instance(seed: int) -> dict[str, Any]:
        shuffled = list(spaced)
        random.Random(seed).shuffle(shuffled)
        chosen = shuffled[:common]
        others = shuffled[common:] * seldom
        random.Random(seed).shuffle(others)
        # The published code draws the numbers that it measures unseeded: where their length varies,
        # this is one of the lists that it could make.
        numbers = random.Random(seed)
        most = common * often + len(others)
        room = size - common * often * (
            sum(lengths[word] for word in chosen) / common - mean
        )
        count = _fitting(measure, mean, room, numbers, draws)
        for _ in range(3 if published else 5):
            if not published:
                count = min(count, most)
            if not 0 <= count - common * often <= len(others):
                raise TaskError(
                    f"{subject} cannot be made with this tokenizer: about {count:,} words"
                    f" are to be listed, and there are {common * often:,} common and"
                    f" {len(others):,} others."
                )
            listed = chosen * often + others[: count - common * often]
            random.Random(seed).shuffle(listed)
            text = " ".join(
                f"{number}.{word}" for number, word in enumerate(listed, start=1)
            )
            tokens = measure.lengths([text], with_special_tokens=True)[0]
            if abs(size - tokens) < tolerance or (
                not published and count == most and tokens < size
            ):
                break
            adjusted_room = size - tokens + room
            room = room if published else adjusted_room
            count = _fitting(measure, mean, adjusted_room, numbers, draws)
        return {
            "text": text,
            "common": [word.strip() for word in chosen],
            "tokens": tokens,
        }

    return instance


def repeats(
    words: Sequence[str], *, common: int, ratio: int, size: int, measure: Tokenizer
) -> tuple[int, int]:
    """How often common words and at most the others stand, the former `ratio` times as often, so
    that words suffice for `size` tokens.

    That is as seldom as can be, should the shortest words be the common ones, and a tenth more:
    what words measure depends on what is around them.
    """
    lengths = sorted(measure.lengths([f" {word}" for word in words]))
    mean = sum(lengths) / len(words)
    spared = common * ratio * (mean - sum(lengths[:common]) / common)
    seldom = more = 0
    while more >= seldom:
        seldom = more + 1
        count = (
            _fitting(measure, mean, size + seldom * spared, random.Random(0), _DRAWS)
            + _TOLERANCE
        )
        more = math.ceil(1.1 * count / (common * ratio + len(words) - common)) - 1
    return ratio * seldom, seldom


def _fitting(
    measure: Tokenizer, mean: float, room: float, numbers: random.Random, draws: int = 1
) -> int:
    """How many numbered words of a mean length there is room for, their numbers measured by so many
    draws of each count of digits.
    """
    words = 0.0
    power = 0
    while True:
        drawn = [
            f" {numbers.randint(10**power, 10 ** (power + 1) - 1)}."
            for _ in range(draws)
        ]
        mean_length = (sum(measure.lengths(drawn)) / draws + mean) or 1
        more = 9 * 10**power
        if more * mean_length > room:
            return int(words + room // mean_length)
        words = words + more
        room = room - more * mean_length
        power = power + 1
