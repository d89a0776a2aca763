"""Makes the files beside it anew, with the released package: python record.py (lm_eval 0.4.13,).

Its model answers by a hash of the request, so that ours can be asked the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TASKS = ["heavens", "skies"]
RUNS: Mapping[str, Mapping[str, Any]] = {
    "texts": {"bootstrap_iters": 50},
    "chats": {
        "apply_chat_template": True,
        "fewshot_as_multiturn": False,
        "system_instruction": "Be brief.",
        "num_fewshot": 1,
        "limit": 2,
        "bootstrap_iters": 0,
        "fewshot_random_seed": 7,
        "gen_kwargs": "max_gen_toks=3",
    },
}
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


def table_model(base: Any) -> Any:
    """A model of the class `base`, `lm_eval.api.model.LM` or ours."""

    class TableLM(base):  # type: ignore[misc]
        tokenizer_name = "table"

        def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
            return [
                (-number(*one.args) / 16 - 0.125, number(*one.args) % 2 == 0)
                for one in requests
            ]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
            return [-number(*one.args) / 4 - 1 for one in requests]

        def generate_until(self, requests: Any, **_: Any) -> list[str]:
            names = ("Mars", "Vega.", "Io shines", "rhea", "")
            return [names[number(one.args[0]) % len(names)] for one in requests]

        def chat_template(self, chat_template: Any = False) -> str:
            return TEMPLATE

        def apply_chat_template(
            self, chat_history: Any, add_generation_prompt: bool = True
        ) -> str:
            text = "".join(
                f"<{turn['role']}>{turn['content']}" for turn in chat_history
            )
            return text + ("<assistant>" if add_generation_prompt else "")

    return TableLM()


def number(*parts: str) -> int:
    """A number below 256 from texts."""
    return hashlib.sha256("\0".join(parts).encode()).digest()[0]


def main() -> None:
    """Run and write."""
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    os.chdir(HERE)
    for name, settings in RUNS.items():
        tracker = EvaluationTracker(output_path=str(HERE / name / "results.json"))
        manager = TaskManager(include_path=str(HERE / "tasks"), include_defaults=False)
        results = simple_evaluate(
            table_model(LM),
            tasks=TASKS,
            task_manager=manager,
            evaluation_tracker=tracker,
            **settings,
        )
        samples = results.pop("samples")
        results |= {"pretty_env_info": "", "git_hash": None, "upper_git_hash": None}
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in results["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])
        for path in (HERE / name).iterdir():
            head = path.name.rpartition("_")[0]
            text = path.read_text(encoding="utf-8").replace(str(HERE), ".")
            path.with_name(f"{head}{path.suffix}").write_text(text, encoding="utf-8")
            path.unlink()


if __name__ == "__main__":
    main()
