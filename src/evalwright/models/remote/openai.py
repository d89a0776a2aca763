"""Models of providers with OpenAI's completions: like `api`, plus log-likelihoods by echo.

openai/gpt-4o-mini                                   OpenAI itself, or $OPENAI_BASE_URL
openai/http://localhost:8000/v1#my-model             any server: base URL, '#', its model's name
openai/my-model   -M base_url=http://localhost:8000/v1      the same
vllm/my-model   -M interface=completions -M echo=true       a server on this machine
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError, Rejected, RequestError
from evalwright.core.requests import (
    Ability,
    LogLikelihood,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response, Usage
from evalwright.models import arguments
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.openai_echo import (
    Echo,
    NoEcho,
    echo_call,
    read_echo,
    read_tokens_of_text,
    score_pair,
    score_rolling,
    split_pair,
)
from evalwright.models.remote.providers import Provider
from evalwright.models.remote.wire.openai_text import reply_usage

_PROBE_TIMEOUT = 10.0


class OpenAIModel(ApiModel):
    """A model of a provider with OpenAI's completions.

    Its arguments are those of `ApiModel`, and echo, bos and context_length for log-likelihoods, and
    organisation.
    """

    __signature__: ClassVar[Signature]

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        echo: bool | None = None,
        bos: str = "",
        context_length: int | None = None,
        organisation: str | None = None,
        **options: Any,
    ) -> None:
        self._organisation = arguments.text("organisation", organisation)
        self._bos = arguments.text("bos", bos) or ""
        self._context_length = arguments.whole_number("context_length", context_length)
        self._echo_wanted = arguments.flag("echo", echo)
        self._echo: bool | None = None
        super().__init__(provider, model, **options)
        self.echoes = self._gives_tokens()
        self._echo_is_known = echo is not None or self.official

    def check(self) -> None:
        """Raise ConfigurationError if a required key is missing; find out if the server can echo.

        The second sends a request for one token to a server that was not declared with `echo=`, and
        removes log-likelihoods from `abilities` if the server cannot give them. A server that
        cannot be reached is reported by the requests.
        """
        super().check()
        if self._echo and not self._echo_is_known:
            with ThreadPoolExecutor(1) as pool:
                self._echo = pool.submit(asyncio.run, self._probe()).result()
            self._echo_is_known = True
            self.abilities = self._abilities()
            self.echoes = self._gives_tokens()

    def _gives_tokens(self) -> bool:
        """Return whether the server echoes the tokens of a text, not only their sum."""
        return bool(self._echo) and self.provider.scoring != "grammar"

    def answer(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Send one request; a long text to be scored takes several."""
        if request.ability in self.abilities and isinstance(
            request, LogLikelihood | RollingLogLikelihood
        ):
            return self._scored(request)
        return super().answer(request)

    async def _scored(self, request: LogLikelihood | RollingLogLikelihood) -> Response:
        self.ready()
        replies: list[Reply | None] = []
        try:
            return self._priced(await self._sent_all(request, replies))
        except RequestError as error:
            # The usage of a sending without a reply can only be estimated, for the whole request.
            if not (replies and replies[-1] is None and error.taken):
                used = sum(
                    (reply_usage(reply.data) for reply in replies if reply is not None),
                    Usage(),
                )
                error.usage = used if used.input_tokens or used.output_tokens else None
            raise

    async def _echoed(
        self, text: str, replies: list[Reply | None], alternatives: int = 1
    ) -> Reply:
        replies.append(None)
        call = echo_call(text, self.settings, alternatives)
        replies[-1] = reply = await self.client.send(call)
        return reply

    async def _sent_all(
        self, request: LogLikelihood | RollingLogLikelihood, replies: list[Reply | None]
    ) -> Response:
        """Send each window needed, and pass on its outcome, until the response is complete."""
        if isinstance(request, LogLikelihood):
            text, boundary = split_pair(request, self.settings)
            if boundary == len(text):
                return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
            if not boundary and self._bos:
                text = self._bos + text
                boundary = len(self._bos)
            return score_pair(
                await self._echoed(text, replies), text, boundary, self.settings
            )
        if request.top_logprobs is not None:
            echoed = await self._echoed(request.text, replies, request.top_logprobs)
            return read_tokens_of_text(echoed, request, self.settings)
        windows = score_rolling(request.text, self._context_length, self._bos)
        try:
            text = next(windows)
            while True:
                try:
                    reply = await self._echoed(text, replies)
                    got: Echo | Rejected = read_echo(reply, text, self.settings), reply
                except Rejected as error:
                    got = error
                text = windows.send(got)
        except StopIteration as done:
            response: Response = done.value
            return response

    async def _probe(self) -> bool:
        """Return whether the server echoes log-probabilities; True if it cannot be reached now."""
        client = self._make_client(min(_PROBE_TIMEOUT, self.pacing.timeout))
        text = "One two three"
        try:
            read_echo(
                await client.send(echo_call(text, self.settings)), text, self.settings
            )
        except NoEcho:
            return False
        except Rejected as error:
            # A server that does not know `echo` or `logprobs` answers 400 or 422; another status
            # has another cause.
            return error.status not in (400, 422, 501)
        except RequestError:
            return True
        finally:
            await client.close()
        return True

    def _why_not(self, ability: Ability) -> str:
        if ability in ("log-likelihood", "rolling"):
            return (
                f"'{self.name}' cannot give log-likelihoods: that needs"
                " interface=completions and a server that echoes log-probabilities"
                f" (vLLM and others do; {urlsplit(self.provider.base_url).hostname}"
                " does not)."
            )
        return super()._why_not(ability)

    def _abilities(self) -> frozenset[Ability]:
        if self.interface != "completions":
            if self._echo_wanted:
                raise ConfigurationError(
                    f"The {self.interface} interface has no echo: add -M"
                    " interface=completions to compare likelihoods."
                )
            self._refuse_what_needs_echo()
            return super()._abilities()
        if self._echo is None:
            how = self.provider.scoring
            gives = how in ("echo", "grammar") or (not how and not self.official)
            self._echo = gives if self._echo_wanted is None else self._echo_wanted
        if not self._echo:
            self._refuse_what_needs_echo()
        return frozenset(
            ("generate", "log-likelihood", "rolling") if self._echo else ("generate",)
        )

    def _refuse_what_needs_echo(self) -> None:
        for name, setting in (
            ("bos", self._bos),
            ("context_length", self._context_length),
        ):
            if setting:
                raise ConfigurationError(
                    f"-M {name} has no effect on '{self.name}': it is for"
                    " log-likelihoods, which need -M interface=completions and a"
                    " server that echoes log-probabilities. Leave it out."
                )

    def _more_identity(self) -> Mapping[str, Any]:
        return {"bos": self._bos or None, "context_length": self._context_length}

    def _more_headers(self) -> Mapping[str, str]:
        return {"OpenAI-Organization": self._organisation} if self._organisation else {}


# The arguments by name, so that a misspelt one is found before the model is made.
_parameters = [
    *(
        parameter
        for parameter in signature(OpenAIModel).parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ),
    *(
        parameter
        for parameter in signature(ApiModel).parameters.values()
        if parameter.kind is Parameter.KEYWORD_ONLY
    ),
]
OpenAIModel.__signature__ = Signature(_parameters)
