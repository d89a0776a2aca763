"""Cuts work into batches of similar length, adapts their size to memory, and loses no result."""

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
"""Indices of items with their results, as they finish."""


class BatchRunner(Generic[Result]):
    """Runs items longest first, in batches limited in rows and in tokens.

    `rows` limits the rows of a batch (None: any number), `tokens` its padded tokens. A batch that
    does not fit into memory is halved and so is the limit, for good; finished items stay finished.
    A batch that raises anything else is run again one by one, so that only the faulty item fails;
    errors of the kinds in `passing` end the whole run instead.
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
        """Yield `(item, result or failure)` for every item.

        Args:
            costs: tokens per item.
            work: computes the results of a list of items.
            padded: whether every item of a batch costs as much as its longest; else only its own
                tokens.
        """

        def run_all(queue: deque[int], _: int) -> Steps[Result]:
            batch = list(queue)
            queue.clear()
            yield from zip(batch, work(batch), strict=True)

        def portion(waiting: deque[int]) -> deque[int]:
            if padded:
                count = min(self._rows_of(costs[waiting[0]], len(costs)), len(waiting))
            else:
                sums = accumulate(costs[index] for index in islice(waiting, self.rows))
                count = max(1, sum(total <= self.tokens for total in sums))
            return deque(waiting.popleft() for _ in range(count))

        order = sorted(range(len(costs)), key=lambda index: -costs[index])
        return self._drive(costs, order, run_all, portion, len(costs), padded)

    def stream(
        self,
        costs: Mapping[int, int],
        order: Sequence[int],
        work: Callable[[deque[int], int], Steps[Result]],
        most: int,
    ) -> Steps[Result]:
        """Run work that takes items as places become free, and yield each result when done.

        Memory is handled as in `run`.

        Args:
            costs: tokens per item.
            order: the items, costly ones first.
            work: takes items off the left of a queue, holds up to a number of them at once, and
                yields `(item, result)`.
            most: how many it may hold if `rows` does not say.
        """

        def portion(waiting: deque[int]) -> deque[int]:
            """Choose the next portion: all that waits, or only the costly items.

            If a few costly items fill the memory, only those of about the same cost are chosen.
            """
            longest = costs[waiting[0]]
            roomy = self._rows_of(longest, most) >= min(
                most if self.rows is None else self.rows, len(waiting)
            )
            batch: deque[int] = deque()
            while waiting and (roomy or 2 * costs[waiting[0]] > longest):
                batch.append(waiting.popleft())
            return batch

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
        """Hand out portions of waiting items; repeat a failed one in smaller ones or singly."""
        waiting = deque(order)
        alone = deque[int]()
        while waiting or alone:
            queue = deque([alone.popleft()]) if alone else portion(waiting)
            batch = list(queue)
            done: set[int] = set()
            failed: Exception | None = None
            steps = work(queue, min(len(batch), self._rows_of(costs[batch[0]], most)))
            while (outcome := self._next(steps)) is not None:
                if isinstance(outcome, Exception):
                    failed = outcome
                    break
                done.add(outcome[0])
                yield outcome
            waiting.extendleft(reversed(queue))
            left = set(queue)
            unfinished = [
                index for index in batch if index not in done and index not in left
            ]
            if len(unfinished) == 1 and failed is not None:
                yield unfinished[0], failure_of(failed)
            elif failed is not None and is_out_of_memory(failed):
                half = len(unfinished) // 2
                self._shrink(
                    half,
                    (
                        half * costs[unfinished[0]]
                        if padded
                        else sum(costs[index] for index in unfinished) // 2
                    ),
                )
                waiting.extendleft(reversed(unfinished))
            else:
                alone.extend(unfinished)

    def _rows_of(self, cost: int, most: int) -> int:
        rows = max(1, self.tokens // max(1, cost))
        return min(rows, most if self.rows is None else self.rows)

    def _next(
        self, steps: Steps[Result]
    ) -> tuple[int, Result | Failure] | Exception | None:
        """Return the next result, or the error.

        The error has lost the frames that would keep the failed batch's tensors alive.
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
    """Return whether an error means that memory ran out, on a GPU or a CPU."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        sign in text for sign in ("out of memory", "can't allocate memory", "bad_alloc")
    )


def free_memory() -> None:
    """Free memory that is no longer used."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def scoring_budget(model: Any, device: str, memory: int | None = None) -> int:
    """Return the padded tokens per scoring batch.

    It is a third of the memory, at most what keeps the device busy. A token's activations live for
    one layer only; the output head is applied in chunks of its own. `memory` is the bytes that may
    be used beside the model; None for what is free, as for the budgets below.
    """
    config = text_config(model)
    hidden = int(getattr(config, "hidden_size", 1024) or 1024)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    token_bytes = (16 * hidden + 4 * inner) * _item_size(model)
    return _clamp(
        _usable_bytes(device, memory) // 3 // token_bytes,
        65536 if _is_gpu(device) else 4096,
    )


def generation_budget(model: Any, device: str, memory: int | None = None) -> int:
    """Return the tokens of prompts and answers per generation batch, whose keys and values stay."""
    token_bytes = cache_bytes(text_config(model), _item_size(model))
    return _clamp(
        _usable_bytes(device, memory) // 4 // token_bytes,
        262144 if _is_gpu(device) else 131072,
    )


def stored_budget(device: str, memory: int | None = None) -> int:
    """Return the bytes for stored keys and values of shared prefixes: a quarter of the memory."""
    return _usable_bytes(device, memory) // 4


def packed_budget(device: str, memory: int | None = None) -> int:
    """Return the bytes for weights that are packed beside the model's own: a quarter."""
    return _usable_bytes(device, memory) // 4


def cache_bytes(config: Any, number_bytes: int) -> int:
    """Bytes of the keys and values of one token."""
    layers = int(getattr(config, "num_hidden_layers", 32) or 32)
    heads = int(getattr(config, "num_attention_heads", 32) or 32)
    groups = int(getattr(config, "num_key_value_heads", None) or heads)
    hidden = int(getattr(config, "hidden_size", 4096) or 4096)
    width = int(getattr(config, "head_dim", None) or hidden // heads)
    return 2 * layers * groups * width * number_bytes


def text_config(model: Any) -> Any:
    """Return the part of a model's configuration about text."""
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def failure_of(error: Exception) -> Failure:
    """Make the failure of a request that raised an error although it was alone in its batch."""
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
        else machine.free_share()
    )
    free = 4 << 30 if free is None else free
    return free if memory is None else min(memory, free)


def _clamp(value: int, high: int) -> int:
    return max(256, min(value, high))
