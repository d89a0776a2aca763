"""Reward models: they score how good a reply is.

Each answers `Reward(prompt, response, reference)` with `Response.values`, whose first number is the
reward; more is always better.
"""
