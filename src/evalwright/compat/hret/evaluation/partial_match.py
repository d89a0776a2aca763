"""The class of the evaluation method `partial_match`, where HRET's documents import it from."""

from evalwright.compat.hret.evaluation.base import PartialMatchEvaluator

__all__ = ["PartialMatchEvaluator"]
