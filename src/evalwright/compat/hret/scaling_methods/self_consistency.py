"""The class of the scaling method `self_consistency`, where HRET's documents import it from."""

from evalwright.compat.hret.scaling_methods.base import SelfConsistencyScalingMethod

__all__ = ["SelfConsistencyScalingMethod"]
