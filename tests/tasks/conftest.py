"""Task files written on the spot, and a home of their own for copies and the index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evalwright.core.tasks import Task
from evalwright.tasks.definitions import Definition, expand, with_includes
from evalwright.tasks.loading import load_task
from evalwright.tasks.yaml_files import read_document

Write = Callable[..., Path]
Load = Callable[..., Task]


def read_definitions(path: Path) -> list[Definition]:
    """Every task that a file defines."""
    return expand(with_includes(read_document(path)))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EVALWRIGHT_TASKS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(name, content)`: text (dedented), bytes, or a list of rows as JSONL."""

    def write(name: str, content: str | bytes | list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(
                json.dumps(row, ensure_ascii=False) + "\n" for row in content
            )
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(dedent(content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(write: Write) -> Load:
    """`load(yaml, **options)`: the task of a file `task.yaml` with that text."""

    def load(text: str, **options: Any) -> Task:
        return load_task(write("task.yaml", text), **options)

    return load
