"""The class of the scaling method `best_of_n`, where HRET's documents import it from."""

from evalwright.compat.hret.scaling_methods.base import BestOfN

__all__ = ["BestOfN"]
