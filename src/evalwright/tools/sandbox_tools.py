"""The built-in tools of agents: `bash`, `python`, `files` and `submit`.

They are named in a task's `tools`. All but `submit` act in the sandbox of the sample. What a tool
returns is the same whenever the same happens in the sandbox: there are no times in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evalwright.core.errors import check_known
from evalwright.core.secrets import mask
from evalwright.core.tools import ToolDefinition
from evalwright.sandboxes.protocol import Executed, Sandbox, SandboxPathError
from evalwright.tools.toolbox import (
    RESULT_CHARS,
    Effects,
    ToolOutput,
    ToolSource,
)

SUBMIT = "submit"
"""The name of the tool, and of its call, that ends a trajectory with an answer."""
MAX_FILE_BYTES = 8 << 20
"""Most bytes of a file that is read or edited as text."""
MAX_ARGUMENT_CHARS = 30_000
"""Most characters of a script that is an argument of bash; Linux takes 131,072 bytes."""
MAX_NOTE_CHARS = 80
"""Characters that are kept free for the line that says what was left out."""
MAX_LISTED = 1_000
"""Most names that `list_files` shows."""
GRACE_SECONDS = 30.0
"""How much later than a command itself the wait for its sandbox ends."""
_VERSION = 1
"""Raised when a tool returns something else for the same call."""

StartedSandbox = Callable[[], Sandbox]
"""Returns the sandbox of the sample, which has been started by then."""


def _tool(name: str, description: str, **properties: str) -> ToolDefinition:
    schemas = {
        argument: {
            "type": "integer" if argument.endswith("_line") else "string",
            "description": text,
        }
        for argument, text in properties.items()
    }
    required = [argument for argument in schemas if not argument.endswith("_line")]
    return ToolDefinition.of(
        name,
        description,
        {"type": "object", "properties": schemas, "required": required},
    )


_PATH = "An absolute path, or one relative to the working folder."

BASH = _tool(
    "bash",
    "Run a bash command in the sandbox, and see its output and exit code. Each call starts in the"
    " working folder, in a shell of its own; files stay, and so do processes in the background.",
    command="The command, or a script of several lines.",
)
PYTHON = _tool(
    "python",
    "Run a Python program in the sandbox, and see what it prints. Each call is a fresh `python3`:"
    " variables do not stay, files do.",
    code="The program.",
)
READ_FILE = _tool(
    "read_file",
    "Read a text file, or some of its lines.",
    path=_PATH,
    first_line="The first line to read, from 1 on; by default the first of the file.",
    last_line="The last line to read; by default the last of the file.",
)
WRITE_FILE = _tool(
    "write_file",
    "Write a text file, in place of what is there, with the folders that it needs.",
    path=_PATH,
    content="All of its text.",
)
EDIT_FILE = _tool(
    "edit_file",
    "Replace one place of a text file.",
    path=_PATH,
    old="The text to replace. It is in the file exactly once: take in enough lines around it.",
    new="The text to put there.",
)
LIST_FILES = _tool(
    "list_files",
    "List the names in a folder; those of folders end with a slash.",
    path=_PATH,
)
SUBMIT_TOOL = _tool(
    SUBMIT,
    "End the task, once it is done.",
    answer="The answer; where the task asks for none, one sentence on what you did.",
)

BUILT_IN: dict[str, tuple[ToolDefinition, ...]] = {
    "bash": (BASH,),
    "files": (READ_FILE, WRITE_FILE, EDIT_FILE, LIST_FILES),
    "python": (PYTHON,),
    SUBMIT: (SUBMIT_TOOL,),
}
"""By the name in a task file, what a model is offered."""


def definitions_of(names: Iterable[str]) -> tuple[ToolDefinition, ...]:
    """Return the definitions of built-in tools.

    Raises:
        UnknownName: there is no such tool.
    """
    names = tuple(names)
    check_known("built-in tool", names, BUILT_IN)
    return tuple(definition for name in names for definition in BUILT_IN[name])


class SandboxTools(ToolSource):
    """The built-in tools of one conversation.

    Args:
        names: their names in task files.
        sandbox: returns the sample's sandbox; None if it has none, for `submit` alone.
        result_chars: most characters of a command's output; more is cut from its middle.
    """

    label = "the built-in tools"
    effects: Effects = "sandbox"
    grace_seconds = GRACE_SECONDS

    def __init__(
        self,
        names: Sequence[str],
        sandbox: StartedSandbox | None = None,
        result_chars: int = RESULT_CHARS,
    ) -> None:
        self._definitions = definitions_of(names)
        self._result_chars = result_chars
        self._sandbox = sandbox

    def effects_of(self, name: str) -> Effects:
        """Return "sandbox"; "none" for `submit`."""
        return "none" if name == SUBMIT else "sandbox"

    def fingerprint(self, name: str) -> str:
        """Return the version of these tools."""
        return f"built-in {_VERSION}"

    async def start(self) -> Sequence[ToolDefinition]:
        """Return the definitions."""
        return self._definitions

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Carry out a call, within the time of the sandbox's own limits."""
        return await self.call_within(name, arguments, float("inf"))

    async def call_within(
        self, name: str, arguments: dict[str, Any], seconds: float
    ) -> ToolOutput:
        """Carry out a call; a command that takes longer is ended in the sandbox."""
        texts = _read_arguments(self._definition(name), arguments)
        if name == SUBMIT:
            return ToolOutput("Submitted.")
        assert self._sandbox is not None, "a task with these tools has a sandbox"
        sandbox = self._sandbox()
        try:
            output: ToolOutput = await _ACTIONS[name](sandbox, seconds, **texts)
        except SandboxPathError as error:
            return ToolOutput(str(error), is_error=True)
        if name not in _COMMANDS:
            return output
        return ToolOutput(
            _without_middle(output.text, self._result_chars), output.is_error
        )

    def _definition(self, name: str) -> ToolDefinition:
        return next(tool for tool in self._definitions if tool.name == name)


def _read_arguments(
    definition: ToolDefinition, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Check the arguments of a call.

    Raises:
        ValueError: they do not fit; the message is for the model.
    """
    schema = definition.schema
    properties: dict[str, Any] = schema["properties"]
    required: list[str] = schema["required"]
    missing = [argument for argument in required if argument not in arguments]
    if missing:
        raise ValueError(f"The argument '{missing[0]}' is missing.")
    for argument, content in arguments.items():
        if argument not in properties:
            known = ", ".join(properties)
            raise ValueError(
                f"There is no argument '{argument[:80]}'. The arguments are: {known}."
            )
        is_number = properties[argument]["type"] == "integer"
        is_right = type(content) is int if is_number else isinstance(content, str)
        if not is_right and not (is_number and content is None):
            noun = "a whole number" if is_number else "a text"
            raise ValueError(
                f"The argument '{argument}' is {noun}, not {json.dumps(content)[:80]}."
            )
    return arguments


async def _bash(sandbox: Sandbox, seconds: float, *, command: str) -> ToolOutput:
    script = _plain(command, "command")
    is_long = len(script) > MAX_ARGUMENT_CHARS
    executed = await sandbox.exec(
        ["bash"] if is_long else ["bash", "-c", script],
        stdin=script.encode() if is_long else b"",
        seconds=_bounded(sandbox, seconds),
    )
    return output_of(executed)


async def _python(sandbox: Sandbox, seconds: float, *, code: str) -> ToolOutput:
    executed = await sandbox.exec(
        ["python3", "-"],
        stdin=code.encode("utf-8", "replace"),
        seconds=_bounded(sandbox, seconds),
    )
    return output_of(executed)


async def _read_file(
    sandbox: Sandbox,
    seconds: float,
    *,
    path: str,
    first_line: int | None = None,
    last_line: int | None = None,
) -> ToolOutput:
    text = await _text_of(sandbox, path)
    if first_line is None and last_line is None:
        return ToolOutput(text)
    lines = text.splitlines(keepends=True)
    first = 1 if first_line is None else max(first_line, 1)
    last = len(lines) if last_line is None else last_line
    if first > len(lines) or last < first:
        return ToolOutput(
            f"There are no such lines: the file has {len(lines):,}.", is_error=True
        )
    return ToolOutput("".join(lines[first - 1 : last]))


async def _write_file(
    sandbox: Sandbox, seconds: float, *, path: str, content: str
) -> ToolOutput:
    encoded = content.encode("utf-8", "replace")
    await sandbox.write(_plain(path, "path"), encoded)
    return ToolOutput(f"Written: {len(encoded):,} bytes.")


async def _edit_file(
    sandbox: Sandbox, seconds: float, *, path: str, old: str, new: str
) -> ToolOutput:
    if not old:
        return ToolOutput("The text to replace is empty.", is_error=True)
    content = (await _text_of(sandbox, path, is_edited=True)).encode("utf-8")
    searched = old.encode("utf-8", "replace")
    count = content.count(searched)
    if count != 1:
        where = "is not in the file" if not count else f"is there {count:,} times"
        return ToolOutput(
            f"Nothing was replaced: the text to replace {where}.", is_error=True
        )
    edited = content.replace(searched, new.encode("utf-8", "replace"))
    is_executable = await _is_executable(sandbox, path)
    await sandbox.write(path, edited, is_executable=is_executable)
    return ToolOutput("Replaced.")


async def _list_files(sandbox: Sandbox, seconds: float, *, path: str) -> ToolOutput:
    executed = await sandbox.exec(
        ["ls", "-Ap1", "--", _plain(path, "path") or "."],
        seconds=_bounded(sandbox, seconds),
        environment={"LC_ALL": "C"},
    )
    if executed.exit_code or executed.ended_by:
        return output_of(executed)
    names = executed.stdout.decode("utf-8", "replace").splitlines()
    if not names:
        return ToolOutput("The folder is empty.")
    shown = "\n".join(names[:MAX_LISTED])
    if len(names) > MAX_LISTED:
        shown = f"{shown}\n[{len(names) - MAX_LISTED:,} more names are not shown.]"
    return ToolOutput(shown)


_ACTIONS: dict[str, Callable[..., Any]] = {
    BASH.name: _bash,
    PYTHON.name: _python,
    READ_FILE.name: _read_file,
    WRITE_FILE.name: _write_file,
    EDIT_FILE.name: _edit_file,
    LIST_FILES.name: _list_files,
}
_COMMANDS = frozenset({BASH.name, PYTHON.name})
"""Tools whose results end with what matters most, so that a long one is cut in its middle."""


async def _is_executable(sandbox: Sandbox, path: str) -> bool:
    executed = await sandbox.exec(["test", "-x", path], seconds=GRACE_SECONDS)
    return executed.exit_code == 0


async def _text_of(sandbox: Sandbox, path: str, *, is_edited: bool = False) -> str:
    content = await sandbox.read(_plain(path, "path"), MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise SandboxPathError(
            f"The file is larger than {MAX_FILE_BYTES >> 20} MiB: use `bash` for parts of it."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        if is_edited:
            raise SandboxPathError("The file is not UTF-8 text.") from None
        return content.decode("utf-8", "replace")


def _plain(text: str, argument: str) -> str:
    """Return an argument that is given to a program.

    Raises:
        ValueError: no program can get it.
    """
    if "\0" in text:
        raise ValueError(f"The argument '{argument}' has a character 0.")
    return text.encode("utf-8", "replace").decode("utf-8")


def _bounded(sandbox: Sandbox, seconds: float) -> float:
    return min(seconds, sandbox.settings.limits.seconds)


def output_of(executed: Executed) -> ToolOutput:
    """Return what a model reads of a command: its output, its errors, and how it ended."""
    parts: list[str] = []
    stdout = executed.stdout.decode("utf-8", "replace")
    stderr = executed.stderr.decode("utf-8", "replace")
    if stdout:
        parts.append(stdout.removesuffix("\n"))
    if stderr:
        parts.append(f"[errors]\n{stderr.removesuffix(chr(10))}")
    if executed.dropped_bytes:
        parts.append(f"[{executed.dropped_bytes:,} bytes of output were left out.]")
    if executed.ended_by:
        parts.append(_WORDS_OF_LIMITS[executed.ended_by])
    elif executed.exit_code:
        parts.append(f"[exit code {executed.exit_code}]")
    text = "\n".join(parts) or "[no output]"
    return ToolOutput(text, is_error=bool(executed.exit_code or executed.ended_by))


def _without_middle(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    text = mask(text)  # the cut may go through a secret
    n_kept = max(max_chars - MAX_NOTE_CHARS, 0)
    n_tail = n_kept // 2
    tail = text[len(text) - n_tail :]
    n_cut = len(text) - n_kept
    note = f"\n[{n_cut:,} characters in the middle were left out.]\n"
    return f"{text[: n_kept - n_tail]}{note}{tail}"


_WORDS_OF_LIMITS = {
    "seconds": "[The command was stopped: its time was over.]",
    "memory": "[The command was stopped: it used more memory than it may.]",
    "output": "[The command was stopped: it wrote more than it may.]",
    "processes": "[The command was stopped: it started more processes than it may.]",
    "disk": "[The command was stopped: the disk is full.]",
}
