"""COMET's network: mixes an encoder's layers and pools over tokens, then scores the three texts.

The pooled vectors go, with their products and differences, into a small feed-forward network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel

from evalwright.core.errors import ModelError
from evalwright.core.requests import Reward
from evalwright.models.local.hf.batching import Tensor, scoring_budget
from evalwright.models.local.hf.loading import load_tokenizer, source_arguments
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.network_model import Encoded, Piece, Values
from evalwright.models.local.networks import NO_CODE, padded
from evalwright.models.rewards.comet import CometModel
from evalwright.models.rewards.prompts import needed_reference, plain_prompt


class Comet:
    """A loaded COMET metric; above the encoder everything is computed in 32-bit floats."""

    def __init__(self, model: CometModel) -> None:
        name = model.name
        source = model.source
        device = model.device
        hparams = model.hparams
        self._name = name
        self._device = device
        self._pool = hparams["pool"]
        self._tokenizer = load_tokenizer(source, about_code=NO_CODE)
        with quiet():
            self._encoder = AutoModel.from_config(
                AutoConfig.from_pretrained(source.where, **source_arguments(source))
            )
        state = _state(model.weights)
        prefix = "encoder.model."
        encoder_state = {
            key.removeprefix(prefix): tensor
            for key, tensor in state.items()
            if key.startswith(prefix)
        }
        unused = ("pooler.", "embeddings.position_ids")
        missing = [
            key
            for key in self._encoder.load_state_dict(
                encoder_state, strict=False
            ).missing_keys
            if not key.startswith(unused)
        ]
        if missing:
            raise ModelError(
                f"The weights of '{name}' lack {len(missing)} of its encoder's, such as"
                f" {missing[0]}: name its encoder with -M encoder=..."
            )
        self._encoder = self._encoder.to(getattr(torch, model.dtype)).to(device).eval()
        self.budget = scoring_budget(self._encoder, device)
        try:
            self._mix = _mixing(
                hparams, state, self._encoder.config.num_hidden_layers + 1
            )
            self._estimate = _estimator(hparams, state)
        except KeyError as error:
            raise ModelError(
                f"The weights of '{name}' lack {error}, which its hparams.yaml calls"
                " for."
            ) from None

    def encode(self, request: Reward) -> Piece:
        """Encode source, translation and reference."""
        texts = (
            plain_prompt(request.prompt),
            request.response,
            needed_reference(request, self._name),
        )
        return tuple(Encoded(tuple(self._tokenizer.encode(text))) for text in texts)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Compute the metric."""
        texts = list(dict.fromkeys(text for piece in batch for text in piece))
        inputs = padded(texts, int(self._tokenizer.pad_token_id or 0), self._device)
        with torch.inference_mode(), quiet():
            states = self._encoder(**inputs, output_hidden_states=True).hidden_states
            mask = inputs["attention_mask"].cpu()
            pooled = self._pooled(
                self._mix(
                    [layer_states.float().cpu() for layer_states in states], mask
                ),
                mask,
            )
            rows = {text: row for row, text in enumerate(texts)}
            source, reply, reference = (
                pooled[[rows[piece[index]] for piece in batch]] for index in range(3)
            )
            features = [reply, reference]
            for compared in (reference, source):
                features += [reply * compared, (reply - compared).abs()]
            return [
                (float(score),)
                for score in self._estimate(torch.cat(features, dim=1))[:, 0]
            ]

    def _pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        token_mask = mask.unsqueeze(-1).bool()
        if self._pool == "cls":
            return states[:, 0]
        if self._pool == "max":
            return states.masked_fill(~token_mask, float("-inf")).amax(1)
        return (states * token_mask).sum(1) / mask.sum(1, keepdim=True)


def _state(path: Path) -> dict[str, Tensor]:
    """Load the weights by name; a .ckpt is read without running its code."""
    if path.suffix == ".safetensors":
        return dict(load_file(path))
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"'{path}' holds more than weights, which is not read"
            f" ({type(error).__name__}). Convert it to model.safetensors."
        ) from None
    return dict(
        read["state_dict"]
        if isinstance(read, Mapping) and "state_dict" in read
        else read
    )


def sparsemax(values: Tensor) -> Tensor:
    """Project a vector onto the simplex (sparsemax: Martins & Astudillo 2016)."""
    ordered = values.sort(descending=True).values
    sums = ordered.cumsum(0)
    places = torch.arange(1, len(values) + 1, dtype=values.dtype)
    count = int((1 + places * ordered > sums).sum())
    return (values - (sums[count - 1] - 1) / count).clamp(min=0)


def _mixing(
    hparams: Mapping[str, Any], state: Mapping[str, Tensor], layers: int
) -> Callable[[Sequence[Tensor], Tensor], Tensor]:
    """Make the function that combines the hidden states of all layers into one.

    It selects a layer by its number, or mixes them.

    Raises:
        KeyError: weights are missing.
    """
    if hparams["layer"] != "mix":
        layer_index = int(hparams["layer"])
        return lambda states, mask: states[layer_index]
    scalars = [
        state[f"layerwise_attention.scalar_parameters.{layer_index}"]
        for layer_index in range(layers)
    ]
    weights = torch.cat(scalars).float()
    shares = (
        sparsemax(weights)
        if hparams["layer_transformation"] == "sparsemax"
        else weights.softmax(0)
    )
    gamma = state["layerwise_attention.gamma"].float()

    def mixed(states: Sequence[Tensor], mask: Tensor) -> Tensor:
        used = (
            [_normalised(layer_states, mask) for layer_states in states]
            if hparams["layer_norm"]
            else states
        )
        return gamma * sum(
            share * layer_states
            for share, layer_states in zip(shares, used, strict=True)
        )

    return mixed


def _normalised(states: Tensor, mask: Tensor) -> Tensor:
    """Normalise states to mean 0, variance 1 over all numbers of a text, [batch, tokens, size]."""
    token_mask = mask.unsqueeze(-1).float()
    count = (mask.sum(1) * states.shape[-1]).view(-1, 1, 1)
    mean = (states * token_mask).sum((1, 2), keepdim=True) / count
    variance = (((states * token_mask) - mean).mul(token_mask) ** 2).sum(
        (1, 2), keepdim=True
    ) / count
    return (states - mean) / (variance + 1e-12).sqrt()


def _estimator(hparams: Mapping[str, Any], state: Mapping[str, Tensor]) -> Any:
    """Build the feed-forward network.

    Its layers are in the checkpoint, with an activation and a dropout after each.
    """
    layers: list[Any] = []
    count = len(hparams["hidden_sizes"]) + 1
    for layer_index in range(count):
        weight, bias = (
            state[f"estimator.ff.{3 * layer_index}.{parameter}"].float()
            for parameter in ("weight", "bias")
        )
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.load_state_dict({"weight": weight, "bias": bias})
        layers.append(linear)
        activation = (
            hparams["activations"]
            if layer_index < count - 1
            else hparams["final_activation"]
        )
        if activation:
            layers.append(getattr(torch.nn, activation)())
    return torch.nn.Sequential(*layers).eval()
