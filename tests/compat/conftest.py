"""Every test of foreign systems stands in a folder of its own, which is its home too, without a
network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

MANY_FILES = 1000


@pytest.fixture(autouse=True, scope="session")
def _shipped_tasks_read_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """The thousands of task files of the released package are read once in all processes of the
    tests, and not for the new home of each test.
    """
    from evalwright.compat.indexes import State, cached_index

    read_before: dict[tuple[str, Path, tuple[State, ...]], Any] = {}
    base = tmp_path_factory.getbasetemp()
    of_all_processes = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def kept_in_memory(
        system: str, folder: Path, files: list[State], make: Callable[[], Any]
    ) -> Any:
        state = (system, folder, tuple(files))
        if len(files) < MANY_FILES:
            return cached_index(*state, make)
        if state not in read_before:
            with pytest.MonkeyPatch.context() as shared:
                home = str(of_all_processes / "home-of-indexes")
                shared.setenv("EVALWRIGHT_HOME", home)
                read_before[state] = cached_index(*state, make)
        return read_before[state]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "evalwright.compat.lm_eval.tasks.index.cached_index", kept_in_memory
        )
        yield


@pytest.fixture(autouse=True)
def _home(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
