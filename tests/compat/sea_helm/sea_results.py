"""A small task folder of SEA-HELM's form, and result folders in the shape that SEA-HELM's own
writers give them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]
LABELS = "AABBAB"
TAG = {"id": "Jawaban:", "tl": "Sagot:"}


def task(name: str, language: str, **more: Any) -> dict[str, Any]:
    """A task's entry in one language."""
    return {
        "name": name, "competency": "nlu", "metadata": {"version": 1.1},
        "metric_file": "src/metrics/f1_acc_metric.py", "metric_class": "F1AccMetric", "metric": "normalized_accuracy",
        "fewshot_num_examples": {"instruct": 0, "base": 0},
        "languages": {language: {
            "filepath": f"seahelm_tasks/{name}/{language}.jsonl", "example_filepath": None, "max_tokens": 16,
            "prompt_template": {"preamble": f"{TAG[language]} X", "task_template": "{question}",
                                "answer_template": "{answer_tag} {label}", "answer_tag": TAG[language]}}},
        **more,
    }  # fmt: skip


def rows_of(language: str) -> list[dict[str, Any]]:
    """Six questions, half of them with each label."""
    return [
        {"id": f"q{i}_{language}", "label": label, "prompts": [{"question": f"{language} {i}?"}], "metadata": {"language": language}}
        for i, label in enumerate(LABELS)
    ]  # fmt: skip


def write_tree(root: Path) -> Path:
    """SEA-HELM's folder: colours in two languages, shapes of a group of their own, and captions,
    whose metric is not here.
    """
    made = {
        "colours": {**task("colours", "id"), "languages": {**task("colours", "id")["languages"], **task("colours", "tl")["languages"]}},
        "shapes": task("shapes", "id", competency="safety", aggregation_group="forms"),
        "captions": task("captions", "id", metric_file="seahelm_tasks/vision/xm3600/refclipscore_metric.py", metric_class="RefClipScoreMetric"),
    }  # fmt: skip
    place = root / "seahelm_tasks"
    for name, one in made.items():
        (place / name).mkdir(parents=True)
        (place / name / "config.yaml").write_text(json.dumps({name: one}))
        for language in one["languages"]:
            lines = "".join(f"{json.dumps(row)}\n" for row in rows_of(language))
            (place / name / f"{language}.jsonl").write_text(lines)
    sets = {"mine": {"id": ["colours", "forms"], "tl": ["colours"]}}
    (place / "task_config.yaml").write_text(json.dumps(sets))
    return root


def write_results(
    out: Path, model: str, answers: Sequence[str], *, raised: Sequence[int] = ()
) -> Path:
    """A model's folder: a numbered run for each text of six answers; "-" is a request that
    failed. raised: runs whose shapes raised.
    """
    base = model.rpartition("/")[2]
    tasks = {
        "colours": {**task("colours", "id"), "languages": {**task("colours", "id")["languages"], **task("colours", "tl")["languages"]}},
        "shapes": task("shapes", "id", competency="safety", aggregation_group="forms", max_n_runs=1),
    }  # fmt: skip
    for number, said in enumerate(answers):
        folder = out / base / f"run_{number}"
        stamp = f"2026-03-0{number + 1}T10:00:00.000001"
        config = {
            "tasks": tasks, "seed": 1000 + number, "run_number": number, "run_env": {"seahelm_git_hash": "abc"},
            "run_args": {"model_name": model, "is_base_model": False, "is_reasoning_model": False, "skip_task": [], "limit": None},
        }  # fmt: skip
        _put(folder / f"configs/{base}_run_config_{stamp}.yaml", json.dumps(config))
        results: dict[str, Any] = {}
        for name, language in (
            ("colours", "id"),
            ("colours", "tl"),
            *((("shapes", "id"),) if number == 0 else ()),
        ):
            place = results.setdefault(language, {}).setdefault(
                tasks[name]["competency"], {}
            )
            place[name] = {"inference_time_taken": [0.1], "is_cached": [False]}
            stem = (
                folder
                / f"inferences/{language}/{tasks[name].get('aggregation_group', name)}/{base}_{name}_{language}"
            )
            lines = [
                _line(row, letter)
                for row, letter in zip(rows_of(language), said, strict=True)
            ]
            replies = [
                {
                    key: line[key][0]
                    for key in (
                        "responses",
                        "errors",
                        "finish_reasons",
                        "reasoning_contents",
                        "token_usages",
                    )
                }
                for line in lines
            ]
            _put(
                stem.with_name(f"{stem.name}_turn1_batch_response.jsonl"),
                _text(replies),
            )
            if name == "shapes" and number in raised:
                place[name] |= {
                    "normalized_accuracy": 0,
                    "error": "Failed to run evaluation for task",
                }
                continue
            _put(stem.with_name(f"{stem.name}.jsonl"), _text(lines))
            hits = [
                sum(
                    line["individual_scores"]["normalized_accuracy"]
                    for line in lines
                    if line["label"] == gold
                )
                / 3
                for gold in "AB"
            ]
            worth = sum(hits) / 2
            place[name] |= {
                "accuracy": 100 * worth,
                "normalized_accuracy": 100 * max(2 * worth - 1, 0),
                "null_count": said.count("-"),
            }
        _put(
            folder / f"results/{base}_seahelm_results_{stamp}.json",
            json.dumps(_totals(results)),
        )
    return out / base


def _line(row: Mapping[str, Any], letter: str) -> dict[str, Any]:
    failed = letter == "-"
    text = f"{TAG[row['metadata']['language']]} {letter}"
    return {
        **row, "conversations": [{"role": "user", "content": f"{TAG[row['metadata']['language']]} X\n\n{row['prompts'][0]['question']}"}],
        "finish_reasons": [None if failed else "stop"], "responses": ["" if failed else text], "reasoning_contents": [None],
        "token_usages": [None if failed else {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}], "custom_ids": [None],
        "errors": ["connection reset" if failed else None], "cleaned_responses": "null" if failed else letter,
        "individual_scores": {"normalized_accuracy": float(letter == row["label"])},
    }  # fmt: skip


def _totals(results: dict[str, Any]) -> dict[str, Any]:
    totals = []
    for competencies in results.values():
        for tasks in competencies.values():
            tasks["total"] = sum(
                one["normalized_accuracy"] for one in tasks.values()
            ) / len(tasks)
        competencies["total"] = sum(
            one["total"] for one in competencies.values()
        ) / len(competencies)
        totals.append(competencies["total"])
    return {**results, "total": sum(totals) / len(totals)}


def _text(rows: Rows) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
