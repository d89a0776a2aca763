"""The demonstration network in plain torch: a Llama-like decoder (RMSNorm, rotary positions,
SwiGLU, tied embeddings).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from scripts.demo_models.shape import Shape
from torch import Tensor, nn
from torch.nn import functional


# The type checker does not follow torch, hence the ignored base classes.
class RootMeanSquareNorm(nn.Module):  # type: ignore[misc]
    """x / sqrt(mean(x²) + epsilon) · weight, over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return (
            x
            * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon)
            * self.weight
        )


class Layer(nn.Module):  # type: ignore[misc]
    """Causal self-attention, then a SwiGLU, each on the normed stream and added to it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = RootMeanSquareNorm(shape.width, shape.epsilon)
        self.query, self.key, self.value, self.output = (
            nn.Linear(shape.width, shape.width, bias=False) for _ in range(4)
        )
        self.inner_norm = RootMeanSquareNorm(shape.width, shape.epsilon)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        normed = self.attention_norm(x)
        query, key, value = (
            linear(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        query = rotate(query, cosine, sine)
        key = rotate(key, cosine, sine)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + self.output(mixed.transpose(1, 2).flatten(-2))
        normed = self.inner_norm(x)
        return x + cast(
            Tensor, self.down(functional.silu(self.gate(normed)) * self.up(normed))
        )


class Network(nn.Module):  # type: ignore[misc]
    """tokens [batch, length] -> logits [batch, length, vocabulary]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RootMeanSquareNorm(shape.width, shape.epsilon)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # What is added to the stream starts smaller, the more layers add to it.
                small = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(
                    parameter, std=0.02 / (2 * shape.layers) ** 0.5 if small else 0.02
                )

    def forward(self, tokens: Tensor) -> Tensor:
        cosine, sine = rotation(tokens.shape[1], self.shape)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return functional.linear(self.norm(x), self.embedding.weight)

    def parameter_count(self) -> int:
        """The number of trained parameters; the shared embedding counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def rotation(length: int, shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary positions 0..length-1, each [length, head size]."""
    places = torch.arange(0, shape.head_size, 2, dtype=torch.float32)
    angles = torch.outer(
        torch.arange(length, dtype=torch.float32),
        shape.rope_base ** (-places / shape.head_size),
    )
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions in the half-split order that Llama checkpoints have."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-second, first], dim=-1) * sine


def round_to_half(network: Network) -> None:
    """Round every weight to the nearest half-precision number, so that the exported file holds
    exactly this network.
    """
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.half().float())


def weights_of(network: Network) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """The weights as arrays, by name."""
    return {
        name: parameter.detach().numpy()
        for name, parameter in network.state_dict().items()
    }
