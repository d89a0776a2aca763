"""The rules between strings and tokens for every local backend.

They cover joins, BOS, truncation, rolling windows and stop strings. A backend provides its
tokenizer as an `Encoder` and the model's facts as `TokenRules`, and gets back lists of tokens to
put through the model. Nothing here knows about torch, transformers or onnxruntime.

The rules are those behind published log-likelihood scores, with these exceptions:

- If a token spans the join of context and continuation, every token of the joined text is scored
  that it does not share with the context alone, at least one. (Published code counts the context's
  tokens and skips that many of the joined text, which may score nothing, or skip a part of the
  continuation.) If the context's tokens are a prefix of the joined text's, which is nearly always
  so, both are the same.
- A BOS that the tokenizer adds is never scored in a rolling log-likelihood. (Published code scores
  it, once per text.)
- A text never gets two BOS tokens.
- A rendered chat template gets no special tokens but its own. (Published code lets the tokenizer
  add its BOS.)
- A prompt for generation is never cut. (Published code drops its left side until `max_tokens` more
  fit.)

`TokenRules.published` selects the published form of all exceptions but the third.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evalwright.core.errors import Party, PromptTooLong, Rejected
from evalwright.core.requests import Prompt
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.tool_formats import ToolFormat

DEFAULT_MAX_TOKENS = 256
"""Most tokens that a local model generates if a request leaves the limit to it."""

TRUNCATED = "truncated"
"""The finish reason of a log-likelihood whose context did not fit and lost its left part."""

Pair = tuple[list[int], list[int]]
"""Context tokens (never empty) and the continuation tokens to score (never empty)."""


class DoesNotFit(Rejected):
    """A request that this model cannot take: too long for its window, or nothing to score."""

    party: Party = "model"


class ContextExceeded(DoesNotFit, PromptTooLong):
    """A prompt or continuation has more tokens than the model's context."""


class Encoder(Protocol):
    """A tokenizer, as far as scoring and generation need one."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a text; special tokens written out in the text are recognised."""

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool) -> str:
        """Return the text of tokens, without any clean-up of spaces."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What the rules need to know about a model.

    Attributes:
        prefix_token: the token from which the first token of a text is predicted: BOS, else EOS,
            else None.
        add_special_tokens: whether the tokenizer adds its defaults (for most models a BOS or
            nothing).
        bos_token: the BOS that must not come twice.
        max_length: tokens of the model's context.
        trailing: how many tokens the tokenizer adds at the end of a text (an EOS); they are
            removed.
        add_bos: whether to put the BOS in front even if the tokenizer does not.
        published: see the module.
    """

    prefix_token: int | None
    add_special_tokens: bool
    bos_token: int | None
    max_length: int
    trailing: int = 0
    add_bos: bool = False
    published: bool = False

    def without_special_tokens(self) -> TokenRules:
        """Return the rules for text with special tokens in it, such as a rendered chat template."""
        return replace(self, add_special_tokens=False, add_bos=False)


class RenderPrompt(Protocol):
    """Renders a prompt, and the tools that it offers, by a model's chat template."""

    def __call__(
        self, prompt: Prompt, tools: tuple[ToolDefinition, ...] = (), /
    ) -> tuple[str, TokenRules]:
        """Return the text and the rules for its tokens."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How a model reads prompts: its tokenizer, its rules, and `render`.

    Attributes:
        encoder: the tokenizer.
        rules: its rules.
        render: returns a prompt as text, with the rules that apply to it.
        tool_format: returns how the model's chat template writes calls of tools, None if it has
            no tools or writes calls in no known form.
    """

    encoder: Encoder
    rules: TokenRules
    render: RenderPrompt
    tool_format: Callable[[], ToolFormat | None] = lambda: None


def rules_for(
    encoder: Encoder,
    *,
    bos_token: int | None,
    eos_token: int | None,
    max_length: int,
    add_special_tokens: bool = True,
    add_bos: bool = False,
    published: bool = False,
) -> TokenRules:
    """Make the rules of a model; this finds out what its tokenizer adds at the end of a text."""
    plain = encoder.encode("a", False)
    dressed = encoder.encode("a", True)
    leading = next(
        (i for i in range(len(dressed)) if dressed[i : i + len(plain)] == plain), 0
    )
    return TokenRules(
        prefix_token=eos_token if bos_token is None else bos_token,
        add_special_tokens=add_special_tokens,
        bos_token=bos_token,
        max_length=max_length,
        trailing=max(0, len(dressed) - leading - len(plain)),
        add_bos=add_bos and bos_token is not None,
        published=published,
    )


def encode_text(encoder: Encoder, rules: TokenRules, text: str) -> list[int]:
    """Encode a prompt, with special tokens only at its start and no second BOS."""
    tokens = encoder.encode(text, rules.add_special_tokens)
    return _one_bos(
        rules,
        (
            tokens[: -rules.trailing]
            if rules.add_special_tokens and rules.trailing
            else tokens
        ),
    )


def encode_source(encoder: Encoder, rules: TokenRules, text: str) -> list[int]:
    """Encode the input of an encoder-decoder model's encoder, with all special tokens.

    They include those at the end.
    """
    return _one_bos(rules, encoder.encode(text, rules.add_special_tokens))


def encode_pair(
    encoder: Encoder, rules: TokenRules, context: str, continuation: str
) -> Pair:
    """Encode a context and a continuation, for the log-likelihood of the continuation.

    White space at the end of the context moves to the continuation, because tokenizers put it in
    front of words. An empty context becomes only the prefix token.

    Raises:
        DoesNotFit: there is nothing to score or nothing to start from.
    """
    stripped, continuation = _split_spaces(context, continuation)
    if not stripped:
        return _after_prefix(rules, encoder.encode(continuation, False))
    alone = encode_text(encoder, rules, stripped)
    joined = encode_text(encoder, rules, stripped + continuation)
    if rules.published and alone and len(alone) < len(joined):
        return alone, joined[len(alone) :]
    split = min(common_length(alone, joined), len(joined) - 1)
    if split <= 0:
        return _after_prefix(rules, joined)
    return joined[:split], joined[split:]


def encode_sides(
    encoder: Encoder, rules: TokenRules, context: str, continuation: str
) -> Pair:
    """Encode context and continuation separately, for an encoder-decoder model.

    The context keeps all special tokens that its tokenizer adds, including an EOS at its end; the
    continuation gets none.
    """
    stripped, continuation = _split_spaces(context, continuation)
    targets = encoder.encode(continuation, False)
    if not stripped or not targets:
        return _after_prefix(rules, targets)
    return encode_source(encoder, rules, stripped), targets


def truncate_pair(context: list[int], continuation: list[int], max_length: int) -> Pair:
    """Drop tokens at the context's left until the model's input has at most `max_length`.

    The input does not include the last token.

    Raises:
        ContextExceeded: the continuation alone is too long.
    """
    if len(continuation) > max_length:
        raise ContextExceeded(
            f"The continuation has {len(continuation)} tokens and the model's context"
            f" has {max_length}, so it cannot be scored in one piece."
        )
    surplus = len(context) + len(continuation) - (max_length + 1)
    return (context[surplus:] if surplus > 0 else context), continuation


def truncate_sides(
    context: list[int], continuation: list[int], max_length: int
) -> Pair:
    """Drop tokens at the context's left until it fits the encoder.

    Raises:
        ContextExceeded: the continuation is too long.
    """
    truncate_pair([], continuation, max_length)
    return context[-max_length:], continuation


def rolling_windows(
    tokens: Sequence[int], prefix_token: int, max_length: int
) -> list[tuple[list[int], list[int]]]:
    """Return windows `(input, targets)` over a text of any length; each token is a target once.

    `targets` are predicted by the last `len(targets)` positions of `input`. The first window starts
    from the prefix token; every later one takes up to `max_length` new targets, and its input has
    as much of the text to their left as fits, so a short last window sees a full context. An input
    never has more than `max_length` tokens.
    """
    if max_length < 1:
        raise ValueError("max_length must be at least 1")
    padded = [prefix_token, *tokens]
    windows = []
    for start in range(0, len(tokens), max_length):
        end = min(start + max_length, len(tokens))
        windows.append(
            (padded[max(0, end - max_length) : end], padded[start + 1 : end + 1])
        )
    return windows


def rolling_pairs(encoder: Encoder, rules: TokenRules, text: str) -> list[Pair]:
    """Return the windows of a text as context and continuation, each scored like any other pair.

    The text is encoded without special tokens, and a BOS written at its start is not scored: the
    prefix token is there already. An empty text has no windows. Under published rules it is
    encoded, and scored, with all special tokens.

    Raises:
        DoesNotFit: the model has neither BOS nor EOS to start from.
    """
    tokens = (
        encode_source(encoder, rules, text)
        if rules.published
        else encoder.encode(text, False)
    )
    if (
        not rules.published
        and rules.bos_token is not None
        and tokens[:1] == [rules.bos_token]
    ):
        tokens = tokens[1:]
    if not tokens:
        return []
    windows = rolling_windows(tokens, _prefix(rules), rules.max_length)
    return [
        (inputs[: len(inputs) - len(targets) + 1], targets)
        for inputs, targets in windows
    ]


def with_room(prompt: list[int], max_tokens: int, rules: TokenRules) -> list[int]:
    """Return the prompt, cut on the left under published rules to leave room for `max_tokens`."""
    left = rules.max_length - max_tokens
    return prompt[-left:] if rules.published and left > 0 else prompt


def room_for_answer(prompt_length: int, max_tokens: int | None, max_length: int) -> int:
    """Return how many tokens may be generated after a prompt.

    That is `max_tokens`, or fewer if the context ends sooner.

    Raises:
        ContextExceeded: the prompt leaves no room; cutting it silently would ask another question.
    """
    if prompt_length >= max_length:
        raise ContextExceeded(
            f"The prompt has {prompt_length} tokens and the model's context has"
            f" {max_length}, so there is no room for an answer. Use fewer shots or a"
            " model with a longer context."
        )
    limit = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if limit < 1:
        raise DoesNotFit(f"max_tokens is {limit}, so there is no room for an answer.")
    return min(limit, max_length - prompt_length)


def _after_prefix(rules: TokenRules, tokens: list[int]) -> Pair:
    """Score all of `tokens`, except a leading prefix token, which then serves as the context."""
    if not tokens:
        raise DoesNotFit(
            "The continuation has no tokens in this model's vocabulary, so there is"
            " nothing to score."
        )
    prefix = _prefix(rules)
    if tokens[0] == prefix and len(tokens) > 1:
        return tokens[:1], tokens[1:]
    return [prefix], tokens


def _prefix(rules: TokenRules) -> int:
    if rules.prefix_token is None:
        raise DoesNotFit(
            "The model has neither a BOS nor an EOS token, so a text's first token"
            " cannot be predicted."
        )
    return rules.prefix_token


def _one_bos(rules: TokenRules, tokens: list[int]) -> list[int]:
    bos = rules.bos_token
    if bos is None:
        return tokens
    if rules.add_special_tokens and tokens[:2] == [bos, bos]:
        return tokens[1:]
    return [bos, *tokens] if rules.add_bos and tokens[:1] != [bos] else tokens


def _split_spaces(context: str, continuation: str) -> tuple[str, str]:
    """Move white space at the context's end to the continuation, which must not be empty then."""
    stripped = context.rstrip()
    continuation = context[len(stripped) :] + continuation
    if not continuation:
        raise DoesNotFit("The continuation is empty, so there is nothing to score.")
    return stripped, continuation


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many leading tokens two rows share."""
    return next(
        (
            index
            for index, (a, b) in enumerate(zip(left, right, strict=False))
            if a != b
        ),
        min(len(left), len(right)),
    )
