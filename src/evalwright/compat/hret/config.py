"""What one evaluation is made of, in HRET's words, and the examples that stand before a prompt."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.datasets.base import filled, load_datasets
from evalwright.compat.hret.published import texts
from evalwright.compat.hret.settings import Given, Row, Rows
from evalwright.extend import ConfigurationError

log = logging.getLogger("evalwright.hret")

DEFAULT_FEW_SHOT_INSTRUCTION: str = texts()["few_shot"]["instruction"]
DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE: str = texts()["few_shot"]["example_template"]

CotParser = Callable[[str], tuple[str, str]]

SHOWN_NAMES = ("dataset_name", "subset", "split", "model_backend_name")
"""What a result says first."""
LONG_NAMES: Mapping[str, str] = texts()["long_names"]
"""The fields of a configuration that calls and HRET's documents name shorter."""

_MOST_NODES = 100_000
"""Values of a configuration file."""
_OTHER_SPLITS = ("dev", "validation", "valid", "train", "test")
"""Where examples are looked for when no split is named: made for it first."""


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
            if not settings.is_published():
                raise ValueError(f"{message}.")
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


@dataclass(frozen=True)
class Shots:
    """rows: those to evaluate. prefix: the text before a row's input. source: the split of the
    examples; n: how many are in it.
    """

    rows: Sequence[Row]
    prefix: Callable[[Given], str] = lambda row: ""
    source: str | None = None
    n: int = 0
    notes: Sequence[str] = ()


def load_rows(config: PipelineConfig, dataset: Any, published: bool) -> Shots:
    """The rows of a dataset, and the examples before them.

    Raises what the dataset raises; with corrected scoring also where there are no rows to evaluate
    or examples cannot be made.
    """
    rows = list(dataset.load())
    if config.num_few_shot <= 0:
        return Shots(rows)
    return (
        _published_shots(config, rows) if published else _corrected_shots(config, rows)
    )


def _published_shots(config: PipelineConfig, rows: Rows) -> Shots:
    """As HRET: the first rows of the named split, else of the evaluated one, which then lacks them
    even where no examples were made.
    """
    source = config.few_shot_split or config.split
    try:
        text = examples_text(
            _split(config, source).load()[: config.num_few_shot], config, padded=True
        )
    except Exception as error:
        log.error("No examples could be made of the split '%s': %s", source, error)
        text = ""
    if config.few_shot_split is None or config.few_shot_split == config.split:
        rows = rows[config.num_few_shot :]
    return (
        Shots(rows, lambda row: text, config.few_shot_split, config.num_few_shot)
        if text
        else Shots(rows)
    )


def _corrected_shots(config: PipelineConfig, rows: Rows) -> Shots:
    """Examples of another split, drawn once by seed, of a row's own subset where it has enough; no
    row is its own example.
    """

    def content(row: Given) -> tuple[str, str]:
        return str(row.get("input", "")), str(row.get("reference", ""))

    n = config.num_few_shot
    named = config.few_shot_split
    evaluated = {content(row) for row in rows}
    notes = list[str]()
    source = ""
    pool = Rows()
    for source in (
        [named]
        if named
        else [
            other_split for other_split in _OTHER_SPLITS if other_split != config.split
        ]
    ):
        try:
            split_rows = list(_split(config, source).load())
        except Exception as error:
            if named:
                raise ValueError(
                    f"The split '{source}' for the examples cannot be read: {error}"
                ) from error
            continue
        if pool := [
            row
            for row in split_rows
            if content(row) not in evaluated and str(row.get("input") or "")
        ]:
            break
    if not pool:
        order = _examples_of(rows, n)
        source = config.split
        pool = [rows[place] for place in sorted(order)]
        rows = [row for place, row in enumerate(rows) if place not in order]
        notes.append(
            f"The examples are {len(pool)} rows of the evaluated split, which are not"
            " evaluated."
        )
    if not rows:
        raise ValueError(
            f"No rows are left to evaluate after {n} were taken as examples."
        )
    if len(pool) < n:
        notes.append(
            f"{n} examples were asked for, and the split '{source}' has {len(pool)}."
        )
    texts: dict[Any, str] = {}

    def prefix(row: Given) -> str:
        subset = row.get("_subset_name")
        if subset not in texts:
            near = [
                example for example in pool if example.get("_subset_name") == subset
            ]
            chosen = near if len(near) >= n else pool
            texts[subset] = examples_text(
                random.Random(0).sample(chosen, min(n, len(chosen))), config
            )
            if not texts[subset]:
                raise ValueError(
                    "No example could be made with the template"
                    f" {config.few_shot_example_template!r}: it may name {{input}} and"
                    " {reference}."
                )
        return texts[subset]

    return Shots(rows, prefix, source, min(n, len(pool)), notes)


def _examples_of(rows: Sequence[Row], n: int) -> set[int]:
    """The places of n rows drawn by seed, so that as long as there are others no subset loses its
    last row.
    """
    left = Counter(row.get("_subset_name") for row in rows)
    first = list[int]()
    others = list[int]()
    for place in random.Random(0).sample(range(len(rows)), len(rows)):
        subset = rows[place].get("_subset_name")
        if len(first) < n and left[subset] > 1:
            left[subset] -= 1
            first.append(place)
        else:
            others.append(place)
    return {*[*first, *others][:n]}


def _split(config: PipelineConfig, split: str) -> Any:
    params = {
        key: value
        for key, value in (config.dataset_params or {}).items()
        if "few_shot" not in key
    }
    return load_datasets(
        config.dataset_name, **{"subset": config.subset, **params, "split": split}
    )


def examples_text(
    rows: Sequence[Given], config: PipelineConfig, *, padded: bool = False
) -> str:
    """The instruction and the examples; "" where no row has an input or the template names anything
    but input and reference.

    padded: see `filled`.
    """
    texts = []
    for row in rows:
        if row_input := str(row.get("input", "")):
            fields = {"input": row_input, "reference": str(row.get("reference", ""))}
            try:
                texts.append(
                    filled(config.few_shot_example_template, fields, padded=padded)
                )
            except Exception as error:
                log.warning(
                    "An example was left out: %s: %s", type(error).__name__, error
                )
    return "".join([config.few_shot_instruction or "", *texts]) if texts else ""


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
    left = [settings]
    while left:  # an anchor of YAML stands for all that it names, each time
        node = left.pop()
        nodes += 1
        if nodes > _MOST_NODES:
            raise ConfigurationError(f"{path} has more than {_MOST_NODES:,} values.")
        left += (
            node.values()
            if isinstance(node, Mapping)
            else node
            if isinstance(node, list)
            else ()
        )
    return settings
