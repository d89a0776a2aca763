"""Cuts work into batches of like length, finds the size that memory allows, and loses nothing when
it was too much.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Generic, TypeVar

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.local.hardware import machine

Tensor = Any
"""A torch.Tensor; torch is not typed here."""

Result = TypeVar("Result")

Steps = Iterator[tuple[int, Result | Failure]]
"""Items with their results, as they finish."""


class BatchRunner(Generic[Result]):
    """Runs items longest first, in batches of up to `rows` rows (None: any number) and `tokens`
    padded tokens.

    A batch that does not fit into memory is halved and so is the limit, for good; finished items
    stay finished. A batch that raises anything else is run again one by one, so that only the item
    at fault fails; errors of the kinds in `passing` end the whole run instead.
    """

    def __init__(
        self, rows: int | None, tokens: int, passing: tuple[type[Exception], ...] = ()
    ) -> None:
        self.rows = rows
        self.tokens = tokens
        self._passing = passing

    def run(
        self,
        costs: Sequence[int],
        work: Callable[[list[int]], Sequence[Result]],
        padded: bool = True,
    ) -> Steps[Result]:
        """Yield `(item, result or failure)` for every item. costs: tokens per item. work: results
        of a list of items.

        padded: every item of a batch costs as much as its longest; else what it has itself.
        """

        def whole(queue: deque[int], _: int) -> Steps[Result]:
            batch = list(queue)
            queue.clear()
            yield from zip(batch, work(batch), strict=True)

        def portion(waiting: deque[int]) -> deque[int]:
            if padded:
                count = min(self._rows_of(costs[waiting[0]], len(costs)), len(waiting))
            else:
                sums = accumulate(costs[item] for item in islice(waiting, self.rows))
                count = max(1, sum(total <= self.tokens for total in sums))
            return deque(waiting.popleft() for _ in range(count))

        order = sorted(range(len(costs)), key=lambda item: -costs[item])
        return self._drive(costs, order, whole, portion, len(costs), padded)

    def stream(
        self,
        costs: Mapping[int, int],
        order: Sequence[int],
        work: Callable[[deque[int], int], Steps[Result]],
        most: int,
    ) -> Steps[Result]:
        """Like `run`, for work that takes up items as places get free, and yields each when it is
        done.

        costs: tokens per item. order: the items, costly ones first. work: takes items off the left
        of a queue, holds up to a number of them at once, and yields `(item, result)`. most: how
        many it may hold where `rows` does not say.
        """

        def portion(waiting: deque[int]) -> deque[int]:
            """All that waits; where few costly items fill the memory, those that are about as
            costly only.
            """
            longest = costs[waiting[0]]
            roomy = self._rows_of(longest, most) >= min(
                most if self.rows is None else self.rows, len(waiting)
            )
            out: deque[int] = deque()
            while waiting and (roomy or 2 * costs[waiting[0]] > longest):
                out.append(waiting.popleft())
            return out

        return self._drive(costs, order, work, portion, most)

    def _drive(
        self,
        costs: Mapping[int, int] | Sequence[int],
        order: Sequence[int],
        work: Callable[[deque[int], int], Steps[Result]],
        portion: Callable[[deque[int]], deque[int]],
        most: int,
        padded: bool = True,
    ) -> Steps[Result]:
        """Give out portions of what waits; what a failed one held is given out again, in smaller
        portions or alone.
        """
        waiting = deque(order)
        alone = deque[int]()
        while waiting or alone:
            queue = deque([alone.popleft()]) if alone else portion(waiting)
            given = list(queue)
            done: set[int] = set()
            failed: Exception | None = None
            steps = work(queue, min(len(given), self._rows_of(costs[given[0]], most)))
            while (found := self._next(steps)) is not None:
                if isinstance(found, Exception):
                    failed = found
                    break
                done.add(found[0])
                yield found
            waiting.extendleft(reversed(queue))
            left = set(queue)
            held = [item for item in given if item not in done and item not in left]
            if len(held) == 1 and failed is not None:
                yield held[0], failure_of(failed)
            elif failed is not None and is_out_of_memory(failed):
                half = len(held) // 2
                self._shrink(
                    half,
                    (
                        half * costs[held[0]]
                        if padded
                        else sum(costs[item] for item in held) // 2
                    ),
                )
                waiting.extendleft(reversed(held))
            else:
                alone.extend(held)

    def _rows_of(self, cost: int, most: int) -> int:
        rows = max(1, self.tokens // max(1, cost))
        return min(rows, most if self.rows is None else self.rows)

    def _next(
        self, steps: Steps[Result]
    ) -> tuple[int, Result | Failure] | Exception | None:
        """The next result, or the error without the frames that keep the failed batch's tensors
        alive.
        """
        try:
            return next(steps, None)
        except self._passing:
            raise
        except Exception as error:
            error.__traceback__ = None
            error.__context__ = None
            failed = error
        if is_out_of_memory(failed):
            free_memory()
        return failed

    def _shrink(self, rows: int, tokens: int) -> None:
        if self.rows is not None:
            self.rows = max(1, rows)
        self.tokens = max(1, min(self.tokens, tokens))


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
    """Padded tokens per scoring batch: what fits into a third of the memory, at most what keeps the
    device busy.

    memory: bytes that may be used beside the model; None: what is free, as for the budgets below.

    A token's activations live for one layer only; the output head is applied in chunks of its own.
    """
    config = text_config(model)
    hidden = int(getattr(config, "hidden_size", 1024) or 1024)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    each = (16 * hidden + 4 * inner) * _item_size(model)
    return _clamp(
        _usable_bytes(device, memory) // 3 // each, 65536 if _is_gpu(device) else 4096
    )


def generation_budget(model: Any, device: str, memory: int | None = None) -> int:
    """Tokens of prompts and answers per generation batch: their keys and values stay in memory."""
    each = cache_bytes(text_config(model), _item_size(model))
    return _clamp(
        _usable_bytes(device, memory) // 4 // each,
        262144 if _is_gpu(device) else 131072,
    )


def stored_budget(device: str, memory: int | None = None) -> int:
    """Bytes for keys and values that wait for what hangs below them: a quarter of the memory."""
    return _usable_bytes(device, memory) // 4


def cache_bytes(config: Any, number_bytes: int) -> int:
    """Memory for the keys and values of one token."""
    layers = int(getattr(config, "num_hidden_layers", 32) or 32)
    heads = int(getattr(config, "num_attention_heads", 32) or 32)
    groups = int(getattr(config, "num_key_value_heads", None) or heads)
    hidden = int(getattr(config, "hidden_size", 4096) or 4096)
    width = int(getattr(config, "head_dim", None) or hidden // heads)
    return 2 * layers * groups * width * number_bytes


def text_config(model: Any) -> Any:
    """The part of a model's configuration that is about text."""
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def failure_of(error: Exception) -> Failure:
    """What one request's answer is, by what it raised when it was alone."""
    if is_out_of_memory(error):
        return ModelError(
            "Out of memory for this request even when it is alone in its batch."
        ).as_failure()
    return ModelError(f"The model raised {type(error).__name__}: {error}").as_failure()


def _item_size(model: Any) -> int:
    return max(
        (parameter.element_size() for parameter in model.parameters()), default=4
    )


def _is_gpu(device: str) -> bool:
    return device.startswith("cuda")


def _usable_bytes(device: str, memory: int | None) -> int:
    free = (
        int(torch.cuda.mem_get_info(torch.device(device))[0])
        if _is_gpu(device)
        else machine.free_memory()
    )
    free = 4 << 30 if free is None else free
    return free if memory is None else min(memory, free)


def _clamp(value: int, high: int) -> int:
    return max(256, min(value, high))
