"""How one sample's requests reach a model: with the row for a class of a user, with HRET's
parameters for a model of this package.

Classes of users get copies of rows, and what they return is matched back by an injected id.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import io
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from evalwright import (
    Ask,
    Failure,
    Generate,
    LocalModel,
    LogLikelihood,
    Message,
    Model,
    RequestFailed,
    Response,
    Reward,
    Sample,
)
from evalwright.compat.hret import settings
from evalwright.compat.hret.row_samples import ROW, input_of
from evalwright.compat.hret.settings import Given
from evalwright.core.requests import Part
from evalwright.core.responses import TokenLogProb
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.extend import (
    TARGET,
    Ability,
    DatasetError,
    Image,
    Prompt,
    Request,
    Sampling,
    abilities_of,
    home_folder,
    options_of,
    regular_file,
    run_blocking,
)
from evalwright.models.model_interface import EVERY_OPTION
from evalwright.tasks.images import fetched

ID = "_evalwright_id"
"""The key under which a row carries its id through a plug-in."""

METHODS: Mapping[str, tuple[str, frozenset[Ability]]] = {
    "target": ("generate_batch", frozenset({"generate"})),
    "judge": ("judge_batch", frozenset({"generate"})),
    "reward": ("score_batch", frozenset({"reward"})),
}
"""By role: the method of a plug-in, and what it does."""


@dataclass(frozen=True, slots=True)
class RowGenerate(Generate):
    """A prompt with the dict that a plug-in is to see. key: of the row, so that two rows with one
    prompt are two requests.

    found: takes what the plug-in returned beside what it was given; mutated: the same, where it
    did so in that very dict, which HRET's best_of_n keeps.
    """

    row: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    reply_fields: dict[str, Any] = field(
        default_factory=dict, compare=False, repr=False
    )
    mutated: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    key: str = ""

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {**Generate.payload(self), "row": self.key}


@dataclass(frozen=True, slots=True)
class RowReward(Reward):
    """A reply to be rewarded, with its row."""

    row: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    key: str = ""

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {**Reward.payload(self), "row": self.key}


class PluginModel(LocalModel):
    """A plug-in in one role.

    Nobody can know whether it would answer the same again, so its answers are of one run.

    published: a reply without a text is an answer, as it is to HRET; else it is a failure.
    """

    heavy = False
    carries = EVERY_OPTION - {
        "num_beams",
        "length_penalty",
        "early_stopping",
        "generation_arguments",
    }

    def __init__(self, name: str, plugin: Any, role: str, *, published: bool) -> None:
        method, self.abilities = METHODS[role]
        self.name = f"hret-{role}/{name}"
        self.published = published
        self.role = role
        self._call: Callable[..., Any] = getattr(plugin, method)
        parameters = inspect.signature(self._call).parameters.values()
        self._takes = {parameter.name for parameter in parameters}
        self._takes_all = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
        )

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """One call of the plug-in for all requests that are asked alike, in the order of the
        requests.
        """
        groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, request in enumerate(requests):
            options = self._settings(request)
            groups.setdefault(repr(options), (options, []))[1].append(place)
        for options, places in groups.values():
            rows = [getattr(requests[place], "row", {}) for place in places]
            row_copies = [
                {**copy.deepcopy(row), ID: number} for number, row in enumerate(rows)
            ]
            ids_of_copies = {id(row_copy) for row_copy in row_copies}
            # a thread of its own
            with settings.using("published" if self.published else "corrected"):
                returned = self._call(row_copies, **options)
            if not isinstance(returned, list | tuple):
                raise TypeError(
                    f"it returned {type(returned).__name__}, not a list of samples"
                )
            changed = {
                sample.get(ID) for sample in returned if id(sample) in ids_of_copies
            }
            samples = matched(list(returned), len(rows))
            for number, (place, row, sample) in enumerate(
                zip(places, rows, samples, strict=True)
            ):
                request = requests[place]
                response = self._response(request, row, sample)
                if number in changed and isinstance(request, RowGenerate):
                    request.mutated.update({**request.reply_fields, ID: place})
                yield place, response

    def _settings(self, request: Request) -> dict[str, Any]:
        """Options for the method, of those that it takes."""
        if not isinstance(request, Generate):
            return {}
        settings = {
            "return_logits": None if request.top_logprobs is None else True,
            "max_new_tokens": request.max_tokens,
            "until": list(request.stop) or None,
        }
        return {
            name: value
            for name, value in settings.items()
            if value is not None and (self._takes_all or name in self._takes)
        }

    def _response(
        self, request: Request, row: Given, sample: dict[str, Any] | None
    ) -> Response | Failure:
        if sample is None:
            return self._failed("it returned no sample for this one")
        if isinstance(request, Reward):
            reward = _number(sample.get("reward"))
            return (
                self._failed("it gave no reward")
                if reward is None
                else Response(values=(reward,))
            )
        text = sample.get("prediction")
        if not self.published and (sample.get("error") or text is None):
            return self._failed(str(sample.get("error") or "it gave no prediction"))
        if isinstance(request, RowGenerate):
            new = {
                key: field_value
                for key, field_value in sample.items()
                if key not in row or not _same(row[key], field_value)
            }
            request.reply_fields.update(new)
            if isinstance(text, str):
                request.reply_fields.pop("prediction", None)
        return _response(
            text,
            sample,
            _number(sample.get("judge_score")) if self.role == "judge" else None,
        )

    def _failed(self, why: str) -> Failure:
        return Failure(
            "bad reply", "model", f"The plug-in '{self.name}' failed: {why}."
        )


def matched(returned: list[Any], n: int) -> list[dict[str, Any] | None]:
    """The returned samples in the order that was given: by their id, else by their place where
    there are as many as were given.
    """
    samples = [sample for sample in returned if isinstance(sample, Mapping)]
    by_id = {
        sample[ID]: sample for sample in samples if isinstance(sample.get(ID), int)
    }
    left = [place for place in range(n) if place not in by_id]
    without_id = [sample for sample in samples if not isinstance(sample.get(ID), int)]
    if len(without_id) == len(left):
        by_id |= dict(zip(left, without_id, strict=True))
    in_order = [by_id.get(place) for place in range(n)]
    return [
        None if sample is None else {k: value for k, value in sample.items() if k != ID}
        for sample in in_order
    ]


def _response(text: Any, sample: Given, score: float | None) -> Response:
    logits = sample.get("logits")
    logits = logits if isinstance(logits, Mapping) else {}
    tokens = logits.get("token_log_probs") or ()
    texts = [str(token_text) for token_text in logits.get("tokens") or ()] + [""] * len(
        tokens
    )
    options = tuple(
        float(log_probability)
        for log_probability in logits.get("option_log_probs") or ()
    )
    return Response(
        text="" if text is None else str(text),
        log_likelihood=_number(logits.get("sum_log_prob")),
        values=options if score is None else (score,),
        tokens=tuple(
            TokenLogProb(token_text, float(value))
            for token_text, value in zip(texts, tokens, strict=False)
        ),
    )


def asked_for(options: Given) -> dict[str, Any]:
    """What `generate_batch` is told of one call, as settings of a request."""
    until = options.get("until") or ()
    settings: dict[str, Any] = {
        "stop": (until,) if isinstance(until, str) else tuple(until)
    }
    if options.get("max_new_tokens") is not None:
        settings["max_tokens"] = options["max_new_tokens"]
    if options.get("return_logits"):
        settings["top_logprobs"] = 0
    return settings


def replied(row: Given, response: Response) -> dict[str, Any]:
    """A row with a reply as HRET's models write it: `prediction`, and `logits` where there are
    log-probabilities.
    """
    return {**row, **logits_of(response), "prediction": response.text}


def logits_of(response: Response) -> dict[str, Any]:
    """`logits` as HRET's models write it: of each option, or of each token of a text; nothing where
    there are none.
    """
    if response.values:
        return {"logits": {"option_log_probs": list(response.values)}}
    if not response.tokens:
        return {}
    log_probs = [token.log_prob for token in response.tokens]
    texts = [token.text for token in response.tokens]
    return {
        "logits": {
            "sum_log_prob": sum(log_probs),
            "token_log_probs": log_probs,
            "tokens": texts,
        }
    }


def _number(value: Any) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False


# -- models of this package, and the door of one sample --

Made = TypeVar("Made")
Parser = Callable[[str], tuple[str, str]]
"""How a reply becomes (reasoning, answer)."""

AS_IT_LIKES = Sampling(temperature=None)


@dataclass(frozen=True)
class Native:
    """A model of this package in the place of one of HRET's.

    sampling: how text is drawn. one_call: whether settings of one call reach it (a limit of tokens,
    log-probabilities); HRET's back ends of web interfaces drop them. chat: whether prompts are
    messages. tells_reason: HRET writes the reply's finish reason into the sample. empty_reward:
    what an empty reply is worth, where that is not asked. by_options: a row with options is
    answered by the likelihood of each, behind the trigger of a chain of thought too, unless
    bare_options. gives_logits: HRET writes log-probabilities of text unasked. read: what a reply is
    taken for. cot, trigger, parser: the chain of thought. lenient: an image that cannot be read is
    a sentence in the prompt, as in HRET; else the sample fails.
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
    bare_options: bool = False
    gives_logits: bool = False
    read: Callable[[Response], Response] | None = None
    empty_reward: float | None = None
    cot: bool = False
    trigger: str | None = None
    parser: Parser | None = None


def model_of(part: Native | PluginModel) -> Model:
    """The engine's model."""
    return part.model if isinstance(part, Native) else part


class SampleDoor(Ask):
    """The door of one sample. row: its dict, whose images and options go with its own prompt and no
    other.

    found: what a plug-in changed in the row, when it was last asked about it; mutated: the same of
    the last draw, where it did so in place. null_logits: whether a plug-in returned `logits` that
    are None. extends: whether a prompt that begins with the row's text is the row's own with
    something behind it; a scaling method of a user may ask what it likes.
    """

    def __init__(
        self,
        ask: Ask,
        sample: Sample,
        row: dict[str, Any],
        models: Mapping[str, Native | PluginModel],
        *,
        extends: bool = True,
    ) -> None:
        self._ask = ask
        self._key = sample.id
        self._row = row
        self._models = models
        self._extends = extends
        self._text = input_of(row)
        self.found: dict[str, Any] = {}
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
                self.found = {}
                return response
            self.found = with_row.reply_fields
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
        text = _text(request.prompt)
        row = self._row if text == self._text else {"input": text}
        settings = {name: getattr(request, name) for name in Generate.__slots__}
        return RowGenerate(**settings, row=row, key=self._key)

    async def _native(self, role: str, native: Native, request: Generate) -> Response:
        text = _text(request.prompt)
        is_row_text = text == self._text
        # What a method puts behind the row's text (a trigger, the beginning of a reply) is asked
        # with the row's images, turns and options.
        begun = role == TARGET and text.startswith(self._text)
        options = self._row.get("options")
        if (
            native.by_options
            and (is_row_text or (begun and self._extends))
            and isinstance(options, list)
        ):
            context = self._text if native.bare_options else text
            response = await self._by_options(
                role, context, [str(option) for option in options]
            )
            self.found = self.mutated = logits_of(response) or {
                "logits": {"option_log_probs": []}
            }
            return response
        prompt: Prompt = text
        if native.chat:
            prompt = self._chat(
                native,
                text,
                images=native.vision and (is_row_text or begun),
                own_turns=begun,
            )
        rewritten = replace(request, prompt=prompt)
        if role != TARGET:  # a scorer asks, which knows nothing of the judge's settings
            # Each verdict that is sampled is a draw of its own, also on equal prompts.
            rewritten = native.sampling.request(prompt, int(self._key))
        response = await self._ask(role, rewritten)
        return native.read(response) if native.read else response

    def _chat(
        self, native: Native, text: str, *, images: bool, own_turns: bool
    ) -> Prompt:
        """The prompt as messages. own_turns: those of the row, if it is a conversation; what stands
        behind its text goes behind the last.
        """
        row_input = self._row.get("input")
        turns = list[Message]()
        if (
            own_turns
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
        text = last.text + text.removeprefix(self._text) if turns else text
        images_shown: list[Part] = []
        if images:
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
    models: Mapping[str, Native | PluginModel],
    rows: Sequence[Given],
    make: Callable[[SampleDoor, Sample], Awaitable[Made]],
    *,
    at_once: bool = True,
) -> list[Made]:
    """What is made of each row outside of any run, by an engine of its own with the store of this
    folder.
    """

    async def work() -> list[Made]:
        with open_store(home_folder()) as store:
            async with Engine(store) as engine:
                ask = engine.door(
                    {role: model_of(model) for role, model in models.items()}
                )
                numbered = enumerate(rows)
                samples = [
                    Sample(str(n), input_of(row), metadata={ROW: row}, row=row)
                    for n, row in numbered
                ]
                pending = [
                    make(SampleDoor(ask, sample, dict(sample.row), models), sample)
                    for sample in samples
                ]
                return (
                    await asyncio.gather(*pending)
                    if at_once
                    else [await answer for answer in pending]
                )

    answers: list[Made] = run_blocking(work)
    return answers


def _image(native: Native, named: Any) -> Part:
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
        return fetched(str(named))
    return Image.read(regular_file(Path(str(named))).read_bytes(), str(named))


def _text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else prompt[-1].text
