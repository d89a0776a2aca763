"""Shows a plan: what each task can show, what asking takes, and what every number rests on; the last sentence says it in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table
from evalwright.reports.terminal import show
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.forecasts import Amount, Forecast, TaskForecast, Usage

UNKNOWN = "not known"


def show_plan(forecast: Forecast, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print a plan to `file` (standard output), `width` cells wide (the terminal's)."""
    show(plan_blocks(forecast), file=file, width=width)


def plan_blocks(forecast: Forecast) -> list[Block]:
    """The page of a plan."""
    aim = f"{100 * forecast.level:g}% level, {100 * forecast.power:g}% power"
    blocks: list[Block] = [Heading(f"Plan ({aim}); {_source(forecast)}")]
    for task in forecast.tasks:
        blocks += _task(task, forecast)
    if forecast.visible_overall is not None:
        seen = amount(forecast.visible_overall, lambda x: f"{100 * x:.1f}")
        text = f"Smallest difference that the average over all tasks shows, same items: {seen} points"
        blocks += [Gap(), Line(text, indent=2, hang=2)]
    blocks += _asking(forecast.models)
    if forecast.notes:
        blocks += [Gap(), *(Line(inert(note), "quiet", hang=2) for note in forecast.notes)]
    return [
        *blocks,
        Gap(),
        Line(f"To ask it: {inert(forecast.command)}", hang=2),
        Gap(),
        Line(inert(forecast.conclusion), "strong"),
    ]


def amount(found: Amount, text: Callable[[float], str]) -> str:
    """An amount with its bounds: "3,925", "1,200 (900 to 1,500)", "0 to 4.8k", "not known"."""
    if found.value is None and found.high is None:
        return UNKNOWN
    ends = None
    if found.low is not None and found.high is not None and text(found.low) != text(found.high):
        ends = f"{text(found.low)} to {text(found.high)}"
    if found.value is None:
        return ends or text(found.high or 0.0)
    return f"{text(found.value)} ({ends})" if ends else text(found.value)


def _source(forecast: Forecast) -> str:
    if forecast.pilot is None:
        return "nothing was asked"
    return f"a pilot of {numbers.counted(forecast.pilot, 'item')} of each task was asked"


def _task(task: TaskForecast, forecast: Forecast) -> list[Block]:
    clusters = f" in {numbers.counted(task.n_clusters, 'cluster')}" if task.n_clusters else ""
    name = f"{inert(task.task)}: {numbers.counted(task.n_total, 'item')}{clusters}, {inert(task.metric or 'no metric')}"
    rows = tuple(_task_rows(task, forecast))
    columns = (Column("", key=True, folds=True), Column("", folds=True), Column("Rests on", folds=True))
    short = task.enough is False
    return [
        Heading(name),
        Table(columns, rows, {(0, 1): "warn" if short else "good"} if rows else {}, indent=2),
    ]


def _task_rows(task: TaskForecast, forecast: Forecast) -> Iterator[tuple[str, str, str]]:
    unit = "points" if task.bounded else "plain"

    def size(x: float) -> str:
        return f"{100 * x:.1f}" if unit == "points" else f"{x:.3g}"

    def items(x: float) -> str:
        return numbers.count(round(x))

    seen, width = size(forecast.difference), size(forecast.half_width)
    points = " points" if task.bounded else ""
    yield (
        f"items to see a difference of {seen}{points}",
        amount(task.items_for_difference, items),
        inert(task.items_for_difference.basis),
    )
    yield (
        f"items for an interval of +- {width}{points}",
        amount(task.items_for_half_width, items),
        inert(task.items_for_half_width.basis),
    )
    yield (
        f"smallest difference that all {items(task.n_total)} show, same items",
        amount(task.visible_paired, size),
        "the first row's variance",
    )
    yield ("the same, on different items", amount(task.visible_unpaired, size), "the second row's variance")
    yield ("half width of the interval on all", amount(task.half_width, size), "the second row's variance")
    yield ("score", amount(task.score, size), inert(task.score.basis))
    yield ("draws an item worth their price", amount(task.draws.best, items), inert(task.draws.best.basis))
    if task.enough is False and task.draws.needed.basis != task.draws.best.basis:
        needed = task.draws.needed
        text = "none" if needed.value is None else amount(needed, items)
        yield ("draws that make up for items", text, inert(needed.basis))


def _asking(models: Mapping[str, Usage]) -> list[Block]:
    columns = (
        Column("Model", folds=True, key=True),
        Column("Requests"),
        Column("Tokens in"),
        Column("Tokens out"),
        Column("Money"),
        Column("Time"),
    )
    rows = tuple((inert(name), *_usage(usage)) for name, usage in models.items())
    blocks: list[Block] = [Heading("Asking it takes"), Table(columns, rows, {}, indent=2), Gap()]
    for name, usage in models.items():
        basis = (
            ("tokens in", usage.input_tokens),
            ("tokens out", usage.output_tokens),
            ("money", usage.money),
            ("time", usage.seconds),
        )
        text = "; ".join(f"{what}: {inert(found.basis)}" for what, found in basis)
        blocks.append(Line(f"{inert(name)}: {text}.", "quiet", indent=2, hang=2))
    return blocks


def _usage(usage: Usage) -> tuple[str, ...]:
    def tokens(x: float) -> str:
        return numbers.tokens(round(x))

    money = "none" if usage.money.value == 0 and not usage.money.high else amount(usage.money, numbers.money)
    return (
        amount(usage.requests, lambda x: numbers.count(round(x))),
        amount(usage.input_tokens, tokens),
        amount(usage.output_tokens, tokens),
        money,
        amount(usage.seconds, numbers.duration),
    )
