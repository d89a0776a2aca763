"""Results submitted by others: a file of raw answers that is scored again and put on a board.

A submission is read as data only. It names tasks, and those that are installed (or files that
the reader names) are what its answers are scored by; nothing in it is run, opened or fetched.
"""
