"""The lexical baseline as a model: the strongest evidence of each kind against a text, and a logistic of its weighted sum."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response
from evalwright.models.base import LocalModel, fingerprint_of

if TYPE_CHECKING:
    from evalwright.models.judges.lexical.copies import Copies
    from evalwright.models.judges.lexical.evidence import Evidence
    from evalwright.models.judges.lexical.premise import Premise

VERSION = 2
"""Goes up when a feature or a word list changes what it says of any text; part of the fingerprint, as the weights are."""

COPIED = 0.98
"""P(supported) of sentences that stand in the premise, and the most that any text gets."""

_KEPT = 16
"""Premises that are kept ready: many summaries are of one article."""


@dataclass(frozen=True, slots=True)
class Weights:
    """z = bias - sum of weight times the strongest evidence of each kind; P(supported) is the logistic of z."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    bias: float
    note: str

    def supported(self, row: Sequence[float]) -> float:
        """P(supported) of a hypothesis from its strongest evidence of each kind, shape (kinds,)."""
        z = self.bias - sum(weight * value for weight, value in zip(self.values, row, strict=True))
        return 1 / (1 + math.exp(-z))


@lru_cache(maxsize=1)
def shipped_weights() -> Weights:
    """The weights in `weights.json`."""
    data = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    table: dict[str, float] = data["weights"]
    return Weights(tuple(table), tuple(table.values()), data["bias"], data["note"])


class LexicalJudge(LocalModel):
    """A baseline: P(supported) from words, numbers, names and a few word lists. Deterministic, no download.

    Its kinds of evidence are `kinds.KINDS`; `explained` shows what was found. The weights were fitted on a part of the labelled summaries that come with this
    package, as their note says.
    """

    heavy = False
    abilities: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, name: str = "lexical") -> None:
        self.name = f"baseline/{name}"
        self._weights = shipped_weights()
        self.fingerprint = fingerprint_of(
            {
                "backend": "baseline/lexical",
                "version": VERSION,
                "weights": dict(zip(self._weights.names, self._weights.values, strict=True)),
                "bias": self._weights.bias,
                "copied": COPIED,
            }
        )

    def describe(self) -> dict[str, Any]:
        """What it is, and that it is a baseline."""
        return {
            **super().describe(),
            "backend": "baseline",
            "baseline": "a judge by words alone; not a substitute for a trained one",
            "version": VERSION,
            "weights": self._weights.note,
            "values": ["not supported", "supported"],
        }

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """Judge one pair after another."""
        for index, request in enumerate(requests):
            if not isinstance(request, Classify):
                message = f"'{self.name}' judges pairs; it cannot do '{request.ability}'."
                yield index, ModelError(message).as_failure()
                continue
            supported = judged(request.premise, request.hypothesis, self._weights)
            yield index, Response(values=(1.0 - supported, supported))


def judged(premise: str, hypothesis: str, weights: Weights) -> float:
    """P(supported). A hypothesis that says nothing is supported by anything: 1. One of copied sentences alone: `COPIED`."""
    from evalwright.models.judges.lexical.kinds import KINDS, strongest

    found = explained(premise, hypothesis)
    if not found.sentences:
        return 1.0
    if found.copied == found.sentences:
        return COPIED
    by_name = dict(zip(KINDS, strongest(found.evidence), strict=True))
    return min(COPIED, weights.supported([by_name[name] for name in weights.names]))


@dataclass(frozen=True, slots=True)
class Explained:
    """sentences: of the hypothesis, that say anything. copied: how many of them stand in the premise. evidence: against the rest."""

    sentences: int
    copied: int
    evidence: list[Evidence]


def explained(premise: str, hypothesis: str) -> Explained:
    """What speaks against a hypothesis, sentence by sentence: each piece of evidence has its kind, strength and words."""
    from evalwright.models.judges.lexical.clauses import read_sentence
    from evalwright.models.judges.lexical.kinds import evidence_in
    from evalwright.models.judges.lexical.premise import parts_of
    from evalwright.models.judges.lexical.words import tokens_of
    from evalwright.models.judges.sentences import sentences

    ready, copies = _ready(unicodedata.normalize("NFKC", premise))
    texts = sentences(unicodedata.normalize("NFKC", hypothesis))
    count = copied = 0
    readings = []
    for text, is_copy in zip(texts, copies.marked(texts), strict=True):
        tokens = tokens_of(text)
        if any(token.content for token in tokens):
            count += 1
            copied += is_copy
            if not is_copy:
                readings += [read_sentence(part, ready) for part in parts_of(tokens)]
    return Explained(count, copied, evidence_in(readings))


@lru_cache(maxsize=_KEPT)
def _ready(premise: str) -> tuple[Premise, Copies]:
    from evalwright.models.judges.lexical.copies import Copies
    from evalwright.models.judges.lexical.premise import Premise
    from evalwright.models.judges.sentences import sentences

    texts = sentences(premise)
    return Premise(texts), Copies(texts)
