"""The record of an evaluation: a folder of plain files that need no library to read.

These are `run.json` and `samples.jsonl`.
"""
