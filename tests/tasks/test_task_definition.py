"""The definition of a bundled task, without its data."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import UnknownName
from evalwright.extend import task_definition


def test_it_says_where_the_data_are_and_reads_none() -> None:
    definition = task_definition("kmmlu-generate")
    assert definition["dataset"]["hub"] == "HAERAE-HUB/KMMLU"
    assert definition["task"] == "kmmlu-generate"
    assert len(definition["dataset"]["config"]) == 45


def test_a_task_of_a_user_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "task: kmmlu\ndataset: {rows: [{input: a, target: b}]}\n", encoding="utf-8"
    )
    monkeypatch.setenv("EVALWRIGHT_TASKS", str(tmp_path))
    assert "hub" in task_definition("kmmlu")["dataset"]


def test_an_unknown_name_is_answered_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="kmmlu"):
        task_definition("kmlu")
