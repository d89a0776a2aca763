"""HRET's own back ends by their names, each a model of this package asked with HRET's parameters
(`tables.toml` has their defaults).

| name | here |
|---|---|
| huggingface, huggingface_judge | `hf/...` |
| vllm | `vllm/...`, a server on this machine |
| openai, openai_judge | `openai/...`, any server that speaks its interface |
| litellm, litellm_judge | `litellm/...` |
| huggingface_reward | `likelihood/hf/...` |
| multi | one of each role |
"""

from __future__ import annotations

from evalwright.compat.hret.models.base import (
    MODEL_REGISTRY,
    BaseJudge,
    BaseModel,
    BaseRewardModel,
    load_model,
    register_model,
)
from evalwright.compat.hret.models.huggingface import (
    HuggingFaceJudge,
    HuggingFaceModel,
    HuggingFaceReward,
)
from evalwright.compat.hret.models.services import (
    LiteLLMBackend,
    LiteLLMJudge,
    OpenAIJudge,
    OpenAIModel,
    VLLMModel,
)
from evalwright.compat.hret.models.target_judge_reward import MultiModel

__all__ = [
    "MODEL_REGISTRY",
    "BaseJudge",
    "BaseModel",
    "BaseRewardModel",
    "HuggingFaceJudge",
    "HuggingFaceModel",
    "HuggingFaceReward",
    "LiteLLMBackend",
    "LiteLLMJudge",
    "MultiModel",
    "OpenAIJudge",
    "OpenAIModel",
    "VLLMModel",
    "load_model",
    "register_model",
]
