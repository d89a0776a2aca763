"""What can be said of a claim and some passages: that a quote was never written, that the claim
stands there, or likely follows.

Whether a passage means what a claim says in other words is for a judge (`grounding-judged`);
without one, the share of its words that the passages have is the best reading. Nothing in either is
followed or run.
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
"""A claim with so large a share of its longer words in the passages likely follows from them."""
_ELLIPSIS = re.compile(r"\.\s?\.\s?\.|…|\[[^\]\n]{0,60}\]")


def normalise_words(text: str) -> str:
    """The words of a text without case, accents and punctuation, one space around each."""
    return fold(Words(plain(text)).joined)


def missing_quote(claim: str, texts: Sequence[str]) -> str:
    """A stretch in quotation marks that stands in none of the texts ("..." may leave something
    out), "" where there is none.
    """
    searched = [normalise_words(text) for text in texts]
    for match in _QUOTES.finditer(claim.translate(_QUOTE_SIGNS)):
        quote = (match.group(1) or match.group(2) or "").strip()
        fragments = [
            fragment_words
            for fragment in _ELLIPSIS.split(quote)
            if (fragment_words := normalise_words(fragment)).strip()
        ]
        if fragments and not any(
            _contains_in_order(text, fragments) for text in searched
        ):
            return quote
    return ""


def _contains_in_order(text: str, fragments: Sequence[str]) -> bool:
    """Whether the parts stand in a text, one after another."""
    position = 0
    for fragment in fragments:
        start = text.find(fragment, position)
        if start < 0:
            return False
        position = start + len(fragment) - 1
    return True


def stands_in(claim: str, texts: Sequence[str]) -> bool:
    """Whether one of the texts has the claim word by word."""
    claim_words = normalise_words(claim)
    return bool(claim_words.strip()) and any(
        claim_words in normalise_words(text) for text in texts
    )


def likely_missing(claim: str, texts: Sequence[str], question: str = "") -> str:
    """Why a claim likely does not follow from some texts, "" where it likely does.

    It does where the texts have its numbers and names, and most of its longer words, by their
    beginnings; the question's are taken for known.
    """
    if details := unknown_details(claim, (*texts, question)):
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


def unknown_details(claim: str, texts: Iterable[str]) -> list[str]:
    """The numbers and capitalised words of a claim (its first word aside) that stand in none of the
    texts.
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
