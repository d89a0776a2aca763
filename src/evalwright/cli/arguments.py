"""Parsing of arguments that several commands share: `key=value` pairs, roles, plug-in files."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.judge_setting import (
    judge_roles,
    panel_setting,
    unsure_scorer,
)
from evalwright.evaluation.prompts import prompts_from_files
from evalwright.scorers.judge.criteria import read_criteria
from evalwright.tasks.data_files import as_data_file, named_columns
from evalwright.tasks.images import BY_FLAG, VARIABLE


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Parse `key=value` pairs into a nested dictionary.

    Values are parsed as JSON if they are JSON, else they are text. Dots in keys nest:
    `["timeout=5", "extra_body.top_k=3"]` gives `{"timeout": 5, "extra_body": {"top_k": 3}}`.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{option} takes key=value, not '{pair}'.")
        *path, last = key.split(".")
        group = settings
        for step in path:
            group = group.setdefault(step, {})
            if not isinstance(group, dict):
                raise ConfigurationError(
                    f"{option} sets '{step}' both as a value and as a group, in"
                    f" '{pair}'."
                )
        if isinstance(group.get(last), dict):
            raise ConfigurationError(
                f"{option} sets '{last}' both as a value and as a group, in '{pair}'."
            )
        group[last] = _parse_value(text)
    return settings


def dialect_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given flags for other frameworks' tasks as the configuration's `dialect`."""
    flags = {key: params.get(key) for key in ("task_root", "trust", "scoring")}
    dialect = {
        key: list(setting) if isinstance(setting, tuple) else setting
        for key, setting in flags.items()
        if setting
    }
    return {**key_values(params.get("dialect_values") or (), "-D"), **dialect}


def _parse_value(text: str) -> Any:
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {"True": True, "False": False, "None": None}.get(text, text)
    return text if isinstance(parsed, float) and math.isinf(parsed) else parsed


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which are not JSON and could not be recorded."""
    raise ValueError(name)


def role_specs(
    roles: Sequence[str], arguments: Sequence[str], judges: Sequence[str] = ()
) -> dict[str, ModelSpec]:
    """Return the model of each role, from `--role`, `--judge` and `-R`.

    Args:
        roles: `role=provider/name` pairs.
        arguments: `role.key=value` arguments of the models.
        judges: models of the roles judge, judge-2, ...
    """
    model_by_role = dict(zip(judge_roles(judges), judges, strict=True))
    for pair in roles:
        role, equals, name = pair.partition("=")
        if not equals or not role or not name:
            raise ConfigurationError(
                "--role takes role=provider/name, for example judge=openai/gpt-4o, not"
                f" '{pair}'."
            )
        if judges and role in model_by_role:
            raise ConfigurationError(
                f"--judge and --role {role}=... both name a model for the role"
                f" '{role}'. Leave one out."
            )
        model_by_role[role] = name
    arguments_by_role = key_values(arguments, "-R")
    for role, values in arguments_by_role.items():
        if not isinstance(values, Mapping):
            raise ConfigurationError(
                f"-R takes ROLE.KEY=VALUE, for example {role}.temperature=0, not"
                f" '{role}=...'."
            )
        if role not in model_by_role:
            raise ConfigurationError(
                f"-R {role}.{next(iter(values), 'KEY')}=... is for the role '{role}',"
                " which no --role or --judge names."
            )
    return {
        role: ModelSpec(name, arguments_by_role.get(role, {}))
        for role, name in model_by_role.items()
    }


def judge_settings(
    params: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings that --judge, --rubric and --column stand for.

    Args:
        params: the command's parameters.
        overrides: overrides from the command line; they take precedence.

    Returns:
        "unsure", the scorer of unsure answers, "panel", several judges and how they decide, and
        "overrides" of the tasks, if there are any.

    Raises:
        ConfigurationError: two of the options contradict each other.
    """
    panel_options = key_values(params.get("panel_options") or (), "--panel")
    panel = panel_setting(params["judges"], panel_options, "--panel: ")
    settings: dict[str, Any] = {"panel": panel} if params["judges"] else {}
    judge_overrides: dict[str, Any] = {}
    if params["rubric"]:
        for key in ("scorers", "metrics"):
            if key in overrides:
                raise ConfigurationError(
                    "--rubric takes the place of the tasks' scorers and metrics, so -T"
                    f" {key}... cannot be used with it. For a rubric with points or"
                    " classes, write it in a task file."
                )
        criteria = list(params["rubric"])
        metrics = [{"name": "rubric", "use": "accuracy"}]
        names = [criterion.name for criterion in read_criteria(criteria, "--rubric")]
        metrics += [
            {"name": name, "use": "part-mean", "part": name}
            for name in names
            if len(names) > 1
        ]
        if panel:
            metrics.append(
                {"name": "judges agree", "use": "part-mean", "part": "agreement"}
            )
        judge_overrides = {
            "scorers": [{"judge-rubric": {"criteria": criteria, **panel}}],
            "metrics": metrics,
        }
    elif params["judges"]:
        settings["unsure"] = unsure_scorer(params["judges"], panel_options)
    if params["columns"]:
        if not any(map(as_data_file, params.get("tasks") or ())):
            raise ConfigurationError(
                "--column names the columns of a data file, such as mine.csv, and no"
                " task is one."
            )
        judge_overrides |= named_columns(key_values(params["columns"], "--column"))
    if judge_overrides:
        settings["overrides"] = judge_overrides
    return settings


def evaluation_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields of a Configuration that `run` and `plan` share."""
    plain_fields = ("seed", "out", "home", "num_fewshot")
    settings: dict[str, Any] = {
        key: params[key] for key in plain_fields if params[key] is not None
    }
    if params["home"]:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = params["home"]
    if params.get("image_urls"):
        os.environ[VARIABLE] = BY_FLAG
    if params["roles"] or params["role_arguments"] or params["judges"]:
        settings["roles"] = role_specs(
            params["roles"], params["role_arguments"], params["judges"]
        )
        # These roles take the place of a file's, and so of its panel.
        settings["panel"] = {}
    if params["prompts"]:
        settings["prompts"] = prompts_from_files(params["prompts"])
    if params["where"]:
        settings["where"] = tuple(params["where"])
    if params["prompt_format"]:
        settings["format"] = params["prompt_format"]
    overrides = key_values(params["overrides"], "-T")
    judging = judge_settings(params, overrides)
    if overrides := {**overrides, **judging.pop("overrides", {})}:
        settings["overrides"] = overrides
    settings |= judging
    if dialect := dialect_settings(params):
        settings["dialect"] = dialect
    return settings


def load_plugins(files: Sequence[str]) -> None:
    """Load plug-in files.

    Python files register models, tasks, scorers and metrics as they load; TOML files hold providers
    and prices.
    """
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise ConfigurationError(f"The plug-in '{file}' does not exist.")
        if path.suffix == ".toml":
            from evalwright.models.remote.providers import add_file

            add_file(path)
            continue
        spec = importlib.util.spec_from_file_location(
            f"evalwright_plugin_{path.stem}", path
        )
        if spec is None or spec.loader is None:
            raise ConfigurationError(
                f"The plug-in '{file}' is neither a Python file nor TOML."
            )
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"The plug-in '{file}' failed while loading: {type(error).__name__}:"
                f" {error}"
            ) from error
