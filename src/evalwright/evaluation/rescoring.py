"""Scores a run's recorded answers again, with its own or other scorers.

The model under test gets no request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.outcomes import Outcome
from evalwright.core.plain import plain
from evalwright.core.private import home_folder
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.engine.budget import Budget
from evalwright.engine.engine import Engine, RoleClient
from evalwright.engine.loop_turns import LoopTurns
from evalwright.engine.opening import open_store
from evalwright.evaluation.budgets import (
    BudgetTerms,
    open_budget,
    price_models,
    read_budget,
)
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.derived import Derived
from evalwright.evaluation.effects import check_sandbox
from evalwright.evaluation.judge_setting import judge_fields, read_panel
from evalwright.evaluation.objects import ModelLike, Objects
from evalwright.evaluation.opening import open_roles
from evalwright.evaluation.origins import refuse_recorded_python
from evalwright.evaluation.running import at_the_same_time, interruptible, run_blocking
from evalwright.evaluation.scoring import score_record
from evalwright.evaluation.settings import OLD_NAMES
from evalwright.evaluation.task_checks import check_able
from evalwright.metrics.registry import usual_metric
from evalwright.metrics.repeats import KINDS, check_multiplied
from evalwright.models.model_interface import Model
from evalwright.runs.aggregation import TaskTally, derived_task, rules_record
from evalwright.runs.environment import environment
from evalwright.runs.images import KeptImages
from evalwright.runs.published_record import is_same_part
from evalwright.runs.reader import Run, as_recorded, open_run
from evalwright.runs.writer import RUN_FILE, RunWriter
from evalwright.scorers.registry import JUDGE_READ, bind, registry
from evalwright.tasks.dialects import ScoringRules, dialect_of
from evalwright.tasks.panels import (
    Panel,
    is_of_panel,
    panel_scorers,
    with_panel_metrics,
    without_panel,
)
from evalwright.tasks.scorer_sandboxes import recorded_over_samples
from evalwright.tasks.scoring import with_second, with_votes

RuleReaders = Mapping[str, Mapping[str, str]]
"""By task and scorer: the kind of the second scorer, whose recorded verdicts are kept."""

AT_ONCE = 256
"""Records scored concurrently, so that a judge gets many requests at a time."""


def score_run(
    run: Run | str | Path,
    *,
    scorers: Sequence[str | Mapping[str, Any]] = (),
    roles: Mapping[str, ModelLike] | None = None,
    name: str = "",
    out: str | Path | None = None,
    home: str | None = None,
    dialect: Mapping[str, Any] | None = None,
    sandbox: str | None = None,
    unsure: Mapping[str, Any] | None = None,
    judge: ModelLike | Sequence[ModelLike] | Mapping[str, Any] | None = None,
    panel: Mapping[str, Any] | None = None,
    asked_in: str = "",
) -> Run:
    """Score a run's recorded answers again, and write the scores as a new run.

    The model under test is not called. Judges are, unless their responses are in the store.

    Args:
        run: the run, its folder or its name in the folder "runs".
        scorers: names, or mappings from a name to its options; without any, the run's own scorers.
            Naming only scorers of the run scores with these again, and other scores and the metrics
            stay. With new scorers the metrics are the usual one (mostly `accuracy`) over the first
            and `mean` over the others.
        roles: models that the scorers call, by role, such as {"judge": "openai/gpt-4o"}; without
            one, the run's own, unless it was opened with arguments.
        name: name of the new run; without it, the old name with ".rescored".
        out: the new run's parent folder; without it, that of the old run.
        home: folder of the store.
        dialect: `task_root` and `trust`, for tasks of another framework that are scored by Python
            files beside them. What the recorded run trusted does not count here.
        sandbox: the sandbox for programs written by models, for this call alone.
        unsure: the scorer that reads again what rules are unsure of: {"scorer": "judge-correct"}.
        judge: one or several judges in place of the run's, as in `evaluate`: the same as roles,
            `unsure` and `panel`. Verdicts that are in the store are not asked for again.
        panel: the roles of several judges as `judges`, with `combine` and `needs`; {} for one judge
            in place of a panel, None for the run's own.
        asked_in: the round in which judges are asked, such as "2026-W49": their verdicts of other
            rounds are not used. It is added to the new run's name.

    Returns:
        The new run.

    Raises:
        UnknownName: there is no such scorer or option.
        ConfigurationError: a role has no model, or the name is taken by another kind of run.
        RunError: the samples were changed after the run.
    """
    rescoring = prepare_rescoring(
        run,
        scorers=scorers,
        roles=roles,
        name=name,
        out=out,
        home=home,
        dialect=dialect,
        sandbox=sandbox,
        unsure=unsure,
        judge=judge,
        panel=panel,
        asked_in=asked_in,
    )
    return rescore_all([rescoring], home=home).runs[0]


@dataclass(frozen=True, slots=True)
class Rescoring:
    """A run whose answers are about to be scored again.

    Attributes:
        new: the new run's place, and the old run.
        bound: by task, how it is scored.
        keeping: second scorers whose recorded verdicts are kept.
        models: the models that score, by role.
        specs: how they were named.
        scoring: the arithmetic of another framework's task; "" for that of the record.
        panel: as for `score_run`.
        asked_in: likewise.
    """

    new: Derived
    bound: Bound
    keeping: RuleReaders
    models: Mapping[str, Model]
    specs: Mapping[str, ModelSpec]
    scoring: str
    panel: Mapping[str, Any] | None
    asked_in: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the new run is there, complete, and scored by these models and scorers."""
        if not (self.new.folder / RUN_FILE).is_file():
            return False
        done = open_run(self.new.folder)
        prints = {
            role: str(model["fingerprint"])
            for role, model in done.data.get("roles", {}).items()
        }
        return (
            source_hash(done) == self.new.old.samples_sha256
            and done.n_missing <= _count_unanswered(self.new.old)
            and all(
                prints.get(role) == model.fingerprint
                for role, model in self.models.items()
            )
            and all(
                is_same_part(
                    done.record(task)["scorers"],
                    plain(rules_record(rules.scorers, [])["scorers"]),
                )
                for task, rules in self.bound.items()
            )
        )


def _count_unanswered(run: Run) -> int:
    """Count samples without an answer, which no judge can give a score."""
    return sum(
        (task.get("outcomes") or {}).get("failed", 0) for task in run.data["tasks"]
    )


def source_hash(run: Run) -> str:
    """Return the hash of the samples that a run scored again; "" for another run."""
    return str((run.data.get("scored_from") or {}).get("samples_sha256", ""))


def prepare_rescoring(
    run: Run | str | Path,
    *,
    scorers: Sequence[str | Mapping[str, Any]] = (),
    roles: Mapping[str, ModelLike] | None = None,
    name: str = "",
    out: str | Path | None = None,
    home: str | None = None,
    dialect: Mapping[str, Any] | None = None,
    sandbox: str | None = None,
    unsure: Mapping[str, Any] | None = None,
    judge: ModelLike | Sequence[ModelLike] | Mapping[str, Any] | None = None,
    panel: Mapping[str, Any] | None = None,
    asked_in: str = "",
    opened: OpenedModels | None = None,
) -> Rescoring:
    """Check all that scoring a run again needs, and open the models; no request is sent.

    Args:
        run: as for `score_run`, like all that is not said here.
        scorers: likewise.
        roles: likewise.
        name: likewise.
        out: likewise.
        home: likewise.
        dialect: likewise.
        sandbox: likewise.
        unsure: likewise.
        judge: likewise.
        panel: likewise.
        asked_in: likewise.
        opened: models that were opened for other runs, which this one shares.

    Raises:
        UsageError: as `score_run`.
        RunError: likewise.
    """
    new_name = name or "{}.rescored"
    if asked_in:
        new_name = f"{new_name}-{asked_in}"
    new = Derived(run, new_name, out, "scored_from")
    old = new.old
    if judge is not None:
        fields = judge_fields(judge, roles or {})
        roles = fields["roles"]
        unsure = unsure or fields["unsure"]
        panel = fields["panel"]
    objects = Objects()
    named = {
        role: objects.name_model(model, role=True)
        for role, model in (roles or {}).items()
    }
    with as_recorded(old):
        bound = _bound(old, scorers, dialect or {}, unsure or {})
        if panel is not None:
            bound = {
                name: _with_judges(rules, read_panel(panel, named))
                for name, rules in bound.items()
            }
        keeping = _second_kinds(old, bound) if not scorers else {}
        bound = _without_absent_judges(bound, keeping, roles or {})
    check_sandbox(
        sandbox, [scorer for rules in bound.values() for scorer in rules.scorers]
    )
    specs = _specs(old, bound, named)
    models = _open_models(specs, objects, home, {} if opened is None else opened)
    for rules in bound.values():
        for scorer in rules.scorers:
            for role in scorer.roles if scorer.name not in rules.kept else ():
                check_able(scorer, models[role])
    scoring = (dialect or {}).get("scoring", "")
    return Rescoring(new, bound, keeping, models, specs, scoring, panel, asked_in)


OpenedModels = dict[str, Model]
"""Models that several runs are scored by, by role and specification."""


def _open_models(
    specs: Mapping[str, ModelSpec],
    objects: Objects,
    home: str | None,
    opened: OpenedModels,
) -> dict[str, Model]:
    """Open the models of the roles, each once for all runs."""
    models: dict[str, Model] = {}
    for role, spec in specs.items():
        key = repr((role, spec.as_dict(), spec.arguments, spec.occurrence))
        if key not in opened:
            (model,) = open_roles(
                {role: spec}, objects.models, home=home_folder(home)
            ).values()
            model.check()
            opened[key] = model
        models[role] = opened[key]
    return models


@dataclass(frozen=True, slots=True)
class RescoredRuns:
    """What came of scoring several runs again.

    Attributes:
        runs: the new runs, in order.
        not_done: the old runs that the budget did not suffice for.
        spending: the budget and what was spent of it; None without a budget.
    """

    runs: tuple[Run, ...]
    not_done: tuple[Run, ...] = ()
    spending: Mapping[str, Any] | None = None


def rescore_all(
    rescorings: Sequence[Rescoring],
    *,
    home: str | None = None,
    budget: Sequence[str] = (),
    price: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
) -> RescoredRuns:
    """Score the answers of several runs again, one after another, within one budget.

    Verdicts are stored as they come. A run for which the budget does not suffice is not written;
    the same call with more budget continues where this one ended.

    Args:
        rescorings: the runs, as `prepare_rescoring` returns them, all of one round.
        home: folder of the store.
        budget: spending limits, such as "5 USD", over all runs together.
        price: prices of the models, as `price` of a suite.
        say: hears a sentence for each run.

    Raises:
        UsageError: the budget or a price cannot be used.
        StoreError: verdicts cannot be stored.
    """
    if not rescorings:
        return RescoredRuns(())
    priced = list(
        {
            id(rescoring.models[role]): (spec, rescoring.models[role])
            for rescoring in rescorings
            for role, spec in rescoring.specs.items()
        }.values()
    )
    if price or budget:
        price_models(price, priced, has_budget=bool(budget))
    terms = read_budget(budget, priced)
    outcome: RescoredRuns = run_blocking(
        lambda: _rescore_each(rescorings, home, terms, say)
    )
    return outcome


async def _rescore_each(
    rescorings: Sequence[Rescoring],
    home: str | None,
    terms: BudgetTerms | None,
    say: Callable[[str], None] | None,
) -> RescoredRuns:
    runs: list[Run] = []
    with open_store(home_folder(home)) as store:
        async with (
            Engine(store, asked_in=rescorings[0].asked_in) as engine,
            open_budget(terms, store) as budget,
        ):
            for number, rescoring in enumerate(rescorings, 1):
                old = rescoring.new.old
                if say is not None:
                    say(f"Scoring run {number:,} of {len(rescorings):,}: {old.id}")
                try:
                    runs.append(await _score(rescoring, engine, budget))
                except BudgetSpent:
                    break
    not_done = tuple(rescoring.new.old for rescoring in rescorings[len(runs) :])
    return RescoredRuns(
        tuple(runs), not_done, None if budget is None else budget.as_dict()
    )


class BudgetSpent(Exception):
    """The budget did not suffice for a run."""


def _specs(
    old: Run, bound: Bound, named: Mapping[str, ModelSpec]
) -> dict[str, ModelSpec]:
    """Return the models that scorers use: the named ones, else the run's own.

    Raises:
        ConfigurationError: a role has no model.
    """
    needed = {
        role
        for rules in bound.values()
        for scorer in rules.scorers
        if scorer.name not in rules.kept
        for role in scorer.roles
    }
    recorded = old.data["configuration"].get("roles") or {}
    for role in named.keys() - needed:
        raise ConfigurationError(
            f"No scorer that is computed uses a model in the role '{role}'; roles in"
            f" use: {', '.join(sorted(needed)) or 'none'}. Leave out --role {role}=..."
        )
    specs = dict(named)
    for role in sorted(needed - named.keys()):
        spec = recorded.get(role) or {}
        # A record may come from anywhere: its arguments (an address, a key's variable) must not
        # decide where requests go.
        if "model" not in spec or spec.get("arguments"):
            hint = (
                " The run's own was opened with arguments, so name them too, with -R."
                if spec
                else ""
            )
            raise ConfigurationError(
                f"The scorers use a model in the role '{role}': name it with --role"
                f" {role}=...{hint}"
            )
        refuse_recorded_python(str(spec["model"]), f"--role {role}=")
        specs[role] = ModelSpec(spec["model"], label=spec.get("label", ""))
    return specs


Bound = Mapping[str, ScoringRules]


def _bound(
    old: Run,
    scorers: Sequence[str | Mapping[str, Any]],
    dialect: Mapping[str, Any],
    unsure: Mapping[str, Any],
) -> dict[str, ScoringRules]:
    """Return how each task is scored."""
    foreign = {
        task["name"]: foreign_task
        for task in ([] if scorers else old.data["tasks"])
        if (foreign_task := dialect_of(task["definition"])) is not None
    }
    if dialect and not foreign:
        raise ConfigurationError(
            f"--{next(iter(dialect)).replace('_', '-')} has no effect: it is for the"
            f" scoring of tasks of other frameworks, and no task of '{old.id}' is"
            " scored so. Leave it out."
        )
    first = _first_rows(old, set(foreign))
    bound = {}
    for task in old.data["tasks"]:
        name = task["name"]
        if name in first:
            bound[name] = foreign[name].rules(
                task, old.data["configuration"], first[name], dialect
            )
        else:
            rules = _rules(task, scorers)
            if unsure and dialect_of(task["definition"]) is None:
                computed = [
                    scorer for scorer in rules.scorers if scorer.name not in rules.kept
                ]
                again = {
                    scorer.name: scorer for scorer in with_second(computed, unsure)
                }
                rules = replace(
                    rules,
                    scorers=[
                        again.get(scorer.name, scorer) for scorer in rules.scorers
                    ],
                )
            scorers_of_task = [
                (
                    scorer
                    if scorer.name in rules.kept
                    else recorded_over_samples(scorer, task["definition"])
                )
                for scorer in rules.scorers
            ]
            rules = replace(rules, scorers=scorers_of_task)
            bound[name] = with_votes(rules, rules.kept)
    return bound


def _first_rows(old: Run, names: set[str]) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of the first answered sample of each task."""
    metadata_by_task: dict[str, Mapping[str, Any]] = {}
    for row in old.rows() if names else ():
        if (
            row["task"] in names
            and "answer" in row
            and row["task"] not in metadata_by_task
        ):
            metadata_by_task[row["task"]] = row.get("metadata", {})
            if len(metadata_by_task) == len(names):
                break
    return metadata_by_task


def _rules(
    task: Mapping[str, Any], named_scorers: Sequence[str | Mapping[str, Any]]
) -> ScoringRules:
    named = dict(_entries(named_scorers))
    recorded_names = [scorer["name"] for scorer in task["scorers"]]
    if (
        named
        and named.keys() <= set(recorded_names)
        and dialect_of(task["definition"]) is None
    ):
        return _own_again(task, named)
    scorers, metrics = _scorers(task, named_scorers)
    return ScoringRules(scorers, metrics, lambda names: metrics)


def _entries(
    scorers: Sequence[str | Mapping[str, Any]],
) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (scorer, {}) if isinstance(scorer, str) else next(iter(scorer.items()))
        for scorer in scorers
    ]


def _own_again(
    task: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> ScoringRules:
    """Bind some of the run's own scorers again, with options that override theirs.

    The other scores and the metrics stay.
    """
    scorers = []
    for recorded in task["scorers"]:
        name = recorded["name"]
        again = name in named
        options = {**recorded["options"], **named.get(name, {})}
        scorers.append(
            _bound_again(recorded, options)
            if again
            else Scorer(name, recorded["kind"], options, _never)
        )
    metrics = [MetricSpec(**spec) for spec in task["metric_specs"]]
    by_name = {scorer.name: scorer.options for scorer in scorers}
    for metric in metrics:
        if metric.kind in KINDS:
            check_multiplied(
                metric.kind, metric.options, by_name.get(metric.scorer, {})
            )
    kept_names = frozenset(
        scorer.name for scorer in scorers if scorer.name not in named
    )
    return ScoringRules(scorers, metrics, lambda names: metrics, kept_names)


def _scorers(
    task: Mapping[str, Any], named_scorers: Sequence[str | Mapping[str, Any]]
) -> tuple[Sequence[Scorer], Sequence[MetricSpec]]:
    if (
        not named_scorers and dialect_of(task["definition"]) is not None
    ):  # nothing was answered, so no scorer is called
        unused = [
            Scorer(recorded["name"], recorded["kind"], recorded["options"], _never)
            for recorded in task["scorers"]
        ]
        return unused, []
    if not named_scorers:
        scorers = [
            _bound_again(recorded, recorded["options"]) for recorded in task["scorers"]
        ]
        return scorers, [MetricSpec(**spec) for spec in task["metric_specs"]]
    scorers = [
        bind(scorer_kind, options) for scorer_kind, options in _entries(named_scorers)
    ]
    usual = usual_metric(scorers[0].kind, scorers[0].options)
    metrics = [MetricSpec(usual, usual, scorers[0].name)]
    metrics += [
        MetricSpec(f"mean {scorer.name}", "mean", scorer.name) for scorer in scorers[1:]
    ]
    return scorers, metrics


def _bound_again(recorded: Mapping[str, Any], options: Mapping[str, Any]) -> Scorer:
    """Bind a recorded scorer.

    Raises:
        ConfigurationError: its scores were imported from another program.
    """
    if recorded["kind"] not in registry.names():
        raise ConfigurationError(
            f"The scores '{recorded['name']}' are those of another program or a plug-in"
            f" ({recorded['kind']}), which is not loaded: load it with --plugin, or name"
            " other scorers with --scorer."
        )
    # Nobody can change a record, so its old names cause no warning.
    present = {OLD_NAMES.get(name, name): option for name, option in options.items()}
    return bind(recorded["kind"], present, recorded["name"])


def _never(sample: Sample, answer: Answer) -> Score:
    raise ScoringError("The run has no answer to this task.")


async def _score(rescoring: Rescoring, engine: Engine, budget: Budget | None) -> Run:
    """Score one run and write the new one.

    Raises:
        BudgetSpent: the budget did not suffice; nothing is written.
    """
    new = rescoring.new
    bound = rescoring.bound
    old = new.old
    tallies = {
        task["name"]: TaskTally(
            [scorer.name for scorer in bound[task["name"]].scorers], task["slice_keys"]
        )
        for task in old.data["tasks"]
    }
    with RunWriter(new.folder) as writer:
        writer.keep_images(KeptImages(old.folder, old.data))
        door = engine.door(rescoring.models)
        turns = engine.loop_turns()
        await interruptible(
            _score_all(rescoring, tallies, writer, door, turns, budget), engine
        )
        tasks = []
        for task in (
            _relabelled(task, rescoring.scoring) for task in old.data["tasks"]
        ):
            task_rules = bound[task["name"]]
            tally = tallies[task["name"]]
            metrics = task_rules.metrics_for(tally.names())
            as_empty = (
                {}
                if task_rules.as_empty is None
                else {"score_as_empty": list(task_rules.as_empty)}
            )
            record = derived_task(task, tally, metrics) | as_empty
            tasks.append({**record, **rules_record(task_rules.scorers, metrics)})
        rules = [[task["scorers"], task["metric_specs"]] for task in tasks]
        return new.finish(
            writer,
            tasks,
            tallies,
            {
                "answers": old.samples_sha256,
                "rules": rules,
                **({"round": rescoring.asked_in} if rescoring.asked_in else {}),
            },
            asked_in=rescoring.asked_in,
            roles=_described(old, bound, rescoring.keeping, rescoring.models),
            configuration=_configuration(old, rescoring.specs, rescoring.panel),
            environment=environment(),
            usage={
                **door.counts.as_dict(),
                "answers": old.data["usage"].get("answers", {}),
            },
            **({"reply_names": names} if (names := _reply_names(old, door)) else {}),
        )


def _reply_names(old: Run, door: RoleClient) -> dict[str, Any]:
    """Return, by role, the model names that replies gave.

    Roles with requests in this run have its names, the others the recorded ones.
    """
    return {**old.data.get("reply_names", {}), **door.reply_names()}


def _relabelled(task: Mapping[str, Any], scoring: str) -> Mapping[str, Any]:
    """Return a task's record with the arithmetic that now makes its numbers.

    It is for tasks of another framework.
    """
    before = task["definition"].get("scoring")
    if not scoring or before in (None, scoring):
        return task
    return {
        **task,
        "description": (
            str(task.get("description", "")).replace(f"({before})", f"({scoring})")
        ),
        "metadata": {**task.get("metadata", {}), "scoring": scoring},
        "definition": {**task["definition"], "scoring": scoring},
    }


async def _score_all(
    rescoring: Rescoring,
    tallies: Mapping[str, TaskTally],
    writer: RunWriter,
    door: RoleClient,
    turns: LoopTurns,
    budget: Budget | None,
) -> None:
    records = enumerate(rescoring.new.old.samples())
    rescorer = RecordScorer(rescoring)
    refusals: list[int] = []

    async def worker() -> None:
        for position, record in records:
            await turns.take()  # scorers that send no request never await anything
            if budget is None:
                scored = await rescorer.score(record, door)
            else:
                reservation = budget.reservation()
                try:
                    scored = await rescorer.score(record, door.paid_by(reservation))
                finally:
                    reservation.close()
                if reservation.refused:
                    refusals.append(position)
                    continue
            if refusals:
                continue
            writer.add(position, scored)
            tallies[record.task].add(scored)

    await at_the_same_time(worker() for _ in range(AT_ONCE))
    if refusals:
        raise BudgetSpent


class RecordScorer:
    """Scores the records of one run again."""

    def __init__(self, rescoring: Rescoring) -> None:
        tasks = rescoring.new.old.data["tasks"]
        self._bound = rescoring.bound
        self._keeping = rescoring.keeping
        self._as_empty = {
            task["name"]: (
                task.get("score_as_empty", ())
                if (outcomes := rescoring.bound[task["name"]].as_empty) is None
                else outcomes
            )
            for task in tasks
        }
        self._without_score = {
            task["name"] for task in tasks if task.get("no_answer") == "unscored"
        }

    async def score(self, record: SampleRecord, ask: Ask) -> SampleRecord:
        """Return a record with its new scores.

        Args:
            record: the record.
            ask: sends what scorers ask of models.
        """
        unscored = record.task in self._without_score
        rules = self._bound[record.task]
        verdicts = _recorded_verdicts(record, self._keeping.get(record.task, {}))
        if verdicts:
            # Their kept verdicts have the parts of present scores, and count as scores that are
            # not recomputed.
            record = replace(record, scores={**record.scores, **verdicts})
            rules = replace(rules, kept=rules.kept | verdicts.keys())
        return await _score_record(
            record, rules, self._as_empty[record.task], ask, unscored
        )


async def _score_record(
    record: SampleRecord,
    rules: ScoringRules,
    as_empty: Sequence[Outcome],
    door: Ask,
    unscored: bool,
) -> SampleRecord:
    computed = [scorer for scorer in rules.scorers if scorer.name not in rules.kept]
    scored = await score_record(
        record, computed, as_empty, door, rules.metrics, unscored=unscored
    )
    if scored.failure is not None or not rules.kept:
        return scored
    scores = {
        name: score for name, score in record.scores.items() if name in rules.kept
    } | dict(scored.scores)
    failures = {
        name: failure
        for name, failure in record.score_failures.items()
        if name in rules.kept
    }
    exchanges = {
        name: exchange
        for name, exchange in record.exchanges.items()
        if name in rules.kept
    }
    return replace(
        scored,
        scores={
            scorer.name: scores[scorer.name]
            for scorer in rules.scorers
            if scorer.name in scores
        },
        score_failures={**scored.score_failures, **failures},
        exchanges={**scored.exchanges, **exchanges},
    )


def _second_kinds(old: Run, bound: Bound) -> RuleReaders:
    """Return the second scorers of a run of schema 1, whose recorded verdicts can be kept.

    Verdicts of later runs are found in the store by the same requests; these may come from requests
    of another form.
    """
    kinds: dict[str, dict[str, str]] = {}
    for task in old.data["tasks"] if old.data["schema"] == 1 else ():
        if dialect_of(task["definition"]) is not None:
            continue
        recorded = {scorer["name"]: scorer["options"] for scorer in task["scorers"]}
        for scorer in bound[task["name"]].scorers:
            options = recorded.get(scorer.name, {})
            second = options.get("unsure", options.get("undecided"))
            scorer_kind = (
                second.get("scorer") if isinstance(second, Mapping) else second
            )
            if isinstance(scorer_kind, str):
                kinds.setdefault(task["name"], {})[scorer.name] = scorer_kind
    return kinds


def _without_absent_judges(
    bound: Bound, keeping: RuleReaders, roles: Mapping[str, Any]
) -> dict[str, ScoringRules]:
    """Return how tasks are scored if no judge is named for a run of schema 1.

    Answers without a verdict are read by the rules alone.
    """
    by_task: dict[str, ScoringRules] = {}
    for task, rules in bound.items():
        kept_kinds = keeping.get(task, {})
        scorers = [
            (
                _by_rules_alone(scorer)
                if scorer.name in kept_kinds and not set(scorer.roles) <= roles.keys()
                else scorer
            )
            for scorer in rules.scorers
        ]
        by_task[task] = replace(rules, scorers=scorers)
    return by_task


def rules_without_judge(task: Mapping[str, Any]) -> ScoringRules:
    """Return how a recorded task is scored if no judge reads what its rules are unsure of."""
    scorers, metrics = _scorers(task, ())
    by_rules = [
        _by_rules_alone(scorer) if "unsure" in scorer.options else scorer
        for scorer in scorers
    ]
    return with_votes(ScoringRules(by_rules, metrics, lambda names: metrics))


def _by_rules_alone(scorer: Scorer) -> Scorer:
    """Return a scorer without its second one.

    Its recorded options still say who gave the verdicts that are kept.
    """
    options = {
        name: option for name, option in scorer.options.items() if name != "unsure"
    }
    return replace(bind(scorer.kind, options, scorer.name), options=scorer.options)


def _recorded_verdicts(
    record: SampleRecord, second_kinds: Mapping[str, str]
) -> dict[str, Score]:
    """Return the scores of a schema 1 record that a second scorer gave, by scorer.

    Their explanations say so.
    """
    verdicts: dict[str, Score] = {}
    for name, scorer_kind in second_kinds.items():
        score = record.scores.get(name)
        if score is None or not score.explanation.startswith(f"{scorer_kind}: "):
            continue
        if "; rules: " in score.explanation:
            verdicts[name] = replace(score, parts={**score.parts, JUDGE_READ: 1.0})
    return verdicts


def _described(
    old: Run, bound: Bound, keeping: RuleReaders, models: Mapping[str, Model]
) -> dict[str, Any]:
    """Describe the models of this run; for scores that were kept, those that had given them."""
    keeps_scores = bool(keeping) or any(rules.kept for rules in bound.values())
    before = dict(old.data.get("roles", {})) if keeps_scores else {}
    return {**before, **{role: model.describe() for role, model in models.items()}}


def _with_judges(rules: ScoringRules, panel: Panel | None) -> ScoringRules:
    """Return how a task is scored by a panel, or by one judge, in place of its judges."""
    if rules.choose_metrics is not None and not rules.scorers:
        return rules
    computed = [scorer for scorer in rules.scorers if scorer.name not in rules.kept]
    rebound = {scorer.name: without_panel(scorer) for scorer in computed}
    if panel is not None:
        rebound = {
            scorer.name: scorer for scorer in panel_scorers([*rebound.values()], panel)
        }
    scorers = [rebound.get(scorer.name, scorer) for scorer in rules.scorers]
    metrics: Sequence[MetricSpec] = [
        metric
        for metric in rules.metrics
        if metric.scorer not in rebound or not is_of_panel(metric)
    ]
    if panel is not None:
        metrics = with_panel_metrics([*rebound.values()], metrics, panel)
    choose = None if rules.choose_metrics is None else lambda names: metrics
    return replace(rules, scorers=scorers, metrics=metrics, choose_metrics=choose)


def _configuration(
    old: Run, specs: Mapping[str, ModelSpec], panel: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the run's configuration with the present roles and panel."""
    configuration = dict(old.data["configuration"])
    if panel is not None:
        configuration.pop("panel", None)
        if panel:
            configuration["panel"] = dict(panel)
    if specs:
        configuration["roles"] = {
            **(configuration.get("roles") or {}),
            **{role: spec.as_dict() for role, spec in specs.items()},
        }
    return configuration
