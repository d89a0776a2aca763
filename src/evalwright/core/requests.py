"""What can be asked of a model: six kinds of request, each carrying everything that changes the answer and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Ability = Literal["generate", "log-likelihood", "rolling", "embed", "classify", "reward", "chat"]
"""What a model can do. "chat" says that it takes messages (it has a chat template or a chat interface)."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. A last message of role "assistant" is a prefill: the model goes on from it."""

    role: Literal["system", "user", "assistant"]
    content: str

    def as_dict(self) -> dict[str, str]:
        """The form chat interfaces take."""
        return {"role": self.role, "content": self.content}


Prompt = str | tuple[Message, ...]
"""Text is sent as it is; messages stay messages until the model's own template renders them."""


def prompt_payload(prompt: Prompt) -> Any:
    """The prompt as JSON: a string, or a list of [role, content]."""
    return prompt if isinstance(prompt, str) else [[turn.role, turn.content] for turn in prompt]


@dataclass(frozen=True, slots=True)
class Generate:
    """Go on from `prompt`.

    max_tokens None leaves the limit to the model. stop: strings that end the answer and are not part of it.
    draw tells repeated samples of one prompt apart; a greedy request has draw 0.
    """

    ability: ClassVar[Ability] = "generate"

    prompt: Prompt
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    draw: int = 0

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {
            "generate": prompt_payload(self.prompt),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stop": self.stop,
            "seed": self.seed,
            "draw": self.draw,
        }


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """The log-probability (natural log, summed over tokens) of `continuation` after `context`."""

    ability: ClassVar[Ability] = "log-likelihood"

    context: Prompt
    continuation: str

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {"log_likelihood": prompt_payload(self.context), "continuation": self.continuation}


@dataclass(frozen=True, slots=True)
class RollingLogLikelihood:
    """The log-probability of a whole text, in windows where it is longer than the model's context."""

    ability: ClassVar[Ability] = "rolling"

    text: str

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {"rolling": self.text}


@dataclass(frozen=True, slots=True)
class Embed:
    """The vector of a text."""

    ability: ClassVar[Ability] = "embed"

    text: str

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {"embed": self.text}


@dataclass(frozen=True, slots=True)
class Classify:
    """The class probabilities of a pair, e.g. premise and hypothesis."""

    ability: ClassVar[Ability] = "classify"

    premise: str
    hypothesis: str

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {"classify": [self.premise, self.hypothesis]}


@dataclass(frozen=True, slots=True)
class Reward:
    """How good a reply to a prompt is, as a reward model sees it."""

    ability: ClassVar[Ability] = "reward"

    prompt: Prompt
    response: str

    def payload(self) -> dict[str, Any]:
        """What names this request by its content."""
        return {"reward": prompt_payload(self.prompt), "response": self.response}


Request = Generate | LogLikelihood | RollingLogLikelihood | Embed | Classify | Reward
