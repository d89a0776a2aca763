"""The words that mark an answer or an option, by language (`marks.toml`), as patterns."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("marks.toml").read_text(encoding="utf-8")
)
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""The characters of scripts without spaces between words."""


@cache
def alternatives(table: str, spaced: bool | None = None) -> str:
    """Join the entries of a table in all languages, the longest first.

    `spaced` limits them to scripts with spaces (True) or without (False).
    """
    entries = {
        entry
        for row in _TABLES[table].values()
        for entry in re.split(r"\|(?![^()]*\))", row)
    }
    chosen_entries = (
        entry
        for entry in entries
        if spaced is None or spaced is (re.match(f"[{SPACELESS}]", entry) is None)
    )
    return "|".join(sorted(chosen_entries, key=lambda entry: (-len(entry), entry)))


def alphabets() -> dict[str, str]:
    """Return the letters that number options, in order, by alphabet."""
    return _TABLES["letters"]


_NO_NOUNS = frozenset(
    [
        "statement",
        "must be",
        "should be",
        "it is",
        "it's",
        "only",
        "c'est",
        "es la",
        "è la",
        "é a",
        "es ist",
        "câu",
        "项",
        "項",
        "番",
        "肢",
    ]
)
"""Words in the table of option nouns that also precede other things."""


def _option_nouns() -> str:
    """Return the nouns for an option, as alternatives of a regular expression."""
    return "|".join(
        noun for noun in alternatives("option").split("|") if noun not in _NO_NOUNS
    )


def _place_groups(table: str) -> str:
    """Return the entries of a table of positions, in groups named `place1` to `place5`."""
    rows = [row.split("/") for row in _TABLES[table].values()]
    return "|".join(
        f"(?P<place{number}>"
        + "|".join(row[number - 1] for row in rows if len(row) >= number)
        + ")"
        for number in range(1, 6)
    )


@cache
def ordinals() -> re.Pattern[str]:
    """Compile words for a position in a list, with groups `place1` to `place5`."""
    words = "|".join(row.replace("/", "|") for row in _TABLES["ordinal"].values())
    # In a script without spaces a word is a position only before an option's noun:
    # 第一个选项, but not 第一次.
    ends = rf"(?:(?!\w{{3}})|(?:{alternatives('ending')})(?!\w))"
    place_word = (
        rf"(?:(?<![^\W_])(?=(?:{words}){ends})|(?<=[{SPACELESS}])(?="
        rf"(?:{words})\w{{0,2}}(?:{_option_nouns()}))|(?<!\w)(?=(?:{words})\w{{0,2}}"
        rf"(?:{_option_nouns()})))"
    )
    return re.compile(rf"{place_word}(?:{_place_groups('ordinal')})", re.IGNORECASE)


@cache
def option_numbers() -> re.Pattern[str]:
    """Compile an option's number in words ("option three"), with groups `place1` to `place5`."""
    nouns = rf"(?:(?<![^\W_])|(?<=[{SPACELESS}]))(?:{_option_nouns()})"
    after = rf"(?![^\W_])|(?=(?:{alternatives('ending')}))"
    return re.compile(
        rf"{nouns}(?: (?:{alternatives('article')}))?"
        rf" ?(?:{_place_groups('cardinal')})(?:{after})",
        re.IGNORECASE,
    )
