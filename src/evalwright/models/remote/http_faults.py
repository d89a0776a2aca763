"""Turns replies that are not answers into errors: the class, and the server's message, sanitised.

A server's message is untrusted and may repeat the key, so it is masked, stripped of control
characters and shortened.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from evalwright.bounded import from_json
from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    Overloaded,
    Party,
    PromptTooLong,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.outcomes import FILTERED
from evalwright.core.responses import RateLimits
from evalwright.core.secrets import mask_message
from evalwright.models.remote.context_faults import prompt_is_too_long
from evalwright.models.remote.http_limits import parse_reset, parse_retry_after

SHOWN = 80
"""Characters of a broken reply that an error shows."""
_MESSAGE = 300

_TRANSIENT = frozenset({424, 425})
"""Statuses below 500 that are worth a retry.

Amazon sends 424 if the model behind it failed; 425 asks to send again (RFC 8470).
"""
_PERMANENT = frozenset({501, 505, 506, 508, 510, 511})
"""Statuses that no retry helps: the server cannot do it, loops, or a network requires a login.

Any other status from 500 on, even an unknown one, may be temporary: it counts as 500 (RFC 9110,
section 15).
"""
_UNSURE = frozenset({424, 502, 504, 520, 524})
"""Statuses of a gateway whose server may have done the work, and may bill it."""
_FILTERED = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "ResponsibleAIPolicyViolation",
        "data_inspection_failed",
        "DataInspectionFailed",
        "1301",
    }
)
"""Error codes of a content filter, of OpenAI, Azure, OpenRouter, Alibaba and Zhipu."""
_FILTERED_WORDS = re.compile(
    "content filtering policy|Content Exists Risk|Content violates usage"
    " guidelines|violating our usage policy|your input was flagged",
    re.IGNORECASE,
)
"""Messages of a content filter, of Anthropic, DeepSeek, xAI, OpenAI and OpenRouter.

Their codes have other meanings as well.
"""
_REPLY_FILTERED_WORDS = re.compile(
    "output (?:(?:data|text) may contain|blocked by)", re.IGNORECASE
)
"""Messages of Alibaba and Anthropic that say that the answer was filtered, not the prompt."""
_NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "insufficient_user_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
    }
)
_BAD_KEY = frozenset({"API_KEY_INVALID"})
"""Codes of a refused key that come with status 400 (Google)."""
_USAGE = ("usage", "usageMetadata", "metrics")
_STATUSES = {
    word: status
    for status, words in {
        400: "invalid_request_error validationexception invalid_prompt",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error accessdeniedexception",
        404: "not_found_error resourcenotfoundexception",
        408: "modeltimeoutexception",
        413: "request_too_large",
        422: "validation",
        424: "modelerrorexception modelstreamerrorexception",
        429: (
            "rate_limit_error rate_limit_exceeded insufficient_quota"
            " throttlingexception"
        ),
        503: "overloaded serviceunavailableexception",
        504: "timeout_error",
        529: "overloaded_error",
    }.items()
    for word in words.split()
}
"""HTTP statuses by documented error words in lower case, for errors that come without a status.

The words are Anthropic's, Amazon's, OpenAI's and Hugging Face's. An unknown word counts as the
server's fault.
"""
_PER_DAY = "quota per day"
_REPLY_IN_ERROR = "a completion"
_NO_CREDIT_WORDS = "credit balance is too low"
"""A message of Anthropic's that comes with status 400."""


class OutOfCredit(AuthenticationFailed):
    """Status 402, or 429 because the account has no credit; waiting does not help."""

    kind: ClassVar[str] = "out of credit"


class Filtered(Rejected):
    """The provider's filter stopped the prompt: a 400 that says so, or Cohere's 498.

    There is no reply to keep, and nothing to retry.
    """

    kind: ClassVar[str] = FILTERED
    taken = True
    prompt_only: ClassVar[bool] = True


class ReplyFiltered(Filtered):
    """The provider's filter stopped the answer, and the server reports that instead of a reply."""

    party: Party = "model"
    prompt_only: ClassVar[bool] = False


class CertificateRefused(ConnectionFailed):
    """The server's certificate cannot be trusted: sending again does not help."""

    retryable: ClassVar[bool] = False
    taken = False


def error_of_reply(
    where: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key_source: str = "",
    rate_limits: RateLimits | None = None,
) -> RequestError:
    """Make the error for a reply whose status is not 2xx.

    Args:
        where: the host, for the message.
        status: the status.
        headers: the reply's headers.
        body: the reply's body.
        key_source: the variable that holds the key, for status 401.
        rate_limits: what the headers say about rate limits.
    """
    try:
        payload = from_json(body) if body else None
    except ValueError:
        payload = None
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    words = server_message(payload) or body[: 4 * _MESSAGE].decode("utf-8", "replace")
    if 300 <= status < 400:
        words = (
            f"it redirects to {headers.get('location', 'another address')}; give that"
            " as the base URL"
        )
    retry_after = parse_retry_after(headers)
    if retry_after is None and status == 503:
        retry_after = _loading(payload)
    if retry_after is None:
        retry_after = _retry_delay(payload)
    return error_for(
        where,
        status,
        words,
        codes=codes_of(payload),
        key_source=key_source,
        retry_after=retry_after,
        rate_limits=rate_limits,
    )


def error_for(
    where: str,
    status: int,
    words: str,
    *,
    codes: frozenset[str] = frozenset(),
    key_source: str = "",
    retry_after: float | None = None,
    rate_limits: RateLimits | None = None,
) -> RequestError:
    """Make the error for a status and a server's message, which may come with status 200."""
    no_credit = status == 400 and _NO_CREDIT_WORDS in words
    filtered = 400 <= status < 500 and (
        codes & _FILTERED or _FILTERED_WORDS.search(words)
    )
    effective_status = status
    if filtered:
        effective_status = 498
    elif no_credit:
        effective_status = 402
    error_class, opening = _kind_of(effective_status, codes)
    if filtered and (_REPLY_IN_ERROR in codes or _REPLY_FILTERED_WORDS.search(words)):
        error_class = ReplyFiltered
        opening = "stopped the reply by its content filter"
    elif not filtered and prompt_is_too_long(status, codes, words):
        error_class = PromptTooLong
        opening = "says that the prompt does not fit the model's context"
    server_words = clean(words, _MESSAGE)
    message = f"{where} {opening} ({status})"
    if server_words:
        message += f": {server_words}"
    if server_words[-1:] not in (".", "!", "?"):
        message += "."
    if error_class is AuthenticationFailed:
        no_key = (
            "No key was sent: name the one for this server with -M"
            " api_key_env=VARIABLE."
        )
        message += f" The key came from {key_source}." if key_source else f" {no_key}"
    if status == 404:
        message += " Check the model's name and the base URL (most end in /v1)."
    unsure = True if status in _UNSURE else None
    return error_class(
        message,
        status=status,
        retry_after=retry_after,
        rate_limits=rate_limits,
        taken=unsure,
    )


def _kind_of(status: int, codes: frozenset[str]) -> tuple[type[RequestError], str]:
    if status == 498:
        return Filtered, "stopped the request by its content filter"
    if status == 402 or (status in (403, 429) and codes & _NO_CREDIT):
        return OutOfCredit, "says that the account has no credit left"
    if status == 429 and _PER_DAY in codes:
        return OutOfCredit, "says that the daily quota is used up"
    if status == 429:
        return RateLimited, "asks for fewer requests"
    if status in (401, 403) or codes & _BAD_KEY:
        return AuthenticationFailed, "does not accept the API key"
    if status == 408:
        return TimedOut, "timed out while waiting for the request"
    if status in _TRANSIENT or (500 <= status < 600 and status not in _PERMANENT):
        return Overloaded, "had a server error"
    return Rejected, "rejected the request"


def server_message(payload: Any) -> str:
    """Return the message in an error body of any provider's form, or ""."""
    if not isinstance(payload, Mapping):
        return ""
    error = payload.get("error", payload)
    if isinstance(error, str):
        return error
    if not isinstance(error, Mapping):
        return ""
    for name in ("message", "Message", "detail", "error", "title"):
        content = error.get(name)
        if isinstance(content, str) and content:
            return content
        if content:
            return _details(content) or json.dumps(content, ensure_ascii=False)
    return ""


def _details(details: Any) -> str:
    """Join the messages in FastAPI's list of validation errors: "body.top_p: too large"."""
    entries = details.get("detail") if isinstance(details, Mapping) else details
    if not isinstance(entries, list) or not all(
        isinstance(detail, Mapping) for detail in entries
    ):
        return ""
    messages = [(detail.get("loc"), detail.get("msg")) for detail in entries]
    return "; ".join(
        (
            f"{'.'.join(map(str, location))}: {words}"
            if isinstance(location, list)
            else str(words)
        )
        for location, words in messages
        if isinstance(words, str)
    )


def _loading(payload: Any) -> float | None:
    """Return the seconds until a model is loaded, if a 503 reply says so (Hugging Face)."""
    seconds = payload.get("estimated_time") if isinstance(payload, Mapping) else None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not math.isfinite(seconds)
    ):
        return None
    return max(0.0, float(seconds))


def codes_of(payload: Any) -> frozenset[str]:
    """Return the codes in an error body of any provider's form."""
    error = (payload.get("error") or payload) if isinstance(payload, Mapping) else None
    if not isinstance(error, Mapping):
        return frozenset()
    # Azure's inference reports a filtered prompt in a completion that has the status of an error.
    choices = error.get("choices")
    stopped = isinstance(choices, list) and any(
        isinstance(choice, Mapping) and "finish_reason" in choice for choice in choices
    )
    further = (
        error.get("innererror"),
        error.get("metadata"),
        *(choices if isinstance(choices, list) else ()),
    )
    levels = [error, *(level for level in further if isinstance(level, Mapping))]
    names = ("code", "type", "error_type", "finish_reason")
    codes = {
        code
        for level in levels
        for name in names
        if isinstance(code := level.get(name), str)
    }
    codes |= {_REPLY_IN_ERROR} if stopped else set()
    for detail in google_details(error):
        codes.add(str(detail.get("reason", "")))
        for violation in detail.get("violations") or ():
            if isinstance(violation, Mapping) and "PerDay" in str(
                violation.get("quotaId", "")
            ):
                codes.add(_PER_DAY)
    return frozenset(codes)


def google_details(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the typed details of an error of Google's APIs (google.rpc.Status)."""
    details = error.get("details")
    return (
        [detail for detail in details if isinstance(detail, Mapping)]
        if isinstance(details, list)
        else []
    )


def _retry_delay(payload: Any) -> float | None:
    """Return the seconds to wait by Google's RetryInfo ("34.07s"), or None."""
    error = payload.get("error") if isinstance(payload, Mapping) else None
    for detail in google_details(error) if isinstance(error, Mapping) else ():
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and delay.endswith("s"):
            return parse_reset(delay, 0.0)
    return None


def status_of(*words: Any) -> int:
    """Return the HTTP status for the first known of these error names, else 500."""
    statuses = (_STATUSES.get(word.lower()) for word in words if isinstance(word, str))
    return next(filter(None, statuses), 500)


def error_within(
    where: str, payload: Mapping[str, Any], *, key_source: str = ""
) -> RequestError | None:
    """Return the error in a reply with status 200, or None if it is an answer."""
    error = payload.get("error") or (
        payload if payload.get("object") == "error" else None
    )
    if not error:
        return None
    codes = codes_of(payload)
    named = error if isinstance(error, Mapping) else payload
    code = named.get("code")
    status = 0
    if isinstance(code, int) and 400 <= code < 600:
        status = code
    elif codes & _FILTERED:
        status = 400
    status = status or status_of(code, named.get("type"), named.get("error_type"))
    return error_for(
        where, status, server_message(payload), codes=codes, key_source=key_source
    )


def bad_reply(
    where: str, expected: str, got: str | bytes, status: int | None = None
) -> BadReply:
    """Make the error for a reply in an undocumented form, with the beginning of the reply."""
    text = (
        got[: 4 * SHOWN].decode("utf-8", "replace") if isinstance(got, bytes) else got
    )
    beginning = clean(text, SHOWN)
    description = f"it begins: {beginning}" if beginning else "it is empty"
    return BadReply(
        f"{where} sent a reply that is not {expected}; {description}", status=status
    )


def usage_within(body: bytes) -> dict[str, Any]:
    """Return the complete usage objects in a reply that is cut off."""
    text = body.decode("utf-8", "replace")
    usage_objects = dict[str, Any]()
    for name in _USAGE:
        position = text.rfind(f'"{name}"')
        start = text.find("{", position) if position >= 0 else -1
        if start >= 0 and text[position + len(name) + 2 : start].strip() == ":":
            with suppress(ValueError, RecursionError):
                usage_objects[name] = json.JSONDecoder().raw_decode(text, start)[0]
    return usage_objects


def clean(text: str, limit: int) -> str:
    """Sanitise an untrusted text: one line, keys masked, no control characters, shortened."""
    # Shortening could cut a key in two, so masking comes first; the input is bounded to keep that
    # cheap.
    masked = mask_message(text[: 20 * limit])
    line = " ".join(
        "".join(sign if sign.isprintable() else " " for sign in masked).split()
    )
    return line if len(line) <= limit else line[: limit - 1] + "…"
