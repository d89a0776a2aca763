"""Plain log-likelihood scoring: every different input once, logits only at the positions read.

The table of all positions by the whole vocabulary never exists. Positions are read some hundred at
a time, and the vocabulary a block at a time if the output head is a plain matrix: each block's part
of the softmax is summed while it is in the processor's cache (the running maximum and sum of
Milakov & Gimelshein 2018). A prefix tree (`tree_scoring`) computes the same in another way;
`unexplained_difference` compares its scores with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch

from evalwright.core.errors import Failure, ModelError
from evalwright.models.local.answering import PairScore
from evalwright.models.local.hf.batching import BatchRunner, Tensor, text_config
from evalwright.models.local.hf.model_checks import ModelChecks
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.tokens import Pair

Tokens = tuple[int, ...]

Block = tuple[int, Tensor]
"""First token number and logits (positions, columns) of a block of the vocabulary.

The logits may be overwritten.
"""

LogitsOf = Callable[[int, int], Iterable[Block]]
"""Computes the logits of positions start to end, in blocks of the vocabulary from first to last."""

CHUNK_ELEMENTS = 1 << 25
"""Most logits held in float32 at once: 128 MiB."""

CACHED_ELEMENTS = 1 << 18
"""Most logits of one block on a CPU: 1 MiB, which stays in the cache."""

_TOLERANCE = {4: 3e-5, 8: 3e-5, 2: 0.15, 1: 0.5}
"""By the bytes of a number: largest difference per token that another order of rounding can make.
"""

CHUNK_ROWS = 256
"""Positions whose logits are computed at once.

They are enough for an efficient product, and few enough for caches.
"""


class LogitReader:
    """Computes the logits at chosen positions of a batch.

    Usually the output head is applied to the base model's last hidden states at the chosen
    positions, followed by what some architectures do to the logits. This is compared once, here,
    with the whole model; if they differ, the whole model runs, from the first chosen column on if
    it can.
    """

    def __init__(
        self, model: Any, device: str, checks: ModelChecks | None = None
    ) -> None:
        self._model = model
        self._accepted = set(signature(model.forward).parameters)
        self._head: Any = model.get_output_embeddings()
        self._base: Any = getattr(model, "base_model", None)
        config = text_config(model)
        self.vocabulary = int(config.vocab_size)
        self._finish = _logit_transform(config)
        self._by_blocks = type(self._head) is torch.nn.Linear and not has_hooks(
            self._head
        )
        self.sliced = self._has_separate_head(device, checks or ModelChecks())

    def head(self, hidden: Tensor) -> Tensor:
        """Compute the logits of last hidden states (positions, width), if `sliced`."""
        return self._finish(self._head(hidden))

    def blocks(self, hidden: Tensor) -> Iterator[Block]:
        """Compute the logits in blocks of the vocabulary; in one if the head is no plain matrix."""
        columns = max(
            CACHED_ELEMENTS if hidden.device.type == "cpu" else CHUNK_ELEMENTS, 1
        ) // len(hidden)
        if not self._by_blocks or columns >= self.vocabulary:
            yield 0, self.head(hidden)
            return
        weight = self._head.weight
        bias = self._head.bias
        for start in range(0, len(weight), columns):
            end = start + columns
            bias_part = None if bias is None else bias[start:end]
            yield (
                start,
                self._finish(
                    torch.nn.functional.linear(hidden, weight[start:end], bias_part)
                ),
            )

    def prepare(
        self,
        ids: Tensor,
        mask: Tensor,
        rows: list[int],
        columns: list[int],
        sources: Sequence[Tokens] = (),
    ) -> LogitsOf:
        """Run the model on `ids` (batch, length); return the logits at `rows` and `columns`."""
        row_index = torch.tensor(rows, device=ids.device)
        column_index = torch.tensor(columns, device=ids.device)
        if self.sliced:
            hidden = self._base(
                input_ids=ids, attention_mask=mask, use_cache=False
            ).last_hidden_state
            chosen = hidden[row_index, column_index]
            return lambda start, end: self.blocks(chosen[start:end])
        arguments = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        first = 0
        if "logits_to_keep" in self._accepted:
            first = min(columns)
            arguments["logits_to_keep"] = ids.shape[1] - first
        logits = self._model(
            **{k: v for k, v in arguments.items() if k in self._accepted}
        ).logits
        return lambda start, end: [
            (0, logits[row_index[start:end], column_index[start:end] - first])
        ]

    def _has_separate_head(self, device: str, checks: ModelChecks) -> bool:
        """Return whether the output head can be applied to single positions."""
        if self._head is None or self._base is None or self._base is self._model:
            return False
        is_separate = checks.passed("separate head") is True or self._can_slice(device)
        if is_separate:
            checks.note("separate head", True)
        return is_separate

    def _can_slice(self, device: str) -> bool:
        ids = torch.arange(1, 9, device=device)[None] % max(
            2, int(self._head.weight.shape[0])
        )
        mask = torch.ones_like(ids)
        try:
            with torch.inference_mode():
                full_logits = self._model(
                    input_ids=ids, attention_mask=mask, use_cache=False
                ).logits
                hidden = self._base(
                    input_ids=ids, attention_mask=mask, use_cache=False
                ).last_hidden_state
                apart = self.head(hidden)
        except Exception:  # any refusal means that this way is not available
            return False
        if apart.shape != full_logits.shape:
            return False
        scale = float(full_logits.abs().max())
        return bool(
            float((apart.float() - full_logits.float()).abs().max())
            <= 1e-6 * max(1.0, scale)
        )


class SidesReader:
    """Computes the logits of an encoder-decoder model; the encoder runs once per different source.

    A context keeps all special tokens that its tokenizer adds, including an EOS at its end; a
    continuation gets none, and its first token is predicted from the decoder's start token. Both
    are encoded separately. A rolling log-likelihood is that of the text after a source of only the
    prefix token; a text longer than the model is scored in windows, whose encoder reads the text to
    their left as far as it fits. These are lm-evaluation-harness's rules.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device

    def prepare(
        self,
        ids: Tensor,
        mask: Tensor,
        rows: list[int],
        columns: list[int],
        sources: Sequence[Tokens],
    ) -> LogitsOf:
        """Return the decoder's logits at `rows` and `columns` of `ids` (batch, length)."""
        places = {source: index for index, source in enumerate(dict.fromkeys(sources))}
        source_ids, seen = pad(list(places), self._device)
        with quiet():
            hidden = self._model.get_encoder()(
                input_ids=source_ids, attention_mask=seen
            ).last_hidden_state
            chosen = torch.tensor(
                [places[source] for source in sources], device=hidden.device
            )
            logits = self._model(
                encoder_outputs=(hidden[chosen],),
                attention_mask=seen[chosen.to(seen.device)],
                decoder_input_ids=ids,
                decoder_attention_mask=mask,
                use_cache=False,
            ).logits
        row_index = torch.tensor(rows, device=logits.device)
        column_index = torch.tensor(columns, device=logits.device)
        return lambda start, end: [
            (0, logits[row_index[start:end], column_index[start:end]])
        ]


def pad(
    rows: Sequence[Sequence[int]], device: str, token: int = 0, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """Return token ids and attention mask, both (rows, longest row).

    They are padded with `token`, which is never read.
    """
    longest = max(len(row) for row in rows)

    def filled(row: Sequence[int], filler: int) -> list[int]:
        padding = [filler] * (longest - len(row))
        return [*padding, *row] if left else [*row, *padding]

    ids = torch.tensor([filled(row, token) for row in rows])
    mask = torch.tensor([filled([1] * len(row), 0) for row in rows])
    return to_device(ids, device), to_device(mask, device)


def read_log_likelihoods(
    logits_of: LogitsOf, places: int, reads: Sequence[tuple[int, int]]
) -> tuple[list[float], list[bool]]:
    """Return the log-probability of every `(place, token)` in `reads`, and whether it is highest.

    `places` is the number of places. Of several equal logits the first counts as the most probable.
    The softmax is in float32. On a GPU nothing is waited for until all chunks are on their way.
    """
    order = sorted(range(len(reads)), key=lambda read: reads[read][0])
    outcomes: list[tuple[Tensor, Tensor]] = []
    done = 0
    for start in range(0, places, CHUNK_ROWS):
        end = min(start + CHUNK_ROWS, places)
        here = done
        while done < len(order) and reads[order[done]][0] < end:
            done += 1
        if done == here:
            continue
        chosen = [reads[read] for read in order[here:done]]
        indices = (
            [place - start for place, _ in chosen],
            [token for _, token in chosen],
        )
        outcomes.append(_read_chunk(logits_of(start, end), indices))
    values = [0.0] * len(reads)
    greedy = [False] * len(reads)
    if outcomes:
        log_probs, is_highest = (
            torch.cat(parts).tolist() for parts in zip(*outcomes, strict=True)
        )
        for read, log_prob, highest in zip(order, log_probs, is_highest, strict=True):
            values[read] = log_prob
            greedy[read] = highest
    return values, greedy


def _read_chunk(
    blocks: Iterable[Block], indices: tuple[list[int], list[int]]
) -> tuple[Tensor, Tensor]:
    """Read places and tokens of one chunk from its blocks of logits."""
    chunk_reads: _Reads | _QueuedReads | None = None
    for first, block in blocks:
        logits = block.float()
        if chunk_reads is None:
            kind = _Reads if logits.device.type == "cpu" else _QueuedReads
            chunk_reads = kind(*indices, rows=logits.shape[0], device=logits.device)
        chunk_reads.add(first, logits)
    assert chunk_reads is not None
    return chunk_reads.result()


def to_device(tensor: Tensor, device: Any) -> Tensor:
    """Copy a tensor of the CPU to a device, without waiting for what the device has to do before.

    CUDA takes its own copy of ordinary memory before it returns, so the tensor may be freed.
    """
    return tensor.to(device, non_blocking=torch.device(device).type == "cuda")


class _Reads:
    """Reads each `tokens[i]` at position `places[i]` of one chunk, whose logits come in blocks.

    By position, it keeps over the blocks so far the `highest` logit, and the `total` of exp(logit -
    highest). By token read, it keeps the token's logit `picked`, and whether it `leads` the logits
    up to the end of its own block.
    """

    def __init__(
        self, places: list[int], tokens: list[int], *, rows: int, device: Any
    ) -> None:
        self._place = to_device(torch.tensor(places), device)
        self._token = to_device(torch.tensor(tokens), device)
        self._highest = torch.full((rows,), -torch.inf, device=device)
        # Many blocks are added up; Apple's GPUs have no 64-bit floats.
        exact = torch.float32 if device.type == "mps" else torch.float64
        self._total = torch.zeros(rows, dtype=exact, device=device)
        self._picked = torch.zeros(len(tokens), device=device)
        self._leads = torch.zeros(len(tokens), dtype=torch.bool, device=device)

    def add(self, first: int, logits: Tensor) -> None:
        """Process logits (positions, columns) of the tokens from `first` on, overwriting them."""
        top = logits.amax(dim=-1)
        inside = (
            (self._token >= first) & (self._token < first + logits.shape[1])
        ).nonzero()[:, 0]
        row = self._place[inside]
        column = self._token[inside] - first
        self._picked[inside] = logits[row, column]
        leading = (self._picked[inside] == top[row]) & (top[row] > self._highest[row])
        # Only these few need a check of which of several equal logits comes first.
        for read in leading.nonzero()[:, 0].tolist():
            self._leads[inside[read]] = logits[row[read]].argmax() == column[read]
        self._add_up(top, logits)

    def _add_up(self, top: Tensor, logits: Tensor) -> None:
        """Add a block to the softmax; `top` has its highest logits."""
        larger = torch.maximum(self._highest, top)
        sums = logits.sub_(larger[:, None]).exp_().sum(dim=-1)
        self._total = self._total * (self._highest - larger).exp() + sums
        self._highest = larger

    def result(self) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities, and whether each token is the most probable."""
        highest = self._highest[self._place]
        values = self._picked - highest - self._total.log()[self._place]
        return values, self._leads & (self._picked == highest)


class _QueuedReads(_Reads):
    """The same for a GPU: no shape depends on numbers, so the CPU never waits for them.

    Finding the position of each highest logit costs a CPU more than looking at those few that are
    read.
    """

    def add(self, first: int, logits: Tensor) -> None:
        """Process logits (positions, columns) of the tokens from `first` on, overwriting them."""
        top, top_column = logits.max(dim=-1)
        column = self._token - first
        inside = (column >= 0) & (column < logits.shape[1])
        column = column.clamp(0, logits.shape[1] - 1)
        leading = (top_column[self._place] == column) & (
            top[self._place] > self._highest[self._place]
        )
        self._picked = torch.where(inside, logits[self._place, column], self._picked)
        self._leads = torch.where(inside, leading, self._leads)
        self._add_up(top, logits)


def has_hooks(head: Any) -> bool:
    """Return whether calling the module does more than its product (such as fetching weights)."""
    return bool(
        head._forward_hooks or head._forward_pre_hooks or hasattr(head, "_hf_hook")
    )


def _logit_transform(config: Any) -> Callable[[Tensor], Tensor]:
    """Return what an architecture does to its logits after the output head."""
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


@dataclass(frozen=True, slots=True)
class _Group:
    """All pairs with the same model input; `members` are (index of the pair, its targets)."""

    source: Tokens
    tokens: Tokens
    members: list[tuple[int, list[int]]]

    @property
    def positions(self) -> range:
        """The positions whose logits are read: those of the longest targets."""
        return range(
            len(self.tokens) - max(len(targets) for _, targets in self.members),
            len(self.tokens),
        )


class PlainScorer:
    """Scores with one forward pass per different input.

    Only pairs that differ in nothing but the last token share one. `start` is the start token of a
    decoder with an encoder, which then reads the contexts.
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
        for group_index, outcome in self._batcher.run(
            costs, lambda batch: self._run([groups[i] for i in batch])
        ):
            if isinstance(outcome, Failure):
                yield from (
                    (index, outcome) for index, _ in groups[group_index].members
                )
            else:
                yield from (
                    (index, finite_or_failure(scored)) for index, scored in outcome
                )

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
        # Where each target is read, as an index into `rows` and `columns`; several targets may
        # share a position.
        reads: list[tuple[int, int]] = []
        spans: list[tuple[int, int, int]] = []
        end = 0
        for row, group in enumerate(groups):
            end += len(group.positions)
            for index, targets in group.members:
                spans.append((row, index, len(targets)))
                reads += zip(range(end - len(targets), end), targets, strict=True)
        with torch.inference_mode():
            logits_of = self._reader.prepare(
                ids, mask, rows, columns, [group.source for group in groups]
            )
            values, greedy = read_log_likelihoods(logits_of, len(rows), reads)
        scores: list[list[tuple[int, PairScore]]] = [[] for _ in groups]
        start = 0
        for row, index, count in spans:
            span = slice(start, start + count)
            scores[row].append(
                (index, PairScore(math.fsum(values[span]), all(greedy[span]), count))
            )
            start += count
        return scores


def finite_or_failure(scored: PairScore) -> PairScore | Failure:
    """Return the score, or a failure if it is not a finite number."""
    if math.isfinite(scored.log_likelihood):
        return scored
    return ModelError(
        f"The model's log-likelihood is {scored.log_likelihood}, which is not a finite"
        " number; its dtype may be too small (try dtype=bfloat16 or float32)."
    ).as_failure()


def unexplained_difference(
    expected: Iterable[tuple[int, PairScore | Failure]],
    scores: Sequence[PairScore],
    number_bytes: int,
) -> float | None:
    """Return the largest difference per token from plain scoring, in nats; None if only rounding.

    Args:
        expected: (index into `scores`, plain score); failures are ignored.
        scores: the scores to check.
        number_bytes: bytes of the model's numbers.
    """
    largest = 0.0
    beyond = False
    for index, plain in expected:
        if isinstance(plain, Failure):
            continue
        difference = (
            abs(plain.log_likelihood - scores[index].log_likelihood) / plain.tokens
        )
        scale = max(1.0, abs(plain.log_likelihood) / plain.tokens)
        largest = max(largest, difference)
        beyond |= not difference <= _TOLERANCE.get(number_bytes, 0.15) * scale
    return largest if beyond else None
