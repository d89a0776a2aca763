"""Every Korean benchmark, on a local table in the hub's columns, with a real transformer:
written, by likelihood, and judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate, load_task
from evalwright.compat.hret import Evaluator
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.runs.reader import Run
from support.korean_tables import FOLDER, table, write_tables
from support.openai_server import serving
from support.written_judge import Asked, judge

pytestmark = [pytest.mark.torch, pytest.mark.slow]

# For each key, its tasks: written by the model, and by likelihood.
TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "haerae_bench": (("haerae-bench-generate",), ("haerae-bench",)),
    "kmmlu": (("kmmlu-generate",), ("kmmlu",)),
    "click": (("click-generate",), ("click",)),
    "hrm8k": (("hrm8k",), ("hrm8k-continuation",)),
    "k2_eval": (("k2-eval",), ()),
    "KUDGE": (
        ("kudge-pairwise-generate", "kudge-pairwise-false-generate", "kudge-pointwise-generate", "kudge-pointwise-false-generate"),
        ("kudge-pairwise", "kudge-pairwise-false", "kudge-pointwise", "kudge-pointwise-false"),
    ),
    "hrc": (("hrc",), ("hrc-continuation",)),
    "kbl": (("kbl-generate",), ("kbl",)),
    "kormedmcqa": (("kormedmcqa-generate",), ("kormedmcqa",)),
    "aime2025": (("aime-2025-korean",), ("aime-2025-korean-continuation",)),
    "benchhub": (("benchhub-ko-generate", "benchhub-ko-open"), ("benchhub-ko",)),
}  # fmt: skip
PARTS = {
    "haerae_bench": 13, "kmmlu": 6, "click": 5, "hrm8k": 5, "hrc": 3, "kbl": 4, "kormedmcqa": 4, "aime2025": 2, "benchhub": 2,
}  # fmt: skip
"""How many parts each table has, that a score is shown for."""


def loaded(key: str, name: str, folder: Path) -> Task:
    """A task of the library on the table of its key; a written answer has 2 tokens."""
    part = "*"
    if key == "KUDGE":
        part = "-".join(
            word.capitalize() for word in name.removesuffix("-generate").split("-")[1:]
        )
    overrides: dict[str, Any] = {"dataset.path": str(folder / f"{part}.jsonl")}
    if name in TASKS[key][0]:
        overrides |= {"answer.text.max_tokens": 2, "answer.chat": None}
    return load_task(name, overrides=overrides)


TABLE = FOLDER / "generic_file.csv"
"""A file of a person's own, as `generic_file` takes it: a question, an answer and what else
there is.
"""


def own_file(form: int) -> Task:
    """The file as a task: written, or by the likelihood of its answers."""
    own: dict[str, Any] = {"columns": {"input": "질문", "target": "정답"}}
    if form == 0:
        own |= {
            "answer.text.max_tokens": 2,
            "scorers": [{"judge-correct": {}}, "short-answer"],
        }
    else:
        own |= {"answer": {"mode": "continuation"}, "scorers": ["likelihood"]}
    return load_task(str(TABLE), overrides=own)


def grader(asked: Asked) -> Mapping[str, Any]:
    """A judge for whom every second criterion is met, and every answer correct."""
    classes = ("충족", "미충족")
    found = {
        key: {"reason": "근거", "class": classes[place % 2]}
        for place, key in enumerate(asked.criteria)
    }
    return found or {"reason": "근거", "class": "correct"}


def test_every_benchmark_runs_in_each_of_its_forms(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.tiny_models import make_tiny_model

    assert {path.stem for path in FOLDER.glob("*.json")} == set(TASKS)
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-test")
    model = f"hf/{make_tiny_model(own_folder / 'model', kind='qwen2', seed=5, context=4096, layers=1, hidden=16)}"
    folders = {key: write_tables(key, own_folder / "tables") for key in TASKS}
    runs: list[Run] = []
    with serving(judge(grader)) as server:
        role = ModelSpec(
            "openai/grader", {"base_url": server.url, "api_key_env": "TEST_JUDGE_KEY"}
        )
        for form, roles in ((0, {"judge": role}), (1, {})):
            tasks = [
                loaded(key, name, folders[key])
                for key, both in TASKS.items()
                for name in both[form]
            ]
            tasks.append(own_file(form))
            runs += evaluate(
                tasks, model, name=("written", "likelihood")[form], roles=roles
            )
        judged = len(server.log or ())
    for run, form in zip(runs, (0, 1), strict=True):
        # Two tokens of random weights may be nothing but white space.
        assert run.n_missing < 10 and {
            kind for task in run.tasks for kind in task.failures
        } <= {"cut"}
        for key, both in TASKS.items():
            rows = sum(map(len, table(key)["tables"].values()))
            names = both[form]
            found = [task for task in run.tasks if task.name in names]
            samples = sum(task.n_samples for task in found)
            assert rows >= 30
            if key == "KUDGE":
                # Pairs in both orders.
                pairs = len(table(key)["tables"]["Pairwise"]) + len(
                    table(key)["tables"]["Pairwise-False"]
                )
                assert samples == rows + pairs
            elif key == "benchhub":
                assert samples == (rows if form == 0 else rows - 8)
            elif names:
                assert samples == rows
            if key in PARTS and names:
                slices = found[0].slices
                assert max(map(len, slices.values())) >= PARTS[key], key
    assert all(
        task.main is not None and task.main.estimate.n == task.n_samples
        for task in runs[1].tasks
    )
    (quality,) = (task for task in runs[0].tasks if task.name == "k2-eval")
    outcomes = [row["outcome"] for row in runs[0].rows() if row["task"] == "k2-eval"]
    own = [row["outcome"] for row in runs[0].rows() if row["task"] == "generic_file"]
    assert (
        len(outcomes) == len(own) == 30
        and judged == [*outcomes, *own].count("answered") > 50
    )
    assert quality.metrics[1].estimate.value == pytest.approx(1.0)
    assert quality.metrics[2].estimate.value == pytest.approx(0.0)
    for run in runs:
        assert [
            task.n_samples for task in run.tasks if task.name == "generic_file"
        ] == [30]
    fields = {
        row["metadata"]["분야"]
        for row in runs[0].rows()
        if row["task"] == "generic_file"
    }
    assert fields == {"지리", "역사", "과학", "상식", "수학"}
    result = Evaluator().run(
        model="huggingface",
        model_params={
            "model_name_or_path": model.removeprefix("hf/"),
            "device": "cpu",
            "max_new_tokens": 2,
        },
        dataset="generic_file",
        dataset_params={
            "file_path": str(TABLE),
            "input_col": "질문",
            "reference_col": "정답",
        },
        language_penalize=False,
    )
    assert (
        result.run is not None
        and len(result.samples) == 30
        and "pipeline_error" not in result.metrics
    )
    assert (
        result.samples[1]["reference"] == "세종"
        and result.samples[1]["metadata"]["난이도"] == "하"
    )
