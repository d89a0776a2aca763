"""Scores whether an answer is supported by its source.

One or more judges decide: classifiers of text pairs, or models that write a verdict.
"""
