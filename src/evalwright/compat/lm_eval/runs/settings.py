"""The settings of a run in their words: what its results files say of tasks, groups, prompts and
the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from evalwright.compat.lm_eval.runs.names import depths, digest
from evalwright.compat.lm_eval.runs.rows import Render, as_json
from evalwright.compat.lm_eval.tasks.config import FewShot
from evalwright.compat.lm_eval.tasks.estimates import LESS
from evalwright.compat.lm_eval.tasks.options import DIALECT
from evalwright.compat.lm_eval.tasks.results import Group
from evalwright.compat.lm_eval.tasks.scoring import KNOWN
from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import Message
from evalwright.core.secrets import masked_arguments
from evalwright.runs.reader import Run


def task_config(
    task: Mapping[str, Any], shots: int, files_asked: Collection[str] = ()
) -> dict[str, Any]:
    """The entry in `configs` of a task of theirs that was run here: its file's settings with every
    default.

    files_asked: files that were named by their path, of which they do not say where a task is from.
    """
    definition = task["definition"]
    config = dict(definition["config"])
    generates = config.get("output_type", "generate_until") == "generate_until"
    if generates or "generation_kwargs" in config:
        config["generation_kwargs"] = definition["generation"]
    if isinstance(given := config.get("dataset_kwargs"), Mapping):
        config["dataset_kwargs"] = {
            key: given[key] for key in given if key != "trust_remote_code"
        }
    config["fewshot_config"] = _shots_config(config)
    # A row's own functions are there as source text; those of shots are not read there.
    known = task.get("metadata", {})
    config |= known.get("code", {})
    if config.get("metric_list") == [{"metric": "bypass"}]:
        config["process_results"] = "process_results"
    place = known.get("config_source")
    source = (
        {"config_source": "inline" if place in files_asked else place} if place else {}
    )
    return {
        **config,
        "num_fewshot": shots,
        "metadata": {**(definition.get("metadata") or {}), **source},
    }


def _shots_config(config: Mapping[str, Any]) -> dict[str, Any]:
    given = config.get("fewshot_config") or {}
    known = {
        **config,
        "split": config.get("fewshot_split"),
        "sampler": "default",
        "samples": None,
        **given,
    }
    return {one.name: known.get(one.name) for one in fields(FewShot)}


def better(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Whether more is better, by metric: as the task's file says, else as they know."""
    return {
        name: (name not in LESS if name in KNOWN else None) if said is None else said
        for name, said in definition.get("higher_is_better", {}).items()
    }


def group_settings(
    groups: Mapping[str, Group],
    shots: Mapping[str, int],
    up: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """`n-shot` and `higher_is_better` with the groups, which have what is the same in all directly
    in them.

    shots, up: of the tasks.
    """
    all_shots: dict[str, int] = dict(shots)
    all_up: dict[str, Mapping[str, Any]] = dict(up)
    for name, group in outer_first(groups):
        counts = {all_shots[child] for child in group.children if child in all_shots}
        if len(counts) == 1:
            all_shots[name] = counts.pop()
        found: dict[str, Any] = {}
        for child in group.children:
            for metric, way in all_up.get(child, {}).items():
                same = found.setdefault(metric, way) == way
                found[metric] = way if same else None
        if found:
            all_up[name] = found
    return {"n-shot": all_shots, "higher_is_better": all_up}


def outer_first(groups: Mapping[str, Group]) -> Iterator[tuple[str, Group]]:
    """Groups before the groups in them, which is the order in which theirs go: an outer one has
    nothing of an inner one.
    """
    children = {name: group.children for name, group in groups.items()}
    return ((name, groups[name]) for name, _ in depths(children, groups))


def inner_first(groups: Mapping[str, Group]) -> Iterator[str]:
    """Names of groups after those of the groups in them, which is the order in which theirs are
    averaged.
    """
    waiting = [(name, False) for name, _ in outer_first(groups)][::-1]
    seen: set[str] = set()
    while waiting:
        name, complete = waiting.pop()
        if complete:
            yield name
        elif name in groups and name not in seen:
            seen.add(name)
            waiting += [
                (name, True),
                *((child, False) for child in reversed(groups[name].children)),
            ]


def tracked(run: Run) -> dict[str, Any]:
    """How prompts were made: instruction and chat template, with their hashes."""
    definitions = [task["definition"] for task in run.data["tasks"]]
    theirs = [one for one in definitions if one.get("dialect") == DIALECT]
    system = next((one["system"] for one in theirs if one.get("system")), None)
    chat = [one for one in theirs if one.get("chat")]
    template = (run.data["model"].get("template") or {}).get("source") if chat else None
    return {
        "system_instruction": system,
        "system_instruction_sha": digest(system) if system else None,
        "fewshot_as_multiturn": bool(chat[0].get("multiturn")) if chat else None,
        "chat_template": template,
        "chat_template_sha": digest(template) if template else None,
    }


def renderer(run: Run) -> Render:
    """Messages as the text that the run's model got, by the recorded template; as JSON where there
    is none.
    """
    from evalwright.models.local.chat_template import ChatTemplate
    from evalwright.models.local.hf.prompts import fold_system

    found = run.data["model"].get("template") or {}
    published = _model_arguments(run).get("token_rules") == "published"

    def render(messages: Sequence[Message]) -> str:
        with suppress(EvalwrightError):
            return template.render(tuple(messages))
        others = tuple(message for message in messages if message.role != "system")
        with suppress(EvalwrightError):
            return template.render(others if published else fold_system(messages))
        return as_json(messages)

    if found.get("source"):
        with suppress(EvalwrightError):
            template = ChatTemplate(found["source"], found.get("variables", {}))
            return render
    return as_json


def _model_arguments(run: Run) -> Mapping[str, Any]:
    spec: Any = next(iter(run.data["configuration"].get("models") or ()), {})
    return spec.get("arguments", {}) if isinstance(spec, Mapping) else {}


def run_config(run: Run) -> dict[str, Any]:
    """The entry `config` of a run of ours. Seeds that nothing here draws from are null."""
    configuration = run.data["configuration"]
    provider, _, rest = run.model.partition("/")
    given = dict(_model_arguments(run))
    dialect: Mapping[str, Any] = configuration.get("dialect") or {}
    definitions = [task["definition"] for task in run.data["tasks"]]
    shot_seeds = [one["seed"] for one in definitions if "seed" in one and "chat" in one]
    arguments = {"pretrained" if provider == "hf" else "model": rest or provider}
    arguments |= {
        key: value
        for key, value in given.items()
        if key not in ("device", "batch_size")
    }
    return {
        "model": provider,
        "model_args": masked_arguments(arguments),
        **_model_facts(run.data["model"]),
        "batch_size": given.get("batch_size"),
        "batch_sizes": [],
        "device": given.get("device"),
        "use_cache": None,
        "limit": configuration.get("limit"),
        "bootstrap_iters": dialect.get("bootstrap", 100_000) if shot_seeds else 0,
        "gen_kwargs": dict(dialect.get("generation", {})),
        "random_seed": configuration.get("seed"),
        "numpy_seed": None,
        "torch_seed": None,
        "fewshot_seed": shot_seeds[0] if shot_seeds else None,
    }


def _model_facts(model: Mapping[str, Any]) -> dict[str, Any]:
    facts: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "model_num_parameters": ("parameters", int),
        "model_dtype": ("dtype", lambda dtype: f"torch.{dtype}"),
        "model_revision": ("revision", str),
    }
    out = {
        name: made(model[key])
        for name, (key, made) in facts.items()
        if model.get(key) is not None
    }
    # A folder has neither; this is what they write then.
    return (
        {**out, "model_revision": out.get("model_revision", "main"), "model_sha": ""}
        if out
        else out
    )


def tokenizer_facts(model: Mapping[str, Any]) -> dict[str, Any]:
    """Special tokens and context length of a model whose tokenizer is known.

    Where there is no padding token, they pad with another.
    """
    tokens: Mapping[str, Sequence[Any]] = model.get("special_tokens") or {}
    if not tokens:
        return {}
    known = {
        role: tokens.get(f"{role}_token", (None, None))
        for role in ("bos", "eos", "pad", "unk")
    }
    known["pad"] = next(
        (known[role] for role in ("pad", "unk", "eos") if known[role][0]), known["pad"]
    )
    out = {
        f"tokenizer_{role}_token": [known[role][0], str(known[role][1])]
        for role in ("pad", "eos", "bos")
    }
    return {
        **out,
        "eot_token_id": known["eos"][1],
        "max_length": model.get("context_length"),
    }
