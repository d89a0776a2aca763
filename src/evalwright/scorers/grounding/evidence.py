"""Compares a claim with passages by rules.

The rules recognise that a quote was never written, that a claim stands in a passage word for word,
or that it likely follows. Whether a passage says the same in other words is a question for a judge
(`grounding-judged`); without one, the share of the claim's words in the passages is the best
estimate. Nothing in either text is followed or executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold

_QUOTE_SIGNS = dict.fromkeys(map(ord, "“”„‟«»″＂❝❞「」『』〝〞"), '"') | dict.fromkeys(
    map(ord, "‘’‚‛ʼ＇"), "'"
)
_QUOTES = re.compile(
    r"\"([^\"\n]{2,800})\"|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){3,400})'(?!\w)"
)
_CONTENT_LETTERS = 4
_STEM_LETTERS = 5
LIKELY_SHARE = 0.6
"""The least share of its longer words in the passages at which a claim likely follows."""
_ELLIPSIS = re.compile(r"\.\s?\.\s?\.|…|\[[^\]\n]{0,60}\]")


def normalise_words(text: str) -> str:
    """Return a text's words without case, accents and punctuation, with one space around each."""
    return fold(Words(plain(text)).joined)


def find_missing_quote(claim: str, texts: Sequence[str]) -> str:
    """Find a quotation in the claim that stands in none of the texts, else return "".

    "..." in a quotation may stand for an omission.
    """
    searched = [normalise_words(text) for text in texts]
    for match in _QUOTES.finditer(claim.translate(_QUOTE_SIGNS)):
        quote = (match.group(1) or match.group(2) or "").strip()
        fragments = [normalise_words(fragment) for fragment in _ELLIPSIS.split(quote)]
        fragments = [fragment for fragment in fragments if fragment.strip()]
        if not fragments:
            continue
        if not any(_contains_in_order(text, fragments) for text in searched):
            return quote
    return ""


def _contains_in_order(text: str, fragments: Sequence[str]) -> bool:
    """Return whether the fragments stand in a text, one after another."""
    position = 0
    for fragment in fragments:
        start = text.find(fragment, position)
        if start < 0:
            return False
        position = start + len(fragment) - 1
    return True


def stands_in(claim: str, texts: Sequence[str]) -> bool:
    """Return whether one of the texts contains the claim word for word."""
    claim_words = normalise_words(claim)
    return bool(claim_words.strip()) and any(
        claim_words in normalise_words(text) for text in texts
    )


def explain_missing_words(claim: str, texts: Sequence[str], question: str = "") -> str:
    """Return why a claim likely does not follow from the texts; "" if it likely does.

    It does if the texts or the question contain its numbers and names, and most of its longer
    words, compared by their stems.
    """
    if details := find_unknown_details(claim, (*texts, question)):
        return f"{' and '.join(details[:3])} is likely not there"
    stems_there = {
        token[:_STEM_LETTERS]
        for text in (*texts, question)
        for token in normalise_words(text).split()
    }
    claim_stems = {
        token[:_STEM_LETTERS]
        for token in normalise_words(claim).split()
        if len(token) >= _CONTENT_LETTERS
    }
    if claim_stems and len(claim_stems & stems_there) < LIKELY_SHARE * len(claim_stems):
        return "most of its words are not there"
    return ""


def find_unknown_details(claim: str, texts: Iterable[str]) -> list[str]:
    """List the numbers and capitalised words of a claim that stand in none of the texts.

    The first word of the claim is capitalised anyway, so it does not count.
    """
    tokens_there = {token for text in texts for token in normalise_words(text).split()}
    claim_words = Words(plain(claim))
    return [
        word
        for index, (word, token) in enumerate(
            zip(claim_words.cased, claim_words.tokens, strict=True)
        )
        if (any(map(str.isdigit, word)) or (index and word[:1].isupper()))
        and fold(token) not in tokens_there
    ]
