"""Tables of cases that stand as JSON beside the tests that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def table(test_file: str, name: str) -> list[list[Any]]:
    """The rows of a table in `cases.json` of the test's folder."""
    cases: list[list[Any]] = json.loads(
        (Path(test_file).parent / "cases.json").read_text(encoding="utf-8")
    )[name]
    return cases


def rows(test_file: str, name: str) -> list[Any]:
    """The same as parameters, each named by what it begins with."""
    cases = table(test_file, name)
    return [
        pytest.param(*row, id=f"{number}-{str(row[0])[:40]}")
        for number, row in enumerate(cases)
    ]
