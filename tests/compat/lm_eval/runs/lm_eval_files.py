"""Results of lm_eval for the tests: those that its release 0.4.13 wrote with its `dummy` model,
and made-up ones.

The released files: a group `both` of `sums` (generate_until) and `pick` (multiple_choice), `roll`
(loglikelihood_rolling) and `last` (loglikelihood), run with `--model dummy --log_samples` on a few
rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalwright.runs.reader import Run

RELEASED = Path(__file__).parent / "lm_eval_0_4_13" / "dummy"
GOLDEN = Path(__file__).resolve().parents[5] / "shared" / "parity" / "golden.json.gz"
TIME = "2026-11-20T20-11-47.806334"


def read_results(folder: Path) -> dict[str, Any]:
    """The one results file under a folder."""
    (path,) = folder.rglob("results*.json")
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def read_lines(folder: Path, task: str, kind: str = "samples") -> list[dict[str, Any]]:
    """The lines of a task's samples (or failures) file under a folder."""
    (path,) = folder.rglob(f"{kind}_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(
    folder: Path,
    results: Mapping[str, Any] | None = None,
    time: str = "2026-01-02T03-04-05.000006",
    **samples: Iterable[Mapping[str, Any]],
) -> Path:
    """Write results and samples by task under a folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if results is not None:
        (folder / f"results_{time}.json").write_text(
            json.dumps(results), encoding="utf-8"
        )
    for task, lines in samples.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"samples_{task}_{time}.jsonl").write_text(text, encoding="utf-8")
    return folder


def line(doc: int, **metrics: Any) -> dict[str, Any]:
    """A line of a samples file."""
    pipeline = metrics.pop("filter", "none")
    return {
        "doc_id": doc,
        "doc": {"question": f"Question {doc}?"},
        "target": "yes",
        "arguments": {
            "gen_args_0": {
                "arg_0": f"Q: Question {doc}?\nA:",
                "arg_1": {"until": ["\n"]},
            }
        },
        "resps": [["yes, surely"]],
        "filtered_resps": ["yes"],
        "filter": pipeline,
        "metrics": list(metrics),
        **metrics,
    }


def values(run: Run) -> dict[str, float]:
    """A run's metrics by task and label."""
    return {
        f"{task.name} {metric.label}": metric.estimate.value
        for task in run.tasks
        for metric in task.metrics
    }
