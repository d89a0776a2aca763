"""A model behind one HTTP address that answers each request with values: what Vectara's judge and
reward servers share.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, Rejected
from evalwright.core.requests import Request
from evalwright.core.responses import Response, Usage
from evalwright.models import arguments
from evalwright.models.base import Pacing, RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.keys import find_key, is_local, key_variables, missing_key


class Endpoint(RemoteModel):
    """A subclass says how a request is sent (`_call`) and what a reply means (`_values`).

    identity: what decides the values; recorded, and the fingerprint is made of it. own_key: the
    variable of the provider's own key, which goes to the address of the provider alone (official).
    header: what carries the key, and what stands before it.
    """

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        identity: Mapping[str, Any],
        *,
        api_key_env: str | None,
        pacing: Pacing,
        header: tuple[str, str] = ("Authorization", "Bearer "),
        own_key: str = "",
        official: bool = False,
    ) -> None:
        self.name = name
        self.model = model
        self.base_url = base_url
        self._identity = {"base_url": base_url, "model": model, **identity}
        self.fingerprint = fingerprint_of(self._identity)
        self._own = (own_key,) if own_key else ()
        named = arguments.text("api_key_env", api_key_env)
        self._variables = key_variables(base_url, named, self._own, official)
        self._key = next(filter(None, map(find_key, self._variables)), None)
        self.pacing = replace(pacing, start_concurrency=min(8, pacing.max_concurrency))
        headers = {"Accept": "application/json"}
        if self._key is not None:
            headers[header[0]] = header[1] + self._key.reveal()
        self._client = HttpClient(
            base_url,
            headers=headers,
            max_connections=pacing.max_concurrency,
            timeout=pacing.timeout,
            key_source=self._key.source if self._key else "",
        )

    @abstractmethod
    def _call(self, request: Any) -> Call:
        """What is sent. Raises Rejected where it cannot be."""

    @abstractmethod
    def _values(self, data: Mapping[str, Any]) -> tuple[float, ...] | str:
        """The values of a reply, or what was expected in it."""

    def describe(self) -> dict[str, Any]:
        """Address, model and arguments; never a key."""
        return {
            **super().describe(),
            **self._identity,
            "key": self._key.source if self._key else "none",
        }

    def check(self) -> None:
        """Raise ConfigurationError where a key is needed and missing."""
        if missing := self._missing_key():
            raise ConfigurationError(missing)

    async def answer(self, request: Request) -> Response:
        """Send once."""
        if request.ability not in self.abilities:
            raise Rejected(f"'{self.name}' cannot do '{request.ability}'.")
        if missing := self._missing_key():
            raise AuthenticationFailed(missing)
        reply = await self._client.send(self._call(request))
        values = self._values(reply.data if isinstance(reply.data, dict) else {})
        if isinstance(values, str):
            raise bad_reply(
                self._client.where, values, json.dumps(reply.data, ensure_ascii=False)
            )
        used = reply.data.get("usage")
        tokens = used.get("prompt_tokens") if isinstance(used, Mapping) else None
        return Response(
            values=values,
            usage=Usage(
                input_tokens=(
                    tokens if isinstance(tokens, int) and 0 <= tokens < 1 << 40 else 0
                )
            ),
            latency=reply.seconds,
            model=self.model,
            rate_limits=reply.rate_limits,
        )

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    def _missing_key(self) -> str:
        """What is said of a key that is needed and not there; nothing on this machine."""
        if (
            self._key is not None
            or not (self._variables or self._own)
            or is_local(self.base_url)
        ):
            return ""
        what = f"The model '{self.name}' at {self.base_url}"
        return missing_key(self._variables, self._own, what, self.base_url)


def as_number(value: Any) -> float | None:
    """A number of JSON; true and false are none."""
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )
