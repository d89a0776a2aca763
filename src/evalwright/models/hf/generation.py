"""Generation in left-padded batches; every row has its own end: EOS, a stop string, or its own limit.

Greedy answers do not depend on the batch in float32. A sampled answer is decided by one stream of uniform numbers, drawn
from the request (its seed, its draw number, its prompt) and from nothing else, each turned into a token by the inverse of
the cumulative distribution; so the same request gives the same answer in any batch and order, up to rounding of the
model's probabilities.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.hf.batching import Batcher
from evalwright.models.hf.loading import Loaded
from evalwright.models.hf.quiet import quiet
from evalwright.models.tokens import StopSearch, stop_at

Tensor = Any
"""A torch.Tensor; torch is not typed here."""


@dataclass(frozen=True, slots=True)
class Job:
    """One answer to write: the prompt's tokens, how many new ones at the most, and the request itself."""

    tokens: list[int]
    room: int
    request: Generate


class Generator:
    """Writes answers with transformers' own generation loop."""

    def __init__(self, loaded: Loaded, batcher: Batcher[Response | Failure]) -> None:
        self._loaded = loaded
        self._batcher = batcher

    def generate(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into jobs, answer)` once for every job, as their batches finish."""
        costs = [len(job.tokens) + job.room for job in jobs]
        yield from self._batcher.run(costs, lambda batch: self._run([jobs[i] for i in batch]))

    def _run(self, jobs: list[Job]) -> list[Response | Failure]:
        loaded = self._loaded
        ids, mask = _pad_left([job.tokens for job in jobs], loaded.pad_token, loaded.device)
        ends = RowEnds(loaded, jobs, ids.shape[1])
        config = GenerationConfig(
            max_new_tokens=max(job.room for job in jobs), do_sample=False, pad_token_id=loaded.pad_token
        )
        broken = BrokenRows()
        processors: list[Any] = [broken]
        if any(job.request.temperature > 0 for job in jobs):
            processors.append(RowSampler(jobs))
        with torch.inference_mode(), quiet():
            out = loaded.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=config,
                stopping_criteria=StoppingCriteriaList([ends]),
                logits_processor=LogitsProcessorList(processors),
            )
        new = out[:, ids.shape[1] :].tolist()
        return [
            _not_a_number() if is_broken else self._response(job, row, end)
            for job, row, end, is_broken in zip(jobs, new, ends.found, broken.rows(), strict=True)
        ]

    def _response(self, job: Job, row: list[int], end: tuple[int, str] | None) -> Response:
        length, reason = end or (len(row), "length")
        written = row[:length]
        kept = written[:-1] if written and written[-1] in self._loaded.end_tokens else written
        text = self._loaded.encoder.decode(kept, skip_special_tokens=True)
        return Response(
            text=stop_at(text, job.request.stop),
            finish_reason=reason,
            usage=Usage(input_tokens=len(job.tokens), output_tokens=length),
        )


class RowEnds:
    """A stopping criterion of transformers that ends each row by itself and notes (new tokens, reason) in `found`."""

    def __init__(self, loaded: Loaded, jobs: Sequence[Job], prompt_length: int) -> None:
        self.found: list[tuple[int, str] | None] = [None] * len(jobs)
        self._start = prompt_length
        self._end_tokens = loaded.end_tokens
        self._rooms = [job.room for job in jobs]
        self._stops = [StopSearch(loaded.encoder, job.request.stop) for job in jobs]
        self._written: list[list[int]] = [[] for _ in jobs]

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        """Which rows are done, as a boolean tensor of shape (rows,)."""
        for row, token in enumerate(input_ids[:, -1].tolist()):
            if self.found[row] is None:
                self._written[row].append(token)
                self.found[row] = self._end(row, token)
        done = [end is not None for end in self.found]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)

    def _end(self, row: int, token: int) -> tuple[int, str] | None:
        written = self._written[row]
        if token in self._end_tokens or self._stops[row].found(written):
            return len(written), "stop"
        return (len(written), "length") if len(written) >= self._rooms[row] else None


class BrokenRows:
    """A logits processor of transformers that notes rows whose logits were not numbers, and changes nothing."""

    def __init__(self) -> None:
        self._broken: Tensor = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """`scores`, unchanged. Nothing is read from the device here, which would make every step wait."""
        here = torch.isnan(scores).any(dim=-1)
        self._broken = here if self._broken is None else self._broken | here
        return scores

    def rows(self) -> list[bool]:
        """One flag per row."""
        flags: list[bool] = self._broken.tolist()
        return flags


class RowSampler:
    """A logits processor of transformers that draws each sampled row's token and leaves greedy rows as they are."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._rows = [(row, job) for row, job in enumerate(jobs) if job.request.temperature > 0]
        self._streams = {row: random.Random(_seed(job)) for row, job in self._rows}

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """`scores` (rows, vocabulary), with all but the drawn token at minus infinity."""
        out = scores.clone()
        for row, job in self._rows:
            token = draw(scores[row], job.request.temperature, job.request.top_p, self._streams[row].random())
            out[row] = float("-inf")
            out[row, token] = 0.0
        return out


def draw(logits: Tensor, temperature: float, top_p: float | None, uniform: float) -> int:
    """The token that `uniform` (in [0, 1)) falls on, in order of token number.

    top_p: keep the most probable tokens until their sum reaches it, at least one (nucleus sampling, Holtzman et al. 2020).
    """
    probabilities = torch.softmax(logits.double() / temperature, dim=-1).nan_to_num()
    if top_p is not None and top_p < 1:
        ordered, places = probabilities.sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        kept = before < top_p
        kept[0] = True
        probabilities = torch.zeros_like(probabilities).scatter(-1, places[kept], ordered[kept])
    cumulative = probabilities.cumsum(-1)
    place = torch.searchsorted(cumulative, uniform * cumulative[-1], right=True)
    last = (probabilities > 0).nonzero()
    return int(place.clamp(max=int(last[-1]) if len(last) else 0))


def _not_a_number() -> Failure:
    return ModelError(
        "The model's logits are not numbers; its dtype may be too small (try dtype=bfloat16 or float32)."
    ).as_failure()


def _seed(job: Job) -> int:
    request = job.request
    text = f"{request.seed}/{request.draw}/{request.temperature!r}/{request.top_p!r}/{job.tokens}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _pad_left(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Tensor, Tensor]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*[pad] * (longest - len(row)), *row] for row in rows], device=device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
