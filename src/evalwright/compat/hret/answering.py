"""How a row of a call is answered: a strategy of ours, or a scaling method of a user, and what is
written into the row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from evalwright import Answer, Ask, Failure, RequestFailed, Response, Reward, Sample
from evalwright.compat.hret.call import REWARD, Call
from evalwright.compat.hret.native import AS_IT_LIKES
from evalwright.compat.hret.plugins import ID, matched
from evalwright.compat.hret.replies import asked_for, replied
from evalwright.compat.hret.row_ask import RowAsk
from evalwright.compat.hret.row_samples import (
    ROW,
    RowPrompt,
    Rows,
    input_of,
    plain,
    prompt_of,
)
from evalwright.compat.hret.scaling import draws_before
from evalwright.extend import TARGET, Ability, Request, Strategy

_DRAWS = 1000
"""More than a scaling method asks for one prompt: a row with the same prompt has draws of its own.
"""


class RowAnswer:
    """An answer to a row, with what plug-ins changed in the row; HRET's and ours derive from it."""

    def __init__(self, call: Call, inner: Strategy) -> None:
        self.call = call
        self.inner = inner
        self.needs = inner.needs
        needed: Mapping[str, frozenset[Ability]] = getattr(inner, "roles", {})
        self.roles = {role: able for role, able in needed.items() if role in call.roles}

    def visible(self, row: dict[str, Any]) -> dict[str, Any]:
        """What the model is shown of a row."""
        return row

    async def form(self, sample: Sample, ask: RowAsk, draw: int) -> Answer:
        """The answer of the strategy."""
        return await self.inner(sample, ask, draw)

    def added(self, answer: Answer, ask: RowAsk) -> dict[str, Any]:
        """What is written into the row besides the prediction."""
        raise NotImplementedError

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        row_ask = RowAsk(
            ask,
            sample,
            self.visible(dict(sample.row)),
            self.call.roles,
            extends=not isinstance(self.inner, UserScaling),
        )
        answer = await self.form(sample, row_ask, draw)
        added = self.added(answer, row_ask)
        if not added and ROW not in answer.strategy:
            return answer
        return replace(answer, strategy={**answer.strategy, ROW: added})


def fields_of_reply(call: Call, answer: Answer, ask: RowAsk) -> dict[str, Any]:
    """What the one reply of a row brings: fields of a plug-in, and a finish reason where HRET
    writes it.
    """
    added = {**plain(ask.reply_fields), **dict(answer.strategy.get(ROW, {}))}
    if call.native is not None and call.native.tells_reason and answer.responses:
        added.setdefault("finish_reason", answer.responses[-1].finish_reason)
    return added


class UserScaling:
    """A scaling method of a user: `apply` of one sample, in a thread of its own; what it asks of
    its model goes through the engine. at_once: samples side by side.
    """

    needs: frozenset[Ability] = frozenset({"generate"})
    roles: Mapping[str, frozenset[Ability]] = {REWARD: frozenset({"reward"})}

    def __init__(self, call: Call, at_once: int) -> None:
        self._call = call
        # Threads that wait for replies are not those that the loop needs for its own work.
        self._threads = ThreadPoolExecutor(at_once, "evalwright-scaling")

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        loop = asyncio.get_running_loop()
        first = draws_before(sample) * _DRAWS
        model = AskedModel(ask, loop, prompt_of(sample), first)
        scaler = type(self._call.scaler)(model=model, **self._call.scaling_params)
        row = {**sample.row, ID: 0}
        returned = await loop.run_in_executor(
            self._threads, copy_context().run, scaler.apply, [row]
        )
        sample_fields = matched(list(returned), 1)[0]
        if sample_fields is None:
            why = "The scaling method returned no sample for this one."
            raise RequestFailed(Failure("bad reply", "model", why))
        text = sample_fields.pop("prediction", "")
        added = {
            key: value for key, value in sample_fields.items() if key not in sample.row
        }
        if not isinstance(text, str):
            added["prediction"] = text
        strategy = {ROW: plain(added)} if added else {}
        answer_text = "" if text is None else str(text)
        return Answer(
            answer_text,
            prompt=sample.input,
            responses=tuple(model.responses),
            strategy=strategy,
        )


class AskedModel:
    """The model that a scaling method of a user is given: every request goes through the engine,
    and so is stored and paid once.
    """

    def __init__(
        self,
        ask: Ask,
        loop: asyncio.AbstractEventLoop,
        prompt: RowPrompt,
        first: int,
    ) -> None:
        self._ask = ask
        self._loop = loop
        self._prompt = prompt
        self._first = first
        self._draws: dict[str, int] = {}
        self.responses: list[Response] = []

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The inputs with `prediction`, and `logits` where they were asked for.

        A prompt asked again is another draw.
        """
        sampling = replace(
            AS_IT_LIKES, **asked_for({"return_logits": return_logits, **kwargs})
        )
        requests = []
        for row in inputs:
            text = input_of(row)
            draw = self._draws[text] = self._draws.get(text, self._first - 1) + 1
            requests.append(sampling.request(self._marked(text), draw))
        responses = self._ask_all(TARGET, requests)
        self.responses += responses
        return [
            replied(row, response)
            for row, response in zip(inputs, responses, strict=True)
        ]

    def _marked(self, text: str) -> str:
        """A user's method sends texts: one that begins with the row's is the row's own."""
        if not text.startswith(self._prompt.row_text):
            return text
        return self._prompt + text[len(self._prompt.row_text) :]

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with `reward`."""
        requests = [
            Reward(input_of(row), str(row.get("prediction") or "")) for row in inputs
        ]
        responses = self._ask_all(REWARD, requests)
        return [
            {**row, "reward": reply.values[0]}
            for row, reply in zip(inputs, responses, strict=True)
        ]

    def _ask_all(self, role: str, requests: Sequence[Request]) -> list[Response]:
        async def every() -> list[Response]:
            return await asyncio.gather(
                *(self._ask(role, request) for request in requests)
            )

        return asyncio.run_coroutine_threadsafe(every(), self._loop).result()
