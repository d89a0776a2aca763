"""Exports runs to the shared schema of Every Eval Ever, and imports its records as runs."""
