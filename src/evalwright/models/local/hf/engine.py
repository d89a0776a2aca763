"""A loaded model of transformers at work: which scorer and which generator serve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.local.answering import Answering, Job, PairScore
from evalwright.models.local.hf.batching import (
    BatchRunner,
    generation_budget,
    scoring_budget,
    stored_budget,
    text_config,
)
from evalwright.models.local.hf.generation import Generator
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.options import HfOptions
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import LogitReader, SidesReader
from evalwright.models.local.hf.scoring import PlainScorer
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.hf.tree_scoring import TreeScorer
from evalwright.models.local.tokens import Pair


class TransformersAnswering(Answering):
    """See `Answering`."""

    def __init__(self, loaded: Loaded, options: HfOptions, name: str) -> None:
        super().__init__(
            loaded.reader,
            own_sampling=loaded.own_sampling,
            start_tokens=loaded.start_tokens,
            max_tokens=options.max_tokens,
            prepare=loaded.encoder.prepare,
        )
        self.loaded = loaded
        model, device, rows = loaded.model, loaded.device, options.batch_size
        scoring, writing = (
            budget(model, device, options.memory) for budget in (scoring_budget, generation_budget)
        )
        # Who names a batch size has measured it, so no budget of ours stands in its way.
        most = 1 << 62 if rows is not None else scoring
        reader: LogitReader | None = None
        if loaded.start_tokens:
            # The decoder's logits are all read, so they exist all at once: a gibibyte of them in float32 at the most.
            most = min(most, max(256, (1 << 28) // int(text_config(model).vocab_size)))
        else:
            reader = LogitReader(model, device)
        batcher: BatchRunner[list[tuple[int, PairScore]]] = BatchRunner(rows, most)
        plain = PlainScorer(reader or SidesReader(model, device), batcher, device, loaded.start_tokens[:1])
        self.scorer: PlainScorer | TreeScorer = plain
        refusal = None
        if reader is None:
            refusal = "it has an encoder and a decoder"
        elif loaded.spread:
            refusal = "its parts are on several devices"
        elif options.scoring != "plain":
            self.scorer = TreeScorer(
                TreeForward(model, reader, device),
                reader,
                plain,
                tokens=scoring if device.startswith("cuda") else min(scoring, 2048),
                rows=rows,
                stored=stored_budget(device, options.memory),
                name=name,
                insist=options.scoring == "tree",
            )
        if refusal is not None:
            if options.scoring == "tree":
                raise ModelError(f"The model {name} cannot be scored by a prefix tree: {refusal}.")
            logger.info("%s: log-likelihoods are computed without a prefix tree, because %s.", name, refusal)
        self.generator = Generator(
            loaded, BatchRunner(rows, 1 << 62 if rows is not None else writing), reader, name
        )

    def image_job(self, request: Generate) -> Job:
        """Its tokens are made when it is written, with the pixels, which are not kept that long."""
        if self.loaded.vision is None:
            return super().image_job(request)
        limit = self.max_tokens if request.max_tokens is None else request.max_tokens
        return Job([], limit, request)

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        """See Answering."""
        return self.scorer.score(pairs)

    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """See Answering."""
        return self.generator.generate(jobs)

    def describe_scoring(self) -> dict[str, Any]:
        """Which way log-likelihoods are computed, and how much that saved."""
        if isinstance(self.scorer, TreeScorer):
            return self.scorer.describe()
        return {"path": "encoder-decoder" if self.start_tokens else "plain"}
