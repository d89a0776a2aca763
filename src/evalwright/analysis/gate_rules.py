"""What a gate may ask of run B against run A: a small language of rules, one sentence each.

    accuracy drops by more than 0.02          drops, rises, changes: B's score less A's
    factual.accuracy rises by more than 2 points
    overall changes by more than 5%           of A's score; "overall" is the mean over tasks
    accuracy is below 80%                     is below, is above: B's score alone
    accuracy differs
    n_failed is above 0                       factual.n_failed is that of one task

A metric is named by its label; without a task the rule holds for every task that has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from evalwright.core.errors import ConfigurationError, closest

Verb = Literal["drops", "rises", "changes", "below", "above", "differs"]
Unit = Literal["", "points", "%"]

EXAMPLE = "accuracy drops by more than 0.02"
FORMS = (
    "METRIC drops|rises|changes by more than X [points|%]",
    "METRIC is below|above X",
    "METRIC differs",
    "n_failed is above X",
)
N_FAILED = "n_failed"
OVERALL = "overall"

_NUMBER = r"(?P<amount>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>points?|%)?"
_RULES = tuple(
    re.compile(rf"(?P<what>.+?)\s+{form}", re.IGNORECASE | re.DOTALL)
    for form in (
        rf"(?P<verb>drops|rises|changes)\s+by\s+more\s+than\s+{_NUMBER}",
        rf"is\s+(?P<verb>below|above)\s+{_NUMBER}",
        r"(?P<verb>differs)",
    )
)


@dataclass(frozen=True, slots=True)
class GateRule:
    """One rule as it was read. what: a metric's label, with or without its task."""

    text: str
    what: str
    verb: Verb
    amount: float
    unit: Unit

    @property
    def counts_failures(self) -> bool:
        """Whether it is of failed items, and of no score."""
        return self.what.rpartition(".")[2] == N_FAILED


def parse_gate_rule(text: str) -> GateRule:
    """Read one rule. Raises ConfigurationError with the forms there are and an example."""
    for pattern in _RULES:
        match = pattern.fullmatch(text.strip())
        if match:
            found = match.groupdict()
            amount = float(found.get("amount") or 0)
            unit: Unit = "%" if found.get("unit") == "%" else "points" if found.get("unit") else ""
            verb = cast(Verb, found["verb"].lower())
            if not math.isfinite(amount) or (amount < 0 and verb in ("drops", "rises", "changes")):
                raise ConfigurationError(f"The rule '{text}' needs a number of 0 or more after 'than'.")
            return GateRule(text.strip(), found["what"], verb, amount, unit)
    raise ConfigurationError(
        f"The rule '{text}' cannot be read. Rules are: {'; '.join(FORMS)}. For example: --fail-if \"{EXAMPLE}\"."
    )


def unknown(rule: GateRule, known: Sequence[str]) -> ConfigurationError:
    """The error of a rule that names no metric of both runs."""
    near = closest(rule.what, known)
    hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    some = ", ".join(known[:12]) + (" and more" if len(known) > 12 else "")
    return ConfigurationError(
        f"The rule '{rule.text}' names '{rule.what}', which is not a metric of both runs.{hint} There are: {some}."
    )


def margin_of(rule: GateRule, *, bounded: bool, reference: float) -> float:
    """The rule's amount in the metric's own unit. reference: A's score, of which "%" is taken.

    Raises ConfigurationError where the unit does not fit the metric.
    """
    if rule.unit == "%":
        return rule.amount / 100 * abs(reference)
    return level_of(rule, bounded=bounded)


def level_of(rule: GateRule, *, bounded: bool) -> float:
    """The rule's amount as a score; "%" and "points" are hundredths. Raises ConfigurationError as `margin_of`."""
    if rule.unit and not bounded:
        raise ConfigurationError(
            f"The rule '{rule.text}' counts in {rule.unit}, but '{rule.what}' is not between 0 and 1. Give a plain number."
        )
    amount = rule.amount / 100 if rule.unit else rule.amount
    if bounded and not rule.unit and amount > 1:
        raise ConfigurationError(
            f"The rule '{rule.text}' is outside the range of '{rule.what}', which is 0 to 1. Write {rule.amount:g} points, "
            f"or {rule.amount / 100:g}."
        )
    return amount
