"""The schema and its page say the same keys; short forms become the long one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalwright.tasks.schema import (
    FILE_KEYS,
    Answer,
    Dataset,
    FewShot,
    MetricUse,
    Part,
    Prompt,
    Sample,
    ScorerUse,
    TaskFile,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"


def keys_in(section: str) -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, section
    table = found[1].split("| mode |")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


@pytest.mark.parametrize(
    ("section", "models", "more"),
    [
        ("Top level", [TaskFile], FILE_KEYS),
        ("dataset", [Dataset], ()),
        ("sample", [Sample], ()),
        ("prompt", [Prompt], ()),
        ("few_shot", [FewShot], ()),
        ("answer", [Answer], ()),
        ("scorers and metrics", [ScorerUse, MetricUse], ()),
    ],
)
def test_the_page_has_every_key_and_no_other(
    section: str, models: list[type[Part]], more: tuple[str, ...]
) -> None:
    assert keys_in(section) == {name for model in models for name in model.model_fields} | set(more)


@pytest.mark.parametrize(
    ("written", "long"),
    [
        ("choice", {"name": "choice", "use": "choice", "options": {}}),
        ({"choice": None}, {"name": "choice", "use": "choice", "options": {}}),
        ({"choice": {"by": "x"}}, {"name": "choice", "use": "choice", "options": {"by": "x"}}),
        ({"choice": {"name": "n", "by": "x"}}, {"name": "n", "use": "choice", "options": {"by": "x"}}),
        ({"name": "n", "use": "choice", "by": "x"}, {"name": "n", "use": "choice", "options": {"by": "x"}}),
        (
            {"use": "choice", "options": {"by": "x"}},
            {"name": "choice", "use": "choice", "options": {"by": "x"}},
        ),
    ],
)
def test_scorers_in_every_form(written: Any, long: dict[str, Any]) -> None:
    model = ScorerUse.model_validate(written)
    assert model.model_dump() == long
    assert ScorerUse.model_validate(model.model_dump()) == model


@pytest.mark.parametrize(
    ("written", "long"),
    [
        ("mean", {"name": None, "use": "mean", "scorer": None, "options": {}}),
        (
            {"mean": {"scorer": "s", "a": 1}},
            {"name": None, "use": "mean", "scorer": "s", "options": {"a": 1}},
        ),
        (
            {"name": "n", "use": "mean", "scorer": "s", "a": 1},
            {"name": "n", "use": "mean", "scorer": "s", "options": {"a": 1}},
        ),
    ],
)
def test_metrics_in_every_form(written: Any, long: dict[str, Any]) -> None:
    model = MetricUse.model_validate(written)
    assert model.model_dump() == long
    assert MetricUse.model_validate(model.model_dump()) == model
