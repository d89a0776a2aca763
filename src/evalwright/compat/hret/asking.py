"""How one sample's requests reach a model: with the row for a plug-in, with HRET's parameters for a model of this package."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from evalwright.compat.hret.plugins import PluginModel, RowGenerate, RowReward
from evalwright.compat.hret.rows import ROW, input_of
from evalwright.compat.hret.settings import Given
from evalwright.core.asking import Ask, abilities_of, options_of
from evalwright.core.errors import DatasetError, Failure, RequestFailed
from evalwright.core.images import Image
from evalwright.core.private import home_folder, ordinary
from evalwright.core.requests import Ability, Generate, LogLikelihood, Message, Part, Prompt, Request, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Sample
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.evaluation.running import run_blocking
from evalwright.models.base import Model
from evalwright.strategies.generate import TARGET, Sampling
from evalwright.tasks.images import fetched

Made = TypeVar("Made")
Parser = Callable[[str], tuple[str, str]]
"""How a reply becomes (reasoning, answer)."""

AS_IT_LIKES = Sampling(temperature=None)


@dataclass(frozen=True)
class Native:
    """A model of this package in the place of one of HRET's.

    sampling: how text is drawn. one_call: whether settings of one call reach it (a limit of tokens, log-probabilities); HRET's back ends of
    web interfaces drop them. chat: whether prompts are messages. tells_reason: HRET writes the reply's finish reason into the sample.
    empty_reward: what an empty reply is worth, where that is not asked. by_options: a row with options is answered by the likelihood of
    each. read: what a reply is taken for. cot, trigger, parser: the chain of thought. lenient: an image that cannot be read is a sentence
    in the prompt, as in HRET; else the sample fails.
    """

    model: Model
    sampling: Sampling = AS_IT_LIKES
    one_call: bool = True
    tells_reason: bool = False
    chat: bool = False
    system: str = ""
    vision: bool = False
    lenient: bool = False
    by_options: bool = False
    read: Callable[[Response], Response] | None = None
    empty_reward: float | None = None
    cot: bool = False
    trigger: str | None = None
    parser: Parser | None = None


def model_of(part: Native | PluginModel) -> Model:
    """The engine's model."""
    return part.model if isinstance(part, Native) else part


class SampleDoor(Ask):
    """The door of one sample. row: its dict, whose images and options go with its own prompt and no other.

    found: what a plug-in changed in the row, when it was last asked about it; mutated: the same of the last draw, where it did so in place.
    """

    def __init__(
        self, ask: Ask, sample: Sample, row: dict[str, Any], models: Mapping[str, Native | PluginModel]
    ) -> None:
        self._ask, self._key, self._row, self._models = ask, sample.id, row, models
        self._text = input_of(row)
        self.found: dict[str, Any] = {}
        self.mutated: dict[str, Any] = {}
        self._last = 0

    def abilities(self, role: str) -> frozenset[Ability] | None:
        """As the door's; none for a role that no model plays."""
        return abilities_of(self._ask, role) if role in self._models else frozenset()

    def carries(self, role: str) -> frozenset[str]:
        """As the door's."""
        return options_of(self._ask, role)

    async def __call__(self, role: str, request: Request) -> Response:
        model = self._models.get(role)
        if isinstance(model, PluginModel):
            asked = self._with_row(request)
            response = await self._ask(role, asked)
            if not isinstance(asked, RowGenerate):
                self.found = {}
                return response
            self.found = asked.found
            if asked.mutated and asked.draw >= self._last and asked.row is self._row:
                self.mutated, self._last = asked.mutated, asked.draw
            return response
        if isinstance(model, Native) and isinstance(request, Generate):
            return await self._native(role, model, request)
        empty = model.empty_reward if isinstance(model, Native) else None
        if isinstance(request, Reward) and not request.response and empty is not None:
            return Response(values=(empty,))
        return await self._ask(role, request)

    def _with_row(self, request: Request) -> Request:
        if isinstance(request, Reward):
            row = {**self._row, "input": _text(request.prompt), "prediction": request.response}
            return RowReward(request.prompt, request.response, request.reference, row, self._key)
        if not isinstance(request, Generate) or isinstance(request, RowGenerate):
            return request
        text = _text(request.prompt)
        row = self._row if text == self._text else {"input": text}
        given = {name: getattr(request, name) for name in Generate.__slots__}
        return RowGenerate(**given, row=row, key=self._key)

    async def _native(self, role: str, native: Native, request: Generate) -> Response:
        text = _text(request.prompt)
        own = text == self._text
        options = self._row.get("options")
        if native.by_options and own and isinstance(options, list):
            return await self._by_options(role, text, [str(one) for one in options])
        # What a method puts behind the row's text (a trigger, the beginning of a reply) is asked with the row's images and turns.
        begun = role == TARGET and text.startswith(self._text)
        prompt: Prompt = text
        if native.chat:
            prompt = self._chat(native, text, images=native.vision and (own or begun), own_turns=begun)
        asked = replace(request, prompt=prompt)
        if role != TARGET:  # a scorer asks, which knows nothing of the judge's settings
            # Each verdict that is sampled is a draw of its own, also on equal prompts.
            asked = native.sampling.request(prompt, int(self._key))
        response = await self._ask(role, asked)
        return native.read(response) if native.read else response

    def _chat(self, native: Native, text: str, *, images: bool, own_turns: bool) -> Prompt:
        """The prompt as messages. own_turns: those of the row, if it is a conversation; what stands behind its text goes behind the last."""
        given, turns = self._row.get("input"), list[Message]()
        if own_turns and isinstance(given, list) and all(isinstance(one, Mapping) for one in given):
            known = [one for one in given if one.get("role") in ("system", "user", "assistant")]
            turns = [Message(one["role"], str(one.get("content", ""))) for one in known]
        told = not native.system or (turns and turns[0].role == "system")
        last = turns[-1] if turns else Message("user", "")
        text = last.text + text.removeprefix(self._text) if turns else text
        shown: list[Part] = []
        if images:
            inner = given.get("images") if isinstance(given, Mapping) else None
            found = self._row.get("images") or inner or []
            shown = [_image(native, one) for one in (found if isinstance(found, list | tuple) else [found])]
        last = replace(last, content=(text, *shown) if shown else text)
        return (*([] if told else [Message("system", native.system)]), *turns[:-1], last)

    async def _by_options(self, role: str, text: str, options: list[str]) -> Response:
        if not options:
            return Response(text="Error: No options scored")
        asked = [self._ask(role, LogLikelihood(text, f" {option}")) for option in options]
        found = [one.log_likelihood or 0.0 for one in await asyncio.gather(*asked)]
        self.found = self.mutated = {"logits": {"option_log_probs": found}}
        return Response(text=options[found.index(max(found))], values=tuple(found))


def asked_alone(
    models: Mapping[str, Native | PluginModel],
    rows: Sequence[Given],
    make: Callable[[SampleDoor, Sample], Awaitable[Made]],
    *,
    at_once: bool = True,
) -> list[Made]:
    """What is made of each row outside of any run, by an engine of its own with the store of this folder."""

    async def work() -> list[Made]:
        with open_store(home_folder()) as store:
            async with Engine(store) as engine:
                ask = engine.door({role: model_of(one) for role, one in models.items()})
                numbered = enumerate(rows)
                samples = [Sample(str(n), input_of(row), metadata={ROW: row}, row=row) for n, row in numbered]
                made = [make(SampleDoor(ask, one, dict(one.row), models), one) for one in samples]
                return await asyncio.gather(*made) if at_once else [await one for one in made]

    found: list[Made] = run_blocking(work)
    return found


def _image(native: Native, named: Any) -> Part:
    try:
        return read_image(named)
    except (DatasetError, OSError, ValueError) as error:
        if native.lenient:
            return f"[Error processing image: {named}]"
        raise RequestFailed(
            Failure("image", "dataset", f"The image '{named}' cannot be read: {error}")
        ) from None


def read_image(named: Any) -> Image:
    """An image of a row: an address, a data URL, a path, {"url"} or a PIL image. Raises DatasetError or OSError."""
    if isinstance(named, Mapping):
        inner = named.get("image_url", named)
        named = inner.get("url", "") if isinstance(inner, Mapping) else inner
    if hasattr(named, "save"):
        buffer = io.BytesIO()
        named.save(buffer, format="PNG")
        return Image.read(buffer.getvalue(), "an image of the row")
    if str(named).startswith("data:"):
        return Image.from_data_url(str(named))
    if str(named).startswith(("http://", "https://")):
        return fetched(str(named))
    return Image.read(ordinary(Path(str(named))).read_bytes(), str(named))


def _text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else prompt[-1].text
