"""Makes a plan: opens or runs its sources, measures each task against the aim, adds up costs."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.analysis.power.designs import (
    MeasuredPair,
    draws_at_random,
    forecast_designs,
    forecast_draws,
    forecast_parts,
    measure_pair,
    select_one_prompt,
)
from evalwright.analysis.power.forecasts import (
    Amount,
    Forecast,
    JudgeForecast,
    ModelForecast,
    TaskForecast,
)
from evalwright.analysis.power.judges import (
    find_role_models,
    forecast_judges,
    role_price_names,
    sum_by_role,
)
from evalwright.analysis.power.opening import (
    MeasuredRun,
    PlannedModel,
    list_models,
    make_settings,
    measure_run,
    plan_models,
    resolve_run,
    run_pilot,
)
from evalwright.analysis.power.run_settings import adopt_run_settings
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.spending import (
    SPENT_FIELDS,
    ModelBasis,
    find_price,
    forecast_usage,
    read_prompts,
    sum_amounts,
    sum_by_field,
    sum_forecasts,
)
from evalwright.analysis.power.variances import Variances, measure_variances
from evalwright.analysis.trees import Average
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task
from evalwright.engine.opening import existing_store
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.objects import ModelLike, TaskLike
from evalwright.evaluation.settings import Origin, Settings, as_list
from evalwright.metrics.registry import BOUNDED
from evalwright.models.remote.prices import Price
from evalwright.runs.measurements import Measured
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run
from evalwright.statistics import items_for_difference, items_for_half_width
from evalwright.statistics._quantiles import normal_quantile
from evalwright.statistics.power import least_visible_difference
from evalwright.statistics.units import named_clusters
from evalwright.strategies.sampling import TARGET

_HALF = 0.5
"""Power at which the smallest visible difference equals the half width of the interval."""


def plan(
    tasks: TaskLike | Sequence[TaskLike],
    models: ModelLike | Sequence[ModelLike] = (),
    *,
    difference: float = 0.02,
    half_width: float = 0.02,
    power: float = 0.8,
    level: float = 0.95,
    pilot: int | None = None,
    runs: Sequence[Run | str | Path] = (),
    assume: Mapping[str, float] | None = None,
    prices: Mapping[str, Price] | None = None,
    progress: ProgressReporter | None = None,
    **settings: Any,
) -> Forecast:
    """Plan a comparison: items needed, differences that the tasks can show, and the cost of a run.

    No request is sent without a pilot, and no weights are loaded.

    Args:
        tasks: as in `evaluate`.
        models: as in `evaluate`; they may be left out if `runs` name them.
        difference: the difference to detect, in the unit of scores (0.02 is 2 points).
        half_width: the half width of an interval to reach, likewise.
        power: the probability of detection.
        level: confidence level.
        pilot: run this number of items of each task first; their answers are stored, so the run
            that follows does not pay for them again.
        runs: stored runs of the tasks to use; two of them show how two models differ.
        assume: assumptions that override measurements, see `settings.ASSUMPTIONS`.
        prices: by model name, "" for all others; by default those of the price table.
        progress: shows the progress of the pilot.
        settings: as in `evaluate`.

    Raises:
        UsageError: the plan cannot be made.
    """
    return forecast_settings(
        make_settings(tasks, models, settings),
        difference=difference,
        half_width=half_width,
        power=power,
        level=level,
        pilot=pilot,
        runs=runs,
        assume=assume,
        prices=prices,
        progress=progress,
    )


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """The file that the settings of a plan come from, for the command of the planned run.

    Args:
        file: the suite file.
        suite: which of its suites; "" where it has one.
        trust_file: the file again, if the user trusts it.
        model_arguments: arguments of the command line for all of its models.
    """

    file: str
    suite: str = ""
    trust_file: str = ""
    model_arguments: Mapping[str, Any] = field(default_factory=dict)


def forecast_settings(
    evaluation: Settings,
    *,
    difference: float = 0.02,
    half_width: float = 0.02,
    power: float = 0.8,
    level: float = 0.95,
    pilot: int | None = None,
    runs: Sequence[Run | str | Path] = (),
    assume: Mapping[str, float] | None = None,
    prices: Mapping[str, Price] | None = None,
    progress: ProgressReporter | None = None,
    suite_file: SuiteFile | None = None,
) -> Forecast:
    """Plan an evaluation by its settings; the other arguments are those of `plan`.

    Args:
        evaluation: the settings of the planned evaluation.
        difference: as in `plan`, like the further arguments.
        half_width: likewise.
        power: likewise.
        level: likewise.
        pilot: likewise.
        runs: likewise.
        assume: likewise.
        prices: likewise.
        progress: likewise.
        suite_file: the file that the settings come from; its limit is left out.

    Raises:
        UsageError: the plan cannot be made.
    """
    aim = Aim(difference, half_width, level, power, dict(assume or {}))
    if pilot is not None and runs:
        raise ConfigurationError(
            "Use a pilot or stored runs, not both: leave out --pilot or --from."
        )
    if pilot is not None and pilot < 2:
        raise ConfigurationError(
            f"A pilot needs at least 2 items to show how much they vary, not {pilot}."
        )
    if not evaluation.configuration.tasks:
        raise ConfigurationError(
            "Nothing to plan: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    limit = evaluation.configuration.limit
    evaluation = evaluation.having(limit=None)
    runs_folder = evaluation.configuration.out
    sources = [measure_run(resolve_run(run, runs_folder)) for run in as_list(runs)]
    if not evaluation.configuration.models:
        evaluation = evaluation.having(models=list_models(sources))
    evaluation, run_notes = adopt_run_settings(evaluation, sources)
    configuration = evaluation.configuration
    planned = plan_models(evaluation)
    model_names = list(dict.fromkeys(cell.model.name for cell in planned))
    role_models = find_role_models(evaluation, planned, sources, prices or {})
    _check_price_names(
        prices or {},
        [*model_names, *(role_model.name for role_model in role_models)],
        configuration.roles.values(),
    )
    for task in planned[0].tasks:
        measured = [
            source.tasks[task.name] for source in sources if task.name in source.tasks
        ]
        if _main_metric(task, measured) in BOUNDED:
            aim.check_bounded(task.name)
    if pilot is not None:
        sources = [measure_run(run) for run in run_pilot(evaluation, pilot, progress)]
    several_prompts = len(configuration.prompts) > 1
    n_pairs = math.comb(len(planned), 2) if several_prompts else 1
    sent_before: set[bytes] | None = set() if several_prompts else None
    with _stored_lookup(home_folder(configuration.home)) as is_stored:
        planned_tasks = [
            _forecast_task(
                number,
                planned,
                sources,
                aim,
                n_pairs,
                prices or {},
                configuration.seed,
                is_stored,
                sent_before,
            )
            for number in range(len(planned[0].tasks))
        ]
    forecasts = [planned_task.forecast for planned_task in planned_tasks]
    pairs = [planned_task.pair for planned_task in planned_tasks]
    own_shares = [planned_task.own_shares for planned_task in planned_tasks]
    totals = {
        cell.name: sum_forecasts([task.models[cell.name] for task in forecasts])
        for cell in planned
    }
    judges_by_task = [
        list(
            forecast_judges(
                number,
                forecast,
                role_models,
                planned,
                sources,
                level,
                own_shares[number],
            )
        )
        for number, forecast in enumerate(forecasts)
    ]
    judges = sum_by_role(itertools.chain(*judges_by_task))
    known_judges = [judge for judge in judges if judge.is_known]
    forecasts = [
        _with_design_costs(forecast, task_judges)
        for forecast, task_judges in zip(forecasts, judges_by_task, strict=True)
    ]
    notes = [
        *run_notes,
        *dict.fromkeys(cell.model.remark for cell in planned if cell.model.remark),
        *_list_notes(
            planned,
            forecasts,
            totals,
            sources,
            pilot,
            [judge.role for judge in known_judges],
        ),
    ]
    if several_prompts:
        notes += _prompt_notes(planned, own_shares, n_pairs, aim)
    if limit is not None:
        notes.append(
            f"A plan covers whole tasks: the limit of {limit:g} in the file is left out."
        )
    return Forecast(
        difference=difference,
        half_width=half_width,
        level=level,
        power=power,
        pilot=pilot,
        pilot_runs=(
            tuple(str(source.run.folder) for source in sources)
            if pilot is not None
            else ()
        ),
        pilot_failed=(
            sum(source.run.n_missing for source in sources) if pilot is not None else 0
        ),
        tasks=tuple(forecasts),
        visible_overall=_visible_overall(forecasts, pairs, aim.for_pairs(n_pairs)),
        models=totals,
        notes=tuple(notes),
        command=_command_line(
            _fill_roles(configuration, planned[0].tasks, sources),
            forecasts,
            suite_file,
            evaluation.origins,
            limited=limit is not None,
        ),
        judges=judges,
        n_pairs=n_pairs,
        total=(
            _sum_with_judges([*totals.values()], known_judges)
            if several_prompts or known_judges
            else None
        ),
        several_prompts=several_prompts,
    )


def _check_price_names(
    prices: Mapping[str, Price],
    model_names: Sequence[str],
    role_specs: Iterable[ModelSpec],
) -> None:
    """Raise UnknownName for a price of a model that is not planned, and plays no role."""
    other_names = {name for spec in role_specs for name in role_price_names(spec)}
    planned_names = list(dict.fromkeys(name for name in model_names if name))
    for name in prices:
        if name and name not in other_names.union(planned_names):
            raise UnknownName(
                "model in --price",
                name,
                planned_names,
                f"Planned: {', '.join(planned_names)}.",
            )


def _sum_with_judges(
    usages: Sequence[ModelForecast], judges: Sequence[JudgeForecast]
) -> ModelForecast:
    """Add up all runs and what their judges take; the time of runs has that of judges in it."""
    total = sum_forecasts(usages)
    return ModelForecast(
        seconds=total.seconds,
        stored=total.stored,
        **sum_by_field([total, *judges], SPENT_FIELDS),
    )


def _with_design_costs(
    forecast: TaskForecast, judges: Sequence[JudgeForecast]
) -> TaskForecast:
    """Add to a task's forecast what an item costs in all runs, and so what each design costs."""
    n_repeats = forecast.draws.planned
    total = _sum_with_judges(
        [*forecast.models.values()], [judge for judge in judges if judge.is_known]
    )
    per_item = total.money.times(1 / max(1, forecast.n_used))
    designs = tuple(
        replace(design, money=per_item.times(design.answers / n_repeats))
        for design in forecast.designs
    )
    return replace(forecast, designs=designs, money_per_item=per_item)


def _main_metric(task: Task, measured: Sequence[Measured]) -> str:
    if task.metrics:
        return task.metrics[0].kind
    return measured[0].metric if measured else ""


@contextmanager
def _stored_lookup(home: Path) -> Iterator[Callable[[bytes], bool]]:
    """Yield a function that looks up requests in the store by key.

    A missing store is not created.
    """
    store = existing_store(home)
    if store is None:
        yield lambda key: False
        return
    with store:
        yield store.holds


class _PlannedTask(NamedTuple):
    """A task's forecast, the pair it was measured on, and by model the share of own requests."""

    forecast: TaskForecast
    pair: MeasuredPair | None
    own_shares: Mapping[str, float]


def _forecast_task(
    number: int,
    planned: Sequence[PlannedModel],
    sources: Sequence[MeasuredRun],
    aim: Aim,
    n_pairs: int,
    prices: Mapping[str, Price],
    seed: int,
    is_stored: Callable[[bytes], bool],
    sent_before: set[bytes] | None,
) -> _PlannedTask:
    """Forecast one task. `n_pairs` share the level; the other arguments are those of the plan."""
    pair_aim = aim.for_pairs(n_pairs)
    task = planned[0].tasks[number]
    measured = [_measured_task(source, task.name) for source in sources]
    metric = _main_metric(task, measured)
    bounded = metric in BOUNDED
    clusters = named_clusters(sample.cluster for sample in task.samples)
    compared_sources = (
        [source for source in sources if task.name in source.tasks]
        if planned[0].is_one_of_prompts
        else select_one_prompt(task.name, sources)
    )
    alike = [source.tasks[task.name] for source in compared_sources]
    pair = measure_pair(task.name, compared_sources, sources, clusters, pair_aim)
    compares_prompts = planned[0].is_one_of_prompts or (
        pair is not None and pair.compares_prompts
    )
    compared = "two runs" if compares_prompts else "two models"
    spread = measure_variances(bounded, clusters, alike, aim, compared)
    single = _multiply(spread.single, spread.design)
    paired = _multiply(spread.paired, spread.design)
    n_total = len(task.samples)
    if pair is None:
        need, visible = _need_from_variance(n_total, paired, spread, bounded, pair_aim)
    else:
        need, visible = _need_from_pair(n_total, pair, spread.paired, pair_aim)
    if spread.half is None:
        narrow = single.through(
            lambda v: max(
                1, int(items_for_half_width(aim.half_width, v, level=aim.level))
            )
        )
        half = aim.visible(n_total, single, bounded, _HALF)
    else:
        narrow = spread.half.through(
            lambda h: max(1, math.ceil((h / aim.half_width) ** 2))
        )
        half = spread.half.times(1 / math.sqrt(n_total))
    needed = [amount.value for amount in (need, narrow) if amount.value is not None]
    n_used = min(n_total, int(max(needed))) if needed else n_total
    bases = [
        _model_basis(
            planned_model, number, sources, prices, seed, is_stored, sent_before
        )
        for planned_model in planned
    ]
    forecast = TaskForecast(
        task=task.name,
        metric=metric,
        bounded=bounded,
        n_total=n_total,
        n_clusters=None if clusters is None else len(set(clusters.tolist())),
        score=spread.score,
        single_variance=spread.single,
        paired_variance=spread.paired,
        design_effect=spread.design,
        items_for_difference=need,
        items_for_half_width=narrow,
        visible_paired=visible,
        visible_unpaired=(
            pair_aim.visible(n_total, single.times(2.0), bounded)
            if spread.half is None
            else half.through(lambda h: _unpaired(h, bounded, aim, pair_aim))
        ),
        half_width=half,
        n_used=n_used,
        draws=forecast_draws(task, spread, alike, bases, pair_aim, pair),
        models={
            planned_model.name: forecast_usage(
                basis, n_used * task.draws, n_total * task.draws, aim
            )
            for planned_model, basis in zip(planned, bases, strict=True)
        },
        parts=None if pair is None else forecast_parts(pair),
        designs=(
            ()
            if pair is None
            else tuple(forecast_designs(pair, n_total, draws_at_random(task), pair_aim))
        ),
    )
    own_shares = {
        planned_model.name: basis.prompts.own_share
        for planned_model, basis in zip(planned, bases, strict=True)
    }
    return _PlannedTask(forecast, pair, own_shares)


def _unpaired(half: float, bounded: bool, aim: Aim, pair_aim: Aim) -> float:
    """The smallest visible difference on different items, of means known to +- half by `aim`."""
    scale = normal_quantile(0.5 + pair_aim.level / 2) / normal_quantile(
        0.5 + aim.level / 2
    )
    return pair_aim.unpaired(half * scale, bounded)


def _need_from_variance(
    n_total: int, paired: Amount, spread: Variances, bounded: bool, aim: Aim
) -> tuple[Amount, Amount]:
    """Compute the items needed and the visible difference by normal approximation."""
    need = paired.through(
        lambda v: max(
            1,
            int(
                items_for_difference(
                    aim.difference, v, level=aim.level, power=aim.power
                )
            ),
        )
    )
    visible = aim.visible(n_total, paired, bounded)
    if spread.binary:  # right-or-wrong scores: at least the theoretical limit
        design = spread.design.value or 1.0
        least = least_visible_difference(
            n_total, design=design, level=aim.level, power=aim.power
        )
        visible = visible.through(lambda detectable: max(detectable, least))
    return need, visible


def _need_from_pair(
    n_total: int, pair: MeasuredPair, variance: Amount, aim: Aim
) -> tuple[Amount, Amount]:
    """Compute the items needed and the visible difference from a measured comparison."""
    design = pair.design
    basis = variance.basis
    mean_variance = variance.value
    if pair.comparison.n < pair.n:
        basis += (
            f"; {pair.comparison.n:,} of {pair.n:,} items have a score from both, and the"
            " same share is expected"
        )

    def with_limits(of: Callable[[float], float | None]) -> Amount:
        low, high = (
            of(end / mean_variance) if end and mean_variance else None
            for end in (variance.low, variance.high)
        )
        return Amount(of(1.0), low, high, basis)

    return (
        with_limits(lambda ratio: design.items_for(aim.difference, ratio=ratio)),
        with_limits(lambda ratio: design.visible(n_total, ratio=ratio)),
    )


def _measured_task(source: MeasuredRun, task: str) -> Measured:
    """Return what a run measured on a task.

    Raises RunError for a run of other tasks, and for one without scores.
    """
    if task in source.tasks:
        return source.tasks[task]
    run_tasks = [result.name for result in source.run.tasks]
    if task not in run_tasks:
        noun = "task" if len(run_tasks) == 1 else "tasks"
        raise RunError(
            f"The run '{source.run.id}' is of the {noun} {', '.join(run_tasks)}, not of"
            f" '{task}', so it cannot say how scores on '{task}' vary. Measure on some"
            " of its items with --pilot 30 in place of --from, or name a run of it."
        )
    raise RunError(
        f"The run '{source.run.id}' has no metric on '{task}', so a plan cannot use it."
    )


def _model_basis(
    planned: PlannedModel,
    number: int,
    sources: Sequence[MeasuredRun],
    prices: Mapping[str, Price],
    seed: int,
    is_stored: Callable[[bytes], bool],
    sent_before: set[bytes] | None,
) -> ModelBasis:
    """Collect what is known of one model on one task: its prompts, and earlier measurements."""
    task = planned.tasks[number]
    model = planned.model
    own_source = next(
        (source for source in sources if planned.is_run_by(source.run)), None
    )
    other_sources = [source for source in sources if source is not own_source]
    # Another prompt of this model says more than another model does.
    other_sources.sort(key=lambda source: source.run.model != model.name)
    other_source = other_sources[0] if other_sources else None
    return ModelBasis(
        model,
        read_prompts(task, model, seed, is_stored, sent_before),
        own_source.tasks[task.name] if own_source else None,
        other_source.tasks[task.name] if other_source else None,
        own_source.pace if own_source else None,
        own_source.judges if own_source else 0.0,
        prices.get(model.name, prices.get("")) or find_price(model),
    )


def _multiply(a: Amount, b: Amount) -> Amount:
    """Multiply two amounts, bounds with bounds."""
    if a.value is None or b.value is None:
        return Amount(None, basis=a.basis if a.value is None else b.basis)
    low = (
        None if a.low is None and b.low is None else (a.least or 0.0) * (b.least or 0.0)
    )
    high = (
        None if a.high is None and b.high is None else (a.most or 0.0) * (b.most or 0.0)
    )
    plain = b.value == 1.0 and b.high in (None, 1.0)
    basis = a.basis if plain else f"{a.basis}; design effect {b.value:.2f}, {b.basis}"
    return Amount(a.value * b.value, low, high, basis)


def _visible_overall(
    tasks: Sequence[TaskForecast], pairs: Sequence[MeasuredPair | None], aim: Aim
) -> Amount | None:
    """The smallest difference that an equally weighted average over tasks shows, with all items.

    For runs of the same two models it is that of their comparison, scaled by what the single tasks
    show with all items; otherwise it comes from the variance sum_t (variance_t / n_t) / T^2. None
    for a single task, and for tasks in different units.
    """
    if len(tasks) < 2 or not all(task.bounded for task in tasks):
        return None
    measured = [pair for pair in pairs if pair is not None]
    if len(measured) == len(tasks) and len({pair.names for pair in measured}) == 1:
        overall = Average(tuple(pair.matrix for pair in measured)).difference()
        now = math.hypot(
            *(pair.comparison.smallest_visible_difference for pair in measured)
        )
        basis = f"the comparison of {measured[0].names}"

        def seen(end: str) -> float:
            all_items = math.hypot(
                *(getattr(task.visible_paired, end) or 0.0 for task in tasks)
            )
            return overall.smallest_visible_difference * all_items / now

        return Amount(seen("value"), seen("least"), seen("most"), basis)
    mean_variances = [
        _multiply(task.paired_variance, task.design_effect).times(
            1 / (task.n_total * len(tasks) ** 2)
        )
        for task in tasks
    ]
    return aim.visible(1, sum_amounts(mean_variances), True)


def _list_notes(
    planned: Sequence[PlannedModel],
    tasks: Sequence[TaskForecast],
    models: Mapping[str, ModelForecast],
    sources: Sequence[MeasuredRun],
    pilot: int | None,
    forecast_roles: Sequence[str],
) -> Iterator[str]:
    if pilot is not None:
        answers = sum(
            int(measured.requests.sum())
            for source in sources
            for measured in source.tasks.values()
        )
        yield (
            f"The pilot's {answers:,} answers are in the store: the run that follows"
            " requests only the rest."
        )
    elif stored := sum(usage.stored or 0 for usage in models.values()):
        yield (
            f"The store already has {stored:,} of these answers: they are neither"
            " requested nor paid for again."
        )
    roles = sorted(
        {role for task in planned[0].tasks for role in task.roles}.difference(
            forecast_roles
        )
    )
    if roles:
        share = max((source.judges for source in sources), default=0.0)
        share_text = f", about {share:.2g} for each of the model's own" if share else ""
        yield (
            "Requests, tokens and cost are those of the models under test, without the"
            f" other roles: {', '.join(roles)}{share_text}."
        )
    for task in tasks:
        if task.metric not in ("accuracy", "exact-match", "mean", ""):
            yield (
                f"{task.task}: planned for the mean of its items' scores, which"
                f" {task.metric} is not."
            )
        if task.draws.planned > 1:
            yield (
                f"{task.task}: {task.draws.planned} draws of each item are included in"
                " the requests, tokens and cost."
            )


def _prompt_notes(
    planned: Sequence[PlannedModel],
    own_shares: Sequence[Mapping[str, float]],
    n_pairs: int,
    aim: Aim,
) -> Iterator[str]:
    """What a reader must know of a plan for several prompts."""
    n_runs = len(planned)
    if n_pairs > 1:
        yield (
            f"{n_runs} runs are compared in {n_pairs} pairs: items needed and detectable"
            f" differences are for {100 * aim.level:g}% over all of them"
            f" ({100 * aim.for_pairs(n_pairs).level:.2f}% a pair)."
        )
    for cell in planned:
        shares = [task_shares[cell.name] for task_shares in own_shares]
        repeated = 1 - sum(shares) / len(shares)
        if repeated > 0:
            yield (
                f"{cell.name}: {100 * repeated:.0f}% of its requests are equal to earlier"
                " ones of the same model, and are sent and counted once."
            )


def _fill_roles(
    configuration: Configuration, tasks: Sequence[Task], sources: Sequence[MeasuredRun]
) -> Configuration:
    """Fill every role that a scorer needs with a model.

    A missing one is that of an earlier run, else "..." for the user to fill in.
    """
    roles = dict(configuration.roles)
    needed = {role for task in tasks for role in task.roles} - {TARGET}
    for role in sorted(needed - roles.keys()):
        named = [
            (source.run.data["configuration"].get("roles") or {}).get(role) or {}
            for source in sources
        ]
        named_spec: Mapping[str, Any] = next(
            (spec for spec in named if "model" in spec), {"model": "..."}
        )
        roles[role] = ModelSpec(named_spec["model"], named_spec.get("arguments", {}))
    return replace(configuration, roles=roles)


def _command_line(
    configuration: Configuration,
    tasks: Sequence[TaskForecast],
    suite_file: SuiteFile | None,
    origins: Mapping[str, Origin],
    *,
    limited: bool,
) -> str:
    """Write the command that makes the planned run.

    Args:
        configuration: the planned evaluation.
        tasks: the forecasts of its tasks.
        suite_file: where settings come from; the command has what it does not say.
        origins: where each setting comes from.
        limited: whether the file has a limit, which the plan leaves out.
    """
    in_file = {
        key
        for key, origin in origins.items()
        if suite_file is not None and origin.source == "file"
    }
    words = ["evalwright", "run"]
    if "tasks" not in in_file:
        words += configuration.tasks
    if suite_file is not None:
        words += _suite_words(suite_file)
    if "models" not in in_file:
        words += _model_words(configuration)
    if "roles" not in in_file:
        words += _role_words(configuration)
    if "dialect" not in in_file:
        for key, setting in configuration.dialect.items():
            flag_values = setting if isinstance(setting, (list, tuple)) else [setting]
            for flag_value in flag_values:
                words += [f"--{key.replace('_', '-')}", _as_typed(flag_value)]
    if "prompts" not in in_file:
        for prompt in configuration.prompts:
            words += ["--prompt", prompt.file or prompt.name]
    if "overrides" not in in_file:
        for key, setting in configuration.overrides.items():
            words += ["-T", f"{key}={_as_typed(setting)}"]
    if limited or any(task.n_used < task.n_total for task in tasks):
        words += ["--limit", str(max(task.n_used for task in tasks))]
    for key in ("seed", "format", "out", "home", "num_fewshot"):
        setting = getattr(configuration, key)
        default = Configuration.__dataclass_fields__[key].default
        if key not in in_file and setting != default:
            words += [f"--{key.replace('_', '-')}", str(setting)]
    return shlex.join(words)


def _suite_words(suite_file: SuiteFile) -> Iterator[str]:
    yield from ("--config", suite_file.file)
    if suite_file.suite:
        yield from ("--suite", suite_file.suite)
    if suite_file.trust_file:
        yield from ("--trust-file", suite_file.trust_file)
    for key, setting in suite_file.model_arguments.items():
        yield from ("-M", f"{key}={_as_typed(setting)}")


def _model_words(configuration: Configuration) -> Iterator[str]:
    for spec in configuration.models:
        yield from ("--model", spec.model)
    for key, setting in configuration.models[0].arguments.items():
        yield from ("-M", f"{key}={_as_typed(setting)}")


def _role_words(configuration: Configuration) -> Iterator[str]:
    panel = configuration.panel
    for role, spec in configuration.roles.items():
        if role in panel.get("judges", ()):
            yield from ("--judge", spec.model)
        else:
            yield from ("--role", f"{role}={spec.model}")
        for key, setting in spec.arguments.items():
            yield from ("-R", f"{role}.{key}={_as_typed(setting)}")
    for key, setting in panel.items():
        if key != "judges":
            yield from ("--panel", f"{key}={_as_typed(setting)}")


def _as_typed(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)
