# Counts the agent's commands where they reach the sandbox, if the variable AGENT_BOOKS says so.
import os
from pathlib import Path

if "AGENT_BOOKS" in os.environ:
    from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

    execute = LocalSandboxEnvironment.exec

    async def counted(self, cmd, *arguments, **options):
        if list(cmd[:2]) == ["bash", "--login"]:
            with Path(os.environ["AGENT_BOOKS"]).open("a") as books:
                books.write(repr(list(cmd)) + "\n")
        return await execute(self, cmd, *arguments, **options)

    LocalSandboxEnvironment.exec = counted
