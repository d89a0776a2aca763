"""Plans as documents: what each task can detect, what a run costs, and the basis of both."""

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
    """Build the plan, the command that runs it, and the conclusion."""
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
        detectable = amount(
            forecast.visible_overall, lambda share: f"{100 * share:.1f}"
        )
        blocks.append(
            doc.Note(
                "Smallest detectable difference of the average over all tasks, same"
                f" items: {detectable} points"
            )
        )
    blocks += _requests(forecast)
    blocks += [doc.Notes(forecast.notes)] if forecast.notes else []
    blocks += [doc.Note(text) for text in _list_shortfalls(forecast)]
    blocks += [
        doc.Note(f"To run it: {forecast.command}"),
        doc.Conclusion(forecast.conclusion),
    ]
    return doc.Document(f"Plan ({aim}); {source}", blocks)


def amount(quantity: Amount, text: Callable[[float], str]) -> str:
    """Format a quantity with its bounds: "3,925", "900 (800 to 950)", "0 to 4.8k" or "unknown"."""
    if quantity.value is None and quantity.high is None:
        return UNKNOWN
    bounds = None
    if (
        quantity.low is not None
        and quantity.high is not None
        and text(quantity.low) != text(quantity.high)
    ):
        bounds = f"{text(quantity.low)} to {text(quantity.high)}"
    if quantity.value is None:
        return bounds or text(quantity.high or 0.0)
    return f"{text(quantity.value)} ({bounds})" if bounds else text(quantity.value)


def _task(task: TaskForecast, forecast: Forecast) -> Iterator[doc.Block]:
    clusters = (
        f" in {numbers.counted(task.n_clusters, 'cluster')}" if task.n_clusters else ""
    )
    n_items = numbers.counted(task.n_total, "item")
    yield doc.Heading(f"{task.task}: {n_items}{clusters}, {task.metric or 'no metric'}")
    columns = doc.columns("*", "~", "Based on~")
    (first, needed, basis), *other_rows = _rows(task, forecast)
    rows: list[Sequence[doc.Content]] = [
        (first, doc.Cell(needed, "warn" if task.enough is False else "good"), basis),
        *other_rows,
    ]
    yield doc.Table(columns, rows, f"What {task.task} can detect")
    if task.designs and task.parts is not None:
        yield from _designs(task, task.parts, forecast)


def _designs(
    task: TaskForecast, variances: PartsForecast, forecast: Forecast
) -> Iterator[doc.Block]:
    """Show the parts of the difference's variance, and what more items, repeats or prompts gain."""

    def root(variance: float) -> str:
        return (
            f"{100 * math.sqrt(variance):.1f}"
            if task.bounded
            else f"{math.sqrt(variance):.3g}"
        )

    run_word = "run" if variances.compares_prompts else "model"
    sources = {
        "items": variances.item,
        f"repeats (one draw of each {run_word})": variances.draw,
        "prompts, item by item": variances.prompt,
        "prompts, all items together": variances.shift,
    }
    yield doc.Table(
        doc.columns(
            "The difference varies with*",
            f"Standard deviation{', points' * task.bounded}~",
            "Based on~",
        ),
        [
            (name, amount(quantity, root), quantity.basis)
            for name, quantity in sources.items()
        ],
        f"What the difference on {task.task} varies by",
    )
    columns = doc.columns(
        "Items>",
        "Repeats>",
        "Prompts>",
        "Difference known to>",
        "Min. detectable>",
        f"Answers per {run_word}>",
        "Cost>",
        "*",
    )
    rows: list[Sequence[doc.Content]] = []
    for design in task.designs:
        remarks = [
            *(["as run"] if design.made else []),
            *(["cheapest that is enough"] if design.cheapest else []),
            *(["for prompts like these"] if design.prompts > 1 else []),
        ]
        rows.append(
            (
                numbers.count(design.items),
                f"{design.repeats:g}",
                str(design.prompts),
                f"+- {_points(design.half_width, task.bounded)}",
                doc.Cell(
                    _points(design.visible, task.bounded),
                    "good" if design.enough else "",
                ),
                numbers.count(design.answers),
                UNKNOWN if design.money is None else _cost(design.money),
                ", ".join(remarks),
            )
        )
    yield doc.Table(columns, rows, f"Designs for {task.task}")
    yield doc.Note(_cheapest(task, forecast, run_word), "quiet")


def _cheapest(task: TaskForecast, forecast: Forecast, run_word: str) -> str:
    """Say which design detects the difference with the fewest answers, and what costs are of."""
    difference = _points(forecast.difference, task.bounded)
    cheapest = next((cheapest for cheapest in task.designs if cheapest.cheapest), None)
    if cheapest is None:
        return (
            "No number of items or repeats that can be planned detects a difference of"
            f" {difference}."
        )
    excess = (
        ""
        if cheapest.items <= task.n_total
        else f", which are more items than the {numbers.count(task.n_total)} there are"
    )
    repeats = numbers.counted(round(cheapest.repeats), "repeat")
    return (
        f"The cheapest design that detects {difference}:"
        f" {numbers.counted(cheapest.items, 'item')} with {repeats} of one prompt,"
        f" {numbers.counted(cheapest.answers, 'answer')} of each {run_word}{excess}."
        f" {_cost_scope(forecast)}"
    )


def _cost_scope(forecast: Forecast) -> str:
    """What the costs of designs are the sum of."""
    known_roles = [judge.role for judge in forecast.judges if judge.is_known]
    unknown_roles = [judge.role for judge in forecast.judges if not judge.is_known]
    runs = _all_runs(forecast)
    return (
        f"Costs are of {runs}{_with_roles(known_roles)}{_without_roles(unknown_roles)}."
    )


def _all_runs(forecast: Forecast) -> str:
    """ "all 4 runs", or "the run" for a single one."""
    n_runs = len(forecast.models)
    return "the run" if n_runs == 1 else f"all {numbers.count(n_runs)} runs"


def _with_roles(roles: Sequence[str]) -> str:
    return f", {_the_roles(roles)} included" if roles else ""


def _without_roles(roles: Sequence[str]) -> str:
    return f", without {_the_roles(roles)}" if roles else ""


def _the_roles(roles: Sequence[str]) -> str:
    """ "the judge", "the judge and the judge-2"."""
    named = [f"the {role}" for role in roles]
    if len(named) == 1:
        return named[0]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _list_shortfalls(forecast: Forecast) -> Iterator[str]:
    """Say for each task with too few items that costs are of these, and what enough would cost."""
    unknown_roles = [judge.role for judge in forecast.judges if not judge.is_known]
    for task in forecast.tasks:
        if task.enough is not False:
            continue
        needed = round(task.items_for_difference.value or 0)
        cost = task.money_per_item.times(needed)
        price = f"; these would cost {_cost(cost)}{_without_roles(unknown_roles)}"
        is_priced = cost.is_known and bool(cost.most)
        yield (
            "What a run costs, and the command below, are for the"
            f" {numbers.counted(task.n_total, 'item')} that {task.task} has, not for"
            f" the {numbers.counted(needed, 'item')} needed{price if is_priced else ''}."
        )


def _rows(task: TaskForecast, forecast: Forecast) -> Iterator[tuple[str, str, str]]:
    def size(number: float) -> str:
        return f"{100 * number:.1f}" if task.bounded else f"{number:.3g}"

    def count_text(number: float) -> str:
        return numbers.count(round(number))

    points = " points" if task.bounded else ""
    need = task.items_for_difference
    narrow = task.items_for_half_width
    yield (
        f"items to detect a difference of {size(forecast.difference)}{points}",
        amount(need, count_text),
        need.basis,
    )
    yield (
        f"items for an interval of +- {size(forecast.half_width)}{points}",
        amount(narrow, count_text),
        narrow.basis,
    )
    smallest = f"smallest detectable difference with all {count_text(task.n_total)}, same items"
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
    yield (
        "repeats per item that are worth their cost",
        amount(best, count_text),
        best.basis,
    )
    if task.enough is False and needed.basis != best.basis:
        text = "none" if needed.value is None else amount(needed, count_text)
        yield "repeats needed to make up for too few items", text, needed.basis


def _requests(forecast: Forecast) -> Iterator[doc.Block]:
    models = forecast.models
    titles = ("Requests", "Input tokens", "Output tokens", "Cost", "Time")
    columns = (doc.Column("Model", folds=True, key=True), *map(doc.Column, titles))
    yield doc.Heading("What a run costs")
    rows: list[Sequence[doc.Content]] = [
        (doc.Cell(name, name=True), *_cells(usage)) for name, usage in models.items()
    ]
    rows += [_judge_row(judge) for judge in forecast.judges]
    if forecast.total is not None:
        known_roles = [judge.role for judge in forecast.judges if judge.is_known]
        name = f"{_all_runs(forecast)}{_with_roles(known_roles)}"
        rows.append((name, *_cells(forecast.total)))
    yield doc.Table(columns, rows, "What a run costs")
    for judge in forecast.judges:
        bases = f"requests: {judge.requests.basis}; cost: {judge.money.basis}"
        if judge.requests.basis == judge.money.basis:
            bases = judge.requests.basis
        yield doc.Note(f"{judge.role}: {bases}.", "quiet")
    for name, usage in models.items():
        basis = (
            ("input tokens", usage.input_tokens),
            ("output tokens", usage.output_tokens),
            ("cost", usage.money),
            ("time", usage.seconds),
        )
        yield doc.Note(
            f"{name}: {'; '.join(f'{title}: {quantity.basis}' for title, quantity in basis)}.",
            "quiet",
        )


def _judge_row(judge: JudgeForecast) -> Sequence[doc.Content]:
    def tokens(number: float) -> str:
        return numbers.tokens(round(number))

    scope = ", unsure answers only" if judge.unsure_only else ""
    return (
        doc.Cell(
            judge.model or "(not named)", name=True, note=f"role {judge.role}{scope}"
        ),
        amount(judge.requests, lambda number: numbers.count(round(number))),
        amount(judge.input_tokens, tokens),
        amount(judge.output_tokens, tokens),
        _cost(judge.money),
        "",
    )


def _cells(usage: ModelForecast) -> tuple[str, ...]:
    def tokens(number: float) -> str:
        return numbers.tokens(round(number))

    return (
        amount(usage.requests, lambda number: numbers.count(round(number))),
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
    """Return the plan with its conclusion filled in."""
    text = [
        _task_sentence(task, forecast, index == 0)
        for index, task in enumerate(forecast.tasks)
    ]
    overall = forecast.visible_overall
    if overall is not None and overall.value is not None:
        text.append(
            f"The average over the {len(forecast.tasks)} tasks can detect differences"
            f" of {_points(overall.value, True)} or more."
        )
    text.append(_costs_sentence(forecast))
    return replace(forecast, conclusion=" ".join(text))


def _costs_sentence(forecast: Forecast) -> str:
    """Say what all of it takes, and which role that leaves out."""
    known_judges = [judge for judge in forecast.judges if judge.is_known]
    unknown_roles = [judge.role for judge in forecast.judges if not judge.is_known]
    end = _without_roles(unknown_roles)
    sentences = []
    if forecast.total is None or not forecast.several_prompts:
        sentences = [
            f"{_model(name, usage)}{'' if known_judges else end}."
            for name, usage in forecast.models.items()
        ]
    sentences += [f"{_judge(judge)}." for judge in known_judges]
    if forecast.total is not None:
        runs = _all_runs(forecast)
        name = f"{runs[0].upper()}{runs[1:]}{_with_roles([judge.role for judge in known_judges])}"
        sentences.append(f"{_model(name, forecast.total)}{end}.")
    return " ".join(sentences)


def _judge(judge: JudgeForecast) -> str:
    """Say what the model in a role costs."""
    name = f"{judge.model or 'no model yet'} as {judge.role}"
    only = ", for unsure answers only" if judge.unsure_only else ""
    requests = amount(judge.requests, lambda number: numbers.count(round(number)))
    return (
        f"{name}{only}: {requests} requests, cost:"
        f" {_known_or_why(judge.money, _cost(judge.money))}"
    )


def _known_or_why(quantity: Amount, text: str) -> str:
    """Append the reason to a quantity's text if it is unknown."""
    return f"{text} ({quantity.basis})" if text == UNKNOWN and quantity.basis else text


def _points(number: float, bounded: bool) -> str:
    return f"{100 * number:.1f} points" if bounded else f"{number:.3g}"


def _about(number: float) -> str:
    """Round a number of items to two digits: "3,900"."""
    if number < 100:
        return f"{number:.0f}"
    scale = 10 ** (len(str(int(number))) - 2)
    return f"{round(number / scale) * scale:,.0f}"


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
        f"To detect a difference of {_points(forecast.difference, task.bounded)}"
        f"{_between(forecast)} {odds} you need {text}"
    )
    n_items = numbers.count(task.n_total)
    visible = task.visible_paired.value or 0.0
    detectable = f"differences of {_points(visible, task.bounded)} or more"
    capability = (
        f"{n_items}, which can detect"
        f" {'no difference reliably' if task.bounded and visible >= 1 else detectable}"
    )
    return (
        f"{aim}; {name} has {capability}."
        if first
        else f"{name} needs {text} and has {capability}."
    )


def _between(forecast: Forecast) -> str:
    """Between which runs, where several prompts are compared."""
    if not forecast.several_prompts:
        return ""
    n_runs = len(forecast.models)
    return " between the 2 runs" if n_runs == 2 else f" between any 2 of {n_runs} runs"


def _model(name: str, usage: ModelForecast) -> str:
    quantities = (
        usage.requests,
        usage.input_tokens,
        usage.output_tokens,
        usage.money,
        usage.seconds,
    )
    requests, input_tokens, output_tokens, cost, time = map(
        _known_or_why, quantities, _cells(usage)
    )
    return (
        f"{name}: {requests} requests, {input_tokens} input tokens, {output_tokens}"
        f" output tokens, cost: {cost}, time: {time}"
    )
