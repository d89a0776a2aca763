"""Runs tasks in the released lm_eval; to be started by its own interpreter: `python theirs.py
FOLDER JOBS.json OUT.json`.

JOBS: a list of {name, shots, chat, multiturn, system}. OUT: for each, `results` and `samples`, or
`error`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["DISABLE_MULTIPROC"] = "1"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from parity import hash_model


class HashModel(LM):  # type: ignore[misc]
    """The model of `hash_model` behind their interface."""

    tokenizer_name = "hash"

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """One answer per request."""
        return [hash_model.likelihood(*request.args[:2]) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        """One answer per request."""
        return [hash_model.rolling(request.args[0]) for request in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        """One answer per request."""
        answers = []
        for request in requests:
            until = request.args[1].get("until") or []
            answers.append(
                hash_model.generated(
                    request.args[0], [until] if isinstance(until, str) else list(until)
                )
            )
        return answers

    def apply_chat_template(
        self, chat_history: list[dict[str, Any]], add_generation_prompt: bool = True
    ) -> str:
        """Messages as text."""
        return hash_model.template(chat_history, add_generation_prompt)


def plain(value: Any) -> Any:
    """JSON of what a run gives."""
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def run_job(job: dict[str, Any], manager: Any) -> dict[str, Any]:
    """Run one job; its error where it fails."""
    more = (
        {"apply_chat_template": True, "fewshot_as_multiturn": job["multiturn"]}
        if job["chat"]
        else {}
    )
    try:
        evaluation = simple_evaluate(
            HashModel(),
            tasks=[job["name"]],
            task_manager=manager,
            num_fewshot=job["shots"],
            bootstrap_iters=100,
            system_instruction=job["system"],
            confirm_run_unsafe_code=True,
            **more,
        )
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    keys = ("doc_id", "arguments", "filtered_resps", "filter", "metrics")
    samples = {
        task: [
            {
                **{key: plain(row[key]) for key in keys},
                "worth": {name: plain(row[name]) for name in row["metrics"]},
            }
            for row in rows
        ]
        for task, rows in evaluation["samples"].items()
    }
    return {"results": plain(evaluation["results"]), "samples": samples}


def main() -> None:
    """Run all jobs, and write what came of each as soon as it is known."""
    folder, jobs, output_path = sys.argv[1:]
    manager = TaskManager(include_path=folder, include_defaults=False)
    with Path(output_path).open("w", encoding="utf-8") as file:
        for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
            file.write(json.dumps({"key": job["key"], **run_job(job, manager)}) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
