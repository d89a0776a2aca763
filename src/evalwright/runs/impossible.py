"""Values of a `run.json` that are impossible: a negative count, an infinite cost, an invalid date.

A record from someone else may say whatever its sender likes. What can be compared with the
samples is compared with them (`confirmed`); the checks here fail whatever the samples are, so
no reader opens such a record.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from evalwright.core.text import printable
from evalwright.metrics.registry import BOUNDED

MAX_ID_BYTES = 255
"""Longest name of a folder."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SEPARATORS = "/\\"
_UNSIGNED_PARTS = ("usage", "hardware")
"""Parts of the record in which every number is a count, an amount or a time."""
_TASK_COUNTS = ("n_samples", "n_missing", "n_unsure", "n_judged", "n_judge_failed")
_METRIC_COUNTS = ("n", "n_missing", "n_unsure", "n_clusters")
_WHOLE_USAGE = frozenset(
    {"requested", "asked", "stored", "joined", "failed", "retries", "damaged"}
)
_SLACK = 1e-9
"""How far rounding may take a share out of the range from 0 to 1."""


def impossible_figure(record: Mapping[str, Any]) -> str:
    """Find the first impossible value or name, as "'field' is ..., ..."; "" where there is none.

    Args:
        record: `run.json`, whose values have the types of its schema.
    """
    return next(_impossible(record), "")


def impossible_id(name: str) -> str:
    """Say why a text cannot be the name of a run, and thus of its folder; "" where it can."""
    if not name.strip(". "):
        return "which names no folder"
    if any(char in _SEPARATORS for char in name):
        return "which leads to another folder"
    if has_control(name):
        return "which has control characters"
    if len(name.encode(errors="replace")) > MAX_ID_BYTES:
        return f"which is longer than {MAX_ID_BYTES} bytes"
    return ""


def impossible_time(text: str) -> str:
    """Say why a text cannot be the time of a record; "" where it can."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return "which cannot be a date and time (2026-11-20T09:30:00+00:00 can)"
    return ""


def impossible_amount(number: Any) -> str:
    """Say why a number cannot be an amount, a cost or a time span; "" where it can.

    Also "" for anything that is not a number.
    """
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return ""
    if not math.isfinite(number):
        return "which is not finite"
    return "which is below 0" if number < 0 else ""


def impossible_count(number: Any) -> str:
    """Say why a number cannot be a count.

    "" where it can, and for anything that is not a number.
    """
    reason = impossible_amount(number)
    if not reason and isinstance(number, float) and not number.is_integer():
        return "which is no whole number"
    return reason


def impossible_amounts(figures: Mapping[str, Any], where: str) -> Iterator[str]:
    """Find the impossible counts, amounts and times in a part of a record; `where` is its name."""
    yield from _amounts(figures, where)


def _impossible(record: Mapping[str, Any]) -> Iterator[str]:
    yield from _fault("id", record["id"], impossible_id(record["id"]))
    yield from _fault("started", record["started"], impossible_time(record["started"]))
    yield from _fault(
        "seconds", record.get("seconds"), impossible_amount(record.get("seconds"))
    )
    for section in _UNSIGNED_PARTS:
        yield from _amounts(record.get(section), section)
    samples = record["samples"]
    yield from _fault(
        "samples.records",
        samples.get("records"),
        impossible_count(samples.get("records")),
    )
    digest = samples.get("sha256")
    if digest is not None and not _SHA256.fullmatch(digest):
        yield from _fault("samples.sha256", digest, "which is no SHA-256")
    for number, shard in enumerate(record.get("merged_from") or ()):
        where = f"merged_from.{number}"
        if "started" in shard:
            yield from _fault(
                f"{where}.started", shard["started"], impossible_time(shard["started"])
            )
        yield from _fault(
            f"{where}.seconds",
            shard.get("seconds"),
            impossible_amount(shard.get("seconds")),
        )
    yield from _part_faults(record)
    for number, task in enumerate(record["tasks"]):
        yield from _task_faults(task, f"tasks.{number}")
    for number, group in enumerate(record.get("groups") or ()):
        for metric_index, metric in enumerate(group.get("metrics") or ()):
            yield from _metric_faults(metric, f"groups.{number}.metrics.{metric_index}")


def _part_faults(record: Mapping[str, Any]) -> Iterator[str]:
    """Find faults in the fields that say which part of the samples was requested."""
    limit = record["configuration"].get("limit")
    if limit is not None:
        is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
        reason = (impossible_amount(limit) if is_number else "") or (
            "" if is_number and limit else "which is no limit"
        )
        yield from _fault("configuration.limit", limit, reason)
    for number, task_stopping in enumerate(
        (record.get("stopping") or {}).get("tasks") or ()
    ):
        for field in ("asked", "of"):
            count = task_stopping.get(field)
            yield from _fault(
                f"stopping.tasks.{number}.{field}", count, impossible_count(count)
            )
        if task_stopping.get("asked", 0) > task_stopping.get("of", 0):
            yield from _fault(
                f"stopping.tasks.{number}.asked",
                task_stopping["asked"],
                f"of {task_stopping.get('of')} answers",
            )


def _task_faults(task: Mapping[str, Any], where: str) -> Iterator[str]:
    name = task.get("name")
    if isinstance(name, str) and has_control(name):
        yield from _fault(f"{where}.name", name, "which has control characters")
    for field in _TASK_COUNTS:
        yield from _fault(
            f"{where}.{field}", task.get(field), impossible_count(task.get(field))
        )
    n_samples = task.get("n_samples")
    for field in ("n_missing", "n_unsure"):
        count = task.get(field)
        if (
            isinstance(n_samples, (int, float))
            and isinstance(count, (int, float))
            and count > n_samples
        ):
            yield from _fault(f"{where}.{field}", count, f"of {n_samples} samples")
    draws = task.get("draws")
    if isinstance(draws, (int, float)):
        reason = impossible_count(draws) or ("which is below 1" if draws < 1 else "")
        yield from _fault(f"{where}.draws", draws, reason)
    for field in ("outcomes", "failures"):
        for outcome, count in (task.get(field) or {}).items():
            yield from _fault(
                f"{where}.{field}.{outcome}", count, impossible_count(count)
            )
    for number, metric in enumerate(task.get("metrics") or ()):
        yield from _metric_faults(metric, f"{where}.metrics.{number}")
    for key, metrics_by_value in (task.get("slices") or {}).items():
        for slice_name, metrics in metrics_by_value.items():
            for number, metric in enumerate(metrics):
                yield from _metric_faults(
                    metric, f"{where}.slices.{key}.{slice_name}.{number}"
                )


def _metric_faults(metric: Mapping[str, Any], where: str) -> Iterator[str]:
    for field in ("label", "scorer"):
        name = metric.get(field)
        if isinstance(name, str) and has_control(name):
            yield from _fault(f"{where}.{field}", name, "which has control characters")
    for field in _METRIC_COUNTS:
        yield from _fault(
            f"{where}.{field}", metric.get(field), impossible_count(metric.get(field))
        )
    error = metric.get("standard_error")
    if isinstance(error, (int, float)) and error < 0:
        yield from _fault(f"{where}.standard_error", error, "which is below 0")
    level = metric.get("level")
    if isinstance(level, (int, float)) and not 0 < level < 1:
        yield from _fault(f"{where}.level", level, "which is not between 0 and 1")
    n = metric.get("n")
    n_unsure = metric.get("n_unsure")
    if (
        isinstance(n, (int, float))
        and isinstance(n_unsure, (int, float))
        and n_unsure > n
    ):
        yield from _fault(f"{where}.n_unsure", n_unsure, f"of {n} scores")
    ends = metric.get("unsure_range")
    if ends is not None and not _are_ends(ends):
        yield from _fault(
            f"{where}.unsure_range", ends, "which is not two numbers in order"
        )
    value = metric.get("value")
    kind = metric.get("kind")
    is_share = kind in BOUNDED and kind != "chance-normalised"
    if (
        is_share
        and isinstance(value, (int, float))
        and not -_SLACK <= value <= 1 + _SLACK
    ):
        yield from _fault(
            f"{where}.value", value, f"which is outside the range of '{kind}', 0 to 1"
        )


def _are_ends(ends: Any) -> bool:
    """Tell whether a value is the lower and the upper end of a range."""
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    numbers = [
        end for end in ends if isinstance(end, (int, float)) and math.isfinite(end)
    ]
    return len(numbers) == 2 and numbers[0] <= numbers[1]


def _amounts(figures: Any, where: str) -> Iterator[str]:
    """Find faults among the numbers of a part of the record that must not be negative."""
    if isinstance(figures, Mapping):
        for key, inner in figures.items():
            yield from _amounts(inner, f"{where}.{key}")
    elif isinstance(figures, list):
        for index, inner in enumerate(figures):
            yield from _amounts(inner, f"{where}.{index}")
    else:
        is_count = where.rpartition(".")[2] in _WHOLE_USAGE or "_tokens" in where
        is_rate = "per_second" in where
        judge = impossible_count if is_count and not is_rate else impossible_amount
        yield from _fault(where, figures, judge(figures))


def _fault(field: str, figure: Any, reason: str) -> Iterator[str]:
    if reason:
        text = f"'{figure}'" if isinstance(figure, str) else repr(figure)
        yield f"'{printable(field)}' is {printable(text)[:80]}, {reason}"


def has_control(name: str) -> bool:
    """Tell whether a name contains control characters: line ends, escapes, NUL."""
    return any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in name)
