"""The span of the source that supports a sentence of an answer, or that contradicts it.

A classifier of pairs is asked about ever smaller parts of the source: it says which part supports
the sentence best. A model that writes a verdict names sentences of the source by their numbers, and
may quote from them; what it names must exist, and what it quotes must be there.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from evalwright.core.samples import Sample
from evalwright.core.sentences import sentence_spans
from evalwright.strategies.several import gather_all

PARTS_OF_A_STEP = 8
"""Parts of the source that a classifier is asked about in each step of the search."""
SEARCH_STEPS = 2
"""Steps of the search: 8 parts, then 8 parts of the best one. 64 sentences are told apart."""
MAX_EVIDENCE_SENTENCES = 40
"""The evidence of so many sentences of an answer is looked for; a summary has fewer."""
MAX_NAMED_SENTENCES = 8
"""Most sentences of the source that a judge may name for one sentence of the answer."""
MAX_QUOTE_CHARS = 300

Relation = Literal["supports", "contradicts", "nearest"]
"""What a span is to its sentence.

"nearest" is the part of the source that a classifier finds closest, if it supports nothing.
"""

_STRAIGHT_QUOTES = dict.fromkeys(map(ord, "“”„‟«»＂"), '"') | dict.fromkeys(
    map(ord, "‘’‚‛ʼ"), "'"
)
"""Each quotation mark by one character, so that positions stay."""


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence of the source.

    Attributes:
        passage: index of its passage; None if the source is the sample's input.
        start: index of its first character there.
        end: index of the character after its last.
        text: the sentence.
    """

    passage: int | None
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Characters `start` to `end` (exclusive) of a passage; None stands for the input."""

    passage: int | None
    start: int
    end: int

    def as_dict(self) -> dict[str, Any]:
        """Return the form of the record."""
        passage_field = {} if self.passage is None else {"passage": self.passage}
        return {**passage_field, "span": [self.start, self.end]}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the source supports or contradicts a sentence.

    Attributes:
        relation: what the spans are to the sentence.
        spans: places in the source; none if there is no such place.
        refused: why what the judge named is not shown, or "".
    """

    relation: Relation
    spans: tuple[SourceSpan, ...] = ()
    refused: str = ""


def split_source(sample: Sample, source: str) -> list[SourceSentence]:
    """Split what an answer is judged by into sentences, with their places.

    Args:
        sample: the sample.
        source: "passages" or "input".
    """
    texts: list[tuple[int | None, str]] = [(None, sample.input)]
    if source == "passages":
        texts = [(index, passage.text) for index, passage in enumerate(sample.passages)]
    return [
        SourceSentence(passage, start, end, text[start:end])
        for passage, text in texts
        for start, end in sentence_spans(text)
    ]


def merge_spans(source_sentences: Sequence[SourceSentence]) -> tuple[SourceSpan, ...]:
    """Return one span for each passage, from its first sentence to its last."""
    spans: list[SourceSpan] = []
    for sentence in source_sentences:
        if spans and spans[-1].passage == sentence.passage:
            spans[-1] = SourceSpan(sentence.passage, spans[-1].start, sentence.end)
        else:
            spans.append(SourceSpan(sentence.passage, sentence.start, sentence.end))
    return tuple(spans)


# -- classifiers of pairs --------------------------------------------------------------


async def search_evidence(
    source: Sequence[SourceSentence],
    supported: Callable[[str], Awaitable[float]],
    threshold: float,
) -> Evidence:
    """Search the part of the source that supports a sentence best.

    It takes at most `PARTS_OF_A_STEP` * `SEARCH_STEPS` calls of `supported`, however long the
    source is.

    Args:
        source: the sentences of the source.
        supported: asks how probably a text supports the sentence.
        threshold: the least probability at which it does.

    Returns:
        The smallest part that supports it; else the nearest one.
    """
    searched = list(source)
    smallest_support: list[SourceSentence] = []
    for _ in range(SEARCH_STEPS):
        if not searched:
            break
        windows = split_evenly(searched, PARTS_OF_A_STEP)
        probabilities = await gather_all(
            [
                supported(" ".join(sentence.text for sentence in window))
                for window in windows
            ]
        )
        best = max(range(len(windows)), key=probabilities.__getitem__)
        searched = windows[best]
        if probabilities[best] >= threshold:
            smallest_support = searched
        if len(searched) == 1:
            break
    if smallest_support:
        return Evidence("supports", merge_spans(smallest_support))
    return Evidence("nearest", merge_spans(searched))


def split_evenly(
    source_sentences: Sequence[SourceSentence], n_parts: int
) -> list[list[SourceSentence]]:
    """Split sentences into at most `n_parts` runs of nearly the same length, in order."""
    n_sentences = len(source_sentences)
    n_parts = min(n_parts, n_sentences)
    cuts = [number * n_sentences // n_parts for number in range(n_parts + 1)]
    return [list(source_sentences[start:end]) for start, end in pairwise(cuts)]


# -- models that write verdicts --------------------------------------------------------


def check_named(
    numbers: Any,
    quote: Any,
    supported: bool,
    source: Sequence[SourceSentence],
    numbered_from: int = 1,
) -> Evidence:
    """Check the evidence that a judge named, and find its place.

    Args:
        numbers: the numbers of sentences of the source, as the judge wrote them.
        quote: words of these sentences, as the judge wrote them; "" for none.
        supported: the judge's verdict on the sentence.
        source: the sentences that the judge was shown.
        numbered_from: the number of the first.

    Returns:
        The spans; or none, and why what was named cannot be evidence.
    """
    relation: Relation = "supports" if supported else "contradicts"
    last = numbered_from + len(source) - 1
    if not isinstance(numbers, list):
        return Evidence(relation, refused="it names no sentences of the source")
    if len(numbers) > MAX_NAMED_SENTENCES:
        return Evidence(
            relation, refused=f"it names more than {MAX_NAMED_SENTENCES} sentences"
        )
    for number in numbers:
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not numbered_from <= number <= last:
            return Evidence(
                relation,
                refused=(
                    "it names a sentence that the source does not have"
                    f" ({str(number)[:20]}, of {numbered_from} to {last})"
                ),
            )
    named = [source[number - numbered_from] for number in sorted(set(numbers))]
    if not isinstance(quote, str) or not quote.strip():
        return Evidence(relation, tuple(_spans_one_by_one(named)))
    if len(quote) > MAX_QUOTE_CHARS:
        return Evidence(
            relation,
            refused=f"its quotation is longer than {MAX_QUOTE_CHARS} characters",
        )
    span = find_quote(quote, named)
    if span is None:
        return Evidence(
            relation, refused="its quotation is not in the sentences that it names"
        )
    return Evidence(relation, (span,))


def _spans_one_by_one(named: Sequence[SourceSentence]) -> list[SourceSpan]:
    return [
        SourceSpan(sentence.passage, sentence.start, sentence.end) for sentence in named
    ]


def find_quote(quote: str, named: Sequence[SourceSentence]) -> SourceSpan | None:
    """Find the place of a quotation in one of some sentences.

    White space, the case and the form of quotation marks may differ.
    """
    words = quote.translate(_STRAIGHT_QUOTES).strip(" \n\t\"'").split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for sentence in named:
        match = pattern.search(sentence.text.translate(_STRAIGHT_QUOTES))
        if match is not None:
            return SourceSpan(
                sentence.passage,
                sentence.start + match.start(),
                sentence.start + match.end(),
            )
    return None
