"""Text from outside, made fit to be shown: without keys, without control characters."""

from __future__ import annotations

import re
from urllib.parse import quote

MASKED = "[key]"
# What people write where a server wants no key. Masking these words would only garble messages.
_PLACEHOLDERS = {"empty", "none", "null", "dummy", "test", "token", "key", "secret", "local"}
# Defence in depth: providers echo a part of a wrong key ("sk-ab***yz"), which is not any key that we know.
_LOOKS_LIKE_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|nvapi|r8|pplx|AIza)[-_][A-Za-z0-9_*.-]{8,}|(?<=Bearer )[A-Za-z0-9._~+/=*-]{8,}"
)
_keys: set[str] = set()


def remember(key: str) -> None:
    """Let `mask` remove this key from now on."""
    if len(key) >= 4 and key.lower() not in _PLACEHOLDERS:
        _keys.update({key, quote(key, safe="")})


def mask(text: str) -> str:
    """`text` without any key that this process has read, nor anything that looks like one."""
    for key in sorted(_keys, key=len, reverse=True):
        text = text.replace(key, MASKED)
    return _LOOKS_LIKE_KEY.sub(MASKED, text)


def printable(text: str) -> str:
    """A name without control characters, not longer than a name is."""
    if len(text) <= 200 and text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text[:200])
