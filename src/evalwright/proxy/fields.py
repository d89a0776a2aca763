"""Reads the fields of a request's body: each is carried, ignored by name, or refused by name.

Nothing that could change an answer is dropped silently. A field that is null counts as left out,
as it does at the providers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from evalwright.core.errors import EvalwrightError
from evalwright.core.images import Image
from evalwright.core.requests import Part
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition, check_tools
from evalwright.proxy.faults import Fault, invalid

MAX_DRAWS = 128
"""Most answers of one request (`n`)."""
MAX_STOPS = 64
MAX_TURNS = 100_000
MAX_TOKENS = 1 << 31

_Missing = object()


class Fields:
    """The fields of a mapping that are not read yet.

    Args:
        mapping: the mapping; anything else is a fault.
        where: what it is, for messages: "" for the body itself, else such as "messages[3]".
    """

    def __init__(self, mapping: Any, where: str = "") -> None:
        # The check of dict alone is the quick one.
        if not isinstance(mapping, dict) and not isinstance(mapping, Mapping):
            raise invalid(f"{where or 'The body'} must be a JSON object.", where)
        self._left = {
            name: content for name, content in mapping.items() if content is not None
        }
        self._where = where

    def are_within(self, names: AbstractSet[str]) -> bool:
        """Return whether no other fields than these are left to read."""
        return self._left.keys() <= names

    def path(self, name: str) -> str:
        """Return a field's name as messages show it."""
        return f"{self._where}.{name}" if self._where else name

    def take(self, name: str, default: Any = None) -> Any:
        """Return a field of any type."""
        return self._left.pop(name, default)

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return a field that is text."""
        content = self._left.pop(name, default)
        if content is not None and not isinstance(content, str):
            raise self._wrong(name, "text")
        return content

    def required_text(self, name: str) -> str:
        """Return a field that must be there, and be text."""
        content = self.text(name)
        if content is None:
            raise invalid(f"The field '{self.path(name)}' is missing.", self.path(name))
        return content

    def flag(self, name: str) -> bool | None:
        """Return a field that is true or false."""
        content = self._left.pop(name, None)
        if content is not None and not isinstance(content, bool):
            raise self._wrong(name, "true or false")
        return content

    def number(self, name: str, least: float, most: float) -> float | None:
        """Return a field that is a finite number within these bounds."""
        content = self._left.pop(name, None)
        if content is None:
            return None
        is_number = isinstance(content, int | float) and not isinstance(content, bool)
        if not is_number or not math.isfinite(content) or not least <= content <= most:
            raise self._wrong(name, f"a number from {least:g} to {most:g}")
        return float(content)

    def whole_number(self, name: str, least: int, most: int) -> int | None:
        """Return a field that is a whole number within these bounds."""
        content = self._left.pop(name, None)
        if content is None:
            return None
        is_whole = isinstance(content, int) and not isinstance(content, bool)
        if isinstance(content, float) and content.is_integer():
            content, is_whole = int(content), True
        if not is_whole or not least <= content <= most:
            raise self._wrong(name, f"a whole number from {least:,} to {most:,}")
        return int(content)

    def rows(self, name: str, most: int = MAX_TURNS) -> Sequence[Any] | None:
        """Return a field that is a list."""
        content = self._left.pop(name, None)
        if content is not None and not isinstance(content, list):
            raise self._wrong(name, "a list")
        if content is not None and len(content) > most:
            raise self._wrong(name, f"a list of at most {most:,}")
        return content

    def fields(self, name: str) -> Fields | None:
        """Return a field that is an object, to read its own fields."""
        content = self._left.pop(name, None)
        return None if content is None else Fields(content, self.path(name))

    def extras(self, names: Collection[str]) -> dict[str, Any]:
        """Take the fields that only some libraries have, under their own names."""
        return {name: self._left.pop(name) for name in names if name in self._left}

    def finish(
        self,
        ignored: Collection[str] = (),
        neutral: Mapping[str, Collection[Any]] | None = None,
        hints: Mapping[str, str] | None = None,
    ) -> None:
        """Refuse every field that was not read.

        Args:
            ignored: fields that change no answer.
            neutral: for some fields, the contents that change no answer.
            hints: for some fields, what to do instead.
        """
        for name, content in self._left.items():
            if name in ignored or content in (neutral or {}).get(name, ()):
                continue
            hint = (hints or {}).get(name, "Leave it out.")
            raise invalid(
                f"The field '{self.path(name)[:200]}' cannot be carried to the model, and"
                f" could change the answer. {hint}",
                self.path(name)[:200],
            )

    def _wrong(self, name: str, kind: str) -> Fault:
        return invalid(
            f"The field '{self.path(name)}' must be {kind}.", self.path(name)
        )


def stop_strings(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the stop strings of a field that is text or a list of texts."""
    stops = fields.take(name)
    if stops is None:
        return ()
    listed = [stops] if isinstance(stops, str) else stops
    is_right = isinstance(listed, list) and all(
        isinstance(stop, str) for stop in listed
    )
    if not is_right or len(listed) > MAX_STOPS:
        raise invalid(
            f"The field '{fields.path(name)}' must be text, or a list of at most"
            f" {MAX_STOPS} texts.",
            fields.path(name),
        )
    return tuple(stop for stop in listed if stop)


def read_image(url: Any, where: str) -> Image:
    """Return the image in a data: URL. Nothing is ever fetched.

    Raises:
        Fault: it is another URL, or not an image.
    """
    if not isinstance(url, str):
        raise invalid(f"{where} must be a URL.", where)
    if not url.startswith("data:"):
        raise invalid(
            f"{where} is an address, and the proxy fetches nothing: send the image itself"
            " as a data: URL in base64.",
            where,
        )
    with reported(where):
        return Image.from_data_url(url, "an image of the request")


class reported:
    """Turns our errors about what is read in the block into faults of the request."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, EvalwrightError):
            raise invalid(f"{self._where}: {error}", self._where) from None


def read_tools(
    rows: Sequence[Any] | None, where: str = "tools"
) -> tuple[ToolDefinition, ...]:
    """Return the definitions in a list of mappings of name, description and parameters."""
    with reported(where):
        return tuple(ToolDefinition.from_dict(row) for row in rows or ())


def checked_choice(
    tools: Sequence[ToolDefinition], choice: str | None, where: str = "tool_choice"
) -> str | None:
    """Return the choice among tools; one without tools is none.

    Raises:
        Fault: two tools share a name, or the choice is none of them.
    """
    if not tools and choice in ("auto", "none"):
        choice = None
    with reported(where):
        check_tools(tools, choice)
    return choice


def joined(parts: Sequence[Part]) -> str | tuple[Part, ...]:
    """Return the parts of a turn as its content: one text stays text."""
    if not parts:
        return ""
    if all(isinstance(part, str) for part in parts):
        return parts[0] if len(parts) == 1 else tuple(parts)  # type: ignore[return-value]
    return tuple(parts)


def read_call(name: Any, arguments: Any, call_id: Any, where: str) -> ToolCall:
    """Return a call in an assistant's turn.

    Raises:
        Fault: one of the three is not text.
    """
    if not all(isinstance(field, str) for field in (name, arguments, call_id)):
        raise invalid(
            f"{where} must have a name, arguments and an id, all texts.", where
        )
    return ToolCall(name, arguments, call_id)
