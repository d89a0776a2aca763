"""`baseline/lexical`: the baseline that a consistency judge must beat; not for published rates.

P(supported) is the share of a text's names, numbers and long words that its source contains. It
does not know any meaning: it tells a copy from a text about something else, but finds no single
error in a text that uses the source's words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.core.errors import Failure, ModelError, UnknownName
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel, fingerprint_of

_FACTS = {
    "backend": "baseline",
    "baseline": "words alone; no substitute for a trained judge",
    "version": 3,
}
# Matches a word, a number, or one character of a script without spaces; words are compared by their
# first five letters.
_WORD = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|\d+(?:[.,]\d+)*|[^\W\d_]+"
)


class LexicalBaseline(LocalModel):
    """The judge of this module. A hypothesis without any such word counts as supported: 1."""

    heavy = False
    abilities: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, name: str = "lexical") -> None:
        if name != "lexical":
            raise UnknownName("baseline judge", name, ("lexical",), "Known: lexical.")
        self.name = f"baseline/{name}"
        self.fingerprint = fingerprint_of(_FACTS)

    def describe(self) -> dict[str, Any]:
        """Describe the model, and that it is a baseline."""
        return {
            **super().describe(),
            **_FACTS,
            "values": ["not supported", "supported"],
        }

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Judge one pair after another."""
        for index, request in enumerate(requests):
            if not isinstance(request, Classify):
                message = (
                    f"'{self.name}' classifies pairs; it cannot do '{request.ability}'."
                )
                yield index, ModelError(message).as_failure()
                continue
            premise_words = {key for key, _ in _words(request.premise)}
            supported = [
                key in premise_words
                for key, matters in _words(request.hypothesis)
                if matters
            ]
            share = sum(supported) / len(supported) if supported else 1.0
            yield index, Response(values=(1.0 - share, share))


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the key by which a word is compared, and whether it is a name, number or long."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        caseless = (
            word[0].upper() == word[0].lower()
        )  # true of digits, and of scripts without capitals
        key = word if word[0].isdigit() else word.casefold()[:5]
        yield key, caseless or len(word) > 5 or (len(word) > 3 and word[0].isupper())
