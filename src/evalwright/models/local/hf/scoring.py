"""Log-likelihoods the plain way: every different input once, padded on the right, logits only where they are read.

A prefix tree (`tree_scoring`) computes the same another way; `unexplained_difference` holds its scores beside these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.local.answering import PairScore
from evalwright.models.local.hf.batching import BatchRunner
from evalwright.models.local.hf.reading import LogitReader, SidesReader, Tokens, pad, read_log_likelihoods
from evalwright.models.local.tokens import Pair

_TOLERANCE = {4: 3e-5, 8: 3e-5, 2: 0.15, 1: 0.5}
"""By the bytes of a number: the difference a token that rounding in another order can make, and more."""


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
        self,
        reader: LogitReader | SidesReader,
        batcher: BatchRunner[list[tuple[int, PairScore]]],
        device: str,
        start: Tokens = (),
    ) -> None:
        self._reader = reader
        self._batcher = batcher
        self._device = device
        self._start = start

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""
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

    def _run(self, groups: list[_Group]) -> list[list[tuple[int, PairScore]]]:
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
        out: list[list[tuple[int, PairScore]]] = [[] for _ in groups]
        start = 0
        for row, index, count in spans:
            part = slice(start, start + count)
            out[row].append((index, PairScore(math.fsum(values[part]), all(greedy[part]), count)))
            start += count
        return out


def checked(scored: PairScore) -> PairScore | Failure:
    """The same, or a failure where it is no finite number."""
    if math.isfinite(scored.log_likelihood):
        return scored
    return ModelError(
        f"The model's log-likelihood is {scored.log_likelihood}, which is not a finite number; its dtype may be too small "
        f"(try dtype=bfloat16 or float32)."
    ).as_failure()


def unexplained_difference(
    expected: Iterable[tuple[int, PairScore | Failure]], found: Sequence[PairScore], number_bytes: int
) -> float | None:
    """The largest difference, in nats a scored token, of what was found from what the plain way gives, where any is beyond rounding.

    expected: (index into `found`, result); what cannot be scored the plain way is left out.
    """
    largest, beyond = 0.0, False
    for place, plain in expected:
        if isinstance(plain, Failure):
            continue
        each = abs(plain.log_likelihood - found[place].log_likelihood) / plain.tokens
        scale = max(1.0, abs(plain.log_likelihood) / plain.tokens)
        largest = max(largest, each)
        beyond |= not each <= _TOLERANCE.get(number_bytes, 0.15) * scale
    return largest if beyond else None
