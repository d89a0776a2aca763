"""What servers say where a prompt does not fit, and what they say of a limit that is too high
for one that does.
"""

from __future__ import annotations

import json

import pytest

from evalwright.core.errors import PromptTooLong, RateLimited, Rejected
from evalwright.models.remote.http_faults import Filtered, ReplyFiltered, error_of_reply

TOO_LONG = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.",
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion).",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 of text input, 1000 in the output).",
    "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "max_tokens must be at least 1, got -186.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "the request exceeds the available context size, try increasing it",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
    "prompt is too long: 208310 tokens > 199999 maximum",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "too many tokens: total number of tokens in the request cannot exceed 4081 - received 5000.",
    "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
    "The input (8193 tokens) is longer than the model's context length (8192 tokens).",
    "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 6000 tokens: 5000 tokens from the input messages and 1000 tokens for the completion.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Range of input length should be [1, 30720]",
]
"""In these the prompt alone is too long for the model."""

TOO_LITTLE_ROOM = [
    "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.",
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 20 input tokens (4096 > 4096 - 20).",
    "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other.",
    "You passed 3 input tokens and requested 4096 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 0 tokens.",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and 1000 `max_new_tokens`",
    "max_tokens: 99999 > 8192, which is the maximum allowed.",
    "The maximum tokens you requested exceeds the model limit of 8192.",
    "Unknown parameter: context_length.",
]
"""In these the prompt fits: the setting is wrong, which is no fault of the model."""


@pytest.mark.parametrize("message", TOO_LONG)
def test_a_prompt_that_does_not_fit(message: str) -> None:
    for status in (400, 422, 500):
        fault = error_of_reply(
            "host", status, {}, json.dumps({"error": {"message": message}}).encode()
        )
        assert type(fault) is PromptTooLong
        assert fault.as_failure().party == "model" and not fault.retryable


@pytest.mark.parametrize("message", TOO_LITTLE_ROOM)
def test_a_limit_that_is_too_high_is_no_fault_of_the_model(message: str) -> None:
    fault = error_of_reply(
        "host", 400, {}, json.dumps({"error": {"message": message}}).encode()
    )
    assert type(fault) is Rejected


def test_a_rate_limit_in_tokens_is_a_rate_limit() -> None:
    message = "Request too large: maximum context length of this tier is 6000 tokens per minute."
    assert (
        type(error_of_reply("host", 429, {}, json.dumps({"error": message}).encode()))
        is RateLimited
    )


def test_a_filter_on_the_prompt_and_one_on_the_reply() -> None:
    """What never reached the model is the provider's; what the model wrote is the model's."""
    prompt = {
        "error": {"code": "content_filter", "message": "The prompt was filtered."}
    }
    fault = error_of_reply("host", 400, {}, json.dumps(prompt).encode())
    assert type(fault) is Filtered and fault.party == "provider"
    alibaba = {
        "error": {
            "code": "data_inspection_failed",
            "message": "Output data may contain inappropriate content.",
        }
    }
    reply = {
        "choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]
    }
    for body in (alibaba, reply):
        fault = error_of_reply("host", 400, {}, json.dumps(body).encode())
        assert type(fault) is ReplyFiltered and fault.party == "model"
