"""An MCP server that is a process: JSON-RPC messages, a line each, over its pipes.

The client of the `mcp` package speaks to it; what it sends is bounded here. A server that floods
its output, sends what is no message, or answers what was not asked is stopped, and `fault` says
why.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from evalwright.core.secrets import mask
from evalwright.tools.mcp_settings import McpServer
from evalwright.tools.model_texts import without_paths

MAX_MESSAGE_BYTES = 8 << 20
"""Most bytes of one message."""
MAX_MESSAGES = 2_000
"""Most messages that a server sends between two requests to it."""
MAX_STRAY_LINES = 50
"""Most lines that are no messages; some servers print a greeting."""
STOP_SECONDS = 2.0
"""Seconds in which a server may end by itself, and then after SIGTERM."""
_MAX_ERROR_BYTES = 4_000
_MESSAGE = re.compile(rb'\s*\{.*"jsonrpc"', re.DOTALL)
_GUARD = 'read -r _; kill -9 "-$1"'
"""A shell program that ends a server's group when its own input ends: with us, however we end."""


class ServerProcess:
    """A server's process and the streams between it and the client.

    Attributes:
        fault: why the server was stopped, as the end of a sentence; "" where it was not.
    """

    def __init__(self, server: McpServer) -> None:
        self.fault = ""
        self._server = server
        self._pending: set[Any] = set()
        self._messages = 0
        self._stray_lines = 0
        self._errors = b""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start the server, and give the client's two streams.

        Raises:
            OSError: it cannot be started.
        """
        import anyio
        from mcp.shared.message import SessionMessage

        process = await asyncio.create_subprocess_exec(
            *self._server.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._server.environment(),
            cwd=self._server.folder,
            limit=MAX_MESSAGE_BYTES,
            start_new_session=True,
        )
        guard = _start_guard(process.pid)
        to_client, client_reads = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](0)
        client_writes, from_client = anyio.create_memory_object_stream[SessionMessage](
            0
        )
        pumps = [
            asyncio.create_task(self._read_output(process, to_client)),
            asyncio.create_task(self._write_input(process, from_client, to_client)),
            asyncio.create_task(self._read_errors(process)),
        ]
        try:
            yield client_reads, client_writes
        finally:
            stopping = asyncio.ensure_future(self._stop(process, pumps))
            try:
                await asyncio.shield(stopping)
            except asyncio.CancelledError:
                await stopping
                raise
            finally:
                _end_guard(guard)
                for stream in (to_client, client_reads, client_writes, from_client):
                    stream.close()

    @property
    def last_error(self) -> str:
        """The last line that the server wrote to its standard error, without paths."""
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return mask(without_paths(lines[-1].strip()[:300])) if lines else ""

    async def _read_output(self, process: asyncio.subprocess.Process, out: Any) -> None:
        assert process.stdout is not None
        import anyio

        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with out:
                while not self.fault:
                    try:
                        line = await process.stdout.readuntil(b"\n")
                    except asyncio.IncompleteReadError:
                        return  # it has ended
                    except asyncio.LimitOverrunError:
                        self.fault = f"it sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
                        return
                    message = self._read_line(line)
                    if message is not None:
                        await out.send(message)

    def _read_line(self, line: bytes) -> Any:
        """Return the message of a line; None for a line without one, or with a fault."""
        from mcp.shared.message import SessionMessage
        from mcp.types import (
            JSONRPCError,
            JSONRPCNotification,
            JSONRPCResponse,
            jsonrpc_message_adapter,
        )

        if not line.strip():
            return None
        self._messages += 1
        if self._messages > MAX_MESSAGES:
            self.fault = (
                f"it sent more than {MAX_MESSAGES:,} messages without being asked"
            )
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            if _MESSAGE.match(line):
                # Whoever waits for this reply would wait for the whole time of the call.
                self.fault = "it sent a message that cannot be read"
                return None
            self._stray_lines += 1
            if self._stray_lines > MAX_STRAY_LINES:
                self.fault = (
                    f"it wrote more than {MAX_STRAY_LINES} lines to its standard output"
                    " that are no messages"
                )
            return None
        if isinstance(message, JSONRPCNotification):
            return None  # reports of progress and the like; nothing here waits for them
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id not in self._pending:
                identifier = str(message.id)[:40]
                self.fault = (
                    f"it answered a request that was not sent (id {identifier!r})"
                )
                return None
            self._pending.discard(message.id)
        return SessionMessage(message)

    async def _write_input(
        self, process: asyncio.subprocess.Process, source: Any, out: Any
    ) -> None:
        assert process.stdin is not None
        from mcp.types import JSONRPCRequest

        try:
            async with source:
                async for session_message in source:
                    message = session_message.message
                    if isinstance(message, JSONRPCRequest):
                        self._pending.add(message.id)
                        self._messages = 0
                    text = message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                    await process.stdin.drain()
        except (OSError, ValueError):
            await out.aclose()  # the client sees that the connection has ended

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(1 << 16):
            self._errors = (self._errors + chunk)[-_MAX_ERROR_BYTES:]

    async def _stop(
        self, process: asyncio.subprocess.Process, pumps: list[asyncio.Task[None]]
    ) -> None:
        """End a server: its input is closed, then its process group is stopped, then killed.

        One that broke a rule is killed at once.
        """
        pumps[0].cancel()
        pumps[1].cancel()
        await asyncio.gather(*pumps[:2], return_exceptions=True)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        drain = asyncio.create_task(_drain(process.stdout))
        try:
            steps = (None, signal.SIGTERM, signal.SIGKILL)
            for number in steps[2:] if self.fault else steps:
                if number is not None:
                    _signal_group(process, number)
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), STOP_SECONDS)
                    break
            _signal_group(process, signal.SIGKILL)  # what it started and left behind
        finally:
            for reader in (drain, pumps[2]):
                reader.cancel()
            await asyncio.gather(drain, pumps[2], return_exceptions=True)
            transport = getattr(process, "_transport", None)
            if transport is not None:
                with suppress(PermissionError):
                    transport.close()


def _start_guard(group: int) -> subprocess.Popen[bytes] | None:
    """Start what ends a server that outlives us, after a SIGKILL say; None where it cannot."""
    with suppress(OSError):
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None


def _end_guard(guard: subprocess.Popen[bytes] | None) -> None:
    """End a guard before its input does: the number of the group may soon be another's."""
    if guard is None:
        return
    guard.kill()
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()


async def _drain(output: asyncio.StreamReader) -> None:
    """Read on, so that a server that still writes can end."""
    with suppress(OSError, ValueError):
        while await output.read(1 << 16):
            pass


def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
