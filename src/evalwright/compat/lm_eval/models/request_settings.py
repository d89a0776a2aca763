"""A request's generation settings under lm_eval's names.

What a task of lm_eval wrote reaches its model classes and clients unchanged; requests of other
tasks are translated.
"""

from __future__ import annotations

import json
from typing import Any

from evalwright import Generate

CARRIED = frozenset(
    (
        "generation_arguments",
        "top_k",
        "min_p",
        "num_beams",
        "length_penalty",
        "early_stopping",
    )
)
"""Options of a request that lm_eval's clients send."""


def settings_for_class(request: Generate) -> dict[str, Any]:
    """The settings for a model class; unset ones are left out."""
    arguments = _arguments(request)
    if "until" in arguments:
        return arguments
    settings: dict[str, Any] = {"until": list(request.stop)}
    if request.temperature is not None:
        settings["do_sample"] = request.temperature > 0
        settings["temperature"] = request.temperature
    seed = None if request.seed is None else request.seed + request.draw
    settings |= _without_none(
        max_gen_toks=request.max_tokens, top_p=request.top_p, seed=seed
    )
    return settings | arguments


def settings_for_server(request: Generate) -> dict[str, Any]:
    """The settings for a body; what is not set there is left to the client."""
    arguments = _arguments(request)
    if "until" in arguments:
        return arguments
    options = request.options()
    carried = {
        name: options.get(name) for name in CARRIED if name != "generation_arguments"
    }
    settings = _without_none(
        max_gen_toks=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        **carried,
    )
    return {"until": list(request.stop), **settings, **arguments}


def _arguments(request: Generate) -> dict[str, Any]:
    """The arguments under the names of the model's own library, if the request has any."""
    return dict(json.loads(request.generation_arguments or "{}"))


def _without_none(**settings: Any) -> dict[str, Any]:
    return {name: setting for name, setting in settings.items() if setting is not None}
