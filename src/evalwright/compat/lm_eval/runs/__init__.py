"""Finished runs of lm-evaluation-harness, read and written."""
