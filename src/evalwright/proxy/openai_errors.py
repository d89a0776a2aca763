"""Errors and streams as OpenAI's three interfaces have them in common."""

from __future__ import annotations

from typing import Any

from evalwright.core.outcomes import CONTENT_FILTER as FILTERED
from evalwright.core.outcomes import LENGTH, REFUSAL, TOOL_CALLS
from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.proxy.faults import Fault, FaultKind
from evalwright.proxy.inbound import event

PING = b": waiting for the model\n\n"
DONE = b"data: [DONE]\n\n"
_TYPES: dict[FaultKind, str] = {
    "invalid": "invalid_request_error",
    "authentication": "invalid_request_error",
    "permission": "permission_error",
    "not found": "invalid_request_error",
    "too large": "invalid_request_error",
    "rate limit": "rate_limit_error",
    "billing": "insufficient_quota",
    "overloaded": "server_error",
    "server": "server_error",
    "timeout": "server_error",
}
_CODES: dict[FaultKind, str] = {
    "authentication": "invalid_api_key",
    "not found": "model_not_found",
}


def error(fault: Fault) -> dict[str, Any]:
    """Return an error as JSON."""
    return {
        "error": {
            "message": fault.message,
            "type": _TYPES[fault.kind],
            "param": fault.field or None,
            "code": fault.code or _CODES.get(fault.kind),
        }
    }


def error_event(fault: Fault) -> bytes:
    """Return an error as an event of a stream; client libraries raise it."""
    return event(error(fault)) + DONE


def finish_reason(response: Response) -> str:
    """Return the word for how an answer ended."""
    if response.tool_calls and response.finish_reason != LENGTH:
        return TOOL_CALLS
    if response.finish_reason in (LENGTH, "cut"):
        return LENGTH
    return FILTERED if response.finish_reason == FILTERED else "stop"


def is_refusal(response: Response) -> bool:
    """Return whether the model refused in the field made for it."""
    return response.finish_reason == REFUSAL


def added(responses: list[Response]) -> Usage:
    """Return the usage of several answers to one prompt: the prompt is read for each."""
    if len(responses) == 1:
        return responses[0].usage
    return sum((response.usage for response in responses), Usage())


def chat_usage(usage: Usage) -> dict[str, Any]:
    """Return usage as chat completions and completions name it."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def token_row(token: TokenLogProb) -> dict[str, Any]:
    """Return a token with its log-probability and alternatives."""
    return {
        **_token(token.text, token.log_prob),
        "top_logprobs": [_token(*alternative) for alternative in token.alternatives],
    }


def _token(text: str, log_prob: float) -> dict[str, Any]:
    encoded = list(text.encode("utf-8", "replace"))
    return {"token": text, "logprob": log_prob, "bytes": encoded}
