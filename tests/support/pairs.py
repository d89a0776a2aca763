"""Pairs to judge, and how tests ask a local judge for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.core.errors import Failure
from evalwright.core.requests import Classify
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model

PAIRS = [
    Classify(
        "The river rises in the hills above the town and runs past the old mill.",
        "The river rises.",
    ),
    Classify(
        "A baker gets up.",
        "A baker gets up at three o'clock, lights the oven and weighs flour.",
    ),
    Classify("", "They ran."),
    Classify("Iron melts at 1538 degrees, gold at 1064.", ""),
    Classify("The train had left. " * 6, "東京 and Zürich."),
]


def opened(kind: str, folder: Path | str, **arguments: Any) -> LocalModel:
    """The judge of that kind from a folder."""
    model = open_model(f"{kind}/{folder}", arguments)
    assert isinstance(model, LocalModel)
    return model


def supported(model: LocalModel, pairs: list[Classify]) -> list[float]:
    """P(supported) of each pair; fails where a judge did, or where its values are not two that
    sum to 1.
    """
    probability_by_index: dict[int, float] = {}
    for index, answer in model.answer_batch(pairs):
        assert not isinstance(answer, Failure), answer
        assert len(answer.values) == 2
        assert abs(sum(answer.values) - 1) < 1e-12
        assert index not in probability_by_index
        probability_by_index[index] = answer.values[1]
    return [probability_by_index[index] for index in range(len(pairs))]


def failure(model: LocalModel, pair: Classify) -> str:
    """Why a pair could not be judged."""
    ((_, answer),) = model.answer_batch([pair])
    assert isinstance(answer, Failure), answer
    return answer.message
