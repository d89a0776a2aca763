"""Tasks in Python: registered by `@task`, checked there, found by name, and offered by packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, DatasetError, TaskError
from evalwright.core.tasks import Task
from evalwright.tasks import decorator
from evalwright.tasks.decorator import task
from evalwright.tasks.index import Entry, find
from evalwright.tasks.loading import load_task, load_tasks, task_from_definition
from tasks.conftest import Write

ROWS = {"dataset": {"rows": [{"input": "Capital of France?", "target": "Paris"}]}}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = dict(decorator._registered)
    yield
    decorator._registered.clear()
    decorator._registered.update(before)


def test_a_mapping() -> None:
    @task("capitals", version="2", language="en")
    def capitals() -> Mapping[str, Any]:
        """Capitals of the world.

        More.
        """
        return ROWS

    loaded = load_task("capitals")
    assert (loaded.name, loaded.samples[0].target) == ("capitals", "Paris")
    (found,) = find("capitals of the world")
    assert found == Entry(
        "capitals", "Capitals of the world.", "2", "en", members=("capitals",)
    )
    assert capitals() is ROWS


def test_a_task() -> None:
    made = task_from_definition({"task": "made", **ROWS})

    @task("made")
    def make() -> Task:
        return made

    assert load_task("made") is made
    with pytest.raises(
        TaskError,
        match=r"The task 'made' .*overridden",
    ):
        load_task("made", overrides={"version": "2"})


def test_the_form_of_the_model_is_told_where_it_is_asked_for() -> None:
    @task("either")
    def either(chat: bool) -> Mapping[str, Any]:
        return {**ROWS, "description": f"chat: {chat}"}

    assert load_task("either").description == "chat: False"
    assert load_task("either", chat=True).description == "chat: True"


def test_a_mapping_can_have_for_each_and_overrides() -> None:
    @task("many")
    def many() -> Mapping[str, Any]:
        return {**ROWS, "task": "many-{{ x }}", "for_each": {"x": (1, 2)}}

    loaded = load_tasks("many", overrides={"version": "7"})
    assert [(one.name, one.version) for one in loaded] == [
        ("many-1", "7"),
        ("many-2", "7"),
    ]


def test_paths_start_from_the_file_of_the_function(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("code/data.jsonl", [{"input": "x", "target": "y"}])
    write(
        "code/mine_with_data.py",
        "from evalwright.tasks.decorator import task\n@task('local')\ndef f():\n    return {'dataset': 'data.jsonl'}\n",
    )
    monkeypatch.syspath_prepend(tmp_path / "code")
    __import__("mine_with_data")
    assert load_task("local").samples[0].input == "x"


def test_what_does_not_fit_is_refused_at_registration() -> None:
    with pytest.raises(ConfigurationError, match="'a b' cannot be the name"):
        task("a b")(lambda: ROWS)
    with pytest.raises(
        ConfigurationError,
        match=r"`def f\(\) -> Task`.*'model'",
    ):

        @task("x")
        def f(model: str) -> Mapping[str, Any]:
            return ROWS

    with pytest.raises(ConfigurationError, match="must be a function, not int"):
        task("x")(5)  # type: ignore[type-var]


def test_what_comes_back_is_checked() -> None:
    @task("nothing")
    def nothing() -> Any:
        return None

    with pytest.raises(
        TaskError,
        match=r"The task 'nothing' .*not NoneType",
    ):
        load_task("nothing")

    @task("wrong")
    def wrong() -> Mapping[str, Any]:
        return {**ROWS, "promt": {}}

    with pytest.raises(TaskError, match=r"The task 'wrong': .*`promt`.*`prompt`"):
        load_task("wrong")

    @task("odd")
    def odd() -> Mapping[str, Any]:
        return {"dataset": {"rows": [{"input": "x", "target": object()}]}}

    with pytest.raises(DatasetError, match="cannot be kept as JSON"):
        load_task("odd")


ENTRY = """
from evalwright.tasks.index import find
from evalwright.tasks.loading import load_task
import sys
(entry,) = [one for one in find() if one.name == "from-package"]
assert "package_of_tasks" not in sys.modules
assert entry.description == "From package_of_tasks:make.", entry
task = load_task("from-package")
print(task.name, task.samples[0].input)
"""


def test_packages_offer_tasks_by_entry_point(write: Write, tmp_path: Path) -> None:
    write(
        "site/package_of_tasks/__init__.py",
        "def make():\n    return {'dataset': 'data.jsonl'}\n",
    )
    write("site/package_of_tasks/data.jsonl", [{"input": "hello", "target": "y"}])
    write(
        "site/package_of_tasks-1.0.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: package-of-tasks\nVersion: 1.0\n",
    )
    write(
        "site/package_of_tasks-1.0.dist-info/entry_points.txt",
        "[evalwright.tasks]\nfrom-package = package_of_tasks:make\n",
    )
    done = subprocess.run(
        [sys.executable, "-c", ENTRY],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "from-package hello", done.stderr
