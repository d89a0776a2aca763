"""Finds out on a small copy, without loading weights, how a transformers model is computed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

from evalwright.models.local.hf.loading import source_arguments
from evalwright.models.local.hf.options import HfOptions
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.hf.tree_forward import TreeForward

MIN_LAYERS = 2
MAX_LAYERS = 16
VOCABULARY_SIZE = 128
FEED_FORWARD_WIDTH = 64

_NARROWED = ("intermediate_size", "moe_intermediate_size", "ffn_dim", "n_inner")
"""Names of the width of a feed-forward layer, which holds most weights of a layer."""

_LATER = "known when the model is loaded"


def try_path(source: Checkpoint, options: HfOptions) -> dict[str, Any]:
    """Report how log-likelihoods and texts are computed, for `models check`.

    The copy has the architecture's own classes and widths of attention, but few layers, a small
    vocabulary and random weights, so that the largest model is tried in seconds. Memory, and a
    loaded model's logits, can still turn the fast way off; a run records which way it took.

    Returns:
        {"scoring": {"path", "attention" or "because"}, "generation": {"path", ...}}
    """
    if options.placement is not None:
        return {"scoring": {"path": _LATER}, "generation": {"path": _LATER}}
    try:
        with quiet():
            model = _small_copy(source, options)
    except (
        Exception
    ):  # some architectures cannot be made so small, or need code of their own
        return {"scoring": {"path": _LATER}, "generation": {"path": _LATER}}
    if model is None:
        return {
            "scoring": {"path": "encoder-decoder"},
            "generation": {"path": "transformers"},
        }
    with quiet():
        forward = TreeForward(model, LogitReader(model, options.device), options.device)
    if forward.refusal is not None:
        refused = {"because": forward.refusal}
        return {
            "scoring": {"path": "plain", **refused},
            "generation": {"path": "transformers", **refused},
        }
    attention = {"attention": "cascade" if forward.cascading else "portable"}
    scoring = (
        {"path": "plain", "because": "scoring=plain"}
        if options.scoring == "plain"
        else None
    )
    return {
        "scoring": scoring or {"path": "tree", **attention},
        "generation": {"path": "shared prefixes"},
    }


def _small_copy(source: Checkpoint, options: HfOptions) -> Any:
    """Make the model with few layers and random weights; None for an encoder-decoder model."""
    trust = source_arguments(source, options.trust_remote_code)
    config = AutoConfig.from_pretrained(source.where, **trust)
    if config.is_encoder_decoder:
        return None
    _shrink(config.get_text_config())
    model_class: Any = (
        AutoModelForImageTextToText if source.sees_images else AutoModelForCausalLM
    )
    arguments: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.attn_implementation is not None:
        arguments["attn_implementation"] = options.attn_implementation
    model = model_class.from_config(
        config, dtype=getattr(torch, options.dtype), **arguments
    )
    return model.to(options.device).eval()


def _shrink(config: Any) -> None:
    """Reduce the layers to those that show each kind, and the other sizes that hold weights."""
    kinds = list(getattr(config, "layer_types", None) or [])
    layers = max(MIN_LAYERS, *(kinds.index(kind) + 1 for kind in set(kinds)), 0)
    layers = min(layers, MAX_LAYERS, config.num_hidden_layers)
    config.num_hidden_layers = layers
    # some configurations compute the kinds from the number of layers
    with suppress(AttributeError):
        config.layer_types = kinds[:layers] or None
    config.vocab_size = VOCABULARY_SIZE
    config.pad_token_id = None
    # Without attention heads, these are the widths of a state, which the other sizes must match.
    for name in _NARROWED if hasattr(config, "num_attention_heads") else ():
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, FEED_FORWARD_WIDTH)
