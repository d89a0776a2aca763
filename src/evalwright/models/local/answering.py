"""Requests into tokens, tokens through a model's scorer and generator, results into responses: the
same for every backend.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.errors import Failure, ModelError, RequestError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Request,
    RollingLogLikelihood,
    images_of,
)
from evalwright.core.responses import Response, Usage
from evalwright.models.local.tokens import (
    DEFAULT_MAX_TOKENS,
    TRUNCATED,
    ContextExceeded,
    DoesNotFit,
    Pair,
    Reader,
    TokenRules,
    encode_pair,
    encode_sides,
    encode_source,
    encode_text,
    rolling_pairs,
    room_for_answer,
    truncate_pair,
    truncate_sides,
    with_room,
)

log = logging.getLogger("evalwright.models.local")

_PREPARED = 512
"""Requests whose texts are turned into tokens together."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """Natural log, summed over `tokens` tokens; is_greedy: each of them was the most probable."""

    log_likelihood: float
    is_greedy: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Job:
    """One answer to write: the prompt's tokens, how many new ones at the most, and the request with
    its sampling settled.
    """

    tokens: list[int]
    room: int
    request: Generate


class Answering(ABC):
    """A loaded model. reader: how it reads. start_tokens: what a decoder with an encoder starts
    from, else none.

    own_sampling: what the model's generation_config.json says, for requests that leave the sampling
    to it. prepare: hears which texts, `(text, add_special_tokens)`, will be encoded next, so that
    they can be encoded together.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        own_sampling: Mapping[str, Any] | None = None,
        start_tokens: Sequence[int] = (),
        max_tokens: int = DEFAULT_MAX_TOKENS,
        prepare: Callable[[Iterable[tuple[str, bool]]], None] | None = None,
    ) -> None:
        self.reader = reader
        self._prepare = prepare
        self._own_sampling = own_sampling or {}
        self.start_tokens = tuple(start_tokens)
        self.max_tokens = max_tokens
        self._told = False

    @abstractmethod
    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""

    @abstractmethod
    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into jobs, answer)` once for every job, as they finish."""

    def image_job(self, request: Generate) -> Job:
        """The job of a prompt with images.

        Raises RequestError; a backend that takes images has a way of its own.
        """
        raise DoesNotFit("This model takes no images.")

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into requests, answer)`: likelihoods first, then generations."""
        scored: list[tuple[int, list[Pair], bool]] = []
        jobs: list[tuple[int, Job]] = []
        for index, request in enumerate(requests):
            if self._prepare is not None and index % _PREPARED == 0:
                self._prepare(self._texts(requests[index : index + _PREPARED]))
            try:
                if isinstance(request, LogLikelihood):
                    pair, cut = self._pair(request)
                    scored.append((index, [pair], cut))
                elif isinstance(request, RollingLogLikelihood):
                    pairs = rolling_pairs(
                        self.reader.encoder, self.reader.rules, request.text
                    )
                    scored.append((index, pairs, False))
                elif isinstance(request, Generate):
                    jobs.append((index, self._job(request)))
                else:
                    why = (
                        f"A local language model cannot answer '{request.ability}'"
                        " requests."
                    )
                    yield index, Failure("request rejected", "model", why)
            except RequestError as error:
                yield index, error.as_failure()
            except Exception as error:  # a tokenizer can raise anything, for half a surrogate pair, say
                reason = f"{type(error).__name__}: {error}"
                yield (
                    index,
                    ModelError(
                        f"The request cannot be tokenised ({reason})."
                    ).as_failure(),
                )
        if self._prepare is not None:
            self._prepare(())
        yield from self._likelihoods(scored)
        if jobs:
            for place, response in self.write([job for _, job in jobs]):
                yield jobs[place][0], response

    def _likelihoods(
        self, scored: Sequence[tuple[int, list[Pair], bool]]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """A request is answered when the last of its windows is."""
        pairs = [pair for _, own, _ in scored for pair in own]
        owners = [place for place, (_, own, _) in enumerate(scored) for _ in own]
        parts: list[dict[int, PairScore]] = [{} for _ in scored]
        failed: set[int] = set()
        for index, own, _ in scored:
            if not own:
                yield (
                    index,
                    Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0),
                )
        for pair, outcome in self.score(pairs) if pairs else ():
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
                # Windows finish in any order; their sum is taken in the text's, so that it is
                # always the same.
                yield (
                    index,
                    _summed(
                        [parts[place].pop(i) for i in sorted(parts[place])], own, cut
                    ),
                )

    def _pair(self, request: LogLikelihood) -> tuple[Pair, bool]:
        text, rules = self.reader.render(request.context)
        split, shorten = (
            (encode_sides, truncate_sides)
            if self.start_tokens
            else (encode_pair, truncate_pair)
        )
        context, continuation = split(
            self.reader.encoder, rules, text, request.continuation
        )
        kept = shorten(context, continuation, rules.max_length)
        return kept, len(kept[0]) < len(context)

    def _texts(self, requests: Sequence[Request]) -> Iterator[tuple[str, bool]]:
        """What will be encoded for plain texts; it costs time only where this is wrong."""
        special = self.reader.rules.add_special_tokens
        for request in requests:
            if isinstance(request, RollingLogLikelihood):
                yield request.text, False
            elif isinstance(request, LogLikelihood) and isinstance(
                request.context, str
            ):
                whole = request.context + request.continuation
                kept = request.context.rstrip()
                if self.start_tokens:
                    yield whole[len(kept) :], False
                else:
                    yield whole, bool(kept) and special
                if kept:
                    yield kept, special

    def _job(self, request: Generate) -> Job:
        request = settled(request, self._own_sampling)
        if images_of(request):
            return self.image_job(request)
        text, rules = self.reader.render(request.prompt)
        tokens = (encode_source if self.start_tokens else encode_text)(
            self.reader.encoder, rules, text
        )
        if not tokens:
            if rules.prefix_token is None:
                raise DoesNotFit(
                    "The prompt is empty, and the model has no BOS or EOS token to"
                    " start from."
                )
            tokens = [rules.prefix_token]
        limit = self.max_tokens if request.max_tokens is None else request.max_tokens
        if not self.start_tokens:
            tokens = self._cut(tokens, limit, rules)
            return Job(
                tokens, room_for_answer(len(tokens), limit, rules.max_length), request
            )
        tokens = self._cut(tokens, 0, rules)
        if len(tokens) > rules.max_length:
            raise ContextExceeded(
                f"The prompt has {len(tokens)} tokens and the model's encoder takes"
                f" {rules.max_length}. Use fewer shots or a model with a longer"
                " context."
            )
        # The decoder's own window holds the answer and what it starts from, and its last token is
        # never read again.
        return Job(
            tokens,
            room_for_answer(len(self.start_tokens) - 1, limit, rules.max_length),
            request,
        )

    def _cut(self, prompt: list[int], max_tokens: int, rules: TokenRules) -> list[int]:
        kept = with_room(prompt, max_tokens, rules)
        if len(kept) < len(prompt) and not self._told:
            self._told = True
            log.warning(
                "A prompt of %d tokens keeps its last %d: the model's context has %d,"
                " and the answer needs %d. Further ones are not told.",
                len(prompt),
                len(kept),
                rules.max_length,
                max_tokens,
            )
        return kept


def settled(request: Generate, own: Mapping[str, Any]) -> Generate:
    """The request with the model's own sampling where it leaves that open.

    What the request says itself wins.

    As transformers reads a generation config: greedy unless `do_sample` says otherwise, then
    temperature 1 and the 50 most probable tokens where it names no other.
    """
    if request.temperature is not None:
        return request
    if not own.get("do_sample"):
        return replace(request, temperature=0.0)
    named = {name: own.get(name) for name in ("temperature", "top_p", "top_k", "min_p")}
    found = {
        "temperature": 1.0,
        "top_k": 50,
        **{name: value for name, value in named.items() if value is not None},
    }
    changed = {
        name: value for name, value in found.items() if getattr(request, name) is None
    }
    return replace(request, **changed)


def _summed(parts: Sequence[PairScore], pairs: Sequence[Pair], cut: bool) -> Response:
    return Response(
        log_likelihood=sum(part.log_likelihood for part in parts),
        is_greedy=all(part.is_greedy for part in parts),
        tokens_scored=sum(part.tokens for part in parts),
        finish_reason=TRUNCATED if cut else "",
        usage=Usage(
            input_tokens=sum(
                len(context) + len(continuation) for context, continuation in pairs
            )
        ),
    )
