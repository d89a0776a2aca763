"""`lm_eval.evaluator`: evaluations from Python."""

from evalwright.compat.lm_eval.harness.evaluating import evaluate, simple_evaluate

__all__ = ["evaluate", "simple_evaluate"]
