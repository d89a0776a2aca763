"""Keys and values of the rows that are being written, each row in a place of its own, and the model's passes over them.

What the rows' prompts begin with alike is computed once, for all of them. A row's own tokens stand from the left of its
place, so that rows of any length can come and go; a mask hides what lies behind its end. There are two ways to attend, as
in `tree_forward.py`, with the same result:

- portable: the shared part is copied to every place, and a mask in four dimensions says what is seen.
- cascade: the shared part is attended to once for all rows, and the rows' own parts apart, and both are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from evalwright.models.local.hf import cascade
from evalwright.models.local.hf.batching import Tensor, text_config
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.scoring import pad

Stage = Literal["prefix", "add", "step"]


class Slots:
    """Places for up to `rows` rows of up to `length` tokens each below a shared prefix, of which `used` are in use."""

    def __init__(self, model: Any, reader: LogitReader, device: str, cascading: bool) -> None:
        self._base = model.base_model
        self._reader = reader
        self._device = device
        self._config = text_config(model)
        self._dtype = next(model.parameters()).dtype
        self.cascading = cascading
        self._lengths: list[int] = []
        self._start_again(0, 0)

    @property
    def used(self) -> int:
        """Rows that are there."""
        return len(self._lengths)

    def open(self, prefix: Sequence[int], rows: int, length: int) -> None:
        """Forget all rows, make places for others, and compute the tokens that all of them begin with."""
        with torch.inference_mode():
            self._start_again(rows, length)
            if prefix:
                self._stage = "prefix"
                ids = torch.tensor([list(prefix)], device=self._device)
                self._forward(ids, torch.arange(len(prefix), device=self._device)[None], torch.ones_like(ids))
                self._prefix = len(prefix)

    def close(self) -> None:
        """Free the memory."""
        self._start_again(0, 0)

    def add(self, rows: Sequence[Sequence[int]], copies: Sequence[int] = ()) -> Tensor:
        """Put rows, which begin after the prefix, into the next free places; returns the logits after their last tokens.

        copies: for every further row that equals one of them, which. Logits are (rows and copies, vocabulary).
        """
        with torch.inference_mode():
            self._stage = "add"
            self._adding = len(rows)
            ids, mask = pad(rows, self._device)
            length = ids.shape[1]
            positions = torch.arange(self._prefix, self._prefix + length, device=self._device)[None]
            if self._prefix and not self.cascading:
                seen = torch.ones(length, self._prefix + length, dtype=torch.bool, device=self._device)
                mask = self._additive(seen.tril(self._prefix))[None, None].expand(len(rows), -1, -1, -1)
            else:
                # Padding stands on the right, where no token looks; so no mask is needed, and the fast kernel is used.
                mask = torch.ones_like(mask)
            hidden = self._forward(ids, positions.expand(len(rows), -1), mask)
            ends = torch.tensor([len(row) - 1 for row in rows], device=self._device)
            logits = self._reader.head(hidden[torch.arange(len(rows), device=self._device), ends])
            if copies:
                self._copy(copies)
                logits = logits[[*range(len(rows)), *copies]]
            self._lengths += [len(row) for row in rows]
            self._lengths += [len(rows[copy]) for copy in copies]
            return logits

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Put one more token into every row; returns the logits after it, (used, vocabulary)."""
        with torch.inference_mode():
            self._stage = "step"
            self._ends = torch.tensor(self._lengths, device=self._device)
            longest = max(self._lengths)
            before = 0 if self.cascading else self._prefix
            self._seen = before + longest + 1
            mask = None
            if min(self._lengths) < longest:
                seen = torch.arange(self._seen, device=self._device)[None] <= before + self._ends[:, None]
                mask = self._additive(seen)[:, None, None]
            self._mask = mask
            ids = torch.tensor(tokens, device=self._device)[:, None]
            given = mask
            if self.cascading:
                given = torch.ones_like(ids)  # only keeps some models from warning of padding
            elif mask is None:
                given = torch.zeros((len(tokens), 1, 1, self._seen), dtype=self._dtype, device=self._device)
            hidden = self._forward(ids, self._prefix + self._ends[:, None], given)
            self._lengths = [length + 1 for length in self._lengths]
            return self._reader.head(hidden[:, 0])

    def remove(self, places: Sequence[int]) -> None:
        """Take rows out; the last row moves to the place that gets free, from the highest place to the lowest."""
        with torch.inference_mode():
            for place in sorted(places, reverse=True):
                last = self.used - 1
                if place != last:
                    for layer in self._layers:
                        layer.move(last, place)
                    self._lengths[place] = self._lengths[last]
                self._lengths.pop()

    def _start_again(self, rows: int, length: int) -> None:
        self._rows, self._room = rows, length
        self._lengths = []
        self._prefix = 0
        self._adding = 0
        self._layers = [_Layer(self) for _ in range(int(self._config.num_hidden_layers))]

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        cache = DynamicCache()
        cache.layer_class_to_replicate = None
        cache.layers = self._layers
        attending: AbstractContextManager[None] = nullcontext()
        if self.cascading:
            stored = [layer.stored for layer in self._layers if layer.stored is not None]
            stepping = self._stage == "step"
            plan = cascade.Plan(stored, ids.shape[1], self._mask if stepping else None, stepping)
            attending = cascade.attending(self._config, plan)
        with attending:
            return self._base(
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state

    def _additive(self, seen: Tensor) -> Tensor:
        mask = torch.zeros(seen.shape, dtype=self._dtype, device=self._device)
        return mask.masked_fill_(~seen, torch.finfo(self._dtype).min)

    def _copy(self, copies: Sequence[int]) -> None:
        first = self.used
        to = first + self._adding
        index = torch.tensor([first + copy for copy in copies], device=self._device)
        for layer in self._layers:
            layer.copy(index, to)

    def take_in(self, layer: _Layer, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keep one layer's new keys and values; returns what is attended to."""
        if self._stage == "prefix":
            layer.stored = (key.contiguous(), value.contiguous())
            return key, value
        before = 0 if self.cascading else self._prefix
        if layer.places is None:
            layer.open(key, value, self._rows, before, self._room)
        keys, values = layer.places  # type: ignore[misc]
        if self._stage == "add":
            rows = slice(self.used, self.used + self._adding)
            end = before + key.shape[2]
            for part, new in ((keys, key), (values, value)):
                part[rows, :, before:end] = new
                # Whatever stood there may not be a number, which no mask hides.
                part[rows, :, end:] = 0
            return (key, value) if self.cascading else (keys[rows, :, :end], values[rows, :, :end])
        rows = torch.arange(self.used, device=key.device)
        keys[rows, :, before + self._ends] = key[:, :, 0]
        values[rows, :, before + self._ends] = value[:, :, 0]
        return keys[: self.used, :, : self._seen], values[: self.used, :, : self._seen]

    def length(self) -> int:
        """Tokens before those of the pass that goes on."""
        if self._stage == "prefix":
            return 0
        return self._prefix + (max(self._lengths) if self._stage == "step" else 0)


class _Layer(DynamicLayer):  # type: ignore[misc]
    """One layer's keys and values: `stored` of the prefix (1, heads, length, width), `places` (rows, heads, room, width)."""

    def __init__(self, slots: Slots) -> None:
        super().__init__()
        self._slots = slots
        self.stored: tuple[Tensor, Tensor] | None = None
        self.places: tuple[Tensor, Tensor] | None = None

    def open(self, key: Tensor, value: Tensor, rows: int, before: int, room: int) -> None:
        """Make the places, with the prefix in front of each where it is copied."""
        places = []
        for place, new in enumerate((key, value)):
            part = new.new_zeros((rows, new.shape[1], before + room, new.shape[3]))
            if before and self.stored is not None:
                part[:, :, :before] = self.stored[place]
            places.append(part)
        self.places = (places[0], places[1])

    def move(self, source: int, to: int) -> None:
        """Put the row of one place into another."""
        for part in self.places or ():
            part[to] = part[source]

    def copy(self, sources: Tensor, to: int) -> None:
        """Put the rows of some places into those from `to` on."""
        for part in self.places or ():
            part[to : to + len(sources)] = part[sources]

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """The keys and values to attend to."""
        return self._slots.take_in(self, key_states, value_states)

    def get_seq_length(self) -> int:
        """Tokens before those of this pass."""
        return self._slots.length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys, and the place of the first."""
        return self._slots.length() + query_length, 0
