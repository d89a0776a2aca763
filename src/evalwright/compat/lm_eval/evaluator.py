"""From the settings of `lm_eval run` or `simple_evaluate` to a run of ours, and back to its
results.
"""

from __future__ import annotations

import ast
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evalwright.compat.lm_eval.api.model import CachingLM
from evalwright.compat.lm_eval.harness.backends import SPREAD, Backend, backend_of
from evalwright.compat.lm_eval.harness.flags import (
    SEEDS,
    mapping_of,
    normalised,
    renamed_tasks,
)
from evalwright.compat.lm_eval.harness.plugins import load_plugins
from evalwright.compat.lm_eval.runs.names import NAMING, file_safe
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.index import TaskDict, TaskManager
from evalwright.compat.lm_eval.tasks.index import names as task_names
from evalwright.compat.lm_eval.tasks.options import PREFIX, installed_tasks, paths_of
from evalwright.core.errors import ConfigurationError, UnknownName, check_known
from evalwright.core.secrets import masked_arguments
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.processes import check_one_process
from evalwright.models.base import Model
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run
from evalwright.tasks.dialects import SCORINGS

Settings = Mapping[str, Any]
_LABELS = ("name", "group", "job_type", "tags", "notes", "step")
"""What only labels a run of a tracker."""
_WANDB_MODES = ("online", "offline", "disabled")
"""Where the numbers go: to its server, to a local folder, nowhere."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the settings become. notes: sentences on settings that became something else, or
    nothing. track: trackers.

    config: what its results files say of the settings, with the model's `name` there and what they
    have beside the settings (`shown`). environment: variables that trackers read during the run.
    plugins: Python files that were loaded for it.
    """

    configuration: Configuration
    notes: list[str] = field(default_factory=list)
    track: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()


def evaluation_of(given: Settings, model: Model | None = None) -> Evaluation:
    """What settings (as of `flags.normalised`) become. model: one that was made in Python.

    Raises UsageError.
    """
    tasks = given.get("tasks")
    if not tasks:
        raise ConfigurationError(
            "No tasks: name at least one with --tasks, such as arc_easy."
        )
    plugins = [str(file) for file in given.get("plugin", ())]
    load_plugins(plugins)
    backend = Backend(ModelSpec(model.name)) if model else _backend(given)
    plugins += [file for file in backend.plugins if file not in plugins]
    spec = backend.spec
    notes = list(backend.notes)
    scoring = given.get("scoring", "published")
    check_known("scoring", [scoring], SCORINGS)
    chat = given.get("apply_chat_template", False)
    more: dict[str, Any] = {}
    if scoring == "published" and spec.model.startswith("hf/"):
        more["token_rules"] = "published"
    if isinstance(chat, str):
        more["chat_template"] = chat
    if chat and spec.model.startswith("lm_eval/"):
        more["chat"] = True
    spec = replace(spec, arguments={**spec.arguments, **more})
    seeds = given.get("seed", SEEDS)
    dialect: dict[str, Any] = {
        "scoring": scoring,
        "task_root": [str(root) for root in _roots(given)],
        "trust": [*map(str, installed_tasks()), *given.get("trust", ())],
        "named_folders": list(given.get("named_folders", ())),
        "multiturn": not chat or given.get("fewshot_as_multiturn", True),
        "system": given.get("system_instruction", ""),
        "generation": given.get("gen_kwargs", {}),
        "metadata": {
            **masked_arguments(given.get("model_args", {})),
            **given.get("metadata", {}),
        },
        "samples": given.get("samples", {}),
        "predict_only": given.get("predict_only", False),
        "bootstrap": given.get("bootstrap_iters", 100_000),
        "as_written": (
            scoring == "published" and spec.model.startswith(("lm/", "lm_eval/"))
        ),
    }
    if seeds[3] is not None:
        dialect["seed"] = seeds[3]
    # What is as it is without being said is not said; 0 and false are.
    plain = {
        "multiturn": True,
        "bootstrap": 100_000,
        "seed": SEEDS[3],
        "predict_only": False,
        "as_written": False,
    }
    limit = given.get("limit")
    configuration = Configuration(
        tasks=tuple(_tasks(tasks, tuple(_roots(given)))),
        models=(spec,),
        limit=limit if limit is None or limit < 1 else int(limit),
        seed=seeds[0] or 0,
        home=given.get("home"),
        format="chat" if chat else "text",
        dialect={
            key: value
            for key, value in dialect.items()
            if (value != plain[key] if key in plain else value)
        },
        num_fewshot=given.get("num_fewshot"),
    )
    track = tuple(_track(given, notes))
    environment = _tracker_environment(given)
    config = _config(given, spec, seeds)
    said = [*notes, *_notes(given)]
    return Evaluation(configuration, said, track, config, environment, tuple(plugins))


def _backend(given: Settings) -> Backend:
    arguments = dict(given.get("model_args", {}))
    for name in ("device", "batch_size", "max_batch_size"):
        if given.get(name) is not None:
            arguments[name] = given[name]
    if given.get("trust_remote_code"):
        arguments["trust_remote_code"] = True
    return backend_of(str(given.get("model", "hf")), arguments)


def _roots(given: Settings) -> Iterator[Path]:
    if given.get("include_defaults", True):
        yield from installed_tasks()
    yield from paths_of(given.get("include_path"))


def _tasks(names: Sequence[str], roots: Sequence[Path]) -> Iterator[str]:
    """Our names of theirs; a folder that is no task's name stands for its YAML files."""
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            "Tasks are given by name or by file; write a task made in Python as a YAML"
            " file, or a Task of ours."
        )
    for name in dict.fromkeys(names):
        if any(pattern != name and fnmatchcase(name, pattern) for pattern in names):
            continue  # a pattern has it, and it would be there twice
        alone = len(names) == 1 and Path(name).is_dir()
        folder = alone and all(one.name != name for one in task_names(roots))
        yield f"{PREFIX}{name}/*.yaml" if folder else f"{PREFIX}{name}"


def _notes(given: Settings) -> Iterator[str]:
    yield from (said for name, said in TABLES["notes"].items() if given.get(name))
    if any(
        seed != SEEDS[place]
        for place, seed in enumerate(given.get("seed", SEEDS))
        if place in (1, 2)
    ):
        yield (
            "The seeds of numpy and torch have no effect: nothing here draws from their"
            " global generators."
        )
    if (verbosity := given.get("verbosity")) and str(
        verbosity
    ).upper() not in logging.getLevelNamesMapping():
        raise ConfigurationError(
            f"--verbosity takes DEBUG, INFO, WARNING or ERROR, not {verbosity!r}."
        )


def _track(given: Settings, notes: list[str]) -> Iterator[str]:
    """Trackers by name and project, with notes on what they are not given.

    Raises ConfigurationError for what cannot be left out.
    """
    for tracker, name in (("wandb", "wandb_args"), ("trackio", "trackio_args")):
        if arguments := dict(given.get(name, {})):
            project = arguments.pop("project", "")
            entity = arguments.pop("entity", "") if tracker == "wandb" else ""
            mode = _wandb_mode(arguments) if tracker == "wandb" else None
            if labels := ", ".join(
                key for key in _LABELS if arguments.pop(key, None) is not None
            ):
                notes.append(
                    f"--{name}: {labels} not used: the run there has the name of the"
                    " run here."
                )
            if arguments:
                others = ", ".join(map(repr, arguments))
                raise ConfigurationError(
                    f"--{name} takes project here, and not {others}."
                )
            if mode == "disabled":
                notes.append(
                    "--wandb_args mode=disabled: nothing is logged to Weights & Biases."
                )
                continue
            where = "/".join(part for part in (entity, project) if part)
            yield f"{tracker}={where}" if where else tracker
    if given.get("wandb_config_args"):
        raise ConfigurationError(
            "--wandb_config_args is not supported: the whole configuration of the run"
            " is logged."
        )
    if given.get("hf_hub_log_args", {}).keys() - {"output_path"}:
        raise ConfigurationError(
            "--hf_hub_log_args: nothing is pushed to the hub by a run. `evalwright"
            " export hf-results RUN` writes the files to upload."
        )


def _wandb_mode(arguments: dict[str, Any]) -> str | None:
    """Take `mode` out of the arguments of Weights & Biases.

    Raises ConfigurationError for one that it does not have.
    """
    mode = arguments.pop("mode", None)
    if mode is not None and mode not in _WANDB_MODES:
        known = ", ".join(_WANDB_MODES)
        raise ConfigurationError(f"--wandb_args mode takes {known}, not {mode!r}.")
    return None if mode is None else str(mode)


def _tracker_environment(given: Settings) -> dict[str, str]:
    """The variables that carry what `TrackedRun` has no place for: where Weights & Biases writes."""
    mode = _wandb_mode(dict(given.get("wandb_args", {})))
    return {} if mode is None else {"WANDB_MODE": mode}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and set them back afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _config(
    given: Settings, spec: ModelSpec, seeds: Sequence[int | None]
) -> dict[str, Any]:
    names = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
    arguments = dict(given.get("model_args", {}))
    if given.get("trust_remote_code"):
        arguments["trust_remote_code"] = True
    model = next(
        (str(arguments[key]) for key in NAMING if arguments.get(key)), spec.model
    )
    return {
        "name": model,
        "shown": {
            "model_source": given.get("model", "hf"),
            "model_name": model,
            "model_name_sanitized": file_safe(model),
            "fewshot_as_multiturn": given.get(
                "fewshot_as_multiturn",
                True if given.get("apply_chat_template") else None,
            ),
        },
        "model": given.get("model", "hf"),
        "model_args": masked_arguments(arguments) or None,
        "batch_size": given.get("batch_size"),
        "batch_sizes": [],
        "device": given.get("device"),
        "use_cache": given.get("use_cache"),
        "limit": given.get("limit"),
        "bootstrap_iters": given.get("bootstrap_iters", 100_000),
        "gen_kwargs": given.get("gen_kwargs"),
        **dict(zip(names, seeds, strict=True)),
    }


def run_evaluation(
    evaluation: Evaluation,
    model: Model | None = None,
    progress: ProgressReporter | None = None,
) -> Run:
    """The finished run. Raises UsageError."""
    with _environment(evaluation.environment):
        return _finished_run(evaluation, model, progress)


def _finished_run(
    evaluation: Evaluation, model: Model | None, progress: ProgressReporter | None
) -> Run:
    from evalwright.evaluation.evaluating import evaluate_settings
    from evalwright.evaluation.objects import Objects
    from evalwright.evaluation.running import run_blocking
    from evalwright.evaluation.settings import Settings
    from evalwright.runs.callbacks import Callbacks
    from evalwright.trackers import open_trackers

    objects = Objects()
    if model is not None:
        objects.name_model(model)
    settings = Settings(evaluation.configuration, models=objects.models)
    told = Callbacks(open_trackers(list(evaluation.track)))
    try:
        runs: list[Run] = run_blocking(
            lambda: evaluate_settings(settings, progress=progress, callbacks=told)
        )
    except UnknownName as error:
        names = (name.removeprefix(PREFIX) for name in evaluation.configuration.tasks)
        if gone := list(renamed_tasks(names)):
            raise ConfigurationError(" ".join((str(error), *gone))) from error
        raise
    told.warn()
    return runs[0]


def results_of(
    run: Run,
    config: Mapping[str, Any],
    model: Model | None = None,
    *,
    samples: bool = True,
) -> dict[str, Any]:
    """The dictionary that `simple_evaluate` returns. model: one that was made in Python; samples:
    with those of each task.
    """
    from evalwright.compat.lm_eval.runs.export import export_lm_eval

    with TemporaryDirectory() as folder:
        files = export_lm_eval(
            run, Path(folder), config["name"], getattr(model, "rendered", None)
        )
        found: dict[str, Any] = json.loads(files[0].read_text(encoding="utf-8"))
        if samples:
            names = [task["name"].removeprefix(PREFIX) for task in run.data["tasks"]]
            found["samples"] = {
                name: _samples(name, files[1:], found["configs"][name])
                for name in names
            }
    settings = {
        key: value for key, value in config.items() if key not in ("name", "shown")
    }
    return {**found, **config["shown"], "config": {**found["config"], **settings}}


def _samples(name: str, files: Sequence[Path], config: Mapping[str, Any]) -> list[Any]:
    """The lines of a task."""
    generated = config.get("output_type", "generate_until") == "generate_until"
    for file in files:
        if file.name.startswith(f"samples_{file_safe(name)}_2"):
            with file.open(encoding="utf-8") as lines:
                return [_in_memory(json.loads(line), generated) for line in lines]
    return []


def _in_memory(line: dict[str, Any], generated: bool) -> dict[str, Any]:
    """A line of a samples file as `simple_evaluate` has it, where numbers are not text yet.

    Targets of generation stay text.
    """
    line["arguments"] = [tuple(one.values()) for one in line["arguments"].values()]
    if not generated:
        line |= {name: _unspelled(line[name]) for name in ("resps", "filtered_resps")}
        if line["target"].isdigit() or line["target"].startswith("["):
            # a row may hold any text
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                line["target"] = ast.literal_eval(line["target"])
    return line


def _unspelled(value: Any) -> Any:
    """Log-likelihoods as numbers, each with whether it is greedy; a rolling one stands alone.

    What a filter wrote stays.
    """
    if isinstance(value, list):
        found = [_unspelled(one) for one in value]
        return tuple(found) if len(found) == 2 and isinstance(found[1], bool) else found
    if value in ("True", "False"):
        return value == "True"
    with suppress(TypeError, ValueError):
        return float(value)
    return value


def simple_evaluate(
    model: Any,
    model_args: str | Mapping[str, Any] | None = None,
    tasks: Sequence[str] | str | None = None,
    *,
    log_samples: bool = True,
    random_seed: int | None = SEEDS[0],
    numpy_random_seed: int | None = SEEDS[1],
    torch_random_seed: int | None = SEEDS[2],
    fewshot_random_seed: int | None = SEEDS[3],
    **settings: Any,
) -> dict[str, Any]:
    """As `lm_eval.simple_evaluate`: evaluate a model on tasks and return its dictionary of results.

    model: the name of a class ("hf") or a model made of one. settings: the others of `lm_eval run`,
    `trust`, `scoring` and `home` among them; None leaves a setting out. A setting that cannot be
    honoured is an error that says why. Raises UsageError.
    """
    check_one_process(SPREAD)
    made = _instance(model, bool(settings.get("apply_chat_template")))
    given = {name: value for name, value in settings.items() if value is not None}
    manager = given.pop("task_manager", None)
    tracker = given.pop("evaluation_tracker", None)
    if tracker is not None or not (manager is None or isinstance(manager, TaskManager)):
        name, instead = (
            ("task_manager", "include_path")
            if tracker is None
            else ("evaluation_tracker", "output_path")
        )
        raise ConfigurationError(
            f"{name} is an object of lm_eval: give {instead} in its place."
        )
    for name in ("rewrite_requests_cache", "delete_requests_cache"):
        given.pop(name, None)  # prompts are not cached
    # What is no flag there, or wants a folder only on the command line.
    names = [name for name in ("bootstrap_iters", "predict_only") if name in given]
    apart: dict[str, Any] = {name: given.pop(name) for name in names}
    if model_args:
        given["model_args"] = mapping_of("model_args", model_args)
    seeds = (random_seed, numpy_random_seed, torch_random_seed, fewshot_random_seed)
    wished = normalised(
        {**given, "tasks": tasks, "seed": seeds, **({} if made else {"model": model})}
    )
    wished |= apart
    if isinstance(manager, TaskManager):
        wished["include_path"] = [
            *manager.include_path,
            *paths_of(wished.get("include_path")),
        ]
        wished["include_defaults"] = manager.include_defaults
        wished["metadata"] = {**manager.metadata, **wished.get("metadata", {})}
    evaluation = evaluation_of(wished, made)
    multiturn = settings.get("fewshot_as_multiturn", True)
    config = {
        **evaluation.config,
        "shown": {**evaluation.config["shown"], "fewshot_as_multiturn": multiturn},
    }
    if made is not None:
        config["shown"]["model_source"] = "CUSTOM"
        config["model"] = getattr(
            getattr(model, "config", None), "_name_or_path", type(model).__name__
        )
    if isinstance(model_args, str) and config["model_args"] == mapping_of(
        "model_args", model_args
    ):
        config["model_args"] = (
            model_args  # as it was given, where nothing in it is masked
        )
    return results_of(
        run_evaluation(evaluation, made), config, made, samples=log_samples
    )


def evaluate(
    lm: Any, task_dict: Mapping[str, Any] | Sequence[str], **settings: Any
) -> dict[str, Any]:
    """As `lm_eval.evaluate`: a model that was made already, on tasks by name. task_dict: names, or
    a mapping whose keys they are.
    """
    if isinstance(task_dict, TaskDict):
        settings.setdefault("task_manager", task_dict.manager)
    return simple_evaluate(lm, tasks=list(task_dict), **settings)


def _instance(model: Any, chat: bool) -> Model | None:
    """A model of lm_eval's interface behind our door; None for a name. Raises ConfigurationError."""
    if isinstance(model, str):
        return None
    if isinstance(model, Model):
        return model
    from evalwright.compat.lm_eval.models.adapter import LMAdapter

    kind = type(model.lm if isinstance(model, CachingLM) else model)
    return LMAdapter(f"lm/{kind.__name__}", kind, {}, chat=chat, instance=model)
