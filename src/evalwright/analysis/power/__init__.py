"""Before anything is spent: how many items a question needs, what a task can show at most, and what a run takes.

settings    the aim, assumptions and prices             variances  how much scores vary, and what that rests on
prompts     what would be sent, and how many tokens     spending   requests, tokens, money, seconds
draws       what repeated draws are worth               opening    runs, the pilot, models with their tasks
making      all of it in order                          forecasts  the records that it gives
"""
