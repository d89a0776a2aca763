"""Columns of a board on speed, memory, cost, cut-off dates and rewrites, of what runs record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from evalwright.analysis.contamination.dates import read_cut_off
from evalwright.analysis.contamination.report import (
    Control,
    CutOff,
    TaskItems,
    compare_by_cut_off,
    drops_over_all_kinds,
    find_date_key,
    find_rewrites,
    measure_drops,
    read_items,
)
from evalwright.analysis.extra_columns import (
    ExtraColumn,
    MeasuredModel,
    column_of_estimates,
    fact_column,
    has_value,
)
from evalwright.analysis.factual import STRESS
from evalwright.analysis.words import listed
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.runs.reader import Run
from evalwright.runs.scores import NAN, cluster_code, hashed, read_rows
from evalwright.statistics import Estimate, macro_average, macro_difference
from evalwright.statistics.ratios import ratio_of_totals

GIBIBYTE = 2**30

WITHOUT_SAMPLES = "the run was published without its samples"


def make_extra_columns(
    names: Sequence[str], models: Sequence[MeasuredModel]
) -> tuple[ExtraColumn, ...]:
    """Make columns, without those that are empty.

    Args:
        names: keys of `BUILDERS`, or "fact:KEY" for a fact.
        models: the board's runs in the order of its rows.
    """
    columns: list[ExtraColumn] = []
    for name in names:
        kind, _, key = name.partition(":")
        if kind == "fact":
            columns.append(fact_column(key, models))
        else:
            columns.extend(BUILDERS[name](models))
    return tuple(column for column in columns if not column.is_empty)


def _estimates_by_run(
    estimate_run: Callable[[Run], Estimate | str],
    models: Sequence[MeasuredModel],
    **fields: Any,
) -> ExtraColumn:
    """Make a column of what each model's run measures, or of the reasons why it does not."""
    return column_of_estimates([estimate_run(model.run) for model in models], **fields)


def _texts_by_run(
    describe_run: Callable[[Run], str], models: Sequence[MeasuredModel], **fields: Any
) -> ExtraColumn:
    """Make a column of a text about each model's run."""
    return ExtraColumn(
        texts=tuple(describe_run(model.run) for model in models), **fields
    )


# -- speed, memory, cost -----------------------------------------------------------------


def speed_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of the speed: output tokens per second."""
    return [
        _estimates_by_run(
            _speed,
            models,
            name="tokens_per_second",
            title="Tokens per second",
            lower_is_better=False,
            note=(
                "Tokens per second are output tokens divided by the time in which a run's"
                " machine made the answers; where a record has only the time of each answer,"
                " they are divided by the sum of these times, with an interval over answers."
            ),
        )
    ]


def _speed(run: Run) -> Estimate | str:
    hardware = run.data.get("hardware")
    throughput = hardware.get("throughput") if isinstance(hardware, Mapping) else None
    if isinstance(throughput, Mapping):
        speed = _positive(throughput.get("output_tokens_per_second"))
        answers = int(_positive(throughput.get("answers")) or 0)
        if speed:
            return _measured_once(speed, answers)
    if "imported" not in run.data["configuration"]:
        # Latencies of ours have the time that a request waited for its batch.
        return "no answer was made in the run: all came from the store"
    if run.has_published_scores:
        return WITHOUT_SAMPLES
    tokens, seconds = _tokens_and_seconds(run)
    if not tokens:
        return "not recorded"
    return ratio_of_totals(tokens, seconds)


def _measured_once(number: float, n: int) -> Estimate:
    over = f" over {n:,} answers" if n else ""
    return Estimate(
        number, NAN, NAN, 0.95, n, 0, None, None, f"no interval: measured once{over}"
    )


def _tokens_and_seconds(run: Run) -> tuple[list[float], list[float]]:
    """Return the output tokens and the seconds of each answer that records both."""
    tokens: list[float] = []
    seconds: list[float] = []
    for row in run.score_rows():
        latencies = (row.get("timing") or {}).get("latency") or ()
        responses = row.get("responses") or ()
        usages = [response.get("usage") or {} for response in responses]
        n_tokens = sum(_positive(usage.get("output_tokens")) or 0 for usage in usages)
        total_seconds = sum(_positive(latency) or 0 for latency in latencies)
        if n_tokens and total_seconds:
            tokens.append(n_tokens)
            seconds.append(total_seconds)
    return tokens, seconds


def memory_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the columns of the peak memory of local models: the process's, and the GPU's."""
    kinds = (
        ("gpu_peak_bytes", "gpu_memory", "Peak GPU memory"),
        ("peak_rss_bytes", "memory", "Peak memory"),
    )
    return [
        _estimates_by_run(
            partial(_memory, key=key),
            models,
            name=name,
            title=title,
            measure="GiB",
            lower_is_better=True,
            note=f"{title} is that of the run's process, of models that ran on its machine.",
        )
        for key, name, title in kinds
    ]


def _memory(run: Run, key: str) -> Estimate | str:
    hardware = run.data.get("hardware")
    if not isinstance(hardware, Mapping):
        return "not recorded"
    model = hardware.get("model")
    if isinstance(model, Mapping) and model.get("local") is False:
        return "a remote model"
    memory = hardware.get("memory")
    n_bytes = _positive(memory.get(key)) if isinstance(memory, Mapping) else None
    if not n_bytes:
        return "not recorded"
    return _measured_once(n_bytes / GIBIBYTE, 0)


def _positive(recorded: Any) -> float | None:
    is_number = isinstance(recorded, int | float) and not isinstance(recorded, bool)
    return float(recorded) if is_number and 0 < recorded < 1e18 else None


def cost_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of what a right answer cost."""
    return [
        _estimates_by_run(
            cost_of_right_answer,
            models,
            name="cost_per_correct",
            title="Cost per correct answer",
            measure="US dollars",
            lower_is_better=True,
            note=(
                "The cost per correct answer is what all answers cost, divided by the number"
                " of correct ones, without stress questions; its interval is over questions."
            ),
        )
    ]


@dataclass(slots=True)
class _Costs:
    """Cost and score of each item of one task, added up over its draws."""

    scorer: str
    costs: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    clusters: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        item_key = str(row["id"])
        score = row["scores"].get(self.scorer, {}).get("value")
        costs = [response.get("cost") for response in row.get("responses") or ()]
        is_priced = bool(costs) and None not in costs
        cost = sum(map(float, costs)) if is_priced else NAN
        self.costs[item_key] = self.costs.get(item_key, 0.0) + cost
        self.scores[item_key] = self.scores.get(item_key, 0.0) + (
            NAN if score is None else float(score)
        )
        cluster = str(row.get("cluster") or "")
        self.clusters[item_key] = cluster_code(
            cluster, hashed(f"{row['task']}\0{item_key}")
        )


def cost_of_right_answer(run: Run) -> Estimate | str:
    """Estimate the US dollars that a right answer cost, or say why they are unknown."""
    if run.has_published_scores:
        return WITHOUT_SAMPLES
    if run.cost is None:
        return "the price of some answers is not known"
    costs_by_task = {
        name: _Costs(scorer) for name, scorer in accuracy_scorers(run).items()
    }
    if not costs_by_task:
        return "no task has an accuracy"
    read_rows(run, costs_by_task, run.score_rows())
    collected = costs_by_task.values()
    estimate = ratio_of_totals(
        [cost for costs in collected for cost in costs.costs.values()],
        [score for costs in collected for score in costs.scores.values()],
        clusters=np.array(
            [code for costs in collected for code in costs.clusters.values()], np.int64
        ),
    )
    if not estimate.n:
        return "the price of its answers is not known"
    if not has_value(estimate):
        return "no answer was correct"
    return estimate


def accuracy_scorers(run: Run) -> dict[str, str]:
    """Return the scorer of each task whose main metric is an accuracy, without stress tasks."""
    stress = {
        task["name"]
        for task in run.data["tasks"]
        if any(scorer["name"] == STRESS for scorer in task["scorers"])
    }
    return {
        task.name: task.main.scorer
        for task in run.tasks
        if task.main and task.main.kind == "accuracy" and task.name not in stress
    }


def hardware_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of the processor or card that local models ran on."""
    return [
        _texts_by_run(
            _machine,
            models,
            name="machine",
            title="Machine",
        )
    ]


def _machine(run: Run) -> str:
    hardware = run.data.get("hardware")
    if not isinstance(hardware, Mapping):
        return ""
    model = hardware.get("model")
    machine = hardware.get("machine")
    if not isinstance(model, Mapping) or not isinstance(machine, Mapping):
        return ""
    if model.get("local") is not True:
        return "remote"
    gpus = machine.get("gpus")
    names = [
        str(gpu["name"])
        for gpu in (gpus if isinstance(gpus, list) else ())
        if isinstance(gpu, Mapping) and gpu.get("name")
    ]
    cpu = machine.get("cpu")
    if model.get("device") == "cpu" or not names:
        return cpu if isinstance(cpu, str) else ""
    return ", ".join(dict.fromkeys(names))


# -- cut-off dates and rewrites ----------------------------------------------------------


def cutoff_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the columns of the accuracy on questions from before and after a model's cut-off."""
    sides = [_cutoff_sides(model) for model in models]
    keys = dict.fromkeys(key for side in sides for key in side.keys)
    note = (
        f"A question is dated by {listed(list(keys))} and compared with the fact 'cutoff'"
        " of the model; `evalwright check contamination` tests the difference."
    )
    return [
        column_of_estimates(
            [side.before for side in sides],
            name="accuracy_before_cutoff",
            title="Before cut-off",
            unit="points",
            lower_is_better=False,
            note=note,
        ),
        column_of_estimates(
            [side.after for side in sides],
            name="accuracy_after_cutoff",
            title="After cut-off",
            unit="points",
            lower_is_better=False,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _CutOffSides:
    before: Estimate | str
    after: Estimate | str
    keys: tuple[str, ...] = ()


def _cutoff_sides(model: MeasuredModel) -> _CutOffSides:
    """Average the accuracy of tasks on both sides of a model's cut-off."""
    written = model.facts.get("cutoff")
    if not isinstance(written, str):
        return _CutOffSides("no cut-off is known", "no cut-off is known")
    if model.run.has_published_scores:
        reason = WITHOUT_SAMPLES
        return _CutOffSides(reason, reason)
    try:
        divided = _divide_tasks(model.run, Control(read_cut_off(written)))
    except (ConfigurationError, RunError, ValueError) as error:
        return _CutOffSides(str(error), str(error))
    compared = [
        report for report in divided if report.before and report.after
    ] or divided
    keys = tuple(dict.fromkeys(report.key for report in compared))
    befores = [report.before for report in compared if report.before]
    afters = [report.after for report in compared if report.after]
    return _CutOffSides(
        _average(befores) if befores else "no question from before the cut-off",
        _average(afters) if afters else "no question from after the cut-off",
        keys,
    )


def _divide_tasks(run: Run, control: Control) -> list[CutOff]:
    accuracy_tasks = accuracy_scorers(run)
    reports = [
        _divide(items, control)
        for name, items in read_items(run).items()
        if name in accuracy_tasks
    ]
    return [report for report in reports if report is not None]


def _divide(items: TaskItems, control: Control) -> CutOff | None:
    key = find_date_key(items, control)
    return compare_by_cut_off(items, Control(control.cut_off, key))


def _average(estimates: Sequence[Estimate]) -> Estimate:
    if len(estimates) == 1:
        return estimates[0]
    return macro_average(estimates, value_range=(0.0, 1.0))


def rewrite_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of the paired drop from original questions to their rewrites."""
    return [
        _estimates_by_run(
            _drop,
            models,
            name="drop_on_rewrites",
            title="Drop on rewrites",
            unit="points",
            lower_is_better=True,
            note=(
                "The drop on rewrites is a question's score minus the mean score of its"
                " rewrites, paired; `evalwright check contamination` compares it with"
                " control items."
            ),
        )
    ]


def _drop(run: Run) -> Estimate | str:
    if run.has_published_scores:
        return WITHOUT_SAMPLES
    try:
        task_items = list(read_items(run).values())
        drops = [
            drop.drop
            for items in task_items
            for drop in drops_over_all_kinds(
                measure_drops(items, find_rewrites(items, task_items), Control())
            )
        ]
    except (RunError, ValueError) as error:
        return str(error)
    if not drops:
        return "the run has no rewrites of its questions"
    if len(drops) == 1:
        (drop,) = drops
        return Estimate(
            drop.difference, drop.low, drop.high, drop.level, drop.n, drop.n_missing,
            drop.n_clusters, drop.standard_error, drop.test,
        )  # fmt: skip
    total = macro_difference(drops)
    n_missing = sum(drop.n_missing for drop in drops)
    return Estimate(
        total.difference, total.low, total.high, total.level, total.n, n_missing,
        None, total.standard_error, f"mean of {total.n_tasks} tasks",
    )  # fmt: skip


# -- Korean benchmarks -------------------------------------------------------------------


LANGUAGE_LABEL = "language_penalizer_average"
"""Label of the metric that says how much of the answers is in the language asked for."""


def language_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of the share of answers' text that is in the language asked for."""
    return [
        _estimates_by_run(
            _language_share,
            models,
            name="language_share",
            title="In the language",
            unit="points",
            lower_is_better=False,
            note=(
                "In the language: how much of the answers is in the language asked for, the"
                " mean over tasks that record it."
            ),
        )
    ]


def _language_share(run: Run) -> Estimate | str:
    estimates = [
        metric.estimate
        for task in run.tasks
        for metric in task.metrics
        if metric.label == LANGUAGE_LABEL and has_value(metric.estimate)
    ]
    return _average(estimates) if estimates else "not recorded"


def scaling_columns(models: Sequence[MeasuredModel]) -> list[ExtraColumn]:
    """Make the column of how answers were chosen at test time: "best_of_n", "self-consistency"."""
    return [
        _texts_by_run(
            _scaling,
            models,
            name="scaling",
            title="Scaling",
            note=(
                "Scaling names how one of several answers was chosen at test time; models"
                " without it gave a single answer."
            ),
        )
    ]


def _scaling(run: Run) -> str:
    labels = dict.fromkeys(
        _scaling_of_task(task.get("definition") or {}) for task in run.data["tasks"]
    )
    return ", ".join(label for label in labels if label)


def _scaling_of_task(definition: Mapping[str, Any]) -> str:
    strategy = definition.get("strategy")
    if isinstance(strategy, Mapping):
        options = strategy.get("options")
        number = options.get("n") if isinstance(options, Mapping) else None
        return f"{strategy.get('name')}{f' ({number})' if number else ''}"
    for holder_key, key in (
        ("info", "scaling_method_name"),
        ("call", "scaling_method_name"),
        ("call", "scaling"),
    ):
        holder = definition.get(holder_key)
        name = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(name, str) and name:
            return name[:80]
    return ""


BUILDERS: Mapping[str, Callable[[Sequence[MeasuredModel]], list[ExtraColumn]]] = {
    "cutoff": cutoff_columns,
    "rewrites": rewrite_columns,
    "machine": hardware_columns,
    "speed": speed_columns,
    "memory": memory_columns,
    "cost": cost_columns,
    "language": language_columns,
    "scaling": scaling_columns,
}
"""What makes the columns that a preset names."""
