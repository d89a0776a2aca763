"""What the whole run of an entry costs, by the planner, before any request is sent."""

from __future__ import annotations

from dataclasses import dataclass

from evalwright.analysis.power.making import forecast_settings
from evalwright.entries.board_file import BoardFile
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
    """

    low: float | None
    high: float | None
    requests: int
    without_judge: bool

    def as_text(self) -> str:
        """The price for a person."""
        if self.low is None or self.high is None:
            return "not known"
        dollars = f"${self.low:,.2f} to ${self.high:,.2f}"
        if f"{self.low:.2f}" == f"{self.high:.2f}":
            dollars = f"${self.high:,.2f}"
        return f"{dollars}{', without the judge' if self.without_judge else ''}"


def price_run(board: BoardFile, entry: Entry) -> RunPrice:
    """Compute what the whole run of an entry costs; no request is sent.

    Raises:
        EvalwrightError: the model cannot do the tasks, or their data cannot be read.
    """
    spec = entry.model_spec(board)
    configuration = board.configuration([spec])
    prices = board.entries.prices
    forecast = forecast_settings(
        Settings(configuration),
        prices={name: price for name, price in prices.items() if name == spec.model},
    )
    (usage,) = forecast.models.values()
    known_judges = [judge for judge in forecast.judges if judge.is_known]
    money = usage.money if forecast.total is None else forecast.total.money
    is_known = money.least is not None and money.most is not None
    return RunPrice(
        low=money.least if is_known else None,
        high=money.most if is_known else None,
        requests=round(usage.requests.most or 0),
        without_judge=len(known_judges) < len(forecast.judges),
    )
