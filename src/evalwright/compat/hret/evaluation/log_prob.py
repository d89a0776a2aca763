"""The class of the evaluation method `log_likelihood`, where HRET's documents import it from."""

from evalwright.compat.hret.evaluation.base import LogProbEvaluator

__all__ = ["LogProbEvaluator"]
