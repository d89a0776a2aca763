"""One task in one language, as SEA-HELM's configuration files define it once they are merged and resolved."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.tasks.schema import Drawing
from evalwright.tasks.validation import first_mistake

_NAME = re.compile(r"\w+")
Row = Mapping[str, Any]
"""A row of data in SEA-HELM's format: id, label (text or list of texts), prompts (a mapping for each turn), metadata; others by task."""


@dataclass(frozen=True, slots=True)
class SeaTask:
    """A task in a language. config: the task's resolved mapping, `languages` included; root: the folder that its paths start from.

    base: whether it is given to a base model (`--is_base_model`); published: whether SEA-HELM's own arithmetic makes the numbers;
    trust: folders whose Python may run.
    """

    name: str
    language: str
    config: Mapping[str, Any]
    root: Path | None = None
    base: bool = False
    published: bool = False
    trust: tuple[str, ...] = ()

    @property
    def here(self) -> Mapping[str, Any]:
        """What the task says of this language."""
        found: Mapping[str, Any] = self.config["languages"][self.language]
        return found

    @property
    def template(self) -> Mapping[str, Any]:
        """preamble, task_template, answer_template, answer_tag; each may be empty or null."""
        found: Mapping[str, Any] = self.here["prompt_template"]
        return found

    @property
    def answer_tag(self) -> str:
        return self.template.get("answer_tag") or ""

    @property
    def metric(self) -> str:
        """The number that the task stands for, as `normalized_accuracy`."""
        return str(self.config["metric"])

    @property
    def scored_by(self) -> tuple[str, str]:
        """The file and the class of its metric: classes of one name differ between files."""
        return str(self.config["metric_file"]), str(self.config["metric_class"])

    @property
    def loaded_by(self) -> tuple[str, str] | None:
        """The file and the class of its loader; None where it has none, which is a local file of rows."""
        if not self.config.get("dataloader_class"):
            return None
        return str(self.config.get("dataloader_file")), str(self.config["dataloader_class"])


@lru_cache(maxsize=4096)
def pieces(template: str, what: str) -> tuple[tuple[str, str | None], ...]:
    """Texts and placeholders. what: for errors. Raises TaskError where more than names stands in braces: attributes, formats."""
    found: list[tuple[str, str | None]] = []
    try:
        for text, name, spec, conversion in string.Formatter().parse(template):
            if name is not None and (spec or conversion or not _NAME.fullmatch(name)):
                raise ValueError(f"'{{{name}...}}' is more than a name in braces")
            found.append((text, name))
    except ValueError as error:
        raise TaskError(f"{what} cannot be read: {error}.") from None
    return tuple(found)


def placeholders(task: SeaTask, key: str) -> set[str]:
    """The names in braces of one of a task's templates. Raises TaskError."""
    what = f"The `{key}` of the task '{task.name}' ({task.language})"
    return {name for _, name in pieces(task.template.get(key) or "", what) if name is not None}


def drawing(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """How text is generated, as task files of ours are checked. where: for errors. Raises ConfigurationError."""
    try:
        return Drawing.model_validate(dict(given)).model_dump(include=set(given))
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {first_mistake(error, given)}") from None
