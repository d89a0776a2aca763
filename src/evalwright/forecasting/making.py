"""A plan is made: sources are opened or asked, every task is measured against what is wanted, and what it takes is added up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.configuration import Configuration, ModelSpec
from evalwright.core.errors import AbilityError, ConfigurationError, RunError
from evalwright.core.tasks import Task
from evalwright.evaluation import evaluate_configuration, run_blocking
from evalwright.forecasting.drawing import draws_of
from evalwright.forecasting.prompts import read_prompts
from evalwright.forecasting.sentences import conclusion
from evalwright.forecasting.settings import Price, Wanted, check_assumptions
from evalwright.forecasting.spending import Evidence, add_up, total, usage_of
from evalwright.forecasting.spreads import spread_of
from evalwright.metrics.registry import BOUNDED
from evalwright.models.base import Model
from evalwright.planning import ModelLike, Objects, TaskLike, make_plans
from evalwright.runs.forecasts import Amount, Forecast, TaskForecast
from evalwright.runs.measurements import Measured, Pace, judges_share, measure
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.statistics import items_for_difference, items_for_half_width, smallest_visible_difference
from evalwright.tasks.loading import load_tasks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HALF = 0.5
"""A difference seen half of the time is exactly the half width of its interval."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A run with what it measured."""

    run: Run
    tasks: Mapping[str, Measured]
    pace: Pace
    judges: float


@dataclass(frozen=True, slots=True)
class _Asked:
    """A model under test with the tasks as it would get them."""

    spec: ModelSpec
    model: Model
    tasks: Sequence[Task]


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
    """What it takes to see a difference, what the tasks can show at most, and what asking costs, before it is asked.

    difference, half_width: in the unit of scores (0.02 is 2 points). pilot: ask that many items of each task first, by
    `evaluate`: the answers are in the store, so the run that follows does not pay for them again. runs: stored runs of the
    tasks to go by, two of them for how two models differ. assume: see `settings.ASSUMPTIONS`; wins over what was measured.
    prices: by model name, "" for all others. settings: as of `evaluate`; models may be left out where `runs` name them.

    Nothing is asked without a pilot, and no weights are loaded. Raises UsageError.
    """
    wanted, assumed = Wanted(difference, half_width, level, power), dict(assume or {})
    check_assumptions(assumed, wanted)
    if pilot is not None and runs:
        raise ConfigurationError("Go by a pilot or by stored runs, not both: leave out --pilot or --from.")
    if pilot is not None and pilot < 2:
        raise ConfigurationError(f"A pilot needs at least 2 items to show how much they vary, not {pilot}.")
    objects = Objects()
    configuration = _configuration(tasks, models, objects, settings)
    sources = [_source(_opened(run, configuration.out)) for run in _as_list(runs)]
    if not configuration.models:
        configuration = replace(configuration, models=_models_of(sources))
    asked = _asked(configuration, objects)
    _check_prices(prices or {}, [one.model.name for one in asked])
    for task in asked[0].tasks:
        if _bounded(task, sources):
            wanted.check_bounded(task.name)
    if pilot is not None:
        sources = [_source(run) for run in _pilot(configuration, pilot, objects, progress)]
    return _forecast(configuration, asked, sources, wanted, assumed, prices or {}, pilot)


def _configuration(tasks: Any, models: Any, objects: Objects, settings: dict[str, Any]) -> Configuration:
    roles = {role: objects.model(model) for role, model in (settings.pop("roles", None) or {}).items()}
    configuration = Configuration(
        roles=roles,
        tasks=tuple(objects.task(task) for task in _as_list(tasks)),
        models=tuple(objects.model(model) for model in _as_list(models)),
        **settings,
    )
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to plan: name at least one task. `evalwright tasks list` shows them."
        )
    return configuration


# -- sources ------------------------------------------------------------------------------------------------------------


def _pilot(
    configuration: Configuration, pilot: int, objects: Objects, progress: ProgressReporter | None
) -> list[Run]:
    """The first items of the run that follows, really asked. A pilot that was made before, without failures, is read."""
    wanted = replace(configuration, limit=pilot, name="")
    plans = make_plans(wanted, objects)
    made: dict[int, Run] = {}
    for place, planned in enumerate(plans):
        if (planned.folder / RUN_FILE).exists():
            run = open_run(planned.folder)
            if not run.n_failed:
                made[place] = run
    rest = [spec for place, spec in enumerate(wanted.models) if place not in made]
    new: list[Run] = []
    if rest:
        left = replace(wanted, models=tuple(rest))
        new = run_blocking(lambda: evaluate_configuration(left, progress=progress, objects=objects))
    fresh = iter(new)
    return [made[place] if place in made else next(fresh) for place in range(len(wanted.models))]


def _opened(run: Run | str | Path, folder: str) -> Run:
    return run if isinstance(run, Run) else open_run(run, Path(folder))


def _source(run: Run) -> _Source:
    tasks, pace = measure(run)
    answered = sum(float(found.requests.sum()) for found in tasks.values())
    return _Source(run, tasks, pace, judges_share(run, answered))


def _models_of(sources: Sequence[_Source]) -> tuple[ModelSpec, ...]:
    """The models of the runs, as their configurations name them."""
    if not sources:
        raise ConfigurationError(
            "Nobody to ask: name at least one model with --model, for example demo/small."
        )
    specs = {}
    for source in sources:
        for named in source.run.data["configuration"].get("models", ()):
            given: Mapping[str, Any] = {"model": named} if isinstance(named, str) else named
            specs[source.run.model] = ModelSpec(
                str(given.get("model", source.run.model)), given.get("arguments", {}), given.get("label", "")
            )
    return tuple(specs.values())


# -- tasks and models ---------------------------------------------------------------------------------------------------


def _asked(configuration: Configuration, objects: Objects) -> list[_Asked]:
    if not configuration.models:
        raise ConfigurationError("The runs name no model: name one with --model, for example demo/small.")
    loaded: dict[bool, list[Task]] = {}
    out = []
    for spec in configuration.models:
        model = objects.open(spec)
        chat = "chat" in model.abilities
        if chat not in loaded:
            loaded[chat] = _tasks(configuration, chat, objects)
        for task in loaded[chat]:
            missing = task.strategy.needs - model.abilities
            if missing:
                raise AbilityError(
                    f"The task '{task.name}' needs a model that can do: {', '.join(sorted(missing))}; "
                    f"'{model.name}' can do: {', '.join(sorted(model.abilities))}."
                )
        out.append(_Asked(spec, model, loaded[chat]))
    names = [one.model.name for one in out]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"The model '{max(names, key=names.count)}' is named twice.")
    return out


def _tasks(configuration: Configuration, chat: bool, objects: Objects) -> list[Task]:
    out: list[Task] = []
    for name in configuration.tasks:
        if name in objects.tasks:
            out.append(objects.tasks[name])
        else:
            out += load_tasks(
                name, prompt_format=configuration.format, chat=chat, dialect=dict(configuration.dialect)
            )
    for task in out:
        if not len(task.samples):
            raise ConfigurationError(f"The task '{task.name}' has no samples, so there is nothing to plan.")
    return out


def _check_prices(prices: Mapping[str, Price], models: Sequence[str]) -> None:
    from evalwright.core.errors import UnknownName

    for name in prices:
        if name and name not in models:
            raise UnknownName("model in --price", name, models, f"Planned: {', '.join(models)}.")


def _bounded(task: Task, sources: Sequence[_Source]) -> bool:
    return (
        _metric(task, [source.tasks[task.name] for source in sources if task.name in source.tasks]) in BOUNDED
    )


def _metric(task: Task, measured: Sequence[Measured]) -> str:
    return task.metrics[0].kind if task.metrics else measured[0].metric if measured else ""


# -- the plan -----------------------------------------------------------------------------------------------------------


def _forecast(
    configuration: Configuration,
    asked: Sequence[_Asked],
    sources: Sequence[_Source],
    wanted: Wanted,
    assumed: Mapping[str, float],
    prices: Mapping[str, Price],
    pilot: int | None,
) -> Forecast:
    tasks = tuple(
        _task(number, configuration, asked, sources, wanted, assumed, prices)
        for number in range(len(asked[0].tasks))
    )
    overall = _overall(tasks, wanted)
    models = {one.model.name: add_up([task.models[one.model.name] for task in tasks]) for one in asked}
    return Forecast(
        difference=wanted.difference,
        half_width=wanted.half_width,
        level=wanted.level,
        power=wanted.power,
        pilot=pilot,
        pilot_runs=tuple(str(source.run.folder) for source in sources) if pilot is not None else (),
        pilot_failed=sum(source.run.n_failed for source in sources) if pilot is not None else 0,
        tasks=tasks,
        visible_overall=overall,
        models=models,
        notes=tuple(_notes(asked, tasks, sources, pilot)),
        command=_command(configuration, tasks),
        conclusion=conclusion(tasks, overall, models, wanted),
    )


def _task(
    number: int,
    configuration: Configuration,
    asked: Sequence[_Asked],
    sources: Sequence[_Source],
    wanted: Wanted,
    assumed: Mapping[str, float],
    prices: Mapping[str, Price],
) -> TaskForecast:
    task = asked[0].tasks[number]
    measured = [_of_task(source, task.name) for source in sources]
    metric = _metric(task, measured)
    bounded = metric in BOUNDED
    clusters = _clusters(task)
    spread = spread_of(bounded, clusters, measured, assumed, wanted)
    single, paired = _product(spread.single, spread.design), _product(spread.paired, spread.design)
    n_total = len(task.samples)
    need = _items(
        paired, lambda v: items_for_difference(wanted.difference, v, level=wanted.level, power=wanted.power)
    )
    narrow = _items(single, lambda v: items_for_half_width(wanted.half_width, v, level=wanted.level))
    known = [amount.value for amount in (need, narrow) if amount.value is not None]
    n_used = min(n_total, int(max(known))) if known else n_total
    evidence = [_evidence(one, number, configuration.seed, sources, prices) for one in asked]
    usages = {
        one.model.name: usage_of(found, n_used * task.draws, assumed, wanted.level)
        for one, found in zip(asked, evidence, strict=True)
    }
    return TaskForecast(
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
        visible_paired=_visible(paired, n_total, bounded, wanted.level, wanted.power),
        visible_unpaired=_visible(single.times(2.0), n_total, bounded, wanted.level, wanted.power),
        half_width=_visible(single, n_total, bounded, wanted.level, _HALF),
        n_used=n_used,
        draws=draws_of(task, spread, measured, evidence, assumed, wanted),
        models=usages,
    )


def _of_task(source: _Source, task: str) -> Measured:
    """What a run measured on a task. Raises UnknownName with the closest tasks of the run, RunError without scores."""
    if task not in source.tasks:
        source.run.task(task)
        raise RunError(f"The run '{source.run.id}' has no metric on '{task}', so it cannot be planned by.")
    return source.tasks[task]


def _evidence(
    one: _Asked, number: int, seed: int, sources: Sequence[_Source], prices: Mapping[str, Price]
) -> Evidence:
    task = one.tasks[number]
    own = next((source for source in sources if source.run.model == one.model.name), None)
    other = next((source for source in sources if source is not own), None)
    return Evidence(
        one.model,
        read_prompts(task, one.model, seed),
        own.tasks[task.name] if own else None,
        other.tasks[task.name] if other else None,
        own.pace if own else None,
        own.judges if own else 0.0,
        prices.get(one.model.name, prices.get("")),
    )


def _clusters(task: Task) -> NDArray[np.int64] | None:
    import numpy as np

    names: dict[str, int] = {}
    codes = []
    for place, sample in enumerate(task.samples):
        codes.append(names.setdefault(sample.cluster or f"\0{place}", len(names)))
    return np.array(codes, dtype=np.int64) if len(names) < len(codes) else None


def _product(a: Amount, b: Amount) -> Amount:
    """Two amounts multiplied, bounds with bounds."""
    if a.value is None or b.value is None:
        return Amount(None, basis=a.basis if a.value is None else b.basis)
    low, high = (
        None
        if getattr(a, side) is None and getattr(b, side) is None
        else _or(getattr(a, side), a.value) * _or(getattr(b, side), b.value)
        for side in ("low", "high")
    )
    basis = (
        a.basis
        if b.value == 1.0 and b.high in (None, 1.0)
        else f"{a.basis}; design effect {b.value:.2f}, {b.basis}"
    )
    return Amount(a.value * b.value, low, high, basis)


def _or(x: float | None, other: float) -> float:
    return other if x is None else x


def _items(variance: Amount, count: Callable[[float], Any]) -> Amount:
    return variance.through(lambda v: max(1, int(count(v))))


def _visible(variance: Amount, n: int, bounded: bool, level: float, power: float) -> Amount:
    def seen(v: float) -> float:
        found = float(smallest_visible_difference(n, v, level=level, power=power))
        return min(1.0, found) if bounded else found

    return variance.through(seen)


def _overall(tasks: Sequence[TaskForecast], wanted: Wanted) -> Amount | None:
    """The smallest difference that the average over tasks shows, every task counting the same, all items asked.

    The variance of that difference is sum_t (variance_t / n_t) / T^2. None for one task and for tasks in different units.
    """
    if len(tasks) < 2 or not all(task.bounded for task in tasks):
        return None
    parts = [
        _product(task.paired_variance, task.design_effect).times(1 / (task.n_total * len(tasks) ** 2))
        for task in tasks
    ]
    return _visible(total(parts), 1, True, wanted.level, wanted.power)


def _notes(
    asked: Sequence[_Asked], tasks: Sequence[TaskForecast], sources: Sequence[_Source], pilot: int | None
) -> list[str]:
    notes = []
    if pilot is not None:
        requests = sum(int(found.requests.sum()) for source in sources for found in source.tasks.values())
        notes.append(
            f"The pilot's {requests:,} answers are in the store: the run that follows asks only for the rest."
        )
    roles = sorted({role for task in asked[0].tasks for scorer in task.scorers for role in scorer.roles})
    if roles:
        share = max((source.judges for source in sources), default=0.0)
        known = f", about {share:.2g} for each of the model's own" if share else ""
        notes.append(
            f"Requests, tokens and money are those of the models under test; asked besides: {', '.join(roles)}{known}."
        )
    for task in tasks:
        if task.bounded and task.metric not in ("accuracy", "exact-match"):
            notes.append(
                f"{task.task}: planned for the mean score of its items, of which {task.metric} is a relative."
            )
        if task.draws.planned > 1:
            notes.append(f"{task.task}: {task.draws.planned} draws an item are in what asking takes.")
    return notes


def _command(configuration: Configuration, tasks: Sequence[TaskForecast]) -> str:
    words = ["evalwright", "run", *configuration.tasks]
    for spec in configuration.models:
        words += ["--model", spec.model]
    arguments = configuration.models[0].arguments if configuration.models else {}
    for key, value in arguments.items():
        words += ["-M", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    if any(task.n_used < task.n_total for task in tasks):
        words += ["--limit", str(max(task.n_used for task in tasks))]
    if configuration.seed:
        words += ["--seed", str(configuration.seed)]
    return shlex.join(words)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
