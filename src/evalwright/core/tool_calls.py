"""The calls of tools in a model's reply.

A call's arguments stay the text that the model wrote: what is malformed in them is the model's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool in a model's reply.

    Args:
        name: the tool's name as the model wrote it.
        arguments: the text that should be a JSON object, as the model wrote it. Where a provider
            sends an object, its JSON.
        id: the provider's name for the call, which the result repeats; "" where it has none.
    """

    name: str
    arguments: str = "{}"
    id: str = ""

    def parsed(self) -> dict[str, Any]:
        """Return the arguments as a mapping; no text at all is no arguments.

        Raises:
            ValueError: they are not a JSON object; the message says why, for the model to read.
        """
        if not self.arguments.strip():
            return {}
        try:
            arguments = json.loads(self.arguments, parse_constant=_refuse_constant)
        except RecursionError:
            raise ValueError("The arguments are nested too deeply.") from None
        except ValueError as error:
            raise ValueError(f"The arguments are not valid JSON: {error}.") from None
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            raise ValueError(f"The arguments are not a JSON object but a {kind}.")
        return arguments

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, without an empty id."""
        call = {"name": self.name, "arguments": self.arguments}
        return {**call, "id": self.id} if self.id else call

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Self:
        """Rebuild the call from what `as_dict` wrote."""
        return cls(recorded["name"], recorded["arguments"], recorded.get("id", ""))


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
