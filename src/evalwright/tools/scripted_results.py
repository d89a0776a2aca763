"""Results of tools that a data set lists: nothing runs, and every model meets the same world.

A result names the tool, and the arguments that it is for; without arguments it answers any call of
the tool. The k-th call that an entry fits gets the k-th such entry, and the last one is repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.tools import ToolDefinition
from evalwright.tools.toolbox import Effects, ToolOutput, ToolSource

_KEYS = ("arguments", "is_error", "name", "result")


@dataclass(frozen=True, slots=True)
class ScriptedResult:
    """The result of a tool's calls.

    Args:
        name: the tool.
        text: what the model reads.
        arguments: canonical JSON of the arguments that it is for; None for any.
        is_error: whether the call failed.
    """

    name: str
    text: str
    arguments: str | None = None
    is_error: bool = False


def read_results(listed: Any) -> tuple[ScriptedResult, ...]:
    """Read a row's list of results.

    Args:
        listed: mappings with `name` and `result`, and where wanted `arguments` and `is_error`; the
            same as JSON; or nothing. A result that is no text is shown as JSON.

    Raises:
        ConfigurationError: it is no such list; the message says which entry is wrong.
    """
    if isinstance(listed, str) and listed.strip():
        try:
            listed = json.loads(listed)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"The results of tools are a list, and this text is not JSON: {error}"
            ) from None
    if listed is None or listed == "":
        return ()
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise ConfigurationError(
            "The results of tools are a list of {name: ..., arguments: ..., result: ...}."
        )
    return tuple(_read_result(entry, index) for index, entry in enumerate(listed))


def _read_result(entry: Any, index: int) -> ScriptedResult:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise ConfigurationError(
            f"Result {index} of the tools must be a mapping with the `name` of a tool and"
            " its `result`."
        )
    check_known(f"key of result {index} of the tools", entry, _KEYS)
    if "result" not in entry:
        raise ConfigurationError(f"Result {index} of the tools has no `result`.")
    arguments = entry.get("arguments")
    is_error = entry.get("is_error", False)
    if not isinstance(is_error, bool):
        raise ConfigurationError(
            f"`is_error` of result {index} of the tools is true or false."
        )
    if not (arguments is None or isinstance(arguments, Mapping)):
        raise ConfigurationError(
            f"The `arguments` of result {index} of the tools must be a mapping."
        )
    shown = entry["result"]
    return ScriptedResult(
        entry["name"],
        shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False),
        None if arguments is None else canonical_arguments(arguments),
        is_error,
    )


def canonical_arguments(arguments: Any) -> str:
    """Return JSON that is equal for equal arguments: 2 and 2.0 are, and 1 and true are not."""
    return json.dumps(_canonical(arguments), sort_keys=True, ensure_ascii=False)


def _canonical(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {str(key): _canonical(member) for key, member in part.items()}
    if isinstance(part, list | tuple):
        return [_canonical(member) for member in part]
    if isinstance(part, float) and part.is_integer():
        return int(part)
    return part


class ScriptedResults(ToolSource):
    """Answers the calls of one conversation from a list of results."""

    label = "the row's results"
    effects: Effects = "none"

    def __init__(self, results: Sequence[ScriptedResult]) -> None:
        self._results = list(results)
        self._names = {entry.name for entry in results}
        self._used: set[int] = set()

    async def start(self) -> Sequence[ToolDefinition]:
        """Return no definitions: the tools are defined elsewhere."""
        return ()

    def answers(self, name: str) -> bool:
        """Return whether there is any result of the tool."""
        return name in self._names

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Return the next result that fits; one for these arguments before one for any."""
        wanted = canonical_arguments(arguments)
        of_tool = [
            index for index, entry in enumerate(self._results) if entry.name == name
        ]
        exact = [index for index in of_tool if self._results[index].arguments == wanted]
        general = [index for index in of_tool if self._results[index].arguments is None]
        fitting = exact or general
        if not fitting:
            return ToolOutput(
                f"The tool '{name}' has no result for these arguments.", is_error=True
            )
        index = next(
            (index for index in fitting if index not in self._used), fitting[-1]
        )
        self._used.add(index)
        entry = self._results[index]
        return ToolOutput(entry.text, entry.is_error)
