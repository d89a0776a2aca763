"""Runs rows of a prefix tree through a transformers model, on top of stored keys and values.

A row's tokens are side by side, each with its own position, and a mask lets each token see only its
own path. There are two ways to attend, with the same result:

- portable: the cache puts stored keys and values in front of every row's own, and a
  four-dimensional mask says what is visible. It works with any model that takes a cache, a 4D mask
  and position ids.
- cascade (`cascade.py`): the model's attention is replaced by one that attends to the stored part
  once for all rows, and to the row itself separately, and merges both. Nothing is copied and most
  of it needs no mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicCache

from evalwright.models.local.hf import cascade
from evalwright.models.local.hf.batching import Tensor, cache_bytes, text_config
from evalwright.models.local.hf.model_checks import ModelChecks
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import LogitReader, to_device
from evalwright.models.local.tree import Row

_ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}
_SHORT_SIGHTED_ROPE = {"dynamic", "longrope"}

CACHE_ARGUMENTS = ("cache", "past_key_values")
"""Names of the cache argument of `forward`: from transformers 5.24 on, and before.

The first that a model uses counts.
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """Keys and values of one path from the root of the tree.

    They are, for each layer, (1, key-value heads, length, width).
    """

    length: int
    layers: list[cascade.KeysValues]

    def first(self, length: int) -> Stored:
        """Return the keys and values of the first tokens."""
        return Stored(
            length,
            [
                (k[:, :, :length].contiguous(), v[:, :, :length].contiguous())
                for k, v in self.layers
            ],
        )


NOTHING_STORED = Stored(0, [])


class TreeForward:
    """The model as the tree uses it.

    `cascading` says how it attends; `refusal` says why it cannot be used, or is None.
    """

    def __init__(
        self,
        model: Any,
        reader: LogitReader,
        device: str,
        checks: ModelChecks | None = None,
    ) -> None:
        self._model = model
        self.base: Any = getattr(model, "base_model", None)
        self._reader = reader
        self.device = device
        self.config = text_config(model)
        self.dtype = next(model.parameters()).dtype
        self.number_bytes = int(self.dtype.itemsize)
        self.cache_argument = CACHE_ARGUMENTS[0]
        self.refusal = self._static_refusal() or self._checked_refusal(
            checks or ModelChecks()
        )
        self.cascading = self.refusal is None and cascade.is_possible(
            self.config, device
        )
        self.longest = longest_path(self.config)

    def run(
        self, rows: Sequence[Row], past: Stored, keep: bool = False
    ) -> tuple[Tensor, Stored | None]:
        """Run rows after the stored path `past`.

        Returns:
            The last hidden states (tokens, width), row after row; with `keep`, also what to store
            for the only row: `past` and the row's own tokens.
        """
        lengths = [row.length for row in rows]
        # Cascade attention needs no padding: the rows are laid end to end.
        shape = (1, sum(lengths)) if self.cascading else (len(rows), max(lengths))
        ids = np.zeros(shape, dtype=np.int64)
        positions = np.full(shape, past.length, dtype=np.int64)
        end = 0
        for row_index, row in enumerate(rows):
            line, end = (0, end) if self.cascading else (row_index, 0)
            for part in row.parts:
                start = end
                end = end + len(part.node)
                ids[line, start:end] = part.node.tokens
                positions[line, start:end] = np.arange(part.node.start, part.node.end)
        inputs: dict[str, Any] = {
            "input_ids": to_device(torch.from_numpy(ids), self.device),
            "position_ids": to_device(torch.from_numpy(positions), self.device),
            "use_cache": keep or past.length > 0,
        }
        with torch.inference_mode():
            if self.cascading:
                hidden, stored = self._cascaded(inputs, rows, past, keep)
                return hidden[0], stored
            hidden, stored = self._portable(inputs, rows, past, keep)
            return (
                torch.cat(
                    [
                        row_hidden[:length]
                        for row_hidden, length in zip(hidden, lengths, strict=True)
                    ]
                ),
                stored,
            )

    def chain(self, tokens: Sequence[int]) -> tuple[Tensor, Stored]:
        """Run one text in the plain way, with nothing of ours except a cache that keeps everything.

        Returns:
            The last hidden states (tokens, width), and what to store.
        """
        ids = torch.tensor([list(tokens)], device=self.device)
        cache = self._cache(NOTHING_STORED, keep=True, joined=False)
        with torch.inference_mode():
            hidden = self.with_cache(
                cache,
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                use_cache=True,
            )
        return hidden[0], _extend_stored(NOTHING_STORED, cache)

    def with_cache(self, cache: DynamicCache | None, **arguments: Any) -> Tensor:
        """Return the last hidden states of a pass that uses this cache.

        Args:
            cache: holds the keys and values; None for a pass without.
            arguments: the other arguments of the model's `forward`.
        """
        hidden: Tensor = self.base(
            **{self.cache_argument: cache}, **arguments
        ).last_hidden_state
        return hidden

    def _portable(
        self, inputs: dict[str, Any], rows: Sequence[Row], past: Stored, keep: bool
    ) -> tuple[Tensor, Stored | None]:
        length = inputs["input_ids"].shape[1]
        if past.length or any(row.branches for row in rows):
            inputs["attention_mask"] = self._portable_mask(rows, past.length, length)
        else:
            # Padding is on the right, where no token attends; so no mask is needed, and the fast
            # kernel is used.
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        cache = self._cache(past, keep, joined=True) if inputs["use_cache"] else None
        hidden = self.with_cache(cache, **inputs)
        return hidden, _extend_stored(past, cache) if keep else None

    def _cascaded(
        self, inputs: dict[str, Any], rows: Sequence[Row], past: Stored, keep: bool
    ) -> tuple[Tensor, Stored | None]:
        row_parts = []
        for row in rows:
            trunk = row.trunk
            mask = (
                self._mask(visible(row, row.length)[trunk:])
                if trunk < row.length
                else None
            )
            row_parts.append(cascade.Part(row.length, trunk, mask))
        cache = self._cache(past, keep, joined=False) if inputs["use_cache"] else None
        with cascade.attending(self.config, cascade.PassPlan(past.layers, row_parts)):
            # An explicit mask keeps some models from warning about padding; this one is not used.
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
            hidden = self.with_cache(cache, **inputs)
        return hidden, _extend_stored(past, cache) if keep else None

    def _cache(self, past: Stored, keep: bool, joined: bool) -> DynamicCache:
        """Make a cache that prepends what is stored, if `joined`.

        It holds new keys and values only if `keep`.
        """

        def take(layer: Any, key: Tensor, value: Tensor) -> cascade.KeysValues:
            if keep:
                layer.new = (key, value)
            if layer.stored is None or not joined:
                return key, value
            keys, values = (
                states.expand(key.shape[0], -1, -1, -1) for states in layer.stored
            )
            return torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)

        nothing: list[cascade.KeysValues | None] = [None] * int(
            self.config.num_hidden_layers
        )
        return cascade.cache_of(
            [
                cascade.PassLayer(take, lambda: past.length, stored_layer)
                for stored_layer in past.layers or nothing
            ]
        )

    def _portable_mask(self, rows: Sequence[Row], before: int, length: int) -> Tensor:
        """Return the mask of padded rows; what is stored before them is visible to all.

        Only what differs is made on the CPU and copied.
        """
        seen = np.stack([visible(row, length) for row in rows])
        mask = torch.zeros(
            (len(rows), 1, length, before + length),
            dtype=self.dtype,
            device=self.device,
        )
        mask[:, 0, :, before:] = self._mask(seen)
        return mask

    def _mask(self, seen: np.ndarray) -> Tensor:
        return cascade.additive_mask(
            to_device(torch.from_numpy(seen), self.device), self.dtype
        )

    def stored_bytes(self, length: int) -> int:
        """Return the bytes of the keys and values of that many tokens."""
        return cache_bytes(self.config, self.number_bytes) * length

    def _static_refusal(self) -> str | None:
        if getattr(self.config, "is_encoder_decoder", False):
            return "it is an encoder-decoder model"
        if getattr(self._model, "_is_stateful", False):
            return "it carries a state from token to token that cannot branch"
        kinds = set(getattr(self.config, "layer_types", None) or [])
        if kinds - _ATTENTION_LAYERS:
            return (
                "it has layers other than attention"
                f" ({', '.join(sorted(kinds - _ATTENTION_LAYERS))})"
            )
        if not self._reader.sliced:
            return "its output head cannot be applied to single positions"
        if getattr(self.config, "_attn_implementation", None) not in ("sdpa", "eager"):
            return (
                "its attention takes no mask in four dimensions (attn_implementation"
                " sdpa and eager do)"
            )
        return None

    def _checked_refusal(self, checks: ModelChecks) -> str | None:
        """Try how the model takes a cache, unless that is known."""
        argument = checks.passed("cache argument")
        if argument in CACHE_ARGUMENTS:
            self.cache_argument = argument
            return None
        refusal = self._tried_refusal()
        if refusal is None:
            checks.note("cache argument", self.cache_argument)
        return refusal

    def _tried_refusal(self) -> str | None:
        """Find out by two passes of eight tokens how the model takes a cache.

        Returns:
            Why it cannot be used, or None.
        """
        ids = torch.arange(1, 9, device=self.device)[None] % int(self.config.vocab_size)
        steps = torch.arange(8, device=self.device)[None]
        refusal = ""
        for argument in CACHE_ARGUMENTS:
            self.cache_argument = argument
            cache = self._cache(NOTHING_STORED, keep=True, joined=False)
            try:
                near, far = (
                    self._tried_at(ids, positions, cache)
                    for positions in (steps, 2 * steps)
                )
            except (
                Exception
            ) as error:  # whatever the error is, the model cannot be used this way
                refusal = refusal or _refusal_of(error)
                continue
            if torch.equal(near, far):
                return "it does not use position_ids"
            if all(layer.new is not None for layer in cache.layers):
                return None
            refusal = "it does not use the cache that it is given"
        return refusal

    def _tried_at(self, ids: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
        with torch.inference_mode(), quiet():
            return self.with_cache(
                cache,
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                position_ids=positions,
                use_cache=True,
            )


def _refusal_of(error: Exception) -> str:
    """Describe why a model refused a pass."""
    message = str(error)
    refused = [
        name
        for name in ("position_ids", "attention_mask", "use_cache")
        if name in message
    ]
    return (
        f"it does not take {', '.join(refused)}"
        if refused
        else message or type(error).__name__
    )


def _extend_stored(past: Stored, cache: Any) -> Stored:
    layers = []
    for layer_index, layer in enumerate(cache.layers):
        if layer.new is None:
            raise TypeError("a layer of the model left the cache unused")
        keys, values = layer.new
        if past.layers:
            before = past.layers[layer_index]
            keys = torch.cat([before[0], keys], dim=-2)
            values = torch.cat([before[1], values], dim=-2)
        layers.append((keys.contiguous(), values.contiguous()))
    return Stored(int(layers[0][0].shape[-2]), layers)


def visible(row: Row, length: int) -> np.ndarray:
    """Return which of a row's tokens each of them sees: boolean (length, length).

    Padding sees itself, so that the softmax has a sum.
    """
    seen = np.eye(length, dtype=bool)
    ends: list[int] = []
    end = 0
    for row_part in row.parts:
        start = end
        end = end + len(row_part.node)
        if row_part.above >= 0:
            seen[start:end] |= seen[ends[row_part.above] - 1]
        seen[start:end, start:end] = np.tri(end - start, dtype=bool)
        ends.append(end)
    return seen


def longest_path(config: Any) -> int | None:
    """Return the longest path that every layer sees whole, in tokens; None for any length.

    A layer with a sliding window or chunks attends in the usual way up to their size. Rotary
    embeddings that change with the length of the text do so from their original length on.
    """
    limits = []
    kinds = getattr(config, "layer_types", None)
    if getattr(config, "use_sliding_window", True) and (
        kinds is None or "sliding_attention" in kinds
    ):
        limits.append(getattr(config, "sliding_window", None))
    limits += [
        getattr(config, name, None) for name in ("attention_chunk_size", "window_size")
    ]
    rope = (
        getattr(config, "rope_parameters", None)
        or getattr(config, "rope_scaling", None)
        or {}
    )
    for rope_settings in (
        rope,
        *(nested for nested in rope.values() if isinstance(nested, dict)),
    ):
        if (
            rope_settings.get("rope_type", rope_settings.get("type"))
            in _SHORT_SIGHTED_ROPE
        ):
            original = rope_settings.get("original_max_position_embeddings")
            limits.append(
                original or getattr(config, "original_max_position_embeddings", None)
            )
            limits.append(
                config.max_position_embeddings if limits[-1] is None else None
            )
    known_limits = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known_limits) if known_limits else None
