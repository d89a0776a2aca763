"""Definitions of tools that a model may call: what a tool is, not what runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from evalwright.core.errors import ConfigurationError

TOOL_CHOICES = ("auto", "none", "required")
"""The values of `Generate.tool_choice` that are not a tool's name.

"auto" leaves the decision to the model, "none" forbids calls, "required" demands at least one.
"""
MAX_NAME_CHARS = 64
MAX_TOOLS = 1024
"""Most tools of one request; the providers' own limits are lower (OpenAI's is 128)."""
MAX_SCHEMA_CHARS = 200_000
"""Most characters of one tool's parameters."""
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_NO_PARAMETERS = '{"properties":{},"type":"object"}'


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model is told of it.

    Args:
        name: 1 to 64 letters, digits, "_" or "-", which every provider takes; none of
            `TOOL_CHOICES`.
        description: what it does and when to use it.
        parameters: JSON schema of its arguments, an object, as canonical text.

    Raises:
        ConfigurationError: the name or the schema cannot be used.
    """

    name: str
    description: str = ""
    parameters: str = _NO_PARAMETERS

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in TOOL_CHOICES:
            raise ConfigurationError(
                f"The name of a tool is 1 to {MAX_NAME_CHARS} letters, digits, '_' or"
                f" '-', and none of {', '.join(TOOL_CHOICES)}; not"
                f" {self.name[:80]!r}."
            )
        if len(self.parameters) > MAX_SCHEMA_CHARS:
            raise ConfigurationError(
                f"The parameters of the tool '{self.name}' have"
                f" {len(self.parameters):,} characters; at most {MAX_SCHEMA_CHARS:,}"
                " are sent to a model."
            )

    @classmethod
    def of(
        cls,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a definition from a schema that is a mapping.

        Args:
            name: as above.
            description: as above.
            parameters: JSON schema of an object; None for a tool without arguments.

        Raises:
            ConfigurationError: the schema is not one of an object, or cannot be JSON.
        """
        if parameters is None:
            return cls(name, description)
        if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
            raise ConfigurationError(
                f"The parameters of the tool '{str(name)[:80]}' are a JSON schema of"
                " type 'object'."
            )
        try:
            schema = json.dumps(
                parameters,
                sort_keys=True,
                separators=(",", ":"),
                ensure_ascii=False,
                allow_nan=False,
            )
        except (TypeError, ValueError, RecursionError):
            raise ConfigurationError(
                f"The parameters of the tool '{str(name)[:80]}' cannot be written as JSON."
            ) from None
        return cls(name, description, schema)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments as a mapping."""
        schema: dict[str, Any] = json.loads(self.parameters)
        return schema

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON: name, description, and parameters as a mapping."""
        description = {"description": self.description} if self.description else {}
        return {"name": self.name, **description, "parameters": self.schema}

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Self:
        """Make a definition from what `as_dict` wrote, or from OpenAI's form of it.

        Raises:
            ConfigurationError: something of it is missing or malformed.
        """
        function = recorded.get("function") if isinstance(recorded, Mapping) else None
        fields = function if isinstance(function, Mapping) else recorded
        if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
            raise ConfigurationError(
                "A tool is a mapping of name, description and parameters."
            )
        description = fields.get("description") or ""
        if not isinstance(description, str):
            raise ConfigurationError(
                f"The description of the tool '{fields['name'][:80]}' is not text."
            )
        return cls.of(fields["name"], description, fields.get("parameters"))


def check_tools(tools: Iterable[ToolDefinition], tool_choice: str | None) -> None:
    """Check the tools of one request, and the choice among them.

    Raises:
        ConfigurationError: two tools share a name, there are too many, or the choice is none of
            them.
    """
    names = [tool.name for tool in tools]
    if len(names) > MAX_TOOLS:
        raise ConfigurationError(
            f"A request offers {len(names):,} tools; at most {MAX_TOOLS:,} are sent."
        )
    repeated_names = (
        {name for name in names if names.count(name) > 1} if names else set()
    )
    if repeated_names:
        raise ConfigurationError(f"Two tools have the name '{min(repeated_names)}'.")
    if tool_choice is None:
        return
    if not names:
        raise ConfigurationError("`tool_choice` needs tools to choose from.")
    if tool_choice not in (*TOOL_CHOICES, *names):
        choices = ", ".join((*TOOL_CHOICES, *names))
        raise ConfigurationError(
            f"`tool_choice` is {tool_choice!r}, which is none of: {choices}."
        )
