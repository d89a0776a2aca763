"""Cuts work into batches of like length, finds the size that memory allows, and loses nothing when it was too much."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch

from evalwright.core.errors import Failure, ModelError

Result = TypeVar("Result")


class Batcher(Generic[Result]):
    """Runs items longest first, in batches of up to `rows` rows (None: any number) and `tokens` padded tokens.

    A batch that does not fit into memory is halved and so is the limit, for good; finished batches stay finished. A batch
    that raises anything else is run again one by one, so that only the item at fault fails; errors of the kinds in
    `passing` end the whole run instead.
    """

    def __init__(self, rows: int | None, tokens: int, passing: tuple[type[Exception], ...] = ()) -> None:
        self.rows = rows
        self.tokens = tokens
        self._passing = passing

    def run(
        self, costs: Sequence[int], work: Callable[[list[int]], Sequence[Result]]
    ) -> Iterator[tuple[int, Result | Failure]]:
        """Yield `(item, result or failure)` for every item. costs: tokens per item. work: results of a list of items."""
        order = sorted(range(len(costs)), key=lambda item: -costs[item])
        waiting: list[list[int]] = []
        place = 0
        while waiting or place < len(order):
            if waiting:
                batch = waiting.pop()
            else:
                batch = self._take(order, place, costs)
                place += len(batch)
            outcome = self._attempt(work, batch)
            if not isinstance(outcome, Exception):
                yield from zip(batch, outcome, strict=True)
            elif len(batch) == 1:
                yield batch[0], _failure(outcome)
            elif is_out_of_memory(outcome):
                half = len(batch) // 2
                self._shrink(half, costs[batch[0]])
                waiting += [batch[half:], batch[:half]]
            else:
                waiting += [[item] for item in reversed(batch)]

    def _take(self, order: Sequence[int], place: int, costs: Sequence[int]) -> list[int]:
        count = max(1, self.tokens // max(1, costs[order[place]]))
        if self.rows is not None:
            count = min(count, self.rows)
        return list(order[place : place + count])

    def _attempt(
        self, work: Callable[[list[int]], Sequence[Result]], batch: list[int]
    ) -> Sequence[Result] | Exception:
        """The results, or the error without the frames that keep the failed batch's tensors alive."""
        try:
            return work(batch)
        except self._passing:
            raise
        except Exception as error:
            error.__traceback__ = None
            error.__context__ = None
            failed = error
        if is_out_of_memory(failed):
            free_memory()
        return failed

    def _shrink(self, rows: int, longest: int) -> None:
        if self.rows is not None:
            self.rows = max(1, rows)
        self.tokens = max(1, min(self.tokens, rows * longest))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or a CPU."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        sign in text for sign in ("out of memory", "can't allocate memory", "bad_alloc")
    )


def free_memory() -> None:
    """Give back what nothing uses any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def scoring_budget(model: Any, device: str, memory: int | None = None) -> int:
    """Padded tokens per scoring batch: what fits into a third of the memory, at most what keeps the device busy.

    memory: bytes that may be used beside the model; None: what is free, as for the budgets below.

    A token's activations live for one layer only; the output head is applied in chunks of its own.
    """
    config = _text_config(model)
    hidden = int(getattr(config, "hidden_size", 1024) or 1024)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    each = (16 * hidden + 4 * inner) * _item_size(model)
    return _clamp(_usable_bytes(device, memory) // 3 // each, 256, 65536 if _is_gpu(device) else 4096)


def generation_budget(model: Any, device: str, memory: int | None = None) -> int:
    """Tokens of prompts and answers per generation batch: their keys and values stay in memory."""
    config = _text_config(model)
    layers = int(getattr(config, "num_hidden_layers", 32) or 32)
    heads = int(getattr(config, "num_attention_heads", 32) or 32)
    groups = int(getattr(config, "num_key_value_heads", None) or heads)
    hidden = int(getattr(config, "hidden_size", 4096) or 4096)
    width = int(getattr(config, "head_dim", None) or hidden // heads)
    each = 2 * layers * groups * width * _item_size(model)
    return _clamp(_usable_bytes(device, memory) // 4 // each, 256, 262144 if _is_gpu(device) else 16384)


def _failure(error: Exception) -> Failure:
    if is_out_of_memory(error):
        return ModelError("Out of memory for this request even when it is alone in its batch.").as_failure()
    return ModelError(f"The model raised {type(error).__name__}: {error}").as_failure()


def stored_budget(device: str, memory: int | None = None) -> int:
    """Bytes for keys and values that wait for what hangs below them: a quarter of the memory."""
    return _usable_bytes(device, memory) // 4


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _item_size(model: Any) -> int:
    return max((parameter.element_size() for parameter in model.parameters()), default=4)


def _is_gpu(device: str) -> bool:
    return device.startswith("cuda")


def _usable_bytes(device: str, memory: int | None) -> int:
    return _free_bytes(device) if memory is None else min(memory, _free_bytes(device))


def _free_bytes(device: str) -> int:
    if _is_gpu(device):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    import os

    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
