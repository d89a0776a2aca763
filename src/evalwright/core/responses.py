"""What a model returned, raw and complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from evalwright.core.quick_init import quick_init
from evalwright.core.secrets import holds_secret, mask
from evalwright.core.tool_calls import ToolCall


@quick_init
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a request used.

    Args:
        input_tokens: tokens read.
        output_tokens: tokens written.
        reasoning_tokens: the part of the output tokens that is reasoning.
        cached_tokens: the part of the input tokens that the provider had cached.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    def as_dict(self) -> dict[str, int]:
        """Return a plain mapping for JSON, without zeros."""
        used = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        if self.reasoning_tokens:
            used["reasoning_tokens"] = self.reasoning_tokens
        if self.cached_tokens:
            used["cached_tokens"] = self.cached_tokens
        if not (self.input_tokens and self.output_tokens):
            return {name: tokens for name, tokens in used.items() if tokens}
        return used


@dataclass(frozen=True, slots=True)
class RateLimits:
    """A provider's rate limits as its reply headers state them; None where they do not.

    The resets are in seconds.
    """

    limit_requests: int | None = None
    remaining_requests: int | None = None
    reset_requests: float | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class TokenLogProb:
    """A token of an answer with its natural log-probability.

    Attributes:
        text: the token's text.
        log_prob: its natural log-probability.
        alternatives: (text, log-probability) of other tokens, the most probable first.
    """

    text: str
    log_prob: float
    alternatives: tuple[tuple[str, float], ...] = ()

    def as_dict(self) -> list[Any]:
        """Return [text, log-probability], followed by the alternatives if there are any."""
        return [
            self.text,
            self.log_prob,
            *([list(map(list, self.alternatives))] if self.alternatives else ()),
        ]

    @classmethod
    def from_dict(cls, recorded: Sequence[Any]) -> TokenLogProb:
        """Rebuild the token from what `as_dict` wrote."""
        text, log_prob, *alternatives = recorded
        return cls(
            text,
            log_prob,
            tuple(
                (str(token), float(log_probability))
                for token, log_probability in (alternatives[0] if alternatives else ())
            ),
        )


@quick_init
@dataclass(frozen=True, slots=True)
class Response:
    """One response of one model, as it arrived.

    Args:
        text: the whole text, reasoning tags included.
        reasoning: reasoning that the provider sends in a field of its own.
        finish_reason: "stop", "length", "content_filter", "refusal" (in a field made for it) or the
            provider's own word.
        log_likelihood: natural log, summed over `tokens_scored` tokens.
        is_greedy: whether each scored token was the most probable one.
        tokens_scored: number of tokens of the scored text.
        values: an embedding, class probabilities in the model's order, or one reward.
        usage: tokens read and written.
        latency: seconds from sending to the complete response.
        cost: in US dollars, where a price is known.
        model: the model id in the provider's reply.
        rate_limits: the provider's limits, for pacing; not stored.
        tokens: tokens of the answer with their log-probabilities, where these were requested.
        replica: which endpoint or process answered; ignored in comparisons.
        stopped_at: the stop string that ended the answer, "" where it ended by itself; None where
            that is not known, or the request had none.
        also_named: other model ids that appeared in the chunks of a stream; not stored.
        tool_calls: the calls of tools that the request offered, in the reply's order.
        provider_content: what the provider wants back unchanged with this turn; see `Message`.
    """

    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    log_likelihood: float | None = None
    is_greedy: bool | None = None
    tokens_scored: int | None = None
    values: tuple[float, ...] = ()
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    cost: float | None = None
    model: str = ""
    rate_limits: RateLimits | None = field(default=None, compare=False, repr=False)
    tokens: tuple[TokenLogProb, ...] = ()
    replica: str = field(default="", compare=False)
    stopped_at: str | None = field(default=None, compare=False)
    also_named: tuple[str, ...] = field(default=(), compare=False, repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    provider_content: str = field(default="", repr=False)

    @property
    def counted(self) -> bool:
        """Whether `usage` covers both input and output.

        With only one of them, the cost is unknown.
        """
        used = self.usage
        return used.input_tokens > 0 and (
            used.output_tokens > 0
            or not (self.text or self.reasoning or self.tool_calls)
        )

    def without_secrets(self) -> Response:
        """Mask every known secret in this response: a server may echo what it was sent."""
        texts = [self.text, self.reasoning, self.finish_reason, self.model]
        if self.tokens:
            texts.append("".join(token.text for token in self.tokens))
        for call in self.tool_calls:
            texts += (call.name, call.arguments, call.id)
        texts.append(self.provider_content)
        if not holds_secret("\0".join(texts)):
            return self
        reason = mask(self.finish_reason)
        text = mask(self.text)
        thoughts = mask(self.reasoning)
        model = mask(self.model)
        # The tokens are dropped because a secret may be spread over several of them.
        return replace(
            self,
            text=text,
            reasoning=thoughts,
            finish_reason=reason,
            model=model,
            tokens=(),
            tool_calls=tuple(
                ToolCall(mask(call.name), mask(call.arguments), mask(call.id))
                for call in self.tool_calls
            ),
            provider_content=mask(self.provider_content),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON with the fields that differ from their defaults.

        `rate_limits` and `also_named` are left out.
        """
        stored: dict[str, Any] = {}
        for name, default in _STORED_DEFAULTS:
            value = getattr(self, name)
            if value is not default and value != default:
                stored[name] = value
        if "usage" in stored:
            stored["usage"] = self.usage.as_dict()
        if "tokens" in stored:
            stored["tokens"] = [token.as_dict() for token in self.tokens]
        if "tool_calls" in stored:
            stored["tool_calls"] = [call.as_dict() for call in self.tool_calls]
        return stored

    @classmethod
    def from_dict(cls, recorded: dict[str, Any]) -> Response:
        """Rebuild the response from what `as_dict` wrote."""
        arguments = dict(recorded)
        if "usage" in arguments:
            arguments["usage"] = Usage(**arguments["usage"])
        if "values" in arguments:
            arguments["values"] = tuple(arguments["values"])
        if "tokens" in arguments:
            arguments["tokens"] = tuple(
                map(TokenLogProb.from_dict, arguments["tokens"])
            )
        if "tool_calls" in arguments:
            arguments["tool_calls"] = tuple(
                map(ToolCall.from_dict, arguments["tool_calls"])
            )
        return cls(**arguments)


_STORED_DEFAULTS = [
    (f.name, Usage() if f.name == "usage" else f.default)
    for f in fields(Response)
    if f.name not in ("rate_limits", "also_named")
]
