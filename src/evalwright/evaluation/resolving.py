"""Resolves the names in the settings: opens, loads and checks tasks, models and roles.

Everything is checked down to the last row, before a request is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.evaluation.common_arguments import without_refused
from evalwright.evaluation.configuration import Configuration, ModelSpec, PromptSpec
from evalwright.evaluation.effects import check_effects, check_sandbox, check_tree
from evalwright.evaluation.opening import (
    check_roles,
    open_roles,
    open_under_test,
    place_scorers,
)
from evalwright.evaluation.prompts import with_prompt
from evalwright.evaluation.rules import (
    ModelRule,
    UnitOrder,
    check_metrics,
    resolve_rules,
)
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.sharding import Shard, check_shard, check_worker, read_shard
from evalwright.evaluation.task_checks import check_task
from evalwright.evaluation.task_choice import order_units, task_choice
from evalwright.models.functions import FunctionModel
from evalwright.models.local.cluster import Cluster
from evalwright.models.model_interface import Model, fingerprint_of
from evalwright.models.oracle import OracleModel
from evalwright.models.registry import open_model
from evalwright.runs.accepted_failures import is_id_file, read_given_up
from evalwright.runs.buckets import Bucket, BucketAddress, parse_bucket_address
from evalwright.strategies.likelihood import RecordedColumn
from evalwright.strategies.simulate import Simulated
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.names import is_name
from evalwright.tasks.unreachable import Unreachable

MAX_COMPARED_IDS = 20_000
"""Most ids with which a mistyped one is compared."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model under test with its tasks, opened and checked; its run has no name yet.

    prompt: what the tasks have in place of their own prompt; None for that.
    configuration: with the tasks' names as this model gets them. identity: of the run as a whole,
    without rules or shards.
    """

    spec: ModelSpec
    model: Model
    prompt: PromptSpec | None
    configuration: Configuration
    tasks: tuple[Task, ...]
    orders: tuple[UnitOrder, ...]
    identity: str
    remarks: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the names in the settings mean.

    configuration: complete, with what follows from the settings. candidates: the models under test.
    roles: the models beside them. home: the folder of the store. shard: which part of the samples
    is asked; None for all. remarks: sentences to show before the first request. worker: whether
    other processes make the runs together with this one. push: where finished runs are copied to.
    """

    configuration: Configuration
    candidates: tuple[Candidate, ...]
    roles: Mapping[str, Model]
    home: Path
    rules: tuple[ModelRule, ...]
    shard: Shard | None
    remarks: tuple[str, ...]
    worker: bool = False
    push: BucketAddress | None = None


def resolve(settings: Settings, cluster: Cluster | None = None) -> Resolved:
    """Open the models, load the tasks, and check them against each other and all settings.

    Args:
        settings: the settings.
        cluster: where local models have their replicas, for settings with `on`.

    Raises:
        UsageError: the evaluation cannot be carried out.
    """
    typed_ids = _typed_ids(settings.configuration)
    settings, refusals = _complete(settings)
    configuration = settings.configuration
    shard = read_shard(configuration.shard)
    settings = settings.having(shard=str(shard or ""))
    rules = resolve_rules(
        configuration.until, configuration.models, configuration.prompts
    )
    home = home_folder(configuration.home)
    roles = open_roles(configuration.roles, settings.models, home=home, cluster=cluster)
    orders: dict[tuple[str, str], UnitOrder] = {}
    candidates = [
        candidate
        for spec in configuration.models
        for candidate in _resolve_model(
            settings, spec, roles, rules, orders, home, cluster
        )
    ]
    tasks = [task for candidate in candidates for task in candidate.tasks]
    _check_given_up(typed_ids, tasks)
    models = [candidate.model for candidate in candidates]
    _check_together(settings, models, roles, tasks, rules, shard, home)
    return Resolved(
        worker=settings.worker,
        push=_bucket_folder(settings.push),
        configuration=settings.configuration,
        candidates=tuple(candidates),
        roles=roles,
        home=home,
        rules=rules,
        shard=shard,
        remarks=tuple(_remarks(refusals, candidates)),
    )


def _check_together(
    settings: Settings,
    models: Sequence[Model],
    roles: Mapping[str, Model],
    tasks: Sequence[Task],
    rules: Sequence[ModelRule],
    shard: Shard | None,
    home: Path,
) -> None:
    """Raise UsageError if models, tasks and settings do not fit each other, or lack an effect."""
    configuration = settings.configuration
    check_effects(
        models,
        roles,
        tasks,
        max_resident=configuration.max_resident,
        prompt_format=configuration.format,
        objects=settings.tasks,
    )
    check_sandbox(
        settings.sandbox, [scorer for task in tasks for scorer in task.scorers]
    )
    all_models = [*models, *roles.values()]
    if shard:
        check_shard(
            shard,
            all_models,
            tasks,
            has_rules=bool(rules),
            has_budget=bool(configuration.budget),
            home=home,
        )
    if settings.worker:
        check_worker(
            all_models,
            shard=str(shard or ""),
            has_rules=bool(rules),
            batch=configuration.batch,
            resends=configuration.resend_empty,
        )


def _bucket_folder(address: str) -> BucketAddress | None:
    """Return the folder of a bucket; raise UsageError if it cannot be used. None for ""."""
    if not address:
        return None
    folder = parse_bucket_address(address, "FOLDER")
    Bucket(folder.bucket)  # raises now rather than after the work
    return folder


def _typed_ids(configuration: Configuration) -> list[str]:
    """Return the ids of samples to give up; none under a filter, which may exclude them."""
    if configuration.where:
        return []
    return [
        id_or_file for id_or_file in configuration.give_up if not is_id_file(id_or_file)
    ]


def _complete(settings: Settings) -> tuple[Settings, list[str]]:
    """Fill in what follows from the settings: arguments of each model, files' ids, an author.

    Returns:
        The settings, and a sentence for each argument that is left out.
    """
    configuration = settings.configuration
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to evaluate: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    models, refusals = without_refused(configuration.models, open_model)
    settings = settings.having(
        models=models, give_up=read_given_up(configuration.give_up)
    )
    if configuration.no_judge:
        settings = settings.having(roles={}, panel={}, unsure={})
    if not models:
        settings = settings.having(models=_recorded_models(settings))
    return settings, refusals


def _recorded_models(settings: Settings) -> tuple[ModelSpec, ...]:
    """Return the author of the answers that the data of all tasks hold.

    Raises:
        ConfigurationError: not all tasks hold answers.
    """
    tasks = task_choice(settings).load(chat=False)
    if not all(isinstance(task.strategy, RecordedColumn) for task in tasks):
        raise ConfigurationError(
            "No models given. Name at least one with --model, for example demo/small."
        )
    name = "+".join(task.name for task in tasks)
    return (ModelSpec(f"answers/{name}"),)


def _resolve_model(
    settings: Settings,
    spec: ModelSpec,
    roles: Mapping[str, Model],
    rules: tuple[ModelRule, ...],
    orders: dict[tuple[str, str], UnitOrder],
    home: Path,
    cluster: Cluster | None,
) -> Iterator[Candidate]:
    """One model under test, with each prompt, with the tasks as it gets them, checked.

    `orders` has the order of a task by its name and content; models with the same samples share
    one.
    """
    configuration = settings.configuration
    model = open_under_test(
        spec,
        settings.models,
        home=home,
        batch=configuration.batch,
        cluster=cluster,
    )
    model.check()
    if isinstance(model, FunctionModel):
        settings = settings.having(tasks=tuple(map(_written_form, configuration.tasks)))
        configuration = settings.configuration
    check_roles(roles)
    for prompt in configuration.prompts or (None,):
        tasks, remarks = _select_tasks(settings, prompt, model)
        yield _candidate(
            settings, spec, model, prompt, tasks, remarks, roles, rules, orders, cluster
        )


def _select_tasks(
    settings: Settings, prompt: PromptSpec | None, model: Model
) -> tuple[Sequence[Task], str]:
    """The tasks for a model, with a prompt in place of their own, and what to say of them."""
    if prompt is not None:
        configuration = with_prompt(settings.configuration, prompt)
        settings = settings.having(overrides=configuration.overrides)
    return task_choice(settings).select(chat="chat" in model.abilities)


def _candidate(
    settings: Settings,
    spec: ModelSpec,
    model: Model,
    prompt: PromptSpec | None,
    tasks: Sequence[Task],
    remarks: str,
    roles: Mapping[str, Model],
    rules: tuple[ModelRule, ...],
    orders: dict[tuple[str, str], UnitOrder],
    cluster: Cluster | None,
) -> Candidate:
    """A model with its tasks, checked; the arguments are those of `_resolve_model`."""
    configuration = settings.configuration
    for task in tasks:
        check_task(task, model, roles)
    check_metrics(rules, tasks)
    check_tree(configuration.tree, tasks)
    identity = run_identity(
        model.fingerprint,
        {role: judge.fingerprint for role, judge in roles.items()},
        tasks,
        configuration.limit,
        configuration.seed,
        configuration.round,
    )
    for task in tasks:
        key = task.name, task.samples.content_hash
        if key not in orders:
            orders[key] = order_units(
                task,
                configuration.seed,
                configuration.limit,
                whole_units=bool(rules or configuration.shard),
            )
    return Candidate(
        spec=spec,
        model=model,
        prompt=prompt,
        configuration=configuration,
        tasks=tuple(place_scorers(task, cluster) for task in _simulated(tasks, model)),
        orders=tuple(orders[task.name, task.samples.content_hash] for task in tasks),
        identity=identity,
        remarks=remarks,
    )


def _written_form(task: str) -> str:
    """Return the generated form of a task, for a model that cannot score options.

    It is "kmmlu-generate" for "kmmlu", if there is one.
    """
    form = f"{task}-generate"
    is_listed = is_name(task) and form in TaskIndex().names()
    return form if is_listed else task


def _simulated(tasks: Sequence[Task], model: Model) -> Sequence[Task]:
    """Return the tasks, answered by an oracle if the model is one.

    This comes after all checks: the tasks are sent as they are, only the answers come from
    elsewhere.
    """
    if not isinstance(model, OracleModel):
        return tasks
    return [
        (
            task
            if isinstance(task.strategy, Unreachable)
            else replace(task, strategy=Simulated(task, model.share, model.seed))
        )
        for task in tasks
    ]


def run_identity(
    model_fingerprint: str,
    role_fingerprints: Mapping[str, str],
    tasks: Sequence[Task],
    limit: float | None,
    seed: int,
    asked_in: str = "",
) -> str:
    """Compute a digest of all that decides the numbers of a run."""
    asked = {"round": asked_in} if asked_in else {}
    return fingerprint_of(
        {
            **asked,
            "model": model_fingerprint,
            "roles": dict(role_fingerprints),
            "tasks": [
                [task.name, task.definition, task.samples.content_hash]
                for task in tasks
            ],
            "limit": limit,
            "seed": seed,
        }
    )


def _remarks(refusals: Sequence[str], candidates: Sequence[Candidate]) -> Iterator[str]:
    """Yield what to say before the first request.

    It is about arguments, about data, about replicas, and about models whose identity is unknown.
    """
    about_data = " ".join(filter(None, [*refusals, candidates[0].remarks]))
    if about_data:
        yield about_data
    by_name = {candidate.model.name: candidate.model for candidate in candidates}
    for model in by_name.values():
        if model.remark:
            yield model.remark
        if not model.is_known:
            yield (
                f"It cannot be known what answers behind '{model.name}', so its"
                " responses are not shared with other runs. To share them, give what"
                f" answers a name: {model.naming}."
            )


def _check_given_up(ids: Sequence[str], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a given-up sample that is in no task."""
    unknown = dict.fromkeys(ids)
    compared: dict[str, None] = {}
    for task in tasks if unknown else ():
        for sample in task.samples:
            unknown.pop(sample.id, None)
            if not unknown:
                return
            if len(compared) < MAX_COMPARED_IDS:
                compared[sample.id] = None
    if unknown:
        name = next(iter(unknown))
        near = closest(name, compared)
        hint = (
            f"Did you mean '{near[0]}'?"
            if near
            else "`evalwright tasks preview` shows samples with their ids."
        )
        raise ConfigurationError(
            f"There is no sample '{printable(name)}' to give up (--give-up). {hint}"
        )
