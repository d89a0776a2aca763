"""A folder of SEA-HELM's form with two tasks in two languages, its golden outputs, and where its
own folder is.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT.parent / "shared" / "golden" / "sea-helm" / "golden.jsonl.gz"
TREE = Path(os.environ.get("SEA_HELM_TREE", "/nowhere"))
"""SEA-HELM's own folder, for the tests that need it."""

needs_golden = pytest.mark.skipif(
    not GOLDEN.is_file(), reason="the golden outputs are not beside this checkout"
)
needs_tree = pytest.mark.skipif(
    not (GOLDEN.is_file() and TREE.is_dir()),
    reason="SEA_HELM_TREE names no checkout of SEA-HELM, or no golden outputs",
)

LABELS = ("src/metrics/f1_acc_metric.py", "F1AccMetric")


def golden(kind: str) -> Iterator[dict[str, Any]]:
    """The lines of a kind."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith(f'{{"kind":"{kind}",'):
                yield json.loads(line)


def entry(name: str, languages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A task's entry in a configuration file."""
    return {
        "metadata": {"version": 2},
        "name": name,
        "competency": "nlu",
        "metric_file": LABELS[0],
        "metric_class": LABELS[1],
        "metric": "normalized_accuracy",
        "fewshot_num_examples": {"instruct": 0, "base": 1},
        "languages": dict(languages),
        **more,
    }


def spoken(task: str, language: str, **more: Any) -> dict[str, Any]:
    """What an entry says of a language."""
    tag = {"id": "Jawaban:", "tl": "Sagot:"}[language]
    return {
        "filepath": f"seahelm_tasks/{task}/{language}.jsonl",
        "example_filepath": f"seahelm_tasks/{task}/{language}_examples.jsonl",
        "max_tokens": 8,
        "prompt_template": {
            "preamble": f"Pick one ({language}). Write {{answer_tag}} and {{{{a letter}}}}.",
            "task_template": "Question: {question}\n",
            "answer_template": "{answer_tag} {label}",
            "answer_tag": tag,
        },
        **more,
    }


def write(path: Path, value: Any) -> None:
    """A file of YAML (JSON is YAML), of rows for a list, or of text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = isinstance(value, list)
    path.write_text(
        value
        if isinstance(value, str)
        else "".join(json.dumps(row) + "\n" for row in (value if rows else [value]))
    )


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows with labels A and B in turn."""
    return [
        {
            "id": f"item{n}",
            "label": "AB"[n % 2],
            "prompts": [{"question": f"What is {n}?"}],
            "metadata": {"language": "x"},
        }
        for n in range(start, start + count)
    ]


def small_tree(root: Path) -> Path:
    """The folder: tasks `colours` (a twin beside it) and `qa-mc` in Indonesian and Filipino,
    sets, constants.
    """
    folder = root / "seahelm_tasks"
    for task in ("colours", "qa-mc"):
        for language in ("id", "tl"):
            write(folder / task / f"{language}.jsonl", rows(4))
            write(folder / task / f"{language}_examples.jsonl", rows(2, 10))
    own = entry("colours", {one: spoken("colours", one) for one in ("id", "tl")})
    twin = {
        **{
            key: f"${{colours.{key}}}"
            for key in ("metadata", "competency", "fewshot_num_examples", "languages")
        },
        "name": "colours-logprobs",
        "metric_file": "src/metrics/logprob_metric.py",
        "metric_class": "LogProbMetric",
        "metric": "average_cumulative_probabilities",
        "use_logprobs": "true",
        "max_n_runs": 1,
    }
    write(
        folder / "colours" / "config.yaml", {"colours": own, "colours-logprobs": twin}
    )
    other = entry(
        "qa-mc",
        {one: spoken("qa-mc", one) for one in ("id", "tl")},
        aggregation_group="reading",
    )
    write(folder / "qa-mc" / "config.yaml", {"qa-mc": other})
    sets = {
        "both": {"id": ["colours", "reading"], "tl": ["qa-mc", "colours"]},
        "everything": {"id": "all"},
        "holes": {"id": ["colours", "colors-logprobs"], "tl": ["nowhere-logprobs"]},
    }
    write(folder / "task_config.yaml", sets)
    write(
        folder / "constants.yaml",
        {"few_shot_stop_tokens": ["\n\n"], "base_models_skip_tasks": ["qa-mc"]},
    )
    thinking = {"end_think_token": "</think>", "max_think_tokens": 500}
    write(
        folder / "reasoning_generation_config.yaml",
        {"reasoning_generation_kwargs": thinking},
    )
    return root
