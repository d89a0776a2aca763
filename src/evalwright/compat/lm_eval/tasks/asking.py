"""What is asked of the model for one row, in the published words and as our requests, and the
strategy that asks it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.prompts import Prompts
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields
from evalwright.core.asking import Ask
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import (
    Ability,
    Generate,
    LogLikelihood,
    Prompt,
    Request,
    RollingLogLikelihood,
    prompt_payload,
)
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.models.local.hf.options import GENERATE_ARGUMENTS, SAMPLING_ARGUMENTS
from evalwright.strategies.generate import TARGET, log_likelihood_of

ABILITIES: Mapping[str, Ability] = {
    "loglikelihood": "log-likelihood",
    "multiple_choice": "log-likelihood",
    "loglikelihood_rolling": "rolling",
    "generate_until": "generate",
}


Fits = Callable[[Any], bool]


def _real(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def _texts(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    )


_COUNT: tuple[Fits, str] = (
    lambda value: type(value) is int and value >= 1,
    "a whole number of at least 1",
)
_SHARE: tuple[Fits, str] = (
    lambda value: _real(value) and 0 <= value <= 1,
    "a number between 0 and 1",
)
LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
GENERATION: Mapping[str, tuple[Fits, str]] = {
    **dict.fromkeys(("until", "stop"), (_texts, "a text, or a list of texts")),
    **dict.fromkeys((*LIMITS, "top_k", "num_beams"), _COUNT),
    "do_sample": (lambda value: isinstance(value, bool), "true or false"),
    "temperature": (
        lambda value: _real(value) and value >= 0,
        "a number of at least 0",
    ),
    **dict.fromkeys(("top_p", "min_p"), _SHARE),
    "length_penalty": (_real, "a number"),
    "early_stopping": (
        lambda value: isinstance(value, bool) or value == "never",
        "true, false or never",
    ),
}
"""The settings of generation that every request carries, with what each may be."""
FURTHER_GENERATION: frozenset[str] = GENERATE_ARGUMENTS | frozenset(
    TABLES["server_fields"]
)
"""Those that a model's own library or server has, which `Generate.generation_arguments` carries.

No others reach a model: a task file is a stranger's, and some arguments run code, load another
model, or are paid for.
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """One request in the published words: a context, and a continuation or settings of generation.

    A rolling request has only a text, as `context`, and nothing else.
    """

    context: Prompt
    rest: Any = None
    rolling: bool = False

    def request(self, draw: int, as_written: bool = False) -> Request:
        """The request as ours. as_written: see `options.Options`."""
        if self.rolling:
            assert isinstance(self.context, str)
            return RollingLogLikelihood(self.context)
        if isinstance(self.rest, str):
            return LogLikelihood(self.context, self.rest)
        if as_written:
            return generate_as_written(self.context, self.rest, draw)
        return generate(self.context, self.rest, draw)


def generate_as_written(
    prompt: Prompt, settings: Mapping[str, Any], draw: int
) -> Generate:
    """The published settings of generation as they stand, for models that are handed them under
    these very names.

    Stop strings are among them and nowhere else: in published runs it is the model that ends its
    text there, or does not. Every draw is a request of its own, at temperature 0 too: a class may
    sample by itself, and a server answer differently each time.
    """
    known = {*GENERATION, *FURTHER_GENERATION}
    return Generate(
        prompt,
        max_tokens=_token_limit(settings),
        temperature=float(settings.get("temperature") or 0.0),
        draw=draw,
        generation_arguments=_canonical(
            {name: settings[name] for name in settings if name in known}
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
    """The published settings of generation as a request.

    `do_sample: false` is greedy, whatever the temperature says.
    """
    given = [settings.get(key) or () for key in ("until", "stop")]
    stops = tuple(
        text for one in given for text in ((one,) if isinstance(one, str) else one)
    )
    sampled = settings.get("do_sample") is not False
    temperature = float(settings.get("temperature") or 0.0) if sampled else 0.0
    top_p = settings.get("top_p")
    names: tuple[str, ...] = ("top_k", "min_p") if temperature > 0 else ()
    if settings.get("num_beams") not in (None, 1):
        names += ("num_beams", "length_penalty", "early_stopping")
    more: dict[str, Any] = {
        name: settings[name] for name in names if settings.get(name) is not None
    }
    idle = () if temperature > 0 else SAMPLING_ARGUMENTS
    further = {
        name: value
        for name, value in settings.items()
        if name in FURTHER_GENERATION and name not in idle and value is not None
    }
    if further:
        more["generation_arguments"] = _canonical(further)
    return Generate(
        prompt,
        max_tokens=_token_limit(settings),
        temperature=temperature,
        top_p=float(top_p) if top_p is not None and temperature > 0 else None,
        stop=stops,
        draw=draw if temperature > 0 else 0,
        **more,
    )


class Questions:
    """Makes the requests of a row. mutual: each choice is also asked for after nothing."""

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
        kind = self.definition.config.output_type
        if kind == "loglikelihood_rolling":
            return [Arguments(self.fields.target(doc), rolling=True)]
        prompt = self.prompts(index, doc)
        if kind == "multiple_choice":
            return [
                Arguments(context, f"{self.delimiter}{text}")
                for context, text in self._choices(prompt, doc)
            ]
        assert not isinstance(prompt, list)
        if kind == "loglikelihood":
            return [Arguments(prompt, self.fields.target(doc))]
        return [Arguments(prompt, dict(self.generation))]

    def _choices(
        self, prompt: Prompt | list[Prompt], doc: Doc
    ) -> Iterator[tuple[Prompt, Any]]:
        choices = self.fields.choices(doc)
        if isinstance(prompt, list):
            yield from ((one, self.fields.target(doc)) for one in prompt)
        else:
            yield from ((prompt, choice) for choice in choices)
        if self.mutual:
            yield from (("", choice) for choice in choices)


class Strategy:
    """Sends all requests of a row, each `repeats` times; the answer keeps the responses in that
    order.

    asked: the requests of a sample, which raises what the task's own Python raises on this row. The
    answer's text is that of the first generated response; its choice the most likely of several
    continuations. usual: settings of generation that are not recorded with each answer; requests
    that the rest of the record does not tell are, as `strategy["arguments"]`. as_written: see
    `options.Options`.
    """

    def __init__(
        self,
        needs: Iterable[Ability],
        asked: Callable[[Sample], list[Arguments]],
        repeats: int,
        published: bool,
        usual: Mapping[str, Any] | None = None,
        as_written: bool = False,
        without: Callable[[frozenset[Ability]], str] | None = None,
    ) -> None:
        self.needs = frozenset(needs)
        self.asked = asked
        self.repeats = repeats
        self.published = published
        self.usual = usual
        self.as_written = as_written
        self.without = without

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """All requests are sent at once."""
        asked = self.asked(sample)
        repeats = self.repeats
        wanted = [
            ask(TARGET, arguments.request(draw * repeats + repeat, self.as_written))
            for arguments in asked
            for repeat in range(repeats)
        ]
        responses = tuple(await asyncio.gather(*wanted))
        firsts = list(zip(asked, responses[::repeats], strict=True))
        texts = [
            text_of(found, self.published)
            for one, found in firsts
            if isinstance(one.rest, Mapping)
        ]
        values = tuple(
            log_likelihood_of(found)
            for one, found in firsts
            if not isinstance(one.rest, Mapping)
        )
        best = (
            max(range(len(values)), key=values.__getitem__)
            if len(values) > 1 and not texts
            else None
        )
        first = asked[0]
        told = str(first.context if first.rolling else asked[best or 0].rest)
        prompt = "" if first.rolling else first.context
        return Answer(
            texts[0] if texts else told,
            choice=best,
            log_likelihoods=values,
            prompt=prompt,
            responses=responses,
            strategy=(
                {} if self._usual(asked) else {"arguments": arguments_of(asked, prompt)}
            ),
        )

    def _usual(self, asked: Sequence[Arguments]) -> bool:
        """Whether prompt, text and definition tell the request."""
        return len(asked) == 1 and (
            not isinstance(asked[0].rest, Mapping) or asked[0].rest == self.usual
        )


def arguments_of(asked: Iterable[Arguments], prompt: Prompt) -> list[list[Any]]:
    """Requests as lists for the record; None where a context is the prompt, which is recorded once."""
    return [
        [
            (
                None
                if one.context == prompt
                else prompt_payload(one.context, recorded=True)
            ),
            *([] if one.rolling else [one.rest]),
        ]
        for one in asked
    ]


def text_of(response: Response, published: bool) -> str:
    """The text that is scored: in published scoring what came, reasoning included."""
    return response.text if published else separate_reasoning(response).answer


def answers_of(
    answer: Answer, output_type: str, repeats: int, published: bool
) -> list[list[Any]]:
    """The responses in the published form, for each request its repeats: (log-likelihood, is
    greedy), a number, or a text.
    """
    found = [
        value_of(response, output_type, published) for response in answer.responses
    ]
    return [found[start : start + repeats] for start in range(0, len(found), repeats)]


def value_of(response: Response, output_type: str, published: bool) -> Any:
    """One response in the published form."""
    if output_type == "generate_until":
        return text_of(response, published)
    if output_type == "loglikelihood_rolling":
        return response.log_likelihood
    return response.log_likelihood, response.is_greedy


def as_text(prompt: Prompt, template: Any) -> str:
    """A prompt as one text. template: `(messages, add_generation_prompt)` to text, as a model would
    render messages.
    """
    if isinstance(prompt, str):
        return prompt
    return str(
        template([turn.as_dict() for turn in prompt], prompt[-1].role != "assistant")
    )
