"""HRET's `Evaluator`, its configuration files, and its command line as `evalwright hret`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalwright.compat.hret.config import (
    LONG_NAMES,
    SHOWN_NAMES,
    CotParser,
    log,
    read_settings,
)
from evalwright.compat.hret.cot_parsers import is_default, parser_of
from evalwright.compat.hret.examples import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
)
from evalwright.compat.hret.results import failed_result
from evalwright.compat.hret.rules import using
from evalwright.compat.hret.runner import PipelineRunner
from evalwright.compat.hret.tables import tables
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.extend import (
    ConfigurationError,
    arguments_needing_trust,
    is_within,
    mask,
    printable,
)

__all__ = ["EvaluationResult", "Evaluator", "main", "run_from_config"]

SECTIONS: Mapping[str, Mapping[str, str]] = tables()["configuration"]
"""The keys of each section of a configuration file, with the arguments of `run` that they are."""
VALUES = ("language_penalize", "target_lang", "custom_cot_parser", "scoring")
"""What a file may have besides its sections."""
_OF_ROLES = (
    "self",
    "scoring",
    "raise_on_error",
    "model",
    "model_params",
    "judge_model",
    "judge_params",
    "reward_model",
    "reward_params",
)
"""Arguments of `run` that are no fields of a configuration."""
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(eq=False)
class Evaluator:
    """Defaults for evaluations. scoring: `published` or `corrected`; None takes what `set_scoring`
    chose.
    """

    default_model_backend: str = "huggingface"
    default_judge_backend: str | None = None
    default_reward_backend: str | None = None
    default_scaling_method: str | None = None
    default_evaluation_method: str = "string_match"
    default_split: str = "test"
    default_cot_parser: CotParser | str | None = None
    default_num_few_shot: int = 0
    default_few_shot_split: str | None = None
    default_few_shot_instruction: str = DEFAULT_FEW_SHOT_INSTRUCTION
    default_few_shot_example_template: str = DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE
    _: KW_ONLY
    scoring: str | None = None

    def __post_init__(self) -> None:
        with using(self.scoring) as rules:
            parser_of(self.default_cot_parser, rules=rules)

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
        """One evaluation.

        What is None has the evaluator's default. What fails as a whole is the metric
        `pipeline_error`, or is raised where raise_on_error says so.
        """
        call = {
            name: value for name, value in locals().items() if name not in _OF_ROLES
        }
        for name in (
            "split",
            "scaling_method",
            "evaluation_method",
            "num_few_shot",
            "few_shot_split",
            "few_shot_instruction",
            "few_shot_example_template",
        ):
            if call[name] is None:
                call[name] = getattr(self, f"default_{name}")
        if custom_cot_parser is None:
            call["custom_cot_parser"] = self.default_cot_parser
        call["target_lang"] = "ko" if target_lang is None else target_lang
        roles: dict[str, tuple[str | None, dict[str, Any]]] = {
            "generate_model": (model or self.default_model_backend, model_params or {}),
            "judge_model": (
                judge_model or self.default_judge_backend,
                judge_params or {},
            ),
            "reward_model": (
                reward_model or self.default_reward_backend,
                reward_params or {},
            ),
        }
        config = {LONG_NAMES.get(name, name): value for name, value in call.items()}
        config["model_backend_name"], config["model_backend_params"] = roles[
            "generate_model"
        ]
        if roles["judge_model"][0] or roles["reward_model"][0]:
            parts = {
                role: {"name": backend, "params": params} if backend else None
                for role, (backend, params) in roles.items()
            }
            config |= {"model_backend_name": "multi", "model_backend_params": parts}
        try:
            runner = PipelineRunner(**config, scoring=scoring or self.scoring)
            for role, (backend, params) in roles.items():
                if params and not backend:
                    model_role = role.removesuffix("_model")
                    runner.note(f"{model_role}_params have no effect without {role}.")
        except Exception as error:
            if raise_on_error:
                raise
            return failed_result({name: config[name] for name in SHOWN_NAMES}, error)
        return runner.run(raise_on_error=raise_on_error)


def run_from_config(
    config_path: str | Path, *, scoring: str | None = None, trust: bool = False
) -> EvaluationResult:
    """The evaluation of a YAML or JSON file.

    A section without a value is like one that is missing. trust: the file may also run code
    (parsers, code of models and datasets), send prompts to other machines, and read files outside
    of its folder.

    Raises OSError where it cannot be read, ConfigurationError for what it does not hold, has
    besides, or may not set.
    """
    config = read_settings(Path(config_path))
    folder = Path(config_path).resolve().parent
    proposed = [] if trust else list(_proposed(config, folder))
    if proposed:
        raise ConfigurationError(
            f"{config_path} has settings that need your permission:\n"
            + "\n".join(proposed)
            + "\nRead it, then add --trust (in Python trust=True)."
        )
    call: dict[str, Any] = {}
    for name, section in config.items():
        known_keys = SECTIONS.get(name)
        if name in VALUES:
            call[name] = section
        elif known_keys is None:
            log.warning("%s: '%s' has no effect.", config_path, name)
        elif section is not None and not isinstance(section, Mapping):
            raise ConfigurationError(
                f"{config_path}: '{name}' must be a mapping with {', '.join(known_keys)}."
            )
        else:
            for key, value in (section or {}).items():
                if key in known_keys:
                    call[known_keys[key]] = value
                else:
                    log.warning(
                        "%s: '%s.%s' has no effect. Known: %s.",
                        config_path,
                        name,
                        key,
                        ", ".join(known_keys),
                    )
    parser_of(call.get("custom_cot_parser"))
    chosen = call.pop("scoring", None)
    call["dataset"] = call.get("dataset") or None
    return Evaluator(scoring=scoring or chosen).run(
        **{name: argument for name, argument in call.items() if argument is not None}
    )


def _proposed(value: Any, folder: Path, at: str = "") -> Iterator[str]:
    """What in a file could run code, send prompts or a key somewhere, or read files elsewhere; a
    line each.
    """
    pairs = enumerate(value) if isinstance(value, list) else ()
    for key, setting in value.items() if isinstance(value, Mapping) else pairs:
        place = f"{at}.{key}" if at else str(key)
        if setting and not _may_set(str(key), setting, folder):
            yield f"  {place}: {mask(printable(str(setting)))[:300]}"
        else:
            yield from _proposed(setting, folder, place)


def _may_set(key: str, value: Any, folder: Path) -> bool:
    if key in ("cot_parser", "custom_cot_parser"):
        return is_default(value)
    if key in ("api_base", "base_url"):
        address = urlsplit(str(value))
        return "\\" not in str(value) and (
            address.hostname in _HERE
            or (address.scheme, address.netloc) == ("https", "api.openai.com")
        )
    if key == "file_path":
        return "://" not in str(value) and is_within(
            Path(str(value)).expanduser(), folder, Path.cwd()
        )
    if key == "model_kwargs":
        return not (isinstance(value, Mapping) and arguments_needing_trust(value))
    return key not in ("data_dir", "data_files", "storage_options", "trust_remote_code")


def main(arguments: list[str] | None = None) -> int:
    """The command line, from `sys.argv` by default.

    Prints the result as JSON; returns 0, or 1 where the evaluation failed.

    Raises SystemExit with 2 for wrong usage.
    """
    code: int = import_module("evalwright.compat.hret.hret_command").run(arguments)
    return code
