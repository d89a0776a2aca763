"""Tasks scored by a definition of ours: `metrics.toml` has a fragment of a task file for each
metric class, `definitions.py` fills it in, and `scorers.py` and `judges.py` have the scorers that
read SEA-HELM's rows.
"""
