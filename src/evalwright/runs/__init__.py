"""The record of an evaluation: a folder of plain files, `run.json` and `samples.jsonl`, that need
no library to read.
"""
