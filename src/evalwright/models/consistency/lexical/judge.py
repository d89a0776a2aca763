"""The lexical baseline as a model: features of each sentence, a logistic of their weighted sum, the worst and the mean mixed."""

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
    from evalwright.models.consistency.lexical.premise import Premise

VERSION = 1
"""Goes up when a feature or a word list changes what it says of any text; part of the fingerprint, as the weights are."""

_KEPT = 16
"""Premises that are kept ready: many summaries are of one article."""


@dataclass(frozen=True, slots=True)
class Weights:
    """z = bias - sum of weight times feature, for each sentence; the worst sentence's z counts `worst`, the mean the rest."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    bias: float
    worst: float
    note: str

    def supported(self, rows: Sequence[Sequence[float]]) -> float:
        """P(supported) of a hypothesis from its sentences' features, shape (sentences, features)."""
        sums = [
            self.bias - sum(weight * value for weight, value in zip(self.values, row, strict=True))
            for row in rows
        ]
        mixed = self.worst * min(sums) + (1 - self.worst) * sum(sums) / len(sums)
        return 1 / (1 + math.exp(-mixed))


@lru_cache(maxsize=1)
def shipped_weights() -> Weights:
    """The weights in `weights.json`."""
    data = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    table: dict[str, float] = data["weights"]
    return Weights(tuple(table), tuple(table.values()), data["bias"], data["worst"], data["note"])


class LexicalJudge(LocalModel):
    """A baseline: P(supported) from words, numbers, names and a few word lists. Deterministic, no download.

    Its features are `features.FEATURES`; the weights were fitted on a part of the labelled summaries that come with this
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
                "worst": self._weights.worst,
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
    """P(supported). A hypothesis that says nothing is supported by anything: 1."""
    from evalwright.models.consistency.lexical.features import FEATURES

    names = tuple(FEATURES)
    rows = feature_rows(premise, hypothesis)
    if not rows:
        return 1.0
    order = [names.index(name) for name in weights.names]
    return weights.supported([[row[place] for place in order] for row in rows])


def feature_rows(premise: str, hypothesis: str) -> list[list[float]]:
    """The features of each sentence of the hypothesis that says anything, in the order of `FEATURES`."""
    from evalwright.models.consistency.lexical.features import FEATURES, read_sentence
    from evalwright.models.consistency.lexical.words import tokens_of
    from evalwright.models.consistency.sentences import sentences

    ready = _ready(unicodedata.normalize("NFKC", premise))
    out: list[list[float]] = []
    for text in sentences(unicodedata.normalize("NFKC", hypothesis)):
        tokens = tokens_of(text)
        if any(token.content for token in tokens):
            sentence = read_sentence(text, tokens, ready)
            out.append([feature(sentence) for feature in FEATURES.values()])
    return out


@lru_cache(maxsize=_KEPT)
def _ready(premise: str) -> Premise:
    from evalwright.models.consistency.lexical.premise import Premise

    return Premise(premise)
