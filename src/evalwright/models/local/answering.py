"""The path of a request through a local backend: text to tokens, scoring, generation, response."""

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

_PREPARED_REQUESTS = 512
"""Number of requests whose texts are tokenised together."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """A continuation's score: the log-likelihood (natural logarithm) summed over its tokens.

    `is_greedy` says whether each token was the most probable one; `tokens` is their number.
    """

    log_likelihood: float
    is_greedy: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Job:
    """An answer to generate: the prompt's tokens, room for new ones, and the request."""

    tokens: list[int]
    room: int
    request: Generate


class Answering(ABC):
    """A loaded model.

    Args:
        reader: how it reads prompts.
        own_sampling: the model's generation_config.json, for requests that leave sampling to it.
        start_tokens: the first tokens of a decoder with an encoder, else none.
        max_tokens: the limit of requests without one.
        prepare: called with the texts, `(text, add_special_tokens)`, that are encoded next, so that
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
        self._reported_cut = False

    @abstractmethod
    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        """Yield `(index into pairs, result)` once for every pair, in any order, as they finish."""

    @abstractmethod
    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into jobs, answer)` once for every job, as they finish."""

    def image_job(self, request: Generate) -> Job:
        """Make the job of a prompt with images.

        Raises:
            RequestError: the backend does not support images.
        """
        raise DoesNotFit("This model takes no images.")

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into requests, answer)`: likelihoods first, then generations."""
        scored: list[tuple[int, list[Pair], bool]] = []
        jobs: list[tuple[int, Job]] = []
        for index, request in enumerate(requests):
            if self._prepare is not None and index % _PREPARED_REQUESTS == 0:
                self._prepare(self._texts(requests[index : index + _PREPARED_REQUESTS]))
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
            except Exception as error:  # a tokenizer can raise any exception
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
            for job_index, response in self.write([job for _, job in jobs]):
                index, job = jobs[job_index]
                yield index, self._with_calls(response, job.request)

    def _with_calls(
        self, response: Response | Failure, request: Generate
    ) -> Response | Failure:
        """Read the calls in the text of a response to a request with tools."""
        if isinstance(response, Failure) or not may_call(request):
            return response
        tool_format = self.reader.tool_format()
        if tool_format is None:
            return response
        return tool_format.with_calls(response, request.tools)

    def _likelihoods(
        self, scored: Sequence[tuple[int, list[Pair], bool]]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Answer each request when the last of its windows is scored."""
        pairs = [pair for _, own_pairs, _ in scored for pair in own_pairs]
        owners = [
            request_index
            for request_index, (_, own_pairs, _) in enumerate(scored)
            for _ in own_pairs
        ]
        scores: list[dict[int, PairScore]] = [{} for _ in scored]
        failed: set[int] = set()
        for index, own_pairs, _ in scored:
            if not own_pairs:
                yield (
                    index,
                    Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0),
                )
        for pair, outcome in self.score(pairs) if pairs else ():
            request_index = owners[pair]
            index, own_pairs, cut = scored[request_index]
            if request_index in failed:
                continue
            if isinstance(outcome, Failure):
                failed.add(request_index)
                yield index, outcome
                continue
            scores[request_index][pair] = outcome
            if len(scores[request_index]) == len(own_pairs):
                # Windows finish in any order, but are summed in the order of the text, so that the
                # sum is always the same.
                yield (
                    index,
                    _sum_scores(
                        [
                            scores[request_index].pop(i)
                            for i in sorted(scores[request_index])
                        ],
                        own_pairs,
                        cut,
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
        shortened = shorten(context, continuation, rules.max_length)
        return shortened, len(shortened[0]) < len(context)

    def _texts(self, requests: Sequence[Request]) -> Iterator[tuple[str, bool]]:
        """Yield the texts that will be encoded for plain texts; a wrong guess only costs time."""
        special = self.reader.rules.add_special_tokens
        for request in requests:
            if isinstance(request, RollingLogLikelihood):
                yield request.text, False
            elif isinstance(request, LogLikelihood) and isinstance(
                request.context, str
            ):
                joined = request.context + request.continuation
                stripped = request.context.rstrip()
                if self.start_tokens:
                    yield joined[len(stripped) :], False
                else:
                    yield joined, bool(stripped) and special
                if stripped:
                    yield stripped, special

    def _job(self, request: Generate) -> Job:
        request = settle_sampling(request, self._own_sampling)
        if images_of(request):
            return self.image_job(request)
        text, rules = self.reader.render(request.prompt, request.tools)
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
        # The decoder's own window holds the answer and its start tokens, and the last token is
        # never read again.
        return Job(
            tokens,
            room_for_answer(len(self.start_tokens) - 1, limit, rules.max_length),
            request,
        )

    def _cut(self, prompt: list[int], max_tokens: int, rules: TokenRules) -> list[int]:
        shortened = with_room(prompt, max_tokens, rules)
        if len(shortened) < len(prompt) and not self._reported_cut:
            self._reported_cut = True
            log.warning(
                "A prompt of %d tokens keeps its last %d: the model's context has %d,"
                " and the answer needs %d. Further ones are not told.",
                len(prompt),
                len(shortened),
                rules.max_length,
                max_tokens,
            )
        return shortened


def may_call(request: Generate) -> bool:
    """Return whether a reply to this request may call tools, whose marks it then keeps."""
    return bool(request.tools) and request.tool_choice != "none"


def settle_sampling(request: Generate, defaults: Mapping[str, Any]) -> Generate:
    """Fill in the model's own sampling settings where the request leaves them open.

    Settings of the request take precedence. A generation config is read as in transformers: greedy
    unless `do_sample` is set, then by default temperature 1 and the 50 most probable tokens.
    """
    if request.temperature is not None:
        return request
    if not defaults.get("do_sample"):
        return replace(request, temperature=0.0)
    named = {
        name: defaults.get(name) for name in ("temperature", "top_p", "top_k", "min_p")
    }
    sampling = {
        "temperature": 1.0,
        "top_k": 50,
        **{name: value for name, value in named.items() if value is not None},
    }
    changed = {
        name: value
        for name, value in sampling.items()
        if getattr(request, name) is None
    }
    return replace(request, **changed)


def _sum_scores(
    scores: Sequence[PairScore], pairs: Sequence[Pair], cut: bool
) -> Response:
    return Response(
        log_likelihood=sum(score.log_likelihood for score in scores),
        is_greedy=all(score.is_greedy for score in scores),
        tokens_scored=sum(score.tokens for score in scores),
        finish_reason=TRUNCATED if cut else "",
        usage=Usage(
            input_tokens=sum(
                len(context) + len(continuation) for context, continuation in pairs
            )
        ),
    )
