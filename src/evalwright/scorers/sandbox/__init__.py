"""Scorers that look at the state in which a model left its sandbox.

state: a new sandbox that starts from the answer's snapshot. hidden_files: files that the model
never saw, put in where it may have prepared the place. command_scorer, expected_files: the scorers.
"""
