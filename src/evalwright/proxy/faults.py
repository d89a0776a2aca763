"""What can go wrong with a request to the proxy, with the status that makes clients do the right
thing: come back later, or stop.

Client libraries send a request again on 408, 409, 429 and from 500 on, unless the reply has the
header `x-should-retry: false`. So what another attempt may mend has one of these statuses, and what
it cannot has another one or the header. All messages are ours: a provider's own words are in them
only as the engine quotes them, without secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.core.errors import Failure, closest
from evalwright.core.outcomes import is_models_own, outcome_of_failure
from evalwright.core.secrets import mask
from evalwright.engine.budget import SPENT

FaultKind = Literal[
    "invalid",
    "authentication",
    "permission",
    "not found",
    "too large",
    "rate limit",
    "billing",
    "overloaded",
    "server",
    "timeout",
]
RETRY_AFTER_SECONDS = 30
"""When clients may ask again after the provider's rate limit outlasted the engine's patience."""
MAX_MESSAGE_CHARS = 2_000
CONTEXT_LENGTH = "context_length_exceeded"
"""The code by which programs recognise a prompt that is too long, in OpenAI's errors."""
CONTENT_FILTER = "content_filter"
BUDGET_SPENT = "budget_spent"


class Fault(Exception):
    """A request that is answered with an error, in the caller's format.

    Args:
        status: the HTTP status.
        kind: what went wrong; each format has its own word for it.
        message: a sentence for a person.
        code: a word for programs, "" for none.
        field: the field of the request that is at fault, "" for none.
        retry_after: seconds after which the request may be sent again; None for no time.
        may_retry: whether sending it again may help.
        closes: whether the connection ends with the reply, because the request was not read.
    """

    def __init__(
        self,
        status: int,
        kind: FaultKind,
        message: str,
        *,
        code: str = "",
        field: str = "",
        retry_after: int | None = None,
        may_retry: bool = False,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind: FaultKind = kind
        self.message = mask(message)[:MAX_MESSAGE_CHARS]
        self.code = code
        self.field = field
        self.retry_after = retry_after
        self.may_retry = may_retry
        self.closes = closes

    def headers(self) -> dict[str, str]:
        """Return the headers of the reply that say whether and when to try again."""
        headers = {} if self.may_retry else {"x-should-retry": "false"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        return headers


def invalid(message: str, field: str = "", code: str = "") -> Fault:
    """Make the fault of a request that cannot be answered as it is."""
    return Fault(400, "invalid", message, field=field, code=code)


def not_served(name: str, known: Iterable[str], served: Sequence[str]) -> Fault:
    """Make the fault of a request to a model that is not served.

    Args:
        name: the model that the client named.
        known: all names that it could have meant.
        served: the names to show it.
    """
    likely = closest(name[:200], known)
    hint = f" Did you mean '{likely[0]}'?" if likely else ""
    return Fault(
        404,
        "not found",
        f"The model '{name[:200]}' is not served here.{hint} Served: {', '.join(served)}.",
        field="model",
    )


@dataclass(frozen=True, slots=True)
class _Status:
    status: int
    kind: FaultKind
    code: str = ""
    retry_after: int | None = None
    may_retry: bool = False


_BY_FAILURE = {
    "rate limited": _Status(
        429, "rate limit", "rate_limit_exceeded", RETRY_AFTER_SECONDS, may_retry=True
    ),
    "server error": _Status(529, "overloaded", "overloaded", may_retry=True),
    "connection failed": _Status(502, "server", "connection_failed", may_retry=True),
    "timed out": _Status(504, "timeout", "timeout", may_retry=True),
    "bad reply": _Status(502, "server", "bad_reply", may_retry=True),
    "wrong model": _Status(502, "server", "wrong_model", may_retry=True),
    "cancelled": _Status(503, "overloaded", "shutting_down"),
    "authentication failed": _Status(403, "permission", "provider_refuses_key"),
    "model error": _Status(500, "server", "model_error"),
    "still writing": _Status(504, "timeout", "answer_not_finished"),
    SPENT: _Status(402, "billing", BUDGET_SPENT),
    "store limit": _Status(403, "permission", "store_limit"),
}
"""By the kind of a failure. All others are a fault of the request."""


def fault_of(failure: Failure) -> Fault:
    """Return what a client is told of a request that failed for good.

    Args:
        failure: the engine's record of it.
    """
    if failure.kind == "prompt too long" or outcome_of_failure(failure) == "too_long":
        return invalid(f"prompt is too long: {failure.message}", "", CONTEXT_LENGTH)
    if outcome_of_failure(failure) == "filtered":
        return invalid(failure.message, "", CONTENT_FILTER)
    status = _BY_FAILURE.get(failure.kind)
    if status is None:
        return invalid(failure.message)
    return Fault(
        status.status,
        status.kind,
        failure.message,
        code=status.code,
        retry_after=status.retry_after,
        may_retry=status.may_retry,
    )


def is_an_answer(failure: Failure) -> bool:
    """Return whether a failure is the model's own reply, without text: an answer to the client."""
    return is_models_own(failure) and outcome_of_failure(failure) in (
        "cut",
        "empty",
        "refused",
        "filtered",
        "tool_call",
    )
