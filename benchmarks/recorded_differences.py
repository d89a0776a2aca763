"""Two records of numbers held against each other, exactly: numbers, truth values and labels; never
wording or layout.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = frozenset(
    [
        "label",
        "answer",
        "id",
        "task",
        "cluster",
        "finish_reason",
        "choice",
        "predicted",
        "outcome",
        "verdict",
        "better",
        "result",
        "model",
        "kind",
        "scorer",
        "stop",
    ]
)
"""Keys whose texts are compared; a text elsewhere is wording."""

UNSTABLE = frozenset(
    [
        "timing",
        "latency",
        "seconds",
        "started",
        "date",
        "hardware",
        "environment",
        "git_commit",
        "sha256",
        "identity",
        "folder",
        "created",
        "usage",
        "evalwright",
        "explanation",
        "cost",
        "throughput",
        "content_hash",
        "file",
        "files",
        "path",
        "elapsed",
        "total_evaluation_time_seconds",
        "start_time",
        "end_time",
    ]
)
"""Keys that tell of a machine, a time or a place."""


@dataclass(frozen=True)
class Difference:
    """One difference. where: which record. part: run and task, or output. what: metric, scorer or
    key.
    """

    where: str
    part: str
    what: str
    at: str
    old: Any
    new: Any

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def numbers_of_run(folder: Path) -> dict[str, Any]:
    """What a run's files say that must not change: metrics with all their figures, and each
    sample's scores and answer.
    """
    data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    tasks: dict[str, Any] = {}
    for task in data["tasks"]:
        metrics = {metric["label"]: metric for metric in task["metrics"]}
        slices = {
            f"{key}={value} {metric['label']}": metric
            for key, values in task.get("slices", {}).items()
            for value, slice_metrics in values.items()
            for metric in slice_metrics
        }
        counts = {
            key: task[key] for key in ("n_samples", "n_missing", "failures", "version")
        }
        tasks[task["name"]] = {
            "counts": counts,
            "metrics": metrics,
            "slices": slices,
            "samples": {},
        }
    with (folder / "samples.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            key = f"{row['id']} draw {row.get('draw', 0)}"
            sample = {
                "answer": row.get("answer"),
                "scores": row.get("scores", {}),
                "failure": _kind(row.get("failure")),
            }
            sample["score_failures"] = {
                scorer: _kind(failure)
                for scorer, failure in row.get("score_failures", {}).items()
            }
            tasks.setdefault(row["task"], {"samples": {}})["samples"][key] = dict(
                _leaves(sample)
            )
    usage = data.get("usage") or {}
    extra = {
        key: data[key]
        for key in ("groups", "stopping", "conversion", "differences")
        if key in data
    }
    numbers = sum(len(list(_leaves(task))) for task in tasks.values())
    return {
        "tasks": tasks,
        "extra": extra,
        "fingerprint": (data.get("model") or {}).get("fingerprint"),
        "sent": usage.get("asked", 0),
        "numbers": numbers,
    }


def numbers_of_text(path: Path) -> Any:
    """A written file's numbers: JSON as it is, of any other text the numbers in their order, dates
    and hashes left out.
    """
    text = path.read_text(encoding="utf-8-sig")
    try:
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        pass
    text = re.sub(
        r"\d{4}-\d\d-\d\d(?:[T ][\d:.+]+)?|\b[0-9a-f]{8,}\b|timestamp=\S+|time=\S+",
        " ",
        text,
    )
    return [
        float(number)
        for number in re.findall(
            r"(?<![\w.])[-−]?\d+(?:\.\d+)?", text.replace(",", " ").replace("−", "-")
        )
    ]


def _leaves(
    data: Any, path: tuple[str, ...] = (), renamed: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Any]]:
    """(path, value) of all that is compared in a JSON value."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key not in UNSTABLE:
                yield from _leaves(
                    value, (*path, (renamed or {}).get(key, key)), renamed
                )
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _leaves(value, (*path, str(number)), renamed)
    elif not isinstance(data, str) or path[-1] in TEXTS or " draw " in path[-1]:
        yield "\x1f".join(path), data


def _kind(failure: Any) -> Any:
    return failure.get("kind") if isinstance(failure, Mapping) else failure


def differences(
    where: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    renamed: Mapping[str, str],
) -> list[Difference]:
    """List everything that differs, part by part."""
    found_differences: list[Difference] = []
    for part in dict.fromkeys([*old, *new]):
        name = renamed.get(part, part)
        if part not in old and part in renamed.values():
            continue
        if name not in new or part not in old:
            if not where.startswith("runs, old") or part in old:
                found_differences.append(
                    Difference(
                        where,
                        part,
                        "whole",
                        "",
                        "there" if part in old else "missing",
                        "there" if name in new else "missing",
                    )
                )
            continue
        before = dict(_leaves(_drop_sent(old[part]), (), renamed))
        after = dict(_leaves(_drop_sent(new[name])))
        for path in dict.fromkeys([*before, *after]):
            left = before.get(path, "missing")
            right = after.get(path, "missing")
            if json.dumps(left) != json.dumps(right):
                found_differences.append(
                    Difference(
                        where, *_locate_path(part, path.split("\x1f")), left, right
                    )
                )
    return found_differences


def _drop_sent(record: Any) -> Any:
    """Drop what is compared elsewhere (`sent`, `numbers`)."""
    return (
        {key: value for key, value in record.items() if key not in ("sent", "numbers")}
        if isinstance(record, Mapping)
        else record
    )


def _locate_path(part: str, path: Sequence[str]) -> tuple[str, str, str]:
    """(part, what, at) of a path: run and task, then the metric or the scorer, then where in it."""
    if path[0] == "tasks" and len(path) > 3:
        task = path[1]
        kind = path[2]
        steps = list(path[3:])
        if kind == "samples":
            what = steps[2] if steps[1] == "scores" and len(steps) > 2 else steps[1]
            return (
                f"{part} · {task}",
                f"score {what}" if steps[1] == "scores" else steps[1],
                f"{steps[0]}: {'.'.join(steps[3:])}",
            )
        return (
            f"{part} · {task}",
            f"{'metric' if kind == 'metrics' else kind} {steps[0]}",
            ".".join(steps[1:]),
        )
    return (
        part,
        next((step for step in reversed(path) if not step.isdigit()), ""),
        ".".join(path),
    )


def table(differences: Sequence[Difference]) -> str:
    """Markdown: a line for each record, part and metric or scorer, with how many differ and the
    first of them.
    """
    groups: dict[tuple[str, str, str], list[Difference]] = defaultdict(list)
    for difference in differences:
        groups[difference.where, difference.part, difference.what].append(difference)
    if not groups:
        return "No difference."
    lines = [
        (
            "| record | run and task, or output | metric, scorer or key | differ |"
            " first | old | new |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for (where, part, what), ones in groups.items():
        first = ones[0]
        lines.append(
            f"| {where} | {part} | {what} | {len(ones)} | {first.at[:60]} |"
            f" {str(first.old)[:60]!r} | {str(first.new)[:60]!r} |"
        )
    return "\n".join(lines)
