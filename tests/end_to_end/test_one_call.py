"""One call, from nothing but rows and a function or a model: the first example of every
documentation, offline.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import evalwright
from evalwright import compare, evaluate
from evalwright.core.errors import AbilityError
from evalwright.tasks.index import TaskIndex

ROWS = [
    ("대한민국의 수도는?", 1, "서울", "부산", "대구", "인천", "Geography"),
    ("훈민정음을 만든 왕은?", 2, "태조", "세종", "정조", "영조", "Korean-History"),
    ("한라산이 있는 섬은?", 3, "울릉도", "거제도", "제주도", "진도", "Geography"),
    ("고려를 세운 사람은?", 4, "견훤", "궁예", "이성계", "왕건", "Korean-History"),
]
TASK = """
for_each:
  - {form: "", mode: letter}
  - {form: -generate, mode: generate}
task: "own-exam{{ form }}"
dataset: {path: exam.csv}
sample:
  input: "{{ question }}"
  choices: ["{{ A }}", "{{ B }}", "{{ C }}", "{{ D }}"]
  target: "{{ answer | int - 1 }}"
  metadata: {domain: "{{ Category }}"}
prompt: {user: "{{ input }}\\n{{ lettered }}\\n정답:"}
answer: {mode: "{{ mode }}"}
scorers: [choice]
metrics: [accuracy]
slices: [domain]
"""


@pytest.fixture(autouse=True)
def _exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_TASKS", "tasks")
    with Path("exam.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "answer", "A", "B", "C", "D", "Category"])
        rows.writerows(ROWS)
    Path("tasks").mkdir()
    Path("tasks/exam.yaml").write_text(
        TASK.replace("path: exam.csv", f"path: {tmp_path}/exam.csv"), encoding="utf-8"
    )


@evalwright.model
def my_model(input_text: str) -> str:
    return "정답: A" if "수도" in input_text else "정답: B"


def test_a_function_is_given_the_form_that_it_can_answer() -> None:
    (run,) = evaluate(my_model, "own-exam")
    task = run.tasks[0]
    assert task.name == "own-exam-generate" and task.main is not None
    assert (
        task.main.estimate.value == 0.5
        and task.slices["domain"]["Geography"][0].estimate.n == 2
    )
    with pytest.raises(AbilityError, match="log-likelihood"):
        evaluate("tasks/exam.yaml", my_model)


def test_several_models_in_one_call() -> None:
    found = compare(
        {"mine": my_model, "A": lambda text: "A", "B": lambda text: "B"},
        tasks="own-exam",
    )
    assert found.labels == ("mine", "A", "B") and found.conclusion


@pytest.mark.parametrize("task", ["kmmlu"])
def test_a_bundled_task_on_own_rows(task: str) -> None:
    if task not in TaskIndex().names():
        pytest.skip(f"'{task}' is not bundled")
    (run,) = evaluate(
        my_model,
        task,
        overrides={"dataset.path": "exam.csv"},
        where=["domain=Geography"],
    )
    assert run.tasks[0].name == f"{task}-generate" and run.tasks[0].n_samples == 2
    assert run.n_missing == 0


@pytest.mark.torch
def test_a_real_small_model_in_one_call(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_models import make_tiny_model

    make_tiny_model(tmp_path / "tiny", "llama")
    (run,) = evaluate("own-exam", "hf/./tiny", where=["domain=Geography"])
    assert (
        run.tasks[0].n_samples == 2
        and run.n_missing == 0
        and run.tasks[0].main is not None
    )
