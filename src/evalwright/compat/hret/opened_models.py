"""Opens models of this package with the parameters of HRET's back ends (`tables.toml` has their
defaults).
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from evalwright import open_model
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import Given
from evalwright.extend import Sampling

_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}

PENALTIES = ("frequency_penalty", "presence_penalty")


def opened(name: str, arguments: Given) -> Any:
    return open_model(
        name,
        {key: argument for key, argument in arguments.items() if argument is not None},
    )


def texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def transformer(kind: str, params: Given) -> Any:
    device = params["device"]
    dtype = params["dtype"]
    size = params.get("batch_size")
    arguments = {
        "device" if device != "map" else "device_map": (
            device if device != "map" else "auto"
        ),
        "dtype": None if dtype == "auto" else _DTYPES.get(dtype, dtype),
        "tokenizer": params["tokenizer_id_or_path"],
        "batch_size": size if isinstance(size, int) and size > 1 else None,
    }
    named = {
        key: argument for key, argument in arguments.items() if argument is not None
    }
    return opened(
        f"{kind}/{params['model_name_or_path']}",
        {**(params["model_kwargs"] or {}), **named},
    )


def transformer_sampling(params: Given, stop: tuple[str, ...] = ()) -> Sampling:
    """Sampling at temperature 0 is greedy."""
    if not params["do_sample"] or not params["temperature"]:
        return Sampling(params["max_new_tokens"], 0.0, stop=stop)
    top_p = None if params["top_p"] == 1 else params["top_p"]
    return Sampling(params["max_new_tokens"], float(params["temperature"]), top_p, stop)


def remote_model(params: Given, *, chat: bool = True, echo: bool | None = False) -> Any:
    """The model at an address with or without the interface's path, and with or without a key.
    echo: whether it gives log-likelihoods; None sends a request to find out.
    """
    base = str(params["api_base"]).rstrip("/")
    base = (
        base.removesuffix("/completions").removesuffix("/chat")
        if base.endswith("/completions")
        else base
    )
    body = {name: params[name] for name in PENALTIES if params.get(name) is not None}
    arguments: dict[str, Any] = {
        "base_url": base,
        "interface": "chat" if chat else "completions",
        "echo": echo,
        "extra_body": {**body, **(params.get("extra_body") or {})} or None,
        "timeout": float(params.get("timeout") or 300.0),
        "max_attempts": int(params.get("max_retries") or 0) + 1,
        **_key(params.get("api_key")),
    }
    return opened(f"openai/{params['model_name']}", arguments)


def litellm_model(params: Given) -> Native:
    provider = str(params["provider"]).lower()
    name = str(params["model_name"])
    for variable in (
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_region_name",
        "anthropic_api_key",
    ):
        if params.get(variable):
            os.environ[variable.upper()] = str(params[variable])
    arguments = {
        "base_url": params["api_base"],
        "extra": (
            {name: params[name] for name in ("api_version", *PENALTIES) if params[name]}
            or None
        ),
        "max_attempts": int(params.get("retry_max", params.get("max_retries", 3))) + 1,
        "timeout": params["timeout"],
        **_key(params["api_key"]),
    }
    model = opened(
        f"litellm/{name if name.startswith(f'{provider}/') else f'{provider}/{name}'}",
        arguments,
    )
    # HRET passes what it does not know on to the library, where `max_tokens` takes the place of
    # `max_new_tokens`.
    sampling = Sampling(
        params["max_tokens"] or params["max_new_tokens"],
        params["temperature"],
        params["top_p"],
        texts(params["stop"]),
        params["seed"],
    )
    return Native(model, sampling, chat=True)


def _key(secret: str | None) -> dict[str, str]:
    """A key that was given, by the name of a variable of this process: names are recorded, values
    are not.
    """
    if not secret:
        return {}
    name = (
        f"EVALWRIGHT_HRET_{hashlib.sha256(secret.encode()).hexdigest()[:8].upper()}_KEY"
    )
    os.environ[name] = secret
    return {"api_key_env": name}


def judge_address(params: Given) -> Given:
    """The parameters with the address and the key that the environment has."""
    public = os.environ.get("OPENAI_API_BASE", "https://api.openai.com/v1")
    key = params["api_key"] or os.environ.get("OPENAI_API_KEY")
    return {**params, "api_base": params["api_base"] or public, "api_key": key}
