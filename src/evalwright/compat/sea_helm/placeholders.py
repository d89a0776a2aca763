"""Names in braces, in the templates of prompts."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evalwright.extend import TaskError

_NAME = re.compile(r"\w+")
_LONGEST = 20_000_000


@lru_cache(maxsize=4096)
def pieces(template: str, subject: str) -> tuple[tuple[str, str | None], ...]:
    """Texts and placeholders. what: for errors.

    Raises TaskError where more than names stands in braces: attributes, formats.
    """
    parts: list[tuple[str, str | None]] = []
    try:
        for text, name, spec, conversion in string.Formatter().parse(template):
            if name is not None and (spec or conversion or not _NAME.fullmatch(name)):
                raise ValueError(f"'{{{name}...}}' is more than a name in braces")
            parts.append((text, name))
    except ValueError as error:
        raise TaskError(f"{subject} cannot be read: {error}.") from None
    return tuple(parts)


def render(template: str | None, values: Mapping[str, Any], subject: str) -> str:
    """A template with its placeholders filled. what: for errors. Raises TaskError."""
    parts = pieces(template or "", subject)
    if lacking := [
        name for _, name in parts if name is not None and name not in values
    ]:
        raise TaskError(
            f"{subject} has the placeholder {{{lacking[0]}}}, for which there is no value."
        )
    texts = {name: "" if name is None else str(values[name]) for _, name in parts}
    if sum(len(text) + len(texts[name]) for text, name in parts) > _LONGEST:
        raise TaskError(f"{subject} gives a text of more than {_LONGEST:,} characters.")
    return "".join(text + texts[name] for text, name in parts)
