"""Log-likelihoods the plain way: every different input once, padded on the right, logits only where they are read.

`PairScorer` is what the model asks; another way to compute the same (a prefix tree, say) is another class of that shape.
`LogitReader` finds logits at single positions, and `read_log_likelihoods` turns them into numbers a chunk at a time, so
that the table of all positions by the whole vocabulary never exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.hf.batching import Batcher
from evalwright.models.tokens import Pair

Tensor = Any
"""A torch.Tensor; torch is not typed here."""

CHUNK_ELEMENTS = 1 << 25
"""Logits held in float32 at once, at the most: 128 MiB."""

CHUNK_ROWS = 256
"""Positions whose logits are computed at once: enough for the output head's product, few enough to stay near the caches."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Natural log, summed over `tokens` tokens; is_greedy: each of them was the most probable."""

    log_likelihood: float
    is_greedy: bool
    tokens: int


class PairScorer(Protocol):
    """Computes log-likelihoods of continuations after contexts, both as tokens and within the model's length."""

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""


@dataclass(frozen=True, slots=True)
class _Group:
    """All pairs that put the same tokens into the model: `members` are (index of the pair, its targets)."""

    tokens: tuple[int, ...]
    members: list[tuple[int, list[int]]]

    @property
    def positions(self) -> range:
        """The positions whose logits are read: those of the longest targets."""
        return range(len(self.tokens) - max(len(targets) for _, targets in self.members), len(self.tokens))


class PlainScorer:
    """One forward pass per different input; siblings that differ in their last token only share it."""

    def __init__(self, reader: LogitReader, batcher: Batcher[list[tuple[int, Scored]]], device: str) -> None:
        self._reader = reader
        self._batcher = batcher
        self._device = device

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
        """See PairScorer."""
        groups = _grouped(pairs)
        costs = [len(group.tokens) for group in groups]
        for place, outcome in self._batcher.run(costs, lambda batch: self._run([groups[i] for i in batch])):
            if isinstance(outcome, Failure):
                yield from ((index, outcome) for index, _ in groups[place].members)
            else:
                yield from ((index, checked(scored)) for index, scored in outcome)

    def _run(self, groups: list[_Group]) -> list[list[tuple[int, Scored]]]:
        ids, mask = pad_right([group.tokens for group in groups], self._device)
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
            logits_of = self._reader.prepare(ids, mask, rows, columns)
            values, greedy = read_log_likelihoods(logits_of, len(rows), reads, self._reader.vocabulary)
        out: list[list[tuple[int, Scored]]] = [[] for _ in groups]
        start = 0
        for row, index, count in spans:
            part = slice(start, start + count)
            out[row].append((index, Scored(math.fsum(values[part]), all(greedy[part]), count)))
            start += count
        return out


class LogitReader:
    """Gives the logits at chosen positions of a batch.

    Where applying the output head to the base model's last hidden states, with what some architectures do to the logits
    after it, gives what the whole model gives (it is tried once, here), the head sees the chosen positions only. Else the
    whole model runs, from the first chosen column on where it can leave the others out.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._accepted = set(signature(model.forward).parameters)
        self._head: Any = model.get_output_embeddings()
        self._base: Any = getattr(model, "base_model", None)
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self.vocabulary = int(config.vocab_size)
        self._finish = _finish(config)
        self.sliced = self._can_slice(device)

    def head(self, hidden: Tensor) -> Tensor:
        """The logits of last hidden states, where `sliced` holds."""
        return self._finish(self._head(hidden))

    def prepare(
        self, ids: Tensor, mask: Tensor, rows: list[int], columns: list[int]
    ) -> Callable[[int, int], Tensor]:
        """Run the model on `ids` (batch, length) and return a function of (start, end): logits of these positions."""
        row_index = torch.tensor(rows, device=ids.device)
        column_index = torch.tensor(columns, device=ids.device)
        if self.sliced:
            hidden = self._base(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            chosen = hidden[row_index, column_index]
            return lambda start, end: self.head(chosen[start:end])
        arguments = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        first = 0
        if "logits_to_keep" in self._accepted:
            first = min(columns)
            arguments["logits_to_keep"] = ids.shape[1] - first
        logits = self._model(**{k: v for k, v in arguments.items() if k in self._accepted}).logits
        return lambda start, end: logits[row_index[start:end], column_index[start:end] - first]

    def _can_slice(self, device: str) -> bool:
        if self._head is None or self._base is None or self._base is self._model:
            return False
        ids = torch.arange(1, 9, device=device)[None] % max(2, int(self._head.weight.shape[0]))
        mask = torch.ones_like(ids)
        try:
            with torch.inference_mode():
                whole = self._model(input_ids=ids, attention_mask=mask, use_cache=False).logits
                hidden = self._base(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
                apart = self.head(hidden)
        except Exception:  # any refusal means: not this way
            return False
        if apart.shape != whole.shape:
            return False
        scale = float(whole.abs().max())
        return bool(float((apart.float() - whole.float()).abs().max()) <= 1e-6 * max(1.0, scale))


def read_log_likelihoods(
    logits_of: Callable[[int, int], Tensor], places: int, reads: Sequence[tuple[int, int]], vocabulary: int
) -> tuple[list[float], list[bool]]:
    """Log-probability, and whether it is the most probable, of every `(place, token)` in `reads`.

    Softmax in float32, `CHUNK_ROWS` positions at a time, fewer where the vocabulary is large.
    """
    values = [0.0] * len(reads)
    greedy = [False] * len(reads)
    step = max(1, min(CHUNK_ROWS, CHUNK_ELEMENTS // vocabulary))
    order = sorted(range(len(reads)), key=lambda read: reads[read][0])
    done = 0
    for start in range(0, places, step):
        end = min(start + step, places)
        here = done
        while done < len(order) and reads[order[done]][0] < end:
            done += 1
        if done == here:
            continue
        chosen = order[here:done]
        logits = logits_of(start, end)
        place = torch.tensor([reads[read][0] - start for read in chosen], device=logits.device)
        token = torch.tensor([reads[read][1] for read in chosen], device=logits.device)
        best = _is_argmax(logits, place, token)
        # On a CPU log-softmax takes a third of the time of logsumexp.
        picked = torch.log_softmax(logits, dim=-1, dtype=torch.float32)[place, token]
        for read, value, top in zip(chosen, picked.tolist(), best.tolist(), strict=True):
            values[read], greedy[read] = value, top
    return values, greedy


def _is_argmax(logits: Tensor, place: Tensor, token: Tensor) -> Tensor:
    """Whether each token is the first of the highest logits at its place."""
    best = logits[place, token] == logits.amax(dim=-1)[place]
    for read in best.nonzero()[:, 0].tolist():  # few: where it matters which of several comes first
        best[read] = logits[place[read]].argmax() == token[read]
    return best


def _finish(config: Any) -> Callable[[Tensor], Tensor]:
    """What an architecture does to its logits after the output head."""
    cap = getattr(config, "final_logit_softcapping", None)  # Gemma 2 and 3
    if cap is not None:
        return lambda logits: torch.tanh(logits / cap) * cap
    scale = getattr(config, "logit_scale", None)  # Cohere
    if scale is not None:
        return lambda logits: logits * scale
    divisor = getattr(config, "logits_scaling", None)  # Granite
    if divisor is not None:
        return lambda logits: logits / divisor
    return lambda logits: logits


def pad_right(rows: Sequence[Sequence[int]], device: str) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, both (rows, longest row). What stands in the padding is never read."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask


def _grouped(pairs: Sequence[Pair]) -> list[_Group]:
    groups: dict[tuple[int, ...], _Group] = {}
    for index, (context, continuation) in enumerate(pairs):
        key = (*context, *continuation[:-1])
        groups.setdefault(key, _Group(key, [])).members.append((index, continuation))
    return list(groups.values())


def checked(scored: Scored) -> Scored | Failure:
    if math.isfinite(scored.log_likelihood):
        return scored
    return ModelError(
        f"The model's log-likelihood is {scored.log_likelihood}, which is not a finite number; its dtype may be too small "
        f"(try dtype=bfloat16 or float32)."
    ).as_failure()
