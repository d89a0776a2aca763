"""Folders of tasks in both formats, run in a jail and, where podman works, in images of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from evalwright import evaluate, model, score_run
from evalwright.compat.terminal_bench.loading import load, names
from evalwright.core.errors import ConfigurationError, TaskError, UnknownName
from evalwright.runs.reader import Run
from support.container_image import build_image, configure, why_no_containers
from support.left_states import needs_jail

pytestmark = pytest.mark.usefixtures("own_folder")

TASK = """# a canary
instruction: |-
  Write the sum of the numbers in numbers.txt to sum.txt.
difficulty: easy
category: arithmetic
tags: [files]
parser_name: pytest
max_agent_timeout_sec: 120.0
max_test_timeout_sec: 60.0
"""
COMPOSE = "services:\n  client:\n    build: {dockerfile: Dockerfile}\n"
RUN_TESTS = """#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh
source $HOME/.local/bin/env
uv init
uv add pytest==8.4.1
uv run pytest $TEST_DIR/test_outputs.py -rA
"""
TESTS = """from pathlib import Path

def test_there():
    assert Path("/app/sum.txt").exists()

def test_sum():
    assert Path("/app/sum.txt").read_text().split() == ["{total}"]
"""
HARBOR = """version = "1.0"
[metadata]
difficulty = "hard"
category = "arithmetic"
[verifier]
timeout_sec = 60.0
[verifier.env]
EXPECTED = "twelve bees"
[agent]
timeout_sec = 100.0
[environment]
memory_mb = 512
"""
HARBOR_TEST = """#!/bin/bash
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json \\
  /tests/test_state.py -rA
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
HARBOR_TESTS = """import os
from pathlib import Path

def test_bees():
    assert Path("/app/bees.txt").read_text().strip() == os.environ["EXPECTED"]
"""


def write_first(root: Path, name: str, numbers: str, base: str = "python:3.12") -> Path:
    folder = root / name
    (folder / "tests").mkdir(parents=True)
    (folder / "task-deps").mkdir()
    (folder / "task.yaml").write_text(TASK)
    (folder / "docker-compose.yaml").write_text(COMPOSE)
    (folder / "Dockerfile").write_text(
        f"FROM {base}\nWORKDIR /app\nCOPY task-deps/numbers.txt /app/\n"
        "RUN echo made > made.txt\n"
    )
    (folder / "task-deps/numbers.txt").write_text(numbers)
    (folder / "run-tests.sh").write_text(RUN_TESTS)
    total = sum(map(int, numbers.split()))
    (folder / "tests/test_outputs.py").write_text(TESTS.format(total=total))
    (folder / "solution.sh").write_text(
        "#!/bin/bash\nif [ -e made.txt ]; then\n"
        "  python3 -c 'print(sum(map(int, open(\"numbers.txt\").read().split())))' > sum.txt\nfi\n"
    )
    return folder


def write_harbor(root: Path, name: str) -> Path:
    folder = root / name
    for inner in ("environment", "tests", "solution"):
        (folder / inner).mkdir(parents=True)
    (folder / "task.toml").write_text(HARBOR)
    (folder / "instruction.md").write_text("Write 'twelve bees' to bees.txt.\n")
    (folder / "environment/Dockerfile").write_text("FROM ubuntu:24.04\nWORKDIR /app\n")
    (folder / "tests/test.sh").write_text(HARBOR_TEST)
    (folder / "tests/test_state.py").write_text(HARBOR_TESTS)
    (folder / "solution/solve.sh").write_text("cat /solution/words.txt > /app/bees.txt\n")
    (folder / "solution/words.txt").write_text("twelve bees\n")
    return folder


@pytest.fixture
def root(own_folder: Path) -> Path:
    tasks = own_folder / "tasks" / "mini"
    write_first(tasks, "add-two", "1 2")
    write_first(tasks, "add-three", "1 2 30")
    write_harbor(tasks, "bees")
    return own_folder / "tasks"


@model(name="clerk", fingerprint="1")
def clerk(
    messages: Sequence[dict[str, Any]], *, tools: Any = (), **settings: Any
) -> dict[str, Any]:
    """Writes 3 as every sum, and the bees rightly."""
    question = next(turn["content"] for turn in messages if turn["role"] == "user")
    if any(turn["role"] == "tool" for turn in messages):
        return {"tool_calls": [{"name": "submit", "arguments": {"answer": "done"}}]}
    command = "cat made.txt numbers.txt; ls /tests /opt/terminal-bench; echo 3 > sum.txt"
    if "bees" in question:
        command = "echo twelve bees > bees.txt"
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}


def values(run: Run) -> dict[str, float]:
    records = list(run.samples())
    problems = [(record.failure, record.score_failures) for record in records]
    assert not any(failure or scores for failure, scores in problems), problems
    return {
        record.sample.id: record.scores["terminal-bench"].value for record in records
    }


RIGHT = {"add-two": 1.0, "add-three": 0.0, "bees": 1.0}


@needs_jail
def test_a_folder_of_tasks_is_run_and_scored_again(root: Path, own_folder: Path) -> None:
    (run,) = evaluate("terminal-bench:mini", clerk, name="first", dialect={"task_root": str(root)})
    assert values(run) == RIGHT
    (accuracy,) = run.tasks[0].metrics
    assert accuracy.estimate.value == pytest.approx(2 / 3)
    text = (run.folder / "samples.jsonl").read_text() + (
        run.folder / "run.json"
    ).read_text()
    assert "made" in text  # the Dockerfile's step was done
    assert "test_sum" not in text.replace("PASSED", "").split("explanation")[0]
    assert "cannot access '/tests'" in text  # nor were tests there for the model to see
    again = score_run("first", name="second", dialect={"task_root": str(root)})
    assert values(again) == RIGHT
    # Other tests are not those that were run.
    (root / "mini/bees/tests/test_state.py").write_text("def test_it(): pass\n")
    changed = score_run("first", name="third", dialect={"task_root": str(root)})
    failures = [record.score_failures for record in changed.samples()]
    assert sum(bool(failure) for failure in failures) == 1
    assert "their content differs" in str(failures)


@needs_jail
def test_what_needs_a_network_says_nothing_about_the_model(root: Path) -> None:
    script = root / "mini/add-two/run-tests.sh"
    script.write_text(script.read_text().replace("uv init", "pip install numpyy"))
    (run,) = evaluate(
        "terminal-bench:mini/add-two", clerk, name="one", dialect={"task_root": str(root)}
    )
    (record,) = run.samples()
    assert not record.scores
    assert "the Python package numpyy" in str(record.score_failures)


def test_names_are_those_of_folders(root: Path) -> None:
    listed = {task.name: task.kind for task in names([root])}
    assert listed == {
        "mini": "folder",
        "mini/add-three": "task",
        "mini/add-two": "task",
        "mini/bees": "task",
    }
    assert [task.name for task in names([root / "mini/bees"])] == ["bees"]
    with pytest.raises(UnknownName, match="'mini/add-two'"):
        _load("mini/add-too", root)
    with pytest.raises(TaskError, match="--task-root"):
        load("mini", {}, prompt_format="auto", chat=True)


def _load(name: str, root: Path, **settings: Any) -> Any:
    (task,) = load(
        name, {"task_root": [root], **settings}, prompt_format="auto", chat=True
    )
    return task


def test_limits_and_places_are_those_of_each_task(root: Path) -> None:
    task = _load("mini", root)
    by_id = {sample.id: sample for sample in task.samples}
    recorded = by_id["bees"].metadata["terminal-bench"]
    assert recorded["seconds"] == 100.0
    assert recorded["limits"]["memory_mb"] == 512
    assert by_id["add-two"].metadata["difficulty"] == "easy"
    plan = task.sandbox.plan(by_id["add-two"])
    assert [file.path for file in plan.files] == ["/app/numbers.txt"]
    assert plan.settings.folder == "/app"
    assert "words.txt" in task.sandbox.solution(by_id["bees"])


def test_refusals_name_the_task_and_the_step(root: Path) -> None:
    for name in ("add-two", "bees"):
        path = root / "mini" / name
        path = path / "environment" if name == "bees" else path
        text = (path / "Dockerfile").read_text()
        (path / "Dockerfile").write_text(f"{text}RUN npm install left-pad\n")
    with pytest.raises(TaskError) as raised:
        _load("mini", root)
    message = str(raised.value)
    assert "2 of 3 tasks cannot be done by jail" in message
    assert "add-two: line 5: 'npm install left-pad' needs the network" in message
    assert "-D skip_refused=true" in message
    task = _load("mini", root, skip_refused="true")
    assert [sample.id for sample in task.samples] == ["add-three"]
    assert task.definition["left_out"] == ["add-two", "bees"]
    assert len(_load("mini", root, ignore_build="true").samples) == 3
    with pytest.raises(ConfigurationError, match="true or false"):
        _load("mini", root, ignore_build="perhaps")
    with pytest.raises(ConfigurationError, match="whole number"):
        _load("mini", root, messages="0")
    with pytest.raises(UnknownName, match="backend"):
        _load("mini", root, backend="prison")


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("task.yaml", "instruction: [", "It is no YAML"),
        ("task.yaml", "instruction: ''", "no `instruction`"),
        ("task.yaml", TASK.replace("pytest", "guess"), "the parser 'guess'"),
        ("task.yaml", TASK.replace("60.0", "soon"), "`max_test_timeout_sec`"),
        (
            "docker-compose.yaml",
            "services: {client: {build: .}, db: {image: x}}",
            "needs 2 containers, client, db",
        ),
        (
            "docker-compose.yaml",
            "services: {client: {build: {context: ../..}}}",
            "outside the task's folder",
        ),
        ("Dockerfile", "FROM debian:12\nCOPY ../x /x\n", "not in its folder"),
    ],
)
def test_broken_folders(root: Path, file: str, text: str, reason: str) -> None:
    (root / "mini/add-two" / file).write_text(text)
    with pytest.raises(TaskError, match=reason):
        _load("mini/add-two", root)


def test_links_lead_nowhere(root: Path, own_folder: Path) -> None:
    secret = own_folder / "secret"
    secret.write_text("of the host")
    folder = root / "mini/add-two"
    (folder / "task-deps/link").symlink_to(secret)
    (folder / "Dockerfile").write_text(
        "FROM debian:12\nCOPY task-deps/ /app/\nCOPY task-deps/link /app/\n"
    )
    with pytest.raises(TaskError, match="not in its folder"):
        _load("mini/add-two", root)
    task = _load("mini/add-two", root, ignore_build="true")
    plan = task.sandbox.plan(task.samples[0])
    assert [file.path for file in plan.files] == ["/app/numbers.txt"]


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", "")
        configure(tmp_path)
        reason = why_no_containers()
        if reason:
            pytest.skip(reason)
        yield build_image()


def test_an_image_is_built_where_the_folder_is_trusted(
    own_folder: Path, podman: str
) -> None:
    root = own_folder / "tasks"
    # Sums of another text have an image of their own, which no earlier test has built.
    unique = " ".join(map(str, [1, 2, *[0] * (uuid4().int % 1_000)]))
    write_first(root / "mini", "add-two", unique, base=podman)
    with pytest.raises(TaskError, match="its image is not built.*podman build"):
        _load("mini", root, backend="podman")
    (run,) = evaluate(
        "terminal-bench:mini",
        clerk,
        name="boxed",
        dialect={"task_root": str(root), "trust": str(root), "backend": "podman"},
    )
    assert values(run) == {"add-two": 1.0}
