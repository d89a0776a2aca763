"""`sandbox`, `files`, `setup`, `solution` and `limits` of a task file: what they become, what they
may not be, and what needs the user's permission.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import load_task
from evalwright.core.errors import DatasetError, TaskError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.needs import files_of
from evalwright.evaluation.resolving import run_identity
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.strategies.limits import Limits
from evalwright.strategies.registry import strategy
from evalwright.tasks.folder_files import (
    below,
    fixed_folder,
    packed,
    read_tree,
    unpacked,
)
from evalwright.tasks.loading import task_from_definition
from evalwright.tasks.yaml_files import read_document

ROWS = [
    {"id": "a", "input": "Mend it.", "app": "print(1)\n", "fix": "true"},
    {"id": "b", "input": "Mend it.", "app": "print(2)\n", "fix": "false"},
]
TASK: dict[str, Any] = {
    "task": "mending",
    "dataset": {"rows": ROWS},
    "sandbox": "jail",
    "strategy": "acting",
    "scorers": ["words"],
}
DIGEST = "sha256:" + "0" * 64


@strategy("acting")
async def acting(sample: Any, ask: Any, draw: int, setup: Any) -> Any:
    raise AssertionError("nothing is run here")


@pytest.fixture(autouse=True)
def folder(own_folder: Path) -> Path:
    folder = own_folder / "theirs"
    folder.mkdir()
    return folder


def write(folder: Path, **changes: Any) -> Path:
    content = {**TASK, **changes}
    path = folder / "task.yaml"
    path.write_text(
        yaml.safe_dump({key: part for key, part in content.items() if part is not None})
    )
    return path


def load(folder: Path, **changes: Any) -> Task:
    return load_task(write(folder, **changes))


def identity(task: Task) -> str:
    return run_identity("a model", {}, [task], None, 0)


def plan_of(task: Task, index: int = 0) -> SandboxPlan:
    plan: SandboxPlan = task.sandbox.plan(task.samples[index])
    return plan


def contents(plan: SandboxPlan) -> dict[str, bytes]:
    return {file.path: file.content for file in plan.files}


def test_the_plan_has_what_the_file_says_of_each_row(folder: Path) -> None:
    task = load(
        folder,
        sandbox={
            "backend": "podman",
            "image": f"{{{{ 'python' }}}}@{DIGEST}",
            "folder": "/srv",
            "environment": {"ROW": "{{ id }}"},
            "limits": {"seconds": 5, "disk_mb": 10},
        },
        files={"/srv/app.py": "{{ app }}", "/srv/count": 3},
        setup="echo {{ id }} > name",
        solution="{{ fix }}",
        limits={"tokens": 1000, "messages": None},
    )
    plan = plan_of(task, 1)
    assert contents(plan) == {"/srv/app.py": b"print(2)\n", "/srv/count": b"3"}
    assert plan.setup == "echo b > name"
    assert plan.settings.image == f"python@{DIGEST}"
    assert plan.settings.environment == {"ROW": "b"}
    assert (plan.settings.limits.seconds, plan.settings.limits.disk_mb) == (5, 10)
    assert task.sandbox.solution(task.samples[1]) == "false"
    strategy_made: Any = task.strategy
    assert strategy_made._setup.limits == Limits(messages=None, tokens=1000)
    assert strategy_made._setup.sandbox(task.samples[1]) == plan


def test_all_is_in_the_definition_and_in_the_identity(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x").write_text("1")
    full: dict[str, Any] = {
        "files": {"/work/data": {"from": "data"}, "/work/app.py": "{{ app }}"},
        "setup": "true",
        "solution": "{{ fix }}",
        "limits": {"messages": None},
    }
    task = load(folder, **full)
    assert task.definition["sandbox"]["backend"] == "jail"
    assert task.definition["sandbox"]["limits"]["memory_mb"] == 1024
    assert task.definition["files"]["/work/app.py"] == "{{ app }}"
    assert set(task.definition["files"]["/work/data"]) == {"from", "sha256"}
    assert task.definition["limits"]["messages"] is None
    changes: list[dict[str, Any]] = [
        {},
        {"files": None},
        {"setup": "false"},
        {"solution": "true"},
        {"limits": {}},
        {"limits": {"messages": 49}},
        {"sandbox": {"limits": {"seconds": 61}}},
        {"sandbox": {"folder": "/other"}},
    ]
    identities = {identity(load(folder, **{**full, **change})) for change in changes}
    (folder / "data" / "x").write_text("2")
    identities.add(identity(load(folder, **full)))
    (folder / "data" / "x").chmod(0o755)
    identities.add(identity(load(folder, **full)))
    assert len(identities) == 10


def test_a_folder_by_row_is_in_the_identity_too(folder: Path) -> None:
    for name in "ab":
        (folder / "data" / name / "inner").mkdir(parents=True)
        (folder / "data" / name / "inner" / "x").write_text(name)
    files = {"/work/data": {"from": "data/{{ id }}"}}
    task = load(folder, files=files)
    assert contents(plan_of(task, 1)) == {"/work/data/inner/x": b"b"}
    (folder / "data" / "b" / "inner" / "x").write_text("c")
    changed = load(folder, files=files)
    assert identity(task) != identity(changed)
    shutil.rmtree(folder / "data" / "b")
    with pytest.raises((DatasetError, TaskError), match=r"task\.yaml:\d+: .*'data/b'"):
        load(folder, files=files)


def test_tasks_without_a_sandbox_have_none_of_the_keys(folder: Path) -> None:
    task = load(folder, sandbox=None, strategy=None)
    keys = {"sandbox", "files", "setup", "solution", "limits"}
    assert not keys & task.definition.keys()
    assert task.sandbox is None


def test_files_may_be_a_column(folder: Path) -> None:
    rows = [{**ROWS[0], "files": {"/work/a": "x\n"}}, {**ROWS[1], "files": {}}]
    task = load(folder, dataset={"rows": rows}, files="{{ files }}")
    assert contents(plan_of(task)) == {"/work/a": b"x\n"}
    assert contents(plan_of(task, 1)) == {}
    rows[1]["files"] = {"/work/../etc/x": "x"}
    with pytest.raises(DatasetError, match=r"row 2.*'\.\.'"):
        load(folder, dataset={"rows": rows}, files="{{ files }}")


def test_paths_of_files_may_be_templates(folder: Path) -> None:
    (folder / "tree").mkdir()
    (folder / "tree" / "x").write_text("kept")
    files = {"/work/{{ id }}.py": "{{ app }}", "/{{ id }}": {"from": "tree"}}
    task = load(folder, files=files)
    assert contents(plan_of(task, 1)) == {"/work/b.py": b"print(2)\n", "/b/x": b"kept"}
    assert plan_of(task).fingerprint != plan_of(task, 1).fingerprint
    with pytest.raises(DatasetError, match=r"row 1.*'\.\.'"):
        load(folder, files={"/work/../{{ id }}": "x"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sandbox": "jial"}, r"task\.yaml:\d+: Unknown sandbox backend 'jial'.*'jail'"),
        ({"sandbox": {"limit": {}}}, r"unknown key `limit` in `sandbox`; did you mean `limits`"),
        ({"sandbox": {"limits": {"second": 1}}}, r"unknown key `second`.*`seconds`"),
        ({"sandbox": {"limits": {"seconds": 0}}}, r"`sandbox\.limits\.seconds`"),
        ({"sandbox": {"folder": "work"}}, "absolute path"),
        ({"sandbox": {"environment": {"A B": "x"}}}, "name of a variable"),
        ({"limits": {"message": 3}}, "did you mean `messages`"),
        ({"limits": {"messages": 0}}, r"`limits\.messages`"),
        ({"files": {"/work/../x": "y"}}, r"no '\.\.'"),
        ({"files": {"/proc/self/environ": "y"}}, "the kernel's"),
        ({"sandbox": {"folder": "/dev/null"}}, "the kernel's"),
        ({"sandbox": {"environment": {"A": "x\0y"}}}, "a NUL in its text"),
        ({"files": {"/": "y"}}, "names a file or folder"),
        ({"files": {"/work/x": ["y"]}}, "the content of a file is text.*not a list"),
        ({"files": {"/work/x": {"from": "a", "to": "b"}}}, "the content of a file is text"),
        ({"files": "data"}, "`files` is a mapping of paths"),
        ({"files": {"/work/x": "{{ ap }}"}}, "there is no column 'ap'; did you mean 'app'"),
        ({"solution": "{{ fx }}"}, "there is no column 'fx'"),
        ({"sandbox": None, "setup": "x"}, "`setup` needs a `sandbox`"),
        ({"sandbox": None, "files": {"/a": "x"}}, "`files` needs a `sandbox`"),
        ({"sandbox": None, "solution": "x"}, "`solution` needs a `sandbox`"),
        ({"strategy": None}, "`sandbox` has no effect: the strategy 'single-draw'"),
        ({"strategy": None, "sandbox": None, "limits": {}}, "`limits` has no effect"),
        ({"strategy": {"name": "self-consistency"}, "scorers": ["exact-match"],
          "answer": {"temperature": 1.0}}, "no effect"),
        ({"tools": ["bahs"]}, "Did you mean 'bash'"),
        ({"tools": ["bash", "bash"]}, "named twice"),
        ({"strategy": "tool-loop", "sandbox": None, "tools": ["bash"]}, "acts in a sandbox"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_with_its_line(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises((TaskError, DatasetError), match=message) as raised:
        load(folder, **changes)
    assert "task.yaml:" in str(raised.value)


@pytest.mark.parametrize(
    ("sandbox", "message"),
    [
        ({"backend": "podman", "network": True}, "gives programs of a model the network"),
        ({"options": {"read_only": ["/etc"]}}, "sets the option 'read_only' of the sandbox"),
        ({"backend": "podman", "image": "python:3"}, "whose content its name does not fix"),
        ({"backend": "podman", "image": "{{ app }}"}, "whose content its name does not fix"),
    ],
)  # fmt: skip
def test_what_only_the_user_allows_needs_trust(
    folder: Path, sandbox: dict[str, Any], message: str
) -> None:
    path = write(folder, sandbox=sandbox)
    with pytest.raises(TaskError, match=message) as raised:
        load_task(path)
    assert "--trust" in str(raised.value)
    trusted = load_task(path, trust=[folder])
    assert plan_of(trusted).settings.backend in ("jail", "podman")
    overridden = load_task(write(folder), overrides={"sandbox": sandbox})
    assert plan_of(overridden).settings.backend in ("jail", "podman")


def test_a_strangers_file_reads_nothing_outside_its_folder(
    folder: Path, own_folder: Path
) -> None:
    secrets = own_folder / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("secret")
    (folder / "link").symlink_to(secrets)
    (folder / "tree").mkdir()
    (folder / "tree" / "key").symlink_to(secrets / "key")
    (folder / "hidden").mkdir()
    (folder / "hidden" / ".env").write_text("secret")
    os.mkfifo(folder / "pipe")
    (folder / "inner").mkdir()
    (folder / "inner" / "there").symlink_to(folder / "hidden")
    for name in (
        "../secrets",
        str(secrets),
        "link",
        "link/key",
        "tree",
        "hidden",
        "hidden/.env",
        "pipe",
        "inner",
        "nowhere",
        "~/x",
    ):
        with pytest.raises(TaskError, match=r"task\.yaml:\d+: ") as raised:
            load(folder, files={"/work/x": {"from": name}})
        assert "Traceback" not in str(raised.value)
    rows = [{**ROWS[0], "id": "../secrets"}]
    with pytest.raises(
        (TaskError, DatasetError), match="outside of this file's folder"
    ):
        load(folder, dataset={"rows": rows}, files={"/x": {"from": "{{ id }}"}})
    with pytest.raises(
        (TaskError, DatasetError), match="outside of this file's folder"
    ):
        load(folder, dataset={"rows": rows}, files={"/x": {"from": "tree/../{{ id }}"}})


def test_links_within_the_folder_are_followed(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x").write_text("1")
    (folder / "data" / "y").symlink_to("x")
    task = load(folder, files={"/work": {"from": "data"}, "/z": {"from": "data/x"}})
    assert contents(plan_of(task)) == {
        "/work/x": b"1",
        "/work/y": b"1",
        "/z": b"1",
    }


def test_files_are_bounded(folder: Path) -> None:
    (folder / "big").mkdir()
    for name in "abc":
        with (folder / "big" / name).open("wb") as file:
            file.truncate(30 << 20)
    with pytest.raises(TaskError, match="more than 64 MiB in all"):
        load(folder, files={"/work": {"from": "big"}})
    with pytest.raises(TaskError, match="more than 64 MiB in all"):
        load(folder, files={f"/{n}": {"from": "big/a"} for n in range(3)})
    with (folder / "big" / "a").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(TaskError, match=r"task\.yaml:\d+: "):
        load(folder, files={"/work": {"from": "big/a"}})


def test_a_tree_is_packed_and_read_again(folder: Path) -> None:
    (folder / "tests" / "a").mkdir(parents=True)
    (folder / "tests" / "a" / "run").write_text("x")
    (folder / "tests" / "a" / "run").chmod(0o755)
    (folder / "tests" / "ü").write_bytes(b"\xff")
    document = read_document(write(folder))
    tree = read_tree("tests", (), document)
    assert unpacked(packed(tree)) == tree
    assert packed(tree) == packed(unpacked(packed(tree)))
    (run,) = below(tree, "a")
    assert (run.path, run.is_executable) == ("run", True)
    assert [file.path for file in below(tree, "a/run")] == [""]
    assert below(tree, "b") == ()
    alone = read_tree("tests/ü", (), document)
    assert unpacked(packed(alone)) == alone
    with pytest.raises(ValueError, match="archive"):
        unpacked(b"no")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("tests", ("tests", "")),
        ("tests/{{ id }}", ("tests", "{{ id }}")),
        ("a/b/x-{{ id }}/c", ("a/b", "x-{{ id }}/c")),
        ("{{ id }}", ("", "{{ id }}")),
    ],
)
def test_the_fixed_part_of_a_name(name: str, parts: tuple[str, str]) -> None:
    assert fixed_folder(name) == parts


def test_for_each_fills_in_its_variables_and_leaves_columns(folder: Path) -> None:
    write(
        folder,
        task="mending-{{ kind }}",
        for_each={"kind": ["x"]},
        files={"/work/app.py": "{{ app }}", "/kind": "{{ kind }}"},
        setup="echo {{ kind }} {{ id }}",
    )
    task = load_task(folder / "task.yaml")
    assert contents(plan_of(task)) == {"/work/app.py": b"print(1)\n", "/kind": b"x"}
    assert plan_of(task).setup == "echo x a"


def test_a_definition_of_python_reads_from_its_base(folder: Path) -> None:
    (folder / "x").write_text("1")
    definition = {**TASK, "files": {"/work/x": {"from": "x"}}}
    task = task_from_definition(definition, base=folder)
    assert contents(plan_of(task)) == {"/work/x": b"1"}


def test_overrides_reach_the_keys(folder: Path) -> None:
    path = write(folder, sandbox="podman", limits={"messages": 5})
    task = load_task(path, overrides={"limits.tokens": 7, "sandbox.limits.seconds": 3})
    assert task.definition["limits"] == {
        "messages": 5,
        "tokens": 7,
        "dollars": None,
        "seconds": None,
    }
    assert plan_of(task).settings.limits.seconds == 3
    assert plan_of(task).settings.backend == "podman"


def test_trust_of_a_document(folder: Path, own_folder: Path) -> None:
    (own_folder / "shared").mkdir()
    (own_folder / "shared" / "x").write_text("1")
    path = write(folder, files={"/x": {"from": "../shared/x"}})
    with pytest.raises(TaskError, match="outside of this file's folder"):
        load_task(path)
    task = load_task(path, trust=[folder])
    assert contents(plan_of(task)) == {"/x": b"1"}


def test_what_a_task_copies_is_among_the_files_that_a_run_needs(folder: Path) -> None:
    for name in ("data", "tests"):
        (folder / name / "a").mkdir(parents=True)
        (folder / name / "a" / "x").write_text("1")
    rows = ROWS[:1]
    path = write(
        folder,
        dataset={"rows": rows},
        files={"/work": {"from": "data/{{ id }}"}},
        scorers=[{"command": {"run": "true", "files": {"/t": {"from": "tests/"}}}}],
    )
    configuration = Configuration(tasks=(str(path),), models=())
    assert {"theirs/data/**", "theirs/tests/**"} <= set(files_of(configuration))
