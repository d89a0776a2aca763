"""Requests outside of any run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from evalwright.core.ask import Ask
from evalwright.core.private import home_folder
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.model_interface import Model


@asynccontextmanager
async def ask_outside_run(
    models: Mapping[str, Model], home: str | Path | None = None
) -> AsyncIterator[Ask]:
    """Ask models without a run: `async with ask_outside_run({"target": model}) as ask`.

    What was ever answered comes from the store, and what is answered goes there.

    Args:
        models: by role.
        home: the folder of the store; by default $EVALWRIGHT_HOME.

    Raises:
        StoreError: the store cannot be used.
    """
    with open_store(home_folder(home)) as store:
        async with Engine(store) as engine:
            yield engine.door(models)
