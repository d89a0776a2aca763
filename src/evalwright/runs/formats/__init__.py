"""Runs in other programs' files, and other programs' files as runs."""
