"""Thin front doors that accept what was written for other frameworks."""
