"""One evaluation by names: what a command line, a suite file and `run.json` all say in the same
words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from evalwright.core.local_paths import check_local
from evalwright.core.secrets import masked_arguments

PromptFormat = Literal["auto", "chat", "text"]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, with the arguments of its backend and the label that boards show.

    common: names of the arguments that it has from all models of a file; it may refuse those
    (`common_arguments`). occurrence: which of several objects of that name it is, in an evaluation
    that was given objects; no part of a file.
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    common: tuple[str, ...] = field(default=(), compare=False)
    occurrence: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The form a suite file takes; what is secret is left out of it."""
        fields: dict[str, Any] = {"model": masked_arguments(self.model)}
        if self.arguments:
            fields["arguments"] = masked_arguments(self.arguments)
        if self.label:
            fields["label"] = self.label
        return fields


@dataclass(frozen=True, slots=True)
class Configuration:
    """One evaluation.

    tasks: names, patterns of names (`mmlu_*`) or paths. models: those under test, a run each.
    roles: other models by role, e.g. "judge". where: filters over samples' metadata
    ("domain=science", "language!=ko"). limit: samples per task, or below 1 a share of them, the
    first of the seed's random order; None takes all. name: of the run (or their common beginning).
    out: folder of run folders. home: folder of the store. format: how prompts are rendered.
    max_resident: heavy local models in memory at a time. replace: whether a run made otherwise may
    be replaced. resend_empty: send requests again to which every reply was empty before (and was
    paid). overrides: settings that override those of the tasks, nested or dotted ({"dataset.path":
    "mine.csv"}). dialect: how other frameworks' tasks are run (DIALECT:NAME): task_root, trust,
    scoring, and the like. num_fewshot: shots in place of the tasks' own number. until: stopping
    rules ("accuracy +-0.02", "A beats B"). budget: what may be spent ("5 USD", "2M tokens"). price:
    US dollars per million tokens read and written ("0.15/0.60", "openai/gpt-4o-mini=0.15/0.60").
    batch: ask the models under test through their providers' batch interfaces. tree: how the tasks'
    scores are averaged (`metrics.tree`), {} for the groups that tasks are asked for through.
    unsure: the scorer that reads again what the rules of tasks are unsure of ({"scorer":
    "judge-correct"}). shard: which part of the samples, "2/8" for the second of eight; "auto/8" in
    an array of jobs, "auto" in processes launched together (`evaluation.sharding`). store_images:
    whether pictures of the prompts' images are kept beside the record, for whoever looks at the
    run. plugins: TOML files with providers and prices. hardware: what a person calls the machine,
    for the record. accept_failures: how many samples of each task may stay without an answer or
    score, "2%" or "3"; give_up: ids of samples, and files of ids, that may besides
    (`runs.accepted_failures`). no_judge: leave out roles, and the scorers that ask a model.

    Raises ConfigurationError for an address such as s3://bucket in place of a folder.
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
        settings: dict[str, Any] = {
            "tasks": list(self.tasks),
            "models": [spec.as_dict() for spec in self.models],
            "limit": self.limit,
            "seed": self.seed,
        }
        if self.roles:
            settings["roles"] = {
                role: spec.as_dict() for role, spec in self.roles.items()
            }
        if self.overrides:
            settings["overrides"] = dict(self.overrides)
        if self.dialect:
            settings["dialect"] = dict(self.dialect)
        if self.tree:
            settings["tree"] = dict(self.tree)
        if self.unsure:
            settings["unsure"] = dict(self.unsure)
        for key in ("where", "until", "budget", "price", "plugins", "give_up"):
            if texts := getattr(self, key):
                settings[key] = list(texts)
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
            setting = getattr(self, key)
            if setting != Configuration.__dataclass_fields__[key].default:
                settings[key] = setting
        return settings
