"""Exact match: the whole answer is, character for character, one of the targets."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import checked
from evalwright.scorers.text.languages import check_language, language_of, without_articles


@checked(lambda options: check_language(options["language"]))
def exact_match(
    sample: Sample,
    answer: Answer,
    *,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_whitespace: bool = False,
    ignore_articles: bool = False,
    strip: bool = True,
    language: str | None = None,
) -> Score:
    """1.0 where the answer equals any target after Unicode NFC, else 0.0; labels "correct" and "incorrect".

    strip: outer white space does not count. ignore_case: compare casefolded. ignore_punctuation: drop all characters of
    the Unicode categories P and S. ignore_articles: drop the articles of `language`, without it of the sample's metadata `language`,
    else of English. ignore_whitespace: runs of white space
    count as one space, outer ones as none. They apply in the order case, punctuation, articles, white space.
    """
    articles = (language_of(sample, language) or "en") if ignore_articles else ""
    options = (ignore_case, ignore_punctuation, ignore_whitespace or ignore_articles, articles, strip)
    found = _normalise(answer.text, *options)
    for target in sample.targets:
        if found == _target(target, *options):
            return Score(1.0, "correct", f"equals the target {_shown(target)}")
    return Score(0.0, "incorrect", f"{_shown(answer.text)} equals none of the {len(sample.targets)} targets")


def normalised(
    sample: Sample,
    text: str,
    *,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_whitespace: bool = False,
    ignore_articles: bool = False,
    strip: bool = True,
    language: str | None = None,
) -> str:
    """A text as the scorer with these options compares it."""
    articles = (language_of(sample, language) or "en") if ignore_articles else ""
    return _normalise(
        text, ignore_case, ignore_punctuation, ignore_whitespace or ignore_articles, articles, strip
    )


def _normalise(text: str, case: bool, punctuation: bool, whitespace: bool, articles: str, strip: bool) -> str:
    text = unicodedata.normalize("NFC", text)
    if case:
        text = unicodedata.normalize("NFC", text.casefold())
    if punctuation:
        text = "".join(char for char in text if char.isalnum() or unicodedata.category(char)[0] not in "PS")
    if articles:
        text = without_articles(text, articles)
    if whitespace:
        return " ".join(text.split())
    return text.strip() if strip else text


_target = lru_cache(maxsize=4096)(_normalise)


def _shown(text: str) -> str:
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"
