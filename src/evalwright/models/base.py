"""What a model is to the engine: abilities, a fingerprint, and one method.

A remote model has `async def answer(request) -> Response` and raises `RequestError` subclasses; the
engine paces, retries and times it. A local model has `def answer_batch(requests)`, which yields
`(index, response or failure)` as they finish; it runs in a worker thread that the engine feeds with
all waiting requests.
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
from evalwright.core.requests import OPTIONS, Ability, Generate, Request, images_of
from evalwright.core.responses import Response, TokenLogProb
from evalwright.models.remote.prices import Price
from evalwright.models.replicas import Replica
from evalwright.models.reply_names import NameRule

if TYPE_CHECKING:
    from evalwright.models.local.tokens import Reader

_UNKNOWN = "unknown-"

IMAGES = "images"
EVERY_OPTION = frozenset((*OPTIONS, IMAGES))
"""What `Model.carries` may name: the options of a `Generate` that not every model can carry, and
images in prompts.
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
    """

    name: str
    abilities: frozenset[Ability]
    fingerprint: str
    price: Price | None = None
    carries: frozenset[str] = frozenset()
    replicas: Sequence[Replica] = ()
    naming: str = "-M fingerprint=NAME"
    """How a person names what answers, where that cannot be known."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        if not hasattr(cls, "fingerprint"):
            made.fingerprint = unknown_fingerprint()
        return made

    @property
    def is_known(self) -> bool:
        """Whether it is known what answers, so that answers are shared with other runs."""
        return not self.fingerprint.startswith(_UNKNOWN)

    def describe(self) -> dict[str, Any]:
        """What the run record says of this model: plain JSON, never a secret."""
        return {
            "name": self.name,
            "abilities": sorted(self.abilities),
            "fingerprint": self.fingerprint,
        }

    def check(self) -> None:
        """Raise a `UsageError` if the model cannot be used (no key, no such folder).

        Sends nothing that costs.
        """

    def try_out(self) -> dict[str, Any]:
        """What a short trial shows of how it would answer, for `models check`: plain JSON.

        Nothing is sent or downloaded.
        """
        return {}

    def refuses(self, request: Request) -> str | None:
        """Why the request cannot be sent as it is, in a sentence that names the option and the
        model; None where it can.
        """
        images = images_of(request)
        if not all(image.data for image in images):
            return (
                "An image of a recorded prompt cannot be sent again: the record holds"
                " its hash, not its bytes."
            )
        turns: Any = getattr(request, "prompt", ())
        if images and any(turn.images for turn in turns if turn.role != "user"):
            return (
                "Images can only be in the user's turns: move them out of the other"
                " turns."
            )
        used = [
            *(request.options() if isinstance(request, Generate) else ()),
            *([IMAGES] if images else ()),
        ]
        if images and not isinstance(request, Generate):
            return (
                f"'{self.name}' takes images only in prompts to generate an answer"
                " from."
            )
        missing = [name for name in used if name not in self.carries]
        return self.cannot_carry(missing[0]) if missing else None

    def cannot_carry(self, option: str) -> str:
        """The sentence about an option that it does not carry."""
        what = "does not take images" if option == IMAGES else f"does not take {option}"
        known = ", ".join(sorted(self.carries)) or "none of the further options"
        return (
            f"'{self.name}' {what} (it takes: {known}). Leave it out, or use another"
            " model."
        )

    def reader(self) -> Reader | None:
        """How it reads prompts, where that is known here; else None. Weights need not be loaded."""
        return None


@dataclass(frozen=True, slots=True)
class Pacing:
    """How requests to a remote model are paced. Times are in seconds.

    Args:
        max_concurrency: most requests in flight.
        start_concurrency: where the adaptive limit begins.
        timeout: for one attempt.
        deadline: for a request with all its attempts, from the first one.
        max_attempts: how often a request is sent at most.
        careful: send only a few requests before the first reply, which may announce small limits.
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
        """How many tokens may be written in answer to a request; None where nothing limits them."""
        return request.max_tokens if isinstance(request, Generate) else 1

    def name_rule(self) -> NameRule:
        """Which names its replies may give. A class that says nothing of it has them recorded."""
        return NameRule(
            str(self.describe().get("model") or self.name.partition("/")[2]), self.name
        )

    def listen(self, tell: Callable[[str], None]) -> None:
        """Take the engine's way of telling a person, in a sentence, what happens during a long
        wait.
        """

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
    """A remote model that is another one, but for the way that its requests go."""

    def __init__(self, model: RemoteModel) -> None:
        self._model = model
        self.name = model.name
        self.abilities = model.abilities
        self.carries = model.carries
        self.naming = model.naming
        self.fingerprint = model.fingerprint
        self.price = model.price
        self.names_cost = model.names_cost

    def describe(self) -> dict[str, Any]:
        """As the model."""
        return self._model.describe()

    def check(self) -> None:
        """As the model."""
        self._model.check()

    def name_rule(self) -> NameRule:
        """As the model."""
        return self._model.name_rule()

    def try_out(self) -> dict[str, Any]:
        """As the model."""
        return self._model.try_out()

    def refuses(self, request: Request) -> str | None:
        """As the model."""
        return self._model.refuses(request)

    def most_tokens(self, request: Request) -> int | None:
        """As the model."""
        return self._model.most_tokens(request)


class LocalModel(Model):
    """A model in this process. Write one method, `answer_batch`.

    Attributes:
        heavy: whether it takes so much memory that only one such model should be loaded at a time.
    """

    heavy: bool = True

    def load(self) -> None:
        """Get ready to answer.

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
    """As its `answer_batch`, and each request once: what it raises at, leaves out or answers with
    something else has failed.
    """

    def failed(what: str) -> Failure:
        return ModelError(f"The model {model.name} failed: {what}").as_failure()

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
            known = isinstance(answer, Response | Failure)
            yield (
                index,
                (
                    answer
                    if known
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
    """The text up to the first place where any stop string begins; empty stop strings stop nothing."""
    ends = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def stop_in(text: str, stops: Sequence[str]) -> str:
    """The stop string that begins first in a text, of several at one place the first; "" where
    there is none.
    """
    places = [
        (place, stop) for stop in stops if stop and (place := text.find(stop)) >= 0
    ]
    return min(places, key=lambda pair: pair[0])[1] if places else ""


def answers_tokens(
    tokens: Sequence[TokenLogProb], text: str
) -> tuple[TokenLogProb, ...]:
    """Those of the answer's text: some servers report the tokens of reasoning before it and of its
    end, too.
    """
    joined = "".join(token.text for token in tokens)
    start = joined.rfind(text) if text else -1
    if start < 0:
        return tuple(tokens)
    kept = []
    place = 0
    for token in tokens:
        end = place + len(token.text)
        if (end > start and place < start + len(text)) or (
            not token.text and start <= place < start + len(text)
        ):
            kept.append(token)
        place = end
    return tuple(kept)


def unknown_fingerprint() -> str:
    """The fingerprint of a model of which nobody can know whether it answers as another does: equal
    to no other.
    """
    return f"{_UNKNOWN}{uuid.uuid4().hex}"


def fingerprint_of(parts: Mapping[str, Any]) -> str:
    """A short stable hash of JSON-like parts, for `Model.fingerprint`."""
    text = json.dumps(
        parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
