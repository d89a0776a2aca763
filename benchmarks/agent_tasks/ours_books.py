"""Counts the agents' commands where they reach the sandbox."""

import os

from evalwright.tools import sandbox_tools

execute = sandbox_tools._ACTIONS["bash"]


async def counted(sandbox, seconds, *, command):
    with open(os.environ["AGENT_BOOKS"], "a") as books:
        books.write(repr(command) + "\n")
    return await execute(sandbox, seconds, command=command)


sandbox_tools._ACTIONS["bash"] = counted
