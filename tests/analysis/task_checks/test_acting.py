"""Checks of tasks with a sandbox: the reference solution, and an agent that does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import check_tasks, evaluate, load_task
from evalwright.analysis.task_checks.acting import MOST_SAMPLES, tried_samples
from evalwright.analysis.task_checks.examining import examine
from evalwright.analysis.task_checks.findings import Finding
from evalwright.analysis.task_checks.material import preview_requests
from evalwright.core.requests import Generate
from evalwright.core.samples import Sample
from evalwright.core.tasks import Task
from support.left_states import needs_jail
from support.typed import typed

pytestmark = [needs_jail, pytest.mark.usefixtures("own_folder")]

ROWS = [{"id": f"r{n}", "question": f"Write {n}.", "number": n} for n in range(3)]


def write(folder: Path, **changes: Any) -> Path:
    definition = {
        "task": "writing",
        "dataset": {"rows": ROWS},
        "sample": {"input": "{{ question }}", "target": "{{ number }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": "jail",
        "solution": "echo {{ number }} > out.txt",
        "strategy": "agent",
        "scorers": [
            {"command": {"run": "test $(cat /work/out.txt) = {{ number }}"}},
            "exact-match",
        ],
        **changes,
    }
    path = folder / "task.yaml"
    path.write_text(
        yaml.safe_dump({key: part for key, part in definition.items() if part})
    )
    return path


def load(folder: Path, **changes: Any) -> Task:
    return load_task(write(folder, **changes))


def acting(task: Task) -> list[Finding]:
    return [
        finding
        for examined in examine([task])
        for finding in examined.findings
        if finding.check == "acting"
    ]


def test_a_sound_task_has_no_fault(own_folder: Path) -> None:
    (finding,) = acting(load(own_folder))
    assert finding.verdict == "ok"
    assert finding.text == (
        "the reference solution scores 1 and an agent that does nothing scores 0 on all"
        " samples"
    )


def test_the_same_question_over_other_files_is_another_question(
    own_folder: Path,
) -> None:
    def duplicates(**changes: Any) -> list[str]:
        task = load(own_folder, prompt={"user": "Copy it."}, **changes)
        (examined,) = examine([task])
        return [
            finding.verdict
            for finding in examined.findings
            if finding.check == "duplicates"
        ]

    sample = {"input": "Copy it.", "target": "{{ number }}"}
    assert duplicates(sample=sample) == ["fault"]
    assert duplicates(sample=sample, files={"/work/it": "{{ number }}"}) == ["ok"]


def test_a_wrong_solution_is_a_fault_with_its_reason(own_folder: Path) -> None:
    solution = "test {{ number }} != 1 || { echo no room >&2; exit 4; }; echo {{ number }} > out.txt"
    (finding,) = acting(load(own_folder, solution=solution))
    assert finding.verdict == "fault"
    assert finding.samples == ("r1",)
    assert "does not score 1 on 1 sample ('r1': command gives 0" in finding.text
    assert "exit code 4: no room" in finding.text


def test_a_task_that_is_done_already_is_a_fault(own_folder: Path) -> None:
    files = {"/work/out.txt": "{{ 2 if number == 2 else 'x' }}"}
    (finding,) = acting(load(own_folder, files=files))
    assert finding.samples == ("r2",)
    assert "an agent that does nothing scores above 0 on 1 sample" in finding.text


def test_a_set_up_that_fails_is_a_fault(own_folder: Path) -> None:
    (finding,) = acting(load(own_folder, setup="echo broken >&2; false"))
    assert finding.samples == ("r0", "r1", "r2")
    assert "the sandbox cannot be prepared on 3 samples" in finding.text
    assert "broken" in finding.text


def test_a_task_without_a_solution_is_tried_without(own_folder: Path) -> None:
    first, second = acting(load(own_folder, solution=None))
    assert (first.verdict, second.verdict) == ("ok", "skipped")
    assert "no `solution`" in second.text


def test_a_task_whose_state_nobody_scores_says_so(own_folder: Path) -> None:
    (finding,) = acting(load(own_folder, scorers=["exact-match"]))
    assert finding.verdict == "skipped"


def test_a_backend_that_is_not_here_is_skipped(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(own_folder))
    image = "python@sha256:" + "0" * 64
    sandbox = {"backend": "podman", "image": image}
    (finding,) = acting(load(own_folder, sandbox=sandbox))
    assert finding.verdict == "skipped"
    assert "podman" in finding.text


def test_many_samples_are_drawn_and_stay_the_same() -> None:
    samples = [Sample(f"s{n}") for n in range(100)]
    tried = tried_samples(samples)
    assert len(tried) == MOST_SAMPLES
    assert tried == tried_samples(samples)
    assert tried_samples(samples[:20]) == samples[:20]


def test_the_command_says_it_and_its_exit_code(own_folder: Path) -> None:
    write(own_folder)
    done = typed("tasks", "check", "task.yaml")
    assert done.code == 0, done.out
    assert "the reference solution scores 1" in done.out
    write(own_folder, solution="true")
    failed = typed("tasks", "check", "task.yaml")
    assert failed.code == 1
    assert "FAULT the reference solution does not score 1 on 3 samples" in failed.out


def test_python_says_the_same(own_folder: Path) -> None:
    path = write(own_folder, solution="true")
    (examined,) = check_tasks(path)
    assert examined.n_faults == 1
    (again,) = check_tasks([load_task(path)])
    assert again == examined


def test_looking_at_a_task_starts_no_sandbox(own_folder: Path) -> None:
    task = load(own_folder, setup="exit 1", sandbox={"options": {}})
    (request,) = preview_requests(task, 0)
    assert isinstance(request, Generate)
    assert {tool.name for tool in request.tools} >= {"bash", "submit"}
    shown = typed("tasks", "show", "task.yaml")
    assert "jail; no network; a set-up; a reference solution" in shown.out


def test_a_plan_says_the_limits(own_folder: Path) -> None:
    write(own_folder, limits={"messages": 7, "dollars": 0.5})
    plan = typed("plan", "task.yaml", "--model", "scripted/echo")
    assert plan.code == 0, plan.err
    flat = " ".join(plan.out.split())
    assert "scripted/echo 3 to 21 unknown" in flat
    assert "the model acts until it is done" in flat


def test_a_simulated_model_does_the_task_by_its_solution(own_folder: Path) -> None:
    write(own_folder)
    right, wrong = evaluate("task.yaml", ["oracle/gold", "oracle/wrong"])
    values: Sequence[list[float]] = [
        [record.scores["command"].value for record in run.samples()]
        for run in (right, wrong)
    ]
    assert values == [[1.0] * 3, [0.0] * 3]
