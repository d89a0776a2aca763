"""Products with a model's weights on a CPU, with weights that are laid out once.

With some dozen rows, a product that first brings the weights into the kernel's own layout spends as
long on that as on multiplying. oneDNN takes weights that are laid out once, and then a row's
numbers do not depend on how many rows are beside it, so they do not depend on the batch either.
Of a thousand rows, its products are about a seventh faster. Its sums are rounded in another order
than those of the plain product, so scores are compared with plain ones before they are used.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from evalwright.models.local.hf.batching import Tensor, is_out_of_memory
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import has_hooks

_X86 = ("x86_64", "AMD64", "amd64")

_TYPICAL_ROWS = 64
"""Rows that the layout is chosen for; it serves any number of them."""


class PackedProducts:
    """The linear layers of a model with packed weights, which take as much memory again.

    They are packed when they are first used: the output head apart from the layers, because scoring
    reads it in blocks. `active` says whether they are used at all. Weights that change afterwards
    are not seen: a loaded model's do not, as adapters are merged into them before.

    Args:
        model: the transformers model.
        device: where it is.
        budget: most bytes of packed weights.
    """

    def __init__(self, model: Any, device: str, budget: int) -> None:
        layers = [module for module in model.modules() if _is_plain_linear(module)]
        needed = sum(layer.weight.nbytes for layer in layers)
        head = model.get_output_embeddings()
        self._head = [layer for layer in layers if layer is head]
        self._body = [layer for layer in layers if layer is not head]
        self._forwards: dict[int, Callable[[Tensor], Tensor]] = {}
        self.active = (
            device == "cpu" and needed <= budget and bool(layers) and are_supported()
        )

    @property
    def packed_bytes(self) -> int:
        """Bytes of the weights that are packed now."""
        return sum(
            layer.weight.nbytes
            for layer in (*self._body, *self._head)
            if id(layer) in self._forwards
        )

    def close(self) -> None:
        """Free the packed weights, and do not use them again."""
        self.active = False
        self._forwards = {}

    @contextmanager
    def applied(self, head: bool = True) -> Iterator[None]:
        """Let the model's linear layers use the packed weights within the block.

        Args:
            head: whether the output head does so too.
        """
        layers = [*self._body, *self._head] if head else self._body
        if self.active:
            self._pack(layers)
        if not self.active:
            layers = []
        try:
            for layer in layers:
                layer.__dict__["forward"] = self._forwards[id(layer)]
            yield
        finally:
            for layer in layers:
                layer.__dict__.pop("forward", None)

    def _pack(self, layers: Sequence[Any]) -> None:
        """Pack what is not packed yet; if that fails, go on without.

        The operations are none that torch promises to keep.
        """
        try:
            for layer in layers:
                if id(layer) not in self._forwards:
                    self._forwards[id(layer)] = _packed_forward(layer)
        except Exception as error:
            if not is_out_of_memory(error):
                logger.warning(
                    "Products are computed without packed weights: %s: %s",
                    type(error).__name__,
                    error,
                )
            self.close()


def _is_plain_linear(module: Any) -> bool:
    """Return whether a module does nothing but a product in float32 on a CPU."""
    return (
        type(module) is torch.nn.Linear
        and not has_hooks(module)
        and "forward" not in module.__dict__
        # Quantised weights are tensors of their own kind, which may call themselves float32.
        and type(module.weight) is torch.nn.Parameter
        and module.weight.dtype == torch.float32
        and module.weight.device.type == "cpu"
    )


def are_supported() -> bool:
    """Return whether this processor and this release of torch have such products."""
    return (
        platform.machine() in _X86
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _packed_forward(layer: Any) -> Callable[[Tensor], Tensor]:
    """Pack the weight of a linear layer; return what computes its output."""
    with torch.inference_mode():
        weight = torch.ops.mkldnn._reorder_linear_weight(
            layer.weight.detach(), _TYPICAL_ROWS
        )
    bias = layer.bias
    multiply = torch.ops.mkldnn._linear_pointwise

    def forward(states: Tensor) -> Tensor:
        product: Tensor = multiply(states, weight, bias, "none", [], "")
        return product

    return forward
