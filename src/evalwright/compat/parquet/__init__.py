"""Runs as Parquet files, and such files as runs."""
