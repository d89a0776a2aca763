"""How one row's requests reach a model: with the row for a class of a user, with HRET's parameters
for a model of this package.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from evalwright import (
    Ask,
    Failure,
    Generate,
    LogLikelihood,
    Message,
    Model,
    RequestFailed,
    Response,
    Reward,
    Sample,
)
from evalwright.compat.hret.native import Native, model_of
from evalwright.compat.hret.plugins import PluginModel, RowGenerate, RowReward
from evalwright.compat.hret.replies import logits_of
from evalwright.compat.hret.row_samples import ROW, Given, RowPrompt, input_of
from evalwright.extend import (
    TARGET,
    Ability,
    DatasetError,
    Image,
    Prompt,
    Request,
    TokenLogProb,
    abilities_of,
    ask_outside_run,
    fetch_image,
    options_of,
    regular_file,
    run_blocking,
)

Reply = TypeVar("Reply")


class RowAsk(Ask):
    """Asks for one sample. row: its dict, whose images, turns and options go with its own prompt
    (`RowPrompt`) and no other.

    reply_fields: what a plug-in changed in the row, when it was last asked about it; mutated: the
    same of the last draw, where it did so in place. null_logits: whether a plug-in returned
    `logits` that are None. extends: whether options are chosen behind the row's text with something
    added, too; a scaling method of a user may ask what it likes.
    """

    def __init__(
        self,
        ask: Ask,
        sample: Sample,
        row: dict[str, Any],
        models: Mapping[str, Native | Model],
        *,
        extends: bool = True,
    ) -> None:
        self._ask = ask
        self._key = sample.id
        self._row = row
        self._models = models
        self._extends = extends
        self.reply_fields: dict[str, Any] = {}
        self.mutated: dict[str, Any] = {}
        self.null_logits = False
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
            with_row = self._with_row(request)
            response = await self._ask(role, with_row)
            if not isinstance(with_row, RowGenerate):
                self.reply_fields = {}
                return response
            self.reply_fields = with_row.reply_fields
            self.null_logits |= (
                "logits" in with_row.reply_fields
                and with_row.reply_fields["logits"] is None
            )
            if (
                with_row.mutated
                and with_row.draw >= self._last
                and with_row.row is self._row
            ):
                self.mutated = with_row.mutated
                self._last = with_row.draw
            return response
        if isinstance(model, Native) and isinstance(request, Generate):
            return await self._native(role, model, request)
        empty = model.empty_reward if isinstance(model, Native) else None
        if isinstance(request, Reward) and not request.response and empty is not None:
            return Response(values=(empty,))
        return await self._ask(role, request)

    def _with_row(self, request: Request) -> Request:
        if isinstance(request, Reward):
            row = {
                **self._row,
                "input": _text(request.prompt),
                "prediction": request.response,
            }
            return RowReward(
                request.prompt, request.response, request.reference, row, self._key
            )
        if not isinstance(request, Generate) or isinstance(request, RowGenerate):
            return request
        prompt = request.prompt
        is_own = isinstance(prompt, RowPrompt) and not prompt.suffix
        row = self._row if is_own else {"input": _text(prompt)}
        settings = {name: getattr(request, name) for name in Generate.__slots__}
        settings["prompt"] = str(prompt) if isinstance(prompt, str) else prompt
        return RowGenerate(**settings, row=row, key=self._key)

    async def _native(self, role: str, native: Native, request: Generate) -> Response:
        row_prompt = request.prompt if isinstance(request.prompt, RowPrompt) else None
        options = self._row.get("options")
        chooses = row_prompt is not None and (self._extends or not row_prompt.suffix)
        if native.by_options and chooses and isinstance(options, list):
            assert row_prompt is not None
            context = row_prompt.row_text if native.bare_options else str(row_prompt)
            response = await self._by_options(
                role, context, [str(option) for option in options]
            )
            self.reply_fields = self.mutated = logits_of(response) or {
                "logits": {"option_log_probs": []}
            }
            return response
        text = _text(request.prompt)
        prompt: Prompt = text
        if native.chat:
            prompt = self._chat(native, text, row_prompt if role == TARGET else None)
        rewritten = replace(request, prompt=prompt)
        if role != TARGET:  # a scorer asks, which knows nothing of the judge's settings
            # Each verdict that is sampled is a draw of its own, also on equal prompts.
            rewritten = native.sampling.request(prompt, int(self._key))
        response = await self._ask(role, rewritten)
        return native.read(response) if native.read else response

    def _chat(self, native: Native, text: str, row_prompt: RowPrompt | None) -> Prompt:
        """The prompt as messages. row_prompt: the row's own, None for another: where the row is a
        conversation, its turns are sent, and what stands behind its text goes behind the last.
        """
        row_input = self._row.get("input")
        turns = list[Message]()
        if (
            row_prompt is not None
            and isinstance(row_input, list)
            and all(isinstance(turn, Mapping) for turn in row_input)
        ):
            known_turns = [
                turn
                for turn in row_input
                if turn.get("role") in ("system", "user", "assistant")
            ]
            turns = [
                Message(turn["role"], str(turn.get("content", "")))
                for turn in known_turns
            ]
        has_system = not native.system or (turns and turns[0].role == "system")
        last = turns[-1] if turns else Message("user", "")
        if turns and row_prompt is not None:
            text = last.text + row_prompt.suffix
        images_shown: list[str | Image] = []
        if native.vision and row_prompt is not None:
            inner = row_input.get("images") if isinstance(row_input, Mapping) else None
            row_images = self._row.get("images") or inner or []
            images_shown = [
                _image(native, row_image)
                for row_image in (
                    row_images if isinstance(row_images, list | tuple) else [row_images]
                )
            ]
        last = replace(last, content=(text, *images_shown) if images_shown else text)
        return (
            *([] if has_system else [Message("system", native.system)]),
            *turns[:-1],
            last,
        )

    async def _by_options(self, role: str, text: str, options: list[str]) -> Response:
        if not options:
            return Response(text="Error: No options scored")
        log_probs = await option_log_probs(self._ask, role, text, options)
        best = log_probs.index(max(log_probs))
        chosen = TokenLogProb(options[best], log_probs[best])
        return Response(text=options[best], values=tuple(log_probs), tokens=(chosen,))


async def option_log_probs(
    ask: Ask, role: str, text: str, options: Sequence[str]
) -> list[float]:
    """The log-probability of each option behind a text and a space, as HRET has it.

    White space at the end of a context is scored with what follows it, so that its own share is
    taken off again.
    """
    requests = [LogLikelihood(text, f" {option}") for option in options]
    words = text.rstrip()
    if words and words != text:
        requests.append(LogLikelihood(words, text.removeprefix(words)))
    replies = await asyncio.gather(*(ask(role, request) for request in requests))
    log_probs = [reply.log_likelihood or 0.0 for reply in replies]
    of_space = sum(log_probs[len(options) :])
    return [log_prob - of_space for log_prob in log_probs[: len(options)]]


def asked_alone(
    models: Mapping[str, Native | Model],
    rows: Sequence[Given],
    make: Callable[[RowAsk, Sample], Awaitable[Reply]],
    *,
    at_once: bool = True,
) -> list[Reply]:
    """What is made of each row outside of any run."""
    samples = [
        Sample(str(n), input_of(row), metadata={ROW: row}, row=row)
        for n, row in enumerate(rows)
    ]

    async def work() -> list[Reply]:
        engine_models = {role: model_of(model) for role, model in models.items()}
        async with ask_outside_run(engine_models) as ask:
            pending = [
                make(RowAsk(ask, sample, dict(sample.row), models), sample)
                for sample in samples
            ]
            if at_once:
                return await asyncio.gather(*pending)
            return [await answer for answer in pending]

    answers: list[Reply] = run_blocking(work)
    return answers


def _image(native: Native, named: Any) -> str | Image:
    try:
        return read_image(named)
    except (DatasetError, OSError, ValueError) as error:
        if native.lenient:
            return f"[Error processing image: {named}]"
        why = f"The image '{named}' cannot be read: {error}"
        raise RequestFailed(Failure("image", "dataset", why)) from None


def read_image(named: Any) -> Image:
    """An image of a row: an address, a data URL, a path, {"url"} or a PIL image.

    Raises DatasetError or OSError.
    """
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
        return fetch_image(str(named))
    return Image.read(regular_file(Path(str(named))).read_bytes(), str(named))


def _text(prompt: Prompt) -> str:
    return str(prompt) if isinstance(prompt, str) else prompt[-1].text
