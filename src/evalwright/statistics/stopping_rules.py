"""Parses stopping rules: "accuracy +-0.02", "A beats B", "A differs from B or not by 0.03".

"all pairs" stands for "A beats B" of every two runs, "all pairs or not by 0.03" for the other rule
about two. Each may end in a level: "A beats B at 99%". The default is 95%.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain

Kind = Literal["precision", "beats", "differs"]

EVERY_RUN = "every run"
"""Both names of a rule about all pairs; no run can be meant, because `all pairs` names none."""

_EXAMPLES = (
    "'accuracy +-0.02', 'A beats B', 'A differs from B or not by 0.03', 'all pairs',"
    " each optionally with 'at 99%'"
)
_LONGEST = 500
_NUMBER = r"(?P<number>[^\s]+)"
_LEVEL = re.compile(r"^(?P<rest>.+?)\s+at\s+(?P<level>[^\s%]+)\s*%$", re.IGNORECASE)
_PRECISION = re.compile(rf"^(?P<metric>\S.*?)\s*(?:±|\+\s*/?\s*[-−])\s*{_NUMBER}$")
_BEATS = re.compile(r"^(?P<a>\S.*?)\s+beats\s+(?P<b>\S.*)$", re.IGNORECASE)
_DIFFERS = re.compile(
    rf"^(?P<a>\S.*?)\s+differs\s+from\s+(?P<b>\S.*?)(?:\s+or\s+not)?\s+by\s+{_NUMBER}$",
    re.IGNORECASE,
)
_ALL_PAIRS = re.compile(
    rf"^all\s+pairs(?:(?:\s+differ)?(?:\s+or\s+not)?\s+by\s+{_NUMBER})?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Rule(Plain):
    """A stopping rule; `kind` says which fields are set.

    Args:
        kind: "precision", "beats" or "differs".
        text: the rule as written.
        level: the probability that the final statement is right.
        metric: for "precision".
        a: the first model, for "beats" and "differs"; EVERY_RUN in a rule about all pairs.
        b: the second model.
        margin: for "precision" the half width, for "differs" the least difference that matters.
    """

    kind: Kind
    text: str
    level: float
    metric: str = ""
    a: str = ""
    b: str = ""
    margin: float | None = None


def parse_rule(text: str) -> Rule:
    """Parse a stopping rule (see this module for the forms); names keep their spelling.

    Raises ConfigurationError, which says what cannot be read and gives an example.
    """
    rule_text = " ".join(text.split())
    if len(rule_text) > _LONGEST:
        raise ConfigurationError(
            f"The stopping rule has {len(rule_text)} characters, more than {_LONGEST}. It"
            f" may be {_EXAMPLES}."
        )
    level = 0.95
    condition = rule_text
    if match := _LEVEL.match(rule_text):
        level = _parse_number(match["level"], "The level", rule_text) / 100
        condition = match["rest"]
        if not 0.5 <= level < 1.0:
            raise ConfigurationError(
                f"The level in {rule_text!r} must be at least 50% and below 100%. Write for"
                " example 'A beats B at 99%'."
            )
    if match := _ALL_PAIRS.match(condition):
        if match["number"] is None:
            return Rule("beats", rule_text, level, a=EVERY_RUN, b=EVERY_RUN)
        margin = _parse_margin(match["number"], "The difference", rule_text)
        return Rule(
            "differs", rule_text, level, a=EVERY_RUN, b=EVERY_RUN, margin=margin
        )
    if match := _DIFFERS.match(condition):
        margin = _parse_margin(match["number"], "The difference", rule_text)
        return Rule(
            "differs",
            rule_text,
            level,
            a=match["a"],
            b=_second_model(match, rule_text),
            margin=margin,
        )
    if match := _BEATS.match(condition):
        return Rule(
            "beats", rule_text, level, a=match["a"], b=_second_model(match, rule_text)
        )
    if match := _PRECISION.match(condition):
        margin = _parse_margin(match["number"], "The half width", rule_text)
        return Rule(
            "precision", rule_text, level, metric=match["metric"], margin=margin
        )
    raise ConfigurationError(
        f"The stopping rule {rule_text!r} cannot be read. It may be {_EXAMPLES}."
    )


def _second_model(match: re.Match[str], rule_text: str) -> str:
    if match["a"] == match["b"]:
        raise ConfigurationError(
            f"The stopping rule {rule_text!r} compares {match['a']!r} with itself. Name two"
            " models, as in 'A beats B'."
        )
    return match["b"]


def _parse_margin(written: str, name: str, rule_text: str) -> float:
    value = _parse_number(written, name, rule_text)
    if not 0.0 < value < float("inf"):
        raise ConfigurationError(
            f"{name} in {rule_text!r} must be above 0. Write 0.02 for two points, as in"
            " 'accuracy +-0.02'."
        )
    return value


def _parse_number(written: str, name: str, rule_text: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise ConfigurationError(
            f"{name} in {rule_text!r} must be a number, but is {written!r}. "
            "Write 0.02 for two points, as in 'accuracy +-0.02'."
        ) from None
