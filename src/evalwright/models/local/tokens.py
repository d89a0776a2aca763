"""The rules between strings and tokens, for every local backend: joins, BOS, truncation, rolling
windows, stop strings.

A backend hands in its tokenizer as an `Encoder` and the model's facts as `TokenRules`, and gets
back lists of tokens to put through the model. Nothing here knows of torch, transformers or
onnxruntime.

The rules are those that published log-likelihood scores were made with, with these exceptions:
- where a token spans the join of context and continuation, what is scored is every token of the
  joined text that is
  not shared with the context alone, at least one. (Published code counts the context's tokens and
  skips as many of the
  joined text, which may score nothing, or skip a part of the continuation.) Where the context's
  tokens are a prefix of
  the joined text's, which is nearly always, both are the same.
- a BOS that the tokenizer adds is never scored in a rolling log-likelihood. (Published code scores
  it, once a text.)
- a text is never given two BOS tokens.
- a rendered chat template gets no special tokens but its own. (Published code lets the tokenizer
  add its BOS.)
- a prompt for generation is never cut. (Published code drops its left side until `max_tokens` more
  fit.)
`TokenRules.published` makes all but the third as they were published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evalwright.core.errors import Party, PromptTooLong, Rejected
from evalwright.core.requests import Prompt

DEFAULT_MAX_TOKENS = 256
"""How many tokens a local model writes at the most where a request leaves the limit to the model.
"""

TRUNCATED = "truncated"
"""The finish reason of a log-likelihood whose context did not fit and lost its left part."""

Pair = tuple[list[int], list[int]]
"""Context tokens (never empty) and the continuation tokens that are scored (never empty)."""


class DoesNotFit(Rejected):
    """A request that this model cannot take: too long for its window, or nothing in it to score."""

    party: Party = "model"


class ContextExceeded(DoesNotFit, PromptTooLong):
    """A prompt or a continuation with more tokens than the model's context has."""


class Encoder(Protocol):
    """A tokenizer, as far as scoring and generation need one."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """The tokens of a text; special tokens written out in the text are recognised."""

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool) -> str:
        """The text of tokens, without any cleaning up of spaces."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What the rules need to know of a model.

    prefix_token: what the first token of a text is predicted from: BOS, else EOS, else None.
    add_special_tokens: let the tokenizer add what it adds by default (for most models a BOS or
    nothing). bos_token: the BOS that must not come twice. max_length: tokens that the model can
    take in at once. trailing: how many tokens the tokenizer adds at the end of a text (an EOS);
    they are taken off again. add_bos: put the BOS in front even where the tokenizer does not.
    published: see above.
    """

    prefix_token: int | None
    add_special_tokens: bool
    bos_token: int | None
    max_length: int
    trailing: int = 0
    add_bos: bool = False
    published: bool = False

    def without_special_tokens(self) -> TokenRules:
        """The rules for text that holds its special tokens already, such as a rendered chat
        template.
        """
        return replace(self, add_special_tokens=False, add_bos=False)


@dataclass(frozen=True, slots=True)
class Reader:
    """How a model reads prompts: its tokenizer, its rules, and `render`: a prompt as text with the
    rules that hold for it.
    """

    encoder: Encoder
    rules: TokenRules
    render: Callable[[Prompt], tuple[str, TokenRules]]


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
    """The rules of a model with this tokenizer; finds out what the tokenizer puts at the end of a
    text.
    """
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
    """The tokens of a prompt: with the special tokens that stand in front, no second BOS, and
    nothing at the end.
    """
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
    """What the encoder of an encoder-decoder model reads: with all special tokens, those at the end
    too.
    """
    return _one_bos(rules, encoder.encode(text, rules.add_special_tokens))


def encode_pair(
    encoder: Encoder, rules: TokenRules, context: str, continuation: str
) -> Pair:
    """The tokens before and of `continuation`, for its log-likelihood after `context`.

    White space at the end of the context moves to the continuation, because tokenizers put it in
    front of words. An empty context is the prefix token alone. Raises DoesNotFit where there is
    nothing to score or nothing to start from.
    """
    kept, continuation = _split_spaces(context, continuation)
    if not kept:
        return _after_prefix(rules, encoder.encode(continuation, False))
    alone = encode_text(encoder, rules, kept)
    whole = encode_text(encoder, rules, kept + continuation)
    if rules.published and alone and len(alone) < len(whole):
        return alone, whole[len(alone) :]
    split = min(common_length(alone, whole), len(whole) - 1)
    if split <= 0:
        return _after_prefix(rules, whole)
    return whole[:split], whole[split:]


def encode_sides(
    encoder: Encoder, rules: TokenRules, context: str, continuation: str
) -> Pair:
    """The same for a model whose encoder reads the context and whose decoder writes the
    continuation, both encoded apart.

    The context keeps all special tokens that its tokenizer adds, an EOS at its end too; the
    continuation gets none.
    """
    kept, continuation = _split_spaces(context, continuation)
    targets = encoder.encode(continuation, False)
    if not kept or not targets:
        return _after_prefix(rules, targets)
    return encode_source(encoder, rules, kept), targets


def truncate_pair(context: list[int], continuation: list[int], max_length: int) -> Pair:
    """Drop tokens at the context's left until the model's input, which lacks the last token, has
    `max_length` at most.

    Raises ContextExceeded where the continuation alone is longer than that.
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
    """Drop tokens at the context's left until the encoder takes it.

    Raises ContextExceeded for a continuation that is too long.
    """
    truncate_pair([], continuation, max_length)
    return context[-max_length:], continuation


def rolling_windows(
    tokens: Sequence[int], prefix_token: int, max_length: int
) -> list[tuple[list[int], list[int]]]:
    """Windows `(input, targets)` over a text of any length in which every token is a target exactly
    once.

    `targets` are what the last `len(targets)` positions of `input` predict. The first window starts
    from the prefix token; every later one takes up to `max_length` new targets, and its input holds
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
    """The windows of a text as context and continuation, each scored as any other pair is.

    The text is encoded without special tokens, and a BOS written at its start is not scored: the
    prefix token stands there already. An empty text has no windows. By published rules it is
    encoded, and scored, with all special tokens. Raises DoesNotFit where the model has neither BOS
    nor EOS to start from.
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
    """The prompt by published rules: without as much of its left side as leaves room for
    `max_tokens`; else as it is.
    """
    left = rules.max_length - max_tokens
    return prompt[-left:] if rules.published and left > 0 else prompt


def room_for_answer(prompt_length: int, max_tokens: int | None, max_length: int) -> int:
    """How many tokens may be generated after a prompt: `max_tokens` (default 256), less where the
    context ends sooner.

    Raises ContextExceeded for a prompt that leaves no room: a prompt that was cut silently is
    another question.
    """
    if prompt_length >= max_length:
        raise ContextExceeded(
            f"The prompt has {prompt_length} tokens and the model's context has"
            f" {max_length}, so there is no room for an answer. Use fewer shots or a"
            " model with a longer context."
        )
    wanted = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if wanted < 1:
        raise DoesNotFit(f"max_tokens is {wanted}, so there is no room for an answer.")
    return min(wanted, max_length - prompt_length)


def _after_prefix(rules: TokenRules, tokens: list[int]) -> Pair:
    """Score all of `tokens`, except a prefix token that they begin with, which then serves as the
    context.
    """
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
    """Both with the white space at the context's end moved to the continuation, of which there must
    be some.
    """
    kept = context.rstrip()
    continuation = context[len(kept) :] + continuation
    if not continuation:
        raise DoesNotFit("The continuation is empty, so there is nothing to score.")
    return kept, continuation


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two rows begin with alike."""
    return next(
        (
            place
            for place, (a, b) in enumerate(zip(left, right, strict=False))
            if a != b
        ),
        min(len(left), len(right)),
    )
