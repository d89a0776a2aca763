"""Words of languages that are written without spaces between them, by the word breaks of ICU (dictionaries of the Unicode project).

One library for Burmese, Chinese, Japanese, Khmer, Lao and Thai. Its words are the shortest that its dictionaries know and differ from those
of a grammarian (tests/data/segmentation states how often), and may differ between versions of ICU, so scores say the version.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import MissingExtra

UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "zh"})
"""Languages whose words are found by a dictionary."""

_COMPILED = "apt install libicu-dev pkg-config g++ (or brew install icu4c pkg-config)"


def require(language: str, what: str) -> None:
    """Raise MissingExtra where words of this language need the library and it is not installed."""
    if language in UNSPACED and find_spec("icu") is None:
        raise MissingExtra(f"{what} for the language '{language}'", "segmentation", "PyICU", first=_COMPILED)


def segment(text: str, language: str) -> list[str]:
    """The words of a text in one of `UNSPACED`, without spaces and punctuation. Raises MissingExtra without ICU."""
    require(language, "Segmentation")
    import icu

    breaks = _breaks(language)
    # Places are counted in UTF-16.
    units = text.encode("utf-16-le", "replace")
    breaks.setText(icu.UnicodeString(units.decode("utf-16-le")))
    words, start = [], 0
    for end in breaks:
        if breaks.getRuleStatus() > 0:  # 0 is said of spaces and punctuation
            words.append(units[2 * start : 2 * end].decode("utf-16-le"))
        start = end
    return words


def library() -> str:
    """ "ICU 72.1": what decides where words end."""
    import icu

    return f"ICU {icu.ICU_VERSION}"


@lru_cache(maxsize=8)
def _breaks(language: str) -> Any:
    import icu

    return icu.BreakIterator.createWordInstance(icu.Locale(language))
