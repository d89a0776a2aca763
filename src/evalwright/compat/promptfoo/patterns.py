"""Regular expressions of JavaScript, written as Python understands them."""

from __future__ import annotations

import re

_SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What `\\s` matches in JavaScript, for the inside of brackets."""
_TOKEN = re.compile(
    r"\\k<(\w+)>|\\c[A-Za-z]|\\.|\(\?<(?=[A-Za-z_$])|[\[\]$.]", re.DOTALL
)
_ASCII = re.compile(r"\\[wWdDbB]")


def to_python(pattern: str) -> str:
    """Translate a pattern as `new RegExp(pattern)` reads it, without flags.

    `$` is the very end, `\\d`, `\\w` and `\\b` know ASCII alone, `.` stops at every line break, and
    groups are named without the P.

    Args:
        pattern: the pattern.

    Raises:
        ValueError: Python has nothing like it; the message says what.
    """
    pieces: list[str] = []
    end = 0
    in_brackets = False
    for token in _TOKEN.finditer(pattern):
        pieces.append(_literal(pattern[end : token.start()], in_brackets))
        end = token.end()
        text = token[0]
        if text == "[" and not in_brackets:
            in_brackets = True
            if pattern.startswith(("[]", "[^]"), token.start()):
                raise ValueError("'[]' and '[^]' mean nothing to Python")
            pieces.append(text)
        elif text == "]" and in_brackets:
            in_brackets = False
            pieces.append(text)
        else:
            pieces.append(_translated(token, in_brackets))
    pieces.append(_literal(pattern[end:], in_brackets))
    translated = "".join(pieces)
    return f"(?a){translated}" if _ASCII.search(translated) else translated


def _literal(text: str, in_brackets: bool) -> str:
    # Python warns of these in brackets, because it may give them a meaning one day.
    return (
        re.sub(r"(--|&&|\|\||~~)", lambda run: f"\\{run[0][0]}\\{run[0][1]}", text)
        if in_brackets
        else text
    )


def _translated(token: re.Match[str], in_brackets: bool) -> str:
    text = token[0]
    if token[1]:
        return f"(?P={token[1]})"
    if text == "(?<":
        return "(?P<"
    if text == r"\s":
        return _SPACE if in_brackets else f"[{_SPACE}]"
    if text == r"\S":
        if in_brackets:
            raise ValueError(r"'\S' in brackets")
        return f"[^{_SPACE}]"
    if text.startswith(r"\c") or text in (r"\p", r"\P"):
        raise ValueError(f"'{text}'")
    if text == "$" and not in_brackets:
        return r"\Z"
    if text == "." and not in_brackets:
        return r"[^\n\r\u2028\u2029]"
    if text == "[":
        return r"\["
    is_unknown_letter = len(text) == 2 and text[1] in "aegijlmoqyzACEFGHIJKLMNOQRTUVXYZ"
    return text[1:] if text.startswith("\\") and is_unknown_letter else text
