"""Run with the released package on the path: a class task by its own runner and by ours, with
one and the same model.

Arguments: the folder of task files, and cases as JSON. Prints a JSON object for each case: both
runs' results. The model's answers are a pure function of the request's text.
"""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from evalwright import ScriptedModel, evaluate, score_run
from evalwright.compat.lm_eval.tasks.loading import Library
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.results import task_results
from evalwright.compat.lm_eval.tasks.row_requests import prompt_as_text
from evalwright.core.requests import Generate, LogLikelihood, Prompt, Request
from evalwright.core.responses import Response
from evalwright.runs.reader import Run


def number(*parts: str) -> int:
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:4], "big")


def likelihood(*parts: str) -> tuple[float, bool]:
    found = number(*parts)
    return -(found % 1000) / 100 - 0.01, found % 3 == 0


def text(prompt: str) -> str:
    return ("ja", "nein", "blue", "7")[number(prompt) % 4]


def template(messages: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
    joined = "".join(f"<{turn['role']}>{turn['content']}</>" for turn in messages)
    return (
        joined + "<assistant>" if add_generation_prompt else joined.removesuffix("</>")
    )


class Theirs(LM):  # type: ignore[misc]
    """The model as the package asks it."""

    tokenizer_name = "none"

    def loglikelihood(self, requests: Any) -> Any:
        return [likelihood(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: Any) -> Any:
        return [likelihood(request.args[0])[0] for request in requests]

    def generate_until(self, requests: Any) -> Any:
        return [text(request.args[0]) for request in requests]

    def apply_chat_template(
        self, messages: Any, add_generation_prompt: bool = True
    ) -> str:
        return template(messages, add_generation_prompt)


def ours(request: Request) -> Response:
    """The model as we ask it."""

    def told(prompt: Prompt) -> str:
        return prompt_as_text(prompt, template)

    if isinstance(request, LogLikelihood):
        value, greedy = likelihood(told(request.context), request.continuation)
        return Response(log_likelihood=value, is_greedy=greedy)
    if isinstance(request, Generate):
        return Response(text=text(told(request.prompt)))
    return Response(log_likelihood=likelihood(request.text)[0])  # type: ignore[union-attr]


def their_results(folder: Path, name: str, shots: int, chat: bool) -> dict[str, Any]:
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found = simple_evaluate(
        Theirs(),
        tasks=[name],
        task_manager=manager,
        num_fewshot=shots,
        bootstrap_iters=100,
        apply_chat_template=chat,
        fewshot_as_multiturn=chat,
    )
    assert found is not None
    result = found["results"][name]
    return {
        "results": {key: value for key, value in result.items() if "," in key},
        "n": result["sample_len"],
    }


def our_run(folder: Path, name: str, shots: int, chat: bool, scoring: Any) -> Run:
    options = Options((folder,), (folder,), shots, scoring, chat, bootstrap=100)
    (run,) = evaluate(
        Library(options).load(name),
        ScriptedModel(ours, version="1"),
        name=f"{name}-{shots}-{chat}-{scoring}",
    )
    return run


def compared(folder: Path, name: str, shots: int, how: str) -> dict[str, Any]:
    chat = how == "chat"
    run = our_run(folder, name, shots, chat, "published")
    found = task_results(run.data["tasks"])[name]
    again = score_run(
        run,
        dialect={"task_root": [str(folder)], "trust": [str(folder)], "bootstrap": 100},
    )
    corrected = our_run(folder, name, shots, chat, "corrected")
    return {
        "theirs": their_results(folder, name, shots, chat),
        "ours": {
            "results": {key: value for key, value in found.items() if "," in key},
            "n": found["sample_len"],
        },
        "metrics": run.data["tasks"][0]["metrics"],
        "again": again.data["tasks"][0]["metrics"],
        "failed": run.n_missing + corrected.n_missing,
        "better": run.data["tasks"][0]["definition"]["higher_is_better"],
        "corrected": corrected.data["tasks"][0]["metrics"],
        "prompts": [
            [
                record.sample.metadata["doc"]["question"],
                prompt_as_text(record.answer.prompt, template),
            ]
            for record in corrected.samples()
            if record.answer is not None
        ],
    }


if __name__ == "__main__":
    os.environ["DISABLE_MULTIPROC"] = "1"
    lines = [
        json.dumps(compared(Path(sys.argv[1]), *case))
        for case in json.loads(sys.argv[2])
    ]
    print(*lines, sep="\n")
