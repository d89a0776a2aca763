"""Words that change what a mention means, by language: denials, alternatives, changes of mind.

Marks of an answer are among them too; all are in `cues.toml`. If a word is missing, a mention
counts that should not; if there is one too many, a mention is lost. Both matter only beside other
candidates.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.tokens import fold

_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("cues.toml").read_text(encoding="utf-8")
)
ANYWHERE = "any"
"""The row of a table for scripts without spaces."""
_KOREAN_OR = "아니면"
"""The Korean for "or"; literally "if it is not"."""
_REVISION = re.compile(
    r"(?:^|[.,;:!?…—–(\n،؛。，、！？।]|\s--?)\s*(?:oh,? |hmm+,? |no,? |non,? |nein,?"
    r" )?(?:"
    + "|".join(row for code, row in _TABLES["revision_re"].items() if code != ANYWHERE)
    + rf")(?!\w)|{_TABLES['revision_re'][ANYWHERE]}",
    re.IGNORECASE,
)


@cache
def months() -> dict[str, int]:
    """Month names in all languages, lower-cased, with their numbers."""
    rows = (row.split() for row in _TABLES["month"].values())
    return {
        name: number
        for row in rows
        for number, names in enumerate(row, 1)
        for name in names.split("/")
    }


def label_alternatives(table: str) -> str:
    """Join all labels of a table into a regular expression, the longest first."""
    alternatives = {
        label for row in _TABLES[f"{table}_re"].values() for label in row.split("|")
    }
    return "|".join(sorted(alternatives, key=len, reverse=True))


def joined_patterns(table: str) -> str:
    """Join the regular expressions of all languages of a table."""
    return "|".join(f"(?:{row})" for row in _TABLES[f"{table}_re"].values())


@cache
def cue_words(table: str, language: str = "") -> frozenset[str]:
    """Return the folded words of a table: English and one language, or all languages."""
    code = short_code(language)
    rows = _TABLES[table]
    chosen_rows = (
        [rows.get("en", ""), rows.get(code, "")]
        if code
        else [rows[row_code] for row_code in rows if row_code != ANYWHERE]
    )
    return frozenset(fold(" ".join(chosen_rows).casefold()).split())


def has_spaceless_cue(table: str, text: str) -> bool:
    """Return whether a text contains a word of a table for scripts without spaces."""
    if table == "negation":
        text = text.replace(_KOREAN_OR, "")
    return not text.isascii() and any(
        sign in text for sign in _TABLES[table][ANYWHERE].split()
    )


def find_opening(table: str, text: str) -> str:
    """Return the word with which a text in a script without spaces begins; "" if none."""
    match = _openings(table).match(text)
    return match.group() if match else ""


@cache
def _openings(table: str) -> re.Pattern[str]:
    signs = sorted(_TABLES[table][ANYWHERE].split(), key=len, reverse=True)
    return re.compile("|".join(re.escape(sign).replace("_", " ?") for sign in signs))


class Cues:
    """The cue words of one language and of English, folded as `Words.folded_tokens` are."""

    def __init__(self, language: str) -> None:
        # Portuguese "no" is "in the".
        self.negations = cue_words("negation", language) - (
            {"no"} if language[:2] == "pt" else set()
        )
        self.alternatives = cue_words("alternative", language)
        self.turns = cue_words("turn", language)
        self.aside = cue_words("aside", language)

    def denies(self, tokens: Collection[str], text: str) -> bool:
        """Return whether tokens or their text contain a negation."""
        return not self.negations.isdisjoint(tokens) or has_spaceless_cue(
            "negation", text
        )

    def offers(self, tokens: Collection[str], text: str) -> bool:
        """Return whether tokens or their text contain a word such as "or"."""
        return not self.alternatives.isdisjoint(tokens) or has_spaceless_cue(
            "alternative", text
        )

    def turn_in(self, tokens: Sequence[str]) -> int:
        """Return the index after the last "but" or similar word; 0 without one."""
        return max(
            (index + 1 for index, token in enumerate(tokens) if token in self.turns),
            default=0,
        )


@cache
def cues_of(language: str) -> Cues:
    """Return the cues of a language code such as "de" or "pt-BR"."""
    return Cues(language)


def last_revision(text: str) -> tuple[int, int] | None:
    """Find the last change of mind ("no, wait"), as start and end; None without one."""
    last = None
    for match in _REVISION.finditer(text):
        if last is not None or any(map(str.isalnum, text[: match.start()])):
            last = match.span()
    return last
