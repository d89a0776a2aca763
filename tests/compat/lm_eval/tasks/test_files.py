"""Includes and tags of its YAML."""

from __future__ import annotations

import pytest

from evalwright.compat.lm_eval.tasks.files import Files
from evalwright.core.errors import TaskError

from .conftest import Write


def test_a_diamond_is_fine_and_a_cycle_is_not(write: Write) -> None:
    write("base", "a: 1\n")
    write("left", "include: base\n")
    write("right", "include: base\nb: 2\n")
    assert Files().read(write("task.yaml", "include: [left, right]\n")) == {"a": 1, "b": 2}
    write("self", "include: self\n")
    with pytest.raises(TaskError, match="includes itself"):
        Files().read(write("loop.yaml", "include: self\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: !!python/object/apply:os.system [ls]\n", "line 1"),
        ("- 1\n", "mapping"),
        ("a: [\n", "line 2"),
        ("a: 2024-99-99\n", "YAML cannot be used"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(write: Write, text: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        Files().read(write("task.yaml", text))


def test_a_missing_file_is_a_sentence(write: Write) -> None:
    with pytest.raises(TaskError, match="cannot be read: No such file"):
        Files().read(write("task.yaml", "include: nowhere\n"))
