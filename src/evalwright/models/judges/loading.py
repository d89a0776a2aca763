"""Brings a judge's network and tokenizer into memory, quietly; what a library says in classes is said in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer

from evalwright.core.errors import ConfigurationError, EvalwrightError, ModelError
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Source


def load_tokenizer(source: Source) -> Any:
    """The tokenizer of a folder or repository, which does not complain of long texts. Raises ConfigurationError."""
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.where, **_where(source))
    except Exception as error:
        raise ConfigurationError(
            f"The tokenizer of '{source.where}' cannot be loaded: {_reason(error)}"
        ) from error
    tokenizer.model_max_length = 1 << 62
    return tokenizer


def load_network(source: Source, kind: Any, dtype: str, device: str) -> Any:
    """A checkpoint by one of transformers' auto classes, ready to be asked. Raises ConfigurationError or ModelError.

    Weights that the checkpoint lacks would be random: such a network is refused.
    """
    check_device(device)
    try:
        with quiet():
            config = AutoConfig.from_pretrained(source.where, **_where(source))
            network, said = kind.from_pretrained(
                source.where,
                config=config,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                **_where(source),
            )
    except EvalwrightError:
        raise
    except Exception as error:
        raise ModelError(f"The model '{source.where}' cannot be loaded: {_reason(error)}") from error
    missing = sorted(str(name) for name in said.get("missing_keys") or ())
    if missing:
        raise ConfigurationError(
            f"The checkpoint '{source.where}' lacks weights of a {type(network).__name__} ({listed(missing)}), so it was not "
            f"trained to judge pairs. Its config names {source.config.get('architectures') or 'no architecture'}."
        )
    return network.to(device).eval()


def check_device(device: str) -> None:
    """Raise ConfigurationError where torch cannot use the GPU that was asked for."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigurationError(
            "The model is to run on a GPU, but torch cannot use one here: install a build of torch for it, or say "
            "device=cpu."
        )


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


def _where(source: Source) -> dict[str, Any]:
    out: dict[str, Any] = {"trust_remote_code": False}
    if source.local:
        out["local_files_only"] = True
    if source.revision is not None:
        out["revision"] = source.revision
    return out


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "trust_remote_code" in text:
        return "it needs code from its own repository, which judges never run."
    return f"{type(error).__name__}: {text[:500]}"
