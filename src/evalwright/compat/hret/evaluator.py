"""HRET's `Evaluator`, its configuration files, and its command line as `evalwright hret`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalwright.compat.hret import settings
from evalwright.compat.hret.config import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
    CotParser,
    log,
)
from evalwright.compat.hret.runner import PipelineRunner
from evalwright.compat.hret.scaling import is_default, parser_of
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import mask
from evalwright.core.text import printable
from evalwright.evaluation.origins import proposed
from evalwright.tasks.files import is_within

__all__ = ["EvaluationResult", "Evaluator", "main", "run_from_config"]

SECTIONS: Mapping[str, frozenset[str]] = {
    "dataset": frozenset({"name", "subset", "split", "params"}),
    "model": frozenset({"name", "params"}),
    "judge_model": frozenset({"name", "params"}),
    "reward_model": frozenset({"name", "params"}),
    "scaling": frozenset({"name", "params"}),
    "evaluation": frozenset({"method", "params"}),
    "few_shot": frozenset({"num", "split", "instruction", "example_template"}),
}
VALUES = frozenset({"language_penalize", "target_lang", "custom_cot_parser", "scoring"})
"""What a configuration file may have besides its sections."""
_HERE = ("localhost", "127.0.0.1", "::1")


class Evaluator:
    """Defaults for evaluations. scoring: `published` or `corrected`; None takes what `set_scoring` chose."""

    def __init__(
        self,
        default_model_backend: str = "huggingface",
        default_judge_backend: str | None = None,
        default_reward_backend: str | None = None,
        default_scaling_method: str | None = None,
        default_evaluation_method: str = "string_match",
        default_split: str = "test",
        default_cot_parser: CotParser | str | None = None,
        default_num_few_shot: int = 0,
        default_few_shot_split: str | None = None,
        default_few_shot_instruction: str = DEFAULT_FEW_SHOT_INSTRUCTION,
        default_few_shot_example_template: str = DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
        *,
        scoring: str | None = None,
    ) -> None:
        self.default_model_backend = default_model_backend
        self.default_judge_backend = default_judge_backend
        self.default_reward_backend = default_reward_backend
        self.default_scaling_method = default_scaling_method
        self.default_evaluation_method = default_evaluation_method
        self.default_split = default_split
        self.default_num_few_shot = default_num_few_shot
        self.default_few_shot_split = default_few_shot_split
        self.default_few_shot_instruction = default_few_shot_instruction
        self.default_few_shot_example_template = default_few_shot_example_template
        self.scoring = None if scoring is None else settings.checked_scoring(scoring)
        published = (self.scoring or settings.scoring()) == "published"
        self.default_cot_parser = parser_of(default_cot_parser, published=published)

    def run(
        self,
        model: str | None = None,
        judge_model: str | None = None,
        reward_model: str | None = None,
        dataset: str = "haerae_bench",
        subset: str | list[str] | None = None,
        split: str | None = None,
        scaling_method: str | None = None,
        evaluation_method: str | None = None,
        dataset_params: dict[str, Any] | None = None,
        model_params: dict[str, Any] | None = None,
        judge_params: dict[str, Any] | None = None,
        reward_params: dict[str, Any] | None = None,
        scaling_params: dict[str, Any] | None = None,
        evaluator_params: dict[str, Any] | None = None,
        language_penalize: bool = True,
        target_lang: str | None = "ko",
        custom_cot_parser: CotParser | str | None = None,
        num_few_shot: int | None = None,
        few_shot_split: str | None = None,
        few_shot_instruction: str | None = None,
        few_shot_example_template: str | None = None,
        *,
        scoring: str | None = None,
        raise_on_error: bool = False,
    ) -> EvaluationResult:
        """One evaluation. What is None has the evaluator's default. What fails as a whole is the metric `pipeline_error`, or is raised
        where raise_on_error says so."""
        backend = model or self.default_model_backend
        judge, reward = judge_model or self.default_judge_backend, reward_model or self.default_reward_backend
        final_split = _first(split, self.default_split)
        name, params = backend, dict(model_params or {})
        if judge is not None or reward is not None:
            name, params = (
                "multi",
                {
                    "generate_model": {"name": backend, "params": params} if backend else None,
                    "judge_model": {"name": judge, "params": judge_params or {}} if judge else None,
                    "reward_model": {"name": reward, "params": reward_params or {}} if reward else None,
                },
            )
        try:
            runner = PipelineRunner(
                dataset_name=dataset,
                subset=subset,
                split=final_split,
                model_backend_name=name,
                model_backend_params=params,
                scaling_method_name=_first(scaling_method, self.default_scaling_method),
                scaling_params=scaling_params,
                evaluation_method_name=_first(evaluation_method, self.default_evaluation_method),
                evaluator_params=evaluator_params,
                dataset_params=dataset_params,
                language_penalize=language_penalize,
                target_lang=_first(target_lang, "ko"),
                custom_cot_parser=_first(custom_cot_parser, self.default_cot_parser),
                num_few_shot=_first(num_few_shot, self.default_num_few_shot),
                few_shot_split=_first(few_shot_split, self.default_few_shot_split),
                few_shot_instruction=_first(few_shot_instruction, self.default_few_shot_instruction),
                few_shot_example_template=_first(
                    few_shot_example_template, self.default_few_shot_example_template
                ),
                scoring=scoring or self.scoring,
            )
        except Exception as error:
            if raise_on_error:
                raise
            log.error("The evaluation cannot be run: %s: %s", type(error).__name__, error)
            info = {
                "dataset_name": dataset,
                "subset": subset,
                "split": final_split,
                "model_backend_name": name,
            }
            return EvaluationResult(
                {"pipeline_error": str(error)}, [], {**info, "error_message": str(error), "status": "failed"}
            )
        return runner.run(raise_on_error=raise_on_error)


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given


def run_from_config(
    config_path: str | Path, *, scoring: str | None = None, trust: bool = False
) -> EvaluationResult:
    """The evaluation of a YAML or JSON file. A section without a value is like one that is missing. trust: the file may also run code (parsers,
    code of models and datasets), send prompts to other machines, and read files outside of its folder.

    Raises OSError where it cannot be read, ConfigurationError for what it does not hold, has besides, or may not set.
    """
    config = _read(Path(config_path))
    if not trust and (asked := list(_proposed(config, Path(config_path).resolve().parent))):
        raise ConfigurationError(
            f"{config_path} sets what only you may decide:\n"
            + "\n".join(asked)
            + "\nRead it, then add --trust (in Python trust=True)."
        )
    parts: dict[str, Mapping[str, Any]] = {}
    for name, known in SECTIONS.items():
        section = config.get(name)
        if section is None:
            section = {}
        if not isinstance(section, Mapping):
            raise ConfigurationError(
                f"{config_path}: '{name}' must be a mapping with {', '.join(sorted(known))}."
            )
        for key in section:
            if key not in known:
                log.warning(
                    "%s: '%s.%s' has no effect. Known: %s.", config_path, name, key, ", ".join(sorted(known))
                )
        parts[name] = section
    for key in config:
        if key not in SECTIONS and key not in VALUES:
            log.warning("%s: '%s' has no effect.", config_path, key)
    dataset, model, shots = parts["dataset"], parts["model"], parts["few_shot"]
    return Evaluator(scoring=scoring or config.get("scoring")).run(
        model=model.get("name"),
        judge_model=parts["judge_model"].get("name"),
        reward_model=parts["reward_model"].get("name"),
        dataset=dataset.get("name") or "haerae_bench",
        subset=dataset.get("subset"),
        split=dataset.get("split"),
        scaling_method=parts["scaling"].get("name"),
        evaluation_method=parts["evaluation"].get("method"),
        dataset_params=dataset.get("params"),
        model_params=model.get("params"),
        judge_params=parts["judge_model"].get("params"),
        reward_params=parts["reward_model"].get("params"),
        scaling_params=parts["scaling"].get("params"),
        evaluator_params=parts["evaluation"].get("params"),
        language_penalize=_first(config.get("language_penalize"), True),
        target_lang=config.get("target_lang"),
        custom_cot_parser=parser_of(config.get("custom_cot_parser")),
        num_few_shot=shots.get("num"),
        few_shot_split=shots.get("split"),
        few_shot_instruction=shots.get("instruction"),
        few_shot_example_template=shots.get("example_template"),
    )


def _proposed(value: Any, folder: Path, at: str = "") -> Iterator[str]:
    """What in a file could run code, send prompts or a key somewhere, or read files elsewhere; a line each."""
    pairs = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, one in pairs:
        place = f"{at}.{key}" if at else str(key)
        if one and not _may_set(str(key), one, folder):
            yield f"  {place}: {mask(printable(str(one)))[:300]}"
        else:
            yield from _proposed(one, folder, place)


def _may_set(key: str, value: Any, folder: Path) -> bool:
    if key in ("cot_parser", "custom_cot_parser"):
        return is_default(value)
    if key in ("api_base", "base_url"):
        address = urlsplit(str(value))
        return "\\" not in str(value) and (
            address.hostname in _HERE or (address.scheme, address.netloc) == ("https", "api.openai.com")
        )
    if key == "file_path":
        return "://" not in str(value) and is_within(Path(str(value)).expanduser(), folder, Path.cwd())
    if key == "model_kwargs":
        return not proposed({"common": value}, folder)
    return key not in ("data_dir", "data_files", "storage_options", "trust_remote_code")


def _read(path: Path) -> Mapping[str, Any]:
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            import yaml

            found = yaml.safe_load(text)
        else:
            found = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{path} is not valid JSON: {error}.") from None
    except Exception as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}.") from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigurationError(f"{path} must be a mapping, not a {type(found).__name__}.")
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line, from `sys.argv` by default. Prints the result as JSON; returns 0, or 1 where the evaluation failed.

    Raises SystemExit with 2 for wrong usage.
    """
    code: int = import_module("evalwright.compat.hret.command").run(arguments)
    return code
