"""Analyses of finished runs and of tasks."""
