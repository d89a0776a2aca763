"""Cuts work into batches of like length, finds the size that memory allows, and loses nothing when it was too much."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch

from evalwright.core.errors import Failure, ModelError

Result = TypeVar("Result")
Outcome = TypeVar("Outcome")


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

    def stream(
        self,
        costs: Mapping[int, int],
        order: Sequence[int],
        work: Callable[[deque[int], int], Iterator[tuple[int, Result | Failure]]],
        most: int,
    ) -> Iterator[tuple[int, Result | Failure]]:
        """Like `run`, for work that takes up items as places get free, and yields each when it is done.

        costs: tokens per item. order: the items, costly ones first. work: takes items off the left of a queue, holds up to
        a number of them at once, and yields `(item, result)`. most: how many it may hold where `rows` does not say.
        """
        waiting, alone = deque(order), deque[int]()
        while waiting or alone:
            queue = deque([alone.popleft()]) if alone else self._portion(waiting, costs, most)
            given = list(queue)
            rows = min(len(given), self._rows_of(costs[given[0]], most))
            done: set[int] = set()
            failed: Exception | None = None
            steps = work(queue, rows)
            while failed is None:
                found = self._attempt_step(steps)
                if found is None:
                    break
                if isinstance(found, Exception):
                    failed = found
                else:
                    done.add(found[0])
                    yield found
            waiting.extendleft(reversed(queue))
            left = set(queue)
            held = [item for item in given if item not in done and item not in left]
            if len(held) == 1 and failed is not None:
                yield held[0], _failure(failed)
            elif failed is not None and is_out_of_memory(failed):
                self._shrink(len(held) // 2, costs[held[0]])
                waiting.extendleft(reversed(held))
            else:
                alone.extend(held)

    def _portion(self, waiting: deque[int], costs: Mapping[int, int], most: int) -> deque[int]:
        """All that waits; where few costly items fill the memory, those that are about as costly only."""
        longest = costs[waiting[0]]
        roomy = self._rows_of(longest, most) >= min(most if self.rows is None else self.rows, len(waiting))
        out: deque[int] = deque()
        while waiting and (roomy or 2 * costs[waiting[0]] > longest):
            out.append(waiting.popleft())
        return out

    def _rows_of(self, cost: int, most: int) -> int:
        rows = max(1, self.tokens // max(1, cost))
        return min(rows, most if self.rows is None else self.rows)

    def _attempt_step(
        self, steps: Iterator[tuple[int, Result | Failure]]
    ) -> tuple[int, Result | Failure] | Exception | None:
        found = self._attempt(lambda _: [next(steps, None)], [])
        return found if isinstance(found, Exception) else found[0]

    def _take(self, order: Sequence[int], place: int, costs: Sequence[int]) -> list[int]:
        count = max(1, self.tokens // max(1, costs[order[place]]))
        if self.rows is not None:
            count = min(count, self.rows)
        return list(order[place : place + count])

    def _attempt(
        self, work: Callable[[list[int]], Sequence[Outcome]], batch: list[int]
    ) -> Sequence[Outcome] | Exception:
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
    return _clamp(_usable_bytes(device, memory) // 4 // each, 256, 262144 if _is_gpu(device) else 131072)


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
