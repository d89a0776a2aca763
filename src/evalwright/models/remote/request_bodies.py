"""A model behind a server whose request bodies somebody else writes.

Keys, pacing, retries, prices and the store are those of the provider's other models; only what a
body says, and how its reply is read, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.errors import (
    BadReply,
    ConfigurationError,
    RequestError,
    UnknownName,
)
from evalwright.core.requests import (
    Ability,
    Generate,
    LogLikelihood,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response, Usage
from evalwright.models.model_interface import RemoteModel
from evalwright.models.remote import providers
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Call, Reply, largest_reply
from evalwright.models.remote.openai import OpenAIModel
from evalwright.models.remote.openai_echo import NoEcho
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.openai_text import reply_usage


@dataclass(frozen=True, slots=True)
class ScoredBody:
    """One request of a log-likelihood: a body for `/completions` that has its prompt echoed.

    Args:
        body: the body.
        n_tokens: tokens of its prompt, which bound the reply's size.
        n_scored: tokens that it scores.
        read: reads (log-probability, whether greedy) from the reply's JSON; None where the reply
            echoes nothing. What it raises makes the reply a bad one.
    """

    body: Mapping[str, Any]
    n_tokens: int
    n_scored: int
    read: Callable[[Any], tuple[float, bool] | None]


class RequestBodies:
    """Writes the bodies of requests to a server. Derive from it, and define `body`."""

    carries: frozenset[str] = frozenset()
    """Options of a `Generate`, beyond the usual ones, that the bodies hold."""
    takes_messages: bool = False
    """Whether it renders messages for an interface that takes text."""

    def body(self, request: Generate, model: str) -> dict[str, Any]:
        """Write the body of a request to generate.

        Args:
            request: the request.
            model: the model's name at the server.

        Returns:
            The whole body.
        """
        raise NotImplementedError

    def text(self, text: str) -> str:
        """Change the text of a reply; by default it stays as it came."""
        return text

    def scored(
        self, request: LogLikelihood | RollingLogLikelihood, model: str
    ) -> Iterator[ScoredBody] | None:
        """Write the requests of a log-likelihood, whose results are added up.

        Args:
            request: the request.
            model: the model's name at the server.

        Returns:
            The requests; None to send text, as for the provider's other models.
        """
        return None

    def identity(self) -> Mapping[str, Any]:
        """What can change an answer, beside the model and the address, as plain JSON."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """What a run's record says of the model besides, as plain JSON."""
        return {}


def server_model(
    provider: str,
    model: str,
    bodies: RequestBodies,
    *,
    interface: str | None = None,
    base_url: str | None = None,
    api_key_env: str | None = None,
    headers: Mapping[str, str] | str | None = None,
    echo: bool | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    max_attempts: int | None = None,
) -> RemoteModel:
    """Create a model behind a server, with bodies of your own.

    Any name that the server's replies give the model is accepted.

    Args:
        provider: one of our providers, such as "openai" or "anthropic": its address, its keys, and
            how its replies are read.
        model: the model's name there.
        bodies: what is sent.
        interface: "chat" or "completions", where the provider has both.
        base_url: another server with the same interface.
        api_key_env: the environment variable with the key.
        headers: further headers.
        echo: whether the server echoes prompts with log-probabilities; None to find out.
        timeout: seconds for one attempt.
        max_concurrency: most requests in flight.
        max_attempts: how often a request is sent at most.

    Returns:
        The model.

    Raises:
        UnknownName: there is no such provider.
        ConfigurationError: an argument cannot be used.
    """
    row = providers.find(provider)
    if row is None:
        raise UnknownName("provider", provider, providers.names())
    options = {
        "interface": interface,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "headers": headers,
        "echo": echo,
        "timeout": timeout,
        "max_concurrency": max_concurrency,
        "max_attempts": max_attempts,
    }
    chosen = {name: option for name, option in options.items() if option is not None}
    if "openai-completions" in row.wires:
        return _OpenAIModelWithBodies(row, model, bodies, chosen)
    if echo is not None:
        raise ConfigurationError(
            f"The interface of '{provider}' gives no log-likelihoods: leave out echo."
        )
    return _ApiModelWithBodies(row, model, bodies, chosen)


class _ApiModelWithBodies(ApiModel):
    """A model of a provider with an interface of its own."""

    resolves_names = True

    def __init__(
        self,
        provider: providers.Provider,
        model: str,
        bodies: RequestBodies,
        options: Mapping[str, Any],
    ) -> None:
        self._bodies = bodies
        super().__init__(provider, model, **options)
        self.carries = bodies.carries
        self.wire = _wire_with(bodies, self.wire)

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the facts of its bodies."""
        return {**super().describe(), **self._bodies.facts()}

    def _more_identity(self) -> Mapping[str, Any]:
        return self._bodies.identity()


class _OpenAIModelWithBodies(_ApiModelWithBodies, OpenAIModel):
    """A model of a provider with OpenAI's interface, which can echo prompts."""

    def _abilities(self) -> frozenset[Ability]:
        messages: set[Ability] = {"chat"} if self._bodies.takes_messages else set()
        return super()._abilities() | messages

    async def _sent_all(
        self, request: LogLikelihood | RollingLogLikelihood, replies: list[Reply | None]
    ) -> Response:
        scored_bodies = self._bodies.scored(request, self.settings.model)
        if scored_bodies is None:
            return await super()._sent_all(request, replies)
        total = 0.0
        greedy = True
        n_scored = 0
        for scored in scored_bodies:
            log_likelihood, is_greedy = await self._score(scored, replies)
            total += log_likelihood
            greedy = greedy and is_greedy
            n_scored += scored.n_scored
        received = [reply for reply in replies if reply is not None]
        return Response(
            finish_reason="stop",
            log_likelihood=min(total, 0.0),
            is_greedy=greedy,
            tokens_scored=n_scored,
            usage=sum((reply_usage(reply.data) for reply in received), Usage()),
            latency=sum(reply.seconds for reply in received),
            rate_limits=received[-1].rate_limits if received else None,
        )

    async def _score(
        self, scored: ScoredBody, replies: list[Reply | None]
    ) -> tuple[float, bool]:
        """Send one request and read its result. Raises NoEcho or BadReply."""
        replies.append(None)
        # One token more is generated.
        largest = largest_reply(scored.n_tokens + 1)
        reply = await self.client.send(
            Call("/completions", scored.body, largest=largest)
        )
        replies[-1] = reply
        try:
            result = scored.read(reply.data)
        except RequestError:
            raise
        except (
            Exception
        ) as error:  # whatever a reply of another form makes of its reader
            raise BadReply(
                f"{self.settings.where} sent no log-probabilities of the prompt's"
                f" tokens ({type(error).__name__}: {error})."
            ) from error
        if result is None:
            raise NoEcho(
                f"{self.settings.where} ignores 'echo': its reply holds only what it"
                " generated."
            )
        return result


def _wire_with(bodies: RequestBodies, wire: Wire) -> Wire:
    """The provider's wire format with other bodies."""

    def payload(request: Any, settings: Settings) -> dict[str, Any]:
        return bodies.body(request, settings.model)

    def parse(data: Any, request: Any, settings: Settings) -> ReplyContent:
        content = wire.parse(data, request, settings)
        return content._replace(text=bodies.text(content.text))

    return replace(wire, payload=payload, parse=parse, options={})
