"""What the renderers of templates share: how much one rendering may give, and the error of a
template that cannot be used.
"""

from __future__ import annotations

MAX_LENGTH = 20_000_000
"""The most characters that one rendering may give."""


class TemplateError(ValueError):
    """A template that cannot be compiled or rendered; the caller says where it stands and which row
    it met.

    missing: the name that was not there, where that was the reason.
    """

    def __init__(self, message: str, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing
