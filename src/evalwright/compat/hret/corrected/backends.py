"""HRET's back ends as models of ours: chat templates, seeds, stops and images reach them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from evalwright import Response
from evalwright.compat.hret.cot_parsers import chain_of_thought
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.opened_models import (
    PENALTIES,
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

_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")


def _huggingface(params: Given, rules: Rules, by_options: bool) -> Native:
    """With the model's chat template."""
    model = transformer("hf", params)
    return Native(
        model,
        transformer_sampling(params, texts(params["stop_token"])),
        chat="chat" in model.abilities,
        by_options=by_options,
        vision=True,
        **chain_of_thought(params, rules),
    )


def _huggingface_judge(params: Given, rules: Rules, by_options: bool) -> Native:
    """With the number in its reply."""
    model = transformer("hf", params)
    return Native(
        model,
        transformer_sampling(params),
        chat="chat" in model.abilities,
        read=_verdict,
    )


def _verdict(response: Response) -> Response:
    match = _RESULT.search(response.text)
    return replace(response, values=(float(match[1]),)) if match else response


def _huggingface_reward(params: Given, rules: Rules, by_options: bool) -> Native:
    return Native(transformer("likelihood/hf", params))


def _openai(params: Given, rules: Rules, by_options: bool) -> Native:
    """With all that the parameters say."""
    return Native(
        remote_model(params, chat=params["use_chat_api"], echo=None),
        Sampling(
            max_tokens=params["max_tokens"] or params["max_new_tokens"],
            temperature=params["temperature"],
            top_p=params["top_p"],
            seed=params["seed"],
            stop=texts(params["stop"]),
            top_logprobs=0 if params["logprobs"] else None,
        ),
        tells_reason=True,
        chat=params["use_chat_api"],
        system=params["system_message"] or "",
        vision=True,
        **chain_of_thought(params, rules),
    )


def _openai_judge(params: Given, rules: Rules, by_options: bool) -> Native:
    """The parameters that say something."""
    telling = {name: params[name] or None for name in PENALTIES}
    top_p = params["top_p"] if params["top_p"] != 1 else None
    return Native(
        remote_model({**judge_address(params), **telling}),
        Sampling(params["max_tokens"], params["temperature"], top_p),
        chat=True,
    )


def _litellm(params: Given, rules: Rules, by_options: bool) -> Native:
    return replace(
        litellm_model(params), vision=True, **chain_of_thought(params, rules)
    )


def _litellm_judge(params: Given, rules: Rules, by_options: bool) -> Native:
    return litellm_model(params)


def _vllm(params: Given, rules: Rules, by_options: bool) -> Native:
    """Messages, for the model's own chat template."""
    arguments = {"interface": "chat", "base_url": params["api_base"]}
    most = params["max_new_tokens"] or params["max_tokens"]
    top_p = None if params["top_p"] == 1 else params["top_p"]
    return Native(
        opened(f"vllm/{params['model_name_or_path']}", arguments),
        Sampling(most, params["temperature"], top_p, texts(params["stop"])),
        chat=True,
        vision=True,
        **chain_of_thought(params, rules),
    )


BACKENDS: Mapping[str, Callable[[Given, Rules, bool], Native]] = {
    "huggingface": _huggingface,
    "huggingface_judge": _huggingface_judge,
    "huggingface_reward": _huggingface_reward,
    "openai": _openai,
    "openai_judge": _openai_judge,
    "litellm": _litellm,
    "litellm_judge": _litellm_judge,
    "vllm": _vllm,
}
"""By HRET's names. The last argument says whether options are chosen by their likelihood."""
