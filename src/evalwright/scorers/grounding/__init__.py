"""Scores whether each claim of an answer is supported by the passages that it cites.

Also: was the question answered if the passages allow it, and only then?
"""
