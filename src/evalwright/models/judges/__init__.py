"""Judges of factual consistency: is a hypothesis supported by a premise?

Each answers `Classify(premise, hypothesis)` with `Response.values == (P(not supported),
P(supported))`.
"""
