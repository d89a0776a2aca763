"""Parsing that several commands share: `key=value` pairs, roles, and plug-in files."""

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
from evalwright.scorers.judge.criteria import read_criteria
from evalwright.tasks.data_files import as_data_file, named_columns
from evalwright.tasks.images import BY_FLAG, VARIABLE


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """`key=value` pairs as a mapping.

    Values are JSON where they parse as such, else text; dots nest.

    `["timeout=5", "extra_body.top_k=3"]` -> `{"timeout": 5, "extra_body": {"top_k": 3}}`.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{option} takes key=value, not '{pair}'.")
        *path, last = key.split(".")
        place = out
        for step in path:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise ConfigurationError(
                    f"{option} sets '{step}' both as a value and as a group, in"
                    f" '{pair}'."
                )
        if isinstance(place.get(last), dict):
            raise ConfigurationError(
                f"{option} sets '{last}' both as a value and as a group, in '{pair}'."
            )
        place[last] = _value(value)
    return out


def dialect_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags for other frameworks' tasks that were given, as a configuration's `dialect`."""
    flags = {key: given.get(key) for key in ("task_root", "trust", "scoring")}
    found = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in flags.items()
        if value
    }
    return {**key_values(given.get("dialect_values") or (), "-D"), **found}


def _value(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return {"True": True, "False": False, "None": None}.get(text, text)
    return text if isinstance(value, float) and math.isinf(value) else value


def _no_number(name: str) -> None:
    """NaN and Infinity are not JSON and could not be recorded."""
    raise ValueError(name)


def role_specs(
    roles: Sequence[str], arguments: Sequence[str], judges: Sequence[str] = ()
) -> dict[str, ModelSpec]:
    """`--role judge=provider/name`, `--judge provider/name` and `-R judge.key=value` as model
    specifications by role.
    """
    named = dict(zip(judge_roles(judges), judges, strict=True))
    for pair in roles:
        role, equals, name = pair.partition("=")
        if not equals or not role or not name:
            raise ConfigurationError(
                "--role takes role=provider/name, for example judge=openai/gpt-4o, not"
                f" '{pair}'."
            )
        if judges and role in named:
            raise ConfigurationError(
                f"--judge and --role {role}=... both name a model for the role"
                f" '{role}'. Leave one out."
            )
        named[role] = name
    given = key_values(arguments, "-R")
    for role, values in given.items():
        if not isinstance(values, Mapping):
            raise ConfigurationError(
                f"-R takes ROLE.KEY=VALUE, for example {role}.temperature=0, not"
                f" '{role}=...'."
            )
        if role not in named:
            raise ConfigurationError(
                f"-R {role}.{next(iter(values), 'KEY')}=... is for the role '{role}',"
                " which no --role or --judge names."
            )
    return {role: ModelSpec(name, given.get(role, {})) for role, name in named.items()}


def judge_roles(judges: Sequence[str]) -> list[str]:
    """The roles that several --judge have: judge, judge-2, ..."""
    return [
        "judge" if number == 1 else f"judge-{number}"
        for number in range(1, len(judges) + 1)
    ]


def judge_settings(
    given: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """What --judge, --rubric and --column come to: the scorer that decides what rules cannot, and
    overrides of the tasks.

    overrides: those that are typed, which keep what they name. Raises ConfigurationError where two
    of them contradict each other.
    """
    several = (
        {"judges": judge_roles(given["judges"])} if len(given["judges"]) > 1 else {}
    )
    out: dict[str, Any] = {}
    made: dict[str, Any] = {}
    if given["rubric"]:
        for key in ("scorers", "metrics"):
            if key in overrides:
                raise ConfigurationError(
                    "--rubric takes the place of the tasks' scorers and metrics, so -T"
                    f" {key}... cannot be used with it. For a rubric with points or"
                    " classes, write it in a task file."
                )
        criteria = list(given["rubric"])
        metrics = [{"name": "rubric", "use": "accuracy"}]
        names = [one.name for one in read_criteria(criteria, "--rubric")]
        metrics += [
            {"name": name, "use": "part-mean", "part": name}
            for name in names
            if len(names) > 1
        ]
        if several:
            metrics.append(
                {"name": "judges agree", "use": "part-mean", "part": "agreement"}
            )
        made = {
            "scorers": [{"judge-rubric": {"criteria": criteria, **several}}],
            "metrics": metrics,
        }
    elif given["judges"]:
        out["unsure"] = {"scorer": "judge-correct", **several}
    if given["columns"]:
        if not any(map(as_data_file, given.get("tasks") or ())):
            raise ConfigurationError(
                "--column names the columns of a data file, such as mine.csv, and no"
                " task is one."
            )
        made |= named_columns(key_values(given["columns"], "--column"))
    if made:
        out["overrides"] = made
    return out


def evaluation_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a Configuration that `run` and `plan` share, where they were given."""
    named = ("seed", "out", "home", "num_fewshot")
    out: dict[str, Any] = {key: given[key] for key in named if given[key] is not None}
    if given["home"]:
        # Caches of data sets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = given["home"]
    if given.get("image_urls"):
        os.environ[VARIABLE] = BY_FLAG
    if given["roles"] or given["role_arguments"] or given["judges"]:
        out["roles"] = role_specs(
            given["roles"], given["role_arguments"], given["judges"]
        )
    if given["where"]:
        out["where"] = tuple(given["where"])
    if given["prompt_format"]:
        out["format"] = given["prompt_format"]
    overrides = key_values(given["overrides"], "-T")
    judging = judge_settings(given, overrides)
    if overrides := {**overrides, **judging.pop("overrides", {})}:
        out["overrides"] = overrides
    out |= judging
    if dialect := dialect_settings(given):
        out["dialect"] = dialect
    return out


def load_plugins(files: Sequence[str]) -> None:
    """Load the files that the user names.

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
