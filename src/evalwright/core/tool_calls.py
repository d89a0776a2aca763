"""The calls of tools in a model's reply.

A call's arguments stay the text that the model wrote: what is malformed in them is the model's own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

MAX_ARGUMENT_CHARS = 1_000_000
"""Most characters of one call's arguments that are read; more is an error of the model's."""
MAX_ARGUMENT_DEPTH = 64
"""Most levels of lists and mappings in a call's arguments."""


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
        if len(self.arguments) > MAX_ARGUMENT_CHARS:
            raise ValueError(
                f"The arguments have {len(self.arguments):,} characters; at most"
                f" {MAX_ARGUMENT_CHARS:,} are read."
            )
        if not self.arguments.strip():
            return {}
        try:
            arguments = json.loads(
                self.arguments,
                parse_constant=_refuse_constant,
                parse_float=_parse_finite,
            )
        except RecursionError:
            raise ValueError("The arguments are nested too deeply.") from None
        except ValueError as error:
            raise ValueError(f"The arguments are not valid JSON: {error}.") from None
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            raise ValueError(f"The arguments are not a JSON object but a {kind}.")
        if _is_deeper(self.arguments, arguments, MAX_ARGUMENT_DEPTH):
            raise ValueError("The arguments are nested too deeply.")
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


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is larger than any number")
    return number


def _is_deeper(text: str, content: Any, levels: int) -> bool:
    """Tell whether the content of a JSON text is nested deeper than so many levels."""
    if text.count("[") + text.count("{") <= levels:
        return False
    layer = [content]
    for _ in range(levels):
        layer = [
            member
            for part in layer
            for member in (part.values() if isinstance(part, dict) else part)
            if isinstance(member, dict | list)
        ]
        if not layer:
            return False
    return True
