"""Encoder-decoder models (T5, BART and their kin): the encoder reads the context, the decoder writes what is asked.

A context keeps all special tokens that its tokenizer adds, the EOS at its end too; a continuation gets none, and its first
token is predicted from the decoder's start token. Both are encoded apart. A rolling log-likelihood is that of the text after
a source of the prefix token alone; a text longer than the model goes in windows, whose encoder reads what stands to their
left as far as it fits. These are lm-evaluation-harness's rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evalwright.core.errors import Failure
from evalwright.core.responses import Response
from evalwright.models.local.hf.batching import Batcher
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import read_log_likelihoods
from evalwright.models.local.hf.sampling import choose
from evalwright.models.local.hf.scoring import Scored, checked, pad_right
from evalwright.models.local.hf.writing import Job, Pieces, Writer, not_a_number
from evalwright.models.local.tokens import DoesNotFit, Encoder, Pair, TokenRules, encode_pair

Tensor = Any
"""A torch.Tensor; torch is not typed here."""


def encode_source(encoder: Encoder, rules: TokenRules, text: str) -> list[int]:
    """What the encoder reads: with all special tokens, but never two BOS."""
    tokens = encoder.encode(text, rules.add_special_tokens)
    bos = rules.bos_token
    if bos is not None and rules.add_special_tokens and tokens[:2] == [bos, bos]:
        return tokens[1:]
    if bos is not None and rules.add_bos and tokens[:1] != [bos]:
        return [bos, *tokens]
    return tokens


def encode_sides(encoder: Encoder, rules: TokenRules, context: str, continuation: str) -> Pair:
    """The tokens of both sides. White space at the context's end moves to the continuation.

    An empty context is the prefix token alone. Raises DoesNotFit where there is nothing to score or to start from.
    """
    kept = context.rstrip()
    if not kept:
        return encode_pair(encoder, rules, context, continuation)
    continuation = context[len(kept) :] + continuation
    if not continuation:
        raise DoesNotFit("The continuation is empty, so there is nothing to score.")
    targets = encoder.encode(continuation, False)
    if not targets:
        raise DoesNotFit(
            "The continuation has no tokens in this model's vocabulary, so there is nothing to score."
        )
    return encode_source(encoder, rules, kept), targets


def truncate_sides(context: list[int], continuation: list[int], max_length: int) -> Pair:
    """Drop tokens at the context's left until the encoder takes it. Raises DoesNotFit for a continuation that is too long."""
    if len(continuation) > max_length:
        raise DoesNotFit(
            f"The continuation has {len(continuation)} tokens and the model's decoder holds {max_length}, so it cannot be "
            f"scored in one piece."
        )
    return context[-max_length:], continuation


class SidesScorer:
    """A `PairScorer`: the encoder runs once for every different context in a batch, the decoder once per continuation."""

    def __init__(self, loaded: Loaded, batcher: Batcher[list[tuple[int, Scored]]]) -> None:
        self._loaded = loaded
        self._batcher = batcher
        # The decoder's logits are all read, so they exist all at once: a gibibyte of them in float32 at the most.
        config = loaded.model.config
        self._batcher.tokens = min(batcher.tokens, max(256, (1 << 28) // int(config.vocab_size)))

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
        """See PairScorer."""
        # Siblings that differ in their last token only are one row.
        rows: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, list[int]]]] = {}
        for index, (context, continuation) in enumerate(pairs):
            rows.setdefault((tuple(context), tuple(continuation[:-1])), []).append((index, continuation))
        keys, members = list(rows), list(rows.values())
        costs = [len(source) + len(written) + 1 for source, written in keys]
        for row, outcome in self._batcher.run(
            costs, lambda batch: self._run([keys[i] for i in batch], [members[i] for i in batch])
        ):
            if isinstance(outcome, Failure):
                yield from ((index, outcome) for index, _ in members[row])
            else:
                yield from ((index, checked(scored)) for index, scored in outcome)

    def _run(
        self,
        keys: list[tuple[tuple[int, ...], tuple[int, ...]]],
        members: list[list[tuple[int, list[int]]]],
    ) -> list[list[tuple[int, Scored]]]:
        sources = {source: place for place, source in enumerate(dict.fromkeys(source for source, _ in keys))}
        start = self._loaded.start_tokens[0]
        written, seen = pad_right([[start, *own] for _, own in keys], self._loaded.device)
        width = written.shape[1]
        reads = [
            (row * width + place, token)
            for row, own in enumerate(members)
            for _, targets in own
            for place, token in enumerate(targets)
        ]
        with torch.inference_mode(), quiet():
            hidden, mask = encode(self._loaded, list(sources))
            chosen = torch.tensor([sources[source] for source, _ in keys], device=hidden.device)
            logits = self._loaded.model(
                encoder_outputs=(hidden[chosen],),
                attention_mask=mask[chosen.to(mask.device)],
                decoder_input_ids=written,
                decoder_attention_mask=seen,
                use_cache=False,
            ).logits.flatten(0, 1)
            # Every position is read once, so its logits may be overwritten.
            values, greedy = read_log_likelihoods(
                lambda first, last: [(0, logits[first:last])], len(logits), reads
            )
        out: list[list[tuple[int, Scored]]] = []
        end = 0
        for own in members:
            out.append([])
            for index, targets in own:
                part = slice(end, end + len(targets))
                end = part.stop
                out[-1].append((index, Scored(math.fsum(values[part]), all(greedy[part]), len(targets))))
        return out


class SidesGenerator:
    """Writes answers: the encoder reads every prompt once, the decoder writes a batch token by token."""

    def __init__(self, loaded: Loaded, batcher: Batcher[Response | Failure]) -> None:
        self._loaded = loaded
        self._batcher = batcher
        self._pieces = Pieces(loaded.encoder)

    def generate(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into jobs, answer)` once for every job, as their batches finish."""
        costs = [len(job.tokens) + job.room for job in jobs]
        yield from self._batcher.run(costs, lambda batch: self._run([jobs[i] for i in batch]))

    def _run(self, jobs: list[Job]) -> list[Response | Failure]:
        writers = [Writer(self._loaded, job, self._pieces) for job in jobs]
        with torch.inference_mode(), quiet():
            return self._write(jobs, writers)

    def _write(self, jobs: list[Job], writers: list[Writer]) -> list[Response | Failure]:
        loaded = self._loaded
        requests, streams = [job.request for job in jobs], [writer.stream for writer in writers]
        hidden, mask = encode(loaded, [tuple(job.tokens) for job in jobs])
        given = torch.tensor([loaded.start_tokens] * len(jobs), device=loaded.device)
        cache = None
        answers: list[Response | Failure | None] = [None] * len(jobs)
        while None in answers:
            out = loaded.model(
                encoder_outputs=(hidden,),
                attention_mask=mask,
                decoder_input_ids=given,
                past_key_values=cache,
                use_cache=True,
            )
            cache = out.past_key_values
            tokens = choose(out.logits[:, -1].float(), requests, streams)
            for row, token in enumerate(tokens):
                if answers[row] is None:
                    answers[row] = not_a_number() if token is None else writers[row].add(token)
            given = torch.tensor([[token or 0] for token in tokens], device=loaded.device)
        return [answer for answer in answers if answer is not None]


def encode(loaded: Loaded, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """The encoder's last hidden states (sources, longest source, width), and the mask of what is not padding."""
    ids, mask = pad_right(sources, loaded.device)
    hidden = loaded.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    return hidden, mask
