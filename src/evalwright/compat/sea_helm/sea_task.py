"""A task of SEA-HELM's in a language, and what is called how everywhere."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright import Sample
from evalwright.extend import ScoringError, TaskError

Row = Mapping[str, Any]
"""A row of data in SEA-HELM's format: id, label (text or list of texts), prompts (a mapping for
each turn), metadata; others by task.
"""
Class = tuple[str, str]
"""A file and a class in it: classes of one name differ between files."""


NULL = "null"
"""The label of an answer from which no label could be read."""
DIALECT = SCORER = "sea-helm"
"""The dialect, and the name of the one scorer that its tasks have."""
PREFIX = f"{DIALECT}:"

log = logging.getLogger("evalwright.sea_helm")


@dataclass(frozen=True, slots=True)
class SeaTask:
    """A task in a language. config: the task's resolved mapping, `languages` included; root: the
    folder that its paths start from.

    base: whether it is given to a base model (`--is_base_model`); published: whether SEA-HELM's own
    arithmetic makes the numbers; trust: folders whose Python may run.
    """

    name: str
    language: str
    config: Mapping[str, Any]
    root: Path | None = None
    base: bool = False
    published: bool = False
    trust: tuple[str, ...] = ()

    @property
    def scoring(self) -> str:
        """Whose arithmetic makes the numbers."""
        return "published" if self.published else "corrected"

    @property
    def language_settings(self) -> Mapping[str, Any]:
        """The part of the task's configuration that is about this language."""
        return self.config["languages"][self.language]  # type: ignore[no-any-return]

    @property
    def template(self) -> Mapping[str, Any]:
        """preamble, task_template, answer_template, answer_tag; each may be empty or null."""
        return self.language_settings["prompt_template"]  # type: ignore[no-any-return]

    @property
    def answer_tag(self) -> str:
        return self.template.get("answer_tag") or ""

    @property
    def metric(self) -> str:
        """The number that the task stands for, as `normalized_accuracy`."""
        return str(self.config["metric"])

    @property
    def plain_name(self) -> str:
        """The name without what marks a twin."""
        return self.name.removesuffix("-logprobs")

    @property
    def is_twin(self) -> bool:
        """Whether labels are scored by their log-likelihood."""
        return str(self.config.get("use_logprobs") or "").lower() == "true"

    @property
    def separator(self) -> str:
        """What stands between the answer tag and a label."""
        separator = re.search(
            r"\{answer_tag\}(.*)\{label\}", self.template.get("answer_template") or ""
        )
        return (
            separator[1]
            if separator
            else str(self.template.get("answer_tag_separator", " "))
        )

    @property
    def scored_by(self) -> Class:
        """The class of its metric."""
        return str(self.config["metric_file"]), str(self.config["metric_class"])

    @property
    def loaded_by(self) -> Class | None:
        """The class of its loader; None where it has none, which is a local file of rows."""
        name = self.config.get("dataloader_class")
        return (str(self.config.get("dataloader_file")), str(name)) if name else None


def row_of(sample: Sample) -> Row:
    """The row of a sample. Raises ScoringError where it has none."""
    row = sample.metadata.get("row")
    if not isinstance(row, Mapping):
        raise ScoringError(
            f"The sample '{sample.id}' has no row of SEA-HELM's in its metadata."
        )
    return row


def plain(value: Any) -> Any:
    """A value as JSON would give it back. Raises TaskError where it holds what JSON has not."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TaskError(
            f"A task's definition can contain only JSON values: {error}."
        ) from None


def parsed_json(text: str | bytes) -> Any:
    """JSON in a row. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
