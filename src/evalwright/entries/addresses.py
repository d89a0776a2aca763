"""Whether an address that a stranger wrote is one that a maintainer allows.

Addresses are compared as they are written, without decoding and without a resolver: the same origin
and the same path, or a path below it. What could be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_ADDRESS_CHARS = 300
_PLAIN = re.compile(
    r"(?P<origin>https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)/?"
)
_ODD_PARTS = (
    ("@", "a user's name (@)"),
    ("\\", "a backslash"),
    ("%", "an escape (%)"),
    ("?", "a query (?)"),
    ("#", "a fragment (#)"),
    ("xn--", "a name in Punycode (xn--)"),
    ("..", "'..'"),
    ("/./", "'.' as a part of its path"),
)


def wrong_address(address: str) -> str:
    """Say why an address cannot be compared as it is written; "" if it can."""
    if len(address) > MAX_ADDRESS_CHARS:
        return f"is longer than {MAX_ADDRESS_CHARS} characters."
    if not address.isascii():
        return "has characters other than ASCII, which may look like those of another host."
    for odd_text, words in _ODD_PARTS:
        if odd_text in address.lower():
            return f"has {words}."
    if not _PLAIN.fullmatch(address):
        return (
            "is not written plainly: https://host/path, with a host of small letters."
        )
    return ""


def allowing_address(address: str, allowed_addresses: Sequence[str]) -> str | None:
    """Return the allowed address that an address is, or lies below; None if there is none.

    Args:
        address: what a stranger wrote.
        allowed_addresses: those of a maintainer, which are written plainly.
    """
    if wrong_address(address):
        return None
    trimmed = address.rstrip("/")
    for prefix in allowed_addresses:
        start = prefix.rstrip("/")
        if trimmed == start or trimmed.startswith(f"{start}/"):
            return prefix
    return None
