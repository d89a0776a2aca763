"""A loaded transformers model at work: chooses its scorer and its generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from evalwright.core.errors import Failure, ModelError, RequestError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.local.answering import Answering, Job, PairScore
from evalwright.models.local.hf.batching import (
    BatchRunner,
    failure_of,
    generation_budget,
    packed_budget,
    scoring_budget,
    stored_budget,
    text_config,
)
from evalwright.models.local.hf.decoding import GenerationLoop, families
from evalwright.models.local.hf.generation import write, write_beams
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.model_checks import ModelChecks
from evalwright.models.local.hf.options import HfOptions
from evalwright.models.local.hf.packed_products import PackedProducts
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import LogitReader, PlainScorer, SidesReader
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.hf.tree_scoring import TreeScorer, tokens_of_pass
from evalwright.models.local.tokens import Pair, room_for_answer

_UNLIMITED = 1 << 62
"""Tokens of a batch that no budget limits."""


class TransformersAnswering(Answering):
    """Answers requests with a loaded transformers model; see `Answering`.

    Args:
        loaded: the model.
        options: how it is used.
        name: what it is called in messages.
        checks: what earlier processes noted of this model.
        packs: whether its weights may stand in memory a second time, packed.
    """

    def __init__(
        self,
        loaded: Loaded,
        options: HfOptions,
        name: str,
        checks: ModelChecks | None = None,
        *,
        packs: bool = True,
    ) -> None:
        super().__init__(
            loaded.reader,
            own_sampling=loaded.own_sampling,
            start_tokens=loaded.start_tokens,
            max_tokens=options.max_tokens,
            prepare=loaded.encoder.prepare,
        )
        self.loaded = loaded
        model = loaded.model
        device = loaded.device
        rows = options.batch_size
        # Of an encoder and a decoder, all logits are read.
        self._reader = (
            None if loaded.start_tokens else LogitReader(model, device, checks)
        )
        self._checks = checks
        self._name = name
        self._reported_reasons = set[str]()
        self._products = PackedProducts(
            model, device, packed_budget(device, options.memory) if packs else 0
        )
        # A user who sets a batch size has measured it, so no budget of ours limits it.
        writing = (
            _UNLIMITED if rows else generation_budget(model, device, options.memory)
        )
        self._batcher: BatchRunner[Response | Failure] = BatchRunner(rows, writing)
        self.scorer: PlainScorer | TreeScorer = self._make_scorer(options)

    def _make_scorer(self, options: HfOptions) -> PlainScorer | TreeScorer:
        """Make what computes log-likelihoods: a prefix tree if the model and `options` allow it.

        Raises:
            ModelError: the user wants a tree, and the model does not allow it.
        """
        plain = self._make_plain_scorer(options)
        reader = self._reader
        refusal = None
        if reader is None:
            refusal = "it has an encoder and a decoder"
        elif self.loaded.spread:
            refusal = "its parts are on several devices"
        elif options.scoring != "plain":
            return self._make_tree_scorer(options, reader, plain)
        if refusal is not None:
            if options.scoring == "tree":
                raise ModelError(
                    f"The model {self._name} cannot be scored by a prefix tree: {refusal}."
                )
            logger.info(
                "%s: log-likelihoods are computed without a prefix tree, because %s.",
                self._name,
                refusal,
            )
        return plain

    def _make_plain_scorer(self, options: HfOptions) -> PlainScorer:
        """Make what computes the log-likelihoods of one input at a time."""
        loaded = self.loaded
        model = loaded.model
        device = loaded.device
        rows = options.batch_size
        most = _UNLIMITED if rows is not None else self._scoring_budget(options)
        if self._reader is None:
            # The logits that are read exist at the same time: at most one gibibyte of them in
            # float32.
            most = min(most, max(256, (1 << 28) // int(text_config(model).vocab_size)))
        batcher: BatchRunner[list[tuple[int, PairScore]]] = BatchRunner(rows, most)
        return PlainScorer(
            self._reader or SidesReader(model, device),
            batcher,
            device,
            loaded.start_tokens[:1],
        )

    def _make_tree_scorer(
        self, options: HfOptions, reader: LogitReader, plain: PlainScorer
    ) -> TreeScorer:
        device = self.loaded.device
        return TreeScorer(
            TreeForward(self.loaded.model, reader, device, self._checks),
            reader,
            plain,
            tokens=min(self._scoring_budget(options), tokens_of_pass(device)),
            rows=options.batch_size,
            stored=stored_budget(device, options.memory),
            name=self._name,
            insist=options.scoring == "tree",
            products=self._products,
            checks=self._checks,
        )

    def _scoring_budget(self, options: HfOptions) -> int:
        return scoring_budget(self.loaded.model, self.loaded.device, options.memory)

    @cached_property
    def decoder(self) -> GenerationLoop | None:
        """The loop that generates answers, made when it is first needed."""
        if self._reader is None:
            return None
        return GenerationLoop(self.loaded, self._reader, self._products, self._checks)

    def image_job(self, request: Generate) -> Job:
        """Make the job of a prompt with images, whose tokens are made when it is generated."""
        if self.loaded.vision is None:
            return super().image_job(request)
        limit = self.max_tokens if request.max_tokens is None else request.max_tokens
        return Job([], limit, request)

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        return self.scorer.score(pairs)

    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Generate answers; see `Answering`. Prompts that begin alike share our own loop.

        What that cannot serve is generated by transformers' loop.
        """
        decoder = self.decoder
        loop_jobs = list[int]()
        apart = [index for index, job in enumerate(jobs) if _needs_own_batch(job)]
        for index in apart:
            yield index, self._answer_singly(jobs[index])
        alone = set(apart)
        if decoder is not None:
            loop_jobs = [
                index
                for index, job in enumerate(jobs)
                if index not in alone
                and decoder.refusal is None
                and decoder.is_short(job)
            ]
            if loop_jobs and not decoder.ready(jobs[loop_jobs[0]].tokens):
                loop_jobs = []
            for family in families([jobs[index].tokens for index in loop_jobs]):
                yield from self._together(
                    decoder, jobs, family.shared, [loop_jobs[i] for i in family.members]
                )
        assigned = {*loop_jobs, *apart}
        remaining = [index for index in range(len(jobs)) if index not in assigned]
        if remaining:
            if decoder is not None:
                self._report_fallback(decoder, [jobs[index] for index in remaining])
            costs = [len(jobs[index].tokens) + jobs[index].room for index in remaining]
            for position, answer in self._batcher.run(
                costs,
                lambda batch: write(self.loaded, [jobs[remaining[i]] for i in batch]),
            ):
                yield remaining[position], answer

    def _answer_singly(self, job: Job) -> Response | Failure:
        """Answer one prompt alone: with images, by beam search, or with arguments of generate().

        Padding would count as repeated tokens there.
        """
        try:
            inputs: dict[str, Any] = {}
            if not job.tokens:
                assert self.loaded.vision is not None
                inputs = self.loaded.vision.inputs(job.request)
                tokens = inputs["input_ids"][0].tolist()
                room = room_for_answer(
                    len(tokens), job.room, self.loaded.reader.rules.max_length
                )
                job = replace(job, tokens=tokens, room=room)
            if job.request.num_beams > 1:
                return write_beams(self.loaded, job, inputs)
            return write(self.loaded, [job], inputs)[0]
        except RequestError as error:
            return error.as_failure()
        except Exception as error:
            return failure_of(error)

    def _together(
        self,
        decoder: GenerationLoop,
        jobs: Sequence[Job],
        shared: int,
        members: Sequence[int],
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate answers to prompts that begin with the same `shared` tokens."""
        inside = shared if decoder.forward.cascading else 0
        family_jobs = {index: jobs[index] for index in members}
        costs = {
            index: len(job.tokens) - inside + job.room
            for index, job in family_jobs.items()
        }
        # Equal prompts stand side by side, so that they go through the model together.
        order = sorted(members, key=lambda index: (-costs[index], jobs[index].tokens))
        yield from self._batcher.stream(
            costs,
            order,
            lambda queue, rows: decoder.write(family_jobs, shared, queue, rows),
            decoder.most_rows,
        )

    def _report_fallback(self, decoder: GenerationLoop, jobs: Sequence[Job]) -> None:
        """Log once why transformers' own loop generates these answers."""
        reason = decoder.refusal
        if reason is None:
            reason = "some texts are longer than the attention window of some layers"
            if all(map(decoder.is_short, jobs)):
                reason = "memory ran out with this package's loop"
        if reason not in self._reported_reasons:
            self._reported_reasons.add(reason)
            logger.warning(
                "%s: answers are generated by transformers' own loop: %s.",
                self._name,
                reason,
            )

    def describe_scoring(self) -> dict[str, Any]:
        """Describe how log-likelihoods are computed, and how much that saved."""
        if isinstance(self.scorer, TreeScorer):
            return self.scorer.describe()
        return {"path": "encoder-decoder" if self.start_tokens else "plain"}

    def describe_products(self) -> dict[str, Any]:
        """Describe the weights that stand in memory a second time; nothing if none do."""
        packed_bytes = self._products.packed_bytes
        return {"packed_weight_bytes": packed_bytes} if packed_bytes else {}


def _needs_own_batch(job: Job) -> bool:
    """Return whether a job needs a batch of its own: beams, images, or arguments of generate()."""
    request = job.request
    return (
        request.num_beams > 1
        or request.generation_arguments is not None
        or not job.tokens
    )
