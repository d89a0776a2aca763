"""Power analysis: how many items a question needs, what a task can show, and what a run costs.

settings: the aim, assumptions and prices. variances: how much scores vary, and the basis of
that. designs: other designs, and the value of repeats. spending: requests, tokens, money and
seconds of a run. opening: runs, the pilot, models with their tasks. making: the whole analysis
in order. forecasts: the records that it returns.
"""
