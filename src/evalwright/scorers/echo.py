"""A question that is repeated in the answer: what it says is not the answer's."""

from __future__ import annotations

from functools import lru_cache

from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words

_FEWEST_WORDS = 4
_MOST_CHARACTERS = 1000


def without_question(words: Words, question: str) -> Words:
    """The answer without the question where it repeats it word for word; questions of fewer than four words stay."""
    repeated = _joined(question)
    if not repeated or (position := words.joined.find(repeated)) < 0:
        return words
    first = words.index(position)
    last = first + repeated.count(" ") - 2
    after = words.text[words.spans[last][1] :].lstrip(" ?.!:,;\"'\n")
    return Words(f"{words.text[: words.spans[first][0]]} {after}".strip())


@lru_cache(maxsize=2048)
def _joined(question: str) -> str:
    if len(question) > _MOST_CHARACTERS:
        return ""
    joined = Words(plain(question)).joined
    return joined if joined.count(" ") > _FEWEST_WORDS else ""
