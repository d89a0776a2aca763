"""The six kinds of request to a model, each with everything that affects the response, no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Literal

from evalwright.core.images import Image
from evalwright.core.quick_init import quick_init
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition

Ability = Literal[
    "generate", "log-likelihood", "rolling", "embed", "classify", "reward", "chat"
]
"""Something a model can do.

"chat" means that it takes messages (it has a chat template or a chat interface).
"""

Part = str | Image
"""A part of a message's content: text or an image."""


@quick_init
@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    A last message of role "assistant" is a prefill: the model continues it. One of role "tool" is
    the result of a call; the results of one turn's calls follow it in the order of the calls.

    Args:
        role: "system", "user", "assistant" or "tool".
        content: text, or a sequence of texts and images.
        tool_calls: the calls of an assistant's turn.
        tool_call_id: the id of the call whose result this is; "" where the call has none.
        tool_name: the name of the tool whose result this is.
        is_error: whether the result says that the call failed.
        reasoning: the reasoning before an assistant's calls, for models that want it back until
            the turn ends.
        provider_content: what the provider wants back unchanged with an assistant's turn (signed
            or encrypted reasoning), as canonical JSON of the wire format's name and its content.
            Other formats ignore it.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    reasoning: str = ""
    provider_content: str = ""

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

        It does not contain the bytes of images. The arguments of calls are mappings, as templates
        expect them: malformed ones are the text under the key "arguments".
        """
        if isinstance(self.content, str):
            return {"role": self.role, "content": self.content, **self._tool_fields()}
        kinds = [
            (
                {"type": "text", "text": part}
                if isinstance(part, str)
                else {"type": "image"}
            )
            for part in self.content
        ]
        return {"role": self.role, "content": kinds, **self._tool_fields()}

    def _tool_fields(self) -> dict[str, Any]:
        """Return what templates take of calls and results, under OpenAI's names."""
        if self.role == "tool":
            identified = {"tool_call_id": self.tool_call_id, "name": self.tool_name}
            return {name: text for name, text in identified.items() if text}
        if not self.tool_calls:
            return {}
        calls: list[dict[str, Any]] = []
        for call in self.tool_calls:
            try:
                arguments: Any = call.parsed()
            except ValueError:
                arguments = {"arguments": call.arguments}
            function = {"name": call.name, "arguments": arguments}
            calls.append(
                {
                    "type": "function",
                    **({"id": call.id} if call.id else {}),
                    "function": function,
                }
            )
        thoughts = {"reasoning_content": self.reasoning} if self.reasoning else {}
        return {"tool_calls": calls, **thoughts}

    def extras(self) -> dict[str, Any]:
        """Return what a turn has beside its role and content, as plain JSON; mostly nothing."""
        if not (
            self.tool_calls
            or self.provider_content
            or self.reasoning
            or self.role == "tool"
        ):
            return {}
        fields_by_name: dict[str, Any] = {
            "tool_calls": [call.as_dict() for call in self.tool_calls],
            "tool_call_id": self.tool_call_id,
            "tool_name": self.tool_name,
            "is_error": self.is_error,
            "reasoning": self.reasoning,
            "provider_content": self.provider_content,
        }
        return {name: content for name, content in fields_by_name.items() if content}


Prompt = str | tuple[Message, ...]
"""What a model is prompted with: text, sent as it is, or messages for the model's own template."""


def prompt_payload(prompt: Prompt, *, recorded: bool = False) -> Any:
    """Return the prompt as JSON: a string, or a list of [role, content], with images named by hash.

    A turn with calls, or the result of one, has a mapping of them as its third member.

    Args:
        prompt: the prompt.
        recorded: also include where images come from. For records only: a request is identified by
            content alone.
    """
    if isinstance(prompt, str):
        return prompt
    return [_turn_payload(turn, recorded) for turn in prompt]


def _turn_payload(turn: Message, recorded: bool) -> list[Any]:
    content: Any = turn.content
    if not isinstance(content, str):
        content = [
            part if isinstance(part, str) else part.named(recorded) for part in content
        ]
    extras = turn.extras()
    return [turn.role, content, extras] if extras else [turn.role, content]


def prompt_from(payload: Any) -> Prompt:
    """Rebuild a prompt from its recorded form; its images have a hash and no bytes."""
    if isinstance(payload, str):
        return payload
    return tuple(_turn_from(*turn) for turn in payload)


def _turn_from(
    role: Any, content: Any, extras: Mapping[str, Any] | None = None
) -> Message:
    if not isinstance(content, str):
        content = tuple(
            part if isinstance(part, str) else Image.recorded(part) for part in content
        )
    if not extras:
        return Message(role, content)
    return Message(role, content, **fields_from_extras(extras))


def fields_from_extras(extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Message` that its `extras` wrote."""
    calls = tuple(map(ToolCall.from_dict, extras.get("tool_calls", ())))
    return {**extras, "tool_calls": calls}


@quick_init
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
        tools: what the model may call; see `core/tools`.
        tool_choice: "auto", "none", "required" or the name of one tool; None leaves it to the
            model.
        parallel_tool_calls: whether one reply may hold several calls; None leaves it to the model.
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
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None

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
            **self._options_payload(),
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

    def _options_payload(self) -> dict[str, Any]:
        options = self.options()
        if self.tools:
            options["tools"] = tools_payload(self.tools)
        return options


@lru_cache(maxsize=256)  # all samples of a task mostly offer the same tools
def tools_payload(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]]:
    """Return definitions as plain JSON, which callers must not change."""
    return [tool.as_dict() for tool in tools]


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
        top_logprobs: None for the sum alone; else the response has the text's tokens too, with so
            many alternatives each. Such a text must fit into one window.
    """

    ability: ClassVar[Ability] = "rolling"

    text: str
    top_logprobs: int | None = None

    def payload(self) -> dict[str, Any]:
        """Return the content that identifies this request."""
        if self.top_logprobs is None:
            return {"rolling": self.text}
        return {"rolling": self.text, "top_logprobs": self.top_logprobs}


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
    if isinstance(prompt, str):
        return ()
    turns_of_parts = [turn for turn in prompt if not isinstance(turn.content, str)]
    if not turns_of_parts:
        return ()
    return tuple(image for turn in turns_of_parts for image in turn.images)


def has_tool_turns(prompt: Prompt) -> bool:
    """Return whether a prompt has calls of tools, or results of such calls."""
    if isinstance(prompt, str):
        return False
    for turn in prompt:  # noqa: SIM110  # for each request: `any` takes twice the time
        if turn.tool_calls or turn.role == "tool":
            return True
    return False
