"""The settings of an evaluation: a configuration, the origin of each setting, and Python objects.

A setting is checked here, wherever it comes from: its type by `check_kind`, its value by Settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from evalwright.core.deprecation import warn_old_name
from evalwright.core.errors import ConfigurationError, UnknownName, known_names
from evalwright.core.text import printable
from evalwright.evaluation.configuration import FORMATS, Configuration
from evalwright.evaluation.prompts import prompts_from_python
from evalwright.metrics.tree import read_tree
from evalwright.runs.accepted_failures import read_limit
from evalwright.runs.writer import check_run_name
from evalwright.tasks.yaml_files import kind_of

if TYPE_CHECKING:
    from evalwright.core.tasks import Task
    from evalwright.models.local.cluster import Placement
    from evalwright.models.model_interface import Model

_LONGEST_ROUND = 60
_ROUND = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{_LONGEST_ROUND - 1}}}")

KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("max_resident", "num_fewshot", "seed"), (int, "a whole number")),
    "limit": ((int, float), "a whole number, or a share below 1"),
    **dict.fromkeys(
        ("format", "hardware", "home", "name", "out", "shard", "round"), (str, "text")
    ),
    "accept_failures": (
        (str, int, float),
        "a share or a number of samples, such as 2% or 3",
    ),
    **dict.fromkeys(
        ("replace", "resend_empty", "batch", "no_judge", "store_images"),
        (bool, "true or false"),
    ),
    "common": (Mapping, "a mapping of arguments for every model"),
    "roles": (Mapping, "a mapping of roles to models"),
    "dialect": (Mapping, "a mapping of settings for other frameworks' tasks"),
    "overrides": (Mapping, "a mapping of settings of tasks"),
    "panel": (Mapping, "the panel of a recorded run; in a suite write it as 'judge'"),
    "unsure": (
        Mapping,
        (
            "the scorer that reads again what rules are unsure of, such as {scorer:"
            " judge-correct}"
        ),
    ),
    "tree": (
        Mapping,
        (
            "a tree of tasks: a mapping with 'parts' or 'by', and 'name' and 'average'"
            " where wanted"
        ),
    ),
}
"""What the value of a key must be, as a type and in words."""
TEXTS = {
    "where": "a filter such as domain=science",
    "until": "a stopping rule",
    "budget": "a budget",
    "price": "a price",
    "plugins": "a TOML file of providers",
    "give_up": "the id of a sample, or a .txt file of ids",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting comes from; `location` is file and line, option, or argument's name."""

    source: Literal["file", "command line", "Python"]
    location: str

    @property
    def prefix(self) -> str:
        """Return the beginning of a message about the setting: its place in a file."""
        return f"{self.location}: " if self.source == "file" else ""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an evaluation, complete and checked; nothing is opened or loaded yet.

    Attributes:
        configuration: all that can be written down.
        origins: where each setting comes from; those that are left out have their default.
        tasks: Task objects by their names in the configuration.
        models: Model objects by the name and the occurrence of their ModelSpec.
        on: where local models have their replicas.
        sandbox: the sandbox for programs, for this evaluation alone.
        worker: whether this process is one of those that make the runs together.
        push: the folder of a bucket to which finished runs are copied, "" for none.

    Raises:
        ConfigurationError: no evaluation can have this value.
    """

    configuration: Configuration = field(default_factory=Configuration)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    models: Mapping[tuple[str, int], Model] = field(default_factory=dict)
    on: Placement | None = None
    sandbox: str | None = None
    worker: bool = False
    push: str = ""

    @property
    def in_python(self) -> bool:
        """Whether `evaluate` was called with these settings, rather than a command."""
        return any(origin.source == "Python" for origin in self.origins.values())

    def __post_init__(self) -> None:
        configuration = self.configuration
        limit = configuration.limit
        if limit is not None and not (
            0 < limit < 1 or (limit >= 1 and isinstance(limit, int))
        ):
            raise ConfigurationError(
                f"{self._prefix('limit')}The limit must be a whole number of at least"
                f" 1, or a share of the samples between 0 and 1, not {limit}."
            )
        read_limit(configuration.accept_failures, self._prefix("accept_failures"))
        check_run_name(configuration.name)
        self._check_round(configuration.round)
        if configuration.format not in FORMATS:
            raise UnknownName(
                "format",
                configuration.format,
                FORMATS,
                f"Known: {', '.join(FORMATS)}.{self._place('format')}",
            )
        if configuration.tree:
            read_tree(configuration.tree, f"{self._prefix('tree')}tree")
        if configuration.seed < 0:
            raise ConfigurationError(
                f"The seed must be 0 or more, not {configuration.seed}."
            )
        if configuration.round and configuration.batch:
            raise ConfigurationError(
                "--round cannot be combined with --batch: a batch that was sent in another"
                " round would be taken for this one's. Leave --batch out."
            )
        if configuration.max_resident < 1:
            raise ConfigurationError(
                f"--max-resident must be at least 1, not {configuration.max_resident}:"
                " nothing could be loaded."
            )

    def _check_round(self, round_name: str) -> None:
        """Raise ConfigurationError if a run's name could not show the round's name as it is."""
        if round_name and not _ROUND.fullmatch(round_name):
            raise ConfigurationError(
                f"{self._prefix('round')}--round takes 1 to {_LONGEST_ROUND} letters, digits,"
                " dots, dashes and underscores, the first a letter or digit, such as"
                f" 2026-W49, not '{printable(round_name)[:60]}'."
            )

    def _prefix(self, key: str) -> str:
        origin = self.origins.get(key)
        return origin.prefix if origin else ""

    def _place(self, key: str) -> str:
        """How a message about an unknown name ends: with its place in a file."""
        origin = self.origins.get(key)
        return f" ({origin.location})" if origin and origin.source == "file" else ""

    def having(self, **changes: Any) -> Settings:
        """Return these settings with other values in their configuration."""
        return replace(self, configuration=replace(self.configuration, **changes))


OLD_NAMES = {"undecided": "unsure"}
"""Present names of settings by their old names."""


def present_names(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Rename settings to their present names, with a warning for each old name.

    `where` says what carries them, such as "The setting".
    """
    renamed: dict[str, Any] = {}
    for key, setting in settings.items():
        present = OLD_NAMES.get(key, key)
        if present != key:
            if present in settings:
                raise ConfigurationError(
                    f"'{key}' is the old name of '{present}', and both are set. Leave"
                    f" '{key}' out."
                )
            warn_old_name(key, present, where)
        renamed[present] = setting
    return renamed


def as_list(argument: Any) -> list[Any]:
    """Return a single value or several as a list.

    A generator, a column of a data frame or an array counts as several.
    """
    is_single = isinstance(argument, str | bytes | Mapping) or not isinstance(
        argument, Iterable
    )
    return [argument] if is_single else list(argument)


def check_kind(
    setting: Any, expected_type: Any, words: str, name: str, prefix: str = ""
) -> None:
    """Raise ConfigurationError for a setting of another type.

    Args:
        setting: what was written or passed.
        expected_type: the type that it must have, or several.
        words: the same in words, such as "a whole number".
        name: what the message calls the setting.
        prefix: how the message begins, such as with file and line.
    """
    is_stray_bool = isinstance(setting, bool) and expected_type is not bool
    if not isinstance(setting, expected_type) or is_stray_bool:
        raise ConfigurationError(
            f"{prefix}'{name}' must be {words}, not {kind_of(setting)}."
        )


def fields_from_python(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the settings of a call in Python to fields of a Configuration.

    Numpy's numbers become Python's, paths become text, and a text becomes a list of one. None
    counts as left out.

    Raises:
        UnknownName: there is no such setting.
        ConfigurationError: a value has another type.
    """
    known_keys = [key for key in (*TEXTS, *KINDS, "prompts") if key != "common"]
    all_keys = ["judge", *known_keys]  # `judge` is read before
    fields: dict[str, Any] = {}
    for key, setting in present_names(settings, "The setting").items():
        if key == "prompts" and setting is not None:
            fields[key] = prompts_from_python(setting)
            continue
        if key not in known_keys:
            raise UnknownName("setting", key, all_keys, known_names(key, all_keys))
        if setting is None:
            continue
        plain = _as_written(setting)
        if key in TEXTS:
            texts = tuple(as_list(plain))
            for text in texts:
                check_kind(text, str, f"{TEXTS[key]} in quotes, or a list of them", key)
            fields[key] = texts
            continue
        check_kind(plain, *KINDS[key], key)
        fields[key] = str(plain) if key == "accept_failures" else plain
    return fields


def _as_written(argument: Any) -> Any:
    """Return a value as a file of settings would have it."""
    if isinstance(argument, PurePath):
        return str(argument)
    if isinstance(argument, Mapping):
        return {key: _as_written(inner) for key, inner in argument.items()}
    if isinstance(argument, list | tuple):
        return [_as_written(inner) for inner in argument]
    return argument.tolist() if hasattr(argument, "tolist") else argument
