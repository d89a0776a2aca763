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
from evalwright.compat.hret.models.native import (
    HuggingFaceJudge,
    HuggingFaceModel,
    HuggingFaceReward,
    LiteLLMBackend,
    LiteLLMJudge,
    MultiModel,
    OpenAIJudge,
    OpenAIModel,
    VLLMModel,
)

__all__ = [
    "MODEL_REGISTRY", "BaseJudge", "BaseModel", "BaseRewardModel", "HuggingFaceJudge", "HuggingFaceModel", "HuggingFaceReward",
    "LiteLLMBackend", "LiteLLMJudge", "MultiModel", "OpenAIJudge", "OpenAIModel", "VLLMModel", "load_model", "register_model",
]  # fmt: skip
