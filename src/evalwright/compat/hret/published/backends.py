"""HRET's back ends, sent what HRET sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from evalwright.compat.hret.cot_parsers import chain_of_thought
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.opened_models import (
    judge_address,
    litellm_model,
    opened,
    remote_model,
    texts,
    transformer,
    transformer_sampling,
)
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.rules import Rules
from evalwright.extend import Sampling


def _huggingface(params: Given, rules: Rules) -> Native:
    """The prompt as it is, and a row with options by their likelihood."""
    return Native(
        transformer("hf", params),
        transformer_sampling(params),
        by_options=True,
        bare_options=True,
        gives_logits=True,
        **chain_of_thought(params, rules),
    )


def _huggingface_judge(params: Given, rules: Rules) -> Native:
    """The bare reply; what HRET makes of the prompt and the reply together is the scorer's."""
    return Native(transformer("hf", params), transformer_sampling(params))


def _huggingface_reward(params: Given, rules: Rules) -> Native:
    """An empty reply has the reward 0, above every log-probability."""
    return Native(transformer("likelihood/hf", params), empty_reward=0.0)


def _openai(params: Given, rules: Rules) -> Native:
    """Neither a seed nor the chain of thought is sent, nor the settings of one call."""
    return Native(
        remote_model(params, chat=params["use_chat_api"]),
        Sampling(
            max_tokens=params["max_tokens"],
            temperature=params["temperature"],
            top_p=params["top_p"],
        ),
        one_call=False,
        tells_reason=True,
        chat=params["use_chat_api"],
        system=params["system_message"] or "",
        vision=bool(params["is_vision_model"]),
        lenient=True,
    )


def _openai_judge(params: Given, rules: Rules) -> Native:
    """Every field with HRET's default."""
    sampling = Sampling(params["max_tokens"], params["temperature"], params["top_p"])
    return Native(remote_model(judge_address(params)), sampling, chat=True)


def _litellm(params: Given, rules: Rules) -> Native:
    """An image that cannot be read is a sentence in the prompt."""
    return replace(
        litellm_model(params),
        vision=bool(params["is_vision_model"]),
        lenient=True,
        **chain_of_thought(params, rules),
    )


def _litellm_judge(params: Given, rules: Rules) -> Native:
    return litellm_model(params)


def _vllm(params: Given, rules: Rules) -> Native:
    """The prompt as it is."""
    arguments = {"interface": "completions", "base_url": params["api_base"]}
    most = params["max_new_tokens"] or params["max_tokens"]
    top_p = None if params["top_p"] == 1 else params["top_p"]
    return Native(
        opened(f"vllm/{params['model_name_or_path']}", arguments),
        Sampling(most, params["temperature"], top_p, texts(params["stop"])),
        **chain_of_thought(params, rules),
    )


BACKENDS: Mapping[str, Callable[[Given, Rules], Native]] = {
    "huggingface": _huggingface,
    "huggingface_judge": _huggingface_judge,
    "huggingface_reward": _huggingface_reward,
    "openai": _openai,
    "openai_judge": _openai_judge,
    "litellm": _litellm,
    "litellm_judge": _litellm_judge,
    "vllm": _vllm,
}
"""By HRET's names."""
