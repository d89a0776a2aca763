"""Scores the tools that an answer calls, with their arguments, by the calls that are expected."""
