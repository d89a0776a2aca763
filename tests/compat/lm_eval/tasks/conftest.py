"""Task files of that kind written on the spot, with rows beside them, and a home of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evalwright.compat.lm_eval.tasks.compiling import Work
from evalwright.compat.lm_eval.tasks.loading import Library
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.core.tasks import Task

Write = Callable[[str, Any], Path]
SUM = """
    task: sum
    dataset_path: json
    dataset_kwargs: {data_files: {test: tasks/sum.jsonl}}
    test_split: test
    doc_to_text: "{{n}} + 1 ="
    doc_to_target: "{{n + 1}}"
    generation_kwargs: {until: ["."]}
    filter_list:
      - {name: digits, filter: [{function: regex, regex_pattern: "(\\\\d+)"}, {function: take_first}]}
    metric_list: [{metric: exact_match}]
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(name, content)` in the folder `tasks`: text (dedented), or rows as JSONL."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / "tasks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (
            dedent(content)
            if isinstance(content, str)
            else "".join(json.dumps(row) + "\n" for row in content)
        )
        path.write_text(text, encoding="utf-8")
        return path

    return write


Load = Callable[..., list[Task]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load(name, **options)`: the tasks of a name in the folder `tasks`."""

    def load(name: str, **options: Any) -> list[Task]:
        return Library(Options(roots=(tmp_path / "tasks",), **options)).load(name)

    return load


def work_of(task: Task) -> Work:
    """The inside of a compiled task."""
    function: Any = task.scorers[0].function
    work: Work = function.func.__self__
    return work
