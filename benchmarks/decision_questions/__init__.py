"""Questions with a known answer, for `benchmarks/decisions.py` and `benchmarks/boards.py`."""
