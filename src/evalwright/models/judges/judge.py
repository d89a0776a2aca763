"""What the local judges share: pairs into token sequences, long premises into chunks, batches by length, one answer per pair.

A judge gives a `Network`, which encodes a pair and reads P(supported) of a batch; everything else is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response, Usage
from evalwright.models.base import LocalModel, fingerprint_of
from evalwright.models.judges.chunking import Chunking, DoesNotFit, chunks, read_chunking
from evalwright.models.local.files import weight_files
from evalwright.models.local.hf.options import as_count, require_libraries, resolve_device, resolve_dtype
from evalwright.models.local.hf.source import Source, find_source

if TYPE_CHECKING:
    from evalwright.models.local.hf.batching import Batcher

_ROUGHLY = 512
"""From about this length on, attention costs more than the rest, so long pairs go in smaller batches."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A pair as tokens. types: which of the two texts each token is of, for networks that are told."""

    tokens: tuple[int, ...]
    types: tuple[int, ...] | None = None


class Network(Protocol):
    """A loaded judge. budget: tokens that a batch may hold, padding included.

    encode: the whole pair with its special tokens, never cut. count: tokens of a premise alone, in the unit in which `chunk`
    counts. supported: P(supported) of each pair of a batch; a pair's number does not depend on its company.
    """

    budget: int

    def encode(self, premise: str, hypothesis: str) -> Encoded: ...

    def count(self, premise: str) -> int: ...

    def supported(self, batch: Sequence[Encoded]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What is common to the arguments of local judges. window: tokens that a pair may have, None where there is no limit.

    batch_size: pairs at the most, None where the memory decides. piece: the most that a chunk's premise may count, if any.
    """

    dtype: str
    device: str
    batch_size: int | None
    chunking: Chunking
    window: int | None
    piece: int | None

    def identity(self) -> dict[str, Any]:
        """What of these changes an answer."""
        return {
            "dtype": self.dtype,
            "chunk": self.chunking.as_json(),
            "window": self.window,
            "piece": self.piece,
        }


def read_settings(
    source: Source,
    *,
    dtype: str,
    device: str,
    batch_size: int | str,
    chunk: int | str,
    max_length: int | None,
    window: int | None,
    piece: int | None = None,
) -> Settings:
    """Check the common arguments. window, piece: what the checkpoint itself says. Raises ConfigurationError."""
    on = resolve_device(str(device))
    chunking = read_chunking(chunk)
    return Settings(
        dtype=resolve_dtype(dtype, on, source.config),
        device=on,
        batch_size=None if batch_size == "auto" else as_count("batch_size", batch_size),
        chunking=chunking,
        window=window if max_length is None else as_count("max_length", max_length),
        piece=piece if chunking.mode == "auto" else chunking.tokens,
    )


class LocalJudge(LocalModel):
    """Base of the judges that a transformers network is. Its `values` are (P(not supported), P(supported)).

    A subclass sets `settings`, calls `settle` with what else names it, and gives the network in `_open`.
    """

    abilities: frozenset[Ability] = frozenset({"classify"})
    settings: Settings
    heavy = True

    def __init__(self, provider: str, name: str, revision: str | None) -> None:
        require_libraries()
        self.name = f"{provider}/{name}" + (f"@{revision}" if revision else "")
        self._source = find_source(name, None if revision is None else str(revision))
        self._network: Network | None = None
        self._batcher: Batcher[float] | None = None
        self._facts: dict[str, Any] = {}

    def settle(self, backend: str, facts: Mapping[str, Any]) -> None:
        """Fix the fingerprint. facts: what beside the checkpoint and the settings decides the answers; recorded."""
        self._facts = dict(facts)
        self.fingerprint = fingerprint_of(
            {
                "backend": backend,
                "source": dict(self._source.identity),
                **self.settings.identity(),
                **self._facts,
            }
        )

    def _open(self) -> Network:
        """Load the network. Raises ConfigurationError or ModelError."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Checkpoint, revision, and everything else that decides the answers."""
        settings = self.settings
        return {
            **super().describe(),
            "backend": "transformers",
            "architecture": next(iter(self._source.config.get("architectures") or []), None),
            "revision": self._source.revision,
            "dtype": settings.dtype,
            "device": settings.device,
            "chunk": settings.chunking.as_json(),
            "chunk_size": settings.piece,
            "window": settings.window,
            "values": ["not supported", "supported"],
            **self._facts,
        }

    def check(self) -> None:
        """Raise where the files show that the judge cannot be used; nothing is loaded."""
        from evalwright.core.errors import ConfigurationError

        if self._source.folder and not weight_files(self._source.folder):
            raise ConfigurationError(
                f"The model folder '{self._source.where}' has no weights (*.safetensors)."
            )

    def load(self) -> None:
        """Load weights and tokenizer."""
        if self._network is None:
            from evalwright.models.local.hf.batching import Batcher

            self._network = self._open()
            rows = self.settings.batch_size
            self._batcher = Batcher(rows, self._network.budget if rows is None else 1 << 62)

    def unload(self) -> None:
        """Free the weights; the judge can be loaded again."""
        if self._network is not None:
            from evalwright.models.local.hf.batching import free_memory

            self._network = self._batcher = None
            free_memory()

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield each pair's answer when the last of its chunks is done, longest pairs first."""
        self.load()
        assert self._network is not None and self._batcher is not None
        pieces: dict[int, list[Encoded]] = {}
        for index, request in enumerate(requests):
            made = self._pieces(self._network, request)
            if isinstance(made, Failure):
                yield index, made
            else:
                pieces[index] = made
        yield from self._judged(self._network, self._batcher, pieces)

    def _judged(
        self, network: Network, batcher: Batcher[float], pieces: Mapping[int, list[Encoded]]
    ) -> Iterator[tuple[int, Response | Failure]]:
        places: dict[Encoded, list[int]] = {}
        for index, own in pieces.items():
            for piece in set(own):
                places.setdefault(piece, []).append(index)
        distinct = list(places)
        costs = [len(piece.tokens) * (1 + len(piece.tokens) // _ROUGHLY) for piece in distinct]
        waiting = {index: len(set(own)) for index, own in pieces.items()}
        best: dict[int, float] = {}
        failed: dict[int, Failure] = {}
        for number, found in batcher.run(
            costs, lambda batch: network.supported([distinct[i] for i in batch])
        ):
            for index in places[distinct[number]]:
                waiting[index] -= 1
                if isinstance(found, Failure):
                    failed[index] = found
                else:
                    best[index] = max(best.get(index, 0.0), found)
                if not waiting[index]:
                    yield index, failed[index] if index in failed else _response(best[index], pieces[index])

    def _pieces(self, network: Network, request: Request) -> list[Encoded] | Failure:
        """The pair as token sequences, one per chunk of its premise; a failure where it cannot be read whole."""
        if not isinstance(request, Classify):
            return ModelError(
                f"'{self.name}' classifies pairs; it cannot do '{request.ability}'."
            ).as_failure()
        window, piece = self.settings.window, self.settings.piece
        premise, hypothesis = request.premise, request.hypothesis

        def fits(text: str) -> bool:
            small = piece is None or network.count(text) <= piece
            return small and (window is None or len(network.encode(text, hypothesis).tokens) <= window)

        try:
            if self.settings.chunking.mode == "none":
                whole = network.encode(premise, hypothesis)
                if window is not None and len(whole.tokens) > window:
                    return ModelError(
                        f"The pair has {len(whole.tokens)} tokens, and '{self.name}' reads {window}. To cut the premise, "
                        f"set chunk=auto."
                    ).as_failure()
                return [whole]
            if not fits(""):
                raise DoesNotFit
            return [network.encode(chunk, hypothesis) for chunk in chunks(premise, fits)]
        except DoesNotFit:
            length = len(network.encode("", hypothesis).tokens)
            return ModelError(
                f"The hypothesis alone has {length} tokens, and '{self.name}' reads {window}, so no premise fits beside it. "
                f"A hypothesis is never cut: judge it in parts."
            ).as_failure()
        except Exception as error:  # a tokenizer's refusal is about this pair only
            return ModelError(f"The pair cannot be tokenised: {type(error).__name__}: {error}").as_failure()


def _response(supported: float, pieces: Sequence[Encoded]) -> Response:
    tokens = sum(len(piece.tokens) for piece in pieces)
    return Response(values=(1.0 - supported, supported), usage=Usage(input_tokens=tokens))
