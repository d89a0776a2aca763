"""The class of the evaluation method `math_match`, where HRET's documents import it from."""

from evalwright.compat.hret.evaluation.base import MathMatchEvaluator

__all__ = ["MathMatchEvaluator"]
