"""A program in a sandbox, from its start to its end, by itself or because it is over a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from evalwright.sandboxes.protocol import Executed, Sandbox

FOLDER = "/tmp/.agent-command"
PROMPT_FILE = f"{FOLDER}/prompt.txt"
LIMIT_GRACE_SECONDS = 5.0
"""How long a program may go on to write what it has, after it heard that a limit is reached."""
END_SECONDS = 10.0
"""How long the sandbox may take to end a program, before it is left to the sandbox's own end."""
_MOST_SECONDS = 7 * 24 * 3_600.0
"""Of wall time, with all waiting for the model; a program's own seconds are counted apart."""
_SCRIPT_FILE = f"{FOLDER}/run.sh"
_PROCESS_FILE = f"{FOLDER}/process"
_RUN = 'echo $$ >"$1" && exec bash "$2"'
_END = """
end() {
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do end "$child" "$2"; done
    kill -"$2" "$1" 2>/dev/null
}
read -r process <"$1" || exit 0
[[ $process =~ ^[0-9]+$ && $process -gt 1 ]] || exit 0
end "$process" TERM
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$process" 2>/dev/null || exit 0
    sleep 0.2
done
end "$process" KILL
"""


class SandboxedProgram:
    """A program that runs in a sandbox.

    Args:
        sandbox: the sandbox.
        script: the bash script that starts it.
        prompt: what the sample asks; in a file, and the program's input.
    """

    def __init__(self, sandbox: Sandbox, script: str, prompt: str) -> None:
        self._sandbox = sandbox
        self._script = script.encode("utf-8", "replace")
        self._prompt = prompt.encode("utf-8", "replace")
        self._running: asyncio.Task[Executed] | None = None

    async def prepare(self) -> None:
        """Write its files."""
        await self._sandbox.write(_SCRIPT_FILE, self._script)
        await self._sandbox.write(PROMPT_FILE, self._prompt)

    def start(self, environment: Mapping[str, str]) -> asyncio.Task[Executed]:
        """Start it, and return what waits for its end."""
        command = ["bash", "-c", _RUN, "agent-command", _PROCESS_FILE, _SCRIPT_FILE]
        self._running = asyncio.ensure_future(
            self._sandbox.exec(
                command,
                stdin=self._prompt,
                seconds=_MOST_SECONDS,
                environment=environment,
            )
        )
        return self._running

    async def end(self, grace: float) -> Executed:
        """End it, if it does not end by itself within so many seconds.

        Returns:
            What became of it; without its output if it could not be ended.
        """
        assert self._running is not None
        await asyncio.wait((self._running,), timeout=grace)
        if not self._running.done():
            command = ["bash", "-c", _END, "agent-command", _PROCESS_FILE]
            await self._sandbox.exec(command, seconds=END_SECONDS)
            await asyncio.wait((self._running,), timeout=END_SECONDS)
        if self._running.done():
            return self._running.result()
        await self.abandon()
        return Executed(137)

    async def abandon(self) -> None:
        """Wait for it no longer; it ends with its sandbox."""
        if self._running is None or self._running.done():
            return
        self._running.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._running
