"""Numbers as SEA-HELM publishes them, which are of no items and have no interval, in
comparisons, boards and lists of runs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.typed import typed

TEMPLATE = {
    "preamble": "",
    "task_template": "{q}",
    "answer_template": "{answer_tag} {label}",
    "answer_tag": "A:",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published")
    tasks = made / "tree" / "seahelm_tasks"
    tasks.mkdir(parents=True)
    config = {}
    for task in ("colours", "shapes"):
        rows = [
            {
                "id": f"{n}",
                "label": "AB"[n % 2],
                "prompts": [{"q": f"{task} {n}"}],
                "metadata": {},
            }
            for n in range(12)
        ]
        (tasks / f"{task}.jsonl").write_text(
            "\n".join(map(json.dumps, rows)), encoding="utf-8"
        )
        language = {
            "filepath": f"seahelm_tasks/{task}.jsonl", "example_filepath": None, "max_tokens": 8, "prompt_template": TEMPLATE,
        }  # fmt: skip
        config[task] = {
            "name": task, "competency": "nlu", "metadata": {"version": 1}, "metric_file": "src/metrics/f1_acc_metric.py",
            "metric_class": "F1AccMetric", "metric": "normalized_accuracy", "fewshot_num_examples": {"instruct": 0, "base": 0},
            "languages": {"id": language},
        }  # fmt: skip
    (tasks / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    (tasks / "task_config.yaml").write_text(
        json.dumps({"mine": {"id": list(config)}}), encoding="utf-8"
    )
    for name, answer, scoring in (
        ("a", "A: A", "published"),
        ("b", "A: B", "published"),
        ("c", "A: A", "corrected"),
    ):
        done = typed(
            "run", "sea-helm:mine", "--task-root", "tree", "--model", "scripted/constant", "-M", f"text={answer}",
            "--scoring", scoring, "--name", name, folder=made,
        )  # fmt: skip
        assert done.code == 0, done.text
    return made


def test_totals_stand_on_a_board_in_their_own_unit(folder: Path) -> None:
    path = folder / "runs" / "a" / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    for one in (*record["tasks"], *record["groups"]):
        one["metrics"][0]["value"] = 21.5
    path.write_text(json.dumps(record), encoding="utf-8")
    shown = typed("leaderboard", "a", "b", folder=folder).text
    assert "21.5" in shown and "2,150" not in shown


@pytest.mark.parametrize("command", ["compare", "leaderboard"])
def test_a_published_number_is_not_put_beside_a_corrected_one_of_its_name(
    folder: Path, command: str
) -> None:
    done = typed(command, "b", "c", folder=folder)
    assert done.code == 2
    assert (
        "published" in done.text
        and "corrected" in done.text
        and "'normalized_accuracy'" in done.text
    )


def test_two_published_runs_are_said_to_be_beyond_comparison(folder: Path) -> None:
    shown = " ".join(typed("compare", "a", "b", folder=folder).text.split())
    assert shown.endswith(
        "Nothing can be said of sea-helm:colours/id and sea-helm:shapes/id: the numbers have no interval."
    )
    assert "No significant difference" not in shown and "made again" not in shown
