"""Imports open-factual-bench: its questions and its finished runs."""
