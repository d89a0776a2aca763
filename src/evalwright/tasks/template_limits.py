"""Shared by the renderers of templates: the limit of a rendering, the error for a bad template."""

from __future__ import annotations

MAX_LENGTH = 20_000_000
"""Most characters that one rendering may produce."""


class TemplateError(ValueError):
    """A template that cannot be compiled or rendered; the caller says where it stands and which row
    it met.

    `missing` is the name that was not defined, if that was the reason.
    """

    def __init__(self, message: str, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing
