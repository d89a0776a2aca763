"""Keys and values of the rows being generated, each in a slot, and the passes over them.

The shared prefix of the rows' prompts is computed once, for all of them. A row's own tokens start
at the left of its slot, so that rows of any length can come and go; a mask hides what is after its
end. There are two ways to attend, as in `tree_forward.py`, with the same result:

- portable: the shared part is copied to every slot, and a four-dimensional mask says what is
  visible.
- cascade: the shared part is attended to once for all rows, and each row's own part separately, and
  both are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from evalwright.models.local.hf import cascade
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.reading import LogitReader, pad
from evalwright.models.local.hf.tree_forward import NOTHING_STORED, TreeForward
from evalwright.models.local.tree import Node, Row, RowPart


class Slots:
    """Slots for up to `rows` rows of up to `length` tokens each after a shared prefix.

    `used` of them are in use.
    """

    def __init__(self, forward: TreeForward, reader: LogitReader) -> None:
        self._whole = forward
        self._reader = reader
        self._device = forward.device
        self._config = forward.config
        self._dtype = forward.dtype
        self.cascading = forward.cascading
        self._lengths: list[int] = []
        self._layers: list[_Layer] = []
        self._reset(0, 0)

    @property
    def used(self) -> int:
        """Number of rows in use."""
        return len(self._lengths)

    def open(self, prefix: Sequence[int], rows: int, length: int) -> None:
        """Start anew: make slots for these rows, and compute the tokens that all begin with."""
        self._reset(rows, length)
        if prefix:
            row = Row([RowPart(Node(prefix, 0, len(prefix)), -1)])
            _, stored = self._whole.run([row], NOTHING_STORED, keep=True)
            assert stored is not None
            for layer, layer_stored in zip(self._layers, stored.layers, strict=True):
                layer.stored = layer_stored
            self._prefix = len(prefix)

    def close(self) -> None:
        """Free the memory."""
        self._reset(0, 0)

    def add(self, rows: Sequence[Sequence[int]], copies: Sequence[int] = ()) -> Tensor:
        """Put rows, which begin after the prefix, into the next free slots.

        Args:
            rows: the tokens of each row.
            copies: for every further row that equals one of them, its index.

        Returns:
            The logits after the last tokens, (rows and copies, vocabulary).
        """
        with torch.inference_mode():
            self._stepping = False
            self._adding = len(rows)
            ids, mask = pad(rows, self._device)
            length = ids.shape[1]
            positions = torch.arange(
                self._prefix, self._prefix + length, device=self._device
            )[None]
            if self._prefix and not self.cascading:
                seen = torch.ones(
                    length, self._prefix + length, dtype=torch.bool, device=self._device
                )
                mask = cascade.additive_mask(seen.tril(self._prefix), self._dtype)[
                    None, None
                ].expand(len(rows), -1, -1, -1)
            else:
                # Padding is on the right, where no token attends; so no mask is needed, and the
                # fast kernel is used.
                mask = torch.ones_like(mask)
            hidden = self._forward(ids, positions.expand(len(rows), -1), mask)
            ends = torch.tensor([len(row) - 1 for row in rows], device=self._device)
            logits = self._reader.head(
                hidden[torch.arange(len(rows), device=self._device), ends]
            )
            if copies:
                self._copy(copies)
                logits = logits[[*range(len(rows)), *copies]]
            self._lengths += [len(row) for row in rows]
            self._lengths += [len(rows[copy]) for copy in copies]
            return logits

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits after it, (used, vocabulary)."""
        with torch.inference_mode():
            self._stepping = True
            self._ends = torch.tensor(self._lengths, device=self._device)
            longest = max(self._lengths)
            before = 0 if self.cascading else self._prefix
            self._seen = before + longest + 1
            mask = None
            if min(self._lengths) < longest:
                seen = (
                    torch.arange(self._seen, device=self._device)[None]
                    <= before + self._ends[:, None]
                )
                mask = cascade.additive_mask(seen, self._dtype)[:, None, None]
            self._mask = mask
            ids = torch.tensor(tokens, device=self._device)[:, None]
            attention_mask = mask
            if self.cascading:
                attention_mask = torch.ones_like(
                    ids
                )  # only keeps some models from warning about padding
            elif mask is None:
                attention_mask = torch.zeros(
                    (len(tokens), 1, 1, self._seen),
                    dtype=self._dtype,
                    device=self._device,
                )
            hidden = self._forward(
                ids, self._prefix + self._ends[:, None], attention_mask
            )
            self._lengths = [length + 1 for length in self._lengths]
            return self._reader.head(hidden[:, 0])

    def remove(self, places: Sequence[int]) -> None:
        """Remove rows, highest slot first; the last row moves into each freed slot."""
        with torch.inference_mode():
            for index in sorted(places, reverse=True):
                last = self.used - 1
                if index != last:
                    for layer in self._layers:
                        for tensor in layer.places or ():
                            tensor[index] = tensor[last]
                    self._lengths[index] = self._lengths[last]
                self._lengths.pop()

    def _reset(self, rows: int, length: int) -> None:
        self._rows = rows
        self._room = length
        self._lengths = []
        self._prefix = 0
        self._stepping = False
        self._adding = 0
        self._layers = [
            _Layer(self._store_step, self._length)
            for _ in range(int(self._config.num_hidden_layers))
        ]

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        attending: AbstractContextManager[None] = nullcontext()
        if self.cascading:
            stored = [
                layer.stored for layer in self._layers if layer.stored is not None
            ]
            mask_of_step = self._mask if self._stepping else None
            plan = cascade.PassPlan(stored, mask=mask_of_step, step=self._stepping)
            attending = cascade.attending(self._config, plan)
        with attending:
            return self._whole.with_cache(
                cascade.cache_of(self._layers),
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                use_cache=True,
            )

    def _copy(self, copies: Sequence[int]) -> None:
        first = self.used
        to = first + self._adding
        index = torch.tensor([first + copy for copy in copies], device=self._device)
        for layer in self._layers:
            for tensor in layer.places or ():
                tensor[to : to + len(index)] = tensor[index]

    def _store_step(
        self, layer: _Layer, key: Tensor, value: Tensor
    ) -> cascade.KeysValues:
        """Store one layer's new keys and values; return those to attend to."""
        before = 0 if self.cascading else self._prefix
        if layer.places is None:
            layer.open((key, value), self._rows, before, self._room)
        keys, values = layer.places  # type: ignore[misc]
        if not self._stepping:
            rows = slice(self.used, self.used + self._adding)
            end = before + key.shape[2]
            for tensor, new in ((keys, key), (values, value)):
                tensor[rows, :, before:end] = new
                # The old content may be NaN, which no mask hides.
                tensor[rows, :, end:] = 0
            return (
                (key, value)
                if self.cascading
                else (keys[rows, :, :end], values[rows, :, :end])
            )
        rows = torch.arange(self.used, device=key.device)
        keys[rows, :, before + self._ends] = key[:, :, 0]
        values[rows, :, before + self._ends] = value[:, :, 0]
        return keys[: self.used, :, : self._seen], values[: self.used, :, : self._seen]

    def _length(self) -> int:
        """Return the number of tokens before those of the current pass."""
        return self._prefix + (max(self._lengths) if self._stepping else 0)


class _Layer(cascade.PassLayer):
    """A layer's keys and values; `places` (rows, heads, room, width) begin with the prefix."""

    places: cascade.KeysValues | None = None

    def open(self, new: cascade.KeysValues, rows: int, before: int, room: int) -> None:
        """Allocate the tensors."""
        key, value = (
            states.new_zeros((rows, states.shape[1], before + room, states.shape[3]))
            for states in new
        )
        self.places = (key, value)
        for tensor, stored in zip(self.places, self.stored or (), strict=False):
            tensor[:, :, :before] = stored[:, :, :before]
