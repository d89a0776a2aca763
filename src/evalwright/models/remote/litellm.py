"""`litellm/<provider>/<model>`: any model that the library litellm can ask, by its own name for it.

    litellm/openai/gpt-4o-mini                                            the key from the variable that litellm names
    litellm/openai/my-model   -M base_url=http://localhost:8000/v1        a server of one's own
    litellm/vertex_ai/gemini-2.5-flash   -M extra.vertex_project=mine     further arguments of its `acompletion`

For providers that have no row of our own (`models/providers`). What the library would do on its own is switched off: retries,
caching, dropping of parameters, fetching tables, reading `.env` into the environment, telemetry.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from evalwright.core.errors import (
    ConfigurationError,
    ConnectionFailed,
    MissingExtra,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import RateLimits, Response
from evalwright.models import arguments
from evalwright.models.base import RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import check_url
from evalwright.models.remote.http_faults import OutOfCredit, PromptFiltered, clean, error_for
from evalwright.models.remote.http_limits import parse_rate_limits, parse_retry_after
from evalwright.models.remote.keys import Secret, find_key, is_local, missing_key, remember
from evalwright.models.remote.prices import price_of
from evalwright.models.remote.providers.table import find, quirks
from evalwright.models.remote.wire.format import Settings, sampling, turns
from evalwright.models.remote.wire.openai_chat import read_chat

_OURS = {
    "api_base": "base_url",
    "api_key": "api_key_env",
    "base_url": "base_url",
    "max_retries": "max_attempts",
    "max_tokens": "max_tokens",
    "num_retries": "max_attempts",
    "seed": "seed",
    "temperature": "temperature",
    "timeout": "timeout",
    "top_p": "top_p",
}
_REFUSED = ("caching", "drop_params", "fallbacks", "messages", "mock_response", "model", "n", "stream")
_FETCHED = (
    "ANTHROPIC_BETA_HEADERS",
    "AUTOROUTER_PRESETS",
    "BLOG_POSTS",
    "MODEL_COST_MAP",
    "POLICY_TEMPLATES",
)
_SECRET = re.compile(r"(API_?KEY|_TOKEN|SECRET|PASSWORD|_KEY)$")
_MAY_HOLD_SECRETS = re.compile(r"HEADERS$|CREDENTIAL|ACCESS_KEY")


class LiteLLMModel(RemoteModel):
    """A model by way of the library litellm.

    extra: further arguments of `litellm.acompletion`. leave_out: sampling fields that are not sent (our table's rules for the
    provider hold besides). Raises ConfigurationError for arguments that cannot be used.
    """

    abilities = frozenset(("generate", "chat"))

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        leave_out: str | None = None,
        extra: Mapping[str, Any] | str | None = None,
        timeout: float = 300.0,
        deadline: float = 1800.0,
        max_concurrency: int = 128,
        max_attempts: int = 10,
        revision: str | None = None,
    ) -> None:
        # A date behind '@' is a part of some providers' names.
        self.model = model if revision is None else f"{model}@{revision}"
        self.name = f"litellm/{self.model}"
        self.base_url = None if base_url is None else _address(arguments.text("base_url", base_url) or "")
        self._key_named = arguments.text("api_key_env", api_key_env)
        self._key: Secret | None = find_key(self._key_named) if self._key_named else None
        self._extra = _checked(arguments.mapping("extra", extra))
        provider = self.model.partition("/")[0]
        self._settings = Settings(
            model=self.model,
            where=f"{provider} (by litellm)",
            max_tokens=arguments.whole("max_tokens", max_tokens),
            temperature=arguments.number("temperature", temperature),
            top_p=arguments.number("top_p", top_p),
            seed=arguments.whole("seed", seed, low=None),
            refuses=self._refuses(arguments.text("leave_out", leave_out)),
            key_source=self._key.source if self._key else "",
        )
        self.pacing = arguments.pacing(timeout, deadline, max_concurrency, max_attempts)
        self.fingerprint = fingerprint_of(self._identity())
        self.price = price_of(provider, self.model.partition("/")[2], packaged=self.base_url is None)

    def _refuses(self, leave_out: str | None) -> frozenset[str]:
        provider, _, rest = self.model.partition("/")
        row = find(provider) if self.base_url is None else None
        known = ("max_tokens", "temperature", "top_p", "stop", "seed")
        named = [
            arguments.one_of("leave_out", word.strip(), known)
            for word in (leave_out or "").split(",")
            if word
        ]
        return frozenset((*(quirks(row, rest).refuses if row else ()), *named))

    def _identity(self) -> dict[str, Any]:
        """Everything that can change an answer, for the fingerprint and the record."""
        settings = self._settings
        given = {
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            "refuses": sorted(settings.refuses) or None,
            "extra": self._extra or None,
        }
        return {
            "provider": "litellm",
            "base_url": self.base_url,
            "model": self.model,
            "arguments": {name: value for name, value in given.items() if value is not None},
        }

    def describe(self) -> dict[str, Any]:
        """Model, address and arguments, never a key."""
        return {
            **super().describe(),
            **self._identity(),
            **({"price": self.price.as_dict()} if self.price else {}),
            "key": self._key.source if self._key else "found by litellm",
        }

    def check(self) -> None:
        """Raise MissingExtra without the library, ConfigurationError for an unknown provider or a missing key."""
        library = _library()
        try:
            library.get_llm_provider(model=self.model, api_base=self.base_url)
        except Exception:
            raise ConfigurationError(
                f"litellm does not know the provider of '{self.model}': write litellm/<provider>/<model>, as its own list of "
                f"providers says, for example litellm/openai/gpt-4o-mini."
            ) from None
        if self._key is not None or (self.base_url is not None and is_local(self.base_url)):
            return
        if self._key_named:
            raise ConfigurationError(missing_key(self._key_named, f"The model '{self.name}'"))
        missing = library.validate_environment(model=self.model).get("missing_keys") or []
        # Litellm looks into the environment only; a key may also stand in `.env`.
        self._key = find_key(missing[0]) if len(missing) == 1 else None
        if missing and self._key is None:
            raise ConfigurationError(missing_key(str(missing[0]), f"The model '{self.name}'"))

    async def answer(self, request: Request) -> Response:
        """Ask once."""
        if not isinstance(request, Generate):
            raise Rejected(f"'{self.name}' cannot do '{request.ability}'; it can do: chat, generate.")
        library = _library()
        started = time.perf_counter()
        try:
            made = await library.acompletion(**self._arguments(request))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failed = self._translate(error)
            if isinstance(failed, PromptFiltered):
                seconds = time.perf_counter() - started
                return Response(
                    finish_reason="content_filter", latency=seconds, rate_limits=failed.rate_limits
                )
            raise failed from None
        seconds = time.perf_counter() - started
        hidden = getattr(made, "_hidden_params", None) or {}
        reply = Reply(made.model_dump(warnings=False), seconds, _limits(hidden.get("headers")))
        found = read_chat(reply, request, self._settings)
        cost = hidden.get("response_cost")
        if isinstance(cost, int | float):
            return replace(found, cost=float(cost))
        return replace(found, cost=self.price.cost(found.usage)) if self.price else found

    async def close(self) -> None:
        """Release the library's connections and its worker on this loop."""
        library = _Loaded.library
        if library is None:
            return
        with suppress(Exception):
            await library.close_litellm_async_clients()
            library.in_memory_llm_clients_cache.flush_cache()
        with suppress(Exception):
            worker = importlib.import_module(
                "litellm.litellm_core_utils.logging_worker"
            ).GLOBAL_LOGGING_WORKER
            await worker.clear_queue()
            await worker.stop()

    def _arguments(self, request: Generate) -> dict[str, Any]:
        told = sampling(request, self._settings)
        local = self.base_url is not None and is_local(self.base_url)
        fields = {
            "api_base": self.base_url,
            # Local servers want none, but the clients below insist on one.
            "api_key": self._key.reveal() if self._key else ("none" if local else None),
            "max_tokens": told.max_tokens,
            "temperature": told.temperature,
            "top_p": told.top_p,
            "stop": list(told.stop) or None,
            "seed": told.seed,
        }
        return {
            **self._extra,
            "model": self.model,
            "messages": [turn.as_dict() for turn in turns(request.prompt)],
            **{name: value for name, value in fields.items() if value is not None},
            "timeout": self.pacing.timeout,
            "num_retries": 0,
            "max_retries": 0,
            "caching": False,
            "drop_params": False,
        }

    def _translate(self, error: Exception) -> RequestError:
        """Our error tree's name for one of litellm's."""
        kind, where = type(error).__name__, self._settings.where
        words = clean(str(error), 300)
        if kind == "Timeout":
            return TimedOut(f"{where} did not answer within {self.pacing.timeout:g} s.")
        if kind == "BudgetExceededError":
            return OutOfCredit(f"litellm's own budget is used up: {words}")
        if kind == "APIConnectionError":
            return ConnectionFailed(f"No connection to {where}: {words}")
        headers = _headers_of(error)
        if kind == "ContentPolicyViolationError":
            return PromptFiltered(f"{where} stopped the prompt by its content filter: {words}")
        status = getattr(error, "status_code", None)
        if status is None:
            return Rejected(f"litellm could not ask {where}: {kind}: {words}")
        body = getattr(error, "body", None)
        details = body if isinstance(body, Mapping) else {}
        return error_for(
            where,
            status if isinstance(status, int) and 400 <= status < 600 else 500,
            words,
            codes=frozenset(
                value for name in ("code", "type") if isinstance(value := details.get(name), str)
            ),
            key_source=self._settings.key_source,
            retry_after=parse_retry_after(headers),
            rate_limits=_limits(headers),
        )


def _address(url: str) -> str:
    """A usable base URL without a login in it, which litellm would not hide."""
    if "@" in urlsplit(url).netloc:
        raise ConfigurationError("The base URL of a litellm model cannot hold a login: use api_key_env.")
    return check_url(url)


def _checked(extra: dict[str, Any]) -> dict[str, Any]:
    """`extra`, if it names nothing that has an argument of our own or that would break the record."""
    for name in extra:
        if name in _OURS:
            raise ConfigurationError(
                f"extra.{name} has an argument of its own: give -M {_OURS[name]}=... instead."
            )
        if name in _REFUSED or "callback" in name or "logger" in name:
            raise ConfigurationError(
                f"extra.{name} cannot be given: the answer would not be what the model says once."
            )
        if _SECRET.search(name.upper()) or _MAY_HOLD_SECRETS.search(name.upper()):
            raise ConfigurationError(
                f"extra.{name} may hold a key, which would be kept in the record: set it in the environment."
            )
    return extra


def _headers_of(error: Exception) -> Mapping[str, str]:
    for found in (
        getattr(error, "litellm_response_headers", None),
        getattr(getattr(error, "response", None), "headers", None),
    ):
        if isinstance(found, Mapping) and found:
            return {str(name).lower(): str(value) for name, value in found.items()}
    return {}


def _limits(headers: Any) -> RateLimits | None:
    if not isinstance(headers, Mapping):
        return None
    return parse_rate_limits((str(name).encode(), str(value).encode()) for name, value in headers.items())


def _library() -> Any:
    """The library, with everything switched off that it would do on its own. Raises MissingExtra."""
    loaded = _Loaded.library
    if loaded is not None:
        return loaded
    # It would fetch tables from the network, of prices among others, and put a `.env` file into the environment.
    for table in _FETCHED:
        os.environ.setdefault(f"LITELLM_LOCAL_{table}", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library: Any = importlib.import_module("litellm")
    except ImportError:
        raise MissingExtra("A model of 'litellm'", "litellm", "litellm") from None
    library.telemetry = False
    library.drop_params = False
    library.modify_params = False
    library.num_retries = None
    library.cache = None
    library.suppress_debug_info = True
    library.set_verbose = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Its messages may repeat any key that it finds in the environment.
    for name, value in os.environ.items():
        if _SECRET.search(name):
            remember(value)
    _Loaded.library = library
    return library


class _Loaded:
    library: Any = None
