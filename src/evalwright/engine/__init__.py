"""How asking happens: the door, the durable store, batching for local models, pacing for remote ones.

`Store.open(home)` opens the answers of all runs; `Engine(store)` asks; `engine.door({"target": model})` is the `ask` that
strategies and scorers are handed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.engine.counts import Counts as Counts
    from evalwright.engine.engine import Door as Door
    from evalwright.engine.engine import Engine as Engine
    from evalwright.engine.store import Store as Store

_WHERE = {
    "Counts": "evalwright.engine.counts",
    "Door": "evalwright.engine.engine",
    "Engine": "evalwright.engine.engine",
    "Store": "evalwright.engine.store",
}

__all__ = ["Counts", "Door", "Engine", "Store"]


def __getattr__(name: str) -> Any:
    """Imports a part when it is first used: asyncio and sqlite3 are not loaded by `import evalwright`."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
