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
Reader = Callable[[str, Response], Response]

AS_IT_LIKES = Sampling(temperature=None)


@dataclass(frozen=True)
class Native:
    """A model of this package in the place of one of HRET's.

    sampling: how text is drawn. one_call: whether settings of one call reach it (a limit of tokens, log-probabilities). chat: whether
    prompts are messages. tells_reason: HRET writes the reply's
    finish reason into the sample. empty_reward: what an empty reply is worth, where that is not asked. by_options: a row with options is answered by the likelihood of each. suffix: text after every prompt. read: what a reply
    to a prompt is taken for. cot, trigger, parser: the chain of thought. lenient: an image that cannot be read is a sentence in the
    prompt, as in HRET; else the sample fails.
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
    suffix: str = ""
    read: Reader | None = None
    empty_reward: float | None = None
    cot: bool = False
    trigger: str | None = None
    parser: Callable[[str], tuple[str, str]] | None = None


def images_of_row(row: Mapping[str, Any]) -> list[Any]:
    """What a row names as images."""
    given = row.get("input")
    found = row.get("images") or (given.get("images") if isinstance(given, Mapping) else None) or []
    return list(found) if isinstance(found, list | tuple) else [found]


def turns_of(row: Mapping[str, Any]) -> list[Message]:
    """The conversation that a row's input is, if it is one."""
    given = row.get("input")
    turns = given if isinstance(given, list) and all(isinstance(one, Mapping) for one in given) else []
    roles = ("system", "user", "assistant")
    return [Message(one["role"], str(one.get("content", ""))) for one in turns if one.get("role") in roles]


class SampleDoor(Ask):
    """The door of one sample. row: its dict, whose images and options go with its own prompt and no other.

    found: what a plug-in changed in the row, when it was last asked about it; mutated: the same of the last draw, where it did so in place.
    """

    def __init__(
        self, ask: Ask, sample: Sample, row: dict[str, Any], models: Mapping[str, Native | PluginModel]
    ) -> None:
        self._ask = ask
        self._key = sample.id
        self._row = row
        self._text = input_of(row)
        self._models = models
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
            self.found = getattr(asked, "found", {})
            mutated, draw = getattr(asked, "mutated", {}), getattr(asked, "draw", 0)
            if mutated and draw >= self._last and getattr(asked, "row", None) is self._row:
                self.mutated, self._last = mutated, draw
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
            return RowReward(request.prompt, request.response, request.reference, row, {}, self._key)
        if not isinstance(request, Generate) or isinstance(request, RowGenerate):
            return request
        text = _text(request.prompt)
        row = self._row if text == self._text else {"input": text}
        given = {name: getattr(request, name) for name in Generate.__slots__}
        return RowGenerate(**given, row=row, found={}, key=self._key)

    async def _native(self, role: str, native: Native, request: Generate) -> Response:
        text = _text(request.prompt)
        own = text == self._text
        options = self._row.get("options")
        if native.by_options and own and isinstance(options, list):
            return await self._by_options(role, text, [str(one) for one in options])
        images = images_of_row(self._row) if native.vision and own else []
        # The row's own conversation; what stands behind its text goes behind its last turn.
        given = native.chat and role == TARGET and text.startswith(self._text)
        turns = turns_of(self._row) if given else []
        said = turns[-1].text + text.removeprefix(self._text) if turns else text
        asked = replace(request, prompt=prompt_of(native, said, images, turns))
        if role != TARGET:  # a scorer asks, which knows nothing of the judge's settings
            # Each verdict that is sampled is a draw of its own, also on equal prompts.
            asked = native.sampling.request(asked.prompt, int(self._key))
        response = await self._ask(role, asked)
        return native.read(text + native.suffix, response) if native.read else response

    async def _by_options(self, role: str, text: str, options: list[str]) -> Response:
        if not options:
            return Response(text="Error: No options scored")
        asked = [self._ask(role, LogLikelihood(text, f" {option}")) for option in options]
        found = [one.log_likelihood or 0.0 for one in await asyncio.gather(*asked)]
        self.found = self.mutated = {"logits": {"option_log_probs": found}}
        return Response(text=options[found.index(max(found))], values=tuple(found))


def asked_alone(
    models: Mapping[str, Native | PluginModel],
    rows: Sequence[Mapping[str, Any]],
    make: Callable[[SampleDoor, Sample], Awaitable[Made]],
    *,
    at_once: bool = True,
) -> list[Made]:
    """What is made of each row outside of any run, by an engine of its own with the store of this folder."""

    async def work() -> list[Made]:
        with open_store(home_folder()) as store:
            async with Engine(store) as engine:
                opened = {role: one.model if isinstance(one, Native) else one for role, one in models.items()}
                ask = engine.door(opened)
                samples = [
                    Sample(str(place), input_of(row), metadata={ROW: row}, row=row)
                    for place, row in enumerate(rows)
                ]
                made = [make(SampleDoor(ask, one, dict(one.row), models), one) for one in samples]
                return await asyncio.gather(*made) if at_once else [await one for one in made]

    found: list[Made] = run_blocking(work)
    return found


def prompt_of(native: Native, text: str, images: list[Any], turns: Sequence[Message] = ()) -> Prompt:
    """The prompt as the model gets it. turns: the conversation whose last turn it is."""
    text += native.suffix
    if not native.chat:
        return text
    parts = tuple(_image(native, named) for named in images)
    last = replace(turns[-1] if turns else Message("user", ""), content=(text, *parts) if parts else text)
    told = not native.system or (turns and turns[0].role == "system")
    return (*([] if told else [Message("system", native.system)]), *turns[:-1], last)


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
