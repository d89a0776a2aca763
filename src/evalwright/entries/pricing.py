"""What the whole run of an entry costs, by the planner, before any request is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.analysis.power.making import forecast_settings
from evalwright.entries.board_file import LOCAL_PROVIDERS, BoardFile
from evalwright.entries.entry_file import Entry
from evalwright.evaluation.settings import Settings


@dataclass(frozen=True, slots=True)
class RunPrice:
    """What the whole run of an entry costs.

    Attributes:
        low: the least, in US dollars; None if its price is not known.
        high: the most: all answers as long as they may be.
        requests: number of requests to the model.
        without_judge: whether a judge's share is not in it.
        unbounded: whether nothing limits how long an answer may be, so that there is no most.
    """

    low: float | None
    high: float | None
    requests: int
    without_judge: bool
    unbounded: bool = False

    def as_text(self) -> str:
        """The price for a person."""
        if self.low is None or self.high is None:
            return "not known"
        if not self.requests:
            return "runs on the board's own machine"
        dollars = f"${self.low:,.2f} to ${self.high:,.2f}"
        if f"{self.low:.2f}" == f"{self.high:.2f}":
            dollars = f"${self.high:,.2f}"
        return f"{dollars}{', without the judge' if self.without_judge else ''}"


def price_run(board: BoardFile, entry: Entry) -> RunPrice:
    """Compute what the whole run of an entry costs; no request is sent.

    A model that runs on the board's own machine is neither looked up nor opened: it has no price.

    Raises:
        EvalwrightError: the model cannot do the tasks, or their data cannot be read.
    """
    if entry.model.partition("/")[0] in LOCAL_PROVIDERS:
        return RunPrice(0.0, 0.0, requests=0, without_judge=bool(board.suite.roles))
    spec = entry.model_spec(board)
    prices = board.entries.prices
    forecast = forecast_settings(
        Settings(board.configuration([spec])),
        prices={name: price for name, price in prices.items() if name == spec.model},
    )
    limit = board.suite.limit
    amounts = [
        usage.money.times(_share(limit, task.n_total))
        for task in forecast.tasks
        for usage in task.models.values()
    ]
    requests = sum(
        (usage.requests.most or 0) * _share(limit, task.n_total)
        for task in forecast.tasks
        for usage in task.models.values()
    )
    known_judges = [judge for judge in forecast.judges if judge.is_known]
    n_samples = sum(task.n_total for task in forecast.tasks)
    n_asked_samples = sum(
        task.n_total * _share(limit, task.n_total) for task in forecast.tasks
    )
    amounts += [
        judge.money.times(n_asked_samples / max(1, n_samples)) for judge in known_judges
    ]
    return RunPrice(
        low=_sum([part.least for part in amounts]),
        high=_sum([part.most for part in amounts]),
        requests=round(requests),
        without_judge=len(known_judges) < len(forecast.judges),
        unbounded=any(
            usage.output_tokens.most is None
            for task in forecast.tasks
            for usage in task.models.values()
        ),
    )


def _share(limit: float | None, n_items: int) -> float:
    """Return the share of a task's items that a suite's limit leaves."""
    if limit is None or not n_items:
        return 1.0
    return min(1.0, limit if limit < 1 else limit / n_items)


def _sum(amounts: Sequence[float | None]) -> float | None:
    known_amounts = [amount for amount in amounts if amount is not None]
    return sum(known_amounts) if len(known_amounts) == len(amounts) else None
