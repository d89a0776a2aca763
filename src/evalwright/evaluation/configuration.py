"""One evaluation by names, in the words shared by the command line, suite files and `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, get_args

from evalwright.core.local_paths import check_local
from evalwright.core.secrets import (
    mask,
    masked_arguments,
    remember_within_address,
    without_login,
)
from evalwright.runs.model_facts import Fact

PromptFormat = Literal["auto", "chat", "text"]
FORMATS: tuple[PromptFormat, ...] = get_args(PromptFormat)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, with the arguments of its backend and the label that boards show.

    Args:
        model: the name, `PROVIDER/NAME[@REVISION]`.
        arguments: arguments of the backend, as with `-M` on the command line.
        label: what boards show in place of the name.
        common: names of the arguments that come from the settings for all models of a file; a
            backend may refuse those.
        occurrence: which of several objects of that name it is, if objects were passed in Python;
            never in a file.
        facts: what boards show of the model beside its scores, such as its size and licence.
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    common: tuple[str, ...] = field(default=(), compare=False)
    occurrence: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the form for a suite file, without secrets."""
        fields: dict[str, Any] = {"model": masked_arguments(self.model)}
        if self.arguments:
            fields["arguments"] = masked_arguments(self.arguments)
        if self.label:
            fields["label"] = self.label
        if self.facts:
            fields["facts"] = dict(self.facts)
        return fields


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A prompt in place of the tasks' own.

    Args:
        name: what runs and boards call it.
        file: a text file, as `prompt.file` of a task; "" where there is a text.
        text: a template, as `prompt.user` of a task.
        system: a template, as `prompt.system` of a task; "" keeps the task's own.
    """

    name: str
    file: str = ""
    text: str = ""
    system: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The form a suite file takes."""
        content = {"file": self.file} if self.file else {"text": self.text}
        system = {"system": self.system} if self.system else {}
        return {"name": self.name, **system, **content}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One evaluation: tasks, models and settings, as a suite file or the command line has them.

    Args:
        tasks: names, patterns of names (`mmlu_*`) or paths.
        models: models under test, a run each.
        prompts: prompts in place of the tasks' own; every model has a run with each.
        roles: other models by role, such as "judge".
        where: filters on samples' metadata ("domain=science", "language!=ko").
        limit: number of samples per task, or a share of them below 1; the first of the seed's
            random order. None takes all.
        seed: seeds the order of samples and everything else that is drawn.
        name: name of the run, or the prefix of the names of several.
        out: folder of run folders.
        home: folder of the store.
        format: how prompts are rendered: "auto", "chat" or "text".
        max_resident: large local models in memory at a time.
        replace: whether a run of that name with other settings may be replaced.
        resend_empty: whether to send requests again whose replies were all empty before, and were
            paid for.
        round: the round in which the models are asked, such as "2026-W49"; answers of other rounds
            are not used. It is added to the run's name.
        overrides: settings in place of the tasks' own, nested or dotted ({"dataset.path":
            "mine.csv"}).
        dialect: settings for tasks of other frameworks (DIALECT:NAME), such as `task_root`, `trust`
            and `scoring`.
        num_fewshot: number of worked examples in place of the tasks' own.
        tree: how scores are averaged over tasks; {} averages over the groups to which tasks belong.
        until: stopping rules ("accuracy +-0.02", "A beats B", "all pairs").
        budget: spending limits ("5 USD", "2M tokens").
        price: US dollars per million input and output tokens ("0.15/0.60",
            "openai/gpt-4o-mini=0.15/0.60").
        batch: whether to send requests to the models under test through their providers' batch
            interfaces.
        store_images: whether the images of prompts are kept beside the record.
        plugins: TOML files with providers and prices.
        hardware: your name for the machine, for the record.
        shard: which part of the samples to take: "2/8" for the second of eight, "auto/8" in an
            array of jobs, "auto" in processes launched together.
        panel: several judges for the scorers that ask one: their roles as `judges`, and `combine`
            and `needs`.
        unsure: the scorer that reads again what tasks' rules are unsure of ({"scorer":
            "judge-correct"}).
        accept_failures: how many samples of each task may stay without an answer or score: "2%" or
            "3".
        give_up: ids of samples, and files of ids, that may also stay without one.
        no_judge: whether to leave out roles, and the scorers that call a model.

    Raises:
        ConfigurationError: `out` or `home` is an address such as s3://bucket, not a folder.
    """

    tasks: tuple[str, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    prompts: tuple[PromptSpec, ...] = ()
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
    round: str = ""
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
    panel: Mapping[str, Any] = field(default_factory=dict)
    unsure: Mapping[str, Any] = field(default_factory=dict)
    accept_failures: str = ""
    give_up: tuple[str, ...] = ()
    no_judge: bool = False

    def __post_init__(self) -> None:
        for setting in ("out", "home"):
            check_local(
                PurePath(getattr(self, setting) or ""), f"'{setting}' (--{setting})"
            )

    def run_name(self, spec: ModelSpec) -> str:
        """The name of a model's run, as the configuration's own name gives it.

        Args:
            spec: one of the models.

        Returns:
            "" where the configuration has no name: a run is then named after its tasks.
        """
        from evalwright.runs.writer import slug

        if not self.name:
            return ""
        name = slug(f"{self.name}-{self.round}" if self.round else self.name)
        return name if len(self.models) == 1 else f"{name}-{model_file_name(spec)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the form for a suite file, without settings that have their default.

        Seed and limit are always included.
        """
        settings: dict[str, Any] = {
            "tasks": list(self.tasks),
            "models": [spec.as_dict() for spec in self.models],
            "limit": self.limit,
            "seed": self.seed,
        }
        if self.prompts:
            settings["prompts"] = [prompt.as_dict() for prompt in self.prompts]
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
        if self.panel:
            settings["panel"] = dict(self.panel)
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
            "round",
        )
        for key in (*names, "accept_failures", "no_judge", "store_images"):
            setting = getattr(self, key)
            if setting != Configuration.__dataclass_fields__[key].default:
                settings[key] = setting
        return settings


def model_file_name(spec: ModelSpec) -> str:
    """A model's label or name in the names of files and folders, without its secrets."""
    from evalwright.runs.writer import slug

    remember_within_address(spec.model)
    return slug(spec.label or mask(without_login(spec.model)))
