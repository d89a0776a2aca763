"""Before anything is asked: what a configuration means, checked to the last row, as one plan per
run.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    OutOfReach,
    RunError,
    ScoringError,
    TaskError,
    UsageError,
    closest,
)
from evalwright.core.requests import Ability
from evalwright.core.secrets import mask, remember_within_address, without_login
from evalwright.core.tasks import Scorer, Task
from evalwright.core.text import printable
from evalwright.evaluation.common_arguments import without_refused
from evalwright.evaluation.configuration import Configuration, ModelSpec, check_limit
from evalwright.evaluation.effects import check_effects
from evalwright.evaluation.objects import Objects, written_form
from evalwright.evaluation.rules import (
    ModelRule,
    UnitOrder,
    check_metrics,
    resolve_rules,
    unit_order,
)
from evalwright.evaluation.sharding import Shard, check_shard, read_shard, share_of
from evalwright.models.answers import RECORDED, RecordedAnswers
from evalwright.models.base import Model, fingerprint_of
from evalwright.models.functions import FunctionModel
from evalwright.models.oracle import OracleModel
from evalwright.models.registry import open_model
from evalwright.runs.accepted_failures import is_id_file, read_given_up, read_limit
from evalwright.runs.grouping import check_tree
from evalwright.runs.impossible import has_control
from evalwright.runs.reader import open_run
from evalwright.runs.writer import PLAN_FILE, RUN_FILE, check_run_name, read_plan, slug
from evalwright.scorers.registry import JUDGE
from evalwright.strategies.generate import TARGET
from evalwright.strategies.likelihood import Given
from evalwright.strategies.simulate import Simulated
from evalwright.tasks.data_files import answers_beside, as_data_file
from evalwright.tasks.dialects import check_used, dialect_of
from evalwright.tasks.filtering import filtered, read_conditions
from evalwright.tasks.loading import load_tasks, names_like
from evalwright.tasks.scoring import decided_by, with_votes, without_judges
from evalwright.tasks.unreachable import Unreachable

MAX_IDS_COMPARED = 20_000
"""Ids that a mistyped one is compared with."""


@dataclass(slots=True)
class Plan:
    """One run before it is asked: everything is resolved and checked, and nothing has been
    spent.
    """

    id: str
    folder: Path
    model: Model
    spec: ModelSpec
    roles: Mapping[str, Model]
    tasks: Sequence[Task]
    orders: Sequence[UnitOrder]
    identity: str
    configuration: Mapping[str, Any]
    rules: tuple[ModelRule, ...] = ()
    full_run: str = ""
    """The identity of the same run without rules."""
    shard: Mapping[str, Any] = field(default_factory=dict)
    """Which part of which run it is, for its record; empty for a whole run."""
    left_out: str = ""
    """Sentences about the columns of data files, tasks of which the filter keeps nothing, and
    common arguments that models refuse.
    """
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def follows_rules(self) -> bool:
        """Whether a stopping rule is about this model."""
        return self.identity != self.full_run

    @property
    def total(self) -> int:
        """Answers wanted: samples times draws, over all tasks."""
        return sum(
            len(order.items) * task.draws
            for task, order in zip(self.tasks, self.orders, strict=True)
        )

    def units(self) -> Iterator[tuple[int, int, int, int]]:
        """(place in the record, task number, sample index, draw) in the order of asking."""
        for number, order in enumerate(self.orders):
            yield from self.stretch(number, 0, order.n_units)

    def stretch(
        self, number: int, start: int, end: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """As `units`, for the units of one task from `start` to before `end`."""
        offset = sum(len(task.samples) * task.draws for task in self.tasks[:number])
        task = self.tasks[number]
        order = self.orders[number]
        for index in order.items[order.starts[start] : order.starts[end]]:
            for draw in range(task.draws):
                yield offset + index * task.draws + draw, number, index, draw


def make_plans(configuration: Configuration, objects: Objects) -> list[Plan]:
    """Resolve and check everything, for every model, before anything is asked.

    Raises UsageError.
    """
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to evaluate: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    objects.providers(configuration)
    read_limit(str(configuration.accept_failures))
    typed_ids = (
        []
        if configuration.where
        else [one for one in configuration.give_up if not is_id_file(one)]
    )
    models, refusals = without_refused(configuration.models, open_model)
    configuration = replace(
        configuration,
        models=models,
        accept_failures=str(configuration.accept_failures),
        give_up=read_given_up(configuration.give_up),
    )
    if configuration.no_judge:
        configuration = replace(configuration, roles={}, unsure={})
    if not configuration.models:
        configuration = _with_recorded(configuration, objects)
    if not configuration.models:
        raise ConfigurationError(
            "No models given. Name at least one with --model, for example demo/small."
        )
    check_limit(configuration.limit)
    check_run_name(configuration.name)
    shard = read_shard(configuration.shard)
    configuration = replace(configuration, shard=str(shard or ""))
    rules = resolve_rules(configuration.until, configuration.models)
    roles = {
        role: objects.open(spec, home=configuration.home, role=True)
        for role, spec in configuration.roles.items()
    }
    orders: dict[tuple[str, str], UnitOrder] = {}
    plans = [
        _make_plan(configuration, spec, roles, objects, rules, orders)
        for spec in configuration.models
    ]
    found = [task for plan in plans for task in plan.tasks]
    _check_given_up(typed_ids, found)
    check_effects(
        configuration, [plan.model for plan in plans], roles, found, objects.tasks
    )
    if shard:
        check_shard(
            shard,
            configuration,
            [*(plan.model for plan in plans), *roles.values()],
            found,
        )
        for plan in plans:
            plan.shard = {**plan.shard, "runs": [one.shard["run"] for one in plans]}
    if rules:
        plans = [
            _with_rules(number, plans, configuration) for number in range(len(plans))
        ]
    if configuration.until or configuration.budget:
        _check_in_step(plans)
    seen: dict[Path, Plan] = {}
    for plan in plans:
        if plan.folder in seen:
            raise ConfigurationError(
                f"Two of the models would write the same run '{plan.id}': leave one"
                " out, or give them a `label` each in a file (--config)."
            )
        seen[plan.folder] = plan
    for plan in plans:
        _check_folder(plan, configuration.replace)
    plans[0].left_out = " ".join(filter(None, [*refusals, plans[0].left_out]))
    return plans


def _check_given_up(ids: Sequence[str], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a sample that is given up and is in no task. ids: those named
    one by one, none of a file's.
    """
    unknown = dict.fromkeys(ids)
    known: dict[str, None] = {}
    for task in tasks if unknown else ():
        for sample in task.samples:
            unknown.pop(sample.id, None)
            if not unknown:
                return
            if len(known) < MAX_IDS_COMPARED:
                known[sample.id] = None
    if unknown:
        name = next(iter(unknown))
        near = closest(name, known)
        hint = (
            f"Did you mean '{near[0]}'?"
            if near
            else "`evalwright tasks preview` shows samples with their ids."
        )
        raise ConfigurationError(
            f"There is no sample '{printable(name)}' to give up (--give-up). {hint}"
        )


def _with_recorded(configuration: Configuration, objects: Objects) -> Configuration:
    """The configuration with the author of given answers as its model, where the data of all tasks
    hold the answers.
    """
    tasks = load_all(configuration, False, objects)
    if not all(isinstance(task.strategy, Given) for task in tasks):
        return configuration
    name = "+".join(task.name for task in tasks)
    return replace(configuration, models=(ModelSpec(f"answers/{name}"),))


def _make_plan(
    configuration: Configuration,
    spec: ModelSpec,
    roles: Mapping[str, Model],
    objects: Objects,
    rules: tuple[ModelRule, ...],
    orders: dict[tuple[str, str], UnitOrder],
) -> Plan:
    model = objects.open(spec, batch=configuration.batch, home=configuration.home)
    model.check()
    if isinstance(model, FunctionModel):
        configuration = replace(
            configuration, tasks=tuple(map(written_form, configuration.tasks))
        )
    for role, other in roles.items():
        if isinstance(other, OracleModel):
            raise ConfigurationError(
                f"'{other.name}' is a simulation, and cannot be the model for the role"
                f" '{role}'."
            )
        other.check()
    tasks, left_out = _chosen(
        configuration, load_all(configuration, "chat" in model.abilities, objects)
    )
    if configuration.no_judge:
        tasks = [without_judges(task) for task in tasks]
    for task in tasks:
        _check_abilities(task, model, roles)
    check_metrics(rules, tasks)
    check_tree(configuration.as_dict(), [task.name for task in tasks])
    identity = fingerprint_of(
        {
            "model": model.fingerprint,
            "roles": {role: other.fingerprint for role, other in roles.items()},
            "tasks": [
                [task.name, task.definition, task.samples.content_hash]
                for task in tasks
            ],
            "limit": configuration.limit,
            "seed": configuration.seed,
        }
    )
    for task in tasks:
        key = task.name, task.samples.content_hash
        orders[key] = orders.get(key) or _unit_order(
            task, configuration, bool(rules or configuration.shard)
        )
    if isinstance(model, OracleModel):
        # After all checks: the tasks are asked as they are, and only who answers is another.
        tasks = [
            (
                task
                if isinstance(task.strategy, Unreachable)
                else replace(task, strategy=Simulated(task, model.share, model.seed))
            )
            for task in tasks
        ]
    plan = Plan(
        id="",
        folder=Path(),
        model=model,
        spec=spec,
        roles=roles,
        tasks=tasks,
        orders=[orders[task.name, task.samples.content_hash] for task in tasks],
        identity=identity,
        configuration=configuration.as_dict(),
        rules=rules,
        full_run=identity,
        left_out=left_out,
    )
    if shard := read_shard(configuration.shard):
        return _named(
            replace(plan, orders=share_of(shard, tasks, plan.orders)),
            configuration,
            spec,
            shard,
            plan.total,
        )
    return plan if rules else _named(plan, configuration, spec)


def _with_rules(
    number: int, plans: Sequence[Plan], configuration: Configuration
) -> Plan:
    """A plan whose identity has its rules in it, with the models that they compare: they say when
    it ends.
    """
    plan = plans[number]
    rules = [
        [
            *each.rule.as_dict().items(),
            [plans[model].model.fingerprint for model in each.pair or ()],
        ]
        for each in (
            replace(one, rule=replace(one.rule, text="", a="", b=""))
            for one in plan.rules
        )
        if each.concerns(number)
    ]
    identity = (
        fingerprint_of({"run": plan.full_run, "until": rules})
        if rules
        else plan.full_run
    )
    return _named(replace(plan, identity=identity), configuration, plan.spec)


def _check_in_step(plans: Sequence[Plan]) -> None:
    """Models that are asked in step must be asked the same."""
    first_plan = plans[0]
    for plan in plans[1:]:
        for number, task in enumerate(plan.tasks):
            is_same_data = (
                task.samples.content_hash
                == first_plan.tasks[number].samples.content_hash
            )
            # Shards have their part of the order, each model a copy of it.
            if (
                not is_same_data
                or plan.orders[number].items != first_plan.orders[number].items
            ):
                raise ConfigurationError(
                    f"The task '{task.name}' has other samples for '{plan.model.name}'"
                    f" than for '{first_plan.model.name}', so stopping rules and"
                    " budgets cannot cover both. Run them separately, or with the same"
                    " --format."
                )


def _named(
    plan: Plan,
    configuration: Configuration,
    spec: ModelSpec,
    shard: Shard | None = None,
    answers: int = 0,
) -> Plan:
    """The plan with its name and settings; those of a shard name the whole run, of so many
    answers.
    """
    run_id = _run_id(configuration, spec, plan.identity)
    settings = replace(configuration, models=(spec,), name=run_id).as_dict()
    if shard:
        whole = {"run": run_id, "identity": plan.identity, "answers": answers}
        own = fingerprint_of({"run": plan.identity, "shard": str(shard)})
        part = {
            "number": shard.number,
            "of": shard.of,
            **whole,
            "name": configuration.name or run_id,
        }
        plan = replace(plan, shard=part, identity=own, full_run=own)
        run_id += f".shard-{shard.number}-of-{shard.of}"
    return replace(
        plan, id=run_id, folder=Path(configuration.out) / run_id, configuration=settings
    )


def _unit_order(task: Task, configuration: Configuration, for_rules: bool) -> UnitOrder:
    chosen = sample_order(
        len(task.samples), configuration.seed, configuration.limit, task.order == "file"
    )
    if for_rules:
        return unit_order(task, chosen, configuration.seed)
    return UnitOrder(chosen, range(len(chosen) + 1), clustered=False)


def load_all(configuration: Configuration, chat: bool, objects: Objects) -> list[Task]:
    """The tasks as a model gets them. chat: whether it takes messages. Raises UsageError."""
    tasks: list[Task] = []
    used: set[str] = set()
    # A model under test writes new answers to the questions of a data file, even where the file has
    # some.
    new = any(not spec.model.startswith(RECORDED) for spec in configuration.models)
    for name in configuration.tasks:
        if name in objects.tasks:
            for key in ("overrides", "num_fewshot"):
                if getattr(configuration, key):
                    raise ConfigurationError(
                        f"The task '{name}' is given as an object, so its settings"
                        f" cannot be changed from outside: leave out {key}."
                    )
            tasks.append(objects.tasks[name])
            continue
        several = names_like(name, configuration.dialect)
        for one in several:
            loaded = load_tasks(
                one,
                prompt_format=configuration.format,
                chat=chat,
                overrides={
                    **(
                        {"answer.mode": "generate"} if new and as_data_file(one) else {}
                    ),
                    **configuration.overrides,
                }
                or None,
                dialect=dict(configuration.dialect),
                num_fewshot=configuration.num_fewshot,
                limit=None if configuration.where else configuration.limit,
                used=used,
                n_names=max(len(configuration.tasks), len(several)),
            )
            # A pattern fits groups and their members, and two tags the same task; each task is
            # evaluated once.
            there = {task.name: task for task in tasks}
            tasks.extend(
                task
                for task in loaded
                if not (
                    (before := there.get(task.name))
                    and (several != [name] or _same(task, before))
                )
            )
    _check_some_have_data(tasks)
    check_used(configuration.dialect, tasks, used)
    if configuration.unsure:
        tasks = [
            (
                decided_by(task, configuration.unsure)
                if dialect_of(task.definition) is None
                else task
            )
            for task in tasks
        ]
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"The task '{name}' is named twice.")
    _check_names(tasks)
    return [with_votes(task) for task in tasks]


def _check_some_have_data(tasks: Sequence[Task]) -> None:
    """Raise OutOfReach where the data of no task can be fetched: a task fails alone only beside
    others.
    """
    reasons = [
        str(task.metadata["no data"]) for task in tasks if "no data" in task.metadata
    ]
    if reasons and len(reasons) == len(tasks):
        more = f" So it is with all {len(reasons):,} tasks." if len(reasons) > 1 else ""
        raise OutOfReach(f"{reasons[0]}{more}")


def _check_names(tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a name that no record may have, before a request is sent for
    it.
    """
    for task in tasks:
        labels = [metric.label for metric in task.metrics]
        for name in (task.name, *labels, *(scorer.name for scorer in task.scorers)):
            if has_control(name):
                raise ConfigurationError(
                    f"'{printable(name)}', a name in the task '{printable(task.name)}',"
                    " has control characters in it: give it another."
                )


def _same(task: Task, other: Task) -> bool:
    """Whether two names of another framework stand for one task, whatever sets they are named
    through.
    """
    own, before = (
        {**one.definition, "set": "", "left_out": []} for one in (task, other)
    )
    return dialect_of(task.definition) is not None and own == before


def _chosen(
    configuration: Configuration, tasks: Sequence[Task]
) -> tuple[Sequence[Task], str]:
    """The tasks with the samples that the filter keeps, and what to say of columns that were found
    and tasks that are left out.
    """
    found = filtered(tasks, read_conditions(configuration.where))
    named_answers = configuration.overrides.get("columns.answer", "")
    said = [
        f"Columns of '{task.name}': {task.metadata['columns']}. "
        f"{_describe_answers(task, named_answers)}".rstrip()
        for task in tasks
        if "columns" in task.metadata
    ]
    if found.left_out:
        names = ", ".join(found.left_out)
        said.append(
            f"Left out, because no sample matches {' and '.join(configuration.where)}:"
            f" {names}."
        )
    said += [
        str(task.metadata["images_not_sent"])
        for task in tasks
        if "images_not_sent" in task.metadata
    ]
    return found.tasks, " ".join(said)


def _describe_answers(task: Task, named_answers: str) -> str:
    """Whose answers to the questions of a data file are scored: those in the file, or new ones of
    the model.

    named_answers: the column that the person named as that of the answers, "" for none.
    """
    if isinstance(task.strategy, Given):
        return (
            f"Scored are the answers in the file (column '{task.strategy.column}'):"
            " nothing is generated. To score a model's own answers to the questions,"
            " name it with --model."
        )
    columns = answers_beside(task.definition, named_answers)
    if columns.expected:
        return (
            "New answers are generated: those in the file (column"
            f" '{columns.expected}') are what is expected."
        )
    if columns.unused:
        return (
            f"New answers are generated: those in the file (column '{columns.unused}')"
            " are not used."
        )
    return ""


def _what_is_judged(task: Task) -> str:
    """For a data file with answers: that a judge reads these, so that nobody looks for a model to
    name.
    """
    if "columns" in task.metadata and isinstance(task.strategy, Given):
        return (
            f" It reads the answers in the file (column '{task.strategy.column}'):"
            " nothing else is generated."
        )
    return ""


def _check_abilities(task: Task, model: Model, roles: Mapping[str, Model]) -> None:
    if isinstance(task.strategy, Given) != isinstance(model, RecordedAnswers):
        given = (
            "its data hold the answers"
            if isinstance(task.strategy, Given)
            else "its data have no answers"
        )
        raise ConfigurationError(
            f"The task '{task.name}' cannot be used with '{model.name}': {given}. Leave"
            " out --model, or run it by itself."
        )
    missing = task.strategy.needs - model.abilities
    if missing:
        text = (
            " With --format text it is asked without chat."
            if task.definition.get("dialect") and missing == {"chat"}
            else ""
        )
        if without := getattr(task.strategy, "without", None):
            text = f"{text} {without(missing)}".rstrip()
        raise AbilityError(
            f"The task '{task.name}' needs a model that can do:"
            f" {', '.join(sorted(missing))}; '{model.name}' can do:"
            f" {', '.join(sorted(model.abilities))}.{text}{_without_images(task)}"
        )
    for role, able in task.strategy_roles.items():
        if role not in roles and role != TARGET:
            raise ConfigurationError(
                f"The strategy of the task '{task.name}' uses a model in the role"
                f" '{role}': name it with --role {role}=provider/name."
            )
        _check_able("strategy of the task", task.name, able, roles.get(role, model))
    _check_carried(task, model)
    _check_samples(task)
    for scorer in task.scorers:
        for role in scorer.roles:
            if role not in roles and role != TARGET:
                proposed = scorer.options.get("proposed", {}).get(role)
                raise ConfigurationError(
                    f"The scorer '{scorer.name}' of the task '{task.name}' uses a model"
                    f" in the role '{role}': "
                    "name it with --role"
                    f" {role}={proposed or 'provider/name'}{', or --judge' if role == JUDGE else ''}"
                    f"{', which the task proposes and only you decide' if proposed else ''}.{_what_is_judged(task)}"
                )
            check_able(scorer, roles.get(role, model))


def _check_samples(task: Task) -> None:
    """Raise TaskError for a sample that a scorer could not score, as one whose instruction is not
    known.
    """
    for scorer in task.scorers:
        if scorer.refuse is None:
            continue
        for sample in task.samples:
            try:
                scorer.refuse(sample)
            except (UsageError, ScoringError) as error:
                raise TaskError(
                    f"The task '{task.name}', sample '{sample.id}': {error}"
                ) from None


def _check_carried(task: Task, model: Model) -> None:
    """Raise ConfigurationError where the model does not take what the task's first request asks of
    it.
    """
    sampling, render = (
        getattr(task.strategy, name, None) for name in ("sampling", "render")
    )
    if sampling is None or render is None or not len(task.samples):
        return
    why = model.refuses(sampling.request(render(task.samples[0]), 0))
    if why is not None:
        raise ConfigurationError(
            f"The task '{task.name}' cannot be run: {why}{_without_images(task)}"
        )


def _without_images(task: Task) -> str:
    """For a data file whose images are sent because of a column's name: how they are left out, as
    the end of a message.
    """
    prompt = task.definition.get("prompt") or {}
    if "columns" not in task.metadata or not prompt.get("images"):
        return ""
    return " `--column images=` leaves out the images of its data file."


def check_able(scorer: Scorer, model: Model) -> None:
    """Raise AbilityError where a model that a scorer asks can do nothing that the scorer could ask
    of it.
    """
    _check_able("scorer", scorer.name, scorer.able, model)


def _check_able(kind: str, name: str, able: frozenset[Ability], model: Model) -> None:
    if able and not able & model.abilities:
        raise AbilityError(
            f"The {kind} '{name}' needs a model that can do:"
            f" {' or '.join(sorted(able))}; '{model.name}' can do:"
            f" {', '.join(sorted(model.abilities)) or 'nothing'}."
        )


def sample_order(
    n: int, seed: int, limit: float | None, as_filed: bool = False
) -> array[int]:
    """A random order of the samples, fixed by the seed alone, or that of the file; a limit takes
    its beginning.

    limit: samples, or below 1 a share of them, rounded up.
    """
    order = array("q", range(n))
    if not as_filed:
        random.Random(seed).shuffle(order)
    if limit is None:
        return order
    return order[: math.ceil(n * limit) if limit < 1 else int(limit)]


def _run_id(configuration: Configuration, spec: ModelSpec, identity: str) -> str:
    remember_within_address(spec.model)
    model = slug(spec.label or mask(without_login(spec.model)))
    if configuration.name:
        return (
            slug(configuration.name)
            if len(configuration.models) == 1
            else f"{slug(configuration.name)}-{model}"
        )
    names = [
        (
            Path(name).stem
            if name.endswith((".yaml", ".yml")) or as_data_file(name)
            else name
        )
        for name in configuration.tasks
    ]
    tasks = slug("+".join(names))
    shots = (
        ""
        if configuration.num_fewshot is None
        else f"-{configuration.num_fewshot}-shot"
    )
    return f"{tasks[:60]}{shots}--{model[:60]}--{identity[:8]}"


def _check_folder(plan: Plan, may_replace: bool) -> None:
    if may_replace:
        return
    if (plan.folder / RUN_FILE).exists():
        try:
            data = open_run(plan.folder).data
        except RunError as error:
            raise ConfigurationError(
                f"{error} Choose another --name, or replace it with --replace."
            ) from error
        _check_same(plan, data.get("identity"), data.get("stopping"), "was made")
    elif (plan.folder / PLAN_FILE).exists():
        # Begun and interrupted. A rule that could be changed after some answers were seen would be
        # no rule.
        begun = read_plan(plan.folder)
        _check_same(plan, begun.get("identity"), begun, "was begun")


def _check_same(plan: Plan, identity: Any, stopping: Any, done: str) -> None:
    """A run may be replaced by itself, and one with stopping rules by the whole run that it was the
    beginning of.
    """
    known = {
        identity,
        stopping.get("full_run") if isinstance(stopping, Mapping) else None,
    }
    if plan.identity not in known:
        model = plan.model
        unknown = (
            ""
            if model.is_known
            else (
                f" What answers behind '{model.name}' is known by {model.naming} alone."
            )
        )
        raise ConfigurationError(
            f"The run '{plan.id}' in '{plan.folder.parent}' {done} from another"
            " configuration (model, judge or another role, task, data, seed, limit or"
            f" stopping rule).{unknown} Choose another --name, or replace it with"
            " --replace."
        )
