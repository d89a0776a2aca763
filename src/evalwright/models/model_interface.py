"""What a model is to the engine: abilities, a fingerprint, and one method.

A remote model has `async def answer(request) -> Response` and raises `RequestError` subclasses; the
engine paces, retries and times it. A local model has `def answer_batch(requests)`, which yields
`(index, response or failure)` as they finish; it runs in a worker thread, to which the engine
passes all waiting requests.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from evalwright.core.errors import Failure, ModelError
from evalwright.core.fingerprints import UNKNOWN_PREFIX, is_unknown_fingerprint
from evalwright.core.requests import (
    OPTIONS,
    Ability,
    Generate,
    Request,
    RollingLogLikelihood,
    has_tool_turns,
    images_of,
)
from evalwright.core.responses import Response, TokenLogProb
from evalwright.models.remote.prices import Price
from evalwright.models.replicas import Replica
from evalwright.models.reply_names import NameRule

if TYPE_CHECKING:
    from evalwright.models.local.tokens import Reader

IMAGES = "images"
TOOLS = "tools"
TOOL_OPTIONS = frozenset((TOOLS, "tool_choice", "parallel_tool_calls"))
"""What a model that can call tools carries."""
EVERY_OPTION = frozenset((*OPTIONS, IMAGES))
"""Everything that `Model.carries` may contain.

These are options of a `Generate` that not every model supports, and images in prompts.
"""


class Model(ABC):
    """What answers requests. Derive from RemoteModel or LocalModel, and set these in `__init__`.

    Nothing heavy is loaded in `__init__`.

    Attributes:
        name: as the user wrote it ("hf/gpt2@main").
        abilities: the kinds of request that it answers, such as {"generate", "chat"}.
        fingerprint: equal for equal models, and different for any two that could answer
            differently. Models without one share no responses with other runs.
        price: what its tokens cost; None where that is not known.
        carries: options beyond the usual ones that its requests may use, such as "top_k" or
            "images". Requests that use others are refused before anything is sent.
        replicas: the endpoints or processes that it is spread over.
        remark: a sentence that the user should see before the first request; "" for none.
        echoes: whether it can return the tokens of a text that it scores, each with its
            log-probability.
    """

    name: str
    abilities: frozenset[Ability]
    fingerprint: str
    price: Price | None = None
    carries: frozenset[str] = frozenset()
    replicas: Sequence[Replica] = ()
    remark: str = ""
    echoes: bool = False
    naming: str = "-M fingerprint=NAME"
    """How the user can name a model whose identity cannot be known."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        model = super().__new__(cls)
        if not hasattr(cls, "fingerprint"):
            model.fingerprint = unknown_fingerprint()
        return model

    @property
    def is_known(self) -> bool:
        """Whether the model's identity is known, so that answers are shared with other runs."""
        return not is_unknown_fingerprint(self.fingerprint)

    def describe(self) -> dict[str, Any]:
        """Describe the model for the run record: plain JSON, never a secret."""
        return {
            "name": self.name,
            "abilities": sorted(self.abilities),
            "fingerprint": self.fingerprint,
        }

    def check(self) -> None:
        """Raise a `UsageError` if the model cannot be used (no API key, no such folder).

        Nothing that costs money is sent.
        """

    def try_out(self) -> dict[str, Any]:
        """Return what a short trial shows of how the model would answer, for `models check`.

        The result is plain JSON. Nothing is sent or downloaded.
        """
        return {}

    def refuses(self, request: Request) -> str | None:
        """Return why the request cannot be sent as it is, in a sentence; None if it can."""
        images = images_of(request)
        if images and not all(image.data for image in images):
            return (
                "An image of a recorded prompt cannot be sent again: the record holds"
                " its hash, not its bytes."
            )
        if (
            isinstance(request, RollingLogLikelihood)
            and request.top_logprobs is not None
            and not self.echoes
        ):
            return f"'{self.name}' does not return the tokens of a text that it scores."
        turns: Any = getattr(request, "prompt", ())
        if images and any(turn.images for turn in turns if turn.role != "user"):
            return (
                "Images can only be in the user's turns: move them out of the other"
                " turns."
            )
        used = list(request.options()) if isinstance(request, Generate) else []
        if has_tool_turns(turns):
            used.append(TOOLS)
        if images:
            used.append(IMAGES)
        if images and not isinstance(request, Generate):
            return (
                f"'{self.name}' takes images only in prompts to generate an answer"
                " from."
            )
        missing = [name for name in used if name not in self.carries]
        return self.cannot_carry(missing[0]) if missing else None

    def cannot_carry(self, option: str) -> str:
        """Return the sentence about an option that the model does not support."""
        problem = (
            "does not take images" if option == IMAGES else f"does not take {option}"
        )
        options = ", ".join(sorted(self.carries)) or "none of the further options"
        return (
            f"'{self.name}' {problem} (it takes: {options}). Leave it out, or use another"
            " model."
        )

    def reader(self) -> Reader | None:
        """Return how the model reads prompts, if that is known; its weights need not be loaded."""
        return None


@dataclass(frozen=True, slots=True)
class Pacing:
    """How requests to a remote model are paced. Times are in seconds.

    Args:
        max_concurrency: most requests in flight.
        start_concurrency: where the adaptive limit begins.
        timeout: limit for one attempt.
        deadline: limit for a request with all its attempts, from the first one.
        max_attempts: most times that a request is sent.
        careful: whether to send only a few requests before the first reply, which may announce
            small limits.
        requests_per_minute: most requests per minute, whatever replies announce; None leaves it to
            them.
    """

    max_concurrency: int = 512
    start_concurrency: int = 64
    timeout: float = 300.0
    deadline: float = 1800.0
    max_attempts: int = 10
    careful: bool = True
    requests_per_minute: float | None = None


class RemoteModel(Model):
    """A model behind a network. Write one method, `answer`; the engine paces, retries and stores.

    Attributes:
        pacing: how its requests are paced.
        names_cost: whether its replies say what they cost.
        dearest: the highest cost, in US dollars, that a reply named; for estimates.
        batched: whether it is billed at the price of batch requests.
        resumes: whether requests that were stopped go on at the provider, so that the next command
            gets the responses, and pays for them.
    """

    pacing: Pacing = Pacing()
    names_cost: bool = False
    dearest: float | None = None
    batched: bool = False
    resumes: bool = False

    def most_tokens(self, request: Request) -> int | None:
        """Return the most tokens that a request's answer may have; None if nothing limits them."""
        return request.max_tokens if isinstance(request, Generate) else 1

    def name_rule(self) -> NameRule:
        """Return the rule for model names in replies. By default they are only recorded."""
        return NameRule(
            str(self.describe().get("model") or self.name.partition("/")[2]), self.name
        )

    def listen(self, tell: Callable[[str], None]) -> None:
        """Store a callback that tells people what happens during a long wait."""

    @abstractmethod
    async def answer(self, request: Request) -> Response:
        """Send the request once; never retry, never sleep.

        Args:
            request: one of the kinds in `abilities`.

        Returns:
            The response, as it came.

        Raises:
            RequestError: says what failed, and whether sending it again may help.
        """

    async def close(self) -> None:
        """Release connections. Called once, when the engine closes."""


class Forwarding(RemoteModel):
    """A remote model that sends another model's requests in its own way."""

    def __init__(self, model: RemoteModel) -> None:
        self._model = model
        self.name = model.name
        self.abilities = model.abilities
        self.carries = model.carries
        self.echoes = model.echoes
        self.naming = model.naming
        self.fingerprint = model.fingerprint
        self.price = model.price
        self.names_cost = model.names_cost

    def describe(self) -> dict[str, Any]:
        """Describe the other model."""
        return self._model.describe()

    def check(self) -> None:
        """Check the other model."""
        self._model.check()

    def name_rule(self) -> NameRule:
        """Return the other model's rule."""
        return self._model.name_rule()

    def try_out(self) -> dict[str, Any]:
        """Try out the other model."""
        return self._model.try_out()

    def refuses(self, request: Request) -> str | None:
        """Ask the other model."""
        return self._model.refuses(request)

    def most_tokens(self, request: Request) -> int | None:
        """Ask the other model."""
        return self._model.most_tokens(request)


class LocalModel(Model):
    """A model in this process. Write one method, `answer_batch`.

    Attributes:
        heavy: whether it takes so much memory that only one such model should be loaded at a time.
    """

    heavy: bool = True

    def load(self) -> None:
        """Prepare to answer.

        Called in the worker thread before the first batch, and again after `unload`.
        """

    @abstractmethod
    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Answer requests, in any order, and yield each response as soon as it is there.

        Args:
            requests: all requests that are waiting, of the kinds in `abilities`.

        Returns:
            Pairs of an index into `requests` and its response or failure; each index once. An
            exception fails only the requests that were not yielded yet.
        """

    def unload(self) -> None:
        """Free the memory that `load` took."""


def answers_of(
    model: LocalModel, requests: Sequence[Request]
) -> Iterator[tuple[int, Response | Failure]]:
    """Yield the answers of `answer_batch`, exactly one for each request.

    A request fails if the model raises, leaves it out, or yields something other than an answer.
    """

    def failed(reason: str) -> Failure:
        return ModelError(f"The model {model.name} failed: {reason}").as_failure()

    left = set(range(len(requests)))
    error = "it ended its batch without a response to this request"
    try:
        for index, answer in model.answer_batch(requests):
            if index not in left:
                twice = isinstance(index, int) and 0 <= index < len(requests)
                error = f"it answered request {index!r} of " + (
                    "its batch twice" if twice else f"a batch of {len(requests)}"
                )
                break
            left.remove(index)
            is_answer = isinstance(answer, Response | Failure)
            yield (
                index,
                (
                    answer
                    if is_answer
                    else failed(
                        f"its response is a {type(answer).__name__}, not a Response"
                    )
                ),
            )
    except GeneratorExit:
        return
    except BaseException as raised:  # even SystemExit must end every wait
        error = f"{type(raised).__name__}: {raised}"
    for index in sorted(left):
        yield index, failed(error)


def stop_at(text: str, stops: Sequence[str]) -> str:
    """Cut a text at the first stop string; empty stop strings are ignored."""
    ends = [position for stop in stops if stop and (position := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def stop_in(text: str, stops: Sequence[str]) -> str:
    """Return the stop string that begins first in a text; "" if there is none."""
    positions = [
        (position, stop)
        for stop in stops
        if stop and (position := text.find(stop)) >= 0
    ]
    return min(positions, key=lambda pair: pair[0])[1] if positions else ""


def stopped_response(text: str, stops: Sequence[str]) -> Response:
    """Make the response of a model that does not end at stop strings by itself.

    Args:
        text: what it wrote.
        stops: the request's stop strings.

    Returns:
        A response with the text up to the first stop string.
    """
    return Response(
        stop_at(text, stops),
        finish_reason="stop",
        stopped_at=stop_in(text, stops) if stops else None,
    )


def answers_tokens(
    tokens: Sequence[TokenLogProb], text: str
) -> tuple[TokenLogProb, ...]:
    """Return the tokens of the answer's text only.

    Some servers also report the tokens of the reasoning before it and of its end.
    """
    joined = "".join(token.text for token in tokens)
    start = joined.rfind(text) if text else -1
    if start < 0:
        return tuple(tokens)
    inside = []
    position = 0
    for token in tokens:
        end = position + len(token.text)
        if (end > start and position < start + len(text)) or (
            not token.text and start <= position < start + len(text)
        ):
            inside.append(token)
        position = end
    return tuple(inside)


def unknown_fingerprint() -> str:
    """Make a fingerprint equal to no other, for a model whose identity cannot be known."""
    return f"{UNKNOWN_PREFIX}{uuid.uuid4().hex}"


def fingerprint_of(parts: Mapping[str, Any]) -> str:
    """Hash what identifies a model or a run to a short stable fingerprint.

    Args:
        parts: everything that can change an answer, as JSON-like values.

    Returns:
        32 hexadecimal digits; equal for equal parts, whatever their order.
    """
    text = json.dumps(
        parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
