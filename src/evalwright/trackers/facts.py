"""What a tracker is given about a run: names, settings, numbers and files, without any secret."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from evalwright.core.secrets import masked, masked_arguments
from evalwright.runs.reader import Run
from evalwright.runs.writer import RUN_FILE

_NOT_NAME = re.compile(r"[^\w.\-/ ]+")
"""Characters that not every tracker allows in a name."""


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A finished run, as a tracker gets it.

    Attributes:
        name: the run's name.
        key: identifies the run, also after it was resumed.
        settings: settings as text, by name.
        numbers: metrics by "TASK/METRIC", their intervals by "TASK/METRIC.low" and ".high", and
            counts.
        usage: tokens, requests, US dollars and seconds.
        started: when the run began.
        ended: when it ended.
        files: the record and the samples.
    """

    name: str
    key: str
    settings: Mapping[str, str]
    numbers: Mapping[str, float]
    usage: Mapping[str, float]
    started: datetime
    ended: datetime
    files: tuple[Path, ...]


def describe_run(run: Run, key: str) -> TrackedRun:
    """Collect what a tracker is given about a run: secrets masked, non-finite numbers left out."""
    settings = {
        _tracker_name(name): str(masked(text))
        for name, text in _settings(run).items()
        if text
    }
    numbers = {
        _tracker_name(name): float(number)
        for name, number in _numbers(run)
        if math.isfinite(number)
    }
    started = datetime.fromisoformat(str(run.data["started"]))
    ended = started + timedelta(seconds=float(run.data["seconds"]))
    files = (run.folder / RUN_FILE, run.samples_file)
    return TrackedRun(
        str(masked(run.name)),
        key,
        settings,
        numbers,
        _usage(run),
        started,
        ended,
        files,
    )


def _settings(run: Run) -> dict[str, str]:
    settings = {
        "model": run.model,
        "label": run.label,
        "evalwright": str(run.data.get("evalwright", "")),
    }
    settings |= {"fingerprint": str(run.data["model"].get("fingerprint", ""))}
    settings |= {f"task.{task.name}.version": task.version for task in run.tasks}
    settings |= {
        f"role.{role}": str(role_model.get("name", ""))
        for role, role_model in run.data.get("roles", {}).items()
    }
    for name, value in masked_arguments(dict(run.data["configuration"])).items():
        plain = (
            value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False, default=str)
        )
        settings[f"configuration.{name}"] = plain
    return settings


def _numbers(run: Run) -> Iterator[tuple[str, float]]:
    owners = [(task.name, task.metrics) for task in run.tasks]
    for owner, metrics in [
        *owners,
        *((f"group.{group.name}", group.metrics) for group in run.groups),
    ]:
        for metric in metrics:
            estimate = metric.estimate
            for end, value in (
                ("", estimate.value),
                (".low", estimate.low),
                (".high", estimate.high),
            ):
                # At most two levels: some trackers keep each level as a folder or file.
                yield (
                    f"{owner.replace('/', '.')}/{metric.label.replace('/', '.')}{end}",
                    value,
                )
    for task in run.tasks:
        for count in ("samples", "missing", "unsure"):
            yield f"{task.name.replace('/', '.')}/{count}", getattr(task, f"n_{count}")


def _usage(run: Run) -> dict[str, float]:
    usage: Mapping[str, Any] = run.data["usage"]
    numbers = {
        "seconds": run.data["seconds"],
        "cost_usd": run.cost,
        **(usage.get("usage") or {}),
    }
    numbers |= {
        "requests_sent": usage.get("sent"),
        "responses_stored": usage.get("stored"),
    }
    return {
        f"usage/{name}": float(number)
        for name, number in numbers.items()
        if isinstance(number, int | float)
    }


def _tracker_name(name: str) -> str:
    return _NOT_NAME.sub("_", str(masked(name)))[:250]
