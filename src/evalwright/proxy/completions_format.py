"""OpenAI's completions: text to text, with log-probabilities of the answer or, by `echo`, of the
prompt itself.

Carried: prompt (a text or a list of texts), max_tokens, temperature, top_p, stop, seed, n, stream,
logprobs, echo, and the extras of chat completions. `echo` with `logprobs` asks the model for the
log-probabilities of a text (`RollingLogLikelihood` with its tokens); the answer to it is the same
for everybody, so it has no draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.core.outcomes import LENGTH
from evalwright.core.requests import Generate, Request, RollingLogLikelihood
from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.proxy import openai_errors
from evalwright.proxy.chat_format import (
    EXTRAS,
    IGNORED,
    NEUTRAL,
    _include_usage,
    canonical_text,
    neutral_free,
)
from evalwright.proxy.faults import Fault, invalid
from evalwright.proxy.fields import MAX_DRAWS, MAX_TOKENS, Fields, stop_strings
from evalwright.proxy.inbound import Answered, Inbound, event
from evalwright.proxy.openai_errors import DONE, PING, finish_reason

DEFAULT_MAX_TOKENS = 16
"""The limit of completions without one, as OpenAI documents it."""
MAX_PROMPTS = 2048
MAX_LOGPROBS = 20
_NEUTRAL = {**NEUTRAL, "best_of": (1,), "suffix": ("",)}


def read(body: Any) -> Inbound:
    """Read the body of a completion.

    Raises:
        Fault: something in it cannot be carried.
    """
    fields = Fields(body)
    model = fields.required_text("model")
    prompts = _prompts(fields)
    draws = fields.whole_number("n", 1, MAX_DRAWS) or 1
    stream = fields.flag("stream") or False
    include_usage = _include_usage(fields)
    echo = fields.flag("echo") or False
    logprobs = fields.whole_number("logprobs", 0, MAX_LOGPROBS)
    max_tokens = fields.whole_number("max_tokens", 0, MAX_TOKENS)
    max_tokens = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    sampling = _sampling(fields, logprobs, max_tokens)
    extras = neutral_free(fields.extras(EXTRAS))
    if extras:
        sampling["generation_arguments"] = canonical_text(extras)
    if fields.whole_number("best_of", 1, MAX_DRAWS) not in (None, draws):
        raise invalid("'best_of' cannot be carried: leave it out.", "best_of")
    fields.finish(IGNORED, _NEUTRAL)
    scores = echo and logprobs is not None
    if scores and draws > 1:
        raise invalid("'echo' with 'logprobs' has a single answer: leave out 'n'.", "n")
    is_greedy_token = max_tokens == 1 and sampling["temperature"] == 0.0
    generates = max_tokens > 0 and not (scores and is_greedy_token)
    if not (generates or scores):
        raise invalid("'max_tokens' is 0 without 'echo' and 'logprobs'.", "max_tokens")
    requests: list[Request] = []
    for prompt in prompts:
        if scores:
            requests.append(RollingLogLikelihood(prompt, top_logprobs=logprobs))
        if generates:
            requests.append(Generate(prompt, **sampling))
    shape = {
        "include_usage": include_usage,
        "prompts": prompts,
        "echo": echo,
        "scores": scores,
        "generates": generates,
        "max_tokens": max_tokens,
        "logprobs": logprobs,
    }
    return Inbound(
        model,
        tuple(requests),
        draws,
        stream,
        needs_chat=False,
        extras=tuple(extras),
        shape=shape,
    )


def _sampling(fields: Fields, logprobs: int | None, max_tokens: int) -> dict[str, Any]:
    return {
        "max_tokens": max_tokens,
        "temperature": fields.number("temperature", 0.0, 100.0),
        "top_p": fields.number("top_p", 0.0, 1.0),
        "stop": stop_strings(fields, "stop"),
        "seed": fields.whole_number("seed", -(1 << 63), (1 << 64) - 1),
        "top_k": fields.whole_number("top_k", -1, 1 << 31),
        "min_p": fields.number("min_p", 0.0, 1.0),
        "top_logprobs": logprobs,
    }


def _prompts(fields: Fields) -> list[str]:
    prompt = fields.take("prompt")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(prompts, list) or not prompts:
        raise invalid("The field 'prompt' must be a text or a list of texts.", "prompt")
    if not all(isinstance(text, str) for text in prompts):
        raise invalid(
            "The field 'prompt' has numbers of tokens, which mean something only to one"
            " tokenizer: send texts.",
            "prompt",
        )
    if len(prompts) > MAX_PROMPTS:
        raise invalid(f"'prompt' has more than {MAX_PROMPTS:,} texts.", "prompt")
    return prompts


def write(answered: Answered) -> dict[str, Any]:
    """Return the completion as JSON."""
    choices, usage = _choices(answered)
    return {
        **_head(answered),
        "choices": choices,
        "usage": openai_errors.chat_usage(usage),
    }


def _head(answered: Answered) -> dict[str, Any]:
    return {
        "id": f"cmpl-{answered.id}",
        "object": "text_completion",
        "created": answered.created,
        "model": answered.inbound.model,
    }


def _choices(answered: Answered) -> tuple[list[dict[str, Any]], Usage]:
    shape = answered.inbound.shape
    waiting = iter(answered.responses)
    choices: list[dict[str, Any]] = []
    usage = Usage()
    for prompt in shape["prompts"]:
        scored = next(waiting)[0] if shape["scores"] else None
        generated: Sequence[Response | None] = (
            next(waiting) if shape["generates"] else [None]
        )
        usage = sum(
            (
                response.usage
                for response in (scored, *generated)
                if response is not None
            ),
            usage,
        )
        for response in generated:
            choices.append(_choice(prompt, scored, response, shape, len(choices)))
    return choices, usage


def _choice(
    prompt: str,
    scored: Response | None,
    generated: Response | None,
    shape: Any,
    index: int,
) -> dict[str, Any]:
    """Return one choice from the scored prompt, the generated answer, or both."""
    text = generated.text if generated is not None else ""
    finish = "length" if generated is None else finish_reason(generated)
    tokens: list[TokenLogProb] = [] if generated is None else list(generated.tokens)
    is_first_known = True
    if scored is not None:
        n_prompt = count_prompt_tokens(scored)
        is_first_known = scored.tokens_scored == n_prompt
        wants_next = generated is None and shape["max_tokens"] == 1
        kept = scored.tokens if wants_next else scored.tokens[:n_prompt]
        tokens = [*kept, *tokens]
        text = scored.text if wants_next else text
    logprobs = None
    if shape["logprobs"] is not None:
        logprobs = _logprobs(tokens, is_first_known, shape["logprobs"])
    return {
        "text": (prompt if shape["echo"] else "") + text,
        "index": index,
        "logprobs": logprobs,
        "finish_reason": finish,
    }


def count_prompt_tokens(scored: Response) -> int:
    """Count the tokens of a scored text that are its own.

    It ends by its length where one more token was generated after it.
    """
    return len(scored.tokens) - (scored.finish_reason == LENGTH)


def _logprobs(
    tokens: Sequence[TokenLogProb], is_first_known: bool, alternatives: int
) -> dict[str, Any]:
    offsets = []
    offset = 0
    for token in tokens:
        offsets.append(offset)
        offset += len(token.text)
    values: list[float | None] = [token.log_prob for token in tokens]
    tops: list[dict[str, float] | None] = [
        dict(token.alternatives) if alternatives else None for token in tokens
    ]
    if values and not is_first_known:
        values[0] = None
        tops[0] = None
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": values,
        "top_logprobs": tops if alternatives else None,
        "text_offset": offsets,
    }


def events(answered: Answered) -> bytes:
    """Return the completion as the chunks of a stream."""
    head = _head(answered)
    choices, usage = _choices(answered)
    chunks = []
    for choice in choices:
        chunks.append(event({**head, "choices": [{**choice, "finish_reason": None}]}))
        end = {**choice, "text": "", "logprobs": None}
        chunks.append(event({**head, "choices": [end]}))
    if answered.inbound.shape["include_usage"]:
        chunks.append(
            event({**head, "choices": [], "usage": openai_errors.chat_usage(usage)})
        )
    return b"".join(chunks) + DONE


class CompletionsFormat:
    """OpenAI's completions."""

    name = "completions"
    ping = PING
    read = staticmethod(read)
    write = staticmethod(write)
    events = staticmethod(events)

    def error(self, fault: Fault) -> dict[str, Any]:
        """Return an error as JSON."""
        return openai_errors.error(fault)

    def error_event(self, fault: Fault) -> bytes:
        """Return an error as an event of a stream that has begun."""
        return openai_errors.error_event(fault)
