"""The golden runs of lm-evaluation-harness 0.4.13, and a model that answers as it did.

A run's key is `task|shots|{arguments}`; its samples hold requests, answers, filtered answers and
worth.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from evalwright.compat.lm_eval.tasks.row_requests import prompt_as_text
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Prompt,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.scripted import ScriptedModel

ROOT = Path(__file__).resolve().parents[4]
PARITY = ROOT.parent / "shared" / "parity"
GOLDEN = PARITY / "golden.json.gz"

SHIPPED = {
    "syn_arc_challenge": ("arc/arc_challenge.yaml", "arc"),
    "syn_hellaswag": ("hellaswag/hellaswag.yaml", "hellaswag"),
    "syn_gsm8k": ("gsm8k/gsm8k.yaml", "gsm8k"),
    "syn_wikitext": ("wikitext/wikitext.yaml", "wikitext"),
    "syn_lambada": ("lambada/lambada_openai.yaml", "lambada"),
    "syn_cola": ("glue/cola/default.yaml", "cola"),
    "syn_prefix": ("gsm8k/gsm8k.yaml", "gsm8k"),
}
MMLU = ("mmlu_anatomy", "mmlu_astronomy", "mmlu_college_biology")


@lru_cache(maxsize=1)
def runs() -> dict[str, Any]:
    """Every golden run by its key."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
        return found


def keys() -> list[str]:
    """The runs' keys, none where the golden file is not there."""
    return sorted(runs()) if GOLDEN.exists() else []


def parts(key: str) -> tuple[str, int | None, dict[str, Any]]:
    """Task, shots and further arguments of a run."""
    task, _, rest = key.partition("|")
    shots, _, arguments = rest.partition("|")
    return (
        task,
        None if shots == "None" else int(shots),
        json.loads(arguments) if arguments else {},
    )


def package_spec() -> ModuleSpec | None:
    """Where the released package is installed here.

    Our stand-in for it, which a test may have made, is none.
    """
    stands_in = "lm_eval" in sys.modules and sys.modules["lm_eval"].__spec__ is None
    return None if stands_in else importlib.util.find_spec("lm_eval")


def shipped_folder() -> Path | None:
    """The released package's task files: in $LM_EVAL_TASKS, or of the package installed here or
    beside its command.
    """
    places = (
        [Path(os.environ["LM_EVAL_TASKS"])] if os.environ.get("LM_EVAL_TASKS") else []
    )
    spec = package_spec()
    places += (
        [Path(place) / "tasks" for place in (spec.submodule_search_locations or [])]
        if spec
        else []
    )
    command = shutil.which("lm_eval")
    if command:
        places += (
            Path(command)
            .resolve()
            .parent.parent.glob("lib/python3*/site-packages/lm_eval/tasks")
        )
    return next((place for place in places if place.is_dir()), None)


def write_tasks(folder: Path, shipped: Path) -> None:
    """Task files that point the shipped ones at the synthetic rows."""
    import yaml

    def write(name: str, include: Path, rows: str, **more: Any) -> None:
        files = {
            path.stem: str(path)
            for path in sorted((PARITY / "rows" / rows).glob("*.jsonl"))
        }
        data = {
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": files},
        }
        content = {"include": str(include), "task": name, **data, **more}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")

    for name, (file, rows) in SHIPPED.items():
        more = (
            {"gen_prefix": "Let me think:", "description": "Maths.\n\n"}
            if name == "syn_prefix"
            else {}
        )
        write(name, shipped / file, rows, **more)
    for name in MMLU:
        write(name, shipped / "mmlu/default" / f"{name}.yaml", name)
    group = {
        "group": "syn_mmlu",
        "task": list(MMLU),
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
    }
    (folder / "group.yaml").write_text(yaml.safe_dump(group), encoding="utf-8")


def chat_template(
    messages: Sequence[Mapping[str, str]], add_generation_prompt: bool
) -> str:
    """How the golden model's template renders messages; a begun answer is left open."""
    text = "".join(f"<{turn['role']}>{turn['content']}</>" for turn in messages)
    return text + "<assistant>" if add_generation_prompt else text.removesuffix("</>")


def text_of(prompt: Prompt) -> str:
    """A prompt as the golden model got it."""
    return prompt_as_text(prompt, chat_template)


def model_of(run: Mapping[str, Any], name: str) -> ScriptedModel:
    """A model that gives a run's answers to its very requests, and fails at any other."""
    table = dict(_answers(run))

    def script(request: Request) -> Response:
        if isinstance(request, LogLikelihood):
            found = table[text_of(request.context), request.continuation]
            return Response(
                log_likelihood=found[0], is_greedy=found[1], tokens_scored=1
            )
        if isinstance(request, RollingLogLikelihood):
            return Response(log_likelihood=table[request.text,], tokens_scored=1)
        assert isinstance(request, Generate)
        return Response(text=table[text_of(request.prompt), request.stop])

    return ScriptedModel(script, name=name)


def _answers(run: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for samples in run["samples"].values():
        for sample in samples:
            for arguments, answers in zip(
                sample["arguments"], sample["resps"], strict=True
            ):
                if len(arguments) == 2 and isinstance(arguments[1], dict):
                    yield (arguments[0], tuple(arguments[1]["until"])), answers[0]
                else:
                    yield tuple(arguments), answers[0]
