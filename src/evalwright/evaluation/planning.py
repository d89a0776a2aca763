"""From resolved names to a plan: the runs with their names, parts, rules and budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.fingerprints import is_unknown_fingerprint
from evalwright.core.tasks import Task
from evalwright.evaluation.budgets import BudgetTerms, price_models, read_budget
from evalwright.evaluation.changed_settings import describe_changes
from evalwright.evaluation.configuration import (
    Configuration,
    ModelSpec,
    model_file_name,
)
from evalwright.evaluation.prompts import named_after, prompt_record
from evalwright.evaluation.resolving import Candidate, Resolved, run_identity
from evalwright.evaluation.rules import (
    ModelRule,
    UnitOrder,
)
from evalwright.evaluation.sharding import Shard, share_of
from evalwright.models.model_interface import (
    Model,
    fingerprint_of,
)
from evalwright.runs.buckets import BucketAddress
from evalwright.runs.reader import open_run
from evalwright.runs.writer import PLAN_FILE, RUN_FILE, read_plan, slug
from evalwright.tasks.data_files import as_data_file


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One model on all tasks, before the first request.

    spec: names the model. roles: the models beside it. orders: for each task, which samples are
    asked, and in which order. identity: a digest of all that decides the numbers. configuration:
    for the record. prompt: name and hash of the prompt in place of the tasks' own, for the record.
    full_run: the identity of the same run without rules. shard: which part of which
    run it is, for its record; empty for a whole run. push: the folder of a bucket to which the
    finished run is copied.
    """

    id: str
    folder: Path
    model: Model
    spec: ModelSpec
    roles: Mapping[str, Model]
    tasks: tuple[Task, ...]
    orders: tuple[UnitOrder, ...]
    identity: str
    full_run: str
    configuration: Mapping[str, Any]
    rules: tuple[ModelRule, ...] = ()
    shard: Mapping[str, Any] = field(default_factory=dict)
    prompt: Mapping[str, str] = field(default_factory=dict)
    push: BucketAddress | None = None

    @property
    def follows_rules(self) -> bool:
        """Whether a stopping rule applies to this model."""
        return self.identity != self.full_run

    @property
    def total(self) -> int:
        """The number of answers: samples times draws, over all tasks."""
        return _count_answers(self.tasks, self.orders)

    def units(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (position in the record, task number, sample index, draw) in the run's order."""
        for number, order in enumerate(self.orders):
            yield from self.units_between(number, 0, order.n_units)

    def units_between(
        self, number: int, start: int, end: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield like `units`, but only the units of one task from `start` to before `end`."""
        offset = sum(len(task.samples) * task.draws for task in self.tasks[:number])
        task = self.tasks[number]
        order = self.orders[number]
        for index in order.items[order.starts[start] : order.starts[end]]:
            for draw in range(task.draws):
                yield offset + index * task.draws + draw, number, index, draw


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, complete: nothing is looked up, opened or checked after it.

    Attributes:
        runs: one for each model under test.
        home: the folder of the store.
        max_resident: heavy local models in memory at a time.
        resend_empty: whether to send requests again to which every reply was empty.
        asked_in: the round in which the models are asked.
        budget: what may be spent.
        remarks: sentences to show before the first request.
        replaces: whether a run that is there may be replaced.
    """

    runs: tuple[PlannedRun, ...]
    home: Path
    max_resident: int
    resend_empty: bool
    asked_in: str
    budget: BudgetTerms | None
    remarks: tuple[str, ...]
    replaces: bool = False


def make_plan(resolved: Resolved, *, in_python: bool = False) -> Plan:
    """Give each model's run its name, its part of the samples and its rules, and the budget to all.

    Args:
        resolved: what the settings mean.
        in_python: whether `evaluate` was called rather than a command. Messages then name its
            arguments, and a model without a fingerprint replaces its own earlier run.

    Raises:
        UsageError: the runs cannot be made together, or not in their folders.
    """
    configuration = resolved.configuration
    candidates = resolved.candidates
    roles = resolved.roles
    if resolved.shard:
        runs = _share_runs(resolved.shard, candidates, roles)
    elif resolved.rules:
        runs = _runs_with_rules(resolved)
    else:
        runs = [_whole_run(candidate, roles) for candidate in candidates]
    if configuration.until or configuration.budget:
        _check_same_samples(runs)
    _check_folders(runs, may_replace=configuration.replace, in_python=in_python)

    priced = [(run.spec, run.model) for run in runs]
    priced += [(configuration.roles[role], model) for role, model in roles.items()]
    price_models(configuration.price, priced, has_budget=bool(configuration.budget))
    shards = [run.shard for run in runs if run.shard]
    identities = [run.identity for run in runs] if resolved.worker else []
    return Plan(
        runs=tuple(replace(run, push=resolved.push) for run in runs),
        home=resolved.home,
        max_resident=configuration.max_resident,
        resend_empty=configuration.resend_empty,
        asked_in=configuration.round,
        budget=read_budget(configuration.budget, priced, shards, identities),
        remarks=resolved.remarks,
        replaces=configuration.replace,
    )


def _count_answers(tasks: Sequence[Task], orders: Sequence[UnitOrder]) -> int:
    return sum(
        len(order.items) * task.draws for task, order in zip(tasks, orders, strict=True)
    )


# -- runs ------------------------------------------------------------------------------


def _whole_run(
    candidate: Candidate,
    roles: Mapping[str, Model],
    *,
    rules: tuple[ModelRule, ...] = (),
    identity: str = "",
    configuration: Configuration | None = None,
) -> PlannedRun:
    """Return the run of a candidate under its name.

    Args:
        candidate: the model with its tasks.
        roles: the models beside it.
        rules: all stopping rules of the evaluation.
        identity: the identity with its rules; without them that of the candidate.
        configuration: the configuration that names the run and is recorded; by default the
            candidate's.
    """
    configuration = configuration or candidate.configuration
    identity = identity or candidate.identity
    prompt = candidate.prompt
    spec = candidate.spec
    if prompt is not None and len(configuration.prompts) > 1:
        spec = named_after(spec, prompt)
    run_id = _run_id(configuration, candidate, spec, identity)
    recorded = replace(
        configuration,
        models=(spec,),
        name=run_id,
        prompts=() if prompt is None else (prompt,),
    )
    return PlannedRun(
        id=run_id,
        folder=Path(configuration.out) / run_id,
        model=candidate.model,
        spec=spec,
        prompt={} if prompt is None else prompt_record(prompt),
        roles=roles,
        tasks=candidate.tasks,
        orders=candidate.orders,
        identity=identity,
        full_run=candidate.identity,
        configuration=recorded.as_dict(),
        rules=rules,
    )


def _runs_with_rules(resolved: Resolved) -> list[PlannedRun]:
    """Return the runs with their rules, and the models that the rules compare, in their identities.

    These decide when a run ends.
    """
    several_prompts = len(resolved.configuration.prompts) > 1
    compared_as = [
        candidate.identity if several_prompts else candidate.model.fingerprint
        for candidate in resolved.candidates
    ]
    family = [
        [compared_as[number] for number in model_rule.pair]
        for model_rule in resolved.rules
        if model_rule.pair is not None and model_rule.n_pairs > 1
    ]
    runs = []
    for number, candidate in enumerate(resolved.candidates):
        described = []
        for model_rule in resolved.rules:
            if model_rule.concerns(number):
                unnamed = replace(model_rule.rule, text="", a="", b="")
                compared = [compared_as[run] for run in model_rule.pair or ()]
                described.append([*unnamed.as_dict().items(), compared])
        identity = candidate.identity
        if described:
            until = {"until": described, **({"pairs": family} if family else {})}
            identity = fingerprint_of({"run": identity, **until})
        runs.append(
            _whole_run(
                candidate,
                resolved.roles,
                rules=resolved.rules,
                identity=identity,
                configuration=resolved.configuration,
            )
        )
    return runs


def _share_runs(
    shard: Shard, candidates: Sequence[Candidate], roles: Mapping[str, Model]
) -> list[PlannedRun]:
    """Return the part of each model's run that this shard evaluates."""
    whole_runs = [_whole_run(candidate, roles) for candidate in candidates]
    run_ids = [run.id for run in whole_runs]
    runs = []
    for run, candidate in zip(whole_runs, candidates, strict=True):
        run_id = f"{run.id}.shard-{shard.number}-of-{shard.of}"
        identity = fingerprint_of({"run": run.identity, "shard": str(shard)})
        shard_record = {
            "number": shard.number,
            "of": shard.of,
            "run": run.id,
            "identity": run.identity,
            "answers": run.total,
            "name": candidate.configuration.name or run.id,
            "runs": run_ids,
        }
        runs.append(
            replace(
                run,
                id=run_id,
                folder=run.folder.parent / run_id,
                orders=tuple(share_of(shard, run.tasks, run.orders)),
                identity=identity,
                full_run=identity,
                shard=shard_record,
            )
        )
    return runs


def _run_id(
    configuration: Configuration, candidate: Candidate, spec: ModelSpec, identity: str
) -> str:
    """The name of a candidate's run. spec: the model as boards name it, with its prompt."""
    if run_name := configuration.run_name(candidate.spec):
        prompt = candidate.prompt
        if prompt is None or len(configuration.prompts) == 1:
            return run_name
        return f"{run_name}-{prompt.name}"
    model = model_file_name(spec)
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


# -- checks of all runs together -------------------------------------------------------


def _check_same_samples(runs: Sequence[PlannedRun]) -> None:
    """Check that models which are evaluated in step have the same samples."""
    first_run = runs[0]
    for run in runs[1:]:
        for number, task in enumerate(run.tasks):
            first_hash = first_run.tasks[number].samples.content_hash
            # Shards have their part of the order, each model a copy of it.
            if (
                task.samples.content_hash != first_hash
                or run.orders[number].items != first_run.orders[number].items
            ):
                raise ConfigurationError(
                    f"The task '{task.name}' has other samples for '{run.model.name}'"
                    f" than for '{first_run.model.name}', so stopping rules and budgets"
                    " cannot cover both. Run them separately, or with the same"
                    " --format."
                )


def _check_folders(
    runs: Sequence[PlannedRun], *, may_replace: bool, in_python: bool
) -> None:
    """Raise ConfigurationError if two runs have the same folder, or another run is in it."""
    folders: set[Path] = set()
    for run in runs:
        if run.folder in folders:
            raise ConfigurationError(
                f"Two of the models would write the same run '{run.id}': leave one out,"
                " or give them a `label` each in a file (--config)."
            )
        folders.add(run.folder)
    for run in runs:
        if not may_replace:
            _check_folder(run, in_python=in_python)


def _check_folder(run: PlannedRun, *, in_python: bool) -> None:
    """Raise ConfigurationError if another run is in the folder of this one."""
    if (run.folder / RUN_FILE).exists():
        try:
            record = open_run(run.folder).data
        except RunError as error:
            way_out = (
                "Choose another name=, or replace it with replace=True."
                if in_python
                else "Choose another --name, or replace it with --replace."
            )
            raise ConfigurationError(f"{error} {way_out}") from None
        if run.identity == record.get("identity"):
            return
        if not _differs_by_unknown_models_alone(run, record):
            _check_same(
                run,
                record.get("identity"),
                record.get("stopping"),
                "was made",
                in_python,
                record,
            )
        elif not in_python:
            raise ConfigurationError(_explain_unknown_model(run))
    elif (run.folder / PLAN_FILE).exists():
        # The run was begun and interrupted. A rule that could be changed after some answers were
        # seen would not be valid.
        begun = read_plan(run.folder)
        _check_same(run, begun.get("identity"), begun, "was begun", in_python)


def _differs_by_unknown_models_alone(
    run: PlannedRun, record: Mapping[str, Any]
) -> bool:
    """Tell whether only fingerprints that are unknown by nature set a run apart from its record.

    Models without a fingerprint get a new one for each evaluation; here they count as the same if
    their names are. A run with stopping rules or of a shard is never alike.
    """
    if run.follows_rules or run.shard or "stopping" in record:
        return False
    return _identity_as_in(run, record, run.configuration.get("round", "")) == (
        record.get("identity")
    )


def is_same_evaluation(run: PlannedRun, record: Mapping[str, Any]) -> bool:
    """Tell whether a finished run has the models, tasks and settings of a planned one.

    The round in which the models were asked does not matter, and a model without a fingerprint is
    the same if its name is.

    Args:
        run: the planned run.
        record: the `run.json` of the finished one, which may be published without its samples.
    """
    identity = record.get("identity")
    if run.follows_rules or run.identity == identity:
        return run.identity == identity
    settings = record.get("configuration")
    asked_in = settings.get("round", "") if isinstance(settings, Mapping) else ""
    return _identity_as_in(run, record, str(asked_in)) == identity


def _identity_as_in(run: PlannedRun, record: Mapping[str, Any], asked_in: str) -> str:
    """Compute a run's identity with what a record has for models that have no fingerprint."""
    fingerprint = _earlier_fingerprint(run.model, record.get("model"))
    roles = record.get("roles")
    role_fingerprints = {
        role: _earlier_fingerprint(
            judge, roles.get(role) if isinstance(roles, Mapping) else None
        )
        for role, judge in run.roles.items()
    }
    return run_identity(
        fingerprint,
        role_fingerprints,
        run.tasks,
        run.configuration.get("limit"),
        run.configuration.get("seed", 0),
        asked_in,
    )


def _earlier_fingerprint(model: Model, described: Any) -> str:
    """Return an earlier run's fingerprint for an unknown model of the same name, or its own."""
    if model.is_known or not isinstance(described, Mapping):
        return model.fingerprint
    earlier = str(described.get("fingerprint", ""))
    is_same_name = described.get("name") == model.name
    if is_same_name and is_unknown_fingerprint(earlier):
        return earlier
    return model.fingerprint


def _explain_unknown_model(run: PlannedRun) -> str:
    """Say why the same command is refused for a model without a fingerprint, and what to do."""
    models = [run.model, *run.roles.values()]
    model = next(model for model in models if not model.is_known)
    return (
        f"The run '{run.id}' in '{run.folder.parent}' is finished. '{model.name}' has no"
        " fingerprint, so it cannot be known whether the same model would answer now, and"
        " no answer is reused. To make the run again, with every request sent again, add"
        " --replace. To have the same command send only what is missing, give the model"
        f" a fingerprint: {model.naming}."
    )


def _new_judges(run: PlannedRun) -> str:
    """Name the present judges and the command that has recorded answers read by them."""
    judges = [
        model.name
        for role, model in run.roles.items()
        if role == "judge" or role.startswith("judge-")
    ]
    who = "the new judge" if len(judges) == 1 else "the new judges"
    names = " ".join(f"--judge {name}" for name in judges)
    return f"{who}: `evalwright score {run.folder} {names}"


def _check_same(
    run: PlannedRun,
    identity: Any,
    stopping: Any,
    was_done: str,
    in_python: bool,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Check that a run replaces only itself, or an earlier run that stopping rules cut short.

    `record` is that of a finished run, from which the message says what changed.
    """
    full_run = stopping.get("full_run") if isinstance(stopping, Mapping) else None
    if run.identity in (identity, full_run):
        return
    model = run.model
    unknown = (
        ""
        if model.is_known or not run.follows_rules
        else (
            f" '{model.name}' has no fingerprint, so it counts as another model in every"
            f" evaluation; to give it one: {model.naming}."
        )
    )
    way_out = (
        "Choose another name=, or replace it with replace=True."
        if in_python
        else "Choose another --name, or replace it with --replace."
    )
    changes = (
        []
        if record is None
        else describe_changes(
            record,
            model=run.model,
            roles=run.roles,
            tasks=run.tasks,
            configuration=run.configuration,
        )
    )
    what = (
        f": {'; '.join(changes)}."
        if changes
        else " (model, judge or another role, task, data, seed, limit or stopping rule)."
    )
    # Where only the judge is another one, no answer has to be asked for again.
    is_judge_alone = bool(changes) and all(
        change.startswith("judge") for change in changes
    )
    rescore = (
        f" To have the answers that are there read by {_new_judges(run)}`."
        if is_judge_alone and "judge" in run.roles
        else ""
    )
    raise ConfigurationError(
        f"The run '{run.id}' in '{run.folder.parent}' {was_done} from another"
        f" configuration{what}{unknown} {way_out}{rescore}"
    )
