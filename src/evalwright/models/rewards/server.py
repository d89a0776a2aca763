"""`reward-server/<base URL>#<model>`: a reward model behind an HTTP endpoint.

    reward-server/http://localhost:8000#my-model                          POST /reward, the protocol below
    reward-server/http://localhost:8000#my-model  -M protocol=pooling     a server of vLLM: /pooling, /classify or /v1/score

The protocol of `/reward` is {"model", "prompt", "response", "reference"?} -> {"reward": number}; the prompt is a text, or a list of messages with
`role` and `content`. vLLM's forms are those of its documentation: /pooling and /classify take messages, /v1/score two texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import AuthenticationFailed, ConfigurationError, Rejected
from evalwright.core.requests import Ability, Request, Reward
from evalwright.core.responses import Response, Usage
from evalwright.models import arguments
from evalwright.models.base import RemoteModel, fingerprint_of
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http import HttpClient, check_url
from evalwright.models.remote.http_faults import bad_reply
from evalwright.models.remote.keys import find_key, is_local, key_variables, missing_key
from evalwright.models.rewards.local import conversation, plain_prompt

PATHS = {"reward": "/reward", "pooling": "/pooling", "classify": "/classify", "score": "/v1/score"}
"""Where each protocol is asked, below the base URL."""


class RewardServer(RemoteModel):
    """A reward per request.

    protocol: reward (ours), pooling (the last number of the pooled output), classify (the probability of a class) or score (of a pair of texts).
    label: of classify, the class's place. api_key_env: the variable with the key, sent as a bearer token. extra_body: added to every
    body. timeout, deadline, max_concurrency, max_attempts: as for other remote models.
    """

    abilities: frozenset[Ability] = frozenset({"reward"})

    def __init__(
        self,
        name: str,
        *,
        protocol: str = "reward",
        label: int | None = None,
        api_key_env: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        deadline: float = 600.0,
        max_concurrency: int = 32,
        max_attempts: int = 10,
    ) -> None:
        url, _, model = name.partition("#")
        self.name = f"reward-server/{name}"
        self.base_url = check_url(url).rstrip("/")
        self.model = model
        self._protocol = arguments.one_of("protocol", protocol, tuple(PATHS))
        if self._protocol != "reward":
            self.base_url = self.base_url.removesuffix("/v1")
        if label is not None and self._protocol != "classify":
            raise ConfigurationError("-M label has an effect with protocol=classify only: leave it out.")
        self._label = 0 if label is None else int(label)
        self._extra = arguments.mapping("extra_body", extra_body)
        named = arguments.text("api_key_env", api_key_env)
        self._variables = key_variables(self.base_url, named, (), False)
        self._key = next(filter(None, map(find_key, self._variables)), None)
        paced = arguments.pacing(timeout, deadline, max_concurrency, max_attempts)
        self.pacing = replace(paced, start_concurrency=min(8, paced.max_concurrency))
        self.fingerprint = fingerprint_of(self._identity())
        headers = {"Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        self._client = HttpClient(
            self.base_url,
            headers=headers,
            max_connections=self.pacing.max_concurrency,
            timeout=self.pacing.timeout,
            key_source=self._key.source if self._key else "",
        )

    def describe(self) -> dict[str, Any]:
        """Endpoint, model and protocol; never a key."""
        return {**super().describe(), **self._identity(), "key": self._key.source if self._key else "none"}

    def check(self) -> None:
        """Raise ConfigurationError where a key is named and missing."""
        if self._variables and self._key is None and not is_local(self.base_url):
            raise ConfigurationError(self._missing_key())

    async def answer(self, request: Request) -> Response:
        """Send once."""
        if not isinstance(request, Reward):
            raise Rejected(f"'{self.name}' gives rewards; it cannot do '{request.ability}'.")
        if self._variables and self._key is None and not is_local(self.base_url):
            raise AuthenticationFailed(self._missing_key())
        reply = await self._client.send(Call(PATHS[self._protocol], {**self._body(request), **self._extra}))
        value = self._value(reply.data)
        probable = self._protocol != "classify" or value is None or 0 <= value <= 1
        if value is None or not math.isfinite(value) or not probable:
            wanted = {
                "reward": "a number under reward",
                "score": "data[0].score",
                "classify": "probabilities under data[0].probs",
                "pooling": "data[0].data",
            }
            said = json.dumps(reply.data, ensure_ascii=False)
            raise bad_reply(self._client.where, wanted[self._protocol], said)
        return Response(
            values=(value,),
            usage=_usage(reply),
            latency=reply.seconds,
            model=self.model,
            rate_limits=reply.rate_limits,
        )

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    def _body(self, request: Reward) -> dict[str, Any]:
        model = {"model": self.model} if self.model else {}
        if self._protocol == "reward":
            prompt: Any = request.prompt
            if not isinstance(prompt, str):
                prompt = [{"role": turn.role, "content": turn.text} for turn in prompt]
            reference = {} if request.reference is None else {"reference": request.reference}
            return {**model, "prompt": prompt, "response": request.response, **reference}
        if request.reference is not None:
            raise Rejected(
                f"The protocol '{self._protocol}' of '{self.name}' takes no reference: leave out `reference: true`."
            )
        if self._protocol == "score":
            return {**model, "text_1": plain_prompt(request.prompt), "text_2": request.response}
        turns = conversation(request.prompt, request.response)
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        return {**model, "messages": messages, "add_generation_prompt": False}

    def _value(self, data: Any) -> float | None:
        if self._protocol == "reward":
            return _number(data.get("reward")) if isinstance(data, Mapping) else None
        items = data.get("data") if isinstance(data, Mapping) else None
        first = items[0] if isinstance(items, list) and len(items) == 1 else None
        if not isinstance(first, Mapping):
            return None
        if self._protocol == "score":
            return _number(first.get("score"))
        found = first.get("probs" if self._protocol == "classify" else "data")
        place = self._label if self._protocol == "classify" else -1
        while isinstance(found, list) and len(found) > max(place, 0):
            found, place = found[place], -1  # pooled over tokens: the last number of the last
        return _number(found)

    def _missing_key(self) -> str:
        return missing_key(self._variables, (), f"The model '{self.name}' at {self.base_url}", self.base_url)

    def _identity(self) -> dict[str, Any]:
        told = {"label": self._label} if self._protocol == "classify" else {}
        return {
            "provider": "reward-server",
            "base_url": self.base_url,
            "model": self.model,
            "protocol": self._protocol,
            "extra_body": self._extra,
            **told,
        }


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _usage(reply: Reply) -> Usage:
    used = reply.data.get("usage") if isinstance(reply.data, Mapping) else None
    tokens = used.get("prompt_tokens") if isinstance(used, Mapping) else None
    return Usage(input_tokens=tokens if isinstance(tokens, int) and 0 <= tokens < 1 << 40 else 0)
