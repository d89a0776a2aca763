"""`litellm/<provider>/<model>`: a model through the library litellm, for providers without a row.

A thin adapter: the library sends and reads; this file names the model, reads its reply as a chat
completion and translates its errors. Everything the library would do by itself is off: retries,
caching, dropping parameters, fetching tables, telemetry.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
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
from evalwright.core.responses import Response
from evalwright.core.secrets import (
    is_secret,
    masked_arguments,
    remember_environment,
    remember_within,
)
from evalwright.models import arguments
from evalwright.models.model_interface import IMAGES, RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import check_url
from evalwright.models.remote.http_faults import Filtered, clean, error_for
from evalwright.models.remote.http_limits import parse_rate_limits, parse_retry_after
from evalwright.models.remote.keys import find_key, is_local, key_variables, missing_key
from evalwright.models.remote.prices import price_of
from evalwright.models.remote.providers import apply_rules, find
from evalwright.models.remote.wire.format import (
    SAMPLING,
    Settings,
    sampling,
    without_none,
)
from evalwright.models.remote.wire.openai_text import CHAT, chat_messages
from evalwright.models.remote.wire.options import (
    OPENAI_CHAT,
    TOOL_OPTIONS,
    Options,
    at_place,
    fields_of,
)

_OWN_ARGUMENTS = re.compile(
    r"(api_)?base(_url)?|api_key|(max|num)_retries|max_tokens|seed|temperature|timeout|top_p|model|messages"
)
_FORBIDDEN_ARGUMENTS = re.compile(
    r"caching|drop_params|fallbacks|mock_response|n|stream|.*(callback|logger).*"
)
OPTIONS: Options = {
    **{
        name: OPENAI_CHAT[name]
        for name in ("top_logprobs", "json_schema", *TOOL_OPTIONS)
    },
    "reasoning_effort": at_place("reasoning_effort"),
}
"""Options that the library translates for every provider, or refuses by itself."""
_MAY_HOLD_SECRETS = (
    "headers",
    "extra_headers",
    "default_headers",
    "litellm_params",
    "litellm_credential_name",
)


class LiteLLMModel(RemoteModel):
    """A model through litellm.

    Args:
        model: the model's name for litellm.
        leave_out: sampling fields that are not sent, besides those that our row of the provider
            says it refuses.
        extra: further arguments of litellm's `acompletion`.

    Raises:
        ConfigurationError: an argument cannot be used.
    """

    abilities = frozenset(("generate", "chat"))
    carries = frozenset((*OPTIONS, IMAGES))

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
        arguments.refuse_dot_segments(
            self.name, self.model
        )  # litellm writes some of its providers' names into the path
        self.base_url = (
            None
            if base_url is None
            else check_url(arguments.text("base_url", base_url) or "")
        )
        if "@" in urlsplit(self.base_url or "").netloc:
            raise ConfigurationError(
                "The base URL of a litellm model cannot contain a login: use"
                " api_key_env."
            )
        self._key_named = arguments.text("api_key_env", api_key_env)
        named = key_variables(
            self.base_url or "", self._key_named, (), self.base_url is None
        )
        self._key = next(filter(None, map(find_key, named)), None)
        self._local = self.base_url is not None and is_local(self.base_url)
        self._extra = _check_extra(arguments.mapping("extra", extra))
        provider, _, model_name = self.model.partition("/")
        row = find(provider) if self.base_url is None else None
        words = filter(None, (arguments.text("leave_out", leave_out) or "").split(","))
        left_out = [
            arguments.one_of("leave_out", word.strip(), SAMPLING) for word in words
        ]
        self._settings = Settings(
            model=self.model,
            where=f"{provider} (by litellm)",
            max_tokens=arguments.whole_number("max_tokens", max_tokens),
            temperature=arguments.number("temperature", temperature),
            top_p=arguments.number("top_p", top_p),
            seed=arguments.whole_number("seed", seed, low=None),
            refuses=frozenset(
                (*(apply_rules(row, model_name).refuses if row else ()), *left_out)
            ),
            key_source=self._key.source if self._key else "",
            # The library's field for Anthropic's signed reasoning.
            returns=(*(row.returns if row else ()), "thinking_blocks"),
        )
        self.pacing = arguments.pacing(timeout, deadline, max_concurrency, max_attempts)
        self.fingerprint = fingerprint_of(self._identity())
        self.price = price_of(provider, model_name, packaged=self.base_url is None)

    def _identity(self) -> dict[str, Any]:
        names = ("max_tokens", "temperature", "top_p", "seed")
        settings: dict[str, Any] = {
            name: getattr(self._settings, name) for name in names
        }
        settings |= {
            "refuses": sorted(self._settings.refuses) or None,
            "extra": self._extra or None,
        }
        settings["environment"] = self._environment() or None
        where = {"provider": "litellm", "base_url": self.base_url, "model": self.model}
        return {**where, "arguments": without_none(settings)}

    def _environment(self) -> dict[str, str]:
        """Return the variables that are set and change litellm's server or API version."""
        provider = self.model.partition("/")[0].upper().replace("-", "_")
        names = [
            f"{provider}_{end}"
            for end in ("API_BASE", "BASE_URL", "API_VERSION", "ENDPOINT")
        ]
        variables = (
            {name: os.environ[name] for name in names if os.environ.get(name)}
            if self.base_url is None
            else {}
        )
        remember_within(variables)
        return variables

    def describe(self) -> dict[str, Any]:
        """Describe model, address and arguments, never a key."""
        price = {"price": self.price.as_dict()} if self.price else {}
        key = self._key.source if self._key else "found by litellm"
        return {
            **super().describe(),
            **masked_arguments(self._identity()),
            **price,
            "key": key,
        }

    def check(self) -> None:
        """Raise if the model cannot be used.

        Raises:
            MissingExtra: litellm is not installed.
            ConfigurationError: the provider is unknown, or a key is missing.
        """
        library = _import_library()
        try:
            library.get_llm_provider(model=self.model, api_base=self.base_url)
        except Exception:
            raise ConfigurationError(
                f"litellm does not know the provider of '{self.model}': write"
                " litellm/<provider>/<model> as its list of providers says, for"
                " example litellm/openai/gpt-4o-mini."
            ) from None
        if self._key is not None or self._local:
            return
        if self.base_url is not None and not self._key_named:
            # The library would send the provider's key from the environment.
            words = missing_key((), (), f"The model '{self.name}'", self.base_url)
            raise ConfigurationError(words)
        missing_keys = (
            []
            if self._key_named
            else library.validate_environment(model=self.model)["missing_keys"]
        )
        missing = [self._key_named] if self._key_named else missing_keys
        # litellm looks only into the environment; a key may also be in `.env`.
        self._key = find_key(missing[0]) if len(missing) == 1 else None
        if missing and self._key is None:
            raise ConfigurationError(
                missing_key([str(missing[0])], (), f"The model '{self.name}'")
            )

    async def answer(self, request: Request) -> Response:
        """Send the request once."""
        if not isinstance(request, Generate):
            raise Rejected(
                f"'{self.name}' cannot do '{request.ability}'; it can do: chat,"
                " generate."
            )
        library = _import_library()
        started = time.perf_counter()
        try:
            completion = await library.acompletion(**self._arguments(request))
        except Exception as error:
            raise self._translate(error) from None
        hidden = getattr(completion, "_hidden_params", None) or {}
        limits = parse_rate_limits(_headers(hidden.get("headers")))
        reply = Reply(
            completion.model_dump(warnings=False), time.perf_counter() - started, limits
        )
        response = CHAT.read(reply, request, self._settings)
        cost = hidden.get("response_cost")
        if isinstance(cost, int | float):
            return replace(response, cost=float(cost))
        return (
            replace(response, cost=self.price.cost(response.usage))
            if self.price and response.counted
            else response
        )

    async def close(self) -> None:
        """Release the library's connections on this loop."""
        if _import_library.cache_info().currsize:
            with suppress(Exception):
                await _import_library().close_litellm_async_clients()
                _import_library().in_memory_llm_clients_cache.flush_cache()
            with suppress(Exception):
                worker = importlib.import_module(
                    "litellm.litellm_core_utils.logging_worker"
                ).GLOBAL_LOGGING_WORKER
                await worker.clear_queue()
                await worker.stop()

    def _arguments(self, request: Generate) -> dict[str, Any]:
        chosen = sampling(request, self._settings)
        # Local servers need no key, but the clients below require one.
        key = "none" if self.base_url else None
        if self._key:
            key = self._key.reveal()
        fields = {
            "api_base": self.base_url,
            "api_key": key,
            "max_tokens": chosen.max_tokens,
            "temperature": chosen.temperature,
            "top_p": chosen.top_p,
            "stop": list(chosen.stop) or None,
            "seed": chosen.seed,
        }
        switches = {
            "num_retries": 0,
            "max_retries": 0,
            "caching": False,
            "drop_params": False,
        }
        for option_fields in fields_of(request, OPTIONS):
            fields |= option_fields
        request_fields = {
            "model": self.model,
            "messages": chat_messages(request.prompt, self._settings),
            "timeout": self.pacing.timeout,
        }
        return {**self._extra, **without_none(fields), **request_fields, **switches}

    def _translate(self, error: Exception) -> RequestError:
        """Translate one of litellm's errors into one of ours."""
        error_name = type(error).__name__
        where = self._settings.where
        words = clean(str(error), 300)
        if error_name == "Timeout":
            return TimedOut(f"{where} did not answer within {self.pacing.timeout:g} s.")
        if error_name == "APIConnectionError":
            return ConnectionFailed(f"No connection to {where}: {words}")
        if error_name == "ContentPolicyViolationError":
            return Filtered(
                f"{where} stopped the prompt by its content filter: {words}"
            )
        status = getattr(error, "status_code", None)
        if status is None:
            return Rejected(
                f"litellm could not send the request to {where}: {error_name}: {words}"
            )
        body = getattr(error, "body", None)
        headers = _headers(
            getattr(error, "litellm_response_headers", None)
        ) or _headers(getattr(getattr(error, "response", None), "headers", None))
        codes = (
            {str(body[name]) for name in ("code", "type") if body.get(name)}
            if isinstance(body, Mapping)
            else set()
        )
        if error_name == "ContextWindowExceededError":
            codes.add("context_length_exceeded")
        return error_for(
            where,
            status if isinstance(status, int) and 400 <= status < 600 else 500,
            words,
            codes=frozenset(codes),
            key_source=self._settings.key_source,
            rate_limits=parse_rate_limits(headers),
            retry_after=parse_retry_after(
                {name.decode(): content.decode() for name, content in headers}
            ),
        )


def _check_extra(extra: dict[str, Any]) -> dict[str, Any]:
    """Check the argument `extra`.

    It may not name anything that has an argument of our own, may hold a key or would break the
    record.
    """
    for name in extra:
        if _OWN_ARGUMENTS.fullmatch(name):
            why = (
                "has an argument of its own: use -M base_url, api_key_env,"
                " max_attempts, or the one of that name"
            )
        elif _FORBIDDEN_ARGUMENTS.fullmatch(name):
            why = "cannot be given: it would change what a single answer is"
        elif is_secret(name) or name in _MAY_HOLD_SECRETS:
            why = (
                "may contain a key, which would be written to the record: set it in the"
                " environment"
            )
        else:
            continue
        raise ConfigurationError(f"extra.{name} {why}.")
    return extra


def _headers(headers: Any) -> list[tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, Mapping) else ()
    return [
        (str(name).lower().encode(), str(content).encode()) for name, content in pairs
    ]


@cache
def _import_library() -> Any:
    """Import the library, with everything off that it would do by itself.

    Raises:
        MissingExtra: it is not installed.
    """
    for name in (
        "ANTHROPIC_BETA_HEADERS",
        "AUTOROUTER_PRESETS",
        "BLOG_POSTS",
        "MODEL_COST_MAP",
        "POLICY_TEMPLATES",
    ):
        os.environ.setdefault(f"LITELLM_LOCAL_{name}", "True")
    # otherwise it copies a `.env` file into the environment
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library: Any = importlib.import_module("litellm")
    except ImportError:
        raise MissingExtra("A model of 'litellm'", "litellm", "litellm") from None
    for name in ("telemetry", "drop_params", "modify_params", "set_verbose"):
        setattr(library, name, False)
    library.num_retries = library.cache = None
    library.suppress_debug_info = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    remember_environment()  # its messages may repeat any key that it finds in the environment
    return library
