"""Log-likelihoods the plain way: every different input once, padded on the right, logits only where they are read.

`PairScorer` is what the model calls; another way to compute the same (a prefix tree, say) is another class of that shape, and
`Difference` says how far its scores are from those of the plain way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.local.answering import Scored
from evalwright.models.local.hf.batching import Batcher, Tensor
from evalwright.models.local.hf.reading import LogitsOf, read_log_likelihoods
from evalwright.models.local.tokens import Pair

Tokens = tuple[int, ...]

_TOLERANCE = {4: 3e-5, 8: 3e-5, 2: 0.15, 1: 0.5}
"""By the bytes of a number: the difference a token that rounding in another order can make, and more."""


class PairScorer(Protocol):
    """Computes log-likelihoods of continuations after contexts, both as tokens and within the model's length."""

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""


class Logits(Protocol):
    """Gives the logits of chosen positions of a batch."""

    def prepare(
        self, ids: Tensor, mask: Tensor, rows: list[int], columns: list[int], sources: Sequence[Tokens]
    ) -> LogitsOf:
        """Those at `rows` and `columns` of `ids` (batch, length). sources: what an encoder reads for each row."""


@dataclass(frozen=True, slots=True)
class _Group:
    """All pairs that put the same tokens into the model: `members` are (index of the pair, its targets)."""

    source: Tokens
    tokens: Tokens
    members: list[tuple[int, list[int]]]

    @property
    def positions(self) -> range:
        """The positions whose logits are read: those of the longest targets."""
        return range(len(self.tokens) - max(len(targets) for _, targets in self.members), len(self.tokens))


class PlainScorer:
    """One forward pass per different input; siblings that differ in their last token only share it.

    start: the token that a decoder with an encoder starts from; then the contexts are what the encoder reads.
    """

    def __init__(
        self, reader: Logits, batcher: Batcher[list[tuple[int, Scored]]], device: str, start: Tokens = ()
    ) -> None:
        self._reader = reader
        self._batcher = batcher
        self._device = device
        self._start = start

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
        """See PairScorer."""
        groups = self._grouped(pairs)
        costs = [len(group.source) + len(group.tokens) for group in groups]
        for place, outcome in self._batcher.run(costs, lambda batch: self._run([groups[i] for i in batch])):
            if isinstance(outcome, Failure):
                yield from ((index, outcome) for index, _ in groups[place].members)
            else:
                yield from ((index, checked(scored)) for index, scored in outcome)

    def _grouped(self, pairs: Sequence[Pair]) -> list[_Group]:
        groups: dict[tuple[Tokens, Tokens], _Group] = {}
        for index, (context, continuation) in enumerate(pairs):
            before = self._start or context
            source = tuple(context) if self._start else ()
            tokens = (*before, *continuation[:-1])
            group = groups.setdefault((source, tokens), _Group(source, tokens, []))
            group.members.append((index, continuation))
        return list(groups.values())

    def _run(self, groups: list[_Group]) -> list[list[tuple[int, Scored]]]:
        ids, mask = pad([group.tokens for group in groups], self._device)
        rows = [row for row, group in enumerate(groups) for _ in group.positions]
        columns = [column for group in groups for column in group.positions]
        # Where each target reads, as a place in `rows` and `columns`; one place may be read for several targets.
        reads: list[tuple[int, int]] = []
        spans: list[tuple[int, int, int]] = []
        end = 0
        for row, group in enumerate(groups):
            end += len(group.positions)
            for index, targets in group.members:
                spans.append((row, index, len(targets)))
                reads += zip(range(end - len(targets), end), targets, strict=True)
        with torch.inference_mode():
            logits_of = self._reader.prepare(ids, mask, rows, columns, [group.source for group in groups])
            values, greedy = read_log_likelihoods(logits_of, len(rows), reads)
        out: list[list[tuple[int, Scored]]] = [[] for _ in groups]
        start = 0
        for row, index, count in spans:
            part = slice(start, start + count)
            out[row].append((index, Scored(math.fsum(values[part]), all(greedy[part]), count)))
            start += count
        return out


def pad(
    rows: Sequence[Sequence[int]], device: str, token: int = 0, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, both (rows, longest row), padded with `token`, which is never read."""
    longest = max(len(row) for row in rows)

    def filled(row: Sequence[int], value: int) -> list[int]:
        rest = [value] * (longest - len(row))
        return [*rest, *row] if left else [*row, *rest]

    ids = torch.tensor([filled(row, token) for row in rows], device=device)
    return ids, torch.tensor([filled([1] * len(row), 0) for row in rows], device=device)


def checked(scored: Scored) -> Scored | Failure:
    """The same, or a failure where it is no finite number."""
    if math.isfinite(scored.log_likelihood):
        return scored
    return ModelError(
        f"The model's log-likelihood is {scored.log_likelihood}, which is not a finite number; its dtype may be too small "
        f"(try dtype=bfloat16 or float32)."
    ).as_failure()


@dataclass(slots=True)
class Difference:
    """Between two ways of scoring: `largest` in nats a scored token; `flags`: how many greedy flags differ.

    beyond: differences that rounding does not explain. A flag is none of them: two tokens may be as good as equal.
    """

    compared: int = 0
    largest: float = 0.0
    flags: int = 0
    beyond: int = 0

    def compare(
        self, plain: PairScorer, noted: Sequence[tuple[Pair, Scored]], number_bytes: int
    ) -> Difference:
        """Score pairs the plain way and add how far that is from what was found; what cannot be scored so is left out."""
        for place, expected in plain.score([pair for pair, _ in noted]):
            if isinstance(expected, Failure):
                continue
            found = noted[place][1]
            self.compared += 1
            self.flags += expected.is_greedy != found.is_greedy
            # Not a number on both sides is agreement.
            if not math.isfinite(expected.log_likelihood) and not math.isfinite(found.log_likelihood):
                continue
            each = abs(expected.log_likelihood - found.log_likelihood) / expected.tokens
            scale = max(1.0, abs(expected.log_likelihood) / expected.tokens)
            self.largest = max(self.largest, each)
            self.beyond += not each <= _TOLERANCE.get(number_bytes, 0.15) * scale
        return self

    def describe(self) -> dict[str, Any]:
        """For the run record."""
        return {
            "requests": self.compared,
            "largest_difference_per_token": self.largest,
            "greedy_flags_that_differ": self.flags,
        }
