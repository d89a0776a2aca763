"""The scaling methods of HRET by their names, and a place for a user's own:
`register_scaling_method`, `load_scaling_method`.
"""

from __future__ import annotations

from evalwright.compat.hret.scaling_methods.base import (
    SCALING_REGISTRY,
    BaseScalingMethod,
    BeamSearch,
    BestOfN,
    SelfConsistencyScalingMethod,
    load_scaling_method,
    register_scaling_method,
)

__all__ = [
    "SCALING_REGISTRY",
    "BaseScalingMethod",
    "BeamSearch",
    "BestOfN",
    "SelfConsistencyScalingMethod",
    "load_scaling_method",
    "register_scaling_method",
]
