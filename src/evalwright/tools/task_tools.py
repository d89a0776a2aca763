"""The tools that a task offers to its samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Sample
from evalwright.core.tools import ToolDefinition
from evalwright.tools.function_tool import FunctionTool, FunctionTools
from evalwright.tools.mcp_settings import McpServer
from evalwright.tools.sandbox_tools import (
    SandboxTools,
    StartedSandbox,
    definitions_of,
)
from evalwright.tools.scripted_results import ScriptedResult, ScriptedResults
from evalwright.tools.toolbox import DefinedTools, Toolbox, ToolSource

NOT_LISTED_YET = ToolDefinition("tools_of_a_server")
"""Stands for the tools of a server that was not started, where a request is only checked."""


class TaskTools:
    """What a task's `tools` are: definitions, functions, servers, and those that rows list.

    Args:
        definitions: definitions alone, which nothing runs.
        functions: Python functions.
        servers: MCP servers.
        row_definitions: returns the definitions that a row lists; None if rows list none.
        sandbox_tools: names of built-in tools (`sandbox_tools.BUILT_IN`), which act in the sample's
            sandbox or end its trajectory.

    Raises:
        ConfigurationError: two tools share a name.
        UnknownName: there is no such built-in tool.
    """

    def __init__(
        self,
        definitions: Sequence[ToolDefinition] = (),
        functions: Sequence[FunctionTool[..., Any]] = (),
        servers: Sequence[McpServer] = (),
        row_definitions: Callable[[Sample], Sequence[ToolDefinition]] | None = None,
        sandbox_tools: Sequence[str] = (),
    ) -> None:
        self._definitions = tuple(definitions)
        self._functions = tuple(functions)
        self._row_definitions = row_definitions
        self.servers = tuple(servers)
        self.sandbox_tools = tuple(sandbox_tools)
        functions_as_tools = (function_tool.definition for function_tool in functions)
        built_in = definitions_of(self.sandbox_tools)
        self._of_task = (*built_in, *self._definitions, *functions_as_tools)
        _check_names(self._of_task)

    @property
    def are_listed(self) -> bool:
        """Whether every sample is offered the same tools, which the task's definition lists."""
        return self._row_definitions is None and not self.servers

    def known(self, sample: Sample) -> tuple[ToolDefinition, ...]:
        """Return the definitions of a sample's tools, without those of servers.

        Raises:
            ConfigurationError: two of them share a name.
            DatasetError: the row's cannot be read.
        """
        if self._row_definitions is None:
            return self._of_task
        definitions = (*self._of_task, *self._row_definitions(sample))
        _check_names(definitions)
        return definitions

    def checked(self, sample: Sample) -> tuple[ToolDefinition, ...]:
        """Return what stands for a sample's tools in a request that is only checked."""
        known = self.known(sample)
        return (*known, NOT_LISTED_YET) if self.servers else known

    def recorded(
        self, definitions: tuple[ToolDefinition, ...]
    ) -> tuple[ToolDefinition, ...]:
        """Return the definitions that a sample's record keeps: none that the task lists."""
        return () if self.are_listed else definitions

    def toolbox(
        self,
        sample: Sample,
        results: Sequence[ScriptedResult] | None = None,
        *,
        call_seconds: float,
        result_chars: int,
        sandbox: StartedSandbox | None = None,
    ) -> Toolbox:
        """Make the toolbox of a sample, which is to be opened.

        Args:
            sample: the sample.
            results: scripted results; None if the task has none. Calls of a tool that has any are
                answered by them alone.
            call_seconds: most seconds of one call.
            result_chars: most characters of a result.
            sandbox: returns the sample's sandbox; None if the task has none.
        """
        sources: list[ToolSource] = []
        if results is not None:
            sources.append(ScriptedResults(results))
        if self.sandbox_tools:
            sources.append(SandboxTools(self.sandbox_tools, sandbox, result_chars))
        row_definitions = (
            () if self._row_definitions is None else self._row_definitions(sample)
        )
        if self._definitions or row_definitions:
            sources.append(DefinedTools((*self._definitions, *row_definitions)))
        if self._functions:
            sources.append(FunctionTools(self._functions))
        sources += [_server_tools(server, call_seconds) for server in self.servers]
        return Toolbox(sources, call_seconds=call_seconds, result_chars=result_chars)


def _server_tools(server: McpServer, call_seconds: float) -> ToolSource:
    from evalwright.tools.mcp_tools import McpTools
    from evalwright.tools.shared_sources import SharedTools

    if server.session == "sample":
        return McpTools(server, call_seconds)
    key = (server.label, repr(server), call_seconds)
    return SharedTools(key, lambda: McpTools(server, call_seconds), server.label)


def _check_names(definitions: Sequence[ToolDefinition]) -> None:
    names: set[str] = set()
    for definition in definitions:
        if definition.name in names:
            raise ConfigurationError(
                f"Two tools have the name '{definition.name}': a model could not tell them"
                " apart. Rename one, or leave one out."
            )
        names.add(definition.name)
