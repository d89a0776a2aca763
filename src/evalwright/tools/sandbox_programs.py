"""Tools that are a program in the sandbox of the sample.

    tools:
      - {command: [python3, /desk/desk.py], tools: "{{ tools }}"}

A call runs the command with the tool's name as a further argument and the call's arguments, a JSON
object, as its input. What it prints is the result; another exit code than 0 says that it failed.
The state of such tools is files of the sandbox: it is the sample's own, a snapshot has it, and an
interrupted conversation goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evalwright.core.tools import ToolDefinition
from evalwright.sandboxes.protocol import Executed
from evalwright.tools.sandbox_tools import GRACE_SECONDS, StartedSandbox
from evalwright.tools.toolbox import Effects, ToolOutput, ToolSource

_VERSION = 1
"""Raised when a tool returns something else for the same call."""


class SandboxPrograms(ToolSource):
    """Tools that one program of the sandbox carries out.

    Args:
        command: the program with its arguments; no shell reads it.
        definitions: the tools.
        sandbox: returns the sample's sandbox.
    """

    effects: Effects = "sandbox"
    grace_seconds = GRACE_SECONDS

    def __init__(
        self,
        command: Sequence[str],
        definitions: Sequence[ToolDefinition],
        sandbox: StartedSandbox,
    ) -> None:
        self.label = f"the program '{' '.join(command)[:80]}' in the sandbox"
        self._command = tuple(command)
        self._definitions = tuple(definitions)
        self._sandbox = sandbox

    def fingerprint(self, name: str) -> str:
        """Return the version, and the command."""
        return json.dumps(["program", _VERSION, *self._command])

    async def start(self) -> Sequence[ToolDefinition]:
        """Return the definitions."""
        return self._definitions

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Run the program, within the time of the sandbox's own limits."""
        return await self.call_within(name, arguments, float("inf"))

    async def call_within(
        self, name: str, arguments: dict[str, Any], seconds: float
    ) -> ToolOutput:
        """Run the program; it is ended in the sandbox if it takes longer."""
        sandbox = self._sandbox()
        executed = await sandbox.exec(
            [*self._command, name],
            stdin=json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace"),
            seconds=min(seconds, sandbox.settings.limits.seconds),
        )
        return _output_of(executed)


def _output_of(executed: Executed) -> ToolOutput:
    text = executed.stdout.decode("utf-8", "replace").rstrip("\n")
    if executed.ended_by:
        return ToolOutput(
            f"{text}\nThe tool ran out of {executed.ended_by}.".lstrip(), is_error=True
        )
    if executed.exit_code:
        errors = executed.stderr.decode("utf-8", "replace").strip()
        shown = "\n".join(part for part in (text, errors) if part)
        return ToolOutput(
            shown or f"The tool failed with exit code {executed.exit_code}.",
            is_error=True,
        )
    return ToolOutput(text)
