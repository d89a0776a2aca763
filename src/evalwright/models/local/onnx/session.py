"""A decoder run by onnxruntime: tokens, mask, positions and cache in, logits and longer cache out.

The inputs of a file are read from the file itself. How far sequences may be computed together is
tried once, on a few tokens, when the model is loaded (`Sharing`): some exports do not support
padding inside their mask, and dynamically quantised ones give a sequence other numbers in a batch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.core.errors import ConfigurationError, ModelError

Array = NDArray[Any]
Cache = list[Array]
"""One array per cache input, each [batch, heads, length, size] in most files; may be empty."""

_PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")
_KNOWN_INPUTS = {"input_ids", "attention_mask", "position_ids"}
_TYPES = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
_TOLERANCE = 2e-3
"""Tolerated difference, as a share of the largest logit.

Rounding stays far below it, a wrong mask is far above.
"""
_OTHER_ROWS = 7
"""Rows beside the observed one while sharing is tried."""


class Sharing(Enum):
    """Which ways of computing sequences together leave their logits unchanged.

    RAGGED: padding and a shared cache. EQUAL: only a batch of equal lengths. SINGLE: none, so
    sequences are computed one at a time.
    """

    RAGGED = "ragged"
    EQUAL = "equal"
    SINGLE = "single"


class OnnxSession:
    """An open session.

    `vocabulary` is the number of logits per position; `has_cache` whether it takes and returns keys
    and values.
    """

    def __init__(self, file: Path, threads: int) -> None:
        self._session = _open(file, threads)
        inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        outputs = [tensor.name for tensor in self._session.get_outputs()]
        _check_interface(file, set(inputs), outputs)
        self._integer = {
            name: _type_of(file, inputs[name])
            for name in inputs
            if name in _KNOWN_INPUTS
        }
        self._past = [
            tensor for name, tensor in inputs.items() if _PAST.fullmatch(name)
        ]
        self._past_types = [_type_of(file, tensor) for tensor in self._past]
        self._shapes = [_past_shape(file, tensor) for tensor in self._past]
        self._output_names = [
            "logits",
            *(_present_name(tensor.name, outputs, file) for tensor in self._past),
        ]
        self.has_cache = bool(self._past)
        self.vocabulary = 0
        self.sharing = self._probe()

    def empty_cache(self, batch: int) -> Cache:
        """Make a cache without positions."""
        return [
            np.zeros(
                [batch if axis == 0 else size for axis, size in enumerate(shape)],
                dtype,
            )
            for shape, dtype in zip(self._shapes, self._past_types, strict=True)
        ]

    def run(
        self, tokens: Array, mask: Array, positions: Array, cache: Cache
    ) -> tuple[Array, Cache]:
        """Run the model.

        Args:
            tokens: [batch, new].
            mask: [batch, cached + new], 1 for a token.
            positions: [batch, new].
            cache: the cache so far.

        Returns:
            Logits [batch, new, vocabulary] in the file's own type, and the longer cache.

        Raises:
            ModelError: onnxruntime failed.
        """
        arrays = {
            "input_ids": tokens,
            "attention_mask": mask,
            "position_ids": positions,
        }
        feeds = {
            name: arrays[name].astype(dtype, copy=False)
            for name, dtype in self._integer.items()
        }
        feeds.update(
            {
                tensor.name: array
                for tensor, array in zip(self._past, cache, strict=True)
            }
        )
        try:
            logits, *present = self._session.run(self._output_names, feeds)
        except Exception as error:  # onnxruntime's errors have no common base class
            raise ModelError(
                f"onnxruntime failed: {str(error).splitlines()[0]}"
            ) from error
        return logits, present

    def run_row(
        self, tokens: list[int], cached: int, cache: Cache
    ) -> tuple[Array, Cache]:
        """Run one sequence's next tokens after `cached` positions.

        Returns:
            Logits [new, vocabulary], and the longer cache.
        """
        new = len(tokens)
        mask = np.ones((1, cached + new), np.int64)
        positions = np.arange(cached, cached + new)[None]
        logits, present = self.run(np.array([tokens]), mask, positions, cache)
        return logits[0], present

    def _probe(self) -> Sharing:
        """Find out what sequences may share, and the size of the vocabulary."""
        first = [1, 2, 3, 4, 5]
        alone = self.run_row(first, 0, self.empty_cache(1))[0]
        self.vocabulary = int(alone.shape[-1])
        # Several rows of all kinds of tokens, so that anything computed over the whole batch shows.
        others = np.random.default_rng(0).integers(
            1, self.vocabulary, (_OTHER_ROWS, len(first) + 2)
        )
        tokens = np.vstack([first, others[:, : len(first)]])
        positions = np.tile(np.arange(len(first)), (len(tokens), 1))
        together = self.run(
            tokens, np.ones_like(tokens), positions, self.empty_cache(len(tokens))
        )[0]
        if not _are_close(alone[-1], together[0, -1]):
            return Sharing.SINGLE
        try:
            padded_logits = self._padded_logits(first, others)
        except ModelError:
            return Sharing.EQUAL
        return (
            Sharing.RAGGED
            if all(_are_close(alone[-1], row) for row in padded_logits)
            else Sharing.EQUAL
        )

    def _padded_logits(self, first: list[int], others: Array) -> list[Array]:
        """Return the last logits of `first` among longer rows.

        They are right-padded, and left-padded after a shared cache.
        """
        shared = 2 if self.has_cache else 0
        cache = (
            self.run_row(first[:shared], 0, self.empty_cache(1))[1] if shared else []
        )
        rows = [first, *others.tolist()]
        cache = repeat_cache(cache, len(others) + 1)
        last_logits = [
            self.run(*padded(rows, shared), cache)[0][0, len(first) - shared - 1]
        ]
        if self.has_cache:
            last_logits.append(
                self.run(*padded(rows, shared, left=True), cache)[0][0, -1]
            )
        return last_logits


def padded(
    rows: Sequence[list[int]], start: int, *, left: bool = False
) -> tuple[Array, Array, Array]:
    """Pad rows that follow a cached prefix: tokens [rows, new], mask [rows, longest], positions."""
    longest = max(len(row) for row in rows)
    tokens = np.zeros((len(rows), longest - start), np.int64)
    positions = np.zeros_like(tokens)
    mask = np.zeros_like(tokens)
    for row_index, row in enumerate(rows):
        where = slice(longest - len(row), None) if left else slice(len(row) - start)
        tokens[row_index, where] = row[start:]
        positions[row_index, where] = np.arange(start, len(row))
        mask[row_index, where] = 1
    return tokens, np.pad(mask, ((0, 0), (start, 0)), constant_values=1), positions


def repeat_cache(cache: Cache, times: int) -> Cache:
    """Repeat the cache of one sequence for `times` sequences that all begin with it."""
    return [np.repeat(array, times, axis=0) for array in cache]


def select_cache_rows(cache: Cache, rows: list[int]) -> Cache:
    """Select the cache of some of the sequences."""
    return [array[rows] for array in cache]


def _are_close(left: Array, right: Array) -> bool:
    scale = max(1.0, float(np.abs(left).max()))
    return bool(
        np.abs(left.astype(np.float32) - right.astype(np.float32)).max()
        <= _TOLERANCE * scale
    )


def _open(file: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Waiting threads sleep instead of spinning: models take turns with scoring and with each other
    # on the same cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's errors have no common base class
        first = str(error).splitlines()[0]
        raise ConfigurationError(f"onnxruntime cannot open '{file}': {first}") from None


def _check_interface(file: Path, inputs: set[str], outputs: list[str]) -> None:
    if "input_ids" not in inputs or "logits" not in outputs:
        raise ConfigurationError(
            f"'{file}' is not a decoder model: it must take 'input_ids' and give"
            f" 'logits', but it takes {', '.join(sorted(inputs))} and gives"
            f" {', '.join(outputs)}."
        )
    unknown = sorted(
        name for name in inputs - _KNOWN_INPUTS if not _PAST.fullmatch(name)
    )
    if unknown:
        raise ConfigurationError(
            f"'{file}' needs the input '{unknown[0]}', which this backend does not"
            " know. It knows input_ids, attention_mask, position_ids and"
            " past_key_values.N.key/value; export the model as a plain decoder."
        )


def _type_of(file: Path, tensor: Any) -> Any:
    if tensor.type not in _TYPES:
        raise ConfigurationError(
            f"'{file}' needs '{tensor.name}' as {tensor.type}, which is not supported."
        )
    return _TYPES[tensor.type]


def _past_shape(file: Path, tensor: Any) -> list[int]:
    """Return the shape of an empty cache input: 0 for the growing axis and for the batch axis."""
    shape = [size if isinstance(size, int) else 0 for size in tensor.shape]
    if len(shape) < 3 or shape[1:].count(0) != 1:
        raise ConfigurationError(
            f"'{file}' has the cache input '{tensor.name}' of shape {tensor.shape}; its"
            " heads and their size must be fixed."
        )
    return shape


def _present_name(past: str, outputs: list[str], file: Path) -> str:
    name = past.replace("past_key_values", "present")
    if name not in outputs:
        raise ConfigurationError(f"'{file}' takes '{past}' but does not give '{name}'.")
    return name
