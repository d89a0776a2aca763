"""Criteria of a rubric: what each asks, how many points it is worth, and the classes that an answer
can have in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known

MET: Mapping[str, float] = {"not met": 0.0, "met": 1.0}
"""The classes of a criterion that names none, and the share of its points that each gets."""
SEVERITY: Mapping[str, float] = {
    "generic": 1.0,
    "low": 1.0,
    "medium": 5.0,
    "high": 10.0,
}
"""Points, in words."""
_KEYS = ("name", "text", "criterion", "points", "severity", "classes")
_MOST_NAME = 60
_MOST_POINTS = 10**6
"""So that a sum of points is always a number."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """name: of its part of the score. points: below 0 where meeting it is bad. classes: credit from
    0 to 1 by class.
    """

    name: str
    text: str
    points: float
    classes: Mapping[str, float]


def read_criteria(given: Any, where: str, classes: Any = None) -> tuple[Criterion, ...]:
    """Criteria as a task writes them. where: what errors call the list; classes: of those that name
    none. Raises ConfigurationError, UnknownName.
    """
    if not isinstance(given, list | tuple) or not given:
        raise ConfigurationError(
            f"{where} is a list of texts, or of mappings with `text`, not {given!r}."
        )
    places = ((one, f"{where}, number {number}") for number, one in enumerate(given, 1))
    found = _numbered([_criterion(*one, classes) for one in places])
    for name, times in Counter(one.name for one in found).items():
        if times > 1:
            raise ConfigurationError(
                f"{where} has '{name}' twice: leave one out, or give it another `name`."
            )
    if not any(one.points > 0 for one in found):
        raise ConfigurationError(f"{where} needs a criterion with points above 0.")
    return found


def _numbered(given: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """With a number after names that are the same beginning of several texts."""
    texts: dict[str, list[str]] = {}
    found: list[Criterion] = []
    for one in given:
        same = texts.setdefault(one.name, [])
        if (
            one.name != one.text
            and one.name == short_name(one.text)
            and one.text not in same
        ):
            same.append(one.text)
            one = (
                one
                if len(same) == 1
                else replace(one, name=f"{one.name} ({len(same)})")
            )
        found.append(one)
    return tuple(found)


def _criterion(given: Any, where: str, classes: Any) -> Criterion:
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"{where}, is a text, or a mapping with `text`, not {given!r}."
        )
    check_known("key of a criterion", given, _KEYS)
    text = " ".join(str(given.get("text") or given.get("criterion") or "").split())
    if not text:
        raise ConfigurationError(f"{where}, has no `text`.")
    name = str(given.get("name") or short_name(text))
    return Criterion(
        name,
        text,
        _points(given, where),
        _classes(given.get("classes") or classes, where),
    )


def short_name(text: str) -> str:
    """What a criterion is called that has no name: its text, or the beginning of it."""
    return text if len(text) <= _MOST_NAME else f"{text[: _MOST_NAME - 3]}..."


def _points(given: Mapping[str, Any], where: str) -> float:
    if "severity" in given:
        if "points" in given:
            raise ConfigurationError(
                f"{where}, has both `points` and `severity`: give one."
            )
        severity = str(given["severity"]).lower()
        check_known("severity", [severity], SEVERITY)
        return SEVERITY[severity]
    points = given.get("points", 1)
    if not _is_number(points) or points == 0 or not abs(points) <= _MOST_POINTS:
        raise ConfigurationError(
            f"{where}: `points` is a number other than 0, from {-_MOST_POINTS:,} to"
            f" {_MOST_POINTS:,}, not {points!r}."
        )
    return float(points)


def _classes(given: Any, where: str) -> Mapping[str, float]:
    if given is None:
        return MET
    good = isinstance(given, Mapping) and len(given) > 1
    if not good or not all(
        _is_number(credit) and 0 <= credit <= 1 for credit in given.values()
    ):
        raise ConfigurationError(
            f"{where}: `classes` are two or more names, each with the share of the"
            " points that it gets, such as {rude: 0, neutral: 0.5, polite: 1}, not"
            f" {given!r}."
        )
    classes = {str(name).strip(): float(credit) for name, credit in given.items()}
    if len({name.casefold() for name in classes}) < len(given):
        raise ConfigurationError(
            f"{where}: two `classes` differ in capitals or spaces alone."
        )
    return classes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def points_of(criteria: Sequence[Criterion], credits: Mapping[str, float]) -> float:
    """The points reached, as a share of all that can be: sum of points times credit over the sum of
    points above 0, within 0 and 1.
    """
    reached = sum(one.points * credits[one.name] for one in criteria)
    return min(1.0, max(0.0, reached / sum(max(one.points, 0.0) for one in criteria)))
