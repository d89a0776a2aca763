"""Attention in parts that are merged: what is stored, attended to once for all rows, and each row
for itself.

Softmax over two sets of keys is the mean of softmax over each, weighted by the sum of exponentials
that each had; kernels give the logarithm of that sum beside their output (Dao et al. 2022; Juravsky
et al. 2024 for shared prefixes). So the stored keys and values are never copied to the rows and
need no mask; queries that share a key-value head are laid end to end. Within a row, the chain that
it begins with is causal, and only the tokens after its first branch need a mask.
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
_NOT_UNDERSTOOD = ("softcap", "s_aux", "sinks", "position_bias", "head_mask")


@dataclass(frozen=True, slots=True)
class Part:
    """One of several rows that are laid end to end in one, so that none is padded.

    trunk: tokens at its start that are causal. mask: added to the scores of those after these,
    (length - trunk, length).
    """

    length: int
    trunk: int
    mask: Tensor


@dataclass(frozen=True, slots=True)
class PassPlan:
    """What one pass attends to.

    stored: for every layer, keys and values (1, key-value heads, length, width); empty: nothing.
    parts: of the one row that is given; empty: every row is causal. step: one token of every row
    attends to the keys of its row, with `mask` added to the scores (rows, 1, 1, keys).
    """

    stored: list[KeysValues]
    parts: Sequence[Part] = ()
    mask: Tensor = None
    step: bool = False


class PassLayer(DynamicLayer):  # type: ignore[misc]
    """One layer's cache within a pass of the model.

    take: is handed this layer with the new keys and values, and gives those to attend to. length:
    tokens before those of this pass. stored: keys and values of a shared beginning (1, key-value
    heads, length, width).
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
        """The keys and values to attend to."""
        return self._take(self, key_states, value_states)

    def get_seq_length(self) -> int:
        """Tokens before those of this pass."""
        return self._length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys, and the place of the first."""
        return self._length() + query_length, 0


def cache_of(layers: Sequence[PassLayer]) -> DynamicCache:
    """The cache that a model is handed."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = None
    cache.layers = list(layers)
    return cache


def additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """From what is seen, as a boolean tensor, to what is added to attention scores; every kernel
    takes that.
    """
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(
        ~seen, torch.finfo(dtype).min
    )


_current = threading.local()


def is_possible(config: Any, device: str) -> bool:
    """Whether the kernel that gives sums of exponentials is there, and the model's attention can be
    exchanged.
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
    """Let the model of that configuration attend by `plan` within the block, in this thread."""
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
    """An attention function as transformers' AttentionInterface wants it; returns (rows, length,
    heads, width).

    Raises TypeError for a model whose attention is more than scaled dot products.
    """
    unknown = [name for name in _NOT_UNDERSTOOD if others.get(name) is not None]
    if unknown or query.shape[-1] != value.shape[-1]:
        raise TypeError(
            f"its attention is not standard ({', '.join(unknown) or 'widths differ'})"
        )
    plan: PassPlan = _current.plan
    stored = plan.stored[module.layer_idx] if plan.stored else None
    if plan.step:
        return _step(plan, query, key, value, scaling, stored), None
    out, total = _within(plan, query, key, value, scaling)
    if stored is not None:
        before, weight = _to_stored(query, stored, scaling)
        both = torch.logaddexp(total, weight)
        # Both belong to nobody else, so they are changed where they lie.
        out.mul_((total - both).exp()[..., None].to(out.dtype))
        out.addcmul_(before, (weight - both).exp()[..., None].to(out.dtype))
    return out.transpose(1, 2).contiguous(), None


def _step(
    plan: PassPlan,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    stored: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """One token of every row; returns (rows, 1, heads, width).

    The queries that share a key-value head become the rows of one small product, so that keys are
    not repeated.
    """
    rows, heads, _, width = query.shape
    folded = query.reshape(rows, key.shape[1], heads // key.shape[1], width)
    scale = width**-0.5 if scaling is None else scaling
    scores = torch.matmul(folded, key.transpose(2, 3)).float() * scale
    if plan.mask is not None:
        scores += plan.mask
    if stored is None:
        out = torch.matmul(torch.softmax(scores, dim=-1).to(value.dtype), value)
        return out.reshape(rows, 1, heads, width)
    before, weight = _to_stored(query, stored, scaling)
    total = torch.logsumexp(scores, dim=-1, keepdim=True)
    weight = weight.reshape(total.shape)
    both = torch.logaddexp(total, weight)
    out = torch.matmul((scores - both).exp().to(value.dtype), value)
    out += before.reshape(out.shape) * (weight - both).exp().to(out.dtype)
    return out.reshape(rows, 1, heads, width)


def _within(
    plan: PassPlan, query: Tensor, key: Tensor, value: Tensor, scaling: float | None
) -> tuple[Tensor, Tensor]:
    groups = query.shape[1] // key.shape[1]
    found: list[tuple[Tensor, Tensor]] = []
    start = 0
    for part in plan.parts or [Part(query.shape[2], query.shape[2], None)]:
        own, keys, values = (
            each[:, :, start : start + part.length] for each in (query, key, value)
        )
        if groups > 1:
            keys, values = (
                each.repeat_interleave(groups, dim=1) for each in (keys, values)
            )
        cut = part.trunk
        found.append(
            _kernel(
                own[:, :, :cut],
                keys[:, :, :cut],
                values[:, :, :cut],
                scaling,
                causal=True,
            )
        )
        if cut < part.length:
            found.append(
                _kernel(own[:, :, cut:], keys, values, scaling, mask=part.mask)
            )
        start += part.length
    if len(found) == 1:
        return found[0]
    # In the order that the kernel writes and the model wants: (rows, length, heads, width).
    out = torch.cat([own.transpose(1, 2) for own, _ in found], dim=1).transpose(1, 2)
    return out, torch.cat([total for _, total in found], dim=2)


def _to_stored(
    query: Tensor, stored: tuple[Tensor, Tensor], scaling: float | None
) -> tuple[Tensor, Tensor]:
    """Every query sees all that is stored: rows and the heads of a group become one long row."""
    key, value = stored
    rows, heads, length, width = query.shape
    shared = key.shape[1]
    groups = heads // shared
    folded = (
        query.reshape(rows, shared, groups, length, width)
        .transpose(0, 1)
        .reshape(1, shared, -1, width)
    )
    out, total = _kernel(folded, key, value, scaling)
    out = (
        out.reshape(shared, rows, groups, length, width)
        .transpose(0, 1)
        .reshape(query.shape)
    )
    return out, total.reshape(shared, rows, groups, length).transpose(0, 1).reshape(
        rows, heads, length
    )


def _kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    mask: Tensor = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """Output (rows, heads, queries, width) and log of the sum of exponentials (rows, heads,
    queries).
    """
    found: tuple[Tensor, Tensor] = (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=mask, scale=scaling
        )
    )
    return found
