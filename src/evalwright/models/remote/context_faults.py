"""Decides whether a server's refusal says that the prompt does not fit the model's context.

It goes by the error's code or its words. A prompt that leaves too little room for `max_tokens` is
another matter. It fits, and the request fails because of a setting: if the server counts prompt and
answer separately, the prompt's own count decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "string_above_max_length",
        "model_context_window_exceeded",
        "3051",
        "1261",
    }
)
"""Error codes of OpenAI and compatible servers, llama.cpp, gateways, Mistral and Zhipu."""

_WORDS = re.compile(
    "|".join(
        [
            # OpenAI, Azure, vLLM, DeepSeek, OpenRouter, xAI, Poolside
            r"maximum (?:context|prompt|model|allowed input) length",
            (
                r"exceeds? (?:the |this model's |the model's )?(?:maximum )?context"
                r" (?:window|length|limit|size)"
            ),
            (
                r"context (?:window|length|size|limit) (?:exceeded|exceeds limit|has"
                r" been exceeded)"
            ),
            r"exceeds the available context size",  # llama.cpp
            # Anthropic, Fireworks, Amazon, AI21
            r"(?:prompt|input|inputs|messages?) (?:is|are) too long",
            r"input tokens exceeded|too many input tokens",  # Amazon
            r"(?:input )?token count.{0,60}exceeds the maximum",  # Google
            r"exceeds the maximum number of (?:input )?tokens",  # Google
            r"too large for model with \d+ maximum context length",  # Mistral
            # Together, SGLang, vLLM
            r"longer than the (?:model's|maximum) (?:context|model) length",
            r"reduce the length of the (?:input )?(?:messages|prompt|input)",  # Groq, vLLM
            r"too many tokens: (?:total number of tokens|size limit exceeded)",  # Cohere
            r"exceeded model token limit",  # Moonshot
            r"range of input length should be",  # Alibaba
            r"`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)",  # TGI
            # Yandex, watsonx
            r"number of input tokens.{0,30}(?:must be no more than|cannot exceed)",
            r"greater than the (?:model's )?context length|when context the overflows",  # LM Studio
            r"prompt length \d+ is greater than max_seq_len",  # TabbyAPI
            r"context length is only \d+",  # vLLM
            # Anthropic, Ollama
            (
                r"input length.{0,40}(?:exceeds? (?:the )?(?:maximum|context)|context"
                r" limit)"
            ),
            # vLLM, if the prompt leaves less than no room
            r"max_(?:completion_)?tokens must be at least 1, got -\d+",
            r"requested token count exceeds",  # SGLang
        ]
    ),
    re.IGNORECASE | re.DOTALL,
)

_NUMBER = r"(?:about )?(?P<{}>[\d,_]+)"
_BOTH = tuple(
    re.compile(
        pattern.replace("LIMIT", _NUMBER.format("limit")).replace(
            "PROMPT", _NUMBER.format("prompt")
        ),
        re.IGNORECASE | re.DOTALL,
    )
    for pattern in (
        # OpenAI, vLLM, DeepSeek, OpenRouter: "... 4097 tokens. However, you requested 4203 tokens
        # (3703 in the messages, 500 in the completion)"
        (
            r"maximum context length is LIMIT tokens.{0,80}requested.{0,40}\(PROMPT"
            r" (?:in the|of) (?:messages|prompt|text input)"
        ),
        # vLLM: "... 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'"
        r"maximum context length is LIMIT tokens.{0,60}request has PROMPT input tokens",
        # vLLM: "You passed 3 input tokens and requested 4096 output tokens. However, the model's
        # context length is only 4096 tokens"
        r"passed PROMPT input tokens and requested.{0,80}context length is only LIMIT",
        # SGLang: "... of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the
        # input messages and 1000 ..."
        r"maximum context length of LIMIT tokens.{0,80}: PROMPT tokens from the input",
        # Anthropic: "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
        r"exceed context limit: PROMPT \+ [\d,_]+ > LIMIT",
        # TGI: "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and
        # 1000 `max_new_tokens`"
        r"`max_new_tokens` must be <= LIMIT\. Given: PROMPT `inputs` tokens",
    )
)
"""Messages that name the context's limit and the prompt's own length."""

_OF_ANSWER = re.compile(
    r"max_(?:completion_|new_|output_)?tokens'? (?:or '\w+' )?is too large",
    re.IGNORECASE,
)
"""Messages about only the answer's limit: "'max_tokens' ... is too large: 4096. ..."."""


def prompt_is_too_long(status: int, codes: Collection[str], words: str) -> bool:
    """Return whether an error says that the prompt alone is more than the model takes.

    Args:
        status: the HTTP status. Refused keys, unknown models and rate limits (some of which count
            tokens) never say so.
        codes: the codes in the error's body.
        words: the server's own words.
    """
    if status in (401, 402, 403, 404, 408, 429):
        return False
    for pattern in _BOTH:
        if counts := pattern.search(words):
            return _count(counts["prompt"]) >= _count(counts["limit"])
    if _OF_ANSWER.search(words):
        return False
    return not _CODES.isdisjoint(codes) or _WORDS.search(words) is not None


def _count(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", "") or 0)
