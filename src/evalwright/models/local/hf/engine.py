"""A loaded model of transformers at work: which scorer and which generator serve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.core.errors import Failure, ModelError
from evalwright.core.responses import Response
from evalwright.models.local.answering import Answering, Job, Scored
from evalwright.models.local.hf.batching import (
    Batcher,
    generation_budget,
    scoring_budget,
    stored_budget,
    text_config,
)
from evalwright.models.local.hf.generation import Generator
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.options import Options
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.scoring import PairScorer, PlainScorer
from evalwright.models.local.hf.seq2seq import SidesReader
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.hf.tree_scoring import Budget, TreeScorer
from evalwright.models.local.tokens import Pair


class Engine(Answering):
    """See `Answering`."""

    def __init__(self, loaded: Loaded, options: Options, name: str) -> None:
        super().__init__(
            loaded.reader,
            start_tokens=loaded.start_tokens,
            max_tokens=options.max_tokens,
            prepare=loaded.encoder.prepare,
        )
        model, device = loaded.model, loaded.device
        # Who names a batch size has measured it, so no budget of ours stands in its way.
        scoring, writing = (
            (scoring_budget(model, device, options.memory), generation_budget(model, device, options.memory))
            if options.batch_size is None
            else (1 << 62, 1 << 62)
        )
        self.loaded = loaded
        reader: LogitReader | None = None
        if loaded.start_tokens:
            # The decoder's logits are all read, so they exist all at once: a gibibyte of them in float32 at the most.
            scoring = min(scoring, max(256, (1 << 28) // int(text_config(model).vocab_size)))
        else:
            reader = LogitReader(model, device)
        batcher: Batcher[list[tuple[int, Scored]]] = Batcher(options.batch_size, scoring)
        self.scorer: PairScorer = PlainScorer(
            reader or SidesReader(loaded), batcher, device, loaded.start_tokens[:1]
        )
        if reader is None:
            _refuse_tree(options, name, "it has an encoder and a decoder")
        elif loaded.spread:
            _refuse_tree(options, name, "its parts are on several devices")
        elif options.scoring != "plain":
            self.scorer = _tree_scorer(loaded, options, name, reader, self.scorer)
        self.generator = Generator(loaded, Batcher(options.batch_size, writing), reader, name)

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored | Failure]]:
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


def _tree_scorer(
    loaded: Loaded, options: Options, name: str, reader: LogitReader, plain: PairScorer
) -> PairScorer:
    tokens = scoring_budget(loaded.model, loaded.device, options.memory)
    budget = Budget(
        tokens if loaded.device.startswith("cuda") else min(tokens, 2048),
        options.batch_size,
        stored_budget(loaded.device, options.memory),
    )
    return TreeScorer(
        TreeForward(loaded.model, reader, loaded.device),
        reader,
        plain,
        budget,
        name=name,
        number_bytes=loaded.model.dtype.itemsize,
        insist=options.scoring == "tree",
        verify=options.verify,
    )


def _refuse_tree(options: Options, name: str, reason: str) -> None:
    """Raise where the tree was insisted on; else say that it is not taken."""
    if options.scoring == "tree":
        raise ModelError(f"The model {name} cannot be scored by a prefix tree: {reason}.")
    logger.info("%s: log-likelihoods are computed without a prefix tree, because %s.", name, reason)
