"""Heavy models take turns in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.support import Echo, question
from evalwright.core.requests import Request
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store


class Memory:
    """Which models are loaded now, the most there ever were at a time, and how often any was
    loaded.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loaded: set[str] = set()
        self.most = 0
        self.loads: list[str] = []


class Heavy(Echo):
    def __init__(self, name: str, memory: Memory) -> None:
        super().__init__(name, heavy=True)
        self.memory = memory

    def load(self) -> None:
        with self.memory.lock:
            self.memory.loaded.add(self.name)
            self.memory.loads.append(self.name)
            self.memory.most = max(self.memory.most, len(self.memory.loaded))
        time.sleep(0.01)

    def unload(self) -> None:
        with self.memory.lock:
            self.memory.loaded.remove(self.name)

    def answer_batch(self, requests: Sequence[Request]):  # type: ignore[no-untyped-def]
        assert self.name in self.memory.loaded
        return super().answer_batch(requests)


def judged_run(
    home: Path, memory: Memory, judges: int, samples: int, max_resident: int
) -> None:
    """Every sample asks the target first, then each judge."""

    async def main() -> None:
        models = {f"judge {n}": Heavy(f"judge {n}", memory) for n in range(judges)}
        models["target"] = Heavy("target", memory)
        with open_store(home) as store:
            async with Engine(store, max_resident=max_resident) as engine:
                door = engine.door(models)

                async def sample(number: int) -> None:
                    answer = await door("target", question(number))
                    for n in range(judges):
                        await door(f"judge {n}", question(f"{answer.text} for {n}"))

                await asyncio.wait_for(
                    asyncio.gather(*(sample(n) for n in range(samples))), 60
                )
        assert not memory.loaded

    asyncio.run(main())


@pytest.mark.parametrize("judges", [1, 3])
def test_heavy_models_are_never_loaded_together_nor_to_and_fro(
    tmp_path: Path, judges: int
) -> None:
    memory = Memory()
    judged_run(tmp_path, memory, judges, samples=300, max_resident=1)
    assert memory.most == 1
    assert len(memory.loads) == judges + 1


def test_two_may_be_loaded_where_that_is_allowed(tmp_path: Path) -> None:
    memory = Memory()
    judged_run(tmp_path, memory, 2, samples=100, max_resident=2)
    assert memory.most == 2


def test_a_model_that_is_needed_again_comes_back(tmp_path: Path) -> None:
    memory = Memory()

    async def main() -> None:
        models = {name: Heavy(name, memory) for name in ("one", "two")}
        with open_store(tmp_path) as store:
            async with Engine(store) as engine:
                door = engine.door(models)
                for turn in range(3):
                    for name in models:
                        await asyncio.wait_for(door(name, question(turn)), 60)

    asyncio.run(main())
    assert memory.loads == ["one", "two"] * 3 and memory.most == 1


def test_a_model_that_cannot_be_loaded_gives_its_slot_back(tmp_path: Path) -> None:
    class Unloadable(Echo):
        def load(self) -> None:
            raise OSError("gone")

    async def main() -> None:
        with open_store(tmp_path) as store:
            async with Engine(store) as engine:
                door = engine.door(
                    {
                        "bad": Unloadable("bad", heavy=True),
                        "good": Heavy("good", Memory()),
                    }
                )
                results = await asyncio.gather(
                    door("bad", question(1)),
                    door("good", question(1)),
                    return_exceptions=True,
                )
                assert "gone" in str(results[0])
                assert not isinstance(results[1], BaseException)

    asyncio.run(main())
