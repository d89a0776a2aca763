"""Networks that give values: how one is loaded, how a batch of texts is padded, and the one that
gives vectors.

The families differ in the class of transformers that holds the weights and in what is read of it.
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
    load_tokenizer,
    reason,
    where,
)
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import pad
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import Encoded, NetworkModel, Piece, Values
from evalwright.models.local.sentence_embedder import SentenceEmbedder

NO_CODE = ", which is never run for judges."
"""What is said of a checkpoint that needs code from its repository."""


def load_network(
    model: NetworkModel,
    kind: Any,
    *,
    source: Checkpoint | None = None,
    unused: str | None = None,
    use: str = "judge pairs",
    strict: bool = False,
    **more: Any,
) -> Any:
    """A checkpoint by one of transformers' classes, ready for requests.

    Raises ConfigurationError or ModelError.

    source: another checkpoint than the model's own. Weights that it lacks would be random: such a
    network is refused, unless their names begin with `unused`. strict: weights that the network has
    no place for are refused too.
    """
    source = source or model.source
    check_device(model.device)
    try:
        with quiet():
            network, said = kind.from_pretrained(
                source.where,
                dtype=getattr(torch, model.dtype),
                output_loading_info=True,
                use_safetensors=True if strict else None,
                **where(source),
                **more,
            )
    except EvalwrightError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model '{source.where}' cannot be loaded: {reason(error, NO_CODE)}"
        ) from error
    missing = [
        name
        for name in said["missing_keys"]
        if unused is None or not name.startswith(unused)
    ]
    for names, what in (
        (missing, "lacks"),
        (said["unexpected_keys"] if strict else (), "has unknown"),
    ):
        if names:
            shown = sorted(names)
            rest = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
            raise ConfigurationError(
                f"The checkpoint '{source.where}' {what} weights of a"
                f" {type(network).__name__} ({', '.join(shown[:4])}{rest}), so it was"
                f" not trained to {use}. Its config names"
                f" {source.config.get('architectures') or 'no architecture'}."
            )
    return network.to(model.device).eval()


def padded(batch: Sequence[Encoded], token: int, device: str) -> dict[str, Tensor]:
    """Token ids, padded on the right, and a mask that hides the padding by its place, whatever its
    token.

    Each is [batch, longest]; token types where the pairs have them.
    """
    ids, mask = pad([each.tokens for each in batch], device, token)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if batch[0].types is not None:
        inputs["token_type_ids"] = pad([each.types or () for each in batch], device)[0]
    return inputs


class TextVectors:
    """A vector for each text: its hidden states pooled by "cls", "mean" or "max", and where wanted
    of length 1.
    """

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
        """The vectors."""
        inputs = padded(
            [text for (text,) in batch],
            int(self.tokenizer.pad_token_id or 0),
            self._device,
        )
        with torch.inference_mode():
            states = self._model(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"].unsqueeze(-1).bool()
            if self._pooling == "cls":
                found = states[:, 0]
            elif self._pooling == "mean":
                found = (states * mask).sum(1) / mask.sum(1)
            else:
                found = states.masked_fill(~mask, -torch.inf).amax(1)
            if self._normalises:
                found = torch.nn.functional.normalize(found, dim=-1)
        # Nine digits say a 32-bit float exactly, and take half the room of its 64-bit form.
        return [
            tuple(float(f"{value:.9g}") for value in row)
            for row in found.cpu().tolist()
        ]
