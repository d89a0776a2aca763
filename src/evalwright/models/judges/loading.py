"""Brings a judge's network and tokenizer into memory, quietly; what a library says in classes is said in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer

from evalwright.core.errors import ConfigurationError, EvalwrightError, ModelError
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.hf.loading import check_device, reason, where
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Source

_NO_CODE = ", which is never run for judges."


def load_tokenizer(source: Source) -> Any:
    """The tokenizer of a folder or repository, which does not complain of long texts. Raises ConfigurationError."""
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.where, **where(source))
    except Exception as error:
        raise ConfigurationError(
            f"The tokenizer of '{source.where}' cannot be loaded: {reason(error, _NO_CODE)}"
        ) from error
    tokenizer.model_max_length = 1 << 62
    return tokenizer


def load_network(
    source: Source, kind: Any, dtype: str, device: str, *, unused: str | None = None, use: str = "judge pairs"
) -> Any:
    """A checkpoint by one of transformers' auto classes, ready for requests. Raises ConfigurationError or ModelError.

    Weights that the checkpoint lacks would be random: such a network is refused, unless their names begin with `unused`.
    """
    check_device(device)
    try:
        with quiet():
            config = AutoConfig.from_pretrained(source.where, **where(source))
            network, said = kind.from_pretrained(
                source.where,
                config=config,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                **where(source),
            )
    except EvalwrightError:
        raise
    except Exception as error:
        raise ModelError(f"The model '{source.where}' cannot be loaded: {reason(error, _NO_CODE)}") from error
    named = (str(name) for name in said.get("missing_keys") or ())
    missing = sorted(name for name in named if unused is None or not name.startswith(unused))
    if missing:
        raise ConfigurationError(
            f"The checkpoint '{source.where}' lacks weights of a {type(network).__name__} ({listed(missing)}), so it was not "
            f"trained to {use}. Its config names {source.config.get('architectures') or 'no architecture'}."
        )
    return network.to(device).eval()


def padded(batch: Sequence[Encoded], pad: int, device: str) -> dict[str, torch.Tensor]:
    """Token ids, padded on the right, and a mask that hides the padding by its place, whatever its token.

    Each is [batch, longest]; token types where the pairs have them.
    """
    width = max(len(each.tokens) for each in batch)
    inputs = {
        "input_ids": [(*each.tokens, *([pad] * (width - len(each.tokens)))) for each in batch],
        "attention_mask": [[1] * len(each.tokens) + [0] * (width - len(each.tokens)) for each in batch],
    }
    if batch[0].types is not None:
        inputs["token_type_ids"] = [
            (*(each.types or ()), *([0] * (width - len(each.types or ())))) for each in batch
        ]
    return {name: torch.tensor(rows, device=device) for name, rows in inputs.items()}


def listed(names: Sequence[str], most: int = 4) -> str:
    """A few names, and how many more."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
