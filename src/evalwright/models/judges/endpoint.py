"""Base of models behind one HTTP address that answers each request with numbers.

Vectara's judge and reward servers use it.
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
from evalwright.models.model_interface import Pacing, RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.keys import find_key, is_local, key_variables, missing_key


class Endpoint(RemoteModel):
    """A model behind one HTTP address.

    A subclass defines how a request is sent (`_call`) and what a reply means (`_values`).

    Args:
        name: the model's name.
        model: the model id to send.
        base_url: the server.
        identity: what decides the values; recorded, and part of the fingerprint.
        api_key_env: the variable that holds the API key.
        pacing: how requests are paced.
        header: the header for the key, and the text before the key.
        own_key: the variable that holds the provider's own key, which is sent only to the
            provider's address.
        official: whether `base_url` is the provider's address.
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
        """Build the call to send.

        Raises:
            Rejected: the request cannot be sent.
        """

    @abstractmethod
    def _values(self, data: Mapping[str, Any]) -> tuple[float, ...] | str:
        """Return the values in a reply, or a description of what was expected."""

    def describe(self) -> dict[str, Any]:
        """Describe address, model and arguments; never a key."""
        return {
            **super().describe(),
            **self._identity,
            "key": self._key.source if self._key else "none",
        }

    def check(self) -> None:
        """Raise ConfigurationError if a key is needed and missing."""
        if missing := self._missing_key():
            raise ConfigurationError(missing)

    async def answer(self, request: Request) -> Response:
        """Send the request once."""
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
        """Return the message about a missing key; "" for a server on this machine."""
        if (
            self._key is not None
            or not (self._variables or self._own)
            or is_local(self.base_url)
        ):
            return ""
        description = f"The model '{self.name}' at {self.base_url}"
        return missing_key(self._variables, self._own, description, self.base_url)


def as_number(value: Any) -> float | None:
    """Return a number from JSON; None for anything else, including true and false."""
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )
