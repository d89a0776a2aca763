"""Writes a batch with transformers' own generation loop: for models that the loop of `decoding.py` cannot serve.

Rows are padded on the left, and the batch ends when its last row has its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from evalwright.core.errors import Failure
from evalwright.core.responses import Response
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.sampling import choose
from evalwright.models.local.hf.writing import Job, Pieces, Writer, not_a_number

Tensor = Any
"""A torch.Tensor; torch is not typed here."""


def write(loaded: Loaded, jobs: Sequence[Job]) -> list[Response | Failure]:
    """The answers of one batch, in its order."""
    pieces = Pieces(loaded.encoder)
    writers = [Writer(loaded, job, pieces) for job in jobs]
    ids, mask = _pad_left([job.tokens for job in jobs], loaded.pad_token, loaded.device)
    ends = RowEnds(writers)
    config = GenerationConfig(
        max_new_tokens=max(job.room for job in jobs), do_sample=False, pad_token_id=loaded.pad_token
    )
    with torch.inference_mode(), quiet():
        loaded.model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=config,
            stopping_criteria=StoppingCriteriaList([ends]),
            logits_processor=LogitsProcessorList([RowChooser(writers, ends)]),
        )
    return [found for found in ends.found if found is not None]


class RowEnds:
    """A stopping criterion of transformers that ends each row by itself and keeps what came out in `found`."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self.found: list[Response | Failure | None] = [None] * len(writers)
        self._writers = writers

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        """Which rows are done, as a boolean tensor of shape (rows,)."""
        for row, token in enumerate(input_ids[:, -1].tolist()):
            if self.found[row] is None:
                self.found[row] = self._writers[row].add(token)
        done = [end is not None for end in self.found]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)


class RowChooser:
    """A logits processor of transformers that leaves nothing but the token that each row takes next."""

    def __init__(self, writers: Sequence[Writer], ends: RowEnds) -> None:
        self._requests = [writer.job.request for writer in writers]
        self._streams = [writer.stream for writer in writers]
        self._ends = ends

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """`scores` (rows, vocabulary), with all but the chosen token at minus infinity."""
        out = torch.full_like(scores, float("-inf"))
        for row, token in enumerate(choose(scores, self._requests, self._streams)):
            if token is None and self._ends.found[row] is None:
                self._ends.found[row] = not_a_number()
            out[row, token or 0] = 0.0
        return out


def _pad_left(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Tensor, Tensor]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*[pad] * (longest - len(row)), *row] for row in rows], device=device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
