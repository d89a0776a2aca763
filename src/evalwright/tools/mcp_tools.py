"""The tools of an MCP server, by the official `mcp` package (the extra `mcp`).

What a server says is another's text: the number of its tools, the sizes and the depth of their
schemas, their names, the sizes of results and all times are bounded, and its own schemas of results
are not used, for they could hold patterns that never end. A server that breaks a rule is not used
on; the sample is missing, with a sentence that says why.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    MissingExtra,
    RequestFailed,
    UnknownName,
)
from evalwright.core.text import printable
from evalwright.core.tools import MAX_NAME_CHARS, ToolDefinition
from evalwright.tools.mcp_http import HttpConnection
from evalwright.tools.mcp_process import ServerProcess
from evalwright.tools.mcp_settings import McpServer
from evalwright.tools.toolbox import (
    CALL_SECONDS,
    Effects,
    ToolOutput,
    ToolSource,
    source_failure,
)

MAX_TOOLS = 256
"""Most tools of one server."""
MAX_PAGES = 64
"""Most pages in which a server lists its tools."""
MAX_DESCRIPTION_CHARS = 20_000
MAX_SCHEMA_CHARS = 100_000
MAX_SCHEMA_DEPTH = 24
MAX_PROCESSES = 16
"""Most processes of servers that run at a time, those that all samples share apart."""
STOP_SECONDS = 10.0
"""Seconds in which a session ends, before it is given up."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_EXTRA = "mcp"


def check_installed() -> None:
    """Raise MissingExtra unless the `mcp` package can be imported."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("An MCP server", _EXTRA, "mcp") from None
    for name in ("mcp", "httpx2", "httpcore2"):
        # Its reports of what a server sends are in our messages, or belong to nobody.
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)


class McpTools(ToolSource):
    """The tools of an MCP server, in one session.

    Args:
        server: the server.
        call_seconds: most seconds of one call, after which the session is of no use.
    """

    effects: Effects = "session"

    def __init__(self, server: McpServer, call_seconds: float = CALL_SECONDS) -> None:
        self.label = server.label
        self._server = server
        self._connection = (
            HttpConnection(server, call_seconds)
            if server.url
            else ServerProcess(server)
        )
        self._session: Any = None
        self._name_by_shown_name: dict[str, str] = {}
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._slots: asyncio.Semaphore | None = None
        self.is_usable = True

    def fingerprint(self, name: str) -> str:
        """Return the server's settings."""
        return f"{self._server!r} {name}"

    async def start(self) -> Sequence[ToolDefinition]:
        """Start the server or connect to it, and return its tools.

        Raises:
            RequestFailed: it cannot be started, or breaks a rule.
            MissingExtra: the `mcp` package is not installed.
        """
        check_installed()
        if self._server.command and self._server.session == "sample":
            slots = _process_slots()
            await slots.acquire()  # a wait for others is no part of the server's time
            self._slots = slots
        ready: asyncio.Future[list[ToolDefinition]] = (
            asyncio.get_running_loop().create_future()
        )
        # A session's scopes belong to one task, so that it ends where it began.
        self._owner = asyncio.create_task(self._keep_open(ready))
        try:
            async with asyncio.timeout(self._server.start_seconds):
                return await asyncio.shield(ready)
        except TimeoutError:
            self.is_usable = False
            raise source_failure(
                f"{self._subject} did not list its tools within"
                f" {self._server.start_seconds:g} seconds. If it needs longer, set"
                " `start_seconds`."
            ) from None
        finally:
            if ready.done() and not ready.cancelled():
                ready.exception()  # also if nobody waits any more

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Have the server carry out a call.

        Raises:
            RequestFailed: the server can no longer be used.
        """
        from mcp.types import (
            CallToolRequest,
            CallToolRequestParams,
            CallToolResult,
        )

        params = CallToolRequestParams(
            name=self._name_by_shown_name[name], arguments=arguments
        )
        try:
            result = await self._session.send_request(
                CallToolRequest(params=params), CallToolResult
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:
            fault = self._connection.fault
            message = _protocol_error(error)
            if fault or message is None:
                self.is_usable = False
                raise source_failure(self._ended(fault, error)) from None
            return ToolOutput(message, is_error=True)
        return ToolOutput(_text_of(result), bool(result.is_error))

    async def stop(self) -> None:
        """End the session, and the server if it is a process."""
        try:
            await self._end()
        finally:
            if self._slots is not None:
                self._slots.release()
                self._slots = None

    async def _end(self) -> None:
        self._closing.set()
        owner = self._owner
        if owner is None:
            return
        if not self.is_usable or self._session is None:
            owner.cancel()
        await asyncio.wait([owner], timeout=STOP_SECONDS)
        if not owner.done():
            owner.cancel()
            await asyncio.wait([owner], timeout=STOP_SECONDS)

    async def _keep_open(self, ready: asyncio.Future[list[ToolDefinition]]) -> None:
        try:
            async with AsyncExitStack() as stack:
                from mcp import ClientSession

                streams = await stack.enter_async_context(self._connection.streams())
                session = await stack.enter_async_context(ClientSession(*streams))
                await session.initialize()
                definitions = await self._list_tools(session)
                self._session = session
                if not ready.done():
                    ready.set_result(definitions)
                await self._closing.wait()
        except asyncio.CancelledError:
            if not ready.done():
                ready.cancel()
        except BaseException as error:
            self.is_usable = False
            if not ready.done():
                ready.set_exception(self._start_error(error))
        finally:
            if not ready.done():
                ready.cancel()

    async def _list_tools(self, session: Any) -> list[ToolDefinition]:
        from mcp.types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

        listed: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await session.send_request(
                ListToolsRequest(params=params), ListToolsResult
            )
            listed += page.tools
            cursor = page.next_cursor
            if len(listed) > MAX_TOOLS:
                raise self._broken(f"it has more than {MAX_TOOLS} tools")
            if not cursor:
                break
        else:
            raise self._broken(f"it lists its tools on more than {MAX_PAGES} pages")
        names = [listed_tool.name for listed_tool in listed]
        unknown = next((name for name in self._server.only if name not in names), None)
        if unknown is not None:
            raise UnknownName(f"tool of {self.label}", unknown, names)
        wanted = self._server.only or names
        return [
            self._definition_of(listed_tool)
            for listed_tool in listed
            if listed_tool.name in wanted
        ]

    def _definition_of(self, listed_tool: Any) -> ToolDefinition:
        name = str(listed_tool.name)
        described = f"its tool '{_shortened(name, 40)}'"
        shown_name = _NOT_IN_NAMES.sub("_", f"{self._server.prefix}{name}")
        if not name or len(shown_name) > MAX_NAME_CHARS:
            raise self._broken(
                f"{described} has a name of {len(shown_name):,} characters; 1 to"
                f" {MAX_NAME_CHARS} are allowed"
            )
        if shown_name in self._name_by_shown_name:
            raise self._broken(f"two of its tools have the name '{shown_name}'")
        description = listed_tool.description or ""
        if len(description) > MAX_DESCRIPTION_CHARS:
            raise self._broken(
                f"the description of {described} has {len(description):,} characters;"
                f" {MAX_DESCRIPTION_CHARS:,} are allowed"
            )
        schema = dict(listed_tool.input_schema)
        if why := _schema_fault(schema):
            raise self._broken(f"the schema of {described} {why}")
        try:
            definition = ToolDefinition.of(shown_name, description, schema)
        except ConfigurationError as error:
            raise self._broken(f"{described} cannot be offered ({error})") from None
        self._name_by_shown_name[shown_name] = name
        return definition

    @property
    def _subject(self) -> str:
        return f"{self.label[0].upper()}{self.label[1:]}"

    def _broken(self, reason: str) -> RequestFailed:
        return source_failure(f"{self._subject} is not used: {reason}.")

    def _ended(self, fault: str, error: BaseException) -> str:
        if fault:
            return f"{self._subject} was stopped: {fault}."
        said = self._connection.last_error
        last = f" The last line of its standard error: {said}" if said else ""
        reason = _reason(error)
        return f"{self._subject} does not answer: {reason}.{last}"

    def _start_error(self, error: BaseException) -> EvalwrightError:
        if isinstance(error, EvalwrightError):
            return error
        if isinstance(error, BaseExceptionGroup):
            inner = _first_of(error)
            if isinstance(inner, EvalwrightError):
                return inner
            error = inner
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            return source_failure(
                f"{self._subject} cannot be started: {error.strerror}. Is the program"
                f" '{self._server.command[0]}' installed, and is its folder in PATH?"
            )
        return source_failure(self._ended(self._connection.fault, error))


def _schema_fault(schema: Any) -> str:
    """Say what is wrong with a tool's schema, as the end of a sentence; "" for nothing."""
    depth = 0
    layer = [schema]
    while layer:
        depth += 1
        if depth > MAX_SCHEMA_DEPTH:
            return f"has more than {MAX_SCHEMA_DEPTH} levels"
        layer = [
            member
            for part in layer
            for member in (part.values() if isinstance(part, dict) else part)
            if isinstance(member, dict | list)
        ]
    if schema.get("type") != "object":
        return "is not one of an object"
    if not isinstance(schema.get("properties", {}), dict):
        return "has properties that are not a mapping"
    n_chars = len(json.dumps(schema, ensure_ascii=False, default=str))
    if n_chars > MAX_SCHEMA_CHARS:
        return f"has {n_chars:,} characters; {MAX_SCHEMA_CHARS:,} are allowed"
    return ""


def _text_of(result: Any) -> str:
    """Return the text of a result; other content is named."""
    texts: list[str] = []
    for part in result.content:
        kind = str(part.type)
        if kind == "text":
            texts.append(part.text)
            continue
        resource = getattr(part, "resource", None)
        text = getattr(resource, "text", None)
        if isinstance(text, str):
            texts.append(text)
            continue
        size = len(getattr(part, "data", "") or getattr(resource, "blob", "") or "")
        texts.append(f"[{kind} of {size:,} characters, which is not shown]")
    if not texts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(texts)


def _protocol_error(error: Exception) -> str | None:
    """Return what the server says of one call, for the model; None if the session is at its end."""
    from mcp.shared.exceptions import MCPError
    from mcp.types import (
        CONNECTION_CLOSED,
        INVALID_REQUEST,
        PARSE_ERROR,
        REQUEST_TIMEOUT,
    )

    if not isinstance(error, MCPError):
        return None
    # The last two are also what the client says of replies that are none: no call is to blame.
    at_an_end = (CONNECTION_CLOSED, REQUEST_TIMEOUT, INVALID_REQUEST, PARSE_ERROR)
    if error.error.code in at_an_end:
        return None
    return f"The call was refused: {error.error.message[:2_000]}"


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        error = _first_of(error)
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in fault["loc"])
        return f"its reply is not what the protocol says ({_shortened(place, 80)}: {fault['msg']})"
    return _shortened(str(error).rstrip(".") or type(error).__name__, 300)


def _shortened(text: str, max_chars: int) -> str:
    line = printable(" ".join(text[: 4 * max_chars].split()))
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


_slots_by_loop: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


def _process_slots() -> asyncio.Semaphore:
    """Return the limit of processes of this event loop."""
    for loop in [loop for loop in _slots_by_loop if loop.is_closed()]:
        del _slots_by_loop[loop]
    loop = asyncio.get_running_loop()
    return _slots_by_loop.setdefault(loop, asyncio.Semaphore(MAX_PROCESSES))
