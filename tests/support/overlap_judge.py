"""Judges of consistency for tests: real local models that count shared words, registered as
`overlap/...`.

`overlap/strict` gives the share of the hypothesis's words that the premise has; `overlap/kind` its
square root; `overlap/broken` fails on every pair. Usable as a plug-in: `--plugin
tests/support/overlap_judge.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evalwright.core.errors import Failure
from evalwright.core.requests import Classify, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel, fingerprint_of
from evalwright.models.registry import model

WORDS = re.compile(r"\w+")


def overlap(premise: str, hypothesis: str) -> float:
    """The share of the hypothesis's words that stand in the premise."""
    premise_words = set(WORDS.findall(premise.lower()))
    words = WORDS.findall(hypothesis.lower())
    return sum(word in premise_words for word in words) / max(1, len(words))


@model("overlap")
class OverlapModel(LocalModel):
    """Counts words. asked: the pairs it was asked, in order."""

    heavy = False

    def __init__(self, name: str) -> None:
        self.name = f"overlap/{name}"
        self.kind = name
        self.abilities = frozenset({"classify"})
        self.fingerprint = fingerprint_of({"overlap": name})
        self.asked: list[Classify] = []

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """(P(not supported), P(supported)) of each pair."""
        for index, request in enumerate(requests):
            assert isinstance(request, Classify)
            self.asked.append(request)
            if self.kind == "broken":
                yield index, Failure("model error", "model", "The judge is broken.")
                continue
            share = overlap(request.premise, request.hypothesis)
            probability = share if self.kind == "strict" else share**0.5
            yield index, Response(values=(1.0 - probability, probability))
