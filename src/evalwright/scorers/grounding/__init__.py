"""Is each claim of an answer in the passages that it cites?

And was the question answered where, and only where, it can be?
"""
