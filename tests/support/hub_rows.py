"""Synthetic rows in the column shape of the hub's datasets, with what a model writes that is right, and what is wrong.

They stand in `hub_rows.yaml`. A Case is one bundled task: `rows` by (repository, configuration, split), as the task asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Key = tuple[str, str | None, str]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """task: its name. rows: of its datasets. right, wrong: replies to the first sample; what scores 1 and what 0."""

    task: str
    rows: Mapping[Key, Rows]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def _case(task: str, rows: list[dict[str, Any]], right: list[str], wrong: list[str]) -> Case:
    return Case(task, {tuple(one["from"]): one["rows"] for one in rows}, tuple(right), tuple(wrong))


CASES = [
    _case(**one) for one in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
]
