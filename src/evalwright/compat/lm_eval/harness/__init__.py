"""lm-evaluation-harness's command line and `simple_evaluate`, run by our engine."""
