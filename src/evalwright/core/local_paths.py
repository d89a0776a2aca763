"""Paths of this machine, told from addresses of storage elsewhere, which nothing here reads or
writes.

As a path, `s3://bucket/runs` would be a folder `s3:` in the working folder. A drive of Windows
(`C:/runs`) has one letter.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import mask, without_login

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/|(?=[^/]|$))")
"""`Path` makes one slash of the two."""


def scheme_of(path: str | PurePath) -> str:
    """The scheme of what is an address and no path, such as "s3"; "" for a path.

    In a text only `scheme://` is one.
    """
    match = _SCHEME.match(str(path))
    if match is None or (isinstance(path, str) and not match[2]):
        return ""
    return match[1]


def why_not_local(path: str | PurePath) -> str:
    """What is wrong with an address in place of a path, and what to do; "" for a path."""
    scheme = scheme_of(path)
    if not scheme:
        return ""
    if scheme.lower() == "file":
        return "write the path alone, without file://"
    return (
        f"{scheme}:// is not supported, only files and folders of this machine are."
        " Name a local one, and copy it with that storage's own tools, or mount the"
        " storage"
    )


def check_local(path: str | PurePath, called: str) -> None:
    """Raise ConfigurationError for an address in place of a path. called: the option or setting
    that has it.
    """
    if why := why_not_local(path):
        raise ConfigurationError(
            f"{called}: '{mask(without_login(str(path)))}' is not a local path: {why}."
        )
