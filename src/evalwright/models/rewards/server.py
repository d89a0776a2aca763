"""`reward-server/<base URL>#<model>`: a reward model behind an HTTP endpoint.

    reward-server/http://localhost:8000#my-model                          POST /reward, see below
    reward-server/http://localhost:8000#my-model  -M protocol=pooling     a vLLM server

The protocol of `/reward` is {"model", "prompt", "response", "reference"?} -> {"reward": number};
the prompt is a text, or a list of messages with `role` and `content`. vLLM's protocols are those of
its documentation: /pooling and /classify take messages, /v1/score two texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, Rejected
from evalwright.core.requests import Ability, Reward
from evalwright.models import arguments
from evalwright.models.judges.endpoint import Endpoint, as_number
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import check_url
from evalwright.models.rewards.prompts import conversation, plain_prompt

PATHS = {
    "reward": "/reward",
    "pooling": "/pooling",
    "classify": "/classify",
    "score": "/v1/score",
}
"""The path of each protocol, below the base URL."""


EXPECTED = {
    "reward": "a number under reward",
    "score": "data[0].score",
    "classify": "probabilities under data[0].probs",
    "pooling": "data[0].data",
}
"""What a reply must have, by protocol."""


class RewardServer(Endpoint):
    """A reward model behind an HTTP endpoint; each request gets one reward.

    Args:
        protocol: reward (ours), pooling (the last number of the pooled output), classify (the
            probability of a class) or score (of a pair of texts).
        label: for classify, the index of the class.
        api_key_env: the variable with the key, sent as a bearer token.
        extra_body: added to every body.
        timeout, deadline, max_concurrency, max_attempts: as for other remote models.
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
        address = check_url(url).rstrip("/")
        self._protocol = arguments.one_of("protocol", protocol, tuple(PATHS))
        if self._protocol != "reward":
            address = address.removesuffix("/v1")
        if label is not None and self._protocol != "classify":
            raise ConfigurationError(
                "-M label has an effect with protocol=classify only: leave it out."
            )
        self._label = 0 if label is None else int(label)
        self._extra = arguments.mapping("extra_body", extra_body)
        label_setting = {"label": self._label} if self._protocol == "classify" else {}
        super().__init__(
            f"reward-server/{name}",
            model,
            address,
            {
                "provider": "reward-server",
                "protocol": self._protocol,
                "extra_body": self._extra,
                **label_setting,
            },
            api_key_env=api_key_env,
            pacing=arguments.pacing(timeout, deadline, max_concurrency, max_attempts),
        )

    def _call(self, request: Reward) -> Call:
        return Call(PATHS[self._protocol], {**self._body(request), **self._extra})

    def _values(self, data: Mapping[str, Any]) -> tuple[float, ...] | str:
        reward = self._value(data)
        probable = self._protocol != "classify" or reward is None or 0 <= reward <= 1
        return (
            EXPECTED[self._protocol]
            if reward is None or not math.isfinite(reward) or not probable
            else (reward,)
        )

    def _body(self, request: Reward) -> dict[str, Any]:
        model = {"model": self.model} if self.model else {}
        if self._protocol == "reward":
            prompt: Any = request.prompt
            if not isinstance(prompt, str):
                prompt = [{"role": turn.role, "content": turn.text} for turn in prompt]
            reference = (
                {} if request.reference is None else {"reference": request.reference}
            )
            return {
                **model,
                "prompt": prompt,
                "response": request.response,
                **reference,
            }
        if request.reference is not None:
            raise Rejected(
                f"The protocol '{self._protocol}' of '{self.name}' takes no reference:"
                " leave out `reference: true`."
            )
        if self._protocol == "score":
            return {
                **model,
                "text_1": plain_prompt(request.prompt),
                "text_2": request.response,
            }
        turns = conversation(request.prompt, request.response)
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        return {**model, "messages": messages, "add_generation_prompt": False}

    def _value(self, data: Mapping[str, Any]) -> float | None:
        if self._protocol == "reward":
            return as_number(data.get("reward"))
        rows = data.get("data")
        first = rows[0] if isinstance(rows, list) and len(rows) == 1 else None
        if not isinstance(first, Mapping):
            return None
        if self._protocol == "score":
            return as_number(first.get("score"))
        numbers = first.get("probs" if self._protocol == "classify" else "data")
        index = self._label if self._protocol == "classify" else -1
        while isinstance(numbers, list) and len(numbers) > max(index, 0):
            # pooled per token: the last number of the last token
            numbers = numbers[index]
            index = -1
        return as_number(numbers)
