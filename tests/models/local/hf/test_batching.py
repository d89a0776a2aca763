"""Batches: within their limits, smaller after out-of-memory, and a bad item fails alone."""

from __future__ import annotations

import gc
import random
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import Failure

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.hf.batching import BatchRunner, is_out_of_memory  # noqa: E402


@pytest.fixture(autouse=True)
def _nothing_to_collect(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is really short here, and a collection of all that torch brings takes its time."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@given(
    st.lists(st.integers(1, 50), max_size=25),
    st.one_of(st.none(), st.integers(1, 8)),
    st.integers(1, 120),
    st.integers(1, 200),
)
def test_every_item_once_within_limits(
    costs: list[int], rows: int | None, tokens: int, memory: int
) -> None:
    finished: list[list[int]] = []

    def work(batch: list[int]) -> list[int]:
        padded = len(batch) * max(costs[item] for item in batch)
        assert rows is None or len(batch) <= rows
        assert padded <= tokens or len(batch) == 1
        if padded > memory:
            raise torch.OutOfMemoryError("CUDA out of memory")
        finished.append(batch)
        return batch

    found = list(BatchRunner[int](rows, tokens).run(costs, work))
    assert sorted(item for item, _ in found) == list(range(len(costs)))
    for item, result in found:
        if costs[item] > memory:
            assert isinstance(result, Failure)
            assert "Out of memory" in result.message
        else:
            assert result == item
    assert sum(map(len, finished)) == sum(cost <= memory for cost in costs), (
        "finished work is done once"
    )


def test_only_the_item_at_fault_fails() -> None:
    def work(batch: list[int]) -> list[int]:
        if 2 in batch:
            raise IndexError("no such token")
        return batch

    found = dict(BatchRunner[int](None, 100).run([1] * 5, work))
    assert isinstance(found.pop(2), Failure)
    assert found == {0: 0, 1: 1, 3: 3, 4: 4}


def test_which_errors_say_that_memory_ran_out() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    assert is_out_of_memory(
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"
        )
    )
    assert is_out_of_memory(RuntimeError("MPS backend out of memory"))
    assert is_out_of_memory(RuntimeError("std::bad_alloc"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


@given(
    st.lists(st.integers(1, 50), max_size=15),
    st.one_of(st.none(), st.integers(1, 8)),
    st.integers(1, 200),
    st.integers(30, 200),
    st.integers(-1, 14),
    st.integers(0, 1 << 30),
)
def test_a_stream_loses_nothing(
    costs: list[int], rows: int | None, tokens: int, memory: int, bad: int, seed: int
) -> None:
    """Rows come and go in any order; what was finished when something failed is not done again."""
    finished: list[int] = []
    rng = random.Random(seed)

    def work(queue: deque[int], most: int) -> Iterator[tuple[int, int | Failure]]:
        assert rows is None or most <= rows
        assert most <= 6
        longest = max(costs[item] for item in queue)
        assert most * longest <= tokens or most == 1
        held: list[int] = []
        while queue or held:
            while queue and len(held) < most:
                held.append(queue.popleft())
            if len(held) * longest > memory:
                raise torch.OutOfMemoryError("CUDA out of memory")
            if bad in held and rng.random() < 0.5:
                raise IndexError("no such token")
            item = held.pop(rng.randrange(len(held)))
            if item == bad:
                raise IndexError("no such token")
            finished.append(item)
            yield item, item

    order = sorted(range(len(costs)), key=lambda item: -costs[item])
    found = list(
        BatchRunner[int](rows, tokens).stream(dict(enumerate(costs)), order, work, 6)
    )
    assert sorted(item for item, _ in found) == list(range(len(costs)))
    assert len(set(finished)) == len(finished), "finished work is done once"
    for item, result in found:
        if item == bad or costs[item] > memory:
            assert isinstance(result, Failure)
        elif isinstance(result, Failure):
            assert "Out of memory" in result.message
            assert max(costs) > memory
        else:
            assert result == item
