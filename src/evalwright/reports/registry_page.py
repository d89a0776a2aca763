"""The registry of runs as Markdown: a row per run, and for each task what the runs score by domain and the like."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.reports import numbers
from evalwright.reports.markdown import code, escape

_MOST_VALUES = 40


def registry_markdown(index: Mapping[str, Any]) -> str:
    """The page. index: as `analysis.run_index.index_of` makes it."""
    parts = [f"<!-- {index['made_by']} -->", "# Runs", *_runs(index["runs"])]
    for task, keys in index["by_slice"].items():
        for key, values in keys.items():
            parts += _slices(task, key, values, index["runs"])
    if index["damaged"]:
        parts.append("## Not readable")
        parts.append(
            "\n".join(f"- {code(one['folder'])}: {escape(one['error'])}" for one in index["damaged"])
        )
    return "\n\n".join(parts) + "\n"


def _runs(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not runs:
        yield "There are no runs here yet."
        return
    hardware = any("hardware" in run for run in runs)
    shares = list(dict.fromkeys(name for run in runs for name in run.get("shares", ())))
    header = ["Run", "Model", *(["Hardware"] if hardware else [])]
    header += [name.capitalize() for name in shares] or ["Scores"]
    header += ["Failed", "Date"]
    rows = []
    for run in runs:
        # A task's main metric is its first.
        scores = [_share(run.get("shares", {}).get(name)) for name in shares] or ["<br>".join(_mains(run))]
        cells = [code(run["folder"]), code(run["label"])]
        cells += [escape(run.get("hardware", numbers.NOTHING))] if hardware else []
        rows.append([*cells, *scores, numbers.count(run.get("n_failed", 0)), escape(run["date"])])
    yield _table(header, rows)


def _mains(run: Mapping[str, Any]) -> Iterator[str]:
    for name, task in run["tasks"].items():
        for label, found in list(task["metrics"].items())[:1]:
            yield f"{escape(name)} {escape(label)} {_score(found)}"


def _slices(
    task: str, key: str, values: Mapping[str, Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    there = [run for run in runs if any(run["folder"] in found for found in values.values())]
    yield f"## {escape(task)} by {escape(key)}"
    rows = [
        [code(value), *(_score(found.get(run["folder"])) for run in there)]
        for value, found in list(values.items())[:_MOST_VALUES]
    ]
    yield _table([escape(key.capitalize()), *(code(run["folder"]) for run in there)], rows)
    if len(values) > _MOST_VALUES:
        yield f"The other {len(values) - _MOST_VALUES} values stand in index.json."


def _share(found: Mapping[str, Any] | None) -> str:
    """A share in points of 100."""
    return _score(found, 100.0)


def _score(found: Mapping[str, Any] | None, scale: float | None = None) -> str:
    """A number with its interval and n, in points of 100 where it lies between 0 and 1."""
    if found is None or found["value"] is None or math.isnan(found["value"]):
        return numbers.NOTHING
    ends = [found[name] for name in ("low", "high")]
    known = [x for x in (found["value"], *ends) if x is not None and not math.isnan(x)]
    times = scale or (100.0 if all(0 <= x <= 1 for x in known) else 1.0)
    interval = f" [{ends[0] * times:.1f}, {ends[1] * times:.1f}]" if len(known) == 3 else ""
    return f"{found['value'] * times:.1f}{interval}, n {found['n']:,}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = [":--"] * len(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
