"""Networks that return numbers: loading, padding of a batch, and the network for text vectors.

Families differ in the class of transformers that holds the weights and in what is read from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModel

from evalwright.core.errors import ConfigurationError, EvalwrightError, ModelError
from evalwright.models.local.hf.batching import Tensor, scoring_budget
from evalwright.models.local.hf.loading import (
    check_device,
    library_error,
    load_tokenizer,
    source_arguments,
)
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import pad
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import Encoded, NetworkModel, Piece, Values
from evalwright.models.local.sentence_embedder import SentenceEmbedder

NO_CODE = ", which is never run for judges."
"""The end of messages about a checkpoint that needs code from its repository."""


def load_network(
    model: NetworkModel,
    model_class: Any,
    *,
    source: Checkpoint | None = None,
    unused: str | None = None,
    use: str = "judge pairs",
    strict: bool = False,
    **arguments: Any,
) -> Any:
    """Load a checkpoint with one of transformers' classes.

    Args:
        model: the model.
        model_class: the class of transformers.
        source: another checkpoint than the model's own.
        unused: prefix of weights that may be missing; other missing ones would be random and are
            refused.
        use: what the network is for, for messages.
        strict: whether to refuse weights that the network has no place for, too.

    Raises:
        ConfigurationError: the checkpoint does not fit.
        ModelError: it cannot be loaded.
    """
    source = source or model.source
    check_device(model.device)
    try:
        with quiet():
            network, loading_info = model_class.from_pretrained(
                source.where,
                dtype=getattr(torch, model.dtype),
                output_loading_info=True,
                use_safetensors=True if strict else None,
                **source_arguments(source),
                **arguments,
            )
    except EvalwrightError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model '{source.where}' cannot be loaded: {library_error(error, NO_CODE)}"
        ) from error
    missing = [
        name
        for name in loading_info["missing_keys"]
        if unused is None or not name.startswith(unused)
    ]
    for names, problem in (
        (missing, "lacks"),
        (loading_info["unexpected_keys"] if strict else (), "has unknown"),
    ):
        if names:
            sorted_names = sorted(names)
            remainder = (
                f" and {len(sorted_names) - 4} more" if len(sorted_names) > 4 else ""
            )
            raise ConfigurationError(
                f"The checkpoint '{source.where}' {problem} weights of a"
                f" {type(network).__name__} ({', '.join(sorted_names[:4])}{remainder}), so it was"
                f" not trained to {use}. Its config names"
                f" {source.config.get('architectures') or 'no architecture'}."
            )
    return network.to(model.device).eval()


def padded(batch: Sequence[Encoded], token: int, device: str) -> dict[str, Tensor]:
    """Return token ids, padded on the right, and a mask that hides the padding, whatever its token.

    Each is [batch, longest]; token types are added if the texts have them.
    """
    ids, mask = pad([text.tokens for text in batch], device, token)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if batch[0].types is not None:
        inputs["token_type_ids"] = pad([text.types or () for text in batch], device)[0]
    return inputs


class TextVectors:
    """Computes a vector for each text: hidden states pooled by "cls", "mean" or "max"."""

    def __init__(self, embedder: SentenceEmbedder) -> None:
        self._device = embedder.device
        facts = embedder.facts
        self._pooling = facts["pooling"]
        self._normalises = facts["normalises"]
        self.tokenizer = load_tokenizer(embedder.source, about_code=NO_CODE)
        # The pooler on top of BERT is not used for vectors, and many embedders were saved without
        # it.
        self._model = load_network(
            embedder, AutoModel, unused="pooler.", use="embed texts"
        )
        self.budget = scoring_budget(self._model, embedder.device)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Compute the vectors."""
        inputs = padded(
            [text for (text,) in batch],
            int(self.tokenizer.pad_token_id or 0),
            self._device,
        )
        with torch.inference_mode():
            states = self._model(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"].unsqueeze(-1).bool()
            if self._pooling == "cls":
                vectors = states[:, 0]
            elif self._pooling == "mean":
                vectors = (states * mask).sum(1) / mask.sum(1)
            else:
                vectors = states.masked_fill(~mask, -torch.inf).amax(1)
            if self._normalises:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
        # Nine digits represent a 32-bit float exactly, and take half the space of its 64-bit form.
        return [
            tuple(float(f"{number:.9g}") for number in row)
            for row in vectors.cpu().tolist()
        ]
