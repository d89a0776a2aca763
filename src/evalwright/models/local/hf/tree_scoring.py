"""Log-likelihoods by a prefix tree: every different token goes through the model once.

Few-shot examples that many questions share, a question that several choices share and repeated
requests are computed once. Before any result is used, shortened copies of a few requests are scored
by every kind of pass (after a stored prefix, with branches) and in the plain way, and later one
whole request, the first that is twice as long as any compared before. If they differ, or the model
refuses, the other way of attending is used, then the plain way; what was finished stays finished,
and running out of memory costs only the batch in which it happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.local.answering import PairScore
from evalwright.models.local.hf.batching import BatchRunner, Tensor, is_out_of_memory
from evalwright.models.local.hf.model_checks import ModelChecks
from evalwright.models.local.hf.packed_products import PackedProducts
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import (
    LogitReader,
    PlainScorer,
    finite_or_failure,
    read_log_likelihoods,
    unexplained_difference,
)
from evalwright.models.local.hf.tree_forward import NOTHING_STORED, Stored, TreeForward
from evalwright.models.local.tokens import Pair
from evalwright.models.local.tree import (
    CutLimits,
    Node,
    Row,
    Tree,
    build_tree,
    cut,
    regrow,
    walk,
)

IndexedScores = list[tuple[int, PairScore]]
"""Indices of finished pairs, with their scores."""

_Waiting = tuple[Row | None, list[Node], Stored]
"""A prefix to store (None: nothing more), the nodes below it, and what is stored already."""

_MIN_PIECE_TOKENS = 64
"""Passes are never cut smaller than this many tokens."""

_SHORT_CUT_TOKENS = 16
"""Tokens of a shortened request, from its context's beginning and again from its end."""

_MIN_PACKED_TOKENS = 4096
"""Tokens from which on packed weights are used: packing takes as long as they save in some 1,500.
"""

_CPU_PASS_TOKENS = range(1024, 2049)
"""Most tokens of a pass on a CPU: 256 a thread within this range.

The activations of so few fit into memory that the process holds already; of more, each pass gets
its memory from the system page by page.
"""


def tokens_of_pass(device: str) -> int:
    """Return the most tokens that one pass should have on a device, whatever its memory."""
    if device.startswith("cuda"):
        return 1 << 62
    wanted = 256 * int(torch.get_num_threads())
    return max(_CPU_PASS_TOKENS[0], min(wanted, _CPU_PASS_TOKENS[-1]))


_COMPARISON = "tree scores"
"""The check of scores of a prefix tree, in `ModelChecks`."""

_PACKED_COMPARISON = "tree scores with packed weights"
"""The same check of scores that are computed with packed weights."""


class _UnsuitableModel(Exception):
    """This way of attending does not work for this model."""


class _ScoringJob:
    """One call's pairs, the slots of their targets, and what has been read of each so far.

    Attributes:
        pairs: the pairs.
        spans: for each pair, the slots of its targets.
        limits: how the tree is cut, if not by memory: for a comparison of shortened requests.
        plain: plain scores of some pairs, by index, until the tree's scores are compared with them.
    """

    def __init__(
        self, pairs: Sequence[Pair], spans: list[range], limits: CutLimits | None
    ) -> None:
        self.pairs = pairs
        self.spans = spans
        self.limits = limits
        self.owner = [index for index, span in enumerate(spans) for _ in span]
        self.values = [0.0] * len(self.owner)
        self.greedy = [False] * len(self.owner)
        self.missing = [len(span) for span in spans]
        self.plain: dict[int, PairScore] = {}

    def length(self, index: int) -> int:
        """Return the number of tokens of a pair."""
        context, targets = self.pairs[index]
        return len(context) + len(targets)

    def awaited(self, rows: list[Row]) -> Iterator[list[Row]]:
        """Yield the rows that read what `plain` waits for, and then all others."""
        if not self.plain:
            yield rows
            return
        sides: tuple[list[Row], list[Row]] = ([], [])
        for row in rows:
            reads = (
                read
                for row_part in row.parts
                if row_part.read
                for read in row_part.node.reads
            )
            sides[
                not any(self.owner[read.slot] in self.plain for read in reads)
            ].append(row)
        yield from sides

    def take(
        self, slots: Sequence[int], values: Sequence[float], greedy: Sequence[bool]
    ) -> IndexedScores:
        """Record what a pass has read; return the pairs that are complete now."""
        done = []
        for slot, log_prob, best in zip(slots, values, greedy, strict=True):
            self.values[slot], self.greedy[slot] = log_prob, best
            index = self.owner[slot]
            self.missing[index] -= 1
            if not self.missing[index]:
                done.append(index)
        spans = [
            (index, slice(self.spans[index].start, self.spans[index].stop))
            for index in done
        ]
        return [
            (
                i,
                PairScore(
                    math.fsum(self.values[span]),
                    all(self.greedy[span]),
                    len(self.spans[i]),
                ),
            )
            for i, span in spans
        ]


class TreeScorer:
    """Scores pairs by a prefix tree, as this module describes.

    Args:
        forward: the model.
        reader: reads its logits.
        plain: scores what the tree cannot.
        tokens: most padded tokens in one pass.
        rows: most rows in one pass; None for any number.
        stored: most bytes of stored keys and values.
        name: the model's name, for messages.
        insist: whether to raise ModelError instead of scoring in the plain way.
        products: computes the tree's products once many tokens have been scored; if None, the model
            does.
        checks: what trying out this model has shown before.
    """

    def __init__(
        self,
        forward: TreeForward,
        reader: LogitReader,
        plain: PlainScorer,
        *,
        tokens: int,
        rows: int | None,
        stored: int,
        name: str,
        insist: bool = False,
        products: PackedProducts | None = None,
        checks: ModelChecks | None = None,
    ) -> None:
        self.forward = forward
        self._reader = reader
        self._plain = plain
        self._stored = stored
        self._name = name
        self._insist = insist
        self._products = products
        self._packed = False
        self._batcher: BatchRunner[IndexedScores] = BatchRunner(
            rows, tokens, passing=(_UnsuitableModel,)
        )
        self._checks = checks or ModelChecks()
        self._compared: int | None = None
        self._restore_comparison()
        self._tokens_given = self._tokens_computed = self._positions_read = 0
        if forward.refusal is not None:
            self._refuse(forward.refusal)

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""
        open_ones = set(range(len(pairs)))
        for index, scored in self._by_tree(pairs, open_ones):
            yield index, finite_or_failure(scored)
        remaining = sorted(open_ones)
        if remaining and self._insist:
            logger.warning(
                "%s: %d of %d inputs are scored one at a time: they are longer than the"
                " model's sliding window, or their common part needs more memory than"
                " there is.",
                self._name,
                len(remaining),
                len(pairs),
            )
        for position, outcome in (
            self._plain.score([pairs[index] for index in remaining])
            if remaining
            else ()
        ):
            yield remaining[position], outcome

    def describe(self) -> dict[str, Any]:
        """Describe how log-likelihoods are computed, and how much that has saved so far."""
        description: dict[str, Any] = {
            "path": "plain" if self.forward.refusal else "tree"
        }
        if self.forward.refusal:
            description["because"] = self.forward.refusal
        else:
            description["attention"] = (
                "cascade" if self.forward.cascading else "portable"
            )
        if self._tokens_given:
            description["tokens_given"], description["tokens_computed"] = (
                self._tokens_given,
                self._tokens_computed,
            )
            description["positions_read"] = self._positions_read
        return description

    # --- from pairs to passes

    def _by_tree(
        self, pairs: Sequence[Pair], open_ones: set[int]
    ) -> Iterator[tuple[int, PairScore]]:
        """Yield what the tree can score, and remove it from `open_ones`."""
        while self.forward.refusal is None:
            longest = self.forward.longest
            taking = [
                index
                for index in sorted(open_ones)
                if longest is None
                or len(pairs[index][0]) + len(pairs[index][1]) - 1 <= longest
            ]
            if not taking:
                return
            try:
                for position, scored in self._run([pairs[index] for index in taking]):
                    open_ones.discard(taking[position])
                    yield taking[position], scored
                return
            except _UnsuitableModel as error:
                self._checks.note(self._comparison, None)
                self._compared = None
                if self._packed and self._products is not None:
                    self._products.close()
                    self._packed = False
                elif self.forward.cascading:
                    self.forward.cascading = False
                else:
                    self._refuse(str(error))

    def _run(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore]]:
        tree = build_tree(pairs)
        self._choose_products(self._tokens_computed + tree.unique)
        if self._compared is None and tree.is_more_than_rows(self._limits().piece):
            self._compare_short_cuts(pairs)
        self._tokens_given += tree.unshared
        self._tokens_computed += tree.unique
        yield from self._walk(_ScoringJob(pairs, tree.spans, None), tree)

    def _choose_products(self, tokens: int) -> None:
        """Use packed weights from a number of tokens on, and compare scores once more then."""
        if self._packed or self._products is None or not self._products.active:
            return
        if tokens >= _MIN_PACKED_TOKENS:
            self._packed = True
            self._compared = None
            self._restore_comparison()

    def _forward(
        self, rows: Sequence[Row], past: Stored, keep: bool = False
    ) -> tuple[Tensor, Stored | None]:
        """Run rows of the tree; see `TreeForward.run`."""
        if not self._packed or self._products is None:
            return self.forward.run(rows, past, keep)
        with self._products.applied(head=False):
            return self.forward.run(rows, past, keep)

    def _walk(self, job: _ScoringJob, tree: Tree) -> Iterator[tuple[int, PairScore]]:
        # What waits, the next one last. Children wait with what is stored above them, which is
        # freed with the last of them.
        waiting: list[_Waiting] = [(None, tree.roots, NOTHING_STORED)]
        while waiting:
            row, nodes, past = waiting.pop()
            if row is not None:
                if self.forward.stored_bytes(past.length + row.length) > self._stored:
                    continue  # the nodes below are left to the plain way
                outcome = self._store(job, row, nodes, past)
                if isinstance(outcome, Failure):
                    waiting += self._smaller(row, nodes, past)
                    continue
                scores, past = outcome
                yield from scores
            level = cut(
                nodes,
                job.limits or self._limits(),
                0 if job.limits else self._pack(past),
            )
            waiting += [(above, below, past) for above, below in reversed(level.stored)]
            failed: list[Row] = []
            # The rows to compare run first, before any other result is used.
            for rows in job.awaited(level.rows):
                yield from self._rows(job, rows, past, failed)
            for row in failed:
                waiting += self._smaller(row, [], past)

    def _smaller(self, row: Row, below: list[Node], past: Stored) -> list[_Waiting]:
        """Return a row that did not fit into memory alone, to be cut to half its size.

        It is nothing if the row is already short.
        """
        if row.length <= _MIN_PIECE_TOKENS:
            return []
        self._batcher.tokens = max(
            _MIN_PIECE_TOKENS, min(self._batcher.tokens, row.length // 2)
        )
        return [(None, regrow(row, below), past)]

    def _limits(self) -> CutLimits:
        piece = max(_MIN_PIECE_TOKENS, self._batcher.tokens)
        return CutLimits(
            row=min(piece, 1024 if self.forward.cascading else 512), piece=piece
        )

    def _pack(self, past: Stored) -> int:
        """Return the length up to which short rows are packed into one.

        Portable attention copies what is stored to every row, so short rows are combined after a
        long prefix.
        """
        if self.forward.cascading or not past.length:
            return 0
        return min(max(64, int(6 * math.sqrt(past.length))), 512)

    def _rows(
        self, job: _ScoringJob, rows: list[Row], past: Stored, failed: list[Row]
    ) -> Iterator[tuple[int, PairScore]]:
        """Run rows in batches, longest first; add those that exceed the memory to `failed`."""
        copied = 0 if self.forward.cascading else past.length // 8
        costs = [row.length + copied for row in rows]
        for row_index, outcome in self._batcher.run(
            costs,
            lambda batch: self._pass(job, [rows[i] for i in batch], past),
            padded=not self.forward.cascading,
        ):
            if isinstance(outcome, Failure):
                failed.append(rows[row_index])
            else:
                yield from outcome

    def _store(
        self, job: _ScoringJob, row: Row, below: list[Node], past: Stored
    ) -> tuple[IndexedScores, Stored] | Failure:
        """Run a prefix and store its keys and values."""
        stored_prefixes: list[Stored] = []
        index = None if past.length else self._to_compare(job, below)

        def work(_: list[int]) -> list[IndexedScores]:
            if index is None:
                hidden, stored = self._guarded(
                    lambda: self._forward([row], past, keep=True)
                )
            else:
                hidden, stored = self._guarded(
                    lambda: self._prefix_of(job, index, row.length)
                )
            assert stored is not None
            stored_prefixes.append(stored)
            return [self._finish(job, [row], past, hidden)]

        for _, outcome in self._batcher.run([row.length], work):
            return (
                outcome
                if isinstance(outcome, Failure)
                else (outcome, stored_prefixes[-1])
            )
        raise AssertionError("one item has one outcome")

    # --- one pass

    def _pass(
        self, job: _ScoringJob, rows: list[Row], past: Stored
    ) -> list[IndexedScores]:
        """Run rows together; the first entry of the result has all scores."""
        hidden, _ = self._guarded(lambda: self._forward(rows, past))
        scores = self._finish(job, rows, past, hidden)
        return [scores, *([] for _ in rows[1:])]

    def _guarded(
        self, run: Callable[[], tuple[Any, Stored | None]]
    ) -> tuple[Any, Stored | None]:
        """Run a pass of the model.

        Any error except running out of memory means that the model is unsuitable.
        """
        try:
            return run()
        except Exception as error:
            if is_out_of_memory(error):
                raise
            text = " ".join(str(error).split())[:200]
            raise _UnsuitableModel(
                f"it fails with a tree ({type(error).__name__}: {text})"
            ) from None

    def _finish(
        self, job: _ScoringJob, rows: list[Row], past: Stored, hidden: Any
    ) -> IndexedScores:
        """Read the scores of the rows and check them, or raise _UnsuitableModel."""
        places: dict[int, int] = {}
        reads: list[tuple[int, int]] = []
        slots: list[int] = []
        start = 0
        for row in rows:
            for row_part in row.parts:
                for read in row_part.node.reads if row_part.read else ():
                    at = places.setdefault(start + read.offset, len(places))
                    reads.append((at, read.target))
                    slots.append(read.slot)
                start += len(row_part.node)
        if not reads:
            return []
        if job.limits is None:
            self._positions_read += len(places)
        with torch.inference_mode():
            chosen = hidden[list(places)]
            values, greedy = read_log_likelihoods(
                lambda start, end: self._reader.blocks(chosen[start:end]),
                len(places),
                reads,
            )
        scores = job.take(slots, values, greedy)
        self._compare_length(job, rows, past, scores)
        return scores

    def _compare_short_cuts(self, pairs: Sequence[Pair]) -> None:
        """Compare the scores of a few shortened requests, by every kind of pass, to plain ones."""
        batch = [
            pairs[index]
            for index in sorted({0, 1, len(pairs) // 2, len(pairs) - 1})
            if index < len(pairs)
        ]
        cuts = [
            (
                (
                    context
                    if len(context) <= 2 * _SHORT_CUT_TOKENS
                    else [*context[:_SHORT_CUT_TOKENS], *context[-_SHORT_CUT_TOKENS:]]
                ),
                targets[:4],
            )
            for context, targets in batch
        ]
        largest = max(root.total for root in build_tree(cuts).roots)
        scores: IndexedScores = []
        # Rows after a stored prefix, some with branches if there are any, and rows with branches
        # without a prefix.
        for row in (largest - 1, largest):
            tree = build_tree(cuts)
            limits = CutLimits(row=row, piece=largest, shortest=1)
            scores += self._walk(_ScoringJob(cuts, tree.spans, limits), tree)
        self._compare(cuts, scores)
        self._note_comparison(2 * _SHORT_CUT_TOKENS)

    def _compare_length(
        self,
        job: _ScoringJob,
        rows: list[Row],
        past: Stored,
        tree_scores: IndexedScores,
    ) -> None:
        """Compare a long request of a pass with its plain score.

        It is done if no request of at least half its length was compared before.
        """
        if job.limits is not None or not (
            past.length or any(row.branches for row in rows)
        ):
            return
        scores = dict(tree_scores)
        for index in job.plain.keys() & scores.keys():
            self._check([(0, job.plain.pop(index))], [scores[index]])
            self._note_comparison(max(self._compared or 0, job.length(index)))
        chosen = self._long_one(job, scores)
        if chosen is not None:
            self._compare(job.pairs, [(chosen, scores[chosen])])
            self._note_comparison(job.length(chosen))

    def _long_one(self, job: _ScoringJob, indices: Iterable[int]) -> int | None:
        """Choose a request to compare, if the longest is twice as long as any before.

        It is the shortest that will do, because plain scoring pays for every token.
        """
        lengths = {index: job.length(index) for index in indices}
        longest = max(lengths.values(), default=0)
        if not longest or longest < 2 * (self._compared or 0):
            return None
        return min(
            (index for index in lengths if 2 * lengths[index] > longest),
            key=lengths.__getitem__,
        )

    def _to_compare(self, job: _ScoringJob, below: list[Node]) -> int | None:
        """Choose a request to score in the plain way, for its prefix and to compare its score."""
        if job.limits is not None:
            return None
        slots = (read.slot for node in walk(below) for read in node.reads)
        index = self._long_one(job, {job.owner[slot] for slot in slots})
        return (
            index
            if index is not None and job.length(index) <= self._limits().piece
            else None
        )

    def _prefix_of(
        self, job: _ScoringJob, index: int, length: int
    ) -> tuple[Any, Stored]:
        """Score a request in the plain way.

        Returns:
            The hidden states of its first tokens, and what to store of these.
        """
        context, targets = job.pairs[index]
        hidden, stored = self.forward.chain([*context, *targets[:-1]])
        last = hidden[-len(targets) :]
        with torch.inference_mode():
            values, greedy = read_log_likelihoods(
                lambda start, end: self._reader.blocks(last[start:end]),
                len(targets),
                list(enumerate(targets)),
            )
        job.plain[index] = PairScore(math.fsum(values), all(greedy), len(targets))
        return hidden[:length], stored.first(length)

    def _compare(self, pairs: Sequence[Pair], scores: IndexedScores) -> None:
        self._check(
            self._plain.score([pairs[index] for index, _ in scores]),
            [scored for _, scored in scores],
        )

    def _check(
        self,
        expected: Iterable[tuple[int, PairScore | Failure]],
        scores: Sequence[PairScore],
    ) -> None:
        largest = unexplained_difference(expected, scores, self.forward.number_bytes)
        if largest is not None:
            raise _UnsuitableModel(
                f"scores differ by {largest:.1e} per token from plain scoring"
            )

    @property
    def _comparison(self) -> str:
        """The name of the check of scores as they are computed now."""
        return _PACKED_COMPARISON if self._packed else _COMPARISON

    def _note_comparison(self, length: int) -> None:
        """Note that the tree's scores of a request of this length were right."""
        self._compared = length
        self._checks.note(
            self._comparison, [self._passes(), self.forward.cascading, length]
        )

    def _restore_comparison(self) -> None:
        """Take over the comparison of an earlier process with passes of the same sizes."""
        noted = self._checks.passed(self._comparison)
        if not isinstance(noted, list) or noted[:1] != [self._passes()]:
            return
        _, is_cascading, length = noted
        if is_cascading and not self.forward.cascading:
            return
        self.forward.cascading = is_cascading
        self._compared = length

    def _passes(self) -> list[int | None]:
        """Return the limits of passes; that in tokens by its power of two, as memory varies."""
        return [self._batcher.rows, self._batcher.tokens.bit_length()]

    def _refuse(self, reason: str) -> None:
        self.forward.refusal = reason
        self.forward.cascading = False
        if self._insist:
            raise ModelError(
                f"The model {self._name} cannot be scored by a prefix tree: {reason}."
            )
        logger.warning(
            "%s: log-likelihoods are computed one at a time, because %s.",
            self._name,
            reason,
        )
