"""What command lines of older releases (0.0 to 0.4.8) say that 0.4.13 does not know, with what to write in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

FLAGS = {
    "accelerate_dtype": "--model_args dtype=...",
    "decontamination_ngrams_path": "`evalwright contamination` (nothing in the harness reads it)",
    "description_dict_path": "`description:` in the task's file, or --system_instruction",
    "huggingface_token": "the environment variable HF_TOKEN",
    "no_cache": "nothing: responses are kept with the model that gave them, and no other model gets them",
    "output_base_path": "--output_path with --log_samples",
    "provide_description": "`description:` in the task's file",
    "use_accelerate": "--model_args parallelize=True",
}
MODELS = {
    **dict.fromkeys(("gpt2", "hf-causal", "hf-causal-experimental", "hf-seq2seq"), "hf"),
    **dict.fromkeys(("gooseai", "gpt3", "openai"), "openai-completions"),
    "anthropic": "anthropic-completions",
    "mamba": "mamba_ssm",
    "optimum-causal": "openvino",
}
ARGUMENTS = {
    "use_accelerate": "parallelize=True",
    "use_fast": "use_fast_tokenizer=...",
}
"""Of the transformers classes."""
TASKS = {
    r"hendrycksTest-\*": "mmlu",
    r"hendrycksTest-(.+)": r"mmlu_\1",
    r"truthfulqa_mc": "truthfulqa_mc1,truthfulqa_mc2",
    r"math_(\w+)": r"hendrycks_math_\1",
}
LISTS = {"list": "tasks", "list_groups": "groups", "list_subtasks": "subtasks", "list_tags": "tags"}


def renamed_flags(arguments: Sequence[str]) -> list[str]:
    """A sentence for each flag on a command line that is gone, and for its model class then."""
    words = [
        part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else (word,))
    ]
    names = [word[2:].replace("-", "_") for word in words if word.startswith("--")]
    said = [_sentence(f"--{name}", FLAGS[name]) for name in dict.fromkeys(names) if name in FLAGS]
    models = [model for flag, model in pairwise(words) if flag == "--model" and model in MODELS]
    return said + [renamed_model(model) for model in models] if said else []


def renamed_model(name: str) -> str:
    """The sentence for a model class, which is "" for one that never was."""
    return _sentence(f"--model {name}", f"--model {MODELS[name]}") if name in MODELS else ""


def renamed_values(given: Mapping[str, Any]) -> list[str]:
    """A sentence for each argument of a transformers class, and each list of tasks, that is gone. given: as of `flags.normalised`."""
    model = str(given.get("model", "hf"))
    ours = MODELS.get(model, model) in ("hf", "hf-auto", "huggingface")
    named = [key for key in ARGUMENTS if ours and key in given.get("model_args", {})]
    lists = [name for name in given.get("tasks") or () if isinstance(name, str) and name in LISTS]
    said = [
        *(_sentence(f"{key} in --model_args", ARGUMENTS[key]) for key in named),
        *(_sentence(f"--tasks {name}", f"`evalwright lm-eval ls {LISTS[name]}`") for name in lists),
    ]
    return [*said, renamed_model(model)] if said and model in MODELS else said


def renamed_tasks(names: Iterable[str]) -> Iterator[str]:
    """A sentence for each task that had another name; for when it is not found."""
    for name in names:
        for old, new in TASKS.items():
            if found := re.fullmatch(old, name):
                yield _sentence(f"'{name}'", f"--tasks {found.expand(new)}")
                break


def _sentence(old: str, new: str) -> str:
    return f"{old} is of an older lm_eval: in its place write {new}."
