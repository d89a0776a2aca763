"""Adapters of the library peft (LoRA and similar) on top of a base model."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.models.local.hf.source import ADAPTER_CONFIG, Checkpoint, find_source

PROMPT_METHODS = ("PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "CPT")
"""Methods that put learnt tokens in front of every input instead of changing weights."""


def find_adapter(name: str) -> Checkpoint:
    """The adapter `<hub repository or folder>[@revision]`; nothing is loaded.

    Raises MissingExtra without peft, ConfigurationError for what is no adapter or one that cannot be used here.
    """
    require_peft(f"The adapter '{name}'")
    where, _, revision = name.partition("@")
    source = find_source(where, revision or None, needs=ADAPTER_CONFIG)
    method = str(source.adapter.get("peft_type", ""))
    if method in PROMPT_METHODS:
        raise ConfigurationError(
            f"The adapter '{name}' is of the kind {method}, which puts learned tokens in front of every input; only adapters "
            f"that change weights (LoRA and similar) can be used."
        )
    return source


def require_peft(what: str) -> None:
    """Raise MissingExtra, with the command that installs it, where peft is not installed."""
    if find_spec("peft") is None:
        raise MissingExtra(what, "peft", "peft")


def check_embedded(name: str, source: Checkpoint) -> None:
    """A model's folder may hold an adapter too, which transformers adds by itself, but only where peft is installed."""
    if not source.adapter:
        return
    if source.folder is None:
        # Here transformers would load the base that the adapter names, in whatever state the hub has it.
        base = source.adapter.get("base_model_name_or_path")
        raise ConfigurationError(
            f"The hub repository '{name}' is an adapter: name its base model ('{base}', as its own file says) as the "
            f"model, and the adapter as -M peft=..."
        )
    require_peft(f"The model '{name}', whose folder holds an adapter,")


def apply_adapter(model: Any, tokenizer: Any, adapter: Checkpoint, *, device: str | None, merge: bool) -> Any:
    """The model with the adapter in it. device: where the adapter's weights go. merge: add it to the weights for good.

    Merged or not, the result is a model of transformers as before, not a wrapper around one. Embeddings grow to the
    tokenizer's length where that has more tokens, which adapters trained with tokens of their own need.
    """
    from peft import PeftModel

    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(len(tokenizer))
    arguments: dict[str, Any] = {} if device is None else {"torch_device": device}
    if adapter.revision is not None:
        arguments["revision"] = adapter.revision
    if adapter.local:
        arguments["local_files_only"] = True
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        wrapped = PeftModel.from_pretrained(model, adapter.where, **arguments)
    # What is missing stays as it was made, at random or at nothing, and is only warned of.
    missing = next((str(each.message) for each in said if "missing adapter keys" in str(each.message)), None)
    if missing is not None:
        raise ConfigurationError(
            f"The adapter '{adapter.where}' does not fit this model: it lacks weights ({missing[:300]})."
        )
    if merge:
        return wrapped.merge_and_unload()
    wrapped.requires_grad_(False)
    return wrapped.get_base_model()
