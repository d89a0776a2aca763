"""Tells local paths from addresses of remote storage.

Of these only S3-compatible buckets are read and written, by a few commands (`runs.buckets`).

Taken as a path, `s3://bucket/runs` would create a folder `s3:` in the working folder. A Windows
drive (`C:/runs`) has a single letter and is a path.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import mask, without_login

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/|(?=[^/]|$))")
"""A scheme at the start of an address; `Path` turns the two slashes after it into one."""


def scheme_of(path: str | PurePath) -> str:
    """Return the scheme of an address, such as "s3"; "" for a local path.

    In a string, only `scheme://` counts; a `Path` has already lost the second slash.
    """
    match = _SCHEME.match(str(path))
    if match is None or (isinstance(path, str) and not match[2]):
        return ""
    return match[1]


def why_not_local(path: str | PurePath) -> str:
    """Explain why an address cannot be used as a path, and what to do; "" for a local path."""
    scheme = scheme_of(path)
    if not scheme:
        return ""
    if scheme.lower() == "file":
        return "write the path alone, without file://"
    way = (
        "copy runs to a bucket with `evalwright runs push`, and from one with `runs pull`"
        if scheme.lower() == "s3"
        else "copy it with that storage's own tools, or mount the storage"
    )
    return (
        f"{scheme}:// is not supported here, only files and folders of this machine are."
        f" Name a local one, and {way}"
    )


def check_local(path: str | PurePath, called: str) -> None:
    """Raise ConfigurationError if an address is used as a path.

    Args:
        path: the path to check.
        called: the option or setting it comes from, for the message.
    """
    if why := why_not_local(path):
        raise ConfigurationError(
            f"{called}: '{mask(without_login(str(path)))}' is not a local path: {why}."
        )
