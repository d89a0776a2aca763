"""A run's settings in lm_eval's terms, for its results files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from evalwright import Message, Run
from evalwright.compat.lm_eval.runs.names import depths, digest
from evalwright.compat.lm_eval.runs.sample_lines import Render, as_json
from evalwright.compat.lm_eval.tasks.config import FewShot
from evalwright.compat.lm_eval.tasks.estimates import LOWER_IS_BETTER_NAMES
from evalwright.compat.lm_eval.tasks.options import DIALECT
from evalwright.compat.lm_eval.tasks.results import Group
from evalwright.compat.lm_eval.tasks.scoring import PUBLISHED_METRICS
from evalwright.extend import masked_arguments, prompt_renderer


def task_config(
    task: Mapping[str, Any], shots: int, requested_files: Collection[str] = ()
) -> dict[str, Any]:
    """The entry in `configs` of an lm_eval task that was run here, with all defaults filled in.

    requested_files: task files that were named by path; lm_eval does not say where those are.
    """
    definition = task["definition"]
    config = dict(definition["config"])
    generates = config.get("output_type", "generate_until") == "generate_until"
    if generates or "generation_kwargs" in config:
        config["generation_kwargs"] = definition["generation"]
    if isinstance(dataset_kwargs := config.get("dataset_kwargs"), Mapping):
        config["dataset_kwargs"] = {
            key: dataset_kwargs[key]
            for key in dataset_kwargs
            if key != "trust_remote_code"
        }
    config["fewshot_config"] = _few_shot_config(config)
    # A row's own functions are there as source text; those of shots are not read there.
    metadata = task.get("metadata", {})
    config |= metadata.get("code", {})
    if config.get("metric_list") == [{"metric": "bypass"}]:
        config["process_results"] = "process_results"
    config_source = metadata.get("config_source")
    source = (
        {
            "config_source": "inline"
            if config_source in requested_files
            else config_source
        }
        if config_source
        else {}
    )
    return {
        **config,
        "num_fewshot": shots,
        "metadata": {**(definition.get("metadata") or {}), **source},
    }


def _few_shot_config(config: Mapping[str, Any]) -> dict[str, Any]:
    few_shot = config.get("fewshot_config") or {}
    settings = {
        **config,
        "split": config.get("fewshot_split"),
        "sampler": "default",
        "samples": None,
        **few_shot,
    }
    return {field.name: settings.get(field.name) for field in fields(FewShot)}


def metric_directions(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Whether higher is better, by metric, from the task file or the default; None if unknown."""
    directions = dict(definition.get("higher_is_better", {}))
    for name, direction in directions.items():
        if direction is None and name in PUBLISHED_METRICS:
            directions[name] = name not in LOWER_IS_BETTER_NAMES
    return directions


def group_settings(
    groups: Mapping[str, Group],
    shots: Mapping[str, int],
    up: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """`n-shot` and `higher_is_better`, with an entry for a group where all its children agree.

    shots, up: by task.
    """
    all_shots: dict[str, int] = dict(shots)
    all_up: dict[str, Mapping[str, Any]] = dict(up)
    for name, group in outer_first(groups):
        counts = {all_shots[child] for child in group.children if child in all_shots}
        if len(counts) == 1:
            all_shots[name] = counts.pop()
        directions: dict[str, Any] = {}
        for child in group.children:
            for metric, way in all_up.get(child, {}).items():
                agrees = directions.setdefault(metric, way) == way
                directions[metric] = way if agrees else None
        if directions:
            all_up[name] = directions
    return {"n-shot": all_shots, "higher_is_better": all_up}


def outer_first(groups: Mapping[str, Group]) -> Iterator[tuple[str, Group]]:
    """Groups before the groups inside them, the order in which lm_eval lists them."""
    children = {name: group.children for name, group in groups.items()}
    return ((name, groups[name]) for name, _ in depths(children, groups))


def inner_first(groups: Mapping[str, Group]) -> Iterator[str]:
    """Names of groups, inner ones first, the order in which lm_eval averages them."""
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


def prompt_facts(run: Run) -> dict[str, Any]:
    """System instruction and chat template of the run, with their hashes."""
    definitions = [task["definition"] for task in run.data["tasks"]]
    dialect_definitions = [
        definition for definition in definitions if definition.get("dialect") == DIALECT
    ]
    system = next(
        (
            definition["system"]
            for definition in dialect_definitions
            if definition.get("system")
        ),
        None,
    )
    chat = [definition for definition in dialect_definitions if definition.get("chat")]
    template = (run.data["model"].get("template") or {}).get("source") if chat else None
    return {
        "system_instruction": system,
        "system_instruction_sha": digest(system) if system else None,
        "fewshot_as_multiturn": bool(chat[0].get("multiturn")) if chat else None,
        "chat_template": template,
        "chat_template_sha": digest(template) if template else None,
    }


def renderer(run: Run) -> Render:
    """Choose how messages are rendered: by the run's chat template, as JSON if it has none."""
    published = _model_arguments(run).get("token_rules") == "published"
    render = prompt_renderer(run.data["model"], leaves_out_system=published)

    def render_or_serialise(messages: Sequence[Message]) -> str:
        text = render(messages)
        return as_json(messages) if text is None else text

    return render_or_serialise


def _model_arguments(run: Run) -> Mapping[str, Any]:
    spec: Any = next(iter(run.data["configuration"].get("models") or ()), {})
    return spec.get("arguments", {}) if isinstance(spec, Mapping) else {}


def run_config(run: Run) -> dict[str, Any]:
    """The entry `config` of a run of ours. Seeds that have no effect here are null."""
    configuration = run.data["configuration"]
    provider, _, model_path = run.model.partition("/")
    model_arguments = dict(_model_arguments(run))
    dialect: Mapping[str, Any] = configuration.get("dialect") or {}
    definitions = [task["definition"] for task in run.data["tasks"]]
    shot_seeds = [
        definition["seed"]
        for definition in definitions
        if "seed" in definition and "chat" in definition
    ]
    arguments = {"pretrained" if provider == "hf" else "model": model_path or provider}
    arguments |= {
        key: value
        for key, value in model_arguments.items()
        if key not in ("device", "batch_size")
    }
    return {
        "model": provider,
        "model_args": masked_arguments(arguments),
        **_model_facts(run.data["model"]),
        "batch_size": model_arguments.get("batch_size"),
        "batch_sizes": [],
        "device": model_arguments.get("device"),
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
    model_facts = {
        name: convert(model[key])
        for name, (key, convert) in facts.items()
        if model.get(key) is not None
    }
    # A folder has neither; this is what they write then.
    return (
        {
            **model_facts,
            "model_revision": model_facts.get("model_revision", "main"),
            "model_sha": "",
        }
        if model_facts
        else model_facts
    )


def tokenizer_facts(model: Mapping[str, Any]) -> dict[str, Any]:
    """Special tokens and context length, if the tokenizer is known.

    Without a padding token, another one pads.
    """
    tokens: Mapping[str, Sequence[Any]] = model.get("special_tokens") or {}
    if not tokens:
        return {}
    token_by_role = {
        role: tokens.get(f"{role}_token", (None, None))
        for role in ("bos", "eos", "pad", "unk")
    }
    token_by_role["pad"] = next(
        (
            token_by_role[role]
            for role in ("pad", "unk", "eos")
            if token_by_role[role][0]
        ),
        token_by_role["pad"],
    )
    facts = {
        f"tokenizer_{role}_token": [token_by_role[role][0], str(token_by_role[role][1])]
        for role in ("pad", "eos", "bos")
    }
    return {
        **facts,
        "eot_token_id": token_by_role["eos"][1],
        "max_length": model.get("context_length"),
    }
