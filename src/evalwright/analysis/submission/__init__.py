"""Results from strangers: one file with a run's raw answers, checked by scoring them again, and put
on a board.

A submission is read as data alone. It names tasks, and those that are installed (or files that the
reader names) are what its answers are scored by; nothing in it is run, opened or fetched.
"""
