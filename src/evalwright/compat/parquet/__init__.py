"""Exports runs as Parquet files, and imports them again."""
