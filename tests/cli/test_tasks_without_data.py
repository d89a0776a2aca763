"""What `tasks show` and `tasks list` say without a task's data, and of files with several tasks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.typed import typed

OFFLINE = {"HF_HUB_OFFLINE": "1"}


def test_a_task_is_shown_without_its_data(tmp_path: Path) -> None:
    shown = typed("tasks", "show", "mmlu", folder=tmp_path, extra=OFFLINE)
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    assert "mmlu, version 1: 57 subjects from school to profession" in text
    assert "samples not known: The dataset 'cais/mmlu'" in text
    assert "columns answer, choices, question, subject" in text
    assert "licence MIT" in text
    assert "Prompt, user {{ input }} {{ lettered }} Answer:" in text
    assert '"licence": "MIT"' in (
        typed("tasks", "show", "mmlu", "--json", folder=tmp_path, extra=OFFLINE).out
    )


def test_a_task_is_shown_without_the_library_of_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    shown = typed("tasks", "show", "hellaswag", folder=tmp_path)
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    assert "samples not known: The dataset 'Rowan/hellaswag' needs the library" in text
    assert "evalwright[hub]" in text
    run = ("run", "hellaswag", "--model", "demo/small")
    assert typed(*run, folder=tmp_path).code == 2


def test_a_task_with_data_has_its_count_and_columns(tmp_path: Path) -> None:
    shown = typed("tasks", "show", "factual-closed-book", folder=tmp_path).out
    text = " ".join(shown.split())
    assert "samples 333" in text
    assert (
        "columns answer_type, answers, known_since, question, tolerance, unit" in text
    )


def test_a_list_has_no_template(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    several = (
        "for_each:\n  - {name: a, title: Alpha}\n  - {name: b, title: Beta}\n"
        "  - {name: c, title: Gamma}\n  - {name: d, title: Delta}\n"
        'task: "t-{{ name }}"\ndataset: {rows: [{input: a, target: b}]}\n'
    )
    folder = tmp_path / "tasks"
    (folder / "plain.yaml").write_text(
        several + 'description: "About {{ title }}."\n', encoding="utf-8"
    )
    (folder / "filtered.yaml").write_text(
        several.replace("t-", "u-") + 'description: "About {{ title | lower }}."\n',
        encoding="utf-8",
    )
    listed = typed(
        "tasks", "list", folder=tmp_path, extra={"EVALWRIGHT_TASKS": "tasks"}
    )
    lines = [" ".join(line.split()) for line in listed.out.splitlines()]
    assert "plain About Alpha, Beta, Gamma and 1 more." in lines
    assert "filtered About alpha." in lines
    assert "{{" not in listed.out
