"""`openai/<model>`: OpenAI, or any server that speaks the same, log-likelihoods by echo among them.

    openai/gpt-4o-mini                                   OpenAI itself, or $OPENAI_BASE_URL
    openai/http://localhost:8000/v1#my-model             any server: its base URL, '#', the model's name there
    openai/my-model   -M base_url=http://localhost:8000/v1      the same

What it shares with all other providers is in `api`; here is what only this one has.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError, Rejected, RequestError
from evalwright.core.requests import Ability, Embed, Generate, LogLikelihood, Request, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models import arguments
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.http import Reply
from evalwright.models.remote.openai_echo import (
    EchoedToken,
    NoEcho,
    echo_payload,
    read_echo,
    read_pair,
    split_pair,
)
from evalwright.models.remote.openai_rolling import rolling
from evalwright.models.remote.providers.table import Provider, find

_PROBE_TIMEOUT = 10.0


class OpenAIModel(ApiModel):
    """A model behind an OpenAI-compatible server. The arguments are described in docs/models.md.

    Raises ConfigurationError for arguments that cannot be used; a missing key is told by `check`, so that answers from
    the store need none.
    """

    paths: ClassVar[Mapping[str, str]] = {
        "openai-chat": "/chat/completions",
        "openai-completions": "/completions",
        "openai-responses": "/responses",
        "openai-embeddings": "/embeddings",
    }

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        interface: str | None = None,
        echo: bool | None = None,
        max_tokens: int | None = None,
        max_tokens_field: str = "auto",
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        thinking: str | int | bool | None = None,
        stream: bool | None = None,
        extra_body: Mapping[str, Any] | str | None = None,
        headers: Mapping[str, str] | str | None = None,
        organisation: str | None = None,
        context_length: int | None = None,
        bos: str = "",
        timeout: float = 300.0,
        deadline: float = 1800.0,
        max_concurrency: int | None = None,
        max_attempts: int = 10,
        revision: str | None = None,
    ) -> None:
        self._organisation = arguments.text("organisation", organisation)
        self._bos = arguments.text("bos", bos) or ""
        self._context_length = arguments.whole("context_length", context_length)
        self._echo_wanted = arguments.flag("echo", echo)
        self._echo: bool | None = None
        row = find("openai")
        assert row is not None
        super().__init__(
            row,
            model,
            base_url=base_url,
            api_key_env=api_key_env,
            interface=interface,
            max_tokens=max_tokens,
            max_tokens_field=max_tokens_field,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            thinking=thinking,
            stream=stream,
            extra_body=extra_body,
            headers=headers,
            timeout=timeout,
            deadline=deadline,
            max_concurrency=max_concurrency,
            max_attempts=max_attempts,
            revision=revision,
        )
        self._echo_is_known = echo is not None or self.official

    def check(self) -> None:
        """Raise ConfigurationError where a key is needed and missing; find out whether the server can echo.

        The second asks a server that was not declared with `echo=` for one token, and takes log-likelihoods out of
        `abilities` where it cannot give them. A server that cannot be reached is left to the requests to report.
        """
        super().check()
        if self._echo and not self._echo_is_known:
            with ThreadPoolExecutor(1) as pool:
                self._echo = pool.submit(asyncio.run, self._probe()).result()
            self._echo_is_known = True
            self.abilities = self._abilities()

    async def answer(self, request: Request) -> Response:
        """Ask once."""
        if (
            isinstance(request, Generate | Embed)
            or request.ability not in self.abilities
            or self._lacks_key()
        ):
            return await super().answer(request)
        if isinstance(request, LogLikelihood):
            return self._priced(await self._log_likelihood(request))
        assert isinstance(request, RollingLogLikelihood)
        return self._priced(await rolling(request.text, self._ask_echo, self._context_length, self._bos))

    async def _log_likelihood(self, request: LogLikelihood) -> Response:
        text, boundary = split_pair(request, self.settings)
        if boundary == len(text):
            return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
        if not boundary and self._bos:
            text, boundary = self._bos + text, len(self._bos)
        reply = await self.client.post("/completions", echo_payload(text, self.settings))
        return read_pair(reply, text, boundary, self.settings)

    async def _ask_echo(self, text: str) -> tuple[list[EchoedToken], Reply]:
        reply = await self.client.post("/completions", echo_payload(text, self.settings))
        return read_echo(reply, text, self.settings), reply

    async def _probe(self) -> bool:
        """Whether the server echoes log-probabilities; True where it cannot be asked now."""
        client = self._make_client(min(_PROBE_TIMEOUT, self.pacing.timeout))
        text = "One two three"
        try:
            reply = await client.post("/completions", echo_payload(text, self.settings))
            read_echo(reply, text, self.settings)
        except NoEcho:
            return False
        except Rejected as error:
            # A server that does not know `echo` or `logprobs` says 400 or 422; anything else is about something else.
            return error.status not in (400, 422, 501)
        except RequestError:
            return True
        finally:
            await client.close()
        return True

    def _why_not(self, ability: Ability) -> str:
        if ability in ("log-likelihood", "rolling"):
            return (
                f"'{self.name}' cannot give log-likelihoods: that needs interface=completions and a server that echoes "
                f"log-probabilities (vLLM and others do; {urlsplit(self.provider.base_url).hostname} does not)."
            )
        return super()._why_not(ability)

    def _abilities(self) -> frozenset[Ability]:
        if self.interface != "completions":
            if self._echo_wanted:
                raise ConfigurationError(
                    f"The {self.interface} interface has no echo: add -M interface=completions to compare likelihoods."
                )
            return super()._abilities()
        if self._echo is None:
            self._echo = not self.official if self._echo_wanted is None else self._echo_wanted
        return frozenset(("generate", "log-likelihood", "rolling") if self._echo else ("generate",))

    def _more_identity(self) -> Mapping[str, Any]:
        return {"bos": self._bos or None, "context_length": self._context_length}

    def _more_headers(self) -> Mapping[str, str]:
        return {"OpenAI-Organization": self._organisation} if self._organisation else {}

    def _default_url(self, provider: Provider) -> str:
        return os.environ.get("OPENAI_BASE_URL") or super()._default_url(provider)
