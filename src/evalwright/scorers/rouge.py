"""ROUGE-1, -2, -L and -Lsum (Lin 2004), with the arithmetic of the library rouge-score.

English is split into words as the library does, other languages by rules of their own. The
library's longest common subsequence takes time and memory of the product of both lengths, in
Python; an answer of 100 kB would take minutes. So the counting is done here, with whole rows of
bits, and tests hold it equal to the library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    MissingExtra,
    ScoringError,
    check_known,
)
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import checked
from evalwright.scorers.text import segmentation
from evalwright.scorers.text.languages import check_language, language_of
from evalwright.scorers.text.tokens import Words

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_LATIN = re.compile(r"[a-z0-9]+")

Found = tuple[float, float, float]
"""F1, precision and recall."""


def _check(options: Mapping[str, Any]) -> None:
    kind = options["kind"]
    language = options["language"]
    stem = options["stem"]
    check_known("kind of ROUGE", [kind], KINDS)
    check_language(language)
    code = language_of(Sample(""), language)
    segmentation.require(code, "ROUGE")
    if stem and code not in ("", "en"):
        raise ConfigurationError(
            f"The option 'stem' of ROUGE is for English; for '{code}' leave it out."
        )
    if stem and find_spec("rouge_score") is None:
        raise MissingExtra("ROUGE with stemming", "rouge", "rouge-score")


def check_rouge_sample(sample: Sample, options: Mapping[str, Any]) -> None:
    """Raise MissingExtra if words of the sample's language need a library that is not installed.

    Called before any request is sent.
    """
    segmentation.require(language_of(sample, options.get("language")), "ROUGE")


@checked(_check)
def rouge(
    sample: Sample,
    answer: Answer,
    *,
    kind: str = "rougeL",
    language: str | None = None,
    stem: bool = False,
) -> Score:
    """Score the highest F1 over the targets, from 0 to 1.

    Parts: "precision" and "recall" of that target.

    English has the library's words (a to z and digits); Burmese, Chinese, Japanese, Khmer, Lao and
    Thai are segmented; other languages have words of letters, combining marks and digits.

    Args:
        kind: rouge1, rouge2 (n-grams), rougeL (longest common subsequence) or rougeLsum (the same
            by lines).
        language: by default the sample's metadata `language`; without either, English, unless the
            targets have letters that English does not have.
        stem: whether to reduce English words by Porter's stemmer.
    """
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    words, how = _word_splitter(sample, language_of(sample, language), stem)
    scores = [_FUNCTIONS[kind](target, answer.text, words) for target in sample.targets]
    f1, precision, recall = max(scores, key=lambda score_triple: score_triple[0])
    return Score(f1, "", f"{kind} by {how}", {"precision": precision, "recall": recall})


vars(rouge)["check_sample"] = check_rouge_sample


def _word_splitter(
    sample: Sample, language: str, stem: bool
) -> tuple[Callable[[str], Sequence[str]], str]:
    """Return the function that splits texts into words, and its name."""
    if language in segmentation.UNSPACED:
        return lambda text: segmentation.segment(
            text.casefold(), language
        ), segmentation.library(language)
    foreign = any(
        char.isalpha() and not char.isascii()
        for target in sample.targets
        for char in target
    )
    if language == "en" or (not language and not foreign):
        return (
            (_stemmer(), "stems")
            if stem
            else (lambda text: _LATIN.findall(text.lower()), "words")
        )
    return lambda text: Words(text.casefold()).cased, "words"


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], Sequence[str]]:
    from rouge_score.tokenizers import DefaultTokenizer

    tokenize: Callable[[str], Sequence[str]] = DefaultTokenizer(
        use_stemmer=True
    ).tokenize
    return tokenize


def _score_ngrams(
    n: int, target: str, text: str, words: Callable[[str], Sequence[str]]
) -> Found:
    target_grams, answer_grams = (
        Counter(zip(*(text_words[start:] for start in range(n)), strict=False))
        for text_words in (words(target), words(text))
    )
    return _score_overlap(
        (target_grams & answer_grams).total(),
        answer_grams.total(),
        target_grams.total(),
    )


def _score_subsequence(
    target: str, text: str, words: Callable[[str], Sequence[str]]
) -> Found:
    return f1_of_subsequence(words(target), words(text))


def f1_of_subsequence(
    target_words: Sequence[str], answer_words: Sequence[str]
) -> Found:
    """Return F1, precision and recall of the longest common subsequence of two lists of words."""
    return _score_overlap(
        common_length(target_words, answer_words), len(answer_words), len(target_words)
    )


def _score_lines(
    target: str, text: str, words: Callable[[str], Sequence[str]]
) -> Found:
    """Compare each target line with all answer lines, counting no word twice (rougeLsum)."""
    target_lines, answer_lines = (
        [words(line) for line in text_lines.split("\n") if line]
        for text_lines in (target, text)
    )
    left = [
        Counter(word for line in compared_lines for word in line)
        for compared_lines in (target_lines, answer_lines)
    ]
    hits = 0
    others = list(dict.fromkeys(map(tuple, answer_lines)))
    for line in target_lines:
        bits = _word_bits(line)
        places = sorted(
            {
                index
                for answer_line in others
                for index in _common_places(line, bits, answer_line)
            }
        )
        for word in (line[index] for index in places):
            if left[0][word] > 0 and left[1][word] > 0:
                hits += 1
                left[0][word] -= 1
                left[1][word] -= 1
    return _score_overlap(
        hits, sum(map(len, answer_lines)), sum(map(len, target_lines))
    )


_FUNCTIONS: Mapping[
    str, Callable[[str, str, Callable[[str], Sequence[str]]], Found]
] = {
    "rouge1": lambda *texts: _score_ngrams(1, *texts),
    "rouge2": lambda *texts: _score_ngrams(2, *texts),
    "rougeL": _score_subsequence,
    "rougeLsum": _score_lines,
}


def _score_overlap(hits: int, answer_total: int, target_total: int) -> Found:
    precision = hits / max(answer_total, 1)
    recall = hits / max(target_total, 1)
    return (
        2 * precision * recall / (precision + recall) if hits else 0.0,
        precision,
        recall,
    )


def common_length(words: Sequence[str], other_words: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, by bit-parallel rows (Hyyrö 2004)."""
    *_, last = _subsequence_rows(len(words), _word_bits(words), other_words)
    return len(words) - last.bit_count()


def _common_places(
    words: Sequence[str], bits: Mapping[str, int], other_words: Sequence[str]
) -> list[int]:
    """Return the positions in `words` of the longest common subsequence that rouge-score picks."""
    if bits.keys().isdisjoint(other_words):
        return []
    rows = list(_subsequence_rows(len(words), bits, other_words))
    places = []
    i = len(words)
    j = len(other_words)
    while i and j:
        if words[i - 1] == other_words[j - 1]:
            i = i - 1
            j = j - 1
            places.append(i)
        elif _length_at(rows[j - 1], i) > _length_at(rows[j], i - 1):
            j -= 1
        else:
            i -= 1
    return places[::-1]


def _length_at(row: int, i: int) -> int:
    """Return the longest common subsequence of the first `i` words and the words read so far."""
    return i - (row & ((1 << i) - 1)).bit_count()


def _word_bits(words: Sequence[str]) -> dict[str, int]:
    """Return the positions of each word, as the bits of a number."""
    bits: dict[str, int] = {}
    for index, word in enumerate(words):
        bits[word] = bits.get(word, 0) | 1 << index
    return bits


def _subsequence_rows(
    size: int, bits: Mapping[str, int], other_words: Sequence[str]
) -> Iterator[int]:
    """Yield the bit rows of the longest common subsequence, one after each word of `other_words`.

    A bit is 0 where the subsequence grows.
    """
    full = (1 << size) - 1
    row = full
    yield row
    for word in other_words:
        grown = row & bits.get(word, 0)
        row = (row + grown | row - grown) & full
        yield row
