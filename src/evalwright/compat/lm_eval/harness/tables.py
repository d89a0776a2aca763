"""The Markdown tables that lm_eval prints after a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.reports.text import inert


def table(results: Mapping[str, Any], part: str) -> str:
    """The results (or groups) as the Markdown table that is printed there, a line for each metric."""
    title = "Groups" if part == "groups" else "Tasks"
    rows: list[Sequence[str]] = [(title, "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr")]
    depths = _depths(results.get("group_subtasks", {}), results[part])
    for name, depth in depths.items():
        found = results[part][name]
        alias = str(found.get("alias", name))
        first = [" " * depth + "- " + alias if depth else alias, str(results["versions"].get(name, "N/A"))]
        better = results.get("higher_is_better", {}).get(name, {})
        for key in sorted(found):
            metric, comma, pipeline = key.partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            error = found.get(f"{metric}_stderr,{pipeline}")
            arrow = {True: "↑", False: "↓"}.get(better.get(metric), "")
            shots = str(results.get("n-shot", {}).get(name, ""))
            ends = ("", "") if error is None else ("±", _number(error))
            rows.append((*first, pipeline, shots, metric, arrow, _number(found[key]), *ends))
            first = ["", ""]
    return _aligned(rows)


def _depths(children: Mapping[str, Sequence[str]], names: Mapping[str, Any]) -> dict[str, int]:
    """Names with how deep each is below its groups, in the order of the tree."""
    inner = {child for below in children.values() for child in below}
    out: dict[str, int] = {}

    def add(name: str, depth: int) -> None:
        if name in names and name not in out:
            out[name] = depth
            for child in children.get(name, ()):
                add(child, depth + 1)

    for name in names:
        if name not in inner:
            add(name, 0)
    return {**out, **{name: 0 for name in names if name not in out}}


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    texts = [[inert(cell).replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))]
    right = {3, 6, 8}
    lines = [
        "|"
        + "|".join(
            cell.rjust(width) if i in right and number else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + "|"
        for number, row in enumerate(texts)
    ]
    rule = (
        "|"
        + "|".join(
            "-" * (width - 1) + ":" if i in right else "-" * max(width, 1) for i, width in enumerate(widths)
        )
        + "|"
    )
    return "\n".join([lines[0], rule, *lines[1:]])
