"""The six kinds of request to a model, each with everything that affects the response, no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar, Literal

from evalwright.core.images import Image

Ability = Literal[
    "generate", "log-likelihood", "rolling", "embed", "classify", "reward", "chat"
]
"""Something a model can do.

"chat" means that it takes messages (it has a chat template or a chat interface).
"""

Part = str | Image
"""A part of a message's content: text or an image."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    A last message of role "assistant" is a prefill: the model continues it.

    Args:
        role: "system", "user" or "assistant".
        content: text, or a sequence of texts and images.
    """

    role: Literal["system", "user", "assistant"]
    content: str | tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as a sequence of parts."""
        return (self.content,) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def images(self) -> tuple[Image, ...]:
        """The image parts."""
        return tuple(part for part in self.parts if isinstance(part, Image))

    def as_dict(self) -> dict[str, Any]:
        """Return the form that chat templates take: a plain text, or a list of typed parts.

        It does not contain the bytes of images.
        """
        if isinstance(self.content, str):
            return {"role": self.role, "content": self.content}
        kinds = [
            (
                {"type": "text", "text": part}
                if isinstance(part, str)
                else {"type": "image"}
            )
            for part in self.content
        ]
        return {"role": self.role, "content": kinds}


Prompt = str | tuple[Message, ...]
"""What a model is prompted with: text, sent as it is, or messages for the model's own template."""


def prompt_payload(prompt: Prompt, *, recorded: bool = False) -> Any:
    """Return the prompt as JSON: a string, or a list of [role, content], with images named by hash.

    Args:
        prompt: the prompt.
        recorded: also include where images come from. For records only: a request is identified by
            content alone.
    """
    if isinstance(prompt, str):
        return prompt
    return [
        (
            [turn.role, turn.content]
            if isinstance(turn.content, str)
            else [
                turn.role,
                [
                    part if isinstance(part, str) else part.named(recorded)
                    for part in turn.content
                ],
            ]
        )
        for turn in prompt
    ]


def prompt_from(payload: Any) -> Prompt:
    """Rebuild a prompt from its recorded form; its images have a hash and no bytes."""
    if isinstance(payload, str):
        return payload
    return tuple(Message(role, _content_from(content)) for role, content in payload)


def _content_from(content: Any) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    return tuple(
        part if isinstance(part, str) else Image.recorded(part) for part in content
    )


@dataclass(frozen=True, slots=True)
class Generate:
    """A request to generate text that follows `prompt`.

    Args:
        prompt: text, or messages, which the model's own template renders.
        max_tokens: most tokens of the answer; None leaves the limit to the model.
        temperature: 0 is greedy; None leaves all sampling to the model.
        top_p: share of probability to sample from.
        stop: strings that end the answer and are not part of it.
        seed: seed of the sampling.
        draw: index that tells repeated samples of one prompt apart. Greedy requests have draw 0,
            unless repeats are wanted from a model that may answer differently.
        top_k: sample from the k most probable tokens.
        min_p: least probability to sample from, as a share of the most probable token's.
        num_beams: width of beam search.
        top_logprobs: None for no log-probabilities, 0 for those of the answer's tokens, k for those
            with k alternatives each.
        reasoning_effort: how much to reason, in the provider's own word.
        reasoning_budget: most tokens of reasoning.
        json_schema: JSON schema that the reply must follow, as canonical text.
        length_penalty: beam search divides scores by the length to this power.
        early_stopping: when beam search stops: False, True or "never", as in transformers.
        generation_arguments: further arguments under the names of the model's own library or server
            (`repetition_penalty`), a mapping as canonical JSON.
    """

    ability: ClassVar[Ability] = "generate"

    prompt: Prompt
    max_tokens: int | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    draw: int = 0
    top_k: int | None = None
    min_p: float | None = None
    num_beams: int = 1
    top_logprobs: int | None = None
    reasoning_effort: str | None = None
    reasoning_budget: int | None = None
    json_schema: str | None = None
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    generation_arguments: str | None = None

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request.

        Options added in later versions are included only where they are used, so that older stored
        responses are still found.
        """
        return {
            "generate": prompt_payload(self.prompt),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stop": self.stop,
            "seed": self.seed,
            "draw": self.draw,
            **self.options(),
        }

    def options(self) -> dict[str, Any]:
        """Return the entries of `OPTIONS` that this request uses, by name."""
        if _options_of(self) == _UNUSED:  # most requests use none
            return {}
        return {
            name: value
            for name, unused in OPTIONS.items()
            if (value := getattr(self, name)) != unused
        }


OPTIONS: Mapping[str, Any] = {
    option.name: option.default
    for option in fields(Generate)[7:]
    if option.default is not MISSING
}
"""Options that not every model supports, each with the value that means "not used"."""
_options_of = attrgetter(*OPTIONS)
_UNUSED = tuple(OPTIONS.values())


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """A request for the log-probability of a continuation: natural log, summed over its tokens.

    Args:
        context: text or messages before the continuation.
        continuation: the text that is scored.
    """

    ability: ClassVar[Ability] = "log-likelihood"

    context: Prompt
    continuation: str

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        return {
            "log_likelihood": prompt_payload(self.context),
            "continuation": self.continuation,
        }


@dataclass(frozen=True, slots=True)
class RollingLogLikelihood:
    """A request for the log-probability of a whole text, in windows if it exceeds the context.

    Args:
        text: the text that is scored.
    """

    ability: ClassVar[Ability] = "rolling"

    text: str

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        return {"rolling": self.text}


@dataclass(frozen=True, slots=True)
class Embed:
    """A request for the embedding of a text.

    Args:
        text: the text.
    """

    ability: ClassVar[Ability] = "embed"

    text: str

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        return {"embed": self.text}


@dataclass(frozen=True, slots=True)
class Classify:
    """A request for the class probabilities of a text pair, as in entailment.

    Args:
        premise: the text that is taken as true, such as a passage.
        hypothesis: the text that is classified, such as a claim.
    """

    ability: ClassVar[Ability] = "classify"

    premise: str
    hypothesis: str

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        return {"classify": [self.premise, self.hypothesis]}


@dataclass(frozen=True, slots=True)
class Reward:
    """A request for a reward: how good a reply to a prompt is; higher is better.

    Args:
        prompt: what was asked.
        response: the reply.
        reference: a good reply, for models that compare with one (translation metrics).
    """

    ability: ClassVar[Ability] = "reward"

    prompt: Prompt
    response: str
    reference: str | None = None

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        named = {"reward": prompt_payload(self.prompt), "response": self.response}
        return (
            named if self.reference is None else {**named, "reference": self.reference}
        )


Request = Generate | LogLikelihood | RollingLogLikelihood | Embed | Classify | Reward
"""A request of any of the six kinds."""


def arguments_of(request: Request) -> dict[str, Any]:
    """Parse the `generation_arguments` of a request into a mapping; see `Generate`."""
    text = request.generation_arguments if isinstance(request, Generate) else None
    return {} if text is None else dict(json.loads(text))


def images_of(request: Request) -> tuple[Image, ...]:
    """Return all images of a request's prompt, in order."""
    prompt: Prompt = getattr(request, "prompt", "") or getattr(request, "context", "")
    if isinstance(prompt, str) or all(isinstance(turn.content, str) for turn in prompt):
        return ()
    return tuple(image for turn in prompt for image in turn.images)
