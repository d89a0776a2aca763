"""Attention computed in two parts and merged: stored keys once for all rows, and each row's own.

Softmax over two sets of keys is the mean of the softmax over each, weighted by each set's sum of
exponentials; kernels return the logarithm of that sum beside their output (Dao et al. 2022;
Juravsky et al. 2024 for shared prefixes). So the stored keys and values are never copied to the
rows and need no mask; queries that share a key-value head are laid end to end. Within a row, the
chain at its beginning is causal, and only the tokens after its first branch need a mask.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from evalwright.models.local.hf.batching import Tensor

KeysValues = tuple[Tensor, Tensor]

NAME = "evalwright_cascade"
_UNSUPPORTED_ARGUMENTS = ("softcap", "s_aux", "sinks", "position_bias", "head_mask")


@dataclass(frozen=True, slots=True)
class Part:
    """One of several token sequences that are laid end to end in one row, so that none is padded.

    Attributes:
        length: number of its tokens.
        trunk: number of tokens at its start that are causal.
        mask: added to the scores of the tokens after these, (length - trunk, length).
    """

    length: int
    trunk: int
    mask: Tensor


@dataclass(frozen=True, slots=True)
class PassPlan:
    """What the queries of one pass attend to.

    Attributes:
        stored: for every layer, keys and values (1, key-value heads, length, width); may be empty.
        parts: parts of the single row; if empty, every row is causal.
        step: computes a pass of one token of every row, instead of `parts`: called with queries,
            keys, values, scaling and the layer's stored keys and values.
    """

    stored: list[KeysValues]
    parts: Sequence[Part] = ()
    step: Callable[..., Tensor] | None = None


class PassLayer(DynamicLayer):  # type: ignore[misc]
    """One layer's cache within a pass of the model.

    Args:
        take: called with this layer and its new keys and values; returns those to attend to.
        length: returns the number of tokens before those of this pass.
        stored: keys and values of a shared prefix (1, key-value heads, length, width).
    """

    def __init__(
        self,
        take: Callable[[Any, Tensor, Tensor], KeysValues],
        length: Callable[[], int],
        stored: KeysValues | None = None,
    ) -> None:
        super().__init__()
        self._take = take
        self._length = length
        self.stored = stored
        self.new: KeysValues | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> KeysValues:
        """Return the keys and values to attend to."""
        return self._take(self, key_states, value_states)

    def get_seq_length(self) -> int:
        """Return the number of tokens before those of this pass."""
        return self._length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of keys, and the position of the first."""
        return self._length() + query_length, 0


def cache_of(layers: Sequence[PassLayer]) -> DynamicCache:
    """Return the cache object for the model."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = None
    cache.layers = list(layers)
    return cache


def additive_mask(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a boolean mask of visible keys into a tensor to add to attention scores.

    Every kernel accepts that form.
    """
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(
        ~seen, torch.finfo(dtype).min
    )


_current = threading.local()


def is_possible(config: Any, device: str) -> bool:
    """Return whether this kind of attention can replace the model's on this device.

    It needs a kernel that returns sums of exponentials.
    """
    if device != "cpu" or getattr(config, "_attn_implementation", None) != "sdpa":
        return False
    if not hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu"):
        return False
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
    return True


@contextmanager
def attending(config: Any, plan: PassPlan) -> Iterator[None]:
    """Make the model with that configuration attend by `plan` within the block, in this thread."""
    usual = config._attn_implementation
    config._attn_implementation = NAME
    _current.plan = plan
    try:
        yield
    finally:
        config._attn_implementation = usual
        _current.plan = None


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Compute attention for transformers' AttentionInterface; returns (rows, length, heads, width).

    Raises:
        TypeError: the model's attention is more than scaled dot products.
    """
    unknown = [name for name in _UNSUPPORTED_ARGUMENTS if others.get(name) is not None]
    if unknown or query.shape[-1] != value.shape[-1]:
        raise TypeError(
            f"its attention is not standard ({', '.join(unknown) or 'widths differ'})"
        )
    plan: PassPlan = _current.plan
    stored = plan.stored[module.layer_idx] if plan.stored else None
    if plan.step is not None:
        return plan.step(query, key, value, scaling, stored), None
    attended, total = _attend_within(plan, query, key, value, scaling)
    if stored is not None:
        before, weight = attend_to_stored(query, stored, scaling)
        log_total = torch.logaddexp(total, weight)
        # Nothing else uses these two tensors, so they are changed in place.
        attended.mul_((total - log_total).exp()[..., None].to(attended.dtype))
        attended.addcmul_(
            before, (weight - log_total).exp()[..., None].to(attended.dtype)
        )
    return attended.transpose(1, 2).contiguous(), None


def _attend_within(
    plan: PassPlan, query: Tensor, key: Tensor, value: Tensor, scaling: float | None
) -> tuple[Tensor, Tensor]:
    groups = query.shape[1] // key.shape[1]
    outputs: list[tuple[Tensor, Tensor]] = []
    start = 0
    for row in plan.parts or [Part(query.shape[2], query.shape[2], None)]:
        queries, keys, values = (
            states[:, :, start : start + row.length] for states in (query, key, value)
        )
        if groups > 1:
            keys, values = (
                states.repeat_interleave(groups, dim=1) for states in (keys, values)
            )
        cut = row.trunk
        outputs.append(
            _kernel(
                queries[:, :, :cut],
                keys[:, :, :cut],
                values[:, :, :cut],
                scaling,
                causal=True,
            )
        )
        if cut < row.length:
            outputs.append(
                _kernel(queries[:, :, cut:], keys, values, scaling, mask=row.mask)
            )
        start += row.length
    if len(outputs) == 1:
        return outputs[0]
    # In the order that the kernel writes and the model expects: (rows, length, heads, width).
    attended = torch.cat(
        [output.transpose(1, 2) for output, _ in outputs], dim=1
    ).transpose(1, 2)
    return attended, torch.cat([total for _, total in outputs], dim=2)


def attend_to_stored(
    query: Tensor, stored: tuple[Tensor, Tensor], scaling: float | None
) -> tuple[Tensor, Tensor]:
    """Attend with every query to all stored keys, without a mask.

    Rows and the heads of a group become one long row.
    """
    key, value = stored
    rows, heads, length, width = query.shape
    shared = key.shape[1]
    groups = heads // shared
    folded = (
        query.reshape(rows, shared, groups, length, width)
        .transpose(0, 1)
        .reshape(1, shared, -1, width)
    )
    attended, total = _kernel(folded, key, value, scaling)
    attended = (
        attended.reshape(shared, rows, groups, length, width)
        .transpose(0, 1)
        .reshape(query.shape)
    )
    return attended, total.reshape(shared, rows, groups, length).transpose(
        0, 1
    ).reshape(rows, heads, length)


def _kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    mask: Tensor = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the output (rows, heads, queries, width) and the log of the sum of exponentials.

    The latter has shape (rows, heads, queries).
    """
    output: tuple[Tensor, Tensor] = (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=mask, scale=scaling
        )
    )
    return output
