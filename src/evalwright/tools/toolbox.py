"""The tools of one conversation: their definitions for the requests, and what runs the calls.

A toolbox is opened for a sample and closed after it:

    async with Toolbox(sources) as toolbox:
        request = Generate(prompt, tools=toolbox.definitions)
        ...
        result = await toolbox.call(call)

Its sources are the kinds of tools: Python functions, a server, a row's scripted results, a sandbox.
What goes wrong in a call's arguments or in a tool is a result that says so to the model. A source
that cannot be used at all (its server died) raises `RequestFailed`: the sample is then missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from evalwright.core.errors import (
    EvalwrightError,
    Failure,
    RequestFailed,
    closest,
)
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import MAX_TOOLS, ToolDefinition
from evalwright.tools.model_texts import error_text, result_text

CALL_SECONDS = 60.0
"""Most seconds of one call, unless a task says otherwise."""
RESULT_CHARS = 50_000
"""Most characters of a result that the model reads, unless a task says otherwise."""
SECONDS_DIGITS = 6
"""Digits of the time of a call: as many as are stored, so that a replay adds up to the same."""
MAX_NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a source returns for a call.

    Args:
        text: the result, of any length.
        is_error: whether the call failed.
    """

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call, as the model reads it.

    Args:
        text: what the tool returned, or why the call failed.
        is_error: whether the call failed.
        seconds: how long the call took.
    """

    text: str
    is_error: bool = False
    seconds: float = 0.0


Effects = Literal["none", "outside", "session", "sandbox"]
"""Where the effects of a source's calls are.

"none": nowhere; a call may be made again. "outside": elsewhere, and for good. "session": in what
was started for this conversation, and ends with it. "sandbox": in the sample's sandbox.
"""


class ToolSource:
    """One kind of tools, for one conversation; a base class.

    Attributes:
        label: what messages call it, such as "the file weather.py".
        effects: where the effects of its calls are.
        grace_seconds: how much later the toolbox stops a call that the source ends itself.
    """

    label: str = ""
    effects: Effects = "outside"
    grace_seconds: float = 0.0

    def effects_of(self, name: str) -> Effects:
        """Return where the effects of a tool's calls are."""
        return self.effects

    def fingerprint(self, name: str) -> str:
        """Return what tells one tool from another that could give other results.

        Stored results of a call are those of the same tool only.

        Args:
            name: one of the tools.
        """
        return self.label

    async def start(self) -> Sequence[ToolDefinition]:
        """Get ready for calls, and return the definitions of the tools.

        Raises:
            RequestFailed: it cannot be used.
        """
        raise NotImplementedError

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Carry out one call. The toolbox bounds its time and the size of its result.

        Args:
            name: one of the tools.
            arguments: a mapping, not checked yet.

        Raises:
            ValueError: the arguments do not fit; the message is for the model.
            RequestFailed: the source can no longer be used.
        """
        raise NotImplementedError

    async def call_within(
        self, name: str, arguments: dict[str, Any], seconds: float
    ) -> ToolOutput:
        """Carry out one call, as `call`.

        Args:
            name: one of the tools.
            arguments: a mapping, not checked yet.
            seconds: when the toolbox stops it, for sources that can end a call better themselves.
        """
        return await self.call(name, arguments)

    def answers(self, name: str) -> bool:
        """Return whether it answers calls of a tool that another source defines."""
        return False

    async def stop(self) -> None:
        """Release what `start` took. It is called also where `start` failed."""


class DefinedTools(ToolSource):
    """Definitions alone: nothing runs such tools, and scripted results may answer their calls."""

    effects: Effects = "none"

    def __init__(self, definitions: Iterable[ToolDefinition], label: str = "") -> None:
        self.definitions = tuple(definitions)
        self.label = label or "the task's definitions"

    async def start(self) -> Sequence[ToolDefinition]:
        """Return the definitions."""
        return self.definitions

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Tell the model that there is no result."""
        return ToolOutput(f"The tool '{name}' has no result here.", is_error=True)


class Toolbox:
    """The tools of one conversation.

    Args:
        sources: where the tools come from.
        call_seconds: most seconds of one call.
        result_chars: most characters of a result that the model reads.

    Raises:
        RequestFailed: when it is opened: a source cannot be used, two sources have a tool of the
            same name, or there are too many tools.
    """

    def __init__(
        self,
        sources: Iterable[ToolSource],
        *,
        call_seconds: float = CALL_SECONDS,
        result_chars: int = RESULT_CHARS,
    ) -> None:
        self.definitions: tuple[ToolDefinition, ...] = ()
        self._sources = list(sources)
        self._call_seconds = call_seconds
        self._result_chars = result_chars
        self._source_by_name: dict[str, ToolSource] = {}

    async def __aenter__(self) -> Self:
        try:
            definitions: list[ToolDefinition] = []
            for source in self._sources:
                for definition in await source.start():
                    self._add(source, definition)
                    definitions.append(definition)
            if len(definitions) > MAX_TOOLS:
                raise source_failure(
                    f"There are {len(definitions):,} tools; at most {MAX_TOOLS:,} are"
                    " offered to a model."
                )
        except BaseException:
            await self._stop()
            raise
        self.definitions = tuple(definitions)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stop()

    def source_of(self, name: str) -> ToolSource | None:
        """Return the source that carries out calls of a tool, None if there is no such tool."""
        source = self._source_by_name.get(name)
        if source is None:
            return None
        return next(
            (scripted for scripted in self._sources if scripted.answers(name)), source
        )

    @property
    def bounds(self) -> tuple[float, int]:
        """Most seconds of a call, and most characters of its result."""
        return self._call_seconds, self._result_chars

    async def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        """Carry out a call of a model.

        Args:
            call: the call as the model wrote it.
            seconds: most seconds, where these are fewer than those of the toolbox.

        Returns:
            The result. What is wrong with the call, or went wrong in the tool, is a result with
            `is_error`.

        Raises:
            RequestFailed: the tool's source can no longer be used.
        """
        started = time.perf_counter()
        most_seconds = self._call_seconds
        if seconds is not None:
            most_seconds = min(seconds, most_seconds)
        output = await self._output(call, most_seconds)
        return ToolResult(
            result_text(output.text, self._result_chars),
            output.is_error,
            round(time.perf_counter() - started, SECONDS_DIGITS),
        )

    async def _output(self, call: ToolCall, seconds: float) -> ToolOutput:
        source = self.source_of(call.name)
        if source is None:
            return ToolOutput(self._unknown(call.name), is_error=True)
        try:
            arguments = call.parsed()
            async with asyncio.timeout(seconds + source.grace_seconds) as limit:
                return await source.call_within(call.name, arguments, seconds)
        except TimeoutError as error:
            if not limit.expired():
                return ToolOutput(error_text(error), is_error=True)
            return ToolOutput(
                f"The call of '{call.name}' was stopped: it took longer than"
                f" {seconds:g} seconds.",
                is_error=True,
            )
        except ValueError as error:
            return ToolOutput(str(error), is_error=True)
        except EvalwrightError:
            raise
        except Exception as error:
            return ToolOutput(error_text(error), is_error=True)

    def _unknown(self, name: str) -> str:
        near = closest(name, self._source_by_name)
        if near:
            return f"There is no tool '{name[:80]}'. Did you mean '{near[0]}'?"
        names = list(self._source_by_name)[:MAX_NAMES_SHOWN]
        known = (
            f"The tools are: {', '.join(names)}." if names else "There are no tools."
        )
        return f"There is no tool '{name[:80]}'. {known}"

    def _add(self, source: ToolSource, definition: ToolDefinition) -> None:
        other = self._source_by_name.get(definition.name)
        if other is not None:
            where = (
                f"both from {source.label}"
                if other.label == source.label
                else f"one from {other.label} and one from {source.label}"
            )
            raise source_failure(
                f"Two tools have the name '{definition.name}', {where}: a model could not"
                " tell them apart. Rename one, or leave one out."
            )
        self._source_by_name[definition.name] = source

    async def _stop(self) -> None:
        stopping = (source.stop() for source in self._sources)
        await asyncio.gather(*stopping, return_exceptions=True)


def source_failure(message: str) -> RequestFailed:
    """Make the error of a source that can no longer be used, by no fault of the model.

    Args:
        message: what happened and what to do, in sentences.
    """
    return RequestFailed(Failure("tools failed", "task", message))
