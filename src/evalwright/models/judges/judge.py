"""Base of local judges: pairs as token sequences, and long premises in chunks.

A judge has a network (`network.py`), which encodes a pair and computes P(supported) for a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ModelError
from evalwright.core.requests import Ability, Classify
from evalwright.models.judges.chunking import NoChunkFits, chunks, read_chunking
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import NetworkModel, Piece


class LocalJudge(NetworkModel):
    """Base of judges that are a transformers network.

    Its `values` are (P(not supported), P(supported)).

    Args:
        name: the checkpoint.
        chunk: "auto" cuts a premise that does not fit into the window beside the hypothesis, and
            the highest chunk counts; "none" makes such a pair a failure; a number cuts into chunks
            of that many tokens.
    """

    abilities: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, name: str, *, chunk: int | str = "auto", **common: Any) -> None:
        super().__init__(name, **common)
        self._chunk = read_chunking(chunk)

    def settle_judge(
        self,
        facts: Mapping[str, Any],
        *,
        tokenizer: Checkpoint | None = None,
        window: int | None = None,
        piece: int | None = None,
    ) -> None:
        """Set the facts that identify the judge, as `settle` does.

        `piece` is the documented size of a chunk of the premise.
        """
        self._piece = None
        if isinstance(self._chunk, int):
            self._piece = self._chunk
        elif self._chunk == "auto":
            self._piece = piece
        identity = {
            "source": dict(self.source.identity),
            "chunk": self._chunk,
            "piece": self._piece,
        }
        self.settle(facts, identity, tokenizer=tokenizer, window=window)

    def describe(self) -> dict[str, Any]:
        """Describe the judge, with how premises are cut."""
        cut = {"chunk": self._chunk, "chunk_size": self._piece}
        return {**super().describe(), **cut, "values": ["not supported", "supported"]}

    def _pieces(self, request: Classify) -> list[Piece]:
        """Return one piece for each chunk of the premise."""
        network = self._network
        window = self.window
        piece = self._piece
        premise = request.premise
        hypothesis = request.hypothesis

        def fits(text: str) -> bool:
            small = piece is None or network.count(text) <= piece
            return small and (
                window is None or len(network.encode(text, hypothesis).tokens) <= window
            )

        if self._chunk == "none":
            pair = network.encode(premise, hypothesis)
            if window is None or len(pair.tokens) <= window:
                return [(pair,)]
            raise ModelError(
                f"The pair has {len(pair.tokens)} tokens, and '{self.name}' reads"
                f" {window}. To cut the premise, set chunk=auto."
            )
        try:
            if not fits(""):
                raise NoChunkFits
            return [
                (network.encode(chunk, hypothesis),) for chunk in chunks(premise, fits)
            ]
        except NoChunkFits:
            length = len(network.encode("", hypothesis).tokens)
            raise ModelError(
                f"The hypothesis alone has {length} tokens, and '{self.name}' reads"
                f" {window}, so no premise fits beside it. A hypothesis is never cut:"
                " judge it in parts."
            ) from None
