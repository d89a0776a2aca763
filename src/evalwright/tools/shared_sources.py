"""Sources of tools that all samples of a run share: a server with `session: run`.

They are started by the first sample that needs them, and closed with the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evalwright.core.tools import ToolDefinition
from evalwright.tools.toolbox import ToolOutput, ToolSource

if TYPE_CHECKING:
    from evalwright.tools.mcp_tools import McpTools

_shared: dict[tuple[asyncio.AbstractEventLoop, Any], SharedSession] = {}


class SharedSession:
    """A server that is started once, and again after it could no longer be used."""

    def __init__(self, tools: McpTools) -> None:
        self.tools = tools
        self.definitions: Sequence[ToolDefinition] = ()
        self.lock = asyncio.Lock()
        self.is_started = False


class SharedTools(ToolSource):
    """The tools of a server that all samples of a run share.

    Args:
        key: equal for equal servers.
        make: makes the server's tools, not started yet.
    """

    def __init__(self, key: Any, make: Any, label: str) -> None:
        self.label = label
        self._key = key
        self._make = make
        self._session: SharedSession | None = None

    def fingerprint(self, name: str) -> str:
        """Return the server's settings."""
        return f"{self._key[1]} {name}"

    async def start(self) -> Sequence[ToolDefinition]:
        """Start the server unless it runs, and return its tools."""
        place = (asyncio.get_running_loop(), self._key)
        session = _shared.get(place)
        if session is None or not session.tools.is_usable:
            if session is not None:
                del _shared[place]
                await session.tools.stop()
            session = _shared.setdefault(place, SharedSession(self._make()))
        async with session.lock:
            if not session.is_started:
                session.definitions = await session.tools.start()
                session.is_started = True
        self._session = session
        return session.definitions

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Have the server carry out a call."""
        assert self._session is not None
        return await self._session.tools.call(name, arguments)


async def close_shared_sources() -> None:
    """Stop what the samples of this event loop shared."""
    loop = asyncio.get_running_loop()
    places = [place for place in _shared if place[0] is loop or place[0].is_closed()]
    for place in places:
        session = _shared.pop(place)
        if place[0] is loop:
            await session.tools.stop()
