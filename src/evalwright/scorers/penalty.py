"""The option `language_penalty` of every scorer: lowers scores of replies in the wrong language.

    scorers: [{choice: {language_penalty: {expected: ko, combine: multiply}}}]

The metrics of bleu, chrf, ter and perplexity are computed from counts that no penalty can change,
so those scorers refuse the option.

`combine` is `multiply` (default), which multiplies the value by the share of the reply that is in
the language, or `gate`, which keeps the value if that share is at least `least` (0.5) and makes it
0 otherwise. `expected` is a language code; by default it is the sample's metadata `language`. The
share is that of `text/spoken.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Scored
from evalwright.scorers.text.languages import check_language, language_of
from evalwright.scorers.text.spoken import spoken

OPTION = "language_penalty"
_COMBINE = ("multiply", "gate")
_OF_COUNTS = ("bleu", "chrf", "chrf++", "perplexity", "ter")


def check_penalty(settings: object, scorer: str = "") -> dict[str, Any]:
    """Check the settings of a penalty and add defaults.

    Raises:
        ConfigurationError: a setting is wrong, or a penalty would not change this scorer's metrics.
    """
    if scorer in _OF_COUNTS:
        raise ConfigurationError(
            f"The scorer '{scorer}' takes no language_penalty: its metric is made of"
            " counts over all samples, not of their values, so the penalty would"
            " change nothing. Add the scorer 'language' beside it."
        )
    defaults = {"expected": None, "combine": "multiply", "least": 0.5}
    if not isinstance(settings, Mapping) or not set(settings) <= set(defaults):
        raise ConfigurationError(
            "The option 'language_penalty' is a mapping with the keys"
            f" {', '.join(defaults)}, such as {{expected: ko}}, not {settings!r}."
        )
    full = {**defaults, **settings}
    check_language(full["expected"])
    least = full["least"]
    if (
        full["combine"] not in _COMBINE
        or isinstance(least, bool)
        or not isinstance(least, int | float)
    ):
        raise ConfigurationError(
            "In the option 'language_penalty', combine is one of"
            f" {', '.join(_COMBINE)}, and least a number, not {full['combine']!r},"
            f" {least!r}."
        )
    if not 0 <= least <= 1:
        raise ConfigurationError(
            f"In the option 'language_penalty', least is from 0 to 1, not {least!r}."
        )
    return full


def penalised(
    score: Scored, sample: Sample, answer: Answer, settings: Mapping[str, Any]
) -> Scored:
    """Apply the penalty to a score; values below 0 stay.

    It adds the parts "language" (the share in the language) and "before" (the value without it).
    """
    if not isinstance(score, Score):
        return score
    code = language_of(sample, settings["expected"])
    if not code:
        raise ScoringError(
            f"The sample '{sample.id}' names no language: set its metadata 'language'"
            " or the penalty's 'expected'."
        )
    spoken_share = spoken(answer.text, code)
    factor = (
        spoken_share.share
        if settings["combine"] == "multiply"
        else float(spoken_share.share >= settings["least"])
    )
    value = score.value * factor if score.value > 0 else score.value
    others = (
        f", the rest {', '.join(spoken_share.others)}" if spoken_share.others else ""
    )
    why = "; ".join(
        reason
        for reason in (
            score.explanation,
            f"{spoken_share.share:.0%} in '{code}'{others}",
        )
        if reason
    )
    return replace(
        score,
        value=value,
        explanation=why,
        parts={**score.parts, "language": spoken_share.share, "before": score.value},
    )
