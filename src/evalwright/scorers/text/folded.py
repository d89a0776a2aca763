"""Text prepared for comparison with other text.

Its words are lower-cased, without accents and endings, in simplified characters; what stands
between them is kept.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from evalwright.scorers.text.cues import cue_words, label_alternatives
from evalwright.scorers.text.tokens import Words, word_set

ARTICLES = word_set(
    "the a an der die das den dem ein eine le la les l un une el los las lo il gli i o"
    " os as um uma het de een ang al"
)

FUNCTION_WORDS = cue_words("small") | ARTICLES
"""Words without content of their own, in all languages."""

CASED_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")

_PREFACE = re.compile(
    r"^(?:(?:if|unless) i(?:'m| am) (?:not )?(?:mistaken|wrong|correct|right)|if i"
    r" (?:recall|remember)(?: correctly| right)?|to (?:my|the best of my) knowledge|i"
    r" (?:think|believe|guess)(?: that)?|(?:yo )?(?:creo|pienso|diría) que|je"
    r" (?:crois|pense|dirais) que|(?:eu )?(?:acho|creio|penso) que"
    r"|(?:credo|penso) che|ich (?:glaube|denke|meine)(?:,? dass)?|(?:menurut saya|saya"
    r" (?:rasa|kira|pikir))(?: bahwa)?|tôi nghĩ(?: là| rằng)?|(?:я )?думаю,?"
    r" что|sanırım),?\s+",
    re.IGNORECASE,
)

_TAG_QUESTION = re.compile(
    r",\s*(?:(?:is|was|are|were|do|does|did|has|must)n['’]?t"
    r" (?:it|he|she|they)|right|no|oder|nicht wahr|n'est-ce pas|verdad|vero|non [eè]"
    r" vero|n[aã]o [eé]|да|правда)\s?\?"
    r"|(?<=걸)\?|(?<=걸요)\?|(?<=잖아)\?|(?<=잖아요)\?",
    re.IGNORECASE,
)
"""A question at the end that only asks for agreement."""

_SEEMING = re.compile(
    r"(?<=[가-힣])(?:인|일) ?(?:것|거) ?(?:같[가-힣]+|예요|이에요|입니다)"
)
"""The Korean for "it seems to be" after a name."""

_ENDING = re.compile(
    rf"(?<=.)(?:{label_alternatives('ending')})$|(?<=..)(?:{label_alternatives('tail')})$"
)

_PARTED = re.compile(r"[,;:()–—、，،؛；：。]|\s-\s")

_NOT_WORD = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)


class FoldedText(NamedTuple):
    """A text prepared for comparison.

    Args:
        text: the text itself.
        cased: its words as written.
        tokens: its words, folded.
        joined: the tokens, joined by spaces.
        gaps: the text before, between and after the words.
    """

    text: str
    cased: list[str]
    tokens: list[str]
    joined: str
    gaps: list[str]

    def clause(self, start: int, end: int) -> tuple[int, int]:
        """Return the token span of the clause around some words."""
        while start > 0 and not _PARTED.search(self.gaps[start]):
            start -= 1
        while end < len(self.tokens) and not _PARTED.search(self.gaps[end]):
            end += 1
        return start, end


def fold_text(text: str) -> FoldedText:
    """Prepare a plain text for comparison.

    Apostrophes divide words, and "isn't" is "is not". The result is cached: do not change it.
    """
    return (
        _fold_text_cached if len(text) <= MAX_SHORT_CHARS else _fold_long_text_cached
    )(text)


def _load_simplified_characters() -> dict[int, str]:
    """Load the table from traditional and Japanese characters to simplified ones."""
    table = tomllib.loads(
        Path(__file__).with_name("han.toml").read_text(encoding="utf-8")
    )["characters"]
    return dict(zip(map(ord, table["from"].strip()), table["to"].strip(), strict=True))


_SIMPLIFIED_CHARACTERS = _load_simplified_characters() | {ord("ब"): "व"}


def simplify_characters(text: str) -> str:
    """Write a text, or a pattern for folded texts, in simplified characters."""
    return text if text.isascii() else text.translate(_SIMPLIFIED_CHARACTERS)


def _fold_text(text: str) -> FoldedText:
    text = text if text.isascii() else _SEEMING.sub("입니다", simplify_characters(text))
    text = (
        _NOT_WORD.sub(" not", _PREFACE.sub("", text))
        .replace("'", " ")
        .replace("’", " ")
    )
    words_of_text = Words(text)
    tokens = [
        _without_ending(token) if "가" <= token[-1:] <= "힣" else token
        for token in words_of_text.folded_tokens
    ]
    edges = [0, *(edge for span in words_of_text.spans for edge in span), len(text)]
    gaps = [text[edges[index] : edges[index + 1]] for index in range(0, len(edges), 2)]
    return FoldedText(text, words_of_text.cased, tokens, f" {' '.join(tokens)} ", gaps)


@lru_cache(maxsize=4096)
def _without_ending(token: str) -> str:
    """Remove particles, the copula and titles from a Korean word."""
    for _ in range(4):
        token = token if token in FUNCTION_WORDS else _ENDING.sub("", token)
    return token


# Cached, because a scorer reads the same sentence once for every option.
_fold_text_cached = lru_cache(maxsize=1024)(_fold_text)

# It reads the same reply as often; replies are long, so few are kept.
_fold_long_text_cached = lru_cache(maxsize=8)(_fold_text)

MAX_SHORT_CHARS = 1000


def without_tag_question(text: str) -> str:
    """Remove a closing "isn't it?" or the like."""
    return _TAG_QUESTION.sub("", text) if "?" in text else text


def script_of(text: str) -> str:
    """Return the script of most letters, the first word of their Unicode names; "" if none.

    Kana beside Han counts as Han.
    """
    counts: dict[str, int] = {}
    for char in text[:400]:
        if char.isalpha():
            name = (
                "LATIN"
                if char.isascii()
                else unicodedata.name(char, "").partition(" ")[0]
            )
            name = (
                "KANA"
                if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
                else name
            )
            counts[name] = counts.get(name, 0) + 1
    if "CJK" in counts and len(counts) <= 2:
        return "CJK"
    return max(counts, key=lambda name: counts[name]) if counts else ""


def text_between(reading: FoldedText, start: int, end: int) -> str:
    """Return the text between two words, with what separates them."""
    end = min(end, len(reading.tokens))
    pieces = [f"{reading.cased[at]}{reading.gaps[at + 1]}" for at in range(start, end)]
    return "".join(pieces)
