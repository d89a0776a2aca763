"""Names that stand for several tasks, and the published averages over them.

A group's average is over all tasks below it, however deep, weighted by their rows or not; a tag only stands for its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from evalwright.compat.lm_eval.tasks.files import FunctionRef
from evalwright.core.errors import TaskError, check_known


@dataclass(frozen=True, slots=True)
class Average:
    """One entry of `aggregate_metric_list`. filter_list None: every pipeline that any task has this metric for."""

    metric: str
    aggregation: str = "mean"
    weight_by_size: bool = True
    filter_list: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group. children: what stands directly in it; tasks: all tasks below it, in order."""

    name: str
    alias: str
    averages: tuple[Average, ...] = ()
    version: str = "N/A"
    children: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    findings: tuple[str, ...] = field(default=(), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        out = asdict(self)
        out.pop("findings")
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Group:
        """The inverse of `as_dict`."""
        averages = tuple(
            Average(
                **{**one, "filter_list": None if one["filter_list"] is None else tuple(one["filter_list"])}
            )
            for one in data["averages"]
        )
        lists = {key: tuple(data[key]) for key in ("children", "tasks")}
        return cls(**{**data, **lists, "alias": str(data["alias"]), "averages": averages})


def averages_of(given: Any, group: str) -> tuple[tuple[Average, ...], tuple[str, ...]]:
    """`aggregate_metric_list` as averages, and what is odd in it. Raises UnknownName at an unknown key."""
    known = [one.name for one in fields(Average)]
    out, findings = [], []
    for entry in [given] if isinstance(given, Mapping) else given or ():
        check_known(f"key of `aggregate_metric_list` of the group '{group}'", entry, known, "")
        if "metric" not in entry:
            raise TaskError(
                f"The group '{group}': every entry of `aggregate_metric_list` needs the key `metric`."
            )
        how = entry.get("aggregation", "mean")
        if isinstance(how, FunctionRef):
            # The published runner takes a function here and never calls it.
            findings.append(f"`aggregation: {how}` has no effect, as published: the group is averaged.")
            how = "mean"
        if how != "mean":
            raise TaskError(f"The group '{group}' is averaged by '{how}'; only mean is known.")
        weight = entry.get("weight_by_size", True)
        if not isinstance(weight, bool):
            findings.append(
                f"`weight_by_size: {weight}` is neither true nor false and counts as {bool(weight)}."
            )
        pipelines = entry.get("filter_list")
        out.append(
            Average(
                str(entry["metric"]),
                how,
                bool(weight),
                None
                if pipelines is None
                else (pipelines,)
                if isinstance(pipelines, str)
                else tuple(pipelines),
            )
        )
    return tuple(out), tuple(findings)


Results = Mapping[str, Mapping[str, Any]]
"""Task -> "metric,pipeline" -> value, with "metric_stderr,pipeline" and "sample_len" beside."""


def group_results(group: Group, results: Results) -> dict[str, Any]:
    """The group's averages in the published form."""
    out: dict[str, Any] = {"alias": group.alias, "name": group.name}
    if not group.averages:
        return out
    there = [results[name] for name in group.tasks if name in results]
    out["sample_len"] = sum(result.get("sample_len", 0) for result in there)
    counts: dict[str, int] = {}
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(average.metric, there):
            key, error_key = f"{average.metric},{pipeline}", f"{average.metric}_stderr,{pipeline}"
            having = [result for result in there if key in result]
            if not having:
                continue
            if any(not isinstance(result[key], int | float) for result in having):
                out[key] = out[error_key] = "N/A"
                continue
            sizes = [result.get("sample_len", 0) for result in having]
            weights = sizes if average.weight_by_size else [1] * len(having)
            out[key] = sum(w * result[key] for w, result in zip(weights, having, strict=True)) / sum(weights)
            counts[key] = sum(sizes)
            errors = [result.get(error_key) for result in having]
            out[error_key] = _error(errors, sizes, average.weight_by_size)
    if counts:
        out["sample_count"] = counts
    return out


def pipelines_of_metric(metric: str, results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The filter pipelines that any of the results has a metric for."""
    start = f"{metric},"
    return sorted({key[len(start) :] for result in results for key in result if key.startswith(start)})


def _error(errors: Sequence[Any], sizes: Sequence[int], weighted: bool) -> Any:
    """Weighted: from the pooled variance within tasks. Unweighted: of a mean of independent means."""
    if any(not isinstance(error, int | float) for error in errors):
        return "N/A"
    if not weighted:
        return math.sqrt(sum(error**2 for error in errors)) / len(errors)
    within = sum((size - 1) * size * error**2 for size, error in zip(sizes, errors, strict=True))
    freedom = sum(sizes) - len(sizes)
    return math.sqrt(within / freedom / sum(sizes)) if freedom else "N/A"
