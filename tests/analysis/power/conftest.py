"""A folder of one's own for every plan, with a task of sixty short questions in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import write_questions


@pytest.fixture(autouse=True)
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: `questions.yaml` asks sixty questions, each answered by its number."""
    for name in ("EVALWRIGHT_TASKS", "EVALWRIGHT_DEBUG", "OPENAI_API_KEY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    write_questions(own_folder, 60)
    return own_folder
