"""Imports logs of inspect_ai as runs, and exports runs as such logs."""
