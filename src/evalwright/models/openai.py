"""`openai/<model>`: chat completions and completions of OpenAI, or of any server that speaks the same.

    openai/gpt-4o-mini                                   OpenAI itself, or $OPENAI_BASE_URL
    openai/http://localhost:8000/v1#my-model             any server: its base URL, '#', the model's name there
    openai/my-model   -M base_url=http://localhost:8000/v1      the same

The wire format is in `openai_wire` and `openai_echo`; this file decides what is sent where, with which key.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, Rejected, RequestError
from evalwright.core.requests import Ability, Generate, LogLikelihood, Request, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models.base import Pacing, RemoteModel, fingerprint_of
from evalwright.models.http import HttpClient, Reply, check_url
from evalwright.models.keys import Secret, find_key, is_local, missing_key, remember
from evalwright.models.openai_echo import EchoedToken, NoEcho, echo_payload, read_echo, read_pair, split_pair
from evalwright.models.openai_rolling import rolling
from evalwright.models.openai_wire import (
    Settings,
    TokensField,
    chat_payload,
    completions_payload,
    is_reasoning_family,
    read_chat,
    read_completion,
    refuses_sampling,
)

OFFICIAL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
_PATHS = {"chat": "/chat/completions", "completions": "/completions"}
_CREDENTIALS = re.compile(r"//[^/@\s]*@")
_PROBE_TIMEOUT = 10.0
_MAX_CONCURRENCY = 512
_START_CONCURRENCY = 64
"""Where nobody said how many requests the server takes at once; a number that was given is where it starts."""

Interface = Literal["chat", "completions"]


class OpenAIModel(RemoteModel):
    """A model behind an OpenAI-compatible server. The arguments are described in docs/models.md.

    Raises ConfigurationError for arguments that cannot be used; a missing key is told by `check`, so that answers from
    the store need none.
    """

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
        written = model if revision is None else f"{model}@{revision}"
        self.name = f"openai/{written}"
        self.base_url, self.model, self._login, shape = _place(written, _text("base_url", base_url))
        self.interface = _interface(interface, shape)
        self.official = urlsplit(self.base_url).hostname == urlsplit(OFFICIAL).hostname
        self._key_variable = _text("api_key_env", api_key_env) or DEFAULT_KEY
        self._key = self._find_key(named=api_key_env is not None)
        self._headers = _text_mapping("headers", headers)
        self._organisation = _text("organisation", organisation)
        self._bos = _text("bos", bos) or ""
        self._context_length = _whole("context_length", context_length)
        self._settings = Settings(
            model=self.model,
            where=urlsplit(self.base_url).netloc,
            tokens_field=self._tokens_field(max_tokens_field),
            max_tokens=_whole("max_tokens", max_tokens),
            temperature=_number("temperature", temperature),
            top_p=_number("top_p", top_p),
            seed=_whole("seed", seed, low=None),
            reasoning=self.official and self.interface == "chat" and refuses_sampling(self.model),
            extra_body=_mapping("extra_body", extra_body),
            key_source=self._key.source if self._key else "",
        )
        self.pacing = _pacing(timeout, deadline, max_concurrency, max_attempts)
        self._echo = self._can_echo(echo)
        self._echo_is_known = echo is not None or self.official
        self.abilities = self._abilities()
        self.fingerprint = fingerprint_of(self._identity())
        self._client = self._make_client(self.pacing.timeout)

    @property
    def name(self) -> str:
        """The name as it was written, without credentials."""
        return self._name

    @name.setter
    def name(self, written: str) -> None:
        self._name = _CREDENTIALS.sub("//", written)

    def describe(self) -> dict[str, Any]:
        """Endpoint, interface and arguments; headers by name only, never a key."""
        return {
            **super().describe(),
            **self._identity(),
            "headers": sorted(self._headers),
            "key": self._key.source if self._key else "none",
        }

    def check(self) -> None:
        """Raise ConfigurationError where a key is needed and missing; find out whether the server can echo.

        The second asks a server that was not declared with `echo=` for one token, and takes log-likelihoods out of
        `abilities` where it cannot give them. A server that cannot be reached is left to the requests to report.
        """
        if self._key is None and self._login is None and not is_local(self.base_url):
            raise ConfigurationError(
                missing_key(self._key_variable, f"The model '{self.name}' at {self.base_url}")
            )
        if self._echo and not self._echo_is_known:
            with ThreadPoolExecutor(1) as pool:
                self._echo = pool.submit(asyncio.run, self._probe()).result()
            self._echo_is_known = True
            self.abilities = self._abilities()

    async def answer(self, request: Request) -> Response:
        """Ask once."""
        if request.ability not in self.abilities:
            raise Rejected(self._why_not(request.ability))
        if self._key is None and self._login is None and not is_local(self.base_url):
            raise AuthenticationFailed(missing_key(self._key_variable, f"The model '{self.name}'"))
        if isinstance(request, Generate):
            return await self._generate(request)
        if isinstance(request, LogLikelihood):
            return await self._log_likelihood(request)
        assert isinstance(request, RollingLogLikelihood)
        return await rolling(request.text, self._ask_echo, self._context_length, self._bos)

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _generate(self, request: Generate) -> Response:
        settings = self._settings
        if self.interface == "chat":
            reply = await self._client.post("/chat/completions", chat_payload(request, settings))
            return read_chat(reply, request, settings)
        reply = await self._client.post("/completions", completions_payload(request, settings))
        return read_completion(reply, request, settings)

    async def _log_likelihood(self, request: LogLikelihood) -> Response:
        text, boundary = split_pair(request, self._settings)
        if boundary == len(text):
            return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
        if not boundary and self._bos:
            text, boundary = self._bos + text, len(self._bos)
        reply = await self._client.post("/completions", echo_payload(text, self._settings))
        return read_pair(reply, text, boundary, self._settings)

    async def _ask_echo(self, text: str) -> tuple[list[EchoedToken], Reply]:
        reply = await self._client.post("/completions", echo_payload(text, self._settings))
        return read_echo(reply, text, self._settings), reply

    async def _probe(self) -> bool:
        """Whether the server echoes log-probabilities; True where it cannot be asked now."""
        client = self._make_client(min(_PROBE_TIMEOUT, self.pacing.timeout))
        text = "One two three"
        try:
            reply = await client.post("/completions", echo_payload(text, self._settings))
            read_echo(reply, text, self._settings)
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
                f"log-probabilities (vLLM and others do; {urlsplit(OFFICIAL).hostname} does not)."
            )
        return f"'{self.name}' cannot do '{ability}'; it can do: {', '.join(sorted(self.abilities))}."

    def _abilities(self) -> frozenset[Ability]:
        if self.interface == "chat":
            return frozenset(("generate", "chat"))
        return frozenset(("generate", "log-likelihood", "rolling") if self._echo else ("generate",))

    def _can_echo(self, echo: bool | None) -> bool:
        if echo is not None and not isinstance(echo, bool):
            raise ConfigurationError(f"The argument echo must be true or false, not {echo!r}.")
        if echo and self.interface == "chat":
            raise ConfigurationError(
                "The chat interface has no echo: add -M interface=completions to compare likelihoods."
            )
        if echo is None:
            return self.interface == "completions" and not self.official
        return echo

    def _tokens_field(self, wanted: str) -> TokensField:
        if wanted == "auto":
            newer = self.official and self.interface == "chat" and is_reasoning_family(self.model)
            return "max_completion_tokens" if newer else "max_tokens"
        return cast(TokensField, _one_of("max_tokens_field", wanted, ("max_tokens", "max_completion_tokens")))

    def _identity(self) -> dict[str, Any]:
        """Everything that can change an answer, for the fingerprint and the record."""
        settings = self._settings
        given = {
            "max_tokens": settings.max_tokens,
            "max_tokens_field": settings.tokens_field,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            "extra_body": dict(settings.extra_body) or None,
            "bos": self._bos or None,
            "context_length": self._context_length,
        }
        return {
            "provider": "openai",
            "base_url": self.base_url,
            "model": self.model,
            "interface": self.interface,
            "arguments": {name: value for name, value in given.items() if value is not None},
        }

    def _find_key(self, named: bool) -> Secret | None:
        """The key to send. The default one does not travel unencrypted over the internet unless it was named."""
        safe = self.base_url.startswith("https:") or is_local(self.base_url)
        return find_key(self._key_variable) if named or safe else None

    def _make_client(self, timeout: float) -> HttpClient:
        headers = {}
        if self._login is not None:
            headers["Authorization"] = _basic(self._login)
        elif self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        if self._organisation:
            headers["OpenAI-Organization"] = self._organisation
        return HttpClient(
            self.base_url,
            headers={**headers, **self._headers},
            max_connections=self.pacing.max_concurrency,
            timeout=timeout,
            key_source=self._settings.key_source,
        )


def _place(written: str, base_url: str | None) -> tuple[str, str, Secret | None, Interface | None]:
    """(base URL, model, login, interface that the URL's path names) from the name and the argument."""
    model = written
    if written.startswith(("http://", "https://")):
        url, _, model = written.partition("#")
        if not model:
            raise ConfigurationError(
                f"'openai/{_CREDENTIALS.sub('//', written)}' does not say which model: add it after '#', "
                f"for example openai/http://localhost:8000/v1#my-model."
            )
        if base_url is not None:
            raise ConfigurationError("The base URL is given twice: in the model's name and as base_url.")
        base_url = url
    url = check_url(base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
    parts = urlsplit(url)
    login = None
    if "@" in parts.netloc:
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        remember(unquote(password))
        login = Secret(f"{unquote(user)}:{unquote(password)}", "the base URL")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"base_url must end with its path, without '?' or '#': {parts.hostname}.")
    path, shape = parts.path.rstrip("/"), None
    for name, ending in _PATHS.items():
        if path.endswith(ending):
            path, shape = path.removesuffix(ending), cast(Interface, name)
            break
    clean = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2].lower(), path, "", ""))
    return clean, model, login, shape


def _interface(given: str | None, shape: Interface | None) -> Interface:
    if given is None:
        return shape or "chat"
    return cast(Interface, _one_of("interface", given, tuple(_PATHS)))


def _one_of(argument: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigurationError(f"The argument {argument} must be one of {', '.join(known)}, not '{value}'.")
    return value


def _number(argument: str, value: float | None, *, low: float | None = None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"The argument {argument} must be a number, not {value!r}.")
    if low is not None and value <= low:
        raise ConfigurationError(f"The argument {argument} must be a number above {low:g}, not {value!r}.")
    return value


def _whole(argument: str, value: int | None, *, low: float | None = 0) -> int | None:
    checked = _number(argument, value, low=low)
    if checked is not None and not isinstance(checked, int):
        raise ConfigurationError(f"The argument {argument} must be a whole number, not {value!r}.")
    return checked


def _text(argument: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"The argument {argument} must be text, not {value!r}.")
    return value


def _pacing(timeout: float, deadline: float, max_concurrency: int | None, max_attempts: int) -> Pacing:
    given = _whole("max_concurrency", max_concurrency)
    most = given or _MAX_CONCURRENCY
    return Pacing(
        max_concurrency=most,
        start_concurrency=min(most, _MAX_CONCURRENCY) if given else _START_CONCURRENCY,
        timeout=_number("timeout", timeout, low=0) or 1.0,
        deadline=_number("deadline", deadline, low=0) or 1.0,
        max_attempts=_whole("max_attempts", max_attempts) or 1,
    )


def _mapping(argument: str, value: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """A mapping, or JSON text of one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = ""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigurationError(
            f"The argument {argument} must be names with values: -M {argument}.name=value, or a JSON object."
        )
    return dict(value)


def _text_mapping(argument: str, value: Mapping[str, str] | str | None) -> dict[str, str]:
    found = {name: str(text) for name, text in _mapping(argument, value).items()}
    for name, text in found.items():
        if not (name + text).isascii() or not (name + text).isprintable():
            raise ConfigurationError(f"The header '{name}' has characters that no header can carry.")
        if re.search(r"auth|key|token|cookie|secret", name, re.IGNORECASE):
            remember(text)
    return found


def _basic(login: Secret) -> str:
    from base64 import b64encode

    return "Basic " + b64encode(login.reveal().encode()).decode()
