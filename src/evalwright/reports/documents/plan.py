"""A plan: what each task can detect, what a run would cost, and what every number rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from evalwright.analysis.power.forecasts import (
    Amount,
    Forecast,
    JudgeForecast,
    ModelForecast,
    PartsForecast,
    TaskForecast,
)
from evalwright.reports import document as doc
from evalwright.reports import numbers

UNKNOWN = "unknown"


def plan_document(forecast: Forecast) -> doc.Document:
    """The plan, the command that runs it, and the conclusion."""
    aim = f"{100 * forecast.level:g}% level, {100 * forecast.power:g}% power"
    source = "no request was sent"
    if forecast.pilot is not None:
        source = (
            f"from a pilot of {numbers.counted(forecast.pilot, 'item')} of each task"
        )
    blocks: list[doc.Block] = []
    for task in forecast.tasks:
        blocks += _task(task, forecast)
    if forecast.visible_overall is not None:
        seen = amount(forecast.visible_overall, lambda x: f"{100 * x:.1f}")
        blocks.append(
            doc.Note(
                "Smallest detectable difference of the average over all tasks, same"
                f" items: {seen} points"
            )
        )
    blocks += _requests(forecast)
    blocks += [doc.Notes(forecast.notes)] if forecast.notes else []
    blocks += [
        doc.Note(f"To run it: {forecast.command}"),
        doc.Conclusion(forecast.conclusion),
    ]
    return doc.Document(f"Plan ({aim}); {source}", blocks)


def amount(found: Amount, text: Callable[[float], str]) -> str:
    """An amount with its bounds: "3,925", "1,200 (900 to 1,500)", "0 to 4.8k", "not known"."""
    if found.value is None and found.high is None:
        return UNKNOWN
    ends = None
    if (
        found.low is not None
        and found.high is not None
        and text(found.low) != text(found.high)
    ):
        ends = f"{text(found.low)} to {text(found.high)}"
    if found.value is None:
        return ends or text(found.high or 0.0)
    return f"{text(found.value)} ({ends})" if ends else text(found.value)


def _task(task: TaskForecast, forecast: Forecast) -> Iterator[doc.Block]:
    clusters = (
        f" in {numbers.counted(task.n_clusters, 'cluster')}" if task.n_clusters else ""
    )
    items = numbers.counted(task.n_total, "item")
    yield doc.Heading(f"{task.task}: {items}{clusters}, {task.metric or 'no metric'}")
    columns = doc.columns("*", "~", "Based on~")
    (first, needed, basis), *more = _rows(task, forecast)
    rows: list[Sequence[doc.Content]] = [
        (first, doc.Cell(needed, "warn" if task.enough is False else "good"), basis),
        *more,
    ]
    yield doc.Table(columns, rows, f"What {task.task} can detect")
    if task.designs and task.parts is not None:
        yield from _designs(task, task.parts, forecast)


def _designs(
    task: TaskForecast, parts: PartsForecast, forecast: Forecast
) -> Iterator[doc.Block]:
    """What the difference varies by, and what more items, repeats or prompts would buy."""

    def root(x: float) -> str:
        return f"{100 * math.sqrt(x):.1f}" if task.bounded else f"{math.sqrt(x):.3g}"

    what = {
        "items": parts.item,
        "repeats (one draw of each model)": parts.draw,
        "prompts, item by item": parts.prompt,
        "prompts, all items together": parts.shift,
    }
    yield doc.Table(
        doc.columns(
            "The difference varies with*",
            f"Standard deviation{', points' * task.bounded}~",
            "Based on~",
        ),
        [(name, amount(found, root), found.basis) for name, found in what.items()],
        f"What the difference on {task.task} varies by",
    )
    columns = doc.columns(
        "Items>",
        "Repeats>",
        "Prompts>",
        "Difference known to>",
        "Min. detectable>",
        "Answers per model>",
        "*",
    )
    rows: list[Sequence[doc.Content]] = []
    for one in task.designs:
        said = [
            *(["as run"] if one.made else []),
            *(["cheapest that is enough"] if one.cheapest else []),
            *(["for prompts like these"] if one.prompts > 1 else []),
        ]
        rows.append(
            (
                numbers.count(one.items),
                f"{one.repeats:g}",
                str(one.prompts),
                f"+- {_points(one.half_width, task.bounded)}",
                doc.Cell(
                    _points(one.visible, task.bounded), "good" if one.enough else ""
                ),
                numbers.count(one.answers),
                ", ".join(said),
            )
        )
    yield doc.Table(columns, rows, f"Designs for {task.task}")
    yield doc.Note(_cheapest(task, forecast), "quiet")


def _cheapest(task: TaskForecast, forecast: Forecast) -> str:
    """Which design detects the wished difference with the fewest answers."""
    wanted = _points(forecast.difference, task.bounded)
    one = next((one for one in task.designs if one.cheapest), None)
    if one is None:
        return (
            "No number of items or repeats that can be planned detects a difference of"
            f" {wanted}."
        )
    more = (
        ""
        if one.items <= task.n_total
        else f", which are more items than the {numbers.count(task.n_total)} there are"
    )
    repeats = numbers.counted(round(one.repeats), "repeat")
    return (
        f"The cheapest design that detects {wanted}:"
        f" {numbers.counted(one.items, 'item')} with {repeats} of one prompt,"
        f" {numbers.counted(one.answers, 'answer')} of each model{more}."
    )


def _rows(task: TaskForecast, forecast: Forecast) -> Iterator[tuple[str, str, str]]:
    def size(x: float) -> str:
        return f"{100 * x:.1f}" if task.bounded else f"{x:.3g}"

    def items(x: float) -> str:
        return numbers.count(round(x))

    points = " points" if task.bounded else ""
    need = task.items_for_difference
    narrow = task.items_for_half_width
    yield (
        f"items to detect a difference of {size(forecast.difference)}{points}",
        amount(need, items),
        need.basis,
    )
    yield (
        f"items for an interval of +- {size(forecast.half_width)}{points}",
        amount(narrow, items),
        narrow.basis,
    )
    smallest = (
        f"smallest detectable difference with all {items(task.n_total)}, same items"
    )
    yield smallest, amount(task.visible_paired, size), "the first row's variance"
    yield (
        "the same, on different items",
        amount(task.visible_unpaired, size),
        "the second row's variance",
    )
    yield (
        "half-width of the interval on all items",
        amount(task.half_width, size),
        "the second row's variance",
    )
    yield "score", amount(task.score, size), task.score.basis
    best = task.draws.best
    needed = task.draws.needed
    yield "repeats per item that are worth their cost", amount(best, items), best.basis
    if task.enough is False and needed.basis != best.basis:
        text = "none" if needed.value is None else amount(needed, items)
        yield "repeats needed to make up for too few items", text, needed.basis


def _requests(forecast: Forecast) -> Iterator[doc.Block]:
    models = forecast.models
    titles = ("Requests", "Input tokens", "Output tokens", "Cost", "Time")
    columns = (doc.Column("Model", folds=True, key=True), *map(doc.Column, titles))
    yield doc.Heading("What a run costs")
    rows: list[Sequence[doc.Content]] = [
        (doc.Cell(name, name=True), *_cells(usage)) for name, usage in models.items()
    ]
    rows += [
        (
            doc.Cell(
                judge.model or "(not named)",
                name=True,
                note=f"role {judge.role}, unsure answers only",
            ),
            amount(judge.requests, lambda x: numbers.count(round(x))),
            "",
            "",
            _cost(judge.money),
            "",
        )
        for judge in forecast.judges
    ]
    yield doc.Table(columns, rows, "What a run costs")
    for judge in forecast.judges:
        text = (
            f"{judge.role}: requests: {judge.requests.basis}; cost:"
            f" {judge.money.basis}."
        )
        yield doc.Note(text, "quiet")
    for name, usage in models.items():
        basis = (
            ("input tokens", usage.input_tokens),
            ("output tokens", usage.output_tokens),
            ("cost", usage.money),
            ("time", usage.seconds),
        )
        yield doc.Note(
            f"{name}: {'; '.join(f'{what}: {found.basis}' for what, found in basis)}.",
            "quiet",
        )


def _cells(usage: ModelForecast) -> tuple[str, ...]:
    def tokens(x: float) -> str:
        return numbers.tokens(round(x))

    return (
        amount(usage.requests, lambda x: numbers.count(round(x))),
        amount(usage.input_tokens, tokens),
        amount(usage.output_tokens, tokens),
        _cost(usage.money),
        amount(usage.seconds, numbers.duration),
    )


def _cost(money: Amount) -> str:
    free = money.value == 0 and not money.high
    return "none" if free else amount(money, numbers.money)


# -- the conclusion --------------------------------------------------------------------

_ODDS = {
    0.8: "four times out of five",
    0.9: "nine times out of ten",
    0.5: "every other time",
}


def worded_plan(forecast: Forecast) -> Forecast:
    """The plan with its conclusion, a few sentences, filled in."""
    text = [
        _task_sentence(task, forecast, place == 0)
        for place, task in enumerate(forecast.tasks)
    ]
    overall = forecast.visible_overall
    if overall is not None and overall.value is not None:
        text.append(
            f"The average over the {len(forecast.tasks)} tasks can detect differences"
            f" of {_points(overall.value, True)} or more."
        )
    text += [_model(*pair) for pair in forecast.models.items()]
    text += [_judge(judge) for judge in forecast.judges]
    return replace(forecast, conclusion=" ".join(text))


def _judge(judge: JudgeForecast) -> str:
    """What reading the unsure answers takes."""
    name = judge.model or f"the role '{judge.role}'"
    requests = amount(judge.requests, lambda x: numbers.count(round(x)))
    return (
        f"{name}, for unsure answers only: {requests} requests, cost:"
        f" {_known_or_why(judge.money, _cost(judge.money))}."
    )


def _known_or_why(found: Amount, text: str) -> str:
    """The amount, or that it is unknown and why."""
    return f"{text} ({found.basis})" if text == UNKNOWN and found.basis else text


def _points(value: float, bounded: bool) -> str:
    return f"{100 * value:.1f} points" if bounded else f"{value:.3g}"


def _about(value: float) -> str:
    """A number of items rounded to two digits: "3,900"."""
    if value < 100:
        return f"{value:.0f}"
    scale = 10 ** (len(str(int(value))) - 2)
    return f"{round(value / scale) * scale:,.0f}"


def _task_sentence(task: TaskForecast, forecast: Forecast, first: bool) -> str:
    name = task.task
    needed = task.items_for_difference
    if needed.value is None:
        return f"The number of {name} items needed is unknown: {needed.basis}."
    text = f"about {_about(needed.value)} {numbers.plural(int(needed.value), 'item')}"
    if (
        needed.low is not None
        and needed.high is not None
        and _about(needed.low) != _about(needed.high)
    ):
        text += f" ({_about(needed.low)} to {_about(needed.high)})"
    odds = _ODDS.get(
        round(forecast.power, 6), f"with a probability of {100 * forecast.power:g}%"
    )
    aim = (
        f"To detect a difference of {_points(forecast.difference, task.bounded)} {odds}"
        f" you need {text}"
    )
    there = numbers.count(task.n_total)
    visible = task.visible_paired.value or 0.0
    seen = f"differences of {_points(visible, task.bounded)} or more"
    shown = (
        f"{there}, which can detect"
        f" {'no difference reliably' if task.bounded and visible >= 1 else seen}"
    )
    return (
        f"{aim}; {name} has {shown}."
        if first
        else f"{name} needs {text} and has {shown}."
    )


def _model(name: str, usage: ModelForecast) -> str:
    parts = (
        usage.requests,
        usage.input_tokens,
        usage.output_tokens,
        usage.money,
        usage.seconds,
    )
    requests, into, out, cost, time = map(_known_or_why, parts, _cells(usage))
    return (
        f"{name}: {requests} requests, {into} input tokens, {out} output tokens, cost:"
        f" {cost}, time: {time}."
    )
