"""Rows of data, read from disk one by one in any format, so memory does not grow with their number.

rows       random access to JSONL through an array of byte offsets
formats    CSV, TSV, JSON, Parquet and Excel workbooks, streamed once into a JSONL copy
copies     where those copies are kept, and rows from the hub
generated  synthetic rows: hidden numbers, common words
opening    from a task file's `dataset` to rows
"""
