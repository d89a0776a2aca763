"""The schema and its page say the same keys; short forms become the long one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalwright.tasks.names import is_name
from evalwright.tasks.schema import (
    FILE_KEYS,
    Answer,
    CommonWords,
    Dataset,
    FewShot,
    MetricUse,
    Needles,
    Part,
    Prompt,
    Sample,
    ScorerUse,
    TaskFile,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"


def keys_in(section: str) -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(
        rf"^#+ {re.escape(section)}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, section
    table = found[1].split("| mode |")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


@pytest.mark.parametrize(
    ("section", "models", "more"),
    [
        ("Top level", [TaskFile], FILE_KEYS), ("dataset", [Dataset], ()), ("sample", [Sample], ()),
        ("prompt", [Prompt], ()), ("few_shot", [FewShot], ()), ("answer", [Answer], ()),
        ("scorers and metrics", [ScorerUse, MetricUse], ()), ("needles and common_words", [Needles, CommonWords], ()),
    ],
)  # fmt: skip
def test_the_page_has_every_key_and_no_other(
    section: str, models: list[type[Part]], more: tuple[str, ...]
) -> None:
    assert keys_in(section) == {
        name for model in models for name in model.model_fields
    } | set(more)


@pytest.mark.parametrize("name", ["a", "mmlu_pro.v2", "c++", "5-shot", "x" * 128])
def test_names(name: str) -> None:
    assert is_name(name)
    assert not any(
        map(
            is_name,
            (
                "",
                f"-{name}",
                f"{name}/b",
                f"{name} b",
                f"{name}:b",
                f"{name}\n",
                "é",
                "x" * 129,
            ),
        )
    )
