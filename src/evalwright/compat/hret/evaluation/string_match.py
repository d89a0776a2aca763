"""The class of the evaluation method `string_match`, where HRET's documents import it from."""

from evalwright.compat.hret.evaluation.base import StringMatchEvaluator

__all__ = ["StringMatchEvaluator"]
