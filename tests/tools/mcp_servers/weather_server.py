"""A server of the official package: over stdio, or with a port over streamable HTTP."""

from __future__ import annotations

import os
import sys
import time
from typing import Literal

from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("weather")
counted: list[str] = []


@server.tool()
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """Look up the weather of a city."""
    return f"{city}: 21 {unit}"


@server.tool()
def list_environment() -> list[str]:
    """List the names of this process's variables."""
    return sorted(os.environ)


@server.tool()
def count(word: str) -> int:
    """Count the calls of this session."""
    counted.append(word)
    return len(counted)


@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@server.tool()
def wait(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "waited"


@server.tool()
def repeat(text: str, times: int) -> str:
    """Repeat a text."""
    return text * times


@server.tool()
def picture() -> Image:
    """Draw a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool()
def end() -> str:
    """End this process at once."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
