"""Imports, exports and dialects of other evaluation frameworks."""
