"""Chooses the next token: the most probable, or by the row's own stream of uniform numbers.

A stream depends only on the request (its seed, its draw number, its prompt), and each number
becomes a token by the inverse of the cumulative distribution; so the same request gives the same
answer in any batch and order, up to rounding of the model's probabilities.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.writing import AnswerWriter, Pieces

_ROWS_SORTED_AT_ONCE = 8
"""Rows whose distributions are in float64 at the same time."""


class RowWriter(AnswerWriter):
    """Writes the answer of one row. `stream` has its uniform numbers; None if it is greedy."""

    def __init__(self, loaded: Loaded, job: Job, pieces: Pieces) -> None:
        super().__init__(loaded.encoder, loaded.end_tokens, job, pieces)
        self.stream: random.Random | None = None
        request = job.request
        if request.temperature:
            text = (
                f"{request.seed}/{request.draw}/{request.temperature!r}/{request.top_p!r}"
                f"/{list(job.tokens)}"
            )
            seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
            self.stream = random.Random(int.from_bytes(seed))


def advance(
    logits: Tensor, writers: Sequence[RowWriter]
) -> dict[int, Response | Failure]:
    """Give every row of logits (rows, vocabulary) its next token; return finished rows' answers."""
    done: dict[int, Response | Failure] = {}
    for row, (writer, token) in enumerate(
        zip(writers, choose(logits, writers), strict=True)
    ):
        ending = not_a_number() if token is None else writer.add(token)
        if ending is not None:
            done[row] = ending
    return done


def choose(logits: Tensor, writers: Sequence[RowWriter]) -> list[int | None]:
    """Choose the next token of every row of logits (rows, vocabulary); None if a logit is NaN.

    The maximum of a row with a NaN is NaN, so one pass over the logits finds both.
    """
    best, token_ids = logits.max(dim=-1)
    tokens = torch.where(torch.isnan(best), -1, token_ids).tolist()
    sampled = [
        (row, writer.job.request, writer.stream.random())
        for row, writer in enumerate(writers)
        if writer.stream is not None and tokens[row] >= 0
    ]
    for start in range(0, len(sampled), _ROWS_SORTED_AT_ONCE):
        rows, requests, uniforms = zip(
            *sampled[start : start + _ROWS_SORTED_AT_ONCE], strict=True
        )
        for row, token in zip(
            rows, _draw_rows(logits[list(rows)], requests, uniforms), strict=True
        ):
            tokens[row] = token
    for row, writer in enumerate(writers):
        if writer.job.request.top_logprobs is not None and tokens[row] >= 0:
            logs = torch.log_softmax(logits[row].float(), dim=-1)
            writer.values.append(
                values_of(logs, tokens[row], writer.job.request.top_logprobs)
            )
    return [None if token < 0 else token for token in tokens]


def _draw_rows(
    logits: Tensor, requests: Sequence[Generate], uniforms: Sequence[float]
) -> list[int]:
    """Map uniform numbers in [0, 1) to tokens, by cumulative probability in order of token number.

    The filters follow one another as in transformers: top_k keeps the k most probable tokens and
    those that equal the last of them, top_p the most probable until their sum reaches it, at least
    one (nucleus sampling, Holtzman et al. 2020), min_p those with at least this share of the most
    probable one's probability (Nguyen et al. 2024).
    """
    tensor_options = {"dtype": torch.float64, "device": logits.device}
    temperatures = torch.tensor(
        [request.temperature for request in requests], **tensor_options
    )
    probabilities = torch.softmax(
        logits.double() / temperatures[:, None], dim=-1
    ).nan_to_num()
    for row, request in enumerate(requests):
        left = probabilities[row]
        if request.top_k is not None and request.top_k < len(left):
            left = torch.where(left < left.topk(request.top_k).values[-1], 0.0, left)
            left = left / left.sum()
        if request.top_p is not None and request.top_p < 1:
            left = _nucleus(left, request.top_p)
        if request.min_p is not None:
            left = torch.where(left < request.min_p * left.max(), 0.0, left)
        probabilities[row] = left
    cumulative = probabilities.cumsum(-1)
    thresholds = torch.tensor(uniforms, **tensor_options)[:, None] * cumulative[:, -1:]
    places = torch.searchsorted(cumulative, thresholds, right=True)[:, 0]
    # A uniform number close to 1 can round past the last token that has any probability.
    numbers = torch.arange(1, probabilities.shape[-1] + 1, device=logits.device)
    last = ((probabilities > 0) * numbers).amax(dim=-1) - 1
    tokens: list[int] = torch.minimum(places, last.clamp(min=0)).tolist()
    return tokens


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    ordered, places = probabilities.sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    nucleus = before < top_p
    nucleus[0] = True
    return torch.zeros_like(probabilities).scatter(
        -1, places[nucleus], ordered[nucleus]
    )


def values_of(
    logs: Tensor, token: int, alternatives: int
) -> tuple[float, list[tuple[int, float]]]:
    """Return a token's log-probability from `logs` (vocabulary,), and the most probable tokens."""
    best = logs.topk(min(alternatives, len(logs)))
    return float(logs[token]), list(
        zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def not_a_number() -> Failure:
    """Make the failure of an answer whose logits were not numbers."""
    return ModelError(
        "The model's logits are not numbers; its dtype may be too small (try"
        " dtype=bfloat16 or float32)."
    ).as_failure()
