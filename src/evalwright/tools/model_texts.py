"""What a model reads of a tool's result or error: bounded, no secrets, no paths of this machine."""

from __future__ import annotations

import re
from pathlib import Path

from evalwright.core.secrets import mask

MAX_ERROR_CHARS = 2_000
"""Most characters of an error that a model reads."""
LONGEST_SECRET_CHARS = 10_000
"""Characters behind a cut in which a secret that begins before it must end."""
HIDDEN_PATH = "[path]"
_PATH = re.compile(
    r"(?<![\w:/.])(?:file://)?(/[^/\s'\"<>|:,;()]+)(?:/[^/\s'\"<>|:,;()]+)+/?"
)
_WINDOWS_PATH = re.compile(r"(?<!\w)[A-Za-z]:\\[^\s'\"<>|:,;()]+")


def result_text(text: str, max_chars: int) -> str:
    """Return a tool's result as a model reads it.

    Args:
        text: the result.
        max_chars: most characters of it that are kept.

    Returns:
        The text without the secrets that this process knows. One that was cut says so.
    """
    # A secret that the cut goes through is found whole, and no part of it is kept.
    around = text[: max_chars + LONGEST_SECRET_CHARS]
    kept = mask(around.encode("utf-8", "replace").decode("utf-8"))[:max_chars]
    if len(text) <= max_chars:
        return kept
    return (
        f"{kept}\n[The result was cut: it has {len(text):,} characters, and the first"
        f" {max_chars:,} are shown.]"
    )


def error_text(error: BaseException) -> str:
    """Return what a model reads of an exception that a tool raised: its kind and its message.

    There is no traceback, and no path of this machine.
    """
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        message = error.strerror
    else:
        try:
            message = str(error)
        except Exception:  # an exception of the tool's own class
            message = ""
    message = without_paths(message[: 2 * MAX_ERROR_CHARS])
    return result_text(f"{kind}: {message}" if message else kind, MAX_ERROR_CHARS)


def without_paths(text: str) -> str:
    """Replace the absolute paths of this machine in a text.

    A text that looks like a path, but begins with no folder of this machine ("/v1/users"), stays.
    """

    def replace(match: re.Match[str]) -> str:
        try:
            is_here = Path(match[1]).exists()
        except OSError:
            is_here = False
        return HIDDEN_PATH if is_here else match[0]

    return _WINDOWS_PATH.sub(HIDDEN_PATH, _PATH.sub(replace, text))
