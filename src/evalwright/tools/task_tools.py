"""The tools that a task offers to its samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Sample
from evalwright.core.tools import ToolDefinition
from evalwright.tools.function_tool import FunctionTool, FunctionTools
from evalwright.tools.mcp_settings import McpServer
from evalwright.tools.sandbox_programs import SandboxPrograms
from evalwright.tools.sandbox_tools import (
    SandboxTools,
    StartedSandbox,
    definitions_of,
)
from evalwright.tools.scripted_results import ScriptedResult, ScriptedResults
from evalwright.tools.toolbox import DefinedTools, Toolbox, ToolSource

NOT_LISTED_YET = ToolDefinition("tools_of_a_server")
"""Stands for the tools of a server that was not started, where a request is only checked."""


@dataclass(frozen=True, slots=True)
class SandboxProgram:
    """Tools that one program of the sandbox carries out.

    Args:
        command: the program with its arguments.
        definitions: the tools of every sample.
        row_definitions: returns those that a row lists; None if rows list none.
    """

    command: tuple[str, ...]
    definitions: tuple[ToolDefinition, ...] = ()
    row_definitions: Callable[[Sample], Sequence[ToolDefinition]] | None = None

    def of(self, sample: Sample) -> tuple[ToolDefinition, ...]:
        """Return the tools of a sample.

        Raises:
            DatasetError: the row's cannot be read.
        """
        if self.row_definitions is None:
            return self.definitions
        return (*self.definitions, *self.row_definitions(sample))


class TaskTools:
    """What a task's `tools` are: definitions, functions, servers, and those that rows list.

    Args:
        definitions: definitions alone, which nothing runs.
        functions: Python functions.
        servers: MCP servers.
        row_definitions: returns the definitions that a row lists; None if rows list none.
        programs: tools that programs of the sample's sandbox carry out.
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
        programs: Sequence[SandboxProgram] = (),
    ) -> None:
        self._definitions = tuple(definitions)
        self._functions = tuple(functions)
        self._row_definitions = row_definitions
        self.servers = tuple(servers)
        self.sandbox_tools = tuple(sandbox_tools)
        self.programs = tuple(programs)
        of_programs = (tool for use in self.programs for tool in use.definitions)
        functions_as_tools = (function_tool.definition for function_tool in functions)
        built_in = definitions_of(self.sandbox_tools)
        self._of_task = (
            *built_in,
            *of_programs,
            *self._definitions,
            *functions_as_tools,
        )
        _check_names(self._of_task)

    @property
    def are_listed(self) -> bool:
        """Whether every sample is offered the same tools, which the task's definition lists."""
        of_rows = any(use.row_definitions is not None for use in self.programs)
        return self._row_definitions is None and not of_rows and not self.servers

    def known(self, sample: Sample) -> tuple[ToolDefinition, ...]:
        """Return the definitions of a sample's tools, without those of servers.

        Raises:
            ConfigurationError: two of them share a name.
            DatasetError: the row's cannot be read.
        """
        definitions = list(self._of_task)
        if self._row_definitions is not None:
            definitions += self._row_definitions(sample)
        for use in self.programs:
            if use.row_definitions is not None:
                definitions += use.row_definitions(sample)
        if len(definitions) == len(self._of_task):
            return self._of_task
        _check_names(definitions)
        return tuple(definitions)

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
        for use in self.programs:
            assert sandbox is not None, "a task with such tools has a sandbox"
            sources.append(SandboxPrograms(use.command, use.of(sample), sandbox))
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
