"""The bundled tasks: they load, every prompt can be rendered, and what their shots say is in no
question.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.tasks.index import LIBRARY, TaskIndex
from evalwright.tasks.loading import load_task, load_tasks

BUNDLED = [
    name
    for entry in TaskIndex().files()
    if "/factual/" in entry.path
    for name in entry.members
]
"""Tasks whose data are bundled too; those whose data are on the hub are in test_benchmarks.py."""


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("chat", [False, True])
def test_every_task_with_bundled_data_can_be_asked(name: str, chat: bool) -> None:
    task = load_task(name, chat=chat)
    render: Any = task.strategy
    for sample in task.samples:
        prompt = render.render(sample)
        text = prompt if isinstance(prompt, str) else prompt[-1].text
        assert sample.input in text
        assert isinstance(prompt, str) is not (
            chat and "generate" in task.strategy.needs
        )
    assert task.description
    assert task.metadata["licence"]
    assert task.source.startswith(str(LIBRARY))


def test_a_group_is_its_parts() -> None:
    assert len({task.name for task in load_tasks("factual")}) == 7


@pytest.mark.parametrize(
    "names",
    [("factual-closed-book", "factual-stress")]
    + [(f"factual-{code}", "factual-stress-languages") for code in ("id", "ko", "th")],
)
def test_stress_questions_are_asked_in_the_same_words(names: tuple[str, str]) -> None:
    closed, stress = (load_task(name).definition["prompt"] for name in names)
    for prompt in (closed, stress):
        # Both hold the metadata of their task.
        del prompt["few_shot"]["sample"], prompt["few_shot"]["dataset"]["content_hash"]
    assert closed == stress
