"""`tools` of a task file: definitions, files of definitions, Python files, and MCP servers.

    tools: "{{ tools }}"                           a column with a list of definitions
    tools:
      - {name: add, description: ..., parameters: {type: object, properties: ...}}
      - tools.json                                 a file with a list of definitions
      - weather.py                                 functions with @tool; `weather.py:NAME` for one
      - {mcp: [uvx, mcp-server-time]}              an MCP server: its command, or its address
      - {command: [python3, /desk/desk.py], tools: "{{ tools }}"}   a program in the sandbox
      - bash                                       a built-in tool that acts in the sandbox

Definitions are data. Python files and servers do things on this machine, so a task file that is not
the user's own needs permission for them (`Document.require_trust`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import (
    ConfigurationError,
    UnknownName,
    UsageError,
    check_known,
    closest,
)
from evalwright.core.private import check_ordinary
from evalwright.core.samples import Sample
from evalwright.core.tools import ToolDefinition
from evalwright.tasks import templates
from evalwright.tasks.prompts import Renderer, per_sample
from evalwright.tasks.samples import Placed, RowError
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of, shown_path
from evalwright.tools.function_tool import FunctionTool
from evalwright.tools.mcp_settings import McpServer, read_server
from evalwright.tools.python_files import load_tools
from evalwright.tools.task_tools import SandboxProgram, TaskTools

KEY = "tools"
SANDBOX_TOOLS = ("bash", "python", "files", "submit")
"""Built-in tools that act in a sample's sandbox; `files` is four tools."""
_PROGRAM_KEYS = ("command", "tools")
MAX_FILE_BYTES = 16 << 20
"""Most bytes of a file of definitions."""


@dataclass(slots=True)
class OfferedTools:
    """The tools of a task, and what its record says of them.

    Attributes:
        tools: what the strategy offers.
        recorded: plain JSON for the task's definition.
    """

    tools: TaskTools
    recorded: list[Any] | str


@dataclass(slots=True)
class _Parts:
    definitions: list[ToolDefinition] = field(default_factory=list)
    functions: list[FunctionTool[..., Any]] = field(default_factory=list)
    servers: list[McpServer] = field(default_factory=list)
    of_rows: list[Callable[[Sample], Sequence[ToolDefinition]]] = field(
        default_factory=list
    )
    built_in: list[str] = field(default_factory=list)
    programs: list[SandboxProgram] = field(default_factory=list)
    recorded: list[Any] = field(default_factory=list)


def read_tools(
    setting: Any, document: Document, renderer: Renderer
) -> OfferedTools | None:
    """Read a task's `tools`.

    Args:
        setting: the value; None if the task has none.
        document: the task's definition.
        renderer: what templates see of a row.

    Raises:
        TaskError: it cannot be used, or needs the user's permission; the message has file and line.
        MissingExtra: it names an MCP server, and the package is not installed.
    """
    if setting is None:
        return None
    parts = _Parts()
    is_list = isinstance(setting, list | tuple)
    for index, entry in enumerate(setting if is_list else [setting]):
        at: KeyPath = (KEY, index) if is_list else (KEY,)
        try:
            _read_entry(parts, entry, at, document, renderer)
        except ConfigurationError as error:
            raise document.error(at, str(error)) from None
    if not parts.recorded:
        raise document.error((KEY,), "`tools` is empty: leave it out.")

    def row_definitions(sample: Sample) -> list[ToolDefinition]:
        return [definition for listed in parts.of_rows for definition in listed(sample)]

    try:
        tools = TaskTools(
            parts.definitions,
            parts.functions,
            parts.servers,
            row_definitions if parts.of_rows else None,
            parts.built_in,
            parts.programs,
        )
    except ConfigurationError as error:
        raise document.error((KEY,), str(error)) from None
    return OfferedTools(tools, parts.recorded if is_list else parts.recorded[0])


def _read_entry(
    parts: _Parts, entry: Any, at: KeyPath, document: Document, renderer: Renderer
) -> None:
    """Add one entry of `tools`. Raises UsageError."""
    if isinstance(entry, FunctionTool):
        parts.functions.append(entry)
        parts.recorded.append(entry.definition.as_dict())
    elif isinstance(entry, ToolDefinition):
        parts.definitions.append(entry)
        parts.recorded.append(entry.as_dict())
    elif isinstance(entry, Mapping) and "mcp" in entry:
        parts.servers.append(_read_server(entry, at, document))
        parts.recorded.append(parts.servers[-1].as_dict())
    elif isinstance(entry, Mapping) and "command" in entry:
        _add_program(parts, entry, at, document, renderer)
    elif isinstance(entry, Mapping):
        definition = ToolDefinition.from_dict(entry)
        parts.definitions.append(definition)
        parts.recorded.append(definition.as_dict())
    elif templates.is_template(entry):
        parts.of_rows.append(_definitions_of_rows(entry, at, document, renderer))
        parts.recorded.append(entry)
    elif isinstance(entry, str) and entry in SANDBOX_TOOLS:
        if entry in parts.built_in:
            raise ConfigurationError(f"The built-in tool '{entry}' is named twice.")
        parts.built_in.append(entry)
        parts.recorded.append(entry)
    elif isinstance(entry, str) and entry.endswith(".json"):
        definitions = _read_definitions_file(entry, at, document)
        parts.definitions += definitions
        parts.recorded += [definition.as_dict() for definition in definitions]
    elif isinstance(entry, str) and entry.rpartition(":")[0].endswith(".py"):
        file, _, name = entry.rpartition(":")
        _add_python(parts, file, name, at, document)
    elif isinstance(entry, str) and entry.endswith(".py"):
        _add_python(parts, entry, "", at, document)
    else:
        what = f"'{entry[:80]}'" if isinstance(entry, str) else kind_of(entry)
        near = closest(entry, SANDBOX_TOOLS, 1) if isinstance(entry, str) else []
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ConfigurationError(
            "A tool is a definition ({name: ..., description: ..., parameters: ...}), a"
            ' template over a column ("{{ tools }}"), a file (.json, .py), a server'
            " ({mcp: ...}) or one of the built-in"
            f" {', '.join(SANDBOX_TOOLS)}, not {what}.{hint}"
        )


def _add_program(
    parts: _Parts,
    entry: Mapping[str, Any],
    at: KeyPath,
    document: Document,
    renderer: Renderer,
) -> None:
    """Add tools that a program in the sandbox carries out."""
    try:
        check_known("key of the tools of a program", list(entry), _PROGRAM_KEYS)
    except UnknownName as error:
        raise ConfigurationError(str(error)) from None
    command = entry["command"]
    is_command = isinstance(command, list | tuple) and command
    if not is_command or not all(isinstance(word, str) and word for word in command):
        raise ConfigurationError(
            "`command` is a program in the sandbox with its arguments, a list such as"
            f" [python3, /desk/desk.py], not {command!r:.80}."
        )
    listed = entry.get("tools")
    if not listed:
        raise ConfigurationError(
            "A program in the sandbox needs `tools`: a list of definitions, or a template"
            ' over a column ("{{ tools }}").'
        )
    if templates.is_template(listed):
        at = (*at, KEY)
        of_rows = _definitions_of_rows(listed, at, document, renderer)
        parts.programs.append(SandboxProgram(tuple(command), (), of_rows))
        parts.recorded.append({"command": list(command), "tools": listed})
        return
    definitions = tuple(read_definitions(listed, "The program"))
    parts.programs.append(SandboxProgram(tuple(command), definitions))
    parts.recorded.append(
        {
            "command": list(command),
            "tools": [definition.as_dict() for definition in definitions],
        }
    )


def _read_server(
    entry: Mapping[str, Any], at: KeyPath, document: Document
) -> McpServer:
    server = read_server(entry, document.folder(at))
    document.require_trust(at, server.permission)
    from evalwright.tools.mcp_tools import check_installed

    check_installed()
    return server


def _add_python(
    parts: _Parts, file: str, name: str, at: KeyPath, document: Document
) -> None:
    path = document.folder(at) / file
    document.require_trust(at, f"runs the Python file '{shown_path(path)}'")
    loaded = load_tools(document.allowed(at, path), name)
    parts.functions += loaded.tools
    parts.recorded.append(
        {
            "python": f"{file}:{name}" if name else file,
            "sha256": loaded.digest,
            "tools": [
                function_tool.definition.as_dict() for function_tool in loaded.tools
            ],
        }
    )


def _read_definitions_file(
    file: str, at: KeyPath, document: Document
) -> list[ToolDefinition]:
    path = document.allowed(at, document.folder(at) / file)
    try:
        content = check_ordinary(path, MAX_FILE_BYTES).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The file '{shown_path(path)}' with definitions of tools cannot be read:"
            f" {error.strerror}."
        ) from None
    try:
        listed = from_json(content)
    except ValueError as error:
        raise ConfigurationError(
            f"The file '{shown_path(path)}' is not valid JSON: {error}."
        ) from None
    return read_definitions(listed, f"The file '{shown_path(path)}'")


def read_definitions(listed: Any, where: str) -> list[ToolDefinition]:
    """Read a list of definitions, as a file or a row has them.

    Args:
        listed: a list of definitions, or one; the same as JSON; nothing for none.
        where: what has them; begins the message.

    Raises:
        ConfigurationError: they are none.
    """
    if isinstance(listed, str) and listed.strip():
        try:
            listed = json.loads(listed)
        except (ValueError, RecursionError):
            raise ConfigurationError(
                f"{where} has tools that are neither a list of definitions nor JSON."
            ) from None
    if listed is None or listed == "":
        return []
    if isinstance(listed, Mapping):
        listed = [listed]
    if not isinstance(listed, list | tuple):
        raise ConfigurationError(
            f"{where} has {kind_of(listed)} in place of a list of tools."
        )
    try:
        return [ToolDefinition.from_dict(entry) for entry in listed]
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _definitions_of_rows(
    source: str, at: KeyPath, document: Document, renderer: Renderer
) -> Callable[[Sample], Sequence[ToolDefinition]]:
    render = Placed(templates.native, source, ".".join(map(str, at)), document, at)

    def definitions_of(sample: Sample) -> list[ToolDefinition]:
        def rendered(sample: Sample) -> list[ToolDefinition]:
            try:
                return read_definitions(render(renderer.context(sample)), "the row")
            except UsageError as error:
                raise RowError(str(error).rstrip(".")) from None

        return per_sample(sample, rendered)

    return definitions_of
