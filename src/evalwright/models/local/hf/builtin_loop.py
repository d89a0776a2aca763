"""Writes a batch with transformers' own generation loop: for models that the loop of `decoding.py` cannot serve.

Prompts of a decoder are padded on the left, those of an encoder on the right; the batch ends when its last row has its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from evalwright.core.errors import Failure
from evalwright.core.responses import Response
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.sampling import choose
from evalwright.models.local.hf.scoring import pad_right
from evalwright.models.local.hf.writing import Pieces, Writer, not_a_number


def write(loaded: Loaded, jobs: Sequence[Job]) -> list[Response | Failure]:
    """The answers of one batch, in its order."""
    pieces = Pieces(loaded.encoder)
    writers = [Writer(loaded, job, pieces) for job in jobs]
    found: list[Response | Failure | None] = [None] * len(jobs)

    def chosen(_: Tensor, scores: Tensor) -> Tensor:
        """`scores` (rows, vocabulary), with all but the token that each row takes next at minus infinity."""
        out = torch.full_like(scores, float("-inf"))
        tokens = choose(scores, [job.request for job in jobs], [writer.stream for writer in writers])
        for row, token in enumerate(tokens):
            if token is None and found[row] is None:
                found[row] = not_a_number()
            out[row, token or 0] = 0.0
        return out

    def ended(ids: Tensor, _: Tensor, **__: Any) -> Tensor:
        """Which rows are done, as a boolean tensor of shape (rows,)."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if found[row] is None:
                found[row] = writers[row].add(token)
        return torch.tensor([end is not None for end in found], dtype=torch.bool, device=ids.device)

    rows, start = [job.tokens for job in jobs], loaded.start_tokens
    given: dict[str, Any] = {"decoder_input_ids": torch.tensor([start] * len(jobs), device=loaded.device)}
    ids, mask = pad_right(rows, loaded.device) if start else _pad_left(rows, loaded.pad_token, loaded.device)
    config = GenerationConfig(
        max_new_tokens=max(job.room for job in jobs),
        do_sample=False,
        pad_token_id=loaded.pad_token,
        decoder_start_token_id=start[0] if start else None,
    )
    with torch.inference_mode(), quiet():
        loaded.model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=config,
            stopping_criteria=StoppingCriteriaList([ended]),
            logits_processor=LogitsProcessorList([chosen]),
            **(given if start else {}),
        )
    return [answer for answer in found if answer is not None]


def _pad_left(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Tensor, Tensor]:
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*[pad] * (longest - len(row)), *row] for row in rows], device=device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
