"""Before anything is spent: how many items a question needs, what a task can show at most, and what asking it takes.

settings    what is to be seen, assumptions and prices      variances  how much scores vary, and what that rests on
prompts     what would be sent, and how many tokens it is   spending   requests, tokens, money, seconds
draws       what repeated draws are worth                   opening    runs, the pilot, models with their tasks
making      all of it in order
"""

from evalwright.analysis.forecasts import Amount, DrawsForecast, Forecast, TaskForecast, Usage
from evalwright.analysis.power.making import plan
from evalwright.analysis.power.settings import read_assumptions, read_prices
from evalwright.models.remote.prices import Price

__all__ = [
    "Amount",
    "DrawsForecast",
    "Forecast",
    "Price",
    "TaskForecast",
    "Usage",
    "plan",
    "read_assumptions",
    "read_prices",
]
