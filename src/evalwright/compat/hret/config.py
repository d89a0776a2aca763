"""What one evaluation is made of, in HRET's words, and files that say so."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from evalwright.compat.hret.examples import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
)
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.rules import current
from evalwright.compat.hret.tables import tables
from evalwright.extend import ConfigurationError

log = logging.getLogger("evalwright.hret")


CotParser = Callable[[str], tuple[str, str]]

SHOWN_NAMES = ("dataset_name", "subset", "split", "model_backend_name")
"""What a result says first."""

LONG_NAMES: Mapping[str, str] = tables()["long_names"]
"""The fields of a configuration that calls and HRET's documents name shorter."""

_MOST_NODES = 100_000
"""Values of a configuration file."""


@dataclass
class PipelineConfig:
    """The parts of an evaluation by their registry names, with their parameters."""

    dataset_name: str
    subset: str | list[str] | None = None
    split: str = "test"
    model_backend_name: str = "huggingface"
    scaling_method_name: str | None = None
    evaluation_method_name: str = "string_match"
    dataset_params: dict[str, Any] | None = None
    model_backend_params: dict[str, Any] | None = None
    scaling_params: dict[str, Any] | None = None
    evaluator_params: dict[str, Any] | None = None
    language_penalize: bool = True
    target_lang: str = "ko"
    custom_cot_parser: CotParser | str | None = None
    num_few_shot: int = 0
    few_shot_split: str | None = None
    few_shot_instruction: str | None = DEFAULT_FEW_SHOT_INSTRUCTION
    few_shot_example_template: str = DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE

    def __post_init__(self) -> None:
        for name in (
            "dataset_params",
            "model_backend_params",
            "scaling_params",
            "evaluator_params",
        ):
            setattr(self, name, getattr(self, name) or {})
        shots: Any = 0 if self.num_few_shot is None else self.num_few_shot
        self.num_few_shot = shots if isinstance(shots, int) and shots >= 0 else 0
        if shots != self.num_few_shot:
            message = f"num_few_shot must be a whole number from 0 on, not {shots!r}"
            current().refuse(ValueError(f"{message}."))
            log.warning("%s: 0 is used.", message)

    def names(self) -> dict[str, Any]:
        """What a result says first."""
        return {name: getattr(self, name) for name in SHOWN_NAMES}

    def settings(self) -> dict[str, Any]:
        """All fields of a configuration, for another one."""
        return {
            field_of_config.name: getattr(self, field_of_config.name)
            for field_of_config in fields(PipelineConfig)
        }


def read_settings(path: Path) -> Given:
    """A mapping in a YAML or JSON file.

    Raises OSError, and ConfigurationError for anything else.
    """
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            import yaml

            settings = yaml.safe_load(text)
        else:
            settings = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{path} is not valid JSON: {error}.") from None
    except Exception as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}.") from None
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise ConfigurationError(
            f"{path} must be a mapping, not a {type(settings).__name__}."
        )
    nodes = 0
    left: list[Any] = [settings]
    while left:  # an anchor of YAML stands for all that it names, each time
        node = left.pop()
        nodes += 1
        if nodes > _MOST_NODES:
            raise ConfigurationError(f"{path} has more than {_MOST_NODES:,} values.")
        if isinstance(node, Mapping):
            left += node.values()
        elif isinstance(node, list):
            left += node
    return settings
