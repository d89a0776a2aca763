"""Computes many requests of a decoder at once: log-likelihoods by a prefix tree, and texts.

Every token that requests share at their beginning is computed once and its keys and values are
reused: the few-shot examples that all prompts share, then the question that its options share. A
request whose tokens are the beginning of another's reads its logits from that one's, so the letters
of one question cost one pass. This changes numbers only by rounding, and if the model's file does
not allow it (`Sharing`) it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evalwright.core.responses import Response
from evalwright.models.local.answering import PairScore
from evalwright.models.local.onnx.session import (
    Array,
    Cache,
    OnnxSession,
    Sharing,
    padded,
    repeat_cache,
    select_cache_rows,
)
from evalwright.models.local.tokens import Pair, common_length
from evalwright.models.local.tree import CutLimits, Node, Row, build_tree, cut
from evalwright.models.local.writing import AnswerWriter

MIN_SHARED = 16
"""Least tokens of a shared prefix that is computed separately; for fewer, the pass costs more."""

_LOGIT_BYTES = 1 << 28
"""Most bytes of one batch's logits, which dominate if the vocabulary is large."""

_POSITIONS_AT_ONCE = 512
"""Positions whose logits, each the size of the vocabulary, become log-probabilities together."""

_BATCH_TOKENS = 4096
"""Most new tokens of one batch, padding included.

More is no faster and needs large attention scores.
"""


def log_likelihood(logits: Array, targets: Sequence[int]) -> tuple[Array, Array]:
    """Return the log-probabilities of `targets` under logits [n, vocabulary], and which are argmax.

    Natural logarithms. The softmax is in float32 with the maximum subtracted; the numbers returned
    are in float64, to be summed.
    """
    values = logits.astype(np.float32)
    best = values.argmax(axis=-1)
    places = np.arange(len(values))
    values = values - values[places, best][:, None]
    logs = values[places, targets] - np.log(np.exp(values).sum(axis=-1))
    return logs.astype(np.float64), best == np.asarray(targets)


def score(
    decoder: OnnxSession, pairs: Sequence[Pair], batch_size: int
) -> Iterator[tuple[int, PairScore]]:
    """Yield `(index into pairs, result)` for every pair, as they finish."""
    groups = [list(range(len(pairs)))]
    if (
        decoder.sharing is Sharing.SINGLE
    ):  # without sharing, only equal inputs have equal logits
        by_input: dict[tuple[int, ...], list[int]] = {}
        for index, (context, continuation) in enumerate(pairs):
            by_input.setdefault((*context, *continuation[:-1]), []).append(index)
        groups = list(by_input.values())
    for indices in groups:
        for position, score in _score_tree(
            decoder, [pairs[index] for index in indices], batch_size
        ):
            yield indices[position], score


def _score_tree(
    decoder: OnnxSession, pairs: Sequence[Pair], batch_size: int
) -> Iterator[tuple[int, PairScore]]:
    """Score inputs, computing shared prefixes once if the file allows it, else row by row."""
    tree = build_tree(pairs)
    owner = [index for index, span in enumerate(tree.spans) for _ in span]
    values = np.zeros(len(owner))
    greedy = np.zeros(len(owner), bool)
    left = [len(span) for span in tree.spans]
    shares = decoder.sharing is Sharing.RAGGED and decoder.has_cache
    limits = CutLimits(row=0, piece=1 << 60, shortest=MIN_SHARED if shares else 1 << 60)

    def collect(row: Row, logits: Array) -> Iterator[tuple[int, PairScore]]:
        """Collect a row's logits [new, vocabulary]; yield the pairs that are complete now."""
        start = 0
        reads = []
        for row_part in row.parts:
            reads += [
                (start + read.offset, read)
                for read in row_part.node.reads
                if row_part.read
            ]
            start += len(row_part.node)
        for offset in range(0, len(reads), _POSITIONS_AT_ONCE):
            batch_reads = reads[offset : offset + _POSITIONS_AT_ONCE]
            slots = [read.slot for _, read in batch_reads]
            places = [offset for offset, _ in batch_reads]
            targets = [read.target for _, read in batch_reads]
            values[slots], greedy[slots] = log_likelihood(logits[places], targets)
            for index in map(owner.__getitem__, slots):
                left[index] -= 1
                if not left[index]:
                    span = slice(tree.spans[index].start, tree.spans[index].stop)
                    total = float(values[span].sum())
                    yield (
                        index,
                        PairScore(
                            total, bool(greedy[span].all()), len(tree.spans[index])
                        ),
                    )

    waiting: list[tuple[Row | None, list[Node], int, Cache]] = [
        (None, tree.roots, 0, decoder.empty_cache(1))
    ]
    while waiting:
        row, nodes, start, cache = waiting.pop()
        if row is not None:
            tokens = [token for row_part in row.parts for token in row_part.node.tokens]
            logits, cache = decoder.run_row(tokens, start, cache)
            yield from collect(row, logits)
            start += row.length
            del logits
        level = cut(nodes, limits)
        waiting += [
            (above, below, start, cache) for above, below in reversed(level.stored)
        ]
        for batch in _batches(decoder, [row.length for row in level.rows], batch_size):
            rows = [level.rows[row_index] for row_index in batch]
            paths = [row.parts[-1].node for row in rows]
            # Padded on the right, where no token of a causal model attends.
            inputs = padded([list(node.source[: node.end]) for node in paths], start)
            batch_logits, _ = decoder.run(*inputs, repeat_cache(cache, len(rows)))
            for position, batch_row in enumerate(rows):
                yield from collect(
                    batch_row, batch_logits[position, : batch_row.length]
                )


def _groups(sequences: Sequence[list[int]], start: int) -> list[list[int]]:
    """Group neighbours in sorted order that share at least `MIN_SHARED` tokens after `start`."""
    groups: list[list[int]] = []
    for index, tokens in enumerate(sequences):
        if index and common_length(sequences[index - 1], tokens) - start >= MIN_SHARED:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _batches(
    decoder: OnnxSession, lengths: Sequence[int], batch_size: int
) -> Iterator[list[int]]:
    """Yield batches of indices into `lengths`, longest first so that memory fails early."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batch: list[int] = []
    for index in order:
        if batch:
            longest = lengths[batch[0]]
            new = (len(batch) + 1) * longest
            fits = new <= _BATCH_TOKENS and new * decoder.vocabulary * 4 <= _LOGIT_BYTES
            shares = decoder.sharing is Sharing.RAGGED or (
                decoder.sharing is Sharing.EQUAL and lengths[index] == longest
            )
            if not (fits and shares and len(batch) < batch_size):
                yield batch
                batch = []
        batch.append(index)
    if batch:
        yield batch


class GrowingAnswer(NamedTuple):
    """An answer to generate. `pick` chooses the next token from its logits [vocabulary]."""

    place: int
    writer: AnswerWriter
    pick: Callable[[Array], int]

    @property
    def prompt(self) -> list[int]:
        return self.writer.job.tokens


def generate(
    decoder: OnnxSession, answers: Sequence[GrowingAnswer], batch_size: int
) -> Iterator[tuple[int, Response]]:
    """Yield `(place, response)` for every answer, as they finish."""
    ready = sorted(answers, key=lambda answer: answer.prompt)
    shares = decoder.sharing is Sharing.RAGGED and decoder.has_cache
    groups = (
        _groups([answer.prompt for answer in ready], 0)
        if shares
        else [list(range(len(ready)))]
    )
    for group in groups:
        members = [ready[index] for index in group]
        prompts = [answer.prompt for answer in members]
        start = 0
        cache = decoder.empty_cache(1)
        if shares and len(members) > 1:
            # One token of every prompt is not cached, because its logits begin the answer.
            start = min(
                common_length(prompts[0], prompts[-1]), min(map(len, prompts)) - 1
            )
            _, cache = decoder.run_row(prompts[0][:start], 0, cache)
        for batch in _batches(
            decoder, [len(prompt) - start for prompt in prompts], batch_size
        ):
            chosen = [members[index] for index in batch]
            steps = (
                _Cached(decoder, start, cache)
                if decoder.has_cache
                else _Uncached(decoder)
            )
            yield from _decode(steps, chosen)


def _decode(
    steps: _Cached | _Uncached, answers: list[GrowingAnswer]
) -> Iterator[tuple[int, Response]]:
    logits = steps.begin([answer.prompt for answer in answers])
    while True:
        going = []
        for index, answer in enumerate(answers):
            token = answer.pick(logits[index])
            top_logprobs = answer.writer.job.request.top_logprobs
            if top_logprobs is not None:
                answer.writer.values.append(_values(logits[index], token, top_logprobs))
            response = answer.writer.add(token)
            if response is None:
                going.append(index)
            else:
                yield answer.place, response
        if not going:
            return
        if len(going) < len(answers):
            steps.keep(going)
            answers = [answers[index] for index in going]
        logits = steps.step([answer.writer.written[-1] for answer in answers])


def _values(
    logits: Array, token: int, alternatives: int
) -> tuple[float, list[tuple[int, float]]]:
    """Return a token's log-probability, and the most probable tokens with theirs."""
    values = logits.astype(np.float32) - logits.max()
    values -= np.log(np.exp(values).sum())
    best = np.argsort(-values, kind="stable")[:alternatives]
    return float(values[token]), [
        (int(token_id), float(values[token_id])) for token_id in best
    ]


class _Cached:
    """Generation steps with stored keys and values.

    Prompts are padded on the left, after their shared prefix.
    """

    def __init__(self, decoder: OnnxSession, start: int, cache: Cache) -> None:
        self._decoder = decoder
        self._start = start
        self._cache = cache

    def begin(self, prompts: list[list[int]]) -> Array:
        """Return logits [batch, vocabulary] for the first token of every answer."""
        tokens, self._mask, positions = padded(prompts, self._start, left=True)
        self._lengths = np.array([len(prompt) for prompt in prompts])
        logits, self._cache = self._decoder.run(
            tokens, self._mask, positions, repeat_cache(self._cache, len(prompts))
        )
        return logits[:, -1]

    def step(self, tokens: list[int]) -> Array:
        """Return the logits after one more token for every answer."""
        self._mask = np.pad(self._mask, ((0, 0), (0, 1)), constant_values=1)
        logits, self._cache = self._decoder.run(
            np.array(tokens)[:, None], self._mask, self._lengths[:, None], self._cache
        )
        self._lengths = self._lengths + 1
        return logits[:, -1]

    def keep(self, rows: list[int]) -> None:
        """Continue with some of the answers only."""
        self._mask = self._mask[rows]
        self._lengths = self._lengths[rows]
        self._cache = select_cache_rows(self._cache, rows)


class _Uncached:
    """Generation steps for a file without cache inputs.

    Every token is computed again in each step, padded on the right.
    """

    def __init__(self, decoder: OnnxSession) -> None:
        self._decoder = decoder
        self._rows: list[list[int]] = []

    def begin(self, prompts: list[list[int]]) -> Array:
        """Return logits [batch, vocabulary] for the first token of every answer."""
        self._rows = [list(prompt) for prompt in prompts]
        return self._logits()

    def step(self, tokens: list[int]) -> Array:
        """Return the logits after one more token for every answer."""
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        return self._logits()

    def keep(self, rows: list[int]) -> None:
        """Continue with some of the answers only."""
        self._rows = [self._rows[index] for index in rows]

    def _logits(self) -> Array:
        logits, _ = self._decoder.run(*padded(self._rows, 0), [])
        last = np.array([len(row) - 1 for row in self._rows])
        return logits[np.arange(len(self._rows)), last]  # type: ignore[no-any-return]
