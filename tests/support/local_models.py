"""What tests of local models share: all answers in order, and what transformers writes without
any cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import LogLikelihood, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel


def answers(model: LocalModel, requests: Sequence[Request]) -> list[Any]:
    """All answers in the order of the requests; every request is answered exactly once."""
    indexed = list(model.answer_batch(requests))
    assert sorted(index for index, _ in indexed) == list(range(len(requests)))
    return [answer for _, answer in sorted(indexed, key=lambda pair: pair[0])]


def log_likelihood(model: LocalModel, context: str, continuation: str) -> float:
    """One log-likelihood, which must not fail."""
    [answer] = answers(model, [LogLikelihood(context, continuation)])
    assert isinstance(answer, Response), answer
    assert answer.log_likelihood is not None
    return answer.log_likelihood


def agree(
    actual: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-5
) -> None:
    """The same answers but for rounding, which batches of other sizes do: `tolerance` a scored
    token.
    """
    for ours, theirs in zip(actual, expected, strict=True):
        assert type(ours) is type(theirs), (ours, theirs)
        if isinstance(theirs, Failure):
            assert ours == theirs
            continue
        near = pytest.approx(
            theirs.log_likelihood, abs=tolerance * max(1, theirs.tokens_scored or 0)
        )
        assert theirs.log_likelihood is None or ours.log_likelihood == near
        for name in ("text", "finish_reason", "usage", "is_greedy", "tokens_scored"):
            assert getattr(ours, name) == getattr(theirs, name)


def engine_of(model: Any) -> Any:
    """The loaded parts of a transformers model."""
    model.load()
    assert model._engine is not None
    return model._engine


def greedy_by_hand(model: Any, prompt: str, count: int) -> list[int]:
    """The argmax after a full forward pass without any cache, token by token."""
    import torch

    loaded = engine_of(model).loaded
    tokens = loaded.encoder.encode(prompt, True)
    start = len(tokens)
    while len(tokens) - start < count:
        with torch.no_grad():
            token = int(
                loaded.model(torch.tensor([tokens]), use_cache=False)
                .logits[0, -1]
                .argmax()
            )
        if token in loaded.end_tokens:
            break
        tokens.append(token)
    return list(tokens[start:])
