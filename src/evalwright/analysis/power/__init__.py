"""Before anything is spent: how many items a question needs, what a task can show at most, and what
a run takes.

settings    the aim, assumptions and prices             variances  how much scores vary, and what
that rests on designs     other designs, and what repeats are worth   spending   what would be sent:
requests, tokens, money, seconds opening     runs, the pilot, models with their tasks    making
all of it in order forecasts   the records that it gives
"""
