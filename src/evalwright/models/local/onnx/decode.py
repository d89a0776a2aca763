"""What a decoder computes for many requests at once: log-likelihoods over a prefix tree, and
batched generation.

Every token that requests have in common at their beginning is computed once and its keys and values
are reused: the shots that all prompts share, then the question that its options share. A request
whose tokens are the beginning of another's reads its logits from that one's, so the letters of one
question cost one pass. None of it changes a number beyond rounding, and where the model's file does
not allow it (`Sharing`) it is left away.
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
    keep,
    padded,
    repeat,
)
from evalwright.models.local.tokens import Pair, common_length
from evalwright.models.local.tree import CutLimits, Node, Row, build_tree, cut
from evalwright.models.local.writing import AnswerWriter

MIN_SHARED = 16
"""A common beginning is computed apart only if it has this many tokens; below, the extra pass costs
more.
"""

_LOGIT_BYTES = 1 << 28
"""The most that one batch's logits may take, which dwarf all else where the vocabulary is large."""

_READ_AT_ONCE = 512
"""Positions whose logits are turned into log-probabilities together, each of the size of the
vocabulary.
"""

_BATCH_TOKENS = 4096
"""The most new tokens of one batch, padding included: more is no faster and makes the attention
scores large.
"""


def log_likelihood(logits: Array, targets: Sequence[int]) -> tuple[Array, Array]:
    """The log-probabilities (natural log) of `targets` under logits [n, vocabulary], and which of
    them are argmax.

    The softmax is in float32 with the maximum taken off; what is returned is in float64, to be
    summed.
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
    """`(index into pairs, result)` for every pair, as they finish."""
    together = [list(range(len(pairs)))]
    if decoder.sharing is Sharing.SINGLE:  # only equal inputs have equal logits
        same: dict[tuple[int, ...], list[int]] = {}
        for index, (context, continuation) in enumerate(pairs):
            same.setdefault((*context, *continuation[:-1]), []).append(index)
        together = list(same.values())
    for indices in together:
        for place, found in _score_tree(
            decoder, [pairs[index] for index in indices], batch_size
        ):
            yield indices[place], found


def _score_tree(
    decoder: OnnxSession, pairs: Sequence[Pair], batch_size: int
) -> Iterator[tuple[int, PairScore]]:
    """What several inputs begin with is computed once where the file allows it; else every path is
    a row of its own.
    """
    tree = build_tree(pairs)
    owner = [index for index, span in enumerate(tree.spans) for _ in span]
    values = np.zeros(len(owner))
    greedy = np.zeros(len(owner), bool)
    left = [len(span) for span in tree.spans]
    shares = decoder.sharing is Sharing.RAGGED and decoder.has_cache
    limits = CutLimits(row=0, piece=1 << 60, shortest=MIN_SHARED if shares else 1 << 60)

    def collect(row: Row, logits: Array) -> Iterator[tuple[int, PairScore]]:
        """Take what is read of a row's logits [new, vocabulary]; yields the pairs that are whole
        now.
        """
        start = 0
        reads = []
        for part in row.parts:
            reads += [
                (start + read.offset, read) for read in part.node.reads if part.read
            ]
            start += len(part.node)
        for offset in range(0, len(reads), _READ_AT_ONCE):
            some = reads[offset : offset + _READ_AT_ONCE]
            slots = [read.slot for _, read in some]
            places = [place for place, _ in some]
            targets = [read.target for _, read in some]
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
            tokens = [token for part in row.parts for token in part.node.tokens]
            logits, cache = decoder.run_row(tokens, start, cache)
            yield from collect(row, logits)
            start += row.length
            del logits
        level = cut(nodes, limits)
        waiting += [
            (above, below, start, cache) for above, below in reversed(level.stored)
        ]
        for batch in _batches(
            decoder, [each.length for each in level.rows], batch_size
        ):
            rows = [level.rows[place] for place in batch]
            paths = [each.parts[-1].node for each in rows]
            # Padded at the right, where no token of a causal model looks.
            inputs = padded([list(node.source[: node.end]) for node in paths], start)
            found, _ = decoder.run(*inputs, repeat(cache, len(rows)))
            for place, each in enumerate(rows):
                yield from collect(each, found[place, : each.length])


def _groups(sequences: Sequence[list[int]], start: int) -> list[list[int]]:
    """Runs of neighbours in sorted order that have at least `MIN_SHARED` tokens after `start` in
    common.
    """
    groups: list[list[int]] = []
    for place, tokens in enumerate(sequences):
        if place and common_length(sequences[place - 1], tokens) - start >= MIN_SHARED:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _batches(
    decoder: OnnxSession, lengths: Sequence[int], batch_size: int
) -> Iterator[list[int]]:
    """Places in `lengths`, longest first so that what does not fit in memory shows at once, in
    batches that may share.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    batch: list[int] = []
    for place in order:
        if batch:
            longest = lengths[batch[0]]
            new = (len(batch) + 1) * longest
            fits = new <= _BATCH_TOKENS and new * decoder.vocabulary * 4 <= _LOGIT_BYTES
            shares = decoder.sharing is Sharing.RAGGED or (
                decoder.sharing is Sharing.EQUAL and lengths[place] == longest
            )
            if not (fits and shares and len(batch) < batch_size):
                yield batch
                batch = []
        batch.append(place)
    if batch:
        yield batch


class GrowingAnswer(NamedTuple):
    """One answer to generate. pick: the next token from its logits [vocabulary]."""

    place: int
    writer: AnswerWriter
    pick: Callable[[Array], int]

    @property
    def prompt(self) -> list[int]:
        return self.writer.job.tokens


def generate(
    decoder: OnnxSession, answers: Sequence[GrowingAnswer], batch_size: int
) -> Iterator[tuple[int, Response]]:
    """`(place, response)` of every answer, as they finish."""
    ready = sorted(answers, key=lambda answer: answer.prompt)
    shares = decoder.sharing is Sharing.RAGGED and decoder.has_cache
    groups = (
        _groups([answer.prompt for answer in ready], 0)
        if shares
        else [list(range(len(ready)))]
    )
    for group in groups:
        members = [ready[place] for place in group]
        prompts = [answer.prompt for answer in members]
        start = 0
        cache = decoder.empty_cache(1)
        if shares and len(members) > 1:
            # One token of every prompt is left over, because its logits begin the answer.
            start = min(
                common_length(prompts[0], prompts[-1]), min(map(len, prompts)) - 1
            )
            _, cache = decoder.run_row(prompts[0][:start], 0, cache)
        for batch in _batches(
            decoder, [len(prompt) - start for prompt in prompts], batch_size
        ):
            chosen = [members[place] for place in batch]
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
        for place, answer in enumerate(answers):
            token = answer.pick(logits[place])
            wanted = answer.writer.job.request.top_logprobs
            if wanted is not None:
                answer.writer.values.append(_values(logits[place], token, wanted))
            response = answer.writer.add(token)
            if response is None:
                going.append(place)
            else:
                yield answer.place, response
        if not going:
            return
        if len(going) < len(answers):
            steps.keep(going)
            answers = [answers[place] for place in going]
        logits = steps.step([answer.writer.written[-1] for answer in answers])


def _values(
    logits: Array, token: int, alternatives: int
) -> tuple[float, list[tuple[int, float]]]:
    """A token's log-probability by logits [vocabulary], and the most probable tokens with theirs."""
    values = logits.astype(np.float32) - logits.max()
    values -= np.log(np.exp(values).sum())
    best = np.argsort(-values, kind="stable")[:alternatives]
    return float(values[token]), [(int(other), float(values[other])) for other in best]


class _Cached:
    """Steps with keys and values kept: prompts are padded at the left, after the beginning that all
    of them share.
    """

    def __init__(self, decoder: OnnxSession, start: int, cache: Cache) -> None:
        self._decoder = decoder
        self._start = start
        self._cache = cache

    def begin(self, prompts: list[list[int]]) -> Array:
        """Logits [batch, vocabulary] for the first token of every answer."""
        tokens, self._mask, positions = padded(prompts, self._start, left=True)
        self._lengths = np.array([len(prompt) for prompt in prompts])
        logits, self._cache = self._decoder.run(
            tokens, self._mask, positions, repeat(self._cache, len(prompts))
        )
        return logits[:, -1]

    def step(self, tokens: list[int]) -> Array:
        """Logits after one more token for every answer."""
        self._mask = np.pad(self._mask, ((0, 0), (0, 1)), constant_values=1)
        logits, self._cache = self._decoder.run(
            np.array(tokens)[:, None], self._mask, self._lengths[:, None], self._cache
        )
        self._lengths = self._lengths + 1
        return logits[:, -1]

    def keep(self, rows: list[int]) -> None:
        """Go on with some of the answers only."""
        self._mask = self._mask[rows]
        self._lengths = self._lengths[rows]
        self._cache = keep(self._cache, rows)


class _Uncached:
    """Steps of a file without cache inputs: every token is computed again, padded at the right."""

    def __init__(self, decoder: OnnxSession) -> None:
        self._decoder = decoder
        self._rows: list[list[int]] = []

    def begin(self, prompts: list[list[int]]) -> Array:
        """Logits [batch, vocabulary] for the first token of every answer."""
        self._rows = [list(prompt) for prompt in prompts]
        return self._logits()

    def step(self, tokens: list[int]) -> Array:
        """Logits after one more token for every answer."""
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        return self._logits()

    def keep(self, rows: list[int]) -> None:
        """Go on with some of the answers only."""
        self._rows = [self._rows[place] for place in rows]

    def _logits(self) -> Array:
        logits, _ = self._decoder.run(*padded(self._rows, 0), [])
        last = np.array([len(row) - 1 for row in self._rows])
        return logits[np.arange(len(self._rows)), last]  # type: ignore[no-any-return]
