"""Generates answers row by row: when a row ends, a waiting prompt takes its place at once.

The loop is our own, so that a row ends when it is done, equal prompts and shared prefixes are
computed once, and only the last position of a prompt goes through the output head. Prompts that
begin alike are generated together (`families`). If the model cannot be served this way, `refusal`
says why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from evalwright.core.errors import Failure
from evalwright.core.responses import Response
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.batching import Tensor, is_out_of_memory
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.model_checks import ModelChecks
from evalwright.models.local.hf.packed_products import PackedProducts
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.sampling import RowWriter, advance
from evalwright.models.local.hf.slots import Slots
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.tokens import common_length
from evalwright.models.local.writing import Pieces

_PROMPT_TOKENS = {"cpu": 2048, "gpu": 16384}
"""Prompt tokens in one pass, padding included: enough to keep a device busy, few enough for CPU
caches.
"""

_MAX_ROWS = {"cpu": 128, "gpu": 512}
"""Most rows at once without a batch size; matrix products of one token each need many rows."""

MIN_EXTRA_SHARED_TOKENS = 64
"""Tokens that prompts must share, beyond what all share, to be generated separately."""

MIN_FAMILY_PROMPTS = 8
"""Least different prompts for a batch of their own."""

MIN_SHARED_TOKENS = 16
"""Least shared tokens; with fewer, computing them separately costs more than it saves."""

_TOLERANCE = {8: 1e-4, 4: 1e-3, 2: 0.1}
"""By the bytes of a number: tolerated difference of logits, as a share of the largest."""


class GenerationLoop:
    """The generation loop over one model.

    It is tried on a few tokens, and compared with a plain forward pass, before it is used.

    Args:
        loaded: the model.
        reader: computes its logits.
        products: computes its products with packed weights.
        checks: what earlier processes noted of this model.
    """

    def __init__(
        self,
        loaded: Loaded,
        reader: LogitReader,
        products: PackedProducts,
        checks: ModelChecks | None = None,
    ) -> None:
        self.products = products
        self.forward = TreeForward(loaded.model, reader, loaded.device, checks)
        self.refusal = self.forward.refusal
        self._loaded = loaded
        self._reader = reader
        self._tried = False
        device_kind = "gpu" if loaded.device != "cpu" else "cpu"
        self.most_rows = _MAX_ROWS[device_kind]
        self._prompt_tokens = _PROMPT_TOKENS[device_kind]

    def ready(self, tokens: Sequence[int]) -> bool:
        """Return whether the loop can be used.

        The first call tries it on a few of these tokens and sets `refusal`.
        """
        while not self._tried and self.refusal is None:
            slots = Slots(self.forward, self._reader, self.products)
            try:
                with quiet():
                    far = _max_logit_distance(
                        slots, self._loaded, tokens[: self._tried_on()]
                    )
                near = far <= _TOLERANCE.get(self.forward.number_bytes, 0.1)
                reason = None if near else "its logits differ"
            except Exception as error:
                if is_out_of_memory(error):
                    return False
                reason = str(error) or type(error).__name__
            slots.close()
            if reason is None:
                self._tried = True
            elif self.products.active:
                self.products.close()
            elif self.forward.cascading:
                self.forward.cascading = False
            else:
                self.refusal = reason
        return self.refusal is None

    def is_short(self, job: Job) -> bool:
        """Return whether every layer attends to all of the prompt and the answer."""
        return (
            self.forward.longest is None
            or len(job.tokens) + job.room <= self.forward.longest
        )

    def write(
        self, jobs: Mapping[int, Job], shared: int, queue: deque[int], rows: int
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(job, answer)` for all jobs of the queue as they are done.

        All begin with the same `shared` tokens. A job is taken off the queue when its row begins;
        at most `rows` are generated at once.
        """
        slots = Slots(self.forward, self._reader, self.products)
        room = max(
            len(jobs[index].tokens) - shared + jobs[index].room for index in queue
        )
        pieces = Pieces(self._loaded.encoder)
        active: list[tuple[int, RowWriter]] = []
        try:
            first = self._take(jobs, shared, queue, rows)
            slots.open(jobs[first[0]].tokens[:shared], rows, room)
            while active or first:
                if not first and queue and _is_worthwhile(len(active), rows):
                    first = self._take(jobs, shared, queue, rows - len(active))
                if first:
                    new, logits = self._begin(slots, jobs, shared, first, pieces)
                    places = range(len(active), len(active) + len(new))
                    active += new
                    first = []
                else:
                    places = range(len(active))
                    logits = slots.step([writer.written[-1] for _, writer in active])
                ended = advance(logits, [active[row_index][1] for row_index in places])
                done = {places[row]: answer for row, answer in ended.items()}
                slots.remove(list(done))
                for row_index in sorted(done, reverse=True):
                    index, _ = active[row_index]
                    active[row_index] = active[-1]
                    active.pop()
                    yield index, done[row_index]
        finally:
            slots.close()

    def _tried_on(self) -> int:
        """Return the number of prompt tokens to try; with ten more they fit each layer's window."""
        most = self._loaded.reader.rules.max_length
        return max(1, min(24, min(most, self.forward.longest or most) - 10))

    def _take(
        self, jobs: Mapping[int, Job], shared: int, queue: deque[int], free: int
    ) -> list[int]:
        """Take the next jobs whose prompts are computed in one pass; equal ones count once."""
        batch: list[int] = []
        different: set[tuple[int, ...]] = set()
        longest = 1
        total = 0
        while queue and len(batch) < free:
            tokens = tuple(jobs[queue[0]].tokens[shared:])
            if tokens not in different:
                longest = max(longest, len(tokens))
                total += len(tokens)
                padded = (len(different) + 1) * longest
                cost = total if self.forward.cascading else padded
                if different and cost > self._prompt_tokens:
                    break
                different.add(tokens)
            batch.append(queue.popleft())
        return batch

    def _begin(
        self,
        slots: Slots,
        jobs: Mapping[int, Job],
        shared: int,
        indices: Sequence[int],
        pieces: Pieces,
    ) -> tuple[list[tuple[int, RowWriter]], Tensor]:
        """Put prompts through the model, equal ones only once."""
        rows: dict[tuple[int, ...], int] = {}
        firsts = []
        others = []
        copies = []
        for index in indices:
            tokens = tuple(jobs[index].tokens[shared:])
            if tokens in rows:
                others.append(index)
                copies.append(rows[tokens])
            else:
                rows[tokens] = len(rows)
                firsts.append(index)
        logits = slots.add(list(rows), copies)
        return [
            (index, RowWriter(self._loaded, jobs[index], pieces))
            for index in [*firsts, *others]
        ], logits


def _is_worthwhile(active: int, rows: int) -> bool:
    """Return whether enough places are free to make a pass for new prompts efficient."""
    return rows - active >= max(1, rows // 16)


def _max_logit_distance(slots: Slots, loaded: Loaded, tokens: Sequence[int]) -> float:
    """Return how far the loop's logits are from those of whole texts, as a share of the largest.

    It uses three rows that share a prefix, of which one is a copy and one leaves early, so that
    every path of the loop is tested.
    """
    some = [*tokens, *range(1, 9)]
    shared = some[:-5]
    tail = some[-5:]
    rows = [tail[:4], tail[1:3]]
    slots.open(shared, 3, 8)
    loop_logits = [slots.add(rows, [1])]
    texts = [[*shared, *rows[0]], [*shared, *rows[1]], [*shared, *rows[1]]]
    compared = [list(texts)]
    for token in (tail[4], tail[0]):
        texts = [[*text, token + row_index % 2] for row_index, text in enumerate(texts)]
        loop_logits.append(slots.step([text[-1] for text in texts]))
        compared.append(list(texts))
        if len(texts) == 3:
            slots.remove([0])
            texts = [texts[2], texts[1]]
    worst = 0.0
    with torch.inference_mode():
        for logits, whole_texts in zip(loop_logits, compared, strict=True):
            for row, text in zip(logits, whole_texts, strict=True):
                ids = torch.tensor([text], device=loaded.device)
                plain = (
                    loaded.model(input_ids=ids, use_cache=False).logits[0, -1].float()
                )
                scale = max(1e-6, float(plain.abs().max()))
                worst = max(worst, float((row.float() - plain).abs().max()) / scale)
    return worst


@dataclass(frozen=True, slots=True)
class Family:
    """Non-empty prompts, by index, that begin with the same `shared` tokens.

    Each has at least one more token.
    """

    shared: int
    members: list[int]


def families(prompts: Sequence[Sequence[int]]) -> list[Family]:
    """Partition prompts into families that share a prefix.

    Prompts that share little with any others are one family, however little that is. Sorted prompts
    that share a prefix are neighbours, so a family is a run of them, without those parts of the run
    that share more among themselves.
    """
    order = sorted(range(len(prompts)), key=lambda index: list(prompts[index]))
    alike = [common_length(prompts[a], prompts[b]) for a, b in pairwise(order)]
    found_families: list[Family] = []
    waiting = [(0, len(order))] if order else []
    while waiting:
        start, end = waiting.pop()
        shared = _shared_length(prompts, order, alike, start, end)
        remaining: list[int] = []
        for left, right in _split_run(alike, start, end, shared):
            deeper = _shared_length(prompts, order, alike, left, right)
            different = 1 + sum(
                prompts[a] != prompts[b] for a, b in pairwise(order[left:right])
            )
            # A separate part computes again what all share; equal prompts go through the model only
            # once in any family.
            worth = (
                deeper >= shared + MIN_EXTRA_SHARED_TOKENS
                and (different - 1) * (deeper - shared) >= shared
            )
            if (
                (left, right) != (start, end)
                and different >= MIN_FAMILY_PROMPTS
                and worth
            ):
                waiting.append((left, right))
            else:
                remaining += order[left:right]
        if remaining:
            found_families.append(
                Family(shared if shared >= MIN_SHARED_TOKENS else 0, remaining)
            )
    return found_families


def _shared_length(
    prompts: Sequence[Sequence[int]],
    order: Sequence[int],
    alike: Sequence[int],
    start: int,
    end: int,
) -> int:
    """Return how many tokens all prompts of a run share, short of the last token of each.

    The first answer token needs that last token.
    """
    shortest = min(len(prompts[index]) for index in order[start:end])
    return min([shortest - 1, *alike[start : end - 1]])


def _split_run(
    alike: Sequence[int], start: int, end: int, shared: int
) -> Iterator[tuple[int, int]]:
    """Yield the runs within a run whose prompts share more than all of it."""
    left = start
    for index in range(start, end - 1):
        if alike[index] < shared + MIN_EXTRA_SHARED_TOKENS:
            yield left, index + 1
            left = index + 1
    yield left, end
