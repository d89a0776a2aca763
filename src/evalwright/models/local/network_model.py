"""Base of models with a transformers network that returns numbers and generates no text.

Judges, reward models and embedders share it. A subclass adds its own arguments to the common ones
(`**common`), calls `settle` with what decides its values, names its `network`, and turns a request
into pieces in `_pieces`. Everything else is here: repeated pieces are computed once, in batches by
length.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from evalwright.core.errors import ConfigurationError, Failure, ModelError, RequestError
from evalwright.core.requests import Request
from evalwright.core.responses import Response, Usage
from evalwright.models.local.hf.options import (
    as_count,
    require_libraries,
    resolve_device,
    resolve_dtype,
)
from evalwright.models.local.hf.source import Checkpoint, find_source
from evalwright.models.local.model_files import weight_files
from evalwright.models.model_interface import LocalModel, fingerprint_of

if TYPE_CHECKING:
    from evalwright.models.local.hf.batching import BatchRunner

Values = tuple[float, ...]

_LONG_TEXT_TOKENS = 512
"""Length in tokens from which attention costs more than the rest.

Longer texts go in smaller batches.
"""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as tokens.

    `types` says which of two texts each token is from, for networks that use it.
    """

    tokens: tuple[int, ...]
    types: tuple[int, ...] | None = None


Piece = tuple[Encoded, ...]
"""A network's input for one row of values: one text, or several that it reads separately."""


class Network(Protocol):
    """A loaded network. `budget` is the most tokens of a batch, padding included."""

    budget: int

    def values(self, batch: Sequence[Piece]) -> Sequence[Values]:
        """Compute the values of each piece of a batch, independent of the other pieces."""


class NetworkModel(LocalModel):
    """Base of models that are a transformers network in this process.

    `window` is the most tokens of a text, None for no limit.

    Args:
        name: the checkpoint.
        revision: branch, tag or commit of a hub repository.
        max_length: most tokens of a text, if not the checkpoint's limit.
        dtype: as for `hf` models.
        device: as for `hf` models.
        batch_size: as for `hf` models.

    Raises:
        ConfigurationError: an argument cannot be used.
        MissingExtra: torch or transformers is not installed.
    """

    heavy = True
    provider: ClassVar[str]
    network: ClassVar[str]
    """The function that loads the network of such a model, as "module:name"; it imports torch.

    It raises ConfigurationError or ModelError.
    """

    def __init_subclass__(cls) -> None:
        """Add the base's arguments to the signature of a subclass with `**common`."""
        parameters_by_name = dict(signature(cls.__init__).parameters)
        if parameters_by_name.pop("common", None) is not None:
            parameters_by_name |= {
                name: parameter
                for name, parameter in signature(cls.__mro__[1]).parameters.items()
                if name not in parameters_by_name
            }
            parameters = [
                parameter
                for name, parameter in parameters_by_name.items()
                if name != "self"
            ]
            cls.__signature__ = Signature(parameters)  # type: ignore[attr-defined]

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        max_length: int | None = None,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        require_libraries()
        self.name = f"{self.provider}/{name}" + (f"@{revision}" if revision else "")
        self.source = find_source(name, None if revision is None else str(revision))
        self.device = resolve_device(str(device))
        self.dtype = resolve_dtype(dtype, self.device, self.source.config)
        self.window = None if max_length is None else as_count("max_length", max_length)
        self._batch_size = (
            None if batch_size == "auto" else as_count("batch_size", batch_size)
        )
        self._network: Any = None
        self._batcher: BatchRunner[Values] | None = None

    def settle(
        self,
        facts: Mapping[str, Any],
        identity: Mapping[str, Any],
        *,
        tokenizer: Checkpoint | None = None,
        window: int | None = None,
    ) -> None:
        """Fix the fingerprint.

        Args:
            facts: what decides the values beside the common arguments; recorded.
            identity: what else decides them.
            tokenizer: the tokenizer's source, if it may be another checkpoint.
            window: the checkpoint's own limit.
        """
        self.tokens = self.source if tokenizer is None else tokenizer
        self.window = self.window or window
        self.facts = dict(facts)
        common = {"backend": self.provider, "dtype": self.dtype, "window": self.window}
        self.fingerprint = fingerprint_of({**common, **identity, **facts})

    @abstractmethod
    def _pieces(self, request: Any) -> list[Piece]:
        """Turn a request into pieces; of several pieces the one with the highest last value counts.

        Raises:
            RequestError: the request cannot be read.
        """

    def describe(self) -> dict[str, Any]:
        """Describe checkpoint, revision, and everything else that decides the values."""
        return {
            **super().describe(),
            "backend": "transformers",
            "architecture": next(
                iter(self.source.config.get("architectures") or []), None
            ),
            "revision": self.source.revision,
            "dtype": self.dtype,
            "device": self.device,
            "window": self.window,
            **self.facts,
        }

    def check(self) -> None:
        """Raise if the files show that the model cannot be used; nothing is loaded."""
        if self.source.folder and not weight_files(self.source.folder):
            raise ConfigurationError(
                f"The model folder '{self.source.where}' has no weights"
                " (*.safetensors)."
            )

    def load(self) -> None:
        """Load weights and tokenizer."""
        if self._network is None:
            from evalwright.models.local.hf.batching import BatchRunner

            module, _, name = self.network.partition(":")
            self._network = getattr(import_module(module), name)(self)
            for source in {
                id(source): source for source in (self.source, self.tokens)
            }.values():
                source.require_unchanged()
            budget = self._network.budget if self._batch_size is None else 1 << 62
            self._batcher = BatchRunner(self._batch_size, budget)

    def unload(self) -> None:
        """Free the weights; the model can be loaded again."""
        if self._network is not None:
            from evalwright.models.local.hf.batching import free_memory

            self._network = self._batcher = None
            free_memory()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield each request's values when the last of its pieces is done, longest first."""
        self.load()
        assert self._batcher is not None
        pieces: dict[int, list[Piece]] = {}
        places: dict[Piece, list[int]] = {}
        for index, request in enumerate(requests):
            request_pieces = self._read(request)
            if isinstance(request_pieces, Failure):
                yield index, request_pieces
                continue
            pieces[index] = request_pieces
            for piece in set(request_pieces):
                places.setdefault(piece, []).append(index)
        distinct = list(places)
        costs = [
            sum(
                len(text.tokens) * (1 + len(text.tokens) // _LONG_TEXT_TOKENS)
                for text in piece
            )
            for piece in distinct
        ]
        values_by_piece: dict[Piece, Values | Failure] = {}
        waiting = {
            index: len(set(request_pieces)) for index, request_pieces in pieces.items()
        }
        for number, outcome in self._batcher.run(
            costs,
            lambda batch: self._network.values([distinct[index] for index in batch]),
        ):
            values_by_piece[distinct[number]] = outcome
            for index in places[distinct[number]]:
                waiting[index] -= 1
                if not waiting[index]:
                    yield (
                        index,
                        self._response(
                            pieces[index],
                            [values_by_piece[piece] for piece in pieces[index]],
                        ),
                    )

    def _read(self, request: Request) -> list[Piece] | Failure:
        try:
            if request.ability not in self.abilities:
                raise ModelError(f"'{self.name}' cannot do '{request.ability}'.")
            return self._pieces(request)
        except RequestError as error:
            return error.as_failure()
        except (
            Exception
        ) as error:  # a tokenizer's or a template's refusal concerns only this request
            return ModelError(
                f"The request cannot be tokenised: {type(error).__name__}: {error}"
            ).as_failure()

    def _response(
        self, pieces: Sequence[Piece], outcomes: Sequence[Values | Failure]
    ) -> Response | Failure:
        values = []
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                return outcome
            if not all(number - number == 0 for number in outcome):
                return ModelError(
                    f"'{self.name}' gave a value that is no finite number."
                ).as_failure()
            values.append(outcome)
        tokens = sum(len(text.tokens) for piece in pieces for text in piece)
        return Response(
            values=max(values, key=lambda row: row[-1]),
            usage=Usage(input_tokens=tokens),
        )
