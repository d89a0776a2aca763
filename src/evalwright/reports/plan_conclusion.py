"""A plan in words: what it takes to see the difference, what each task can show, and what the requests cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.reports import numbers

if TYPE_CHECKING:
    from evalwright.analysis.forecasts import Amount, Forecast, TaskForecast, Usage

_ODDS = {0.8: "four times out of five", 0.9: "nine times out of ten", 0.5: "every other time"}


def worded_plan(forecast: Forecast) -> Forecast:
    """The plan with its conclusion, a few sentences, filled in."""
    text = [_task(task, forecast, place == 0) for place, task in enumerate(forecast.tasks)]
    overall = forecast.visible_overall
    if overall is not None and overall.value is not None:
        text.append(
            f"The average over the {len(forecast.tasks)} tasks can detect differences of {size(overall.value, True)} or more."
        )
    said = " ".join([*text, *(_model(*pair) for pair in forecast.models.items())])
    return replace(forecast, conclusion=said)


def size(value: float, bounded: bool) -> str:
    """A difference in the unit of the task: "2.0 points"."""
    return f"{100 * value:.1f} points" if bounded else f"{value:.3g}"


def about(value: float) -> str:
    """A number of items rounded to two digits: "3,900"."""
    if value < 100:
        return f"{value:.0f}"
    scale = 10 ** (len(str(int(value))) - 2)
    return f"{round(value / scale) * scale:,.0f}"


def odds(power: float) -> str:
    """A power in words."""
    return _ODDS.get(round(power, 6), f"with a probability of {100 * power:g}%")


def _task(task: TaskForecast, forecast: Forecast, first: bool) -> str:
    name, needed = task.task, task.items_for_difference
    if needed.value is None:
        return f"How many items of {name} are needed is not known: {needed.basis}."
    text = f"about {about(needed.value)} {numbers.plural(int(needed.value), 'item')}"
    if needed.low is not None and needed.high is not None and about(needed.low) != about(needed.high):
        text += f" ({about(needed.low)} to {about(needed.high)})"
    aim = f"To detect a difference of {size(forecast.difference, task.bounded)} {odds(forecast.power)} you need {text}"
    there = numbers.count(task.n_total)
    visible = task.visible_paired.value or 0.0
    shown = f"which can detect differences of {size(visible, task.bounded)} or more"
    return (
        f"{aim}; {name} has {there}, {shown}." if first else f"{name} needs {text} and has {there}, {shown}."
    )


def _model(name: str, usage: Usage) -> str:
    requests = (
        "an unknown number of" if usage.requests.value is None else numbers.count(round(usage.requests.value))
    )
    word = numbers.plural(round(usage.requests.value or 0), "request")
    return f"{name}: {requests} {word}, {', '.join(_parts(usage))}."


def _parts(usage: Usage) -> Iterator[str]:
    yield f"{_spoken(usage.input_tokens, _tokens)} tokens in and {_spoken(usage.output_tokens, _tokens)} out"
    money = usage.money
    free = money.value == 0 and money.high in (None, 0)
    yield "no cost" if free else _spoken(money, numbers.money, "cost not known")
    yield _spoken(usage.seconds, numbers.duration, "time not known")


def _spoken(amount: Amount, text: object, unknown: str = "an unknown number of") -> str:
    assert callable(text)
    if amount.value == 0 and amount.high in (None, 0):
        return "none"
    if amount.value is not None:
        return f"about {text(amount.value)}"
    if amount.high is None:
        return unknown
    return f"{text(amount.low)} to {text(amount.high)}" if amount.low else f"at most {text(amount.high)}"


def _tokens(value: float) -> str:
    return numbers.tokens(round(value))
