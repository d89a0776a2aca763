"""A plan is made: sources are opened or asked, every task is measured against what is wanted, and what it takes is added up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.analysis.forecasts import Amount, Forecast, TaskForecast, Usage
from evalwright.analysis.power.draws import draws_of
from evalwright.analysis.power.opening import (
    Asked,
    MeasuredRun,
    as_list,
    configuration_of,
    measured_run,
    models_asked,
    models_of,
    opened,
    pilot_runs,
)
from evalwright.analysis.power.prompts import Prompts, read_prompts
from evalwright.analysis.power.settings import Wanted, check_assumptions
from evalwright.analysis.power.spending import Evidence, add_up, known_price, total, usage_of
from evalwright.analysis.power.variances import Variances, variances_of
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.tasks import Task
from evalwright.engine.store import FILE as STORE_FILE
from evalwright.engine.store import Store
from evalwright.evaluation.configuration import Configuration, home_folder
from evalwright.evaluation.planning import ModelLike, Objects, TaskLike
from evalwright.metrics.registry import BOUNDED
from evalwright.models.remote.prices import Price
from evalwright.runs.measurements import Measured
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run
from evalwright.statistics import items_for_difference, items_for_half_width, smallest_visible_difference
from evalwright.statistics.power import least_visible_difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HALF = 0.5
"""A difference seen half of the time is exactly the half width of its interval."""


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
    prices: by model name, "" for all others; else those of the table of prices. settings: as of `evaluate`; models may be left out where `runs` name them.

    Nothing is asked without a pilot, and no weights are loaded. Raises UsageError.
    """
    wanted, assumed = Wanted(difference, half_width, level, power), dict(assume or {})
    check_assumptions(assumed, wanted)
    if pilot is not None and runs:
        raise ConfigurationError("Go by a pilot or by stored runs, not both: leave out --pilot or --from.")
    if pilot is not None and pilot < 2:
        raise ConfigurationError(f"A pilot needs at least 2 items to show how much they vary, not {pilot}.")
    objects = Objects()
    configuration = configuration_of(tasks, models, objects, settings)
    sources = [measured_run(opened(run, configuration.out)) for run in as_list(runs)]
    if not configuration.models:
        configuration = replace(configuration, models=models_of(sources))
    asked = models_asked(configuration, objects)
    _check_prices(prices or {}, [one.model.name for one in asked])
    for task in asked[0].tasks:
        if _bounded(task, sources):
            wanted.check_bounded(task.name)
    if pilot is not None:
        sources = [measured_run(run) for run in pilot_runs(configuration, pilot, objects, progress)]
    return _forecast(configuration, asked, sources, wanted, assumed, prices or {}, pilot)


def _check_prices(prices: Mapping[str, Price], models: Sequence[str]) -> None:
    for name in prices:
        if name and name not in models:
            raise UnknownName("model in --price", name, models, f"Planned: {', '.join(models)}.")


def _bounded(task: Task, sources: Sequence[MeasuredRun]) -> bool:
    return (
        _metric(task, [source.tasks[task.name] for source in sources if task.name in source.tasks]) in BOUNDED
    )


def _metric(task: Task, measured: Sequence[Measured]) -> str:
    return task.metrics[0].kind if task.metrics else measured[0].metric if measured else ""


# -- the plan -----------------------------------------------------------------------------------------------------------


def _forecast(
    configuration: Configuration,
    asked: Sequence[Asked],
    sources: Sequence[MeasuredRun],
    wanted: Wanted,
    assumed: Mapping[str, float],
    prices: Mapping[str, Price],
    pilot: int | None,
) -> Forecast:
    with _known(home_folder(configuration.home)) as known:
        read = [
            [read_prompts(task, one.model, configuration.seed, known) for task in one.tasks] for one in asked
        ]
    tasks = tuple(
        _task(number, asked, [prompts[number] for prompts in read], sources, wanted, assumed, prices)
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
        notes=tuple(_notes(asked, tasks, models, sources, pilot)),
        command=_command(configuration, tasks),
    )


@contextmanager
def _known(home: Path) -> Iterator[Callable[[bytes], bool]]:
    """Looks requests up in the store by their keys; a store that is not there yet is not made."""
    if not (home / STORE_FILE).is_file():
        yield lambda key: False
        return
    with Store.open(home) as store:
        yield lambda key: store.get(key) is not None


def _task(
    number: int,
    asked: Sequence[Asked],
    read: Sequence[Prompts],
    sources: Sequence[MeasuredRun],
    wanted: Wanted,
    assumed: Mapping[str, float],
    prices: Mapping[str, Price],
) -> TaskForecast:
    task = asked[0].tasks[number]
    measured = [_of_task(source, task.name) for source in sources]
    metric = _metric(task, measured)
    bounded = metric in BOUNDED
    clusters = _clusters(task)
    spread = variances_of(bounded, clusters, measured, assumed, wanted)
    single, paired = _product(spread.single, spread.design), _product(spread.paired, spread.design)
    n_total = len(task.samples)
    need = _items(
        paired, lambda v: items_for_difference(wanted.difference, v, level=wanted.level, power=wanted.power)
    )
    narrow = _items(single, lambda v: items_for_half_width(wanted.half_width, v, level=wanted.level))
    known = [amount.value for amount in (need, narrow) if amount.value is not None]
    n_used = min(n_total, int(max(known))) if known else n_total
    evidence = [
        _evidence(one, number, prompts, sources, prices) for one, prompts in zip(asked, read, strict=True)
    ]
    usages = {
        one.model.name: usage_of(found, n_used * task.draws, n_total * task.draws, assumed, wanted.level)
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
        visible_paired=_paired(paired, spread, n_total, bounded, wanted),
        visible_unpaired=_visible(single.times(2.0), n_total, bounded, wanted.level, wanted.power),
        half_width=_visible(single, n_total, bounded, wanted.level, _HALF),
        n_used=n_used,
        draws=draws_of(task, spread, measured, evidence, assumed, wanted),
        models=usages,
    )


def _of_task(source: MeasuredRun, task: str) -> Measured:
    """What a run measured on a task. Raises UnknownName with the closest tasks of the run, RunError without scores."""
    if task not in source.tasks:
        source.run.task(task)
        raise RunError(f"The run '{source.run.id}' has no metric on '{task}', so it cannot be planned by.")
    return source.tasks[task]


def _evidence(
    one: Asked, number: int, prompts: Prompts, sources: Sequence[MeasuredRun], prices: Mapping[str, Price]
) -> Evidence:
    task = one.tasks[number]
    own = next((source for source in sources if source.run.model == one.model.name), None)
    other = next((source for source in sources if source is not own), None)
    return Evidence(
        one.model,
        prompts,
        own.tasks[task.name] if own else None,
        other.tasks[task.name] if other else None,
        own.pace if own else None,
        own.judges if own else 0.0,
        prices.get(one.model.name, prices.get("")) or known_price(one.model),
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


def _paired(variance: Amount, spread: Variances, n: int, bounded: bool, wanted: Wanted) -> Amount:
    """The smallest difference of two models on the same n items; of right-or-wrong ones not less than any could show."""
    seen = _visible(variance, n, bounded, wanted.level, wanted.power)
    if not spread.counts:
        return seen
    design = spread.design.value or 1.0
    least = least_visible_difference(n, design=design, level=wanted.level, power=wanted.power)
    return seen.through(lambda x: max(x, least))


def _notes(
    asked: Sequence[Asked],
    tasks: Sequence[TaskForecast],
    models: Mapping[str, Usage],
    sources: Sequence[MeasuredRun],
    pilot: int | None,
) -> Iterator[str]:
    if pilot is not None:
        answers = sum(int(found.requests.sum()) for source in sources for found in source.tasks.values())
        yield f"The pilot's {answers:,} answers are in the store: the run that follows requests only the rest."
    elif stored := sum(usage.stored or 0 for usage in models.values()):
        yield f"The store has {stored:,} of the answers to all items: they are neither requested nor paid for again."
    roles = sorted({role for task in asked[0].tasks for scorer in task.scorers for role in scorer.roles})
    if roles:
        share = max((source.judges for source in sources), default=0.0)
        known = f", about {share:.2g} for each of the model's own" if share else ""
        yield (
            f"Requests, tokens and money are those of the models under test. Not counted are the other roles: {', '.join(roles)}{known}."
        )
    for task in tasks:
        if task.metric not in ("accuracy", "exact-match", "mean", ""):
            yield f"{task.task}: planned in the unit of its items' scores and for their mean, which {task.metric} is not."
        if task.draws.planned > 1:
            yield f"{task.task}: {task.draws.planned} draws of each item are included in the requests, tokens and cost."


def _command(configuration: Configuration, tasks: Sequence[TaskForecast]) -> str:
    """What asks for what was planned, as a person would type it."""
    words = ["evalwright", "run", *configuration.tasks]
    for spec in configuration.models:
        words += ["--model", spec.model]
    for key, value in configuration.models[0].arguments.items():
        words += ["-M", f"{key}={_typed(value)}"]
    for role, spec in configuration.roles.items():
        words += ["--role", f"{role}={spec.model}"]
        for key, value in spec.arguments.items():
            words += ["-R", f"{role}.{key}={_typed(value)}"]
    for key, value in configuration.dialect.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [f"--{key.replace('_', '-')}", _typed(one)]
    if any(task.n_used < task.n_total for task in tasks):
        words += ["--limit", str(max(task.n_used for task in tasks))]
    for key in ("seed", "format", "out", "home"):
        value = getattr(configuration, key)
        if value != Configuration.__dataclass_fields__[key].default:
            words += [f"--{key}", str(value)]
    return shlex.join(words)


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
