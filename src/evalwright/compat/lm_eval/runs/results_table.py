"""The table of results that lm_eval's command prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.compat.lm_eval.runs.names import depths
from evalwright.extend import inert


def make_table(
    result_dict: Mapping[str, Any], column: str = "results", sort_results: bool = False
) -> str:
    """Format results, or groups, as a Markdown table with a line for each metric."""
    metrics_by_name = result_dict[column]
    title = "Groups" if column == "groups" else "Tasks"
    rows: list[Sequence[Any]] = [
        (title, "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr")
    ]
    names = sorted(metrics_by_name) if sort_results else metrics_by_name
    for name, depth in depths(result_dict.get("group_subtasks", {}), names):
        alias = f"{' ' * depth + '- ' if depth else ''}{metrics_by_name[name].get('alias', name)}"
        first = [alias, str(result_dict["versions"].get(name, "N/A"))]
        better = result_dict.get("higher_is_better", {}).get(name, {})
        for key in sorted(metrics_by_name[name]):
            metric, comma, pipeline = key.partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            error = metrics_by_name[name].get(f"{metric}_stderr,{pipeline}")
            arrow = {True: "↑", False: "↓"}.get(better.get(metric), "")
            shots = str(result_dict.get("n-shot", {}).get(name, ""))
            error_cells = ("", "") if error is None else ("±", error)
            rows.append(
                (
                    *first,
                    pipeline,
                    shots,
                    metric,
                    arrow,
                    metrics_by_name[name][key],
                    *error_cells,
                )
            )
            first = ["", ""]
    cells = [
        [f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in rows
    ]
    texts = [[inert(cell).replace("|", "\\|") for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = (3, 6, 8)
    rule = [
        "-" * (n - 1) + ":" if i in right else "-" * max(n, 1)
        for i, n in enumerate(widths)
    ]
    lines = [[cell.ljust(n) for cell, n in zip(texts[0], widths, strict=True)], rule]
    for row in texts[1:]:
        places = enumerate(zip(row, widths, strict=True))
        lines.append(
            [cell.rjust(n) if i in right else cell.ljust(n) for i, (cell, n) in places]
        )
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)
