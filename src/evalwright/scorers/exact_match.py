"""Exact match: the whole answer equals a target or, with `partial`, contains one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright import bounded
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.registry import checked
from evalwright.scorers.text.cues import label_alternatives
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import (
    check_language,
    language_of,
    without_articles,
)

_ENDINGS = rf"(?:{label_alternatives('ending')}|{label_alternatives('tail')}){{0,3}}(?![가-힣])"
"""What may follow a complete word in Hangul."""
_SAME_WORD = ("0-9", "A-Za-zÀ-ɏ", "가-힣")
"""Ranges of characters that form words: "1" is not found in "12", nor "art" in "party"."""

_SECONDS = 1.0
"""Processor seconds that all patterns may take on one answer."""


def _check(options: Mapping[str, Any]) -> None:
    check_language(options["language"])
    patterns = options["ignore_patterns"]
    if not isinstance(patterns, list | tuple) or not all(
        isinstance(pattern, str) for pattern in patterns
    ):
        raise ConfigurationError(
            "The option 'ignore_patterns' is a list of regular expressions, not"
            f" {patterns!r}."
        )
    if patterns:
        try:
            bounded.call(_remove_patterns, tuple(patterns), "")
        except (bounded.LimitExceeded, bounded.Raised) as error:
            raise ConfigurationError(
                "The option 'ignore_patterns' holds what is no regular expression:"
                f" {error}."
            ) from None


@checked(_check)
def exact_match(
    sample: Sample,
    answer: Answer,
    *,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
    ignore_whitespace: bool = False,
    ignore_articles: bool = False,
    ignore_patterns: Sequence[str] = (),
    strip: bool = True,
    partial: bool = False,
    among_choices: bool = False,
    language: str | None = None,
) -> Score:
    """Score 1.0 if the answer equals any target after Unicode NFC, else 0.0.

    The labels are "correct" and "incorrect". The options apply in the order patterns, case,
    punctuation, numbers, articles, white space.

    Args:
        ignore_case: whether to compare casefolded.
        ignore_punctuation: whether to drop all characters of the Unicode categories P and S.
        ignore_numbers: whether to drop all digits.
        ignore_whitespace: whether runs of white space count as one space, outer ones as none.
        ignore_articles: whether to drop the articles of `language`.
        ignore_patterns: regular expressions whose matches are dropped.
        strip: whether to drop outer white space.
        partial: whether it is enough that a target stands in the answer as whole words, which
            Korean particles may follow. An empty target never is enough, nor one of which
            `ignore_numbers` or `ignore_patterns` leaves nothing.
        among_choices: whether a target counts only if it equals one of the sample's choices.
        language: the language of the articles; by default the sample's metadata `language`, else
            English.

    Raises:
        ScoringError: a pattern takes too long.
    """
    options = _options(
        sample,
        language,
        ignore_case,
        ignore_punctuation,
        ignore_numbers,
        ignore_whitespace,
        ignore_articles,
        ignore_patterns,
        strip,
    )
    normalised_answer = _normalise(answer.text, options)
    choices = (
        {_target(choice, options) for choice in sample.choices}
        if among_choices
        else None
    )
    for target in sample.targets:
        normalised_target = _target(target, options)
        emptied = (
            not normalised_target
            and bool(target)
            and (options.numbers or bool(options.patterns))
        )
        if emptied or (choices is not None and normalised_target not in choices):
            continue
        if normalised_answer == normalised_target:
            return Score(1.0, "correct", f"equals the target '{shortened(target)}'")
        if partial and _contains_target(normalised_answer, normalised_target):
            score = Score(1.0, "correct", f"holds the target '{shortened(target)}'")
            return with_evidence(score, answer.text, named=[target])
    verb = "holds" if partial else "equals"
    return Score(
        0.0,
        "incorrect",
        f"'{shortened(answer.text)}' {verb} none of the {len(sample.targets)} targets",
    )


def normalised(
    sample: Sample,
    text: str,
    *,
    partial: bool = False,
    among_choices: bool = False,
    **options: Any,
) -> str:
    """Return a text as the scorer with these options compares it."""
    return _normalise(text, _options(sample, **options))


class _Options(NamedTuple):
    case: bool
    punctuation: bool
    numbers: bool
    whitespace: bool
    articles: str
    patterns: tuple[str, ...]
    strip: bool


def _options(
    sample: Sample,
    language: str | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
    ignore_whitespace: bool = False,
    ignore_articles: bool = False,
    ignore_patterns: Sequence[str] = (),
    strip: bool = True,
) -> _Options:
    articles = (language_of(sample, language) or "en") if ignore_articles else ""
    spaces = ignore_whitespace or ignore_articles
    return _Options(
        ignore_case,
        ignore_punctuation,
        ignore_numbers,
        spaces,
        articles,
        tuple(ignore_patterns),
        strip,
    )


def _normalise(text: str, options: _Options) -> str:
    text = unicodedata.normalize("NFC", text)
    if options.patterns:
        try:
            text = bounded.call(
                _remove_patterns,
                options.patterns,
                text,
                seconds=_SECONDS,
                key=options.patterns,
            )
        except (bounded.LimitExceeded, bounded.Raised) as error:
            raise ScoringError(
                f"The option 'ignore_patterns' could not be applied: {error}."
            ) from None
    if options.case:
        text = unicodedata.normalize("NFC", text.casefold())
    if options.punctuation:
        text = "".join(
            char
            for char in text
            if char.isalnum() or unicodedata.category(char)[0] not in "PS"
        )
    if options.numbers:
        text = "".join(char for char in text if not char.isdigit())
    if options.articles:
        text = without_articles(text, options.articles)
    if options.whitespace:
        return " ".join(text.split())
    return text.strip() if options.strip else text


_target = lru_cache(maxsize=4096)(_normalise)


def _remove_patterns(patterns: tuple[str, ...], text: str) -> str:
    for pattern in patterns:
        text = re.sub(pattern, "", text)
    return text


def _contains_target(text: str, target: str) -> bool:
    """Return whether a target stands in a text as whole words."""
    if not target.strip():
        return False
    before, after = (
        next((f"[{chars}]" for chars in _SAME_WORD if re.match(f"[{chars}]", char)), "")
        for char in (target[0], target[-1])
    )
    start = f"(?<!{before})" if before else ""
    if after == "[가-힣]":
        end = _ENDINGS
    elif after:
        end = f"(?!{after})"
    else:
        end = ""
    return (
        re.search(
            (
                f"{start}{re.escape(target)}(?={end})"
                if end
                else f"{start}{re.escape(target)}"
            ),
            text,
        )
        is not None
    )
