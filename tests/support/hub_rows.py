"""Synthetic rows in the column shape of the hub's datasets, with what a model writes that is
right, and what is wrong.

All rows are made up and stand in `hub_rows.json`. A Case is one bundled task: `rows` by
(repository, configuration, split), as the task asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str | None, str]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """task: its name. rows: of its datasets. right, wrong: replies to the first sample; what
    scores 1 and what 0.
    """

    task: str
    rows: Mapping[Key, Rows]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


CASES = [
    Case(
        case["task"],
        {
            (part["repository"], part["configuration"], part["split"]): part["rows"]
            for part in case["rows"]
        },
        tuple(case["right"]),
        tuple(case["wrong"]),
    )
    for case in json.loads(
        Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    )
]
