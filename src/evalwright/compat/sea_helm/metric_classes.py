"""The table of SEA-HELM's metric classes: what each comes to here (`metrics.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.compat.sea_helm.sea_task import Class, SeaTask

_TABLE = tomllib.loads(
    Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8")
)
METRICS: Mapping[Class, Mapping[str, Any]] = {
    (name.rpartition(":")[0], name.rpartition(":")[2]): entry
    for name, entry in _TABLE.items()
}
"""The table, by file and class."""


def slices_of(task: SeaTask) -> tuple[str, ...]:
    """The keys of a row's metadata that the metrics of a task go by, which its samples' metadata
    need too.
    """
    return tuple(METRICS.get(task.scored_by, {}).get("slices", ()))
