"""A promptfoo configuration becomes a suite, a task, prompts and rows: `evalwright init --from`.

Nothing of it is run: assertions, prompts and providers that are programs are left out, and each is
named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalwright.compat.promptfoo.assertions import AssertionConverter
from evalwright.compat.promptfoo.cases import TestCase, read_cases, rows_of
from evalwright.compat.promptfoo.config_files import (
    SCRIPTS,
    ConfigFolder,
    Notes,
    read_document,
)
from evalwright.compat.promptfoo.prompts import ConvertedPrompt, convert_prompts
from evalwright.compat.promptfoo.providers import (
    ConvertedModel,
    convert_provider,
    convert_providers,
)
from evalwright.extend import ConfigurationError

SUITE = "suite.yaml"
MAX_TOKENS = 1024
"""Of an answer, where a provider sets nothing; promptfoo's own default."""
MAX_REPEATS = 1_000
_READ = [
    "$schema",
    "assertionTemplates",
    "defaultTest",
    "description",
    "evaluateOptions",
    "prompts",
    "providers",
    "targets",
    "tests",
]
_UNNAMED = "promptfoo"


@dataclass(frozen=True, slots=True)
class ConvertedSuite:
    """The files of a converted configuration, for `evalwright init` to write.

    Args:
        files: the texts of the files, by path in the working folder.
        notes: sentences about what was left out or changed.
        options: what `evalwright run` needs besides, such as a judge.
    """

    files: Mapping[str, str]
    notes: Sequence[str]
    options: Sequence[str]


def convert(path: Path) -> ConvertedSuite:
    """Convert a promptfoo configuration.

    Args:
        path: the file, YAML or JSON.

    Raises:
        EvalwrightError: it cannot be read, or nothing of it is left.
    """
    if path.suffix.lower() in SCRIPTS:
        raise ConfigurationError(
            f"'{path}' is a program, and nothing of a configuration is run. Write it as"
            " YAML."
        )
    config = read_document(path, "configuration")
    if not isinstance(config, Mapping):
        raise ConfigurationError(
            f"'{path}' is not a promptfoo configuration: it has no keys such as 'prompts'."
        )
    folder = ConfigFolder(path.resolve().parent)
    notes = Notes()
    for key in config:
        if key not in _READ:
            notes.add(f"'{key}' of the configuration is left out.")
    prompts = convert_prompts(config.get("prompts"), folder, notes)
    _require(prompts, "prompt", path, notes)
    listed = config.get("providers", config.get("targets"))
    models = [] if listed is None else convert_providers(listed, folder, notes)
    _require(models, "provider", path, notes)
    cases = read_cases(config, folder, notes)
    converter = AssertionConverter(config, folder, notes)
    expressions = list(
        dict.fromkeys(name for prompt in prompts for name in prompt.expressions)
    )
    rows = rows_of(cases, expressions, converter, notes)
    _require(rows, "test", path, notes)
    roles, options = _roles(cases, converter, notes)
    name = _task_name(path)
    files = {
        SUITE: _suite(name, prompts, models, roles),
        f"{name}.yaml": _task(name, config, models, rows, converter, notes),
        f"{name}.jsonl": "".join(f"{_json_line(row)}\n" for row in rows),
    }
    for prompt in prompts:
        if prompt.fits_a_file:
            files[_prompt_file(name, prompt)] = prompt.user + "\n"
    return ConvertedSuite(files, notes.sentences(), options)


def _require(parts: Sequence[Any], kind: str, path: Path, notes: Notes) -> None:
    """Raise ConfigurationError if no prompt, provider or test is left."""
    if parts:
        return
    reasons = "\n".join(f"  {sentence}" for sentence in notes.sentences())
    raise ConfigurationError(
        f"'{path}' has no {kind} that can be taken over, so nothing was written."
        + (f"\n{reasons}" if reasons else "")
    )


def _task_name(path: Path) -> str:
    stem = path.stem.removesuffix("config").rstrip("-_.")
    name = re.sub(r"[^\w.+-]+", "-", stem, flags=re.ASCII).strip("-.") or _UNNAMED
    used_names = {path.stem, Path(SUITE).stem}
    return f"{name}-task" if name in used_names else name


def _prompt_file(name: str, prompt: ConvertedPrompt) -> str:
    return f"{name}-prompts/{prompt.name}.txt"


# -- roles -----------------------------------------------------------------------------


def _roles(
    cases: Sequence[TestCase], converter: AssertionConverter, notes: Notes
) -> tuple[dict[str, Any], list[str]]:
    """Return the models that judge and embed, and options of `run` for those without a name."""
    roles: dict[str, Any] = {}
    options: list[str] = []
    kind_by_role = {"judge": "llm-rubric", "embedder": "similar"}
    graders = [case.options["provider"] for case in cases if "provider" in case.options]
    for role, kind in kind_by_role.items():
        if kind not in converter.kinds:
            continue
        models = _graders([*converter.graders, *graders], role, notes)
        if models:
            roles[role] = models[0].as_setting()
        else:
            options += ["--role", f"{role}=provider/name"]
            notes.add(f"The configuration names no model for '{kind}': name one.")
        if len(models) > 1:
            notes.add(
                f"Of several models for '{kind}' the first is taken: {models[0].model}."
            )
    return roles, options


def _graders(graders: Sequence[Any], role: str, notes: Notes) -> list[ConvertedModel]:
    """Return the models for one role, of all that assertions and tests name."""
    models: list[ConvertedModel] = []
    for grader in graders:
        is_by_kind = isinstance(grader, Mapping) and "id" not in grader
        if is_by_kind:
            grader = grader.get("text" if role == "judge" else "embedding")
            if grader is None:
                continue
        model = convert_provider(grader, notes)
        if model is None or model in models:
            continue
        embeds = model.arguments.get("interface") == "embeddings"
        if embeds == (role == "embedder"):
            models.append(model)
    return models


# -- texts -----------------------------------------------------------------------------


def _suite(
    name: str,
    prompts: Sequence[ConvertedPrompt],
    models: Sequence[ConvertedModel],
    roles: Mapping[str, Any],
) -> str:
    settings: dict[str, Any] = {
        "name": name,
        "tasks": [f"{name}.yaml"],
        "models": [model.as_setting() for model in models],
        "prompts": [_prompt_setting(name, prompt) for prompt in prompts],
    }
    if roles:
        settings["roles"] = dict(roles)
    return (
        "# Every model with every prompt, a run each: evalwright run --config"
        f" {SUITE}\n{_yaml(settings)}"
    )


def _prompt_setting(name: str, prompt: ConvertedPrompt) -> str | dict[str, str]:
    file = _prompt_file(name, prompt)
    if prompt.fits_a_file and not prompt.system:
        return file
    setting = {"name": prompt.name}
    if prompt.system:
        setting["system"] = prompt.system
    setting |= {"file": file} if prompt.fits_a_file else {"text": prompt.user}
    return setting


def _task(
    name: str,
    config: Mapping[str, Any],
    models: Sequence[ConvertedModel],
    rows: Sequence[Mapping[str, Any]],
    converter: AssertionConverter,
    notes: Notes,
) -> str:
    metadata = {"description": "{{ description }}", "assert": "{{ assert }}"}
    if "assert_threshold" in rows[0]:
        metadata["assert_threshold"] = "{{ assert_threshold }}"
    for fact in rows[0]["facts"]:
        metadata.setdefault(fact, f"{{{{ facts.{fact} }}}}")
    answer: dict[str, Any] = {"temperature": 0, "max_tokens": MAX_TOKENS}
    if draws := _repeats(config.get("evaluateOptions"), notes):
        temperatures = [model.arguments.get("temperature", 0) for model in models]
        if min(temperatures) > 0:
            answer |= {"temperature": temperatures[0], "draws": draws}
        else:
            notes.add(
                "'evaluateOptions.repeat' is left out: at temperature 0, which a"
                " provider without a temperature has, all answers are the same."
            )
    task: dict[str, Any] = {
        "task": name,
        "description": str(config.get("description") or "Tests of promptfoo."),
        "dataset": f"{name}.jsonl",
        "sample": {"metadata": metadata},
        "answer": answer,
        **_scoring(rows, converter, notes),
    }
    return f"# The rows are in {name}.jsonl, the prompts in {SUITE}.\n{_yaml(task)}"


def _scoring(
    rows: Sequence[Mapping[str, Any]], converter: AssertionConverter, notes: Notes
) -> dict[str, Any]:
    if not any(row["assert"] for row in rows):
        notes.add(
            "No test has an assertion: answers are recorded, and their words counted."
        )
        return {"scorers": ["words"], "metrics": ["mean"]}
    options: dict[str, Any] = {}
    if "llm-rubric" in converter.kinds:
        options["judges"] = ["judge"]
    if "similar" in converter.kinds:
        options["role"] = "embedder"
    scorer = {"assertions": options} if options else "assertions"
    return {"scorers": [scorer], "metrics": ["accuracy"]}


def _repeats(options: Any, notes: Notes) -> int:
    """Return how often every test is repeated; 0 where it is not."""
    if not isinstance(options, Mapping):
        return 0
    for key in options:
        if key not in ("repeat", "showProgressBar"):
            notes.add(f"'evaluateOptions.{key}' is left out.")
    repeats = options.get("repeat")
    if not isinstance(repeats, int) or isinstance(repeats, bool):
        return 0
    return repeats if 1 < repeats <= MAX_REPEATS else 0


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=float)


class _Dumper(yaml.SafeDumper):
    """Writes templates and texts of several lines in double quotes, on one line."""


def _represent_text(dumper: yaml.SafeDumper, content: str) -> yaml.Node:
    style = '"' if "\n" in content or "{" in content else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", content, style)


_Dumper.add_representer(str, _represent_text)


def _yaml(mapping: Mapping[str, Any]) -> str:
    return yaml.dump(
        dict(mapping), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
    )
