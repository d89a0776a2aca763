"""Counts the agents' commands where they reach the sandbox."""

import os
from pathlib import Path

from evalwright.tools import sandbox_tools

execute = sandbox_tools._ACTIONS["bash"]


async def counted(sandbox, seconds, *, command):
    with Path(os.environ["AGENT_BOOKS"]).open("a") as books:
        books.write(repr(command) + "\n")
    return await execute(sandbox, seconds, command=command)


sandbox_tools._ACTIONS["bash"] = counted
