"""Recorded runs of HRET, asked again: their rows, and plug-ins that reply as the recorded models did."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

_PLACES = [
    folder / "shared" / "golden" / "hret" / "golden.jsonl.gz" for folder in Path(__file__).resolve().parents
]
RESULTS = frozenset(
    (
        "prediction", "evaluation", "language_penalizer", "reward", "logits", "chain_of_thought", "judge_evaluation", "judge_score",
        "few_shot_applied", "finish_reason",
    )
)  # fmt: skip


@cache
def recorded() -> Mapping[str, dict[str, Any]]:
    """The runs by name."""
    file_name = next((place for place in _PLACES if place.exists()), None)
    if file_name is None:
        pytest.skip("the recorded runs of HRET are not here")
    with gzip.open(file_name, "rt", encoding="utf-8") as file:
        return {run["name"]: run for run in map(json.loads, file)}


def last(candidates: list[str]) -> str:
    """The aggregator of the recorded runs."""
    return candidates[-1]


def bracketed(reply: str) -> tuple[str, str]:
    """The parser of the recorded runs."""
    _, _, rest = reply.partition("(")
    return reply.strip(), f"({rest[:1]})" if rest[1:2] == ")" else ""


def call_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a recorded `Evaluator(...).run(...)`."""
    found: dict[str, Any] = {}
    parsers = SimpleNamespace(agg_last=last, tag_parser=bracketed)
    evaluator = SimpleNamespace(run=lambda **given: found.update(given))
    eval(run["call"], {"Evaluator": lambda **given: found.update(given) or evaluator, "myparsers": parsers})
    return found


def rows_of(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows as HRET's data set gave them."""
    return [{key: value for key, value in sample.items() if key not in RESULTS} for sample in run["samples"]]


def items_of(run: Mapping[str, Any], role: str) -> Iterator[Mapping[str, Any]]:
    """What was asked of a role, in order."""
    return (item for call in run["calls"] if call["role"] == role for item in call["items"])


class Replies:
    """A generator and a reward model that reply as the recorded ones: a prompt's replies in their order."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        self.asked: list[str] = []
        self._replies: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        for item in items_of(run, "generate"):
            self._replies[item["input"]].append(item)
        self._rewards = {
            (item["input"], item["prediction"]): item["reward"] for item in items_of(run, "reward")
        }
        if self._rewards:
            self.score_batch = self._score

    def generate_batch(self, inputs: Sequence[dict[str, Any]], **_: Any) -> list[dict[str, Any]]:
        """As HRET's models."""
        for item in inputs:
            self.asked.append(item["input"])
            reply = self._replies[item["input"]].popleft()
            item["prediction"] = reply["response"]
            if reply.get("logits"):
                item["logits"] = reply["logits"]
        return list(inputs)

    def _score(self, inputs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        for item in inputs:
            item["reward"] = self._rewards[item["input"], item["prediction"]]
        return list(inputs)
