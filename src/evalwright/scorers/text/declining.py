"""Decides whether a text declines to answer, from phrases by language (`declining.toml`).

No other module decides this. There are two kinds: a *refusal* will not or cannot do what was asked
("I cannot summarize this passage"); *no information* says that the answer is not known or not given
("The passages do not say"). A text declines if every part of it does, or speaks to the reader
("Please send the article"). "I don't know, but probably Paris" does not decline: the rest may be an
answer, and whether it is one is for the caller to decide.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from evalwright.core.sentences import sentences, word_count

REFUSAL = "refusal"
NO_INFORMATION = "no information"

MOST_WORDS = 120
MAX_DECLINING_CHARS = 2000
"""A text longer than this does not decline, however it begins."""

_SPACELESS = ("zh", "ja", "th", "my", "km", "lo")
_MARKS = {ord(mark): None for mark in '*_#"“”„«»「」『』'}
_SPLIT = re.compile(r"[,;.!?](?=\s)|[，、；：،؛。]|\s[-–]\s|[–—]")


@dataclass(frozen=True, slots=True)
class Declined:
    """How a text declines to answer.

    Args:
        kind: `REFUSAL` or `NO_INFORMATION`.
        words: the declining clause, lower-cased.
        language: code of the language whose phrase it is.
    """

    kind: str
    words: str
    language: str

    def __str__(self) -> str:
        return (
            f"'{self.words if len(self.words) <= 80 else self.words[:77] + '...'}'"
            f" ({self.language})"
        )


def declines(text: str, language: str = "", *, beside: int = 0) -> Declined | None:
    """Find how a text declines to answer; None if it answers or may answer.

    Args:
        text: the text.
        language: ISO 639 code of a language to search beside English; "" searches all.
        beside: most words of other content to tolerate.
    """
    if len(text) > MAX_DECLINING_CHARS:
        return None
    return _find_declining(
        text, language.casefold().replace("_", "-").split("-")[0], beside
    )


def speaks_of_text(declined: Declined) -> bool:
    """Return whether a clause says that a text gives no answer, not that the speaker knows none."""
    return (
        _phrases_by_language()[declined.language].text.search(declined.words)
        is not None
    )


def declining_clause(text: str, language: str = "") -> Declined | None:
    """Find the first clause that declines, whatever else the text says."""
    code = language.casefold().replace("_", "-").split("-")[0]
    for _, clause in _split_clauses(text[:MAX_DECLINING_CHARS]):
        if (declined := _find_phrase(clause, code)) is not None:
            return declined
    return None


@lru_cache(maxsize=2048)
def _find_declining(text: str, code: str, beside: int) -> Declined | None:
    if word_count(text) > MOST_WORDS:
        return None
    first: Declined | None = None
    others = []
    for _, clause in _split_clauses(text):
        declined = _find_phrase(clause, code)
        if declined is None:
            others.append(clause)
        elif first is None or declined.kind == REFUSAL:
            first = declined
    if first is None:
        return None
    spoken = _phrases_by_language()[first.language]
    content = sum(
        word_count(clause) for clause in others if not spoken.empty(clause, first.kind)
    )
    return first if content <= beside else None


def plain_clause(text: str) -> str:
    """Lower-case a text, in one line, with straight apostrophes and no outer punctuation."""
    folded = unicodedata.normalize("NFC", text).translate(
        {0x2019: "'", 0x2018: "'", 0x60: "'"}
    )
    folded = " ".join(folded.translate(_MARKS).casefold().split())
    return folded.replace("i̇", "i").strip(
        " .!?…。！？।؟\"'-–—:>"
    )  # lower-casing turns the Turkish capital İ into i and a combining dot


def _split_clauses(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into clauses, each with the index of its sentence."""
    turning = _turning_words()
    for number, sentence in enumerate(sentences(text)):
        for clause in _SPLIT.split(unicodedata.normalize("NFC", sentence)):
            for piece in turning.split(plain_clause(clause)):
                if piece := plain_clause(piece):
                    yield number, piece


@lru_cache(maxsize=1024)
def _find_phrase(clause: str, code: str) -> Declined | None:
    latin = clause.isascii()
    for name, language in _phrases_by_language().items():
        if (latin and language.script) or (code and name not in (code, "en")):
            continue
        content = language.without_openers(clause)
        for kind, pattern in (
            (REFUSAL, language.refusal),
            (NO_INFORMATION, language.unknown),
        ):
            match = (
                pattern.match(content) if kind == REFUSAL else pattern.search(content)
            )
            # "I don't know: Paris" may be an answer.
            if match is not None and ": " not in content[match.start() :]:
                return Declined(kind, clause, name)
    return None


class _Phrases:
    """The phrases of one language, compiled.

    `script` is set for languages never written in plain ASCII.
    """

    def __init__(self, code: str, row: dict[str, Any]) -> None:
        names = {
            name: row[name] for name in ("do", "the", "text", "sum") if name in row
        }

        def pattern(
            phrases: str | list[str], edge: str = "", end: str = ""
        ) -> re.Pattern[str]:
            alternatives = (
                "|".join(
                    f"(?:{phrase})"
                    for phrase in ([phrases] if isinstance(phrases, str) else phrases)
                )
                or r"(?!)"
            )
            for name, inner in names.items():
                alternatives = alternatives.replace(f"{{{name}}}", inner)
            return re.compile(
                unicodedata.normalize("NFC", f"{edge}(?:{alternatives}){end}")
            )

        spaced = code not in _SPACELESS
        start, stop = (r"(?<![^\W_])", r"(?![^\W_])") if spaced else ("", "")
        self.script = code in ("ru", "uk", "zh", "ja", "ko", "ar", "hi", "th", "ta")
        self.opener = pattern(
            [row.get("opener", r"(?!)"), row.get("but", r"(?!)")],
            end=r"(?:[\s,.!:;，、。،—–-]+|$)" if spaced else r"[\s,，、。]*",
        )
        self.refusal = pattern(row.get("refusal", []))
        self.unknown = pattern(
            row["unknown"], start, stop if code != "ko" and code != "ta" else ""
        )
        self.aside = pattern(row.get("aside", r"(?!)"))
        self.text = pattern(row.get("text", r"(?!)"))
        self.lack = pattern([row.get("lack", r"(?!)"), row.get("sum", r"(?!)")])

    def without_openers(self, clause: str) -> str:
        """Remove apologies and "but" from the beginning of a clause."""
        for _ in range(4):
            match = self.opener.match(clause)
            if match is None or not match.group():
                break
            clause = clause[match.end() :]
        return clause

    def empty(self, clause: str, kind: str) -> bool:
        """Return whether a clause beside a declining one has no content of its own."""
        content = self.without_openers(clause)
        if not content or self.aside.search(clause) is not None:
            return True
        about = self.text.search(content) is not None or content.startswith(
            ("it ", "this ")
        )
        return kind == REFUSAL and about and self.lack.search(content) is not None


@cache
def _turning_words() -> re.Pattern[str]:
    """Compile the pattern of a word like "but" inside a clause."""
    spaced = "|".join(
        row["but"]
        for code, row in _load_rows().items()
        if code not in _SPACELESS and "but" in row
    )
    others = "|".join(_load_rows()[code]["but"] for code in _SPACELESS)
    return re.compile(rf"\s(?=(?:{spaced})\s)|(?=(?:{others}))")


@cache
def _load_rows() -> dict[str, dict[str, Any]]:
    return tomllib.loads(
        Path(__file__).with_name("declining.toml").read_text(encoding="utf-8")
    )


@cache
def _phrases_by_language() -> dict[str, _Phrases]:
    return {code: _Phrases(code, row) for code, row in _load_rows().items()}
