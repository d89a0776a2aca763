"""Which token comes next: the most probable, or the one that a row's own stream of uniform numbers falls on.

A stream is drawn from the request (its seed, its draw number, its prompt) and from nothing else, and each number becomes a
token by the inverse of the cumulative distribution; so the same request gives the same answer in any batch and order, up to
rounding of the model's probabilities.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import torch

from evalwright.core.requests import Generate
from evalwright.models.local.hf.batching import Tensor

_SORTED_AT_ONCE = 8
"""Rows whose distributions are held in float64 together."""


def stream_of(request: Generate, tokens: Sequence[int]) -> random.Random | None:
    """The uniform numbers of a request whose prompt has these tokens; None where the answer is greedy."""
    if request.temperature <= 0:
        return None
    text = f"{request.seed}/{request.draw}/{request.temperature!r}/{request.top_p!r}/{list(tokens)}"
    return random.Random(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))


def choose(
    logits: Tensor, requests: Sequence[Generate], streams: Sequence[random.Random | None]
) -> list[int | None]:
    """The next token of every row of logits (rows, vocabulary); None where a logit is not a number.

    The maximum of a row with a NaN is NaN, so that one reading of the logits finds both.
    """
    best, places = logits.max(dim=-1)
    found = torch.where(torch.isnan(best), -1, places).tolist()
    sampled = [row for row, stream in enumerate(streams) if stream is not None and found[row] >= 0]
    for start in range(0, len(sampled), _SORTED_AT_ONCE):
        rows = sampled[start : start + _SORTED_AT_ONCE]
        uniforms = [stream.random() for row in rows if (stream := streams[row]) is not None]
        asked = [requests[row] for row in rows]
        for row, token in zip(rows, _draw_rows(logits[rows], asked, uniforms), strict=True):
            found[row] = token
    return [None if token < 0 else token for token in found]


def _draw_rows(logits: Tensor, requests: Sequence[Generate], uniforms: Sequence[float]) -> list[int]:
    """The tokens that the uniform numbers (in [0, 1)) fall on, in order of token number.

    top_p: keep the most probable tokens until their sum reaches it, at least one (nucleus sampling, Holtzman et al. 2020).
    """
    given = {"dtype": torch.float64, "device": logits.device}
    temperatures = torch.tensor([request.temperature for request in requests], **given)
    probabilities = torch.softmax(logits.double() / temperatures[:, None], dim=-1).nan_to_num()
    for row, request in enumerate(requests):
        if request.top_p is not None and request.top_p < 1:
            probabilities[row] = _nucleus(probabilities[row], request.top_p)
    cumulative = probabilities.cumsum(-1)
    wanted = torch.tensor(uniforms, **given)[:, None] * cumulative[:, -1:]
    places = torch.searchsorted(cumulative, wanted, right=True)[:, 0]
    # A uniform number of almost 1 can round past the last token that has any probability.
    numbers = torch.arange(1, probabilities.shape[-1] + 1, device=logits.device)
    last = ((probabilities > 0) * numbers).amax(dim=-1) - 1
    tokens: list[int] = torch.minimum(places, last.clamp(min=0)).tolist()
    return tokens


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    ordered, places = probabilities.sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    kept = before < top_p
    kept[0] = True
    return torch.zeros_like(probabilities).scatter(-1, places[kept], ordered[kept])
