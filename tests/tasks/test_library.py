"""The bundled tasks: they load, every prompt can be rendered, and what their shots say is in no question."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.requests import Message
from evalwright.tasks.index import LIBRARY, TaskIndex
from evalwright.tasks.loading import load_task, load_tasks

PARTS = [
    "factual-closed-book",
    "factual-grounded",
    "factual-id",
    "factual-ko",
    "factual-stress",
    "factual-stress-languages",
    "factual-th",
]
CLOSED = ["factual-closed-book", "factual-id", "factual-ko", "factual-th"]


def test_the_parts_of_factual() -> None:
    assert [task.name for task in load_tasks("factual")] == PARTS


BUNDLED = [name for entry in TaskIndex().files() if "/factual/" in entry.path for name in entry.members]
"""Tasks whose data are bundled too; those whose data are on the hub are in test_benchmarks.py."""


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("chat", [False, True])
def test_every_task_with_bundled_data_can_be_asked(name: str, chat: bool) -> None:
    task = load_task(name, chat=chat)
    render: Any = task.strategy
    for sample in task.samples:
        prompt = render.render(sample)
        text = prompt if isinstance(prompt, str) else prompt[-1].content
        assert sample.input in text
        assert isinstance(prompt, str) is not chat
    assert task.description
    assert task.metadata["licence"]
    assert task.source.startswith(str(LIBRARY))


def test_all_questions_are_there() -> None:
    counts = {name: len(load_task(name).samples) for name in PARTS}
    assert counts["factual-closed-book"] >= 300
    assert counts["factual-grounded"] >= 60
    assert all(counts[f"factual-{code}"] >= 40 for code in ("id", "ko", "th"))
    assert counts["factual-stress"] >= 60
    assert counts["factual-stress"] + counts["factual-stress-languages"] >= 90
    assert sum(counts.values()) >= 500


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


@pytest.mark.parametrize("name", PARTS)
def test_no_shot_is_a_question_of_the_task(name: str) -> None:
    task = load_task(name)
    shots = {row["question"].lower() for row in task.definition["prompt"]["few_shot"]["dataset"]["rows"]}
    assert not shots & {sample.input.lower() for sample in task.samples}


def test_the_scorers_find_what_they_read() -> None:
    for sample in (sample for name in CLOSED for sample in load_task(name).samples):
        assert sample.metadata["answer_type"] in ("name", "number", "date", "yes_no")
        assert None not in sample.metadata.values()
    for name in ("factual-stress", "factual-stress-languages"):
        for sample in load_task(name).samples:
            assert isinstance(sample.metadata["premise"], str)
            assert isinstance(sample.metadata["corrections"], list | tuple)
            assert isinstance(sample.metadata["fabrications"], list | tuple)
    languages = {sample.metadata["language"] for sample in load_task("factual-stress-languages").samples}
    assert languages == {"id", "ko", "th"}
    for sample in load_task("factual-grounded").samples:
        assert isinstance(sample.metadata["answerable"], bool)
        ids = {passage.id for passage in sample.passages}
        assert set(sample.metadata["citations"]) <= ids
        assert bool(sample.metadata["citations"]) is sample.metadata["answerable"]


def test_a_chat_model_may_reason_first_and_a_base_model_is_stopped() -> None:
    text: Any = load_task("factual-closed-book").strategy
    chat: Any = load_task("factual-closed-book", chat=True).strategy
    assert text.sampling.max_tokens == 48
    assert "\n\n" in text.sampling.stop
    assert chat.sampling.max_tokens >= 1024
    assert chat.sampling.stop == ()
    prompt = chat.render(load_task("factual-closed-book", chat=True).samples[0])
    assert [message.role for message in prompt] == ["system", *["user", "assistant"] * 4, "user"]
    assert isinstance(prompt[0], Message)
