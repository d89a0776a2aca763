"""A model of a remote provider: `<provider>/<model>`, for every row of the table of providers.

    deepseek/deepseek-chat                           the provider's own address and key
    anthropic/claude-sonnet-4-5  -M thinking=on      a switch that the row describes
    mistral/http://localhost:8000/v1#mistral-small   another server with the same interface

The row says where the provider is and which interface it has, `wire/` how a request is written and
a reply is read. This file decides what is sent where, with which key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    Rejected,
    RequestError,
    UsageError,
)
from evalwright.core.requests import Ability, Embed, Generate, Request, images_of
from evalwright.core.responses import Response
from evalwright.core.secrets import (
    changing_headers,
    mask,
    masked_arguments,
    remember_variable,
    remember_within,
    remember_within_address,
    without_login,
)
from evalwright.models import arguments
from evalwright.models.model_interface import RemoteModel, fingerprint_of
from evalwright.models.remote import carrying
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import HttpClient, basic_authorization, check_url
from evalwright.models.remote.keys import (
    Secret,
    find_key,
    is_local,
    key_variables,
    missing_key,
    read_env_file,
)
from evalwright.models.remote.logins import (
    Login,
    host_of,
    login_of,
    region_of,
    require_botocore,
)
from evalwright.models.remote.polling import follow_job
from evalwright.models.remote.prices import price_of, warn_if_old
from evalwright.models.remote.providers import (
    Provider,
    apply_rules,
    is_at,
    is_packaged,
    may_have_keys,
)
from evalwright.models.remote.providers.provider_rows import TOKENS_FIELDS
from evalwright.models.remote.wire import wire as wire_of
from evalwright.models.remote.wire.format import (
    Settings,
    TokensField,
    limit_within,
    merge_bodies,
)
from evalwright.models.reply_names import NameRule, accepted_names, rule_for

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_ADDRESS = re.compile(r"(https?|s?ftps?|file|wss?|unix|tcp|grpcs?):/", re.IGNORECASE)
"""The beginning of a base URL, usable or not.

A model's name may also contain "://": Yandex's are gpt://folder/model.
"""
_API_VERSION = re.compile(r"api-version=([\w.-]+)")


class ApiModel(RemoteModel):
    """A model behind a provider's API. The arguments are described in docs/models.md.

    A missing key is reported by `check`, so that answers from the store need none.

    Raises:
        ConfigurationError: an argument cannot be used.
    """

    _ignored_url_variable = ""
    resolves_names = False
    """Whether any model name in replies is accepted from the first reply on, at any address."""

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        interface: str | None = None,
        max_tokens: int | None = None,
        max_tokens_field: str = "auto",
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        top_k: int | None = None,
        min_p: float | None = None,
        thinking: str | int | bool | None = None,
        reasoning_effort: str | bool | None = "",
        stream: bool | None = None,
        extra_body: Mapping[str, Any] | str | None = None,
        headers: Mapping[str, str] | str | None = None,
        variables: Mapping[str, str] | str | None = None,
        timeout: float = 300.0,
        deadline: float = 1800.0,
        max_concurrency: int | None = None,
        max_attempts: int = 10,
        requests_per_minute: float | None = None,
        answers_as: str | list[str] | None = None,
        revision: str | None = None,
    ) -> None:
        written = model if revision is None else f"{model}@{revision}"
        self.name = f"{provider.name}/{written}"
        self._variables = arguments.mapping("variables", variables)
        self.base_url, plain, self._login, shape = self._place(
            provider, written, arguments.text("base_url", base_url)
        )
        self.official = is_at(provider, self.base_url)
        placed = base_url is not None or _ADDRESS.match(written) is not None
        self._is_own = not placed or may_have_keys(provider, self.base_url)
        if provider.any_server and not self.official:
            provider = replace(provider, models=())
        self.provider = apply_rules(provider, plain)
        self.model = (
            plain if "/" in plain else self.provider.model.replace("{model}", plain)
        )
        self.wire = wire_of(self._interface(interface, shape))
        self.interface = self.wire.name.removeprefix("openai-")
        if self.wire.model_in_path:
            arguments.refuse_dot_segments(self.name, self.model)
        self._key_named = arguments.text("api_key_env", api_key_env)
        self._key = self._find_key()
        self._credentials = self._find_login()
        self._headers = arguments.headers("headers", headers)
        effort_levels = carrying.levels(self.provider.thinking, self.wire.name)
        is_off = reasoning_effort in (False, "off") and "off" not in effort_levels
        self._sends_no_effort = reasoning_effort is None or is_off
        effort = carrying.level_word(reasoning_effort)
        effort = None if is_off else effort or None
        thinking = carrying.one_level(
            thinking, arguments.text("reasoning_effort", effort)
        )
        self._thinking_given = thinking is not None
        self._thinking = carrying.thinking_fields(
            thinking, self.provider, self.wire, self.name
        )
        self._refuse_what_the_wire_lacks(
            stream, temperature=temperature, top_p=top_p, seed=seed
        )
        if "embed" in self.wire.abilities:
            self._refuse_what_the_wire_lacks(
                None, max_tokens=max_tokens, thinking=self._thinking or None
            )
        self._overrides = arguments.extra_body(extra_body)
        self._stream_wanted = arguments.flag("stream", stream)
        self.settings = Settings(
            model=self.model,
            where=urlsplit(self.base_url).netloc,
            tokens_field=self._tokens_field(max_tokens_field),
            system_field=self.provider.system_field,
            max_tokens=arguments.whole_number("max_tokens", max_tokens),
            temperature=arguments.number("temperature", temperature),
            top_p=arguments.number("top_p", top_p),
            seed=arguments.whole_number("seed", seed, low=None),
            refuses=self.wire.lacks.union(
                self.provider.refuses, self._thinking.get("refuses", ())
            ),
            reasoning_fields=self.provider.reasoning_fields,
            extra_body=self._body_with(self._thinking),
            most_stops=self.provider.most_stops,
            stream=self._streams(self._thinking),
            key_source=self._key_source(),
            cost_field=self.provider.cost_field,
            variables=self._path_variables(),
            base_url=self.base_url,
            returns=self.provider.returns,
            raw_arguments=self.provider.raw_arguments and self.official,
            # At other addresses the rules for models' names do not hold.
            reasons=bool(effort_levels)
            and (self.official or not self.provider.any_server),
        )
        self.names_cost = bool(self.provider.cost_field)
        most = self.provider.max_concurrency
        paced = (
            timeout,
            deadline,
            max_concurrency,
            max_attempts,
            most,
            requests_per_minute,
        )
        self.pacing = arguments.pacing(*paced)
        samplers = {
            "top_k": arguments.whole_number("top_k", top_k),
            "min_p": arguments.number("min_p", min_p),
        }
        self._samplers = {
            name: value for name, value in samplers.items() if value is not None
        }
        self.abilities = self._abilities()
        self.carries = carrying.supported_options(
            self.provider,
            self.wire,
            own_server=provider.any_server and not self.official,
        )
        # the user removed it, as for a gateway that refuses the field
        if self._sends_no_effort:
            self.carries -= {"reasoning_effort"}
        for name in self._samplers:
            if name not in self.carries:
                raise ConfigurationError(self.cannot_carry(name))
        self._accepted_names = accepted_names(answers_as)
        self.fingerprint = fingerprint_of(self._identity())
        # A price of the package's table is for the provider's own address; a user's own price is
        # for any address.
        prices = (
            price_of(provider.name, name, packaged=self.official)
            for name in (plain, self.model)
        )
        self.price = next(filter(None, prices), None)
        self.client = self._make_client(self.pacing.timeout)
        self._key_missing = self._lacks_key()

    @property
    def name(self) -> str:
        """The name as it was written, without credentials or known secrets."""
        return self._name

    @name.setter
    def name(self, written: str) -> None:
        remember_within_address(written)
        self._name = mask(without_login(written))

    def describe(self) -> dict[str, Any]:
        """Describe endpoint, interface and arguments; headers by name only, never a key."""
        return {
            **super().describe(),
            **masked_arguments(self._identity()),
            "headers": sorted(self._headers),
            "key": self._key_source() or "none",
            **(
                {"answers_as": list(self._accepted_names)}
                if self._accepted_names
                else {}
            ),
            **({"price": self.price.as_dict()} if self.price else {}),
        }

    def name_rule(self) -> NameRule:
        """Return the rule for model names in replies.

        A provider may resolve names at its own hosts, and so may a server that lists its models.
        """
        resolves = self.provider.names_itself or (
            self.official and not is_local(self.base_url)
        )
        return rule_for(
            self.model,
            self.base_url,
            resolves=resolves or self.resolves_names,
            accepted=self._accepted_names,
            body=dict(self.settings.extra_body),
        )

    def check(self) -> None:
        """Raise ConfigurationError if a required key or login is missing."""
        if self._credentials is not None and not is_local(self.base_url):
            self._credentials.check()
        if self.settings.stream and self.wire.decoding == "aws":
            require_botocore(f"A streamed answer of '{self.name}'")
        if self._key_missing:
            raise ConfigurationError(self._missing_key())
        if self._ignored_url_variable:
            raise ConfigurationError(
                f"The address {self._ignored_url_variable} in .env is not used, because a .env file"
                f" gives keys only: '{self.name}' would be asked at {self.base_url}."
                f" Export {self._ignored_url_variable}, or name the address with"
                " -M base_url=ADDRESS."
            )

    async def answer(self, request: Request) -> Response:
        """Send the request once."""
        if request.ability not in self.abilities:
            raise Rejected(self._why_not(request.ability))
        self.ready()
        assert isinstance(request, Generate | Embed)
        request = (
            self._with_defaults(request) if isinstance(request, Generate) else request
        )
        settings = self._settings_of(request)
        call = self.wire.build(request, settings)
        try:
            reply = await self.client.send(call)
            if self.wire.polling is not None:
                reply = await follow_job(
                    self.client, self.wire.polling, reply, settings
                )
            return self._priced(self.wire.read(reply, request, settings))
        except RequestError as error:
            self._settle(error, request, settings)
            raise

    def _settle(
        self, error: RequestError, request: Generate | Embed, settings: Settings
    ) -> None:
        """Add to an error the usage that the reply states.

        A broken stream counts only if its answer had ended.
        """
        if error.usage is None and error.reply is not None:
            payload, final = error.reply
            with suppress(RequestError):
                if final or self.wire.parse(payload, request, settings).finish:
                    self.wire.settle(error, payload, settings)
        error.reply = None

    def most_tokens(self, request: Request) -> int | None:
        """Return the token limit that is sent, wherever the format has it, thinking included."""
        if not isinstance(request, Generate):
            return super().most_tokens(request)
        try:
            return limit_within(self.body(request))
        except RequestError:
            return 0  # the request will not be sent

    def ready(self) -> None:
        """Raise AuthenticationFailed if a required key is missing."""
        if self._key_missing:
            raise AuthenticationFailed(self._missing_key())

    def body(self, request: Generate) -> dict[str, Any]:
        """Build the body of a request, for interfaces that take many at once."""
        call = self.wire.build(
            self._with_defaults(request), self._settings_of(request), unstreamed=True
        )
        body: dict[str, Any] = call.payload
        return body

    def read(
        self, reply: Reply, request: Generate, *, batched: bool = False
    ) -> Response:
        """Read the response in a reply to `body`; `batched` means that it has a batch's price."""
        settings = self._settings_of(request)
        return self._priced(
            self.wire.read(reply, self._with_defaults(request), settings),
            batched=batched,
        )

    async def close(self) -> None:
        """Release connections."""
        await self.client.close()

    def _priced(self, response: Response, *, batched: bool = False) -> Response:
        """Add the cost to a response, if a price is known and tokens were counted."""
        if self.price is None or response.cost is not None or not response.counted:
            return response
        warn_if_old(self.price)
        return replace(response, cost=self.price.cost(response.usage, batched=batched))

    def _with_defaults(self, request: Generate) -> Generate:
        """Fill in a request's defaults.

        They are the provider's own, its least temperature, and the user's top_k and min_p.
        """
        defaults = self.provider.defaults
        least = self.provider.least_temperature
        if not defaults and least is None and not self._samplers:
            return request
        temperature = request.temperature
        changed = {
            name: value
            for name, value in defaults.items()
            if getattr(request, name) is None
        }
        if least is not None and temperature is not None and temperature < least:
            changed["temperature"] = least
        changed |= self._samplers
        return replace(request, **changed) if changed else request

    def _why_not(self, ability: Ability) -> str:
        hint = (
            " For a model of embeddings add interface=embeddings."
            if ability == "embed"
            else ""
        )
        return (
            f"'{self.name}' cannot do '{ability}'; it can do:"
            f" {', '.join(sorted(self.abilities))}.{hint}"
        )

    def _abilities(self) -> frozenset[Ability]:
        return self.wire.abilities

    def _tokens_field(self, field_name: str) -> TokensField:
        if field_name != "auto" and not self.wire.names_limit:
            raise ConfigurationError(
                f"The token limit has only one name in the interface of '{self.name}'"
                f" ({self.wire.name}): leave out max_tokens_field."
            )
        resolved = self.provider.tokens_field if field_name == "auto" else field_name
        return cast(
            TokensField, arguments.one_of("max_tokens_field", resolved, TOKENS_FIELDS)
        )

    def _streams(self, switch: Mapping[str, Any]) -> bool:
        """Return whether answers are streamed: as the user says, else as the model needs it."""
        requested = self._stream_wanted
        return (
            bool(switch.get("stream", self.provider.stream))
            if requested is None
            else requested
        )

    def _body_with(self, switch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields merged into each body: of the row, a thinking level, the user."""
        return merge_bodies(
            merge_bodies(self.provider.extra_body, switch.get("body", {})),
            self._overrides,
        )

    def _settings_of(self, request: Generate | Embed) -> Settings:
        """Return the settings with the request's thinking level, unless -M thinking sets one."""
        settings = self.settings
        level = carrying.level_of(request)
        if level is not None and not self._thinking_given:
            switch = carrying.thinking_fields(
                level, self.provider, self.wire, self.name
            )
            settings = replace(
                settings,
                refuses=self.wire.lacks.union(
                    self.provider.refuses, switch.get("refuses", ())
                ),
                extra_body=self._body_with(switch),
                stream=self._streams(switch),
            )
        return carrying.with_prefill_fields(request, settings, self.provider)

    def refuses(self, request: Request) -> str | None:
        """Refuse as every model does, and values that the format or the model does not support."""
        why = super().refuses(request)
        if why is not None or not isinstance(request, Generate):
            return why
        if not request.options() and not images_of(request):
            return None
        why = carrying.describe_unsupported(
            request, self.wire, self.provider, self.name
        )
        if why is not None:
            return why
        try:
            refused = self._settings_of(request).refuses
        except UsageError as error:
            return f"'{self.name}' does not take this reasoning_effort: {error}"
        silent = (
            carrying.not_without_temperature(request)
            if "temperature" in refused
            else None
        )
        return (
            silent
            and f"'{self.name}' takes neither a temperature nor {silent} (at least with"
            " these arguments): leave it out."
        )

    def _refuse_what_the_wire_lacks(
        self, stream: bool | None, **options: object
    ) -> None:
        """Raise ConfigurationError for an argument that this wire format cannot express."""
        if stream and self.wire.gather is None:
            raise ConfigurationError(
                f"'{self.name}' cannot stream its answers: leave out stream."
            )
        for name, value in options.items():
            if value is not None and (name in self.wire.lacks or name == "thinking"):
                raise ConfigurationError(
                    f"'{self.name}' does not take {name}: its interface"
                    f" ({self.wire.name}) has none. Leave it out."
                )

    def _identity(self) -> dict[str, Any]:
        """Return everything that can change an answer, for the fingerprint and the record."""
        settings = self.settings
        options = {
            "max_tokens": settings.max_tokens,
            "max_tokens_field": settings.tokens_field,
            "system_field": (
                None
                if settings.system_field == "system_prompt"
                else settings.system_field
            ),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            "extra_body": dict(settings.extra_body) or None,
            "defaults": dict(self.provider.defaults) or None,
            "refuses": sorted(settings.refuses) or None,
            "least_temperature": self.provider.least_temperature,
            "variables": dict(settings.variables) or None,
            "headers": changing_headers(self._headers) or None,
            **self._samplers,
            **self._more_identity(),
        }
        return {
            "provider": self.provider.name,
            "base_url": self.base_url,
            "model": self.model,
            "interface": self.interface,
            "arguments": {
                name: value for name, value in options.items() if value is not None
            },
        }

    def _more_identity(self) -> Mapping[str, Any]:
        return {}

    def _interface(self, chosen: str | None, shape: str | None) -> str:
        """Return the wire format named by an argument, the end of the URL or the row."""
        formats = {
            wire.removeprefix("openai-"): wire
            for wire in carrying.formats(self.provider)
        }
        if chosen is None:
            return shape or self.provider.wires[0]
        return formats[
            arguments.one_of(
                "interface", chosen.removeprefix("openai-"), tuple(formats)
            )
        ]

    def _key_variables(self) -> tuple[str, ...]:
        return key_variables(
            self.base_url, self._key_named, self.provider.key, self._is_own
        )

    def _missing_key(self) -> str:
        subject = f"The model '{self.name}' at {self.base_url}"
        return missing_key(
            self._key_variables(), self.provider.key, subject, self.base_url
        )

    def _lacks_key(self) -> bool:
        has_credentials = (self._key, self._login, self._credentials) != (
            None,
            None,
            None,
        )
        if has_credentials or self.provider.auth == "none":
            return False
        return bool(self._key_named) or (
            bool(self.provider.key) and not is_local(self.base_url)
        )

    def _find_key(self) -> Secret | None:
        """Return the key to send.

        A default key is never sent unencrypted over the internet unless the user named it.
        """
        if self._key_named is None and not (
            self.base_url.startswith("https:") or is_local(self.base_url)
        ):
            return None
        return next(filter(None, map(find_key, self._key_variables())), None)

    def _find_login(self) -> Login | None:
        """Return the credentials, if they are more than a key; by the same rule as for keys."""
        if self._key is not None or self._login is not None:
            return None
        if not (self.base_url.startswith("https:") or is_local(self.base_url)):
            return None
        if not self._is_own and not set(self._key_variables()) & set(self.provider.key):
            return None
        return login_of(self.provider.auth, self.base_url, self._variables)

    def _key_source(self) -> str:
        """Return where the key comes from, for messages and the record."""
        if self._key is not None:
            return self._key.source
        return self._credentials.source if self._credentials is not None else ""

    def _make_client(self, timeout: float, base_url: str | None = None) -> HttpClient:
        headers = dict(self.provider.headers)
        auth = self.provider.auth
        if self._login is not None:
            headers["Authorization"] = basic_authorization(self._login.reveal())
        elif self._key is not None and auth in ("bearer", "aws", "google"):
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        elif self._key is not None and auth.startswith("header:"):
            headers[auth.removeprefix("header:")] = self._key.reveal()
        return HttpClient(
            base_url or self.base_url,
            headers={**headers, **self._more_headers(), **self._headers},
            max_connections=self.pacing.max_concurrency,
            timeout=timeout,
            key_source=self.settings.key_source,
            sign=self._credentials.sign if self._credentials is not None else None,
            ready=self._credentials.ready if self._credentials is not None else None,
        )

    def _more_headers(self) -> Mapping[str, str]:
        return {}

    def _place(
        self, provider: Provider, written: str, base_url: str | None
    ) -> tuple[str, str, Secret | None, str | None]:
        """Return (base URL, model, login, wire format by the URL's end) from name and argument."""
        model = written
        if _ADDRESS.match(written):
            url, _, model = written.partition("#")
            if not model:
                raise ConfigurationError(
                    f"'{provider.name}/{without_login(written)}' does not name a model:"
                    " add it after '#', for example"
                    f" {provider.name}/http://localhost:8000/v1#my-model, or write"
                    f" {provider.name}/my-model with -M base_url=http://..."
                )
            if base_url is not None:
                raise ConfigurationError(
                    "The base URL is given twice: in the model's name and as base_url."
                )
            base_url = url
        url = check_url(self._default_url(provider) if base_url is None else base_url)
        remember_within_address(url)
        split_url = urlsplit(url)
        login = None
        if "@" in split_url.netloc:
            user, _, password = split_url.netloc.rpartition("@")[0].partition(":")
            remember_within(url)
            login = Secret(f"{unquote(user)}:{unquote(password)}", "the base URL")
        version = _API_VERSION.fullmatch(split_url.query)
        if version and "api_version" in provider.variables:
            self._variables.setdefault("api_version", version[1])
        elif split_url.query or split_url.fragment:
            raise ConfigurationError(
                "base_url must end with its path, without '?' or '#':"
                f" {split_url.hostname}."
            )
        path, shape = self._without_end(provider, split_url.path.rstrip("/"))
        clean = urlunsplit(
            (
                split_url.scheme,
                split_url.netloc.rpartition("@")[2].lower(),
                path,
                "",
                "",
            )
        )
        return clean, model, login, shape

    def _without_end(self, provider: Provider, path: str) -> tuple[str, str | None]:
        """Split off the end of a path that belongs to one of the row's formats, and name that."""
        # The longest end decides, because "/chat/completions" also ends in "/completions".
        formats = sorted(
            map(wire_of, carrying.formats(provider)), key=lambda wire: -len(wire.end)
        )
        for wire in formats:
            if wire.end and (match := re.search(f"{wire.end}$", path)):
                return path[: match.start()], wire.name
        return path, None

    def _path_variables(self) -> Mapping[str, str]:
        """Return the row's variables that are set and not part of its base URL, for paths."""
        names = set(self.provider.variables) - set(
            _PLACEHOLDER.findall(self.provider.base_url)
        )
        path_variables = {
            name: (
                self._variables.get(name)
                or os.environ.get(self.provider.variables[name])
            )
            for name in names
        }
        if not is_packaged(self.provider):
            for name, value in path_variables.items():
                remember_variable(name, self.provider.variables[name], str(value or ""))
        return {
            name: str(value) for name, value in sorted(path_variables.items()) if value
        }

    def _default_url(self, provider: Provider) -> str:
        """Return the row's base URL with its variables filled in, or that in its own variable."""
        if named := os.environ.get(provider.url_variable or ""):
            return named
        self._ignored_url_variable = (
            provider.url_variable
            if provider.url_variable in read_env_file(Path(".env"))
            else ""
        )

        def set_to(name: str) -> str:
            if name == "host" and provider.auth == "google":
                return host_of(set_to("location"))
            variable = str(provider.variables.get(name, name.upper()))
            variable_value = self._variables.get(name) or next(
                filter(None, map(os.environ.get, variable.split("|"))), None
            )
            if not variable_value and provider.auth == "aws" and name == "region":
                variable_value = region_of()
            if not variable_value:
                raise ConfigurationError(
                    f"The address of '{provider.name}' needs its {name}: set the"
                    f" environment variable {variable.split('|')[0]}, or give -M"
                    f" variables.{name}=... or the whole base_url."
                )
            text = str(variable_value)
            if not is_packaged(provider):
                for variable_name in variable.split("|"):
                    remember_variable(name, variable_name, text)
            return (
                text
                if text.startswith(("http://", "https://"))
                else quote(text, safe="-._~")
            )

        # Some users write a host with its scheme, which the row has already.
        return _PLACEHOLDER.sub(
            lambda match: set_to(match[1]), provider.base_url
        ).replace("https://https://", "https://")
