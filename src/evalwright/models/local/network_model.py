"""What judges and rewards of a transformers network share: arguments, loading, freeing.

Such a model gives values and writes no text. A subclass calls `settle_network` with the checkpoints that it is made of, and gives the
network in `_open`; requests are run in batches by length.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from evalwright.core.errors import ConfigurationError
from evalwright.models.base import LocalModel
from evalwright.models.local.files import weight_files
from evalwright.models.local.hf.options import as_count, require_libraries, resolve_device, resolve_dtype

if TYPE_CHECKING:
    from evalwright.models.local.hf.batching import BatchRunner
    from evalwright.models.local.hf.source import Checkpoint


class Budgeted(Protocol):
    """A loaded network. budget: tokens that a batch may hold, padding included."""

    budget: int


Network = TypeVar("Network", bound=Budgeted)
Value = TypeVar("Value")


class NetworkModel(LocalModel, Generic[Network, Value]):
    """Base of the models that a transformers network in this process is. Value: what a batch gives for each item."""

    heavy = True

    def __init__(self, provider: str, name: str, revision: str | None) -> None:
        require_libraries()
        self._provider = provider
        self.name = f"{provider}/{name}" + (f"@{revision}" if revision else "")
        self._network: Network | None = None
        self._batcher: BatchRunner[Value] | None = None
        self._sources: tuple[Checkpoint, ...] = ()

    def settle_network(
        self, sources: Sequence[Checkpoint], dtype: str, device: str, batch_size: int | str
    ) -> None:
        """Check the common arguments. sources: the weights first. Raises ConfigurationError."""
        self._sources = tuple(sources)
        self.device = resolve_device(str(device))
        self.dtype = resolve_dtype(dtype, self.device, sources[0].config)
        self._batch_size = None if batch_size == "auto" else as_count("batch_size", batch_size)

    @abstractmethod
    def _open(self) -> Network:
        """Load the network. Raises ConfigurationError or ModelError."""

    def describe(self) -> dict[str, Any]:
        """Checkpoint, revision, and what else of the common arguments decides the values."""
        first = self._sources[0]
        return {
            **super().describe(),
            "backend": "transformers",
            "architecture": next(iter(first.config.get("architectures") or []), None),
            "revision": first.revision,
            "dtype": self.dtype,
            "device": self.device,
        }

    def check(self) -> None:
        """Raise where the files show that it cannot be used; nothing is loaded."""
        source = self._sources[0]
        if source.folder and not weight_files(source.folder):
            raise ConfigurationError(f"The model folder '{source.where}' has no weights (*.safetensors).")

    def load(self) -> None:
        """Load weights and tokenizer."""
        if self._network is None:
            from evalwright.models.local.hf.batching import BatchRunner

            self._network = self._open()
            for source in self._sources:
                source.require_unchanged()
            budget = self._network.budget if self._batch_size is None else 1 << 62
            self._batcher = BatchRunner(self._batch_size, budget)

    def unload(self) -> None:
        """Free the weights; it can be loaded again."""
        if self._network is not None:
            from evalwright.models.local.hf.batching import free_memory

            self._network = self._batcher = None
            free_memory()
