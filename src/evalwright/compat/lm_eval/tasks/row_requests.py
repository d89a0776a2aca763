"""Builds a row's requests, in lm_eval's form and in ours, and the strategy that sends them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evalwright import (
    Answer,
    Ask,
    Generate,
    LogLikelihood,
    Message,
    Response,
    RollingLogLikelihood,
    Sample,
)
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.prompts import Prompts
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields
from evalwright.extend import (
    GENERATE_ARGUMENTS,
    TARGET,
    Ability,
    Prompt,
    Request,
    log_likelihood_of,
    separate_reasoning,
)

ABILITIES: Mapping[str, Ability] = {
    "loglikelihood": "log-likelihood",
    "multiple_choice": "log-likelihood",
    "loglikelihood_rolling": "rolling",
    "generate_until": "generate",
}


Fits = Callable[[Any], bool]


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def _is_text_or_texts(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    )


_COUNT: tuple[Fits, str] = (
    lambda value: type(value) is int and value >= 1,
    "a whole number of at least 1",
)
_SHARE: tuple[Fits, str] = (
    lambda value: _is_real(value) and 0 <= value <= 1,
    "a number between 0 and 1",
)
_SAMPLING = ("epsilon_cutoff", "eta_cutoff", "top_h", "typical_p")
"""Arguments of transformers' `generate()` that change nothing where nothing is sampled."""
LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
GENERATION: Mapping[str, tuple[Fits, str]] = {
    **dict.fromkeys(
        ("until", "stop"), (_is_text_or_texts, "a text, or a list of texts")
    ),
    **dict.fromkeys((*LIMITS, "top_k", "num_beams"), _COUNT),
    "do_sample": (lambda value: isinstance(value, bool), "true or false"),
    "temperature": (
        lambda value: _is_real(value) and value >= 0,
        "a number of at least 0",
    ),
    **dict.fromkeys(("top_p", "min_p"), _SHARE),
    "length_penalty": (_is_real, "a number"),
    "early_stopping": (
        lambda value: isinstance(value, bool) or value == "never",
        "true, false or never",
    ),
}
"""Generation settings that requests carry, with the check of each value."""
FURTHER_GENERATION: frozenset[str] = GENERATE_ARGUMENTS | frozenset(
    TABLES["server_fields"]
)
"""Generation settings of a model's library or server, carried by `Generate.generation_arguments`.

Others never reach a model: a task file comes from a stranger, and some arguments run code, load
another model or cost money.
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """One request in lm_eval's form: a context, and a continuation or generation settings.

    A rolling request has only a text, as `context`.
    """

    context: Prompt
    second_argument: Any = None
    rolling: bool = False

    def request(self, draw: int, as_written: bool = False) -> Request:
        """Convert to a request of ours. as_written: see `options.Options`."""
        if self.rolling:
            assert isinstance(self.context, str)
            return RollingLogLikelihood(self.context)
        if isinstance(self.second_argument, str):
            return LogLikelihood(self.context, self.second_argument)
        if as_written:
            return generate_as_written(self.context, self.second_argument, draw)
        return generate(self.context, self.second_argument, draw)


def generate_as_written(
    prompt: Prompt, settings: Mapping[str, Any], draw: int
) -> Generate:
    """Build a request whose generation settings are passed on under lm_eval's names.

    Stop strings are only among these settings: in published runs the model itself ends the text
    there, or does not. Every draw is a separate request, even at temperature 0, because a class may
    sample by itself and a server may answer differently each time.
    """
    carried = {*GENERATION, *FURTHER_GENERATION}
    return Generate(
        prompt,
        max_tokens=_token_limit(settings),
        temperature=float(settings.get("temperature") or 0.0),
        draw=draw,
        generation_arguments=_canonical(
            {name: settings[name] for name in settings if name in carried}
        ),
    )


def _token_limit(settings: Mapping[str, Any]) -> int | None:
    limit = next(
        (settings[key] for key in LIMITS if settings.get(key) is not None), None
    )
    return None if limit is None else int(limit)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def generate(prompt: Prompt, settings: Mapping[str, Any], draw: int) -> Generate:
    """Build a request from lm_eval's generation settings.

    `do_sample: false` is greedy, whatever the temperature.
    """
    stop_settings = [settings.get(key) or () for key in ("until", "stop")]
    stops = tuple(
        text
        for stop_setting in stop_settings
        for text in ((stop_setting,) if isinstance(stop_setting, str) else stop_setting)
    )
    sampled = settings.get("do_sample") is not False
    temperature = float(settings.get("temperature") or 0.0) if sampled else 0.0
    top_p = settings.get("top_p")
    names: tuple[str, ...] = ("top_k", "min_p") if temperature > 0 else ()
    if settings.get("num_beams") not in (None, 1):
        names += ("num_beams", "length_penalty", "early_stopping")
    options: dict[str, Any] = {
        name: settings[name] for name in names if settings.get(name) is not None
    }
    idle = () if temperature > 0 else _SAMPLING
    further = {
        name: value
        for name, value in settings.items()
        if name in FURTHER_GENERATION and name not in idle and value is not None
    }
    if further:
        options["generation_arguments"] = _canonical(further)
    return Generate(
        prompt,
        max_tokens=_token_limit(settings),
        temperature=temperature,
        top_p=float(top_p) if top_p is not None and temperature > 0 else None,
        stop=stops,
        draw=draw if temperature > 0 else 0,
        **options,
    )


class RowRequests:
    """Builds the requests of a row.

    mutual: each choice is also scored without a context.
    """

    def __init__(
        self, definition: Definition, fields: Fields, prompts: Prompts, options: Options
    ) -> None:
        self.definition = definition
        self.fields = fields
        self.prompts = prompts
        self.mutual = any(
            metric.name == "acc_mutual_info" for metric in definition.metrics
        )
        self.generation = {**definition.generation, **options.generation}
        # After a chat template's own opening of the answer there is nothing to set apart.
        prefix = definition.config.gen_prefix
        opened = options.chat and not (prefix and not prefix[-1].isspace())
        self.delimiter = "" if opened else definition.config.target_delimiter

    def __call__(self, index: int, doc: Doc) -> list[Arguments]:
        """The row's requests, in order."""
        output_type = self.definition.config.output_type
        if output_type == "loglikelihood_rolling":
            return [Arguments(self.fields.target(doc), rolling=True)]
        prompt = self.prompts(index, doc)
        if output_type == "multiple_choice":
            return [
                Arguments(context, f"{self.delimiter}{text}")
                for context, text in self._choices(prompt, doc)
            ]
        assert not isinstance(prompt, list)
        if output_type == "loglikelihood":
            return [Arguments(prompt, self.fields.target(doc))]
        return [Arguments(prompt, dict(self.generation))]

    def _choices(
        self, prompt: Prompt | list[Prompt], doc: Doc
    ) -> Iterator[tuple[Prompt, Any]]:
        choices = self.fields.choices(doc)
        if isinstance(prompt, list):
            yield from ((context, self.fields.target(doc)) for context in prompt)
        else:
            yield from ((prompt, choice) for choice in choices)
        if self.mutual:
            yield from (("", choice) for choice in choices)


class RowStrategy:
    """Sends all requests of a row, each `repeats` times.

    A row of lm_eval may ask several kinds of request at once, so that none of our strategies fits.

    The answer keeps the responses in that order. Its text is the first generated response; its
    choice is the most likely continuation.

    Args:
        make_requests: builds a sample's requests; raises what the task's own Python raises.
        usual: generation settings that need not be recorded with each answer. Other requests that
            the record
            does not determine are recorded as `strategy["arguments"]`.
        as_written: see `options.Options`.
        without: advice for a model that lacks abilities.
    """

    def __init__(
        self,
        needs: Iterable[Ability],
        make_requests: Callable[[Sample], list[Arguments]],
        repeats: int,
        published: bool,
        usual: Mapping[str, Any] | None = None,
        as_written: bool = False,
        without: Callable[[frozenset[Ability]], str] | None = None,
    ) -> None:
        self.needs = frozenset(needs)
        self.make_requests = make_requests
        self.repeats = repeats
        self.published = published
        self.usual = usual
        self.as_written = as_written
        self.without = without

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Send all requests at once."""
        row_requests = self.make_requests(sample)
        repeats = self.repeats
        pending = [
            ask(TARGET, arguments.request(draw * repeats + repeat, self.as_written))
            for arguments in row_requests
            for repeat in range(repeats)
        ]
        responses = tuple(await asyncio.gather(*pending))
        firsts = list(zip(row_requests, responses[::repeats], strict=True))
        texts = [
            scored_text(response, self.published)
            for arguments, response in firsts
            if isinstance(arguments.second_argument, Mapping)
        ]
        values = tuple(
            log_likelihood_of(response)
            for arguments, response in firsts
            if not isinstance(arguments.second_argument, Mapping)
        )
        best = (
            max(range(len(values)), key=values.__getitem__)
            if len(values) > 1 and not texts
            else None
        )
        first = row_requests[0]
        default_text = str(
            first.context if first.rolling else row_requests[best or 0].second_argument
        )
        prompt = "" if first.rolling else first.context
        return Answer(
            texts[0] if texts else default_text,
            choice=best,
            log_likelihoods=values,
            prompt=prompt,
            responses=responses,
            strategy=(
                {}
                if self._usual(row_requests)
                else {"arguments": recorded_arguments(row_requests, prompt)}
            ),
        )

    def _usual(self, row_requests: Sequence[Arguments]) -> bool:
        """Whether prompt, text and definition determine the request."""
        return len(row_requests) == 1 and (
            not isinstance(row_requests[0].second_argument, Mapping)
            or row_requests[0].second_argument == self.usual
        )


def recorded_arguments(
    row_requests: Iterable[Arguments], prompt: Prompt
) -> list[list[Any]]:
    """Convert requests to lists for the record; None stands for the recorded prompt."""
    return [
        [
            (
                None
                if arguments.context == prompt
                else _recorded_prompt(arguments.context)
            ),
            *([] if arguments.rolling else [arguments.second_argument]),
        ]
        for arguments in row_requests
    ]


def _recorded_prompt(prompt: Prompt) -> Any:
    """A prompt as plain JSON: a text, or a list of [role, content]; `restored_prompt` reads it."""
    if isinstance(prompt, str):
        return prompt
    return [[message.role, message.content] for message in prompt]


def restored_prompt(recorded: Any) -> Prompt:
    """A prompt that was recorded as plain JSON."""
    if isinstance(recorded, str):
        return recorded
    return tuple(Message(role, content) for role, content in recorded)


def scored_text(response: Response, published: bool) -> str:
    """The text that is scored; published scoring includes reasoning."""
    return response.text if published else separate_reasoning(response).answer


def published_responses(
    answer: Answer, output_type: str, repeats: int, published: bool
) -> list[list[Any]]:
    """Responses in lm_eval's form, a list of repeats for each request."""
    answers = [
        published_response(response, output_type, published)
        for response in answer.responses
    ]
    return [
        answers[start : start + repeats] for start in range(0, len(answers), repeats)
    ]


def published_response(response: Response, output_type: str, published: bool) -> Any:
    """A response in lm_eval's form: (log-likelihood, is greedy), a number, or a text."""
    if output_type == "generate_until":
        return scored_text(response, published)
    if output_type == "loglikelihood_rolling":
        return response.log_likelihood
    return response.log_likelihood, response.is_greedy


def stringify(response: Any) -> Any:
    """Convert all numbers and booleans in nested lists to text, as lm_eval writes responses."""
    if isinstance(response, (list, tuple)):
        return [stringify(element) for element in response]
    return str(response)


def prompt_as_text(prompt: Prompt, template: Any) -> str:
    """Render a prompt as text. template: a function (messages, add_generation_prompt) -> text."""
    if isinstance(prompt, str):
        return prompt
    return str(
        template([turn.as_dict() for turn in prompt], prompt[-1].role != "assistant")
    )
