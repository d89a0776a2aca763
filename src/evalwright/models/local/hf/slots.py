"""Keys and values of the rows being generated, each in a slot, and the passes over them.

The shared prefix of the rows' prompts is computed once, for all of them. A row's own tokens start
at the left of its slot, so that rows of any length can come and go; a mask hides what is after its
end. There are two ways to attend, as in `tree_forward.py`, with the same result:

- portable: the shared part is copied to every slot, new rows are padded to the longest of them, and
  a four-dimensional mask says what is visible.
- cascade: the shared part is attended to once for all rows, and each row's own part separately, and
  both are merged. New rows are laid end to end in one pass, so that none is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from evalwright.models.local.hf import cascade
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.packed_products import PackedProducts
from evalwright.models.local.hf.reading import LogitReader, pad
from evalwright.models.local.hf.step_attention import StepAttention
from evalwright.models.local.hf.tree_forward import NOTHING_STORED, TreeForward
from evalwright.models.local.tree import Node, Row, RowPart

_Store = Callable[["_Layer", Tensor, Tensor], cascade.KeysValues]
"""Stores new keys and values of a layer; returns those to attend to."""


class Slots:
    """Slots for up to `rows` rows of up to `length` tokens each after a shared prefix.

    `used` of them are in use.

    Args:
        forward: the model.
        reader: computes its logits.
        products: the products with its weights.
    """

    def __init__(
        self, forward: TreeForward, reader: LogitReader, products: PackedProducts
    ) -> None:
        self._whole = forward
        self._reader = reader
        self._products = products
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
            with self._products.applied():
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
        with self._computing():
            hidden = (
                self._begin_packed(rows) if self.cascading else self._begin_padded(rows)
            )
            logits = self._reader.head(hidden)
            if copies:
                self._copy(len(rows), copies)
                logits = logits[[*range(len(rows)), *copies]]
            self._lengths += [len(row) for row in rows]
            self._lengths += [len(rows[copy]) for copy in copies]
            return logits

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits after it, (used, vocabulary)."""
        with self._computing():
            ends = torch.tensor(self._lengths, device=self._device)
            ids = torch.tensor(tokens, device=self._device)[:, None]
            longest = max(self._lengths) + 1
            step = None
            if self.cascading:
                lengths = [length + 1 for length in self._lengths]
                step = StepAttention(lengths, self._dtype, self._device).attend
                # An explicit mask keeps some models from warning about padding; this one is not
                # used.
                mask = torch.ones_like(ids)
            else:
                mask = self._mask_of_step(ends, longest)
            hidden = self._forward(
                ids,
                self._prefix + ends[:, None],
                mask,
                store=self._storing_step(ends, longest),
                before=self._prefix + longest - 1,
                plan=cascade.PassPlan(self._stored, step=step),
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
        self._before = 0
        self._store: _Store = _store_nothing
        self._layers = [
            _Layer(self._take, lambda: self._before)
            for _ in range(int(self._config.num_hidden_layers))
        ]

    @property
    def _copied_prefix(self) -> int:
        """The tokens of the prefix that stand in front of every row."""
        return 0 if self.cascading else self._prefix

    @property
    def _stored(self) -> list[cascade.KeysValues]:
        """Keys and values of the prefix, by layer."""
        return [layer.stored for layer in self._layers if layer.stored is not None]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with torch.inference_mode(), self._products.applied():
            yield

    def _begin_packed(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Run new rows end to end; return the hidden states of their last tokens."""
        lengths = torch.tensor([len(row) for row in rows])
        ends = lengths.cumsum(0)
        offsets = torch.arange(int(ends[-1])) - (ends - lengths).repeat_interleave(
            lengths
        )
        slots = (self.used + torch.arange(len(rows))).repeat_interleave(lengths)

        def store(layer: _Layer, key: Tensor, value: Tensor) -> cascade.KeysValues:
            for tensor, new in zip(layer.opened, (key, value), strict=True):
                # The old content may be NaN, which no mask hides.
                tensor[self.used : self.used + len(rows)] = 0
                tensor[slots, :, offsets] = new[0].transpose(0, 1)
            return key, value

        ids = torch.tensor([[token for row in rows for token in row]])
        parts = [cascade.Part(len(row), len(row), None) for row in rows]
        hidden = self._forward(
            ids,
            self._prefix + offsets[None],
            torch.ones_like(ids),
            store=store,
            before=self._prefix,
            plan=cascade.PassPlan(self._stored, parts),
        )
        return hidden[0, ends - 1]

    def _begin_padded(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Run new rows side by side; return the hidden states of their last tokens."""
        ids, mask = pad(rows, self._device)
        length = ids.shape[1]
        positions = torch.arange(
            self._prefix, self._prefix + length, device=self._device
        )[None]
        if self._prefix:
            seen = torch.ones(
                length, self._prefix + length, dtype=torch.bool, device=self._device
            )
            mask = cascade.additive_mask(seen.tril(self._prefix), self._dtype)[
                None, None
            ].expand(len(rows), -1, -1, -1)
        else:
            # Padding is on the right, where no token attends; so no mask is needed, and the fast
            # kernel is used.
            mask = torch.ones_like(mask)
        new_slots = slice(self.used, self.used + len(rows))
        end = self._prefix + length

        def store(layer: _Layer, key: Tensor, value: Tensor) -> cascade.KeysValues:
            keys, values = layer.opened
            for tensor, new in ((keys, key), (values, value)):
                tensor[new_slots, :, self._prefix : end] = new
                # The old content may be NaN, which no mask hides.
                tensor[new_slots, :, end:] = 0
            return keys[new_slots, :, :end], values[new_slots, :, :end]

        hidden = self._forward(
            ids,
            positions.expand(len(rows), -1),
            mask,
            store=store,
            before=self._prefix,
        )
        ends = torch.tensor([len(row) - 1 for row in rows], device=self._device)
        return hidden[torch.arange(len(rows), device=self._device), ends]

    def _mask_of_step(self, ends: Tensor, longest: int) -> Tensor:
        """Return what is added to the scores of a step, (rows, 1, 1, keys)."""
        places = torch.arange(self._prefix + longest, device=self._device)
        seen = places[None] <= self._prefix + ends[:, None]
        return cascade.additive_mask(seen, self._dtype)[:, None, None]

    def _storing_step(self, ends: Tensor, longest: int) -> _Store:
        before = self._copied_prefix
        rows = torch.arange(self.used, device=self._device)

        def store(layer: _Layer, key: Tensor, value: Tensor) -> cascade.KeysValues:
            keys, values = layer.opened
            keys[rows, :, before + ends] = key[:, :, 0]
            values[rows, :, before + ends] = value[:, :, 0]
            seen = before + longest
            return keys[: len(rows), :, :seen], values[: len(rows), :, :seen]

        return store

    def _forward(
        self,
        ids: Tensor,
        positions: Tensor,
        mask: Tensor,
        *,
        store: _Store,
        before: int,
        plan: cascade.PassPlan | None = None,
    ) -> Tensor:
        """Run one pass; return its hidden states.

        Args:
            ids: the tokens.
            positions: their positions.
            mask: the attention mask for the model.
            store: keeps their keys and values.
            before: number of tokens before those of the pass.
            plan: how to attend, if cascading.
        """
        self._store = store
        self._before = before
        attending: AbstractContextManager[None] = nullcontext()
        if self.cascading and plan is not None:
            attending = cascade.attending(self._config, plan)
        with attending:
            return self._whole.with_cache(
                cascade.cache_of(self._layers),
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                use_cache=True,
            )

    def _copy(self, added: int, copies: Sequence[int]) -> None:
        """Copy rows that were just added, by index, to the slots after them."""
        first = self.used
        to = first + added
        index = torch.tensor([first + copy for copy in copies], device=self._device)
        for layer in self._layers:
            for tensor in layer.places or ():
                tensor[to : to + len(index)] = tensor[index]

    def _take(self, layer: _Layer, key: Tensor, value: Tensor) -> cascade.KeysValues:
        if layer.places is None:
            layer.open((key, value), self._rows, self._copied_prefix, self._room)
        return self._store(layer, key, value)


def _store_nothing(_: _Layer, key: Tensor, value: Tensor) -> cascade.KeysValues:
    return key, value


class _Layer(cascade.PassLayer):
    """A layer's keys and values; `places` (rows, heads, room, width) begin with the prefix."""

    places: cascade.KeysValues | None = None

    @property
    def opened(self) -> cascade.KeysValues:
        """The tensors, which are allocated."""
        assert self.places is not None
        return self.places

    def open(self, new: cascade.KeysValues, rows: int, before: int, room: int) -> None:
        """Allocate the tensors."""
        key, value = (
            states.new_zeros((rows, states.shape[1], before + room, states.shape[3]))
            for states in new
        )
        self.places = (key, value)
        for tensor, stored in zip(self.places, self.stored or (), strict=False):
            tensor[:, :, :before] = stored[:, :, :before]
