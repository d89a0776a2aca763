"""Is each claim of an answer supported by the passages that it cites?

Also: was the question answered where the passages allow it, and only there?
"""
