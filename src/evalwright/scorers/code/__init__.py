"""Runs and tests programs that models write, in a sandbox from which they can reach nothing."""
