"""Attention of one new token of every row being generated, to its row and to a shared prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.cascade import (
    KeysValues,
    additive_mask,
    attend_to_stored,
)

_GROUP_ROWS = 16
"""Rows that are padded to the longest among them.

Rows begin in order of their length, so neighbours are of similar length.
"""


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """Neighbouring rows, the keys that the longest of them attends to, and what hides the others'.

    `mask` is added to the scores, (rows, 1, 1, keys); None if all are of one length.
    """

    rows: slice
    keys: int
    mask: Tensor


class StepAttention:
    """Attends with one token of every row.

    Args:
        lengths: the tokens of each row after the prefix, the new one included.
        dtype: the model's numbers.
        device: where they are.
    """

    def __init__(self, lengths: Sequence[int], dtype: torch.dtype, device: str) -> None:
        self._groups = []
        for start in range(0, len(lengths), _GROUP_ROWS):
            group_lengths = lengths[start : start + _GROUP_ROWS]
            longest = max(group_lengths)
            mask = None
            if min(group_lengths) < longest:
                ends = torch.tensor(group_lengths, device=device)[:, None]
                seen = torch.arange(longest, device=device)[None] < ends
                mask = additive_mask(seen, dtype)[:, None, None]
            rows = slice(start, start + len(group_lengths))
            self._groups.append(_RowGroup(rows, longest, mask))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float | None,
        stored: KeysValues | None,
    ) -> Tensor:
        """Compute the attention of one layer.

        The queries that share a key-value head become the rows of one small product, so that keys
        are not repeated. The shared prefix enters the softmax as one more key, whose score is the
        logarithm of the prefix's sum of exponentials.

        Args:
            query: (rows, heads, 1, width).
            key: of the rows themselves, (rows, key-value heads, tokens, width).
            value: as `key`.
            scaling: of the scores; None for the usual one.
            stored: keys and values of the prefix (1, key-value heads, length, width), if any.

        Returns:
            (rows, 1, heads, width).
        """
        rows, heads, _, width = query.shape
        shape = (rows, key.shape[1], heads // key.shape[1], width)
        scaled = query.reshape(shape) * (width**-0.5 if scaling is None else scaling)
        attended = torch.empty(shape, dtype=value.dtype, device=value.device)
        before: Tensor = None
        before_score: Tensor = None
        if stored is not None:
            before, before_score = attend_to_stored(query, stored, scaling)
            before = before.reshape(shape)
            before_score = before_score.reshape(*shape[:3], 1)
        for group in self._groups:
            keys = key[group.rows, :, : group.keys]
            values = value[group.rows, :, : group.keys]
            scores = torch.matmul(scaled[group.rows], keys.transpose(2, 3)).float()
            if group.mask is not None:
                scores += group.mask
            if before is None:
                shares = torch.softmax(scores, dim=-1).to(value.dtype)
                attended[group.rows] = torch.matmul(shares, values)
                continue
            scores = torch.cat([scores, before_score[group.rows]], dim=-1)
            shares = torch.softmax(scores, dim=-1).to(value.dtype)
            sums = torch.matmul(shares[..., :-1], values)
            attended[group.rows] = sums.addcmul_(before[group.rows], shares[..., -1:])
        return attended.reshape(rows, 1, heads, width)
