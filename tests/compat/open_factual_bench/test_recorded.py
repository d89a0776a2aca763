"""The recorded runs of open-factual-bench: published numbers to the last answer, and corrected
ones beside a person's labels.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.open_factual_bench.importing import STRESS_TASK, TASK, import_ofb
from evalwright.runs.reader import Run

DATA = Path(__file__).parents[2] / "data" / "open_factual_bench" / "recorded.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
"""Each recorded answer with its question, and `hand`: a label that a person gave it before any
scorer read it.
"""
STRESS = "hallucination_stress"
PUBLISHED = {
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": (
        16,
        {"handled": 0, "hallucinated": 4, "unclear": 1},
    ),
    "Qwen/Qwen2.5-1.5B-Instruct": (26, {"handled": 1, "hallucinated": 3, "unclear": 1}),
    "google/gemma-2-2b-it": (28, {"handled": 2, "hallucinated": 3, "unclear": 0}),
}
MOST_READ_OTHERWISE = 2

pytestmark = pytest.mark.usefixtures("own_folder")


def imported(scoring: str) -> dict[str, Run]:
    """The three runs by model, scored in this way."""
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    questions = {}
    for row in ROWS:
        by_model[row["model"]].append(row)
        questions[row["task_id"]] = {
            "id": row["task_id"],
            "question": row["question"],
            "reference_answer": row["reference"],
            "metadata": {"type": row["type"]},
        }
    Path("results").mkdir()
    for place, (model, rows) in enumerate(by_model.items()):
        results = [
            {
                "task_id": row["task_id"],
                "model_response": row["response"],
                "is_correct": row["is_correct"],
                "metadata": {"hallucination_label": row["label"]}
                if row["label"]
                else None,
            }
            for row in rows
        ]
        run = {
            "run_id": f"run_{place}",
            "config": {"model_id": model},
            "results": results,
        }
        Path(f"results/run_{place}.json").write_text(json.dumps(run), encoding="utf-8")
    Path("questions.json").write_text(
        json.dumps(list(questions.values())), encoding="utf-8"
    )
    runs = import_ofb(
        Path("results"), Path("runs"), scoring=scoring, tasks=Path("questions.json")
    )
    return {run.data["configuration"]["imported"]["model_name"]: run for run in runs}


def count(run: Run, task: str) -> dict[str, int]:
    return {
        metric.label: round(metric.estimate.value * metric.estimate.n)
        for metric in run.task(task).metrics
    }


def read_otherwise(run: Run, model: str) -> tuple[list[str], list[str]]:
    """The short answers and the stress answers that are read otherwise than by hand; what is
    "unclear" by hand may be read either way.
    """
    hand = {row["task_id"]: row["hand"] for row in ROWS if row["model"] == model}
    short = []
    stress = []
    for record in run.rows():
        scores = record["scores"]
        label = hand[record["id"]]
        if record["task"] == TASK and (scores["short-answer"]["value"] == 1.0) != (
            label == "correct"
        ):
            short.append(record["id"])
        if (
            record["task"] == STRESS_TASK
            and label != "unclear"
            and scores[label]["value"] != 1.0
        ):
            stress.append(record["id"])
    return short, stress


def test_published_numbers_are_those_of_the_benchmark() -> None:
    runs = imported("published")
    for model, (correct, labels) in PUBLISHED.items():
        assert count(runs[model], TASK) == {"accuracy": correct}
        assert count(runs[model], STRESS_TASK) == labels


def test_corrected_reads_stress_answers_as_a_person_does() -> None:
    for model, run in imported("corrected").items():
        _, stress = read_otherwise(run, model)
        assert not stress, model
        assert run.task(STRESS_TASK).n_missing == 0
        assert sum(count(run, STRESS_TASK).values()) == 5


def test_corrected_reads_short_answers_as_a_person_does() -> None:
    for model, run in imported("corrected").items():
        short, _ = read_otherwise(run, model)
        assert len(short) <= MOST_READ_OTHERWISE, (model, short)
