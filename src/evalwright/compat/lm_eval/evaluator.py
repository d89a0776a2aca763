"""Runs `lm_eval run` and `simple_evaluate` on our engine and returns results in lm_eval's form."""

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
from typing import TYPE_CHECKING, Any

from evalwright import Configuration, Model, ModelSpec, Run
from evalwright import evaluate as evaluate_with_us
from evalwright.compat.lm_eval.api.model import CachingLM
from evalwright.compat.lm_eval.harness.backends import (
    COPIES_FLAG,
    PARALLELIZE_FLAG,
    Backend,
    build_backend,
)
from evalwright.compat.lm_eval.harness.flags import (
    SEEDS,
    normalise_settings,
    parse_mapping,
    renamed_tasks,
)
from evalwright.compat.lm_eval.harness.plugins import load_plugins
from evalwright.compat.lm_eval.runs.names import MODEL_NAME_ARGUMENTS, file_safe
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.index import TaskDict, TaskManager
from evalwright.compat.lm_eval.tasks.index import names as task_names
from evalwright.compat.lm_eval.tasks.options import PREFIX, as_paths, installed_tasks
from evalwright.extend import (
    SCORINGS,
    ConfigurationError,
    UnknownName,
    check_known,
    check_one_process,
    masked_arguments,
)

if TYPE_CHECKING:
    from evalwright.extend import TerminalProgress

Settings = Mapping[str, Any]
_LABELS = ("name", "group", "job_type", "tags", "notes", "step")
"""Keys of a tracker's arguments that only label its run."""
_TRANSLATED_SETTINGS = ("limit", "seed", "home", "format", "dialect", "num_fewshot")
"""Settings of ours, beside tasks and model, that settings of lm_eval become."""
_WANDB_MODES = ("online", "offline", "disabled")
"""Log to the server, to a local folder, or nowhere."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation that is ready to run.

    notes: one sentence for each setting that was changed or ignored. track: trackers by name.
    config: what the results file says of the settings; `name` is the model's name there and `shown`
    holds its other top-level keys. environment: variables that trackers read during the run.
    plugins: Python files that were loaded for it.
    """

    configuration: Configuration
    notes: list[str] = field(default_factory=list)
    track: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()


def build_evaluation(settings: Settings, model: Model | None = None) -> Evaluation:
    """Turn settings into an evaluation.

    Args:
        settings: as `flags.normalise_settings` returns them.
        model: a model object made in Python; None to open the one that the settings name.

    Raises:
        UsageError: a setting cannot be honoured.
    """
    tasks = settings.get("tasks")
    if not tasks:
        raise ConfigurationError(
            "No tasks: name at least one with --tasks, such as arc_easy."
        )
    plugins = [str(file) for file in settings.get("plugin", ())]
    load_plugins(plugins)
    backend = Backend(ModelSpec(model.name)) if model else _backend(settings)
    plugins += [file for file in backend.plugins if file not in plugins]
    spec = backend.spec
    notes = list(backend.notes)
    scoring = settings.get("scoring", "published")
    check_known("scoring", [scoring], SCORINGS)
    chat = settings.get("apply_chat_template", False)
    extra_arguments: dict[str, Any] = {}
    if scoring == "published" and spec.model.startswith("hf/"):
        extra_arguments["token_rules"] = "published"
    if isinstance(chat, str):
        extra_arguments["chat_template"] = chat
    if chat and spec.model.startswith("lm_eval/"):
        extra_arguments["chat"] = True
    spec = replace(spec, arguments={**spec.arguments, **extra_arguments})
    seeds = settings.get("seed", SEEDS)
    dialect: dict[str, Any] = {
        "scoring": scoring,
        "task_root": [str(root) for root in _roots(settings)],
        "trust": [*map(str, installed_tasks()), *settings.get("trust", ())],
        "named_folders": list(settings.get("named_folders", ())),
        "multiturn": not chat or settings.get("fewshot_as_multiturn", True),
        "system": settings.get("system_instruction", ""),
        "generation": settings.get("gen_kwargs", {}),
        "metadata": {
            **masked_arguments(settings.get("model_args", {})),
            **settings.get("metadata", {}),
        },
        "samples": settings.get("samples", {}),
        "predict_only": settings.get("predict_only", False),
        "bootstrap": settings.get("bootstrap_iters", 100_000),
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
    limit = settings.get("limit")
    configuration = Configuration(
        tasks=tuple(_qualified_names(tasks, tuple(_roots(settings)))),
        models=(spec,),
        limit=limit if limit is None or limit < 1 else int(limit),
        seed=seeds[0] or 0,
        home=settings.get("home"),
        format="chat" if chat else "text",
        dialect={
            key: value
            for key, value in dialect.items()
            if (value != plain[key] if key in plain else value)
        },
        num_fewshot=settings.get("num_fewshot"),
    )
    track = tuple(_tracker_specs(settings, notes))
    environment = _tracker_environment(settings)
    config = _results_config(settings, spec, seeds)
    all_notes = [*notes, *_notes(settings)]
    return Evaluation(
        configuration, all_notes, track, config, environment, tuple(plugins)
    )


def _backend(settings: Settings) -> Backend:
    arguments = dict(settings.get("model_args", {}))
    for name in ("device", "batch_size", "max_batch_size"):
        if settings.get(name) is not None:
            arguments[name] = settings[name]
    if settings.get("trust_remote_code"):
        arguments["trust_remote_code"] = True
    return build_backend(str(settings.get("model", "hf")), arguments)


def _roots(settings: Settings) -> Iterator[Path]:
    if settings.get("include_defaults", True):
        yield from installed_tasks()
    yield from as_paths(settings.get("include_path"))


def _qualified_names(names: Sequence[str], roots: Sequence[Path]) -> Iterator[str]:
    """Prefix task names with the dialect.

    A folder that is not a task's name stands for its YAML files.
    """
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            "Tasks are given by name or by file; write a task made in Python as a YAML"
            " file, or a Task of ours."
        )
    for name in dict.fromkeys(names):
        if any(pattern != name and fnmatchcase(name, pattern) for pattern in names):
            continue  # a pattern has it, and it would be there twice
        only_folder = len(names) == 1 and Path(name).is_dir()
        folder = only_folder and all(task.name != name for task in task_names(roots))
        yield f"{PREFIX}{name}/*.yaml" if folder else f"{PREFIX}{name}"


def _notes(settings: Settings) -> Iterator[str]:
    yield from (note for name, note in TABLES["notes"].items() if settings.get(name))
    if any(
        seed != SEEDS[index]
        for index, seed in enumerate(settings.get("seed", SEEDS))
        if index in (1, 2)
    ):
        yield (
            "The seeds of numpy and torch have no effect: nothing here draws from their"
            " global generators."
        )
    verbosity = settings.get("verbosity")
    level_names = logging.getLevelNamesMapping()
    if verbosity and str(verbosity).upper() not in level_names:
        raise ConfigurationError(
            f"--verbosity takes DEBUG, INFO, WARNING or ERROR, not {verbosity!r}."
        )


def _tracker_specs(settings: Settings, notes: list[str]) -> Iterator[str]:
    """List trackers as name=project, and add a note for each label that is ignored.

    Raises ConfigurationError for arguments that cannot be ignored.
    """
    for tracker, name in (("wandb", "wandb_args"), ("trackio", "trackio_args")):
        if arguments := dict(settings.get(name, {})):
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
            where = "/".join(segment for segment in (entity, project) if segment)
            yield f"{tracker}={where}" if where else tracker
    if settings.get("wandb_config_args"):
        raise ConfigurationError(
            "--wandb_config_args is not supported: the whole configuration of the run"
            " is logged."
        )
    if settings.get("hf_hub_log_args", {}).keys() - {"output_path"}:
        raise ConfigurationError(
            "--hf_hub_log_args: nothing is pushed to the hub by a run. `evalwright"
            " export hf-results RUN` writes the files to upload."
        )


def _wandb_mode(arguments: dict[str, Any]) -> str | None:
    """Remove `mode` from the arguments for Weights & Biases and check it.

    Raises ConfigurationError for an unknown mode.
    """
    mode = arguments.pop("mode", None)
    if mode is not None and mode not in _WANDB_MODES:
        modes = ", ".join(_WANDB_MODES)
        raise ConfigurationError(f"--wandb_args mode takes {modes}, not {mode!r}.")
    return None if mode is None else str(mode)


def _tracker_environment(settings: Settings) -> dict[str, str]:
    """The environment variable that sets the mode of Weights & Biases."""
    mode = _wandb_mode(dict(settings.get("wandb_args", {})))
    return {} if mode is None else {"WANDB_MODE": mode}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the duration of a block."""
    previous_values = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, previous in previous_values.items():
            if previous is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = previous


def _results_config(
    settings: Settings, spec: ModelSpec, seeds: Sequence[int | None]
) -> dict[str, Any]:
    names = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
    arguments = dict(settings.get("model_args", {}))
    if settings.get("trust_remote_code"):
        arguments["trust_remote_code"] = True
    model = next(
        (str(arguments[key]) for key in MODEL_NAME_ARGUMENTS if arguments.get(key)),
        spec.model,
    )
    return {
        "name": model,
        "shown": {
            "model_source": settings.get("model", "hf"),
            "model_name": model,
            "model_name_sanitized": file_safe(model),
            "fewshot_as_multiturn": settings.get(
                "fewshot_as_multiturn",
                True if settings.get("apply_chat_template") else None,
            ),
        },
        "model": settings.get("model", "hf"),
        "model_args": masked_arguments(arguments) or None,
        "batch_size": settings.get("batch_size"),
        "batch_sizes": [],
        "device": settings.get("device"),
        "use_cache": settings.get("use_cache"),
        "limit": settings.get("limit"),
        "bootstrap_iters": settings.get("bootstrap_iters", 100_000),
        "gen_kwargs": settings.get("gen_kwargs"),
        **dict(zip(names, seeds, strict=True)),
    }


def run_evaluation(
    evaluation: Evaluation,
    model: Model | None = None,
    progress: TerminalProgress | None = None,
) -> Run:
    """Run the evaluation and return the finished run. Raises UsageError."""
    with _environment(evaluation.environment):
        return _finished_run(evaluation, model, progress)


def _finished_run(
    evaluation: Evaluation, model: Model | None, progress: TerminalProgress | None
) -> Run:
    configuration = evaluation.configuration
    settings = {name: getattr(configuration, name) for name in _TRANSLATED_SETTINGS}
    try:
        (run,) = evaluate_with_us(
            configuration.tasks,
            model or configuration.models[0],
            progress=progress,
            track=evaluation.track,
            **settings,
        )
    except UnknownName as error:
        names = (name.removeprefix(PREFIX) for name in configuration.tasks)
        if renames := list(renamed_tasks(names)):
            raise ConfigurationError(" ".join((str(error), *renames))) from error
        raise
    return run


def collect_results(
    run: Run,
    config: Mapping[str, Any],
    model: Model | None = None,
    *,
    samples: bool = True,
) -> dict[str, Any]:
    """Build the dictionary that `simple_evaluate` returns.

    model: the model object where it was made in Python. samples: include the samples of each task.
    """
    from evalwright.compat.lm_eval.runs.exporting import export_lm_eval

    with TemporaryDirectory() as folder:
        files = export_lm_eval(
            run, Path(folder), config["name"], getattr(model, "rendered", None)
        )
        results_json: dict[str, Any] = json.loads(files[0].read_text(encoding="utf-8"))
        if samples:
            names = [task["name"].removeprefix(PREFIX) for task in run.data["tasks"]]
            results_json["samples"] = {
                name: _samples(name, files[1:], results_json["configs"][name])
                for name in names
            }
    settings = {
        key: value for key, value in config.items() if key not in ("name", "shown")
    }
    return {
        **results_json,
        **config["shown"],
        "config": {**results_json["config"], **settings},
    }


def _samples(name: str, files: Sequence[Path], config: Mapping[str, Any]) -> list[Any]:
    """Read the lines of one task's samples file."""
    generated = config.get("output_type", "generate_until") == "generate_until"
    for file in files:
        if file.name.startswith(f"samples_{file_safe(name)}_2"):
            with file.open(encoding="utf-8") as lines:
                return [_restore_types(json.loads(line), generated) for line in lines]
    return []


def _restore_types(line: dict[str, Any], generated: bool) -> dict[str, Any]:
    """Convert a line of a samples file to what `simple_evaluate` has in memory.

    There numbers are numbers, except that targets of generation stay text.
    """
    line["arguments"] = [
        tuple(arguments.values()) for arguments in line["arguments"].values()
    ]
    if not generated:
        line |= {
            name: _parse_likelihoods(line[name]) for name in ("resps", "filtered_resps")
        }
        if line["target"].isdigit() or line["target"].startswith("["):
            # a row may hold any text
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                line["target"] = ast.literal_eval(line["target"])
    return line


def _parse_likelihoods(response: Any) -> Any:
    """Parse log-likelihoods and greedy flags from text; a rolling log-likelihood stands alone.

    What a filter wrote is left alone.
    """
    if isinstance(response, list):
        numbers = [_parse_likelihoods(element) for element in response]
        return (
            tuple(numbers)
            if len(numbers) == 2 and isinstance(numbers[1], bool)
            else numbers
        )
    if response in ("True", "False"):
        return response == "True"
    with suppress(TypeError, ValueError):
        return float(response)
    return response


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
    """Evaluate a model on tasks, as `lm_eval.simple_evaluate` does, and return its results.

    Settings that cannot be honoured raise an error that says why.

    Args:
        model: the name of a model class ("hf"), or a model object.
        settings: the other settings of `lm_eval run`, and `trust`, `scoring` and `home`; None
            leaves a
            setting at its default.

    Raises:
        UsageError: a setting is wrong, or the evaluation cannot start.
    """
    check_one_process(PARALLELIZE_FLAG, copies=COPIES_FLAG)
    custom_model = _wrap_instance(model, bool(settings.get("apply_chat_template")))
    options = {name: value for name, value in settings.items() if value is not None}
    manager = options.pop("task_manager", None)
    tracker = options.pop("evaluation_tracker", None)
    if tracker is not None or not (manager is None or isinstance(manager, TaskManager)):
        name, replacement = (
            ("task_manager", "include_path")
            if tracker is None
            else ("evaluation_tracker", "output_path")
        )
        raise ConfigurationError(
            f"{name} is an object of lm_eval: give {replacement} in its place."
        )
    for name in ("rewrite_requests_cache", "delete_requests_cache"):
        options.pop(name, None)  # prompts are not cached
    # What is no flag there, or wants a folder only on the command line.
    names = [name for name in ("bootstrap_iters", "predict_only") if name in options]
    python_only: dict[str, Any] = {name: options.pop(name) for name in names}
    if model_args:
        options["model_args"] = parse_mapping("model_args", model_args)
    seeds = (random_seed, numpy_random_seed, torch_random_seed, fewshot_random_seed)
    run_settings = normalise_settings(
        {
            **options,
            "tasks": tasks,
            "seed": seeds,
            **({} if custom_model else {"model": model}),
        }
    )
    run_settings |= python_only
    if isinstance(manager, TaskManager):
        run_settings["include_path"] = [
            *manager.include_path,
            *as_paths(run_settings.get("include_path")),
        ]
        run_settings["include_defaults"] = manager.include_defaults
        run_settings["metadata"] = {
            **manager.metadata,
            **run_settings.get("metadata", {}),
        }
    evaluation = build_evaluation(run_settings, custom_model)
    multiturn = settings.get("fewshot_as_multiturn", True)
    config = {
        **evaluation.config,
        "shown": {**evaluation.config["shown"], "fewshot_as_multiturn": multiturn},
    }
    if custom_model is not None:
        config["shown"]["model_source"] = "CUSTOM"
        config["model"] = getattr(
            getattr(model, "config", None), "_name_or_path", type(model).__name__
        )
    if isinstance(model_args, str) and config["model_args"] == parse_mapping(
        "model_args", model_args
    ):
        config["model_args"] = (
            model_args  # as it was given, where nothing in it is masked
        )
    return collect_results(
        run_evaluation(evaluation, custom_model),
        config,
        custom_model,
        samples=log_samples,
    )


def evaluate(
    lm: Any, task_dict: Mapping[str, Any] | Sequence[str], **settings: Any
) -> dict[str, Any]:
    """Evaluate a model object on tasks by name, as `lm_eval.evaluate` does.

    task_dict: task names, or a mapping with these as its keys.
    """
    if isinstance(task_dict, TaskDict):
        settings.setdefault("task_manager", task_dict.manager)
    return simple_evaluate(lm, tasks=list(task_dict), **settings)


def _wrap_instance(model: Any, chat: bool) -> Model | None:
    """Wrap an object of lm_eval's model interface as a model of ours; None for a name.

    Raises ConfigurationError.
    """
    if isinstance(model, str):
        return None
    if isinstance(model, Model):
        return model
    from evalwright.compat.lm_eval.models.adapter import LMAdapter

    model_class = type(model.lm if isinstance(model, CachingLM) else model)
    return LMAdapter(
        f"lm/{model_class.__name__}", model_class, {}, chat=chat, instance=model
    )
