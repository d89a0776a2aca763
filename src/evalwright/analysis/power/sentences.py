"""A plan in words: what it takes to see the difference, what each task can show, and what asking takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalwright.analysis.forecasts import Amount, TaskForecast, Usage
from evalwright.analysis.power.settings import Wanted
from evalwright.reports import numbers

_ODDS = {0.8: "four times out of five", 0.9: "nine times out of ten", 0.5: "every other time"}


def conclusion(
    tasks: tuple[TaskForecast, ...], overall: Amount | None, models: Mapping[str, Usage], wanted: Wanted
) -> str:
    """The plan in a few sentences."""
    text = [_task(task, wanted, place == 0) for place, task in enumerate(tasks)]
    if overall is not None and overall.value is not None:
        text.append(
            f"The average over the {len(tasks)} tasks shows nothing smaller than {size(overall.value, True)}."
        )
    return " ".join([*text, *(_model(*pair) for pair in models.items())])


def size(value: float, bounded: bool) -> str:
    """A difference in the unit of the task: "2.0 points"."""
    return f"{100 * value:.1f} points" if bounded else f"{value:.3g}"


def about(value: float) -> str:
    """A number of items as it deserves to be spoken: two digits, "3,900"."""
    if value < 100:
        return f"{value:.0f}"
    scale = 10 ** (len(str(int(value))) - 2)
    return f"{round(value / scale) * scale:,.0f}"


def odds(power: float) -> str:
    """A power in words."""
    return _ODDS.get(round(power, 6), f"with a probability of {100 * power:g}%")


def _task(task: TaskForecast, wanted: Wanted, first: bool) -> str:
    name, needed = task.task, task.items_for_difference
    if needed.value is None:
        return f"How many items of {name} are needed is not known: {needed.basis}."
    text = f"about {about(needed.value)} {numbers.plural(int(needed.value), 'item')}"
    if needed.low is not None and needed.high is not None and about(needed.low) != about(needed.high):
        text += f" ({about(needed.low)} to {about(needed.high)})"
    aim = (
        f"To see a difference of {size(wanted.difference, task.bounded)} {odds(wanted.power)} you need {text}"
    )
    there = numbers.count(task.n_total)
    visible = task.visible_paired.value or 0.0
    shown = f"which show {'' if task.enough else 'nothing smaller than '}{size(visible, task.bounded)}"
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
    yield "no money" if free else _spoken(money, numbers.money, "at a price that is not known")
    yield _spoken(usage.seconds, numbers.duration, "for a time that is not known")


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
