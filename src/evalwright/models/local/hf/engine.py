"""A loaded model at work: requests into tokens, tokens through scorer or generator, results into responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.core.errors import Failure, ModelError, RequestError
from evalwright.core.requests import Generate, LogLikelihood, Request, RollingLogLikelihood
from evalwright.core.responses import Response, Usage
from evalwright.models.local.hf.batching import Batcher, generation_budget, scoring_budget, stored_budget
from evalwright.models.local.hf.generation import Generator
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.options import Options
from evalwright.models.local.hf.prompts import ChatRenderer
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.reading import LogitReader
from evalwright.models.local.hf.scoring import PairScorer, PlainScorer, Scored
from evalwright.models.local.hf.seq2seq import (
    SidesGenerator,
    SidesScorer,
    encode_sides,
    encode_source,
    truncate_sides,
)
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.hf.tree_scoring import Budget, TreeScorer
from evalwright.models.local.hf.writing import Job
from evalwright.models.local.tokens import (
    TRUNCATED,
    DoesNotFit,
    Pair,
    TokenRules,
    encode_pair,
    encode_text,
    rolling_pairs,
    room_for_answer,
    truncate_pair,
)

Answered = Iterator[tuple[int, Response | Failure]]

_PREPARED = 512
"""Requests whose texts are turned into tokens together."""


class Engine:
    """A loaded model with what turns requests into tokens and results into responses."""

    def __init__(self, loaded: Loaded, options: Options, name: str) -> None:
        model, device = loaded.model, loaded.device
        # Who names a batch size has measured it, so no budget of ours stands in its way.
        budgets = (
            (scoring_budget(model, device, options.memory), generation_budget(model, device, options.memory))
            if options.batch_size is None
            else (1 << 62, 1 << 62)
        )
        self.loaded = loaded
        self.renderer: ChatRenderer = ChatRenderer(
            loaded.encoder.tokenizer, options.chat_template, options.template_arguments
        )
        self.two_sided = bool(loaded.start_tokens)
        self.scorer: PairScorer
        self.generator: Generator | SidesGenerator
        if self.two_sided:
            _refuse_tree(options, name, "it has an encoder and a decoder")
            self.scorer = SidesScorer(loaded, Batcher(options.batch_size, budgets[0]))
            self.generator = SidesGenerator(loaded, Batcher(options.batch_size, budgets[1]))
        else:
            reader = LogitReader(model, device)
            self.scorer = PlainScorer(reader, Batcher(options.batch_size, budgets[0]), device)
            if loaded.spread:
                _refuse_tree(options, name, "its parts lie on several devices")
            elif options.scoring != "plain":
                self.scorer = _tree_scorer(loaded, options, name, reader, self.scorer)
            self.generator = Generator(loaded, Batcher(options.batch_size, budgets[1]), reader, name)
        self._max_tokens = options.max_tokens

    def describe_scoring(self) -> dict[str, Any]:
        """Which way log-likelihoods are computed, and how much that saved."""
        if isinstance(self.scorer, TreeScorer):
            return self.scorer.describe()
        return {"path": "encoder-decoder" if self.two_sided else "plain"}

    def answer(self, requests: Sequence[Request]) -> Answered:
        scored: list[tuple[int, list[Pair], bool]] = []
        jobs: list[tuple[int, Job]] = []
        for index, request in enumerate(requests):
            if index % _PREPARED == 0:
                self.loaded.encoder.prepare(self._texts(requests[index : index + _PREPARED]))
            try:
                if isinstance(request, LogLikelihood):
                    pair, cut = self._pair(request)
                    scored.append((index, [pair], cut))
                elif isinstance(request, RollingLogLikelihood):
                    pairs = rolling_pairs(self.loaded.encoder, self.loaded.rules, request.text)
                    scored.append((index, pairs, False))
                elif isinstance(request, Generate):
                    jobs.append((index, self._job(request)))
                else:
                    yield index, _cannot(request)
            except RequestError as error:
                yield index, error.as_failure()
            except Exception as error:  # a tokenizer can raise anything, for half a surrogate pair, say
                reason = f"{type(error).__name__}: {error}"
                yield index, ModelError(f"The request cannot be turned into tokens ({reason}).").as_failure()
        self.loaded.encoder.prepare(())
        yield from self._likelihoods(scored)
        if jobs:
            for place, response in self.generator.generate([job for _, job in jobs]):
                yield jobs[place][0], response

    def _likelihoods(self, scored: Sequence[tuple[int, list[Pair], bool]]) -> Answered:
        """A request is answered when the last of its windows is."""
        pairs = [pair for _, own, _ in scored for pair in own]
        owners = [place for place, (_, own, _) in enumerate(scored) for _ in own]
        parts: list[dict[int, Scored]] = [{} for _ in scored]
        failed: set[int] = set()
        for index, own, _ in scored:
            if not own:
                yield index, Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
        for pair, outcome in self.scorer.score(pairs) if pairs else ():
            place = owners[pair]
            index, own, cut = scored[place]
            if place in failed:
                continue
            if isinstance(outcome, Failure):
                failed.add(place)
                yield index, outcome
                continue
            parts[place][pair] = outcome
            if len(parts[place]) == len(own):
                yield index, _summed([parts[place].pop(i) for i in sorted(parts[place])], own, cut)

    def _pair(self, request: LogLikelihood) -> tuple[Pair, bool]:
        text, rules = self._rendered(request.context)
        split, shorten = (encode_sides, truncate_sides) if self.two_sided else (encode_pair, truncate_pair)
        context, continuation = split(self.loaded.encoder, rules, text, request.continuation)
        kept = shorten(context, continuation, rules.max_length)
        return kept, len(kept[0]) < len(context)

    def _texts(self, requests: Sequence[Request]) -> Iterator[tuple[str, bool]]:
        """What will be encoded for plain texts; it costs time only where this is wrong."""
        special = self.loaded.rules.add_special_tokens
        for request in requests:
            if isinstance(request, RollingLogLikelihood):
                yield request.text, False
            elif isinstance(request, LogLikelihood) and isinstance(request.context, str):
                whole = request.context + request.continuation
                kept = request.context.rstrip()
                if self.two_sided:
                    yield whole[len(kept) :], False
                else:
                    yield whole, bool(kept) and special
                if kept:
                    yield kept, special

    def _job(self, request: Generate) -> Job:
        text, rules = self._rendered(request.prompt)
        encode = encode_source if self.two_sided else encode_text
        tokens = encode(self.loaded.encoder, rules, text)
        if not tokens and rules.prefix_token is not None:
            tokens = [rules.prefix_token]
        limit = self._max_tokens if request.max_tokens is None else request.max_tokens
        if not self.two_sided:
            return Job(tokens, room_for_answer(len(tokens), limit, rules.max_length), request)
        if len(tokens) > rules.max_length:
            raise DoesNotFit(
                f"The prompt has {len(tokens)} tokens and the model's encoder holds {rules.max_length}. Use fewer shots or a "
                f"model with a longer context."
            )
        # The decoder's own window holds the answer and what it starts from, and its last token is never read again.
        given = len(self.loaded.start_tokens) - 1
        return Job(tokens, room_for_answer(given, limit, rules.max_length), request)

    def _rendered(self, prompt: Any) -> tuple[str, TokenRules]:
        text, complete = self.renderer.render(prompt)
        rules = self.loaded.rules
        return text, rules.without_special_tokens() if complete else rules


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


def _summed(parts: Sequence[Scored], pairs: Sequence[Pair], cut: bool) -> Response:
    return Response(
        log_likelihood=sum(part.log_likelihood for part in parts),
        is_greedy=all(part.is_greedy for part in parts),
        tokens_scored=sum(part.tokens for part in parts),
        finish_reason=TRUNCATED if cut else "",
        usage=Usage(input_tokens=sum(len(context) + len(continuation) for context, continuation in pairs)),
    )


def _cannot(request: Request) -> Failure:
    return Failure(
        "request rejected", "model", f"A language model of transformers cannot answer '{request.ability}'."
    )
