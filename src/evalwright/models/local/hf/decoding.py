"""Writes answers row by row: who is done leaves at once, and a prompt that waits takes the free
place.

The loop is our own, so that a row ends when it is done, equal prompts and shared beginnings are
computed once, and only the last position of a prompt goes through the output head. Prompts that
begin alike are written together (`families`). Where the model cannot be served this way, `refusal`
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
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.sampling import RowWriter, advance
from evalwright.models.local.hf.slots import Slots
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.tokens import common_length
from evalwright.models.local.writing import Pieces

_PROMPT_TOKENS = {"cpu": 2048, "gpu": 16384}
"""Padded tokens of prompts in one pass: what keeps a device busy, and activations near a CPU's
caches.
"""

_ROWS = {"cpu": 128, "gpu": 512}
"""Rows written at once where no batch size is given: the products of one token each want many rows.
"""

WORTH = 64
"""Tokens that prompts must share beyond what all others share, to be written apart from these."""

ENOUGH = 8
"""Different prompts that are enough for a batch of their own."""

LEAST = 16
"""Shared tokens below which computing them apart costs more than it saves."""

_TOLERANCE = {8: 1e-4, 4: 1e-3, 2: 0.1}
"""By the bytes of a number: how far logits may lie from those of the plain way, in parts of the
largest.
"""


class GenerationLoop:
    """The loop over one model.

    It is tried on a few tokens, next to the plain way, before it is used.
    """

    def __init__(self, loaded: Loaded, reader: LogitReader) -> None:
        self.forward = TreeForward(loaded.model, reader, loaded.device)
        self.refusal = self.forward.refusal
        self._loaded = loaded
        self._reader = reader
        self._tried = False
        kind = "gpu" if loaded.device != "cpu" else "cpu"
        self.most_rows = _ROWS[kind]
        self._prompt_tokens = _PROMPT_TOKENS[kind]

    def ready(self, tokens: Sequence[int]) -> bool:
        """Whether it can be used; at the first call a few of these tokens are tried, and `refusal`
        is known after it.
        """
        while not self._tried and self.refusal is None:
            slots = Slots(self.forward, self._reader)
            try:
                with quiet():
                    far = _distance(slots, self._loaded, tokens[: self._tried_on()])
                near = far <= _TOLERANCE.get(self.forward.number_bytes, 0.1)
                reason = None if near else "its logits differ"
            except Exception as error:
                if is_out_of_memory(error):
                    return False
                reason = str(error) or type(error).__name__
            slots.close()
            if reason is None:
                self._tried = True
            elif self.forward.cascading:
                self.forward.cascading = False
            else:
                self.refusal = reason
        return self.refusal is None

    def is_short(self, job: Job) -> bool:
        """Whether every layer attends to all of the prompt and the answer."""
        return (
            self.forward.longest is None
            or len(job.tokens) + job.room <= self.forward.longest
        )

    def write(
        self, jobs: Mapping[int, Job], shared: int, queue: deque[int], rows: int
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(job, answer)` for all jobs of the queue, which begin with the same `shared`
        tokens, as they are done.

        A job is taken off the queue when its row begins. `rows` are written at once at the most.
        """
        slots = Slots(self.forward, self._reader)
        room = max(len(jobs[item].tokens) - shared + jobs[item].room for item in queue)
        pieces = Pieces(self._loaded.encoder)
        active: list[tuple[int, RowWriter]] = []
        try:
            first = self._take(jobs, shared, queue, rows)
            slots.open(jobs[first[0]].tokens[:shared], rows, room)
            while active or first:
                if not first and queue and _worthwhile(len(active), rows):
                    first = self._take(jobs, shared, queue, rows - len(active))
                if first:
                    new, logits = self._begin(slots, jobs, shared, first, pieces)
                    places = range(len(active), len(active) + len(new))
                    active += new
                    first = []
                else:
                    places = range(len(active))
                    logits = slots.step([writer.written[-1] for _, writer in active])
                ended = advance(logits, [active[place][1] for place in places])
                done = {places[row]: answer for row, answer in ended.items()}
                slots.remove(list(done))
                for place in sorted(done, reverse=True):
                    item, _ = active[place]
                    active[place] = active[-1]
                    active.pop()
                    yield item, done[place]
        finally:
            slots.close()

    def _tried_on(self) -> int:
        """How many tokens of a prompt are tried: with ten more they are within every layer's sight."""
        most = self._loaded.reader.rules.max_length
        return max(1, min(24, min(most, self.forward.longest or most) - 10))

    def _take(
        self, jobs: Mapping[int, Job], shared: int, queue: deque[int], free: int
    ) -> list[int]:
        """The next jobs whose prompts go through the model in one pass; equal ones count once."""
        taken: list[int] = []
        different: set[tuple[int, ...]] = set()
        longest = 1
        while queue and len(taken) < free:
            tokens = tuple(jobs[queue[0]].tokens[shared:])
            if tokens not in different:
                longest = max(longest, len(tokens))
                if different and (len(different) + 1) * longest > self._prompt_tokens:
                    break
                different.add(tokens)
            taken.append(queue.popleft())
        return taken

    def _begin(
        self,
        slots: Slots,
        jobs: Mapping[int, Job],
        shared: int,
        items: Sequence[int],
        pieces: Pieces,
    ) -> tuple[list[tuple[int, RowWriter]], Tensor]:
        """Put prompts through the model, each different one once."""
        rows: dict[tuple[int, ...], int] = {}
        firsts = []
        others = []
        copies = []
        for item in items:
            tokens = tuple(jobs[item].tokens[shared:])
            if tokens in rows:
                others.append(item)
                copies.append(rows[tokens])
            else:
                rows[tokens] = len(rows)
                firsts.append(item)
        logits = slots.add(list(rows), copies)
        return [
            (item, RowWriter(self._loaded, jobs[item], pieces))
            for item in [*firsts, *others]
        ], logits


def _worthwhile(active: int, rows: int) -> bool:
    """Whether so many places are free that a pass for the prompts that take them is used well."""
    return rows - active >= max(1, rows // 16)


def _distance(slots: Slots, loaded: Loaded, tokens: Sequence[int]) -> float:
    """How far logits lie from those of the whole texts at once, in parts of the largest: rows that
    share a beginning.

    Three rows, of which one is a copy and one leaves early, so that every way of the loop is gone.
    """
    some = [*tokens, *range(1, 9)]
    shared = some[:-5]
    rest = some[-5:]
    rows = [rest[:4], rest[1:3]]
    slots.open(shared, 3, 8)
    found = [slots.add(rows, [1])]
    texts = [[*shared, *rows[0]], [*shared, *rows[1]], [*shared, *rows[1]]]
    compared = [list(texts)]
    for token in (rest[4], rest[0]):
        texts = [[*text, token + place % 2] for place, text in enumerate(texts)]
        found.append(slots.step([text[-1] for text in texts]))
        compared.append(list(texts))
        if len(texts) == 3:
            slots.remove([0])
            texts = [texts[2], texts[1]]
    worst = 0.0
    with torch.inference_mode():
        for logits, whole in zip(found, compared, strict=True):
            for row, text in zip(logits, whole, strict=True):
                ids = torch.tensor([text], device=loaded.device)
                plain = (
                    loaded.model(input_ids=ids, use_cache=False).logits[0, -1].float()
                )
                scale = max(1e-6, float(plain.abs().max()))
                worst = max(worst, float((row.float() - plain).abs().max()) / scale)
    return worst


@dataclass(frozen=True, slots=True)
class Family:
    """`members` are places of prompts that are not empty; all begin with the same `shared` tokens,
    and each has at least one more.
    """

    shared: int
    members: list[int]


def families(prompts: Sequence[Sequence[int]]) -> list[Family]:
    """Every prompt in one family.

    Prompts that share little with any others are one family, however little that is.

    Sorted prompts that share a beginning stand side by side, so a family is a run of them, less
    those parts of the run that share more among themselves.
    """
    order = sorted(range(len(prompts)), key=lambda place: list(prompts[place]))
    alike = [common_length(prompts[a], prompts[b]) for a, b in pairwise(order)]
    out: list[Family] = []
    waiting = [(0, len(order))] if order else []
    while waiting:
        start, end = waiting.pop()
        shared = _shared(prompts, order, alike, start, end)
        rest: list[int] = []
        for left, right in _parts(alike, start, end, shared):
            deeper = _shared(prompts, order, alike, left, right)
            different = 1 + sum(
                prompts[a] != prompts[b] for a, b in pairwise(order[left:right])
            )
            # A part of its own computes again what all share; equal prompts go through the model
            # once in any family.
            worth = (
                deeper >= shared + WORTH
                and (different - 1) * (deeper - shared) >= shared
            )
            if (left, right) != (start, end) and different >= ENOUGH and worth:
                waiting.append((left, right))
            else:
                rest += order[left:right]
        if rest:
            out.append(Family(shared if shared >= LEAST else 0, rest))
    return out


def _shared(
    prompts: Sequence[Sequence[int]],
    order: Sequence[int],
    alike: Sequence[int],
    start: int,
    end: int,
) -> int:
    """Tokens that a run begins with alike, and leaves every prompt its last one, which the first
    answer token needs.
    """
    shortest = min(len(prompts[place]) for place in order[start:end])
    return min([shortest - 1, *alike[start : end - 1]])


def _parts(
    alike: Sequence[int], start: int, end: int, shared: int
) -> Iterator[tuple[int, int]]:
    """The runs within a run, of prompts that share more than all of it."""
    left = start
    for place in range(start, end - 1):
        if alike[place] < shared + WORTH:
            yield left, place + 1
            left = place + 1
    yield left, end
