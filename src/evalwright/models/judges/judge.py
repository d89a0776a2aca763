"""What the local judges share: pairs into token sequences, long premises into chunks, batches by length, one answer per pair.

A judge gives a network (`network.py`), which encodes a pair and reads P(supported) of a batch; everything else is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Ability, Classify, Request
from evalwright.core.responses import Response, Usage
from evalwright.models.base import fingerprint_of
from evalwright.models.judges.chunking import NoChunkFits, chunks, read_chunking
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.network_model import NetworkModel

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork
    from evalwright.models.local.hf.source import Checkpoint

_ROUGHLY = 512
"""From about this length on, attention costs more than the rest, so long pairs go in smaller batches."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A pair as tokens. types: which of the two texts each token is of, for networks that are told."""

    tokens: tuple[int, ...]
    types: tuple[int, ...] | None = None


class LocalJudge(NetworkModel["PairNetwork", float]):
    """Base of the judges that a transformers network is. Its `values` are (P(not supported), P(supported)).

    A subclass calls `settle` with what names it and the common arguments, and gives the network in `_open`.
    window: tokens that a pair may have, None where there is no limit. piece: the most that a chunk's premise may count.
    """

    abilities: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, provider: str, name: str, revision: str | None) -> None:
        super().__init__(provider, name, revision)
        self._source = find_source(name, None if revision is None else str(revision))

    def settle(
        self,
        facts: Mapping[str, Any],
        dtype: str,
        device: str,
        batch_size: int | str,
        chunk: int | str,
        max_length: int | None,
        *,
        window: int | None = None,
        piece: int | None = None,
        tokenizer: Checkpoint | None = None,
    ) -> None:
        """Check the common arguments and fix the fingerprint. Raises ConfigurationError.

        facts: what beside the checkpoint and the arguments decides the answers; recorded. window, piece: what the
        checkpoint itself says. tokenizer: where it is from another checkpoint.
        """
        sources = (self._source,) if tokenizer is None else (self._source, tokenizer)
        self.settle_network(sources, dtype, device, batch_size)
        self._chunk = read_chunking(chunk)
        self._window = window if max_length is None else as_count("max_length", max_length)
        self._piece = (
            piece if self._chunk == "auto" else self._chunk if isinstance(self._chunk, int) else None
        )
        self._facts = dict(facts)
        self.fingerprint = fingerprint_of(
            {
                "backend": self._provider,
                "source": dict(self._source.identity),
                "dtype": self.dtype,
                "chunk": self._chunk,
                "window": self._window,
                "piece": self._piece,
                **self._facts,
            }
        )

    def describe(self) -> dict[str, Any]:
        """Checkpoint, revision, and everything else that decides the answers."""
        return {
            **super().describe(),
            "chunk": self._chunk,
            "chunk_size": self._piece,
            "window": self._window,
            "values": ["not supported", "supported"],
            **self._facts,
        }

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield each pair's answer when the last of its chunks is done, longest pairs first."""
        self.load()
        assert self._network is not None and self._batcher is not None
        network = self._network
        pieces: dict[int, list[Encoded]] = {}
        places: dict[Encoded, list[int]] = {}
        for index, request in enumerate(requests):
            made = self._pieces(network, request)
            if isinstance(made, Failure):
                yield index, made
                continue
            pieces[index] = made
            for piece in set(made):
                places.setdefault(piece, []).append(index)
        distinct = list(places)
        costs = [len(piece.tokens) * (1 + len(piece.tokens) // _ROUGHLY) for piece in distinct]
        waiting = {index: len(set(own)) for index, own in pieces.items()}
        best: dict[int, float] = {}
        failed: dict[int, Failure] = {}
        for number, found in self._batcher.run(
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

    def _pieces(self, network: PairNetwork, request: Request) -> list[Encoded] | Failure:
        """The pair as token sequences, one per chunk of its premise; a failure where it cannot be read whole."""
        if not isinstance(request, Classify):
            return ModelError(
                f"'{self.name}' classifies pairs; it cannot do '{request.ability}'."
            ).as_failure()
        window, piece = self._window, self._piece
        premise, hypothesis = request.premise, request.hypothesis

        def fits(text: str) -> bool:
            small = piece is None or network.count(text) <= piece
            return small and (window is None or len(network.encode(text, hypothesis).tokens) <= window)

        try:
            if self._chunk == "none":
                whole = network.encode(premise, hypothesis)
                if window is None or len(whole.tokens) <= window:
                    return [whole]
                raise ModelError(
                    f"The pair has {len(whole.tokens)} tokens, and '{self.name}' reads {window}. To cut the premise, "
                    f"set chunk=auto."
                )
            if not fits(""):
                raise NoChunkFits
            return [network.encode(chunk, hypothesis) for chunk in chunks(premise, fits)]
        except NoChunkFits:
            length = len(network.encode("", hypothesis).tokens)
            return ModelError(
                f"The hypothesis alone has {length} tokens, and '{self.name}' reads {window}, so no premise fits beside it. "
                f"A hypothesis is never cut: judge it in parts."
            ).as_failure()
        except ModelError as error:
            return error.as_failure()
        except Exception as error:  # a tokenizer's refusal is about this pair only
            return ModelError(f"The pair cannot be tokenised: {type(error).__name__}: {error}").as_failure()


def _response(supported: float, pieces: Sequence[Encoded]) -> Response:
    tokens = sum(len(piece.tokens) for piece in pieces)
    return Response(values=(1.0 - supported, supported), usage=Usage(input_tokens=tokens))
