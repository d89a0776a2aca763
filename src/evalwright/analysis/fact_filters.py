"""Filters of a leaderboard's models by facts: `size<=8`, `open=true`, `released>=2026-01`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.analysis.words import counted, listed
from evalwright.core.errors import RunError, UnknownName, UsageError
from evalwright.core.text import printable
from evalwright.runs.reader import Run

Fact = str | float | bool | None
Facts = Mapping[str, Fact]
"""What is known of a model, by key."""

_FILTER = re.compile(r"\s*([^<>=!]+?)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_TRUE = ("true", "yes")
_FALSE = ("false", "no")
TOKENS_OF_A_PRICE = 1_000_000
FORM = "KEY=VALUE, or with <=, >=, <, > or != in place of ="


@dataclass(frozen=True, slots=True)
class FactFilter:
    """A condition on a fact.

    Args:
        key: the fact.
        sign: how it is compared: =, !=, <, <=, > or >=.
        value: with what.
    """

    key: str
    sign: str
    value: str

    def fits(self, fact: Fact) -> bool:
        """Tell whether a known fact fulfils the condition.

        Numbers are compared as numbers, all else as text without regard to case, which puts dates
        in their order: 2026-03-01 is after 2026-02.

        Raises:
            UsageError: the fact is a number or yes or no, and the value is not.
        """
        if isinstance(fact, bool):
            return self._compares(fact, self._truth())
        if isinstance(fact, int | float):
            return self._compares(float(fact), self._number())
        return self._compares(str(fact).casefold(), self.value.casefold())

    def _compares(self, fact: str | float, value: str | float) -> bool:
        if self.sign == "=":
            return fact == value
        if self.sign == "!=":
            return fact != value
        if isinstance(fact, str) and isinstance(value, str):
            return self._is_on_side(fact < value, fact == value)
        if isinstance(fact, str) or isinstance(value, str):
            return False
        return self._is_on_side(fact < value, fact == value)

    def _is_on_side(self, is_less: bool, is_equal: bool) -> bool:
        if is_equal:
            return self.sign in ("<=", ">=")
        return is_less == self.sign.startswith("<")

    def _number(self) -> float:
        try:
            return float(self.value)
        except ValueError:
            raise UsageError(
                f"--where {self}: '{self.key}' is a number, and"
                f" '{printable(self.value)}' is not."
            ) from None

    def _truth(self) -> bool:
        if self.value.casefold() in _TRUE:
            return True
        if self.value.casefold() in _FALSE:
            return False
        raise UsageError(
            f"--where {self}: '{self.key}' is true or false, and"
            f" '{printable(self.value)}' is neither."
        )

    def __str__(self) -> str:
        return printable(f"{self.key}{self.sign}{self.value}")


def read_filter(text: str) -> FactFilter:
    """Read a condition such as `size<=8`. Raises UsageError for anything else."""
    parts = _FILTER.fullmatch(text)
    if parts is None or not parts[3]:
        raise UsageError(f"--where takes {FORM}, not '{printable(text)[:100]}'.")
    key, sign, value = parts.groups()
    return FactFilter(key, "=" if sign == "==" else sign, value)


def facts_of(runs: Sequence[Run], facts: Sequence[Facts]) -> list[dict[str, Fact]]:
    """Return the facts of each run's model.

    Args:
        runs: the runs.
        facts: what is known of each run's model, in the order of the runs; () for nothing.
    """
    return [dict(model_facts) for model_facts in facts] if facts else [{} for _ in runs]


def cost_of(run: Run, facts: Facts) -> float | None:
    """Return the US dollars that a run's answers cost; None if it cannot be known.

    Where the run knows no price, its tokens are counted at the prices among the facts.
    """
    answers = run.data["usage"].get("answers", {})
    price_in, price_out, n_in, n_out = map(
        _amount,
        (
            facts.get("price_in"),
            facts.get("price_out"),
            answers.get("input_tokens"),
            answers.get("output_tokens"),
        ),
    )
    is_known = not math.isnan(price_in + price_out + n_in + n_out) and n_in + n_out > 0
    if run.cost is not None or not is_known:
        return run.cost
    return (price_in * n_in + price_out * n_out) / TOKENS_OF_A_PRICE


def _amount(recorded: object) -> float:
    """Read a number that is not negative; nan for anything else."""
    if isinstance(recorded, bool) or not isinstance(recorded, int | float):
        return math.nan
    return float(recorded) if 0 <= recorded < math.inf else math.nan


def run_facts(run: Run, facts: Facts) -> dict[str, Fact]:
    """Return what a run itself says that models can be filtered by.

    Args:
        run: the run.
        facts: what is known of its model.
    """
    return {
        "model": run.shown_model,
        "label": run.label,
        "date": str(run.data["started"])[:10],
        "cost": cost_of(run, facts),
    }


def select_by_facts(
    runs: Sequence[Run],
    facts: Sequence[Facts],
    labels: Sequence[str],
    filters: Sequence[FactFilter],
) -> tuple[list[int], list[str]]:
    """Select the models that fulfil all conditions.

    Args:
        runs: the runs.
        facts: what is known of each run's model.
        labels: the models' labels.
        filters: the conditions.

    Returns:
        The positions of the selected runs, and notes on what was left out.

    Raises:
        UnknownName: no model has such a fact.
        RunError: no model fulfils the conditions.
    """
    facts_by_run = [
        {**run_facts(run, model_facts), **model_facts}
        for run, model_facts in zip(runs, facts, strict=True)
    ]
    known_keys = dict.fromkeys(
        key for model_facts in facts_by_run for key in model_facts
    )
    for condition in filters:
        if condition.key not in known_keys:
            raise UnknownName(
                "fact in --where",
                printable(condition.key)[:100],
                known_keys,
                f"Known of these models: {listed([*known_keys], 20)}.",
            )
    selected = []
    unknown: dict[str, list[str]] = {}
    for index, model_facts in enumerate(facts_by_run):
        lacking = [
            condition.key
            for condition in filters
            if model_facts.get(condition.key) is None
        ]
        for key in dict.fromkeys(lacking):
            unknown.setdefault(key, []).append(labels[index])
        fits = not lacking and all(
            condition.fits(model_facts[condition.key]) for condition in filters
        )
        if fits:
            selected.append(index)
    conditions = listed([str(condition) for condition in filters])
    notes = [
        f"Models with {conditions}: {len(selected)} of {len(runs)}; ranks are among"
        " them."
    ]
    for key, lacking_labels in unknown.items():
        models = counted(len(lacking_labels), "model")
        notes.append(
            f"Left out, because '{key}' is not known: {models}"
            f" ({listed(lacking_labels, 5)})."
        )
    if not selected:
        left_out = " ".join(notes[1:])
        raise RunError(f"No model matches --where {conditions}. {left_out}".rstrip())
    return selected, notes
