"""Reads and writes finished runs of lm-evaluation-harness."""
