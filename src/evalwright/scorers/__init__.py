"""Scorers: each decides what an answer is worth.

A scorer is one function `(sample, answer, *, options) -> Score`, registered by
`@scorer("name")`.
"""
