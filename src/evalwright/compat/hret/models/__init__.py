"""The models of HRET by their names, and a place for a user's own: `register_model`, `load_model`, the base classes."""

from __future__ import annotations

from evalwright.compat.hret.models.base import (
    MODEL_REGISTRY,
    BaseJudge,
    BaseModel,
    BaseRewardModel,
    load_model,
    register_model,
)

__all__ = ["MODEL_REGISTRY", "BaseJudge", "BaseModel", "BaseRewardModel", "load_model", "register_model"]
