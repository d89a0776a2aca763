"""Fonts of a picture: which one has a text's letters, how wide the text is, and how it is made to fit.

Latin, Greek, Cyrillic, Arabic and Hebrew letters are in the font that matplotlib ships, so pictures of such names are the same
everywhere. Others are looked for in a short list of fonts that machines have; a letter that none has is shown as the replacement character.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

ELSEWHERE = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Microsoft YaHei",
    "Yu Gothic", "Malgun Gothic", "Noto Sans Thai", "Noto Sans Devanagari", "Noto Sans Tamil", "Nirmala UI", "Leelawadee UI",
)  # fmt: skip
"""Fonts for the scripts that the shipped one lacks, in the order in which they are tried."""

MISSING = "\ufffd"


class Fonts:
    """Texts in the fonts of one picture. Sizes are in points, widths in inches."""

    def of(self, text: str, size: float, *, bold: bool = False) -> tuple[Any, str]:
        """A font that has all of the text's letters, and the text; else the shipped font and the text with replacements."""
        from matplotlib.font_manager import FontProperties

        file = _shipped(bold)
        lacking = {char for char in text if ord(char) not in _letters(file)}
        if lacking:
            other = next((path for path in _others() if all(ord(c) in _letters(path) for c in text)), None)
            if other is not None:
                return FontProperties(fname=other, size=size), text
            text = "".join(MISSING if char in lacking else char for char in text)
        return FontProperties(fname=file, size=size), text

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """How wide the text is drawn."""
        if not text:
            return 0.0
        from matplotlib.textpath import text_to_path

        font, shown = self.of(text, size, bold=bold)
        width, _, _ = text_to_path.get_text_width_height_descent(shown, font, ismath=False)
        return float(width) / 72

    def fitted(self, text: str, size: float, room: float, *, bold: bool = False) -> str:
        """The text, cut in its middle where it would not fit: both ends of a model's name tell it from others."""
        if self.width(text, size, bold=bold) <= room:
            return text
        low, high = 0, len(text) - 1  # letters that are kept
        while low < high:
            kept = (low + high + 1) // 2
            fits = self.width(_cut(text, kept), size, bold=bold) <= room
            low, high = (kept, high) if fits else (low, kept - 1)
        return _cut(text, low)

    def wrapped(self, text: str, size: float, room: float) -> list[str]:
        """The text on lines that fit; a word that is too long is cut."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > room:
                lines.append(self.fitted(word, size, room))
            else:
                lines[-1] = self.fitted(longer, size, room)
        return lines


def _cut(text: str, kept: int) -> str:
    head = (kept + 1) * 3 // 5
    tail = kept - head
    return f"{text[:head].rstrip()}…{text[len(text) - tail :].lstrip() if tail else ''}"


@lru_cache(maxsize=2)
def _shipped(bold: bool) -> str:
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name)


@lru_cache(maxsize=1)
def _others() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    found = {entry.name: entry.fname for entry in reversed(fontManager.ttflist) if entry.name in ELSEWHERE}
    return tuple(found[name] for name in ELSEWHERE if name in found)


@lru_cache(maxsize=32)
def _letters(file: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(file).get_charmap())
