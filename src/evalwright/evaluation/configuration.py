"""A whole evaluation as data: what a command line, a suite file and `run.json` all say in the same
words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from evalwright.core.deprecation import warn_old_name
from evalwright.core.errors import ConfigurationError, UnknownName, known_names
from evalwright.core.local_paths import check_local
from evalwright.core.secrets import masked_arguments
from evalwright.tasks.yaml_files import kind_of

PromptFormat = Literal["auto", "chat", "text"]

KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("max_resident", "num_fewshot", "seed"), (int, "a whole number")),
    "limit": ((int, float), "a whole number, or a share below 1"),
    **dict.fromkeys(
        ("format", "hardware", "home", "name", "out", "shard"), (str, "text")
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
            "a tree of tasks: a mapping with 'parts', and 'name' and 'average' where"
            " wanted"
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


def check_limit(limit: float | None, where: str = "") -> None:
    """Raise ConfigurationError for what is no number of samples of a task, and no share of them.
    where: begins the sentence.
    """
    if limit is not None and not (
        0 < limit < 1 or (limit >= 1 and isinstance(limit, int))
    ):
        raise ConfigurationError(
            f"{where}The limit must be a whole number of at least 1, or a share of the"
            f" samples between 0 and 1, not {limit}."
        )


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, with the arguments of its backend and the label that boards show.

    Args:
        model: the name, `PROVIDER/NAME[@REVISION]`.
        arguments: arguments of the backend, as with `-M` on the command line.
        label: what boards show in place of the name.
        common: names of the arguments that come from the settings for all models of a file; a
            backend may refuse those.
        occurrence: which of several objects of that name it is, where objects were passed in
            Python; never in a file.
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    common: tuple[str, ...] = field(default=(), compare=False)
    occurrence: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The form a suite file takes; what is secret is left out of it."""
        out: dict[str, Any] = {"model": masked_arguments(self.model)}
        if self.arguments:
            out["arguments"] = masked_arguments(self.arguments)
        if self.label:
            out["label"] = self.label
        return out


@dataclass(frozen=True, slots=True)
class Configuration:
    """One evaluation: tasks, models and settings, as a suite file or the command line has them.

    Args:
        tasks: names, patterns of names (`mmlu_*`) or paths.
        models: models under test, a run each.
        roles: other models by role, such as "judge".
        where: filters on samples' metadata ("domain=science", "language!=ko").
        limit: number of samples per task, or a share of them below 1; the first of the seed's
            random order. None takes all.
        seed: seeds the order of samples and everything else that is drawn.
        name: name of the run, or what the names of several begin with.
        out: folder of run folders.
        home: folder of the store.
        format: how prompts are rendered: "auto", "chat" or "text".
        max_resident: large local models in memory at a time.
        replace: whether a run of that name with other settings may be replaced.
        resend_empty: send requests again whose replies were all empty before, and were paid for.
        overrides: settings in place of the tasks' own, nested or dotted ({"dataset.path":
            "mine.csv"}).
        dialect: settings for tasks of other frameworks (DIALECT:NAME), such as `task_root`, `trust`
            and `scoring`.
        num_fewshot: number of worked examples in place of the tasks' own.
        tree: how scores are averaged over tasks; {} averages over the groups that tasks come from.
        until: stopping rules ("accuracy +-0.02", "A beats B").
        budget: spending limits ("5 USD", "2M tokens").
        price: US dollars per million tokens read and written ("0.15/0.60",
            "openai/gpt-4o-mini=0.15/0.60").
        batch: send requests to the models under test through their providers' batch interfaces.
        store_images: whether pictures of the prompts' images are kept beside the record.
        plugins: TOML files with providers and prices.
        hardware: what you call the machine, for the record.
        shard: which part of the samples to take: "2/8" for the second of eight, "auto/8" in an
            array of jobs, "auto" in processes launched together.
        unsure: the scorer that reads again what tasks' rules are unsure of ({"scorer":
            "judge-correct"}).
        accept_failures: how many samples of each task may stay without an answer or score: "2%" or
            "3".
        give_up: ids of samples, and files of ids, that may stay without one besides.
        no_judge: leave out roles, and the scorers that call a model.

    Raises:
        ConfigurationError: `out` or `home` is an address such as s3://bucket, not a folder.
    """

    tasks: tuple[str, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    roles: Mapping[str, ModelSpec] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    limit: float | None = None
    seed: int = 0
    name: str = ""
    out: str = "runs"
    home: str | None = None
    format: PromptFormat = "auto"
    max_resident: int = 1
    replace: bool = False
    resend_empty: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    dialect: Mapping[str, Any] = field(default_factory=dict)
    num_fewshot: int | None = None
    tree: Mapping[str, Any] = field(default_factory=dict)
    until: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()
    price: tuple[str, ...] = ()
    batch: bool = False
    store_images: bool = True
    plugins: tuple[str, ...] = ()
    hardware: str = ""
    shard: str = ""
    unsure: Mapping[str, Any] = field(default_factory=dict)
    accept_failures: str = ""
    give_up: tuple[str, ...] = ()
    no_judge: bool = False

    def __post_init__(self) -> None:
        for setting in ("out", "home"):
            check_local(
                PurePath(getattr(self, setting) or ""), f"'{setting}' (--{setting})"
            )

    def as_dict(self) -> dict[str, Any]:
        """The form a suite file takes; what is left at its default is left out, but for seed and
        limit.
        """
        out: dict[str, Any] = {
            "tasks": list(self.tasks),
            "models": [spec.as_dict() for spec in self.models],
            "limit": self.limit,
            "seed": self.seed,
        }
        if self.roles:
            out["roles"] = {role: spec.as_dict() for role, spec in self.roles.items()}
        if self.overrides:
            out["overrides"] = dict(self.overrides)
        if self.dialect:
            out["dialect"] = dict(self.dialect)
        if self.tree:
            out["tree"] = dict(self.tree)
        if self.unsure:
            out["unsure"] = dict(self.unsure)
        for key in ("where", "until", "budget", "price", "plugins", "give_up"):
            if texts := getattr(self, key):
                out[key] = list(texts)
        names = (
            "name",
            "out",
            "format",
            "max_resident",
            "batch",
            "hardware",
            "num_fewshot",
            "shard",
        )
        for key in (*names, "accept_failures", "no_judge", "store_images"):
            value = getattr(self, key)
            if value != Configuration.__dataclass_fields__[key].default:
                out[key] = value
        return out


OLD_NAMES = {"undecided": "unsure"}
"""Settings that earlier versions called otherwise."""


def present_names(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings under the names that they have now, with a warning for each old name. where: what
    carries them, such as "The setting".
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


def as_list(value: Any) -> list[Any]:
    """One thing or several, as a list: a generator, a column of a data frame or an array is
    several.
    """
    one = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    return [value] if one else list(value)


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a call in Python as fields of a Configuration: numpy's numbers as Python's,
    paths as text, a text as a list of one.

    None is like a setting that is not given. Raises UnknownName, and ConfigurationError for a value
    of another kind.
    """
    known = [one for one in (*TEXTS, *KINDS) if one != "common"]
    out: dict[str, Any] = {}
    for key, value in present_names(given, "The setting").items():
        if key not in known:
            raise UnknownName("setting", key, known, known_names(key, known))
        if value is None:
            continue
        value = out[key] = _written(value)
        if key in TEXTS:
            out[key] = tuple(as_list(value))
        kind, words = KINDS.get(key) or (
            str,
            f"{TEXTS[key]} in quotes, or a list of them",
        )
        for one in out[key] if key in TEXTS else [value]:
            if not isinstance(one, kind) or (
                isinstance(one, bool) and kind is not bool
            ):
                raise ConfigurationError(
                    f"'{key}' must be {words}, not {kind_of(one)}."
                )
    return out


def _written(value: Any) -> Any:
    """A value as a file of settings would have it."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value
