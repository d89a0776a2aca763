"""The criteria of a rubric: what each asks, the points it is worth, and its classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known

MET: Mapping[str, float] = {"not met": 0.0, "met": 1.0}
"""Default classes of a criterion, with the share of its points that each earns."""
SEVERITY: Mapping[str, float] = {
    "generic": 1.0,
    "low": 1.0,
    "medium": 5.0,
    "high": 10.0,
}
"""Points of a criterion, by its severity."""
_KEYS = ("name", "text", "criterion", "points", "severity", "classes")
_MAX_NAME_CHARS = 60
_MAX_POINTS = 10**6
"""Most points of a criterion; it keeps every sum of points finite."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of a rubric.

    Attributes:
        name: the key of this criterion in a score's parts.
        text: the question that it asks.
        points: its points; negative if meeting it is bad.
        classes: credit from 0 to 1 for each class.
    """

    name: str
    text: str
    points: float
    classes: Mapping[str, float]


def read_criteria(
    entries: Any, where: str, classes: Any = None
) -> tuple[Criterion, ...]:
    """Read criteria as a task writes them.

    Args:
        entries: texts, or mappings with `text` and further keys.
        where: what error messages call the list.
        classes: for criteria that name none.

    Raises:
        ConfigurationError: a criterion is malformed.
        UnknownName: a criterion has an unknown key or severity.
    """
    if not isinstance(entries, list | tuple) or not entries:
        raise ConfigurationError(
            f"{where} is a list of texts, or of mappings with `text`, not {entries!r}."
        )
    numbered_specs = (
        (spec, f"{where}, number {number}") for number, spec in enumerate(entries, 1)
    )
    criteria = _number_repeated_names(
        [_read_criterion(*numbered_spec, classes) for numbered_spec in numbered_specs]
    )
    for name, times in Counter(criterion.name for criterion in criteria).items():
        if times > 1:
            raise ConfigurationError(
                f"{where} has '{name}' twice: leave one out, or give it another `name`."
            )
    if not any(criterion.points > 0 for criterion in criteria):
        raise ConfigurationError(f"{where} needs a criterion with points above 0.")
    return criteria


def _number_repeated_names(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Number the names of criteria whose texts have the same beginning."""
    texts: dict[str, list[str]] = {}
    numbered: list[Criterion] = []
    for criterion in criteria:
        same = texts.setdefault(criterion.name, [])
        if (
            criterion.name != criterion.text
            and criterion.name == short_name(criterion.text)
            and criterion.text not in same
        ):
            same.append(criterion.text)
            if len(same) > 1:
                criterion = replace(criterion, name=f"{criterion.name} ({len(same)})")
        numbered.append(criterion)
    return tuple(numbered)


def _read_criterion(spec: Any, where: str, classes: Any) -> Criterion:
    if isinstance(spec, str):
        spec = {"text": spec}
    if not isinstance(spec, Mapping):
        raise ConfigurationError(
            f"{where}, is a text, or a mapping with `text`, not {spec!r}."
        )
    check_known("key of a criterion", spec, _KEYS)
    text = " ".join(str(spec.get("text") or spec.get("criterion") or "").split())
    if not text:
        raise ConfigurationError(f"{where}, has no `text`.")
    name = str(spec.get("name") or short_name(text))
    return Criterion(
        name,
        text,
        _read_points(spec, where),
        _read_classes(spec.get("classes") or classes, where),
    )


def short_name(text: str) -> str:
    """Name a criterion by its text, shortened where it is long."""
    return text if len(text) <= _MAX_NAME_CHARS else f"{text[: _MAX_NAME_CHARS - 3]}..."


def _read_points(spec: Mapping[str, Any], where: str) -> float:
    if "severity" in spec:
        if "points" in spec:
            raise ConfigurationError(
                f"{where}, has both `points` and `severity`: give one."
            )
        severity = str(spec["severity"]).lower()
        check_known("severity", [severity], SEVERITY)
        return SEVERITY[severity]
    points = spec.get("points", 1)
    if not _is_number(points) or points == 0 or not abs(points) <= _MAX_POINTS:
        raise ConfigurationError(
            f"{where}: `points` is a number other than 0, from {-_MAX_POINTS:,} to"
            f" {_MAX_POINTS:,}, not {points!r}."
        )
    return float(points)


def _read_classes(credits: Any, where: str) -> Mapping[str, float]:
    if credits is None:
        return MET
    good = isinstance(credits, Mapping) and len(credits) > 1
    if not good or not all(
        _is_number(credit) and 0 <= credit <= 1 for credit in credits.values()
    ):
        raise ConfigurationError(
            f"{where}: `classes` are two or more names, each with the share of the"
            " points that it gets, such as {rude: 0, neutral: 0.5, polite: 1}, not"
            f" {credits!r}."
        )
    classes = {str(name).strip(): float(credit) for name, credit in credits.items()}
    if len({name.casefold() for name in classes}) < len(credits):
        raise ConfigurationError(
            f"{where}: two `classes` differ in capitals or spaces alone."
        )
    return classes


def _is_number(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool)


def share_of_points(
    criteria: Sequence[Criterion], credits: Mapping[str, float]
) -> float:
    """Return the points reached, divided by the sum of the positive points and clipped to 0..1."""
    reached = sum(criterion.points * credits[criterion.name] for criterion in criteria)
    return min(
        1.0,
        max(0.0, reached / sum(max(criterion.points, 0.0) for criterion in criteria)),
    )
