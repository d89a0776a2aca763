"""The schema and its page say the same keys; short forms become the long one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalwright.tasks.names import is_name
from evalwright.tasks.schema import (
    FILE_KEYS,
    ActingLimits,
    Answer,
    CommonWords,
    Dataset,
    FewShot,
    MetricUse,
    Needles,
    Part,
    Prompt,
    Sample,
    SandboxBounds,
    SandboxUse,
    ScorerUse,
    TaskFile,
)

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def keys_in(page: str, section: str) -> set[str]:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    found = re.search(
        rf"^#+ {re.escape(section)}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, section
    return set(re.findall(r"^\| `(\w+)` \|", found[1], re.MULTILINE))


@pytest.mark.parametrize(
    ("page", "section", "models", "more"),
    [
        ("task-keys.md", "Top level", [TaskFile], FILE_KEYS),
        ("task-keys.md", "dataset", [Dataset], ()),
        ("task-keys.md", "sample", [Sample], ()),
        ("task-keys.md", "prompt", [Prompt], ()),
        ("task-keys.md", "few_shot", [FewShot], ()),
        ("task-keys.md", "answer", [Answer], ()),
        ("task-keys.md", "sandbox", [SandboxUse], ()),
        ("task-keys.md", "sandbox.limits", [SandboxBounds], ()),
        ("task-keys.md", "limits", [ActingLimits], ()),
        ("task-keys.md", "scorers and metrics", [ScorerUse, MetricUse], ()),
        ("long-texts.md", "Tasks of your own", [Needles, CommonWords], ()),
    ],
)
def test_the_page_has_every_key_and_no_other(
    page: str, section: str, models: list[type[Part]], more: tuple[str, ...]
) -> None:
    assert keys_in(page, section) == {
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
