"""lm-evaluation-harness's own command line and `simple_evaluate`, read as it reads them and run by
our engine.
"""
