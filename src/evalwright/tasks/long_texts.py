"""Texts generated to a length in tokens: sentences hidden in a text, lists of common words.

The user states the tokenizer that measures the length: a folder or hub repository, or one token for
each code point. The arithmetic is that of OneRuler (Kim et al. 2025) in SEA-HELM, draw by draw, so
that instances of a seed are the same; unlike published scoring, corrected scoring guarantees that
every needle is in the text.
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
"""The tokenizer that counts each code point as a token."""

GREATEST = 2**31 - 1
"""The greatest number that is hidden."""
MOST = 400_000_000
"""Most tokens of all instances of a task together, and most bytes of the files they come from."""
_TOLERANCE = 100
"""Tokens by which a list of words may miss its length before it is made again.

Published code makes it again at most twice.
"""

_LONGEST_TOKEN = 32
"""Most characters per token on average; no more of a book is read for a length."""

_DRAWS = 64
"""Numbers over which the mean length is taken; published code takes another number."""

# What may follow the mark that ends a sentence.
_CLOSING = re.escape("'\\\"”’』」｣》⟩)]}）］｝»*_")
_MARKS = {"zh": "｡。！？", "my": "။.!?"}

Make = Callable[[int], dict[str, Any]]
"""Makes an instance from a seed."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Measures the length of texts.

    `hub` is a tokenizer of transformers; without it, each code point is a token.
    """

    hub: Any = None

    def lengths(
        self, texts: Sequence[str], *, with_special_tokens: bool = False
    ) -> list[int]:
        """Return the lengths in tokens, and how many special tokens are added to every text."""
        if self.hub is None:
            return [len(text) for text in texts]
        return [
            len(ids)
            for ids in self.hub(list(texts), add_special_tokens=with_special_tokens)[
                "input_ids"
            ]
        ]

    def identity(self) -> str:
        """Return a text that differs for tokenizers that would split texts differently."""
        if (backend := getattr(self.hub, "backend_tokenizer", None)) is not None:
            return str(backend.to_str())
        return (
            CODE_POINTS
            if self.hub is None
            else repr(sorted(self.hub.get_vocab().items()))
        )

    def beginning(self, text: str, tokens: int) -> str:
        """Return a text's first tokens, as text; a text with too few tokens is repeated.

        A text without tokens gives "".
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
    """Open a tokenizer: `code-points`, or `<folder or hub repository>[@revision]`.

    No code of it is run.

    Args:
        name: "code-points" for one token per code point, else a folder or a hub repository with a
            tokenizer of transformers.

    Returns:
        The tokenizer, to be passed as `measure`.

    Raises:
        ConfigurationError: it cannot be loaded.
        MissingExtra: transformers is not installed.
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
    """Join the texts of files, with an empty line between them.

    `subject` says what they are for, in errors.

    Raises:
        DatasetError: a file cannot be read.
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
    """Make a function that hides sentences (needles) in the beginning of books.

    Each needle stands before a sentence of the books.

    Args:
        subject: the task, for errors.
        books: the text in whose beginning the needles are hidden.
        words: words to draw from, more than there are needles.
        filled: writes a needle, from a word and a number.
        measure: the tokenizer that measures lengths, as `length_tokenizer` opens it.
        size: tokens of text and needles together.
        seed: the task's seed, which draws the needle whose length is measured.
        language: the code of the books' language, by which sentences are told apart.
        keys: number of needles.
        asked_for: how many of the numbers are asked for.
        one_word: whether they are those of one word (possibly none), rather than of as many words.
        published: whether needles are inserted as published code does it, which may lose one whose
            place an earlier one has torn apart; otherwise the text has every needle.

    Returns:
        A function from a seed, which draws words, numbers and places, to a mapping: the `text`, the
        words `asked`, their `numbers`, and where their needles stand, as shares of the books' text
        (`depths`).

    Raises:
        TaskError: there are too few words, or no room for a sentence.
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
                # An earlier needle may have torn this sentence, so that it is not found; that
                # needle is then lost.
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
    """Make a text of sentences from frames with `{a}` and `{b}` for words, in paragraphs of eight.

    `size` is its least length in characters.
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
    """Yield the sentences of a text.

    A mark ends one if white space follows, except a single mark after a digit. The published list
    of abbreviations is compared with the text before the mark, where none of them can be, so it has
    no effect.
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
    """Make a function that lists words by number, shuffled by the seed.

    Args:
        subject: the task, for errors.
        words: the words to list.
        common: how many of them are common, drawn by the seed.
        often: how often each common word appears.
        seldom: how often each other word appears at most.
        size: tokens of the list.
        measure: the tokenizer that measures lengths, as `length_tokenizer` opens it.
        published: whether a list that these words do not fill is an error; otherwise the list is
            shorter, and its length is met to 100 tokens or one percent.

    Returns:
        A function from a seed to a mapping: the `text`, the `common` words, and the number of
        `tokens` in the text.

    Raises:
        TaskError: there are too few words, or the size is too small for the common ones.
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
        # The published code draws the numbers that it measures without a seed: if their length
        # varies, this is one of the lists that it could make.
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
    """Return how often common words appear, and at most the others, so that they fill the list.

    Common words appear `ratio` times as often. The numbers are the smallest that suffice for `size`
    tokens even if the shortest words were the common ones, plus a tenth: a word's length in tokens
    depends on its surroundings.
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
    """Return how many numbered words of a mean length fit.

    Their numbers are measured by `draws` draws for each count of digits.
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
