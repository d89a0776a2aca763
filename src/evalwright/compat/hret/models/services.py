"""HRET's back ends of web interfaces: OpenAI's, litellm's providers, and vLLM's server."""

from __future__ import annotations

from evalwright.compat.hret.models.base import MODEL_REGISTRY
from evalwright.compat.hret.models.native_model import GeneratingModel, JudgingModel


@MODEL_REGISTRY.register_own("openai")
class OpenAIModel(GeneratingModel):
    """Any server that speaks OpenAI's chat or completions interface.

    A key is needed for OpenAI itself alone.
    """


@MODEL_REGISTRY.register_own("openai_judge")
class OpenAIJudge(JudgingModel):
    """A judge behind OpenAI's chat interface."""


@MODEL_REGISTRY.register_own("litellm")
class LiteLLMBackend(GeneratingModel):
    """Any provider of the library litellm."""


@MODEL_REGISTRY.register_own("litellm_judge")
class LiteLLMJudge(JudgingModel):
    """A judge by way of the library litellm."""


@MODEL_REGISTRY.register_own("vllm")
class VLLMModel(GeneratingModel):
    """A vLLM server on this machine (start it with `vllm serve`); the engine's own settings are the
    server's.
    """
