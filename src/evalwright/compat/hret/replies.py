"""Replies as HRET's models write them into a row, and what a call of theirs asks for."""

from __future__ import annotations

from typing import Any

from evalwright import Response
from evalwright.compat.hret.row_samples import Given


def asked_for(options: Given) -> dict[str, Any]:
    """What `generate_batch` is told of one call, as settings of a request."""
    until = options.get("until") or ()
    settings: dict[str, Any] = {
        "stop": (until,) if isinstance(until, str) else tuple(until)
    }
    if options.get("max_new_tokens") is not None:
        settings["max_tokens"] = options["max_new_tokens"]
    if options.get("return_logits"):
        settings["top_logprobs"] = 0
    return settings


def replied(row: Given, response: Response) -> dict[str, Any]:
    """A row with a reply as HRET's models write it: `prediction`, and `logits` where there are
    log-probabilities.
    """
    return {**row, **logits_of(response), "prediction": response.text}


def logits_of(response: Response) -> dict[str, Any]:
    """`logits` as HRET's models write it: of each option, or of each token of a text; nothing where
    there are none.
    """
    if response.values:
        return {"logits": {"option_log_probs": list(response.values)}}
    if not response.tokens:
        return {}
    log_probs = [token.log_prob for token in response.tokens]
    texts = [token.text for token in response.tokens]
    return {
        "logits": {
            "sum_log_prob": sum(log_probs),
            "token_log_probs": log_probs,
            "tokens": texts,
        }
    }
