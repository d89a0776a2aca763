"""A budget of several runs that follow each other: what the next one may still spend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.evaluation.budgets import parse_budget
from evalwright.runs.reader import Run


@dataclass(slots=True)
class RemainingBudget:
    """What a command over several runs may still spend.

    Attributes:
        text: the budget as it was typed; "" for none.
        remaining: what is left of each limit.
    """

    text: str
    remaining: dict[str, float]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> RemainingBudget:
        """Parse budgets such as "5 USD".

        Raises:
            ConfigurationError: one cannot be read.
        """
        return cls(", ".join(texts), dict(parse_budget(texts).as_dict()))

    @property
    def is_spent(self) -> bool:
        """Whether a limit has been reached."""
        least_amounts = {"requests": 1.0, "tokens": 1.0, "dollars": 1e-6}
        return any(
            amount < least_amounts[name] for name, amount in self.remaining.items()
        )

    def as_settings(self) -> tuple[str, ...]:
        """Return what is left, as a configuration has it."""
        return tuple(
            f"{amount:.6f} USD" if name == "dollars" else f"{int(amount)} {name}"
            for name, amount in self.remaining.items()
        )

    def divided(self, n_parts: int) -> RemainingBudget:
        """Return an equal part of what is left, for one of several runs."""
        parts = {name: amount / n_parts for name, amount in self.remaining.items()}
        return RemainingBudget(self.text, parts)

    def subtract(self, run: Run) -> None:
        """Take off what a run spent."""
        budget = (run.data.get("stopping") or {}).get("budget") or {}
        self.subtract_amounts(budget.get("spent") or {})

    def subtract_amounts(self, spent: Mapping[str, float]) -> None:
        """Take off amounts of requests, tokens and dollars."""
        for name, amount in spent.items():
            if name in self.remaining:
                self.remaining[name] -= amount
