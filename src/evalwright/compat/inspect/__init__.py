"""Logs of inspect_ai: read as runs, and written of runs."""
